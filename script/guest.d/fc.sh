# Checks of volumes at Fibre Channel ports. To be sourced by script/guest.d/fc after here.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154,SC2164
#
# FCP goes over FCoE between ports on a bridge (VN2VN): fc0 is the daemon's machine, fc1 a host, fc2
# a stranger. NVMe goes over the kernel's own loop of Fibre Channel (nvme-fcloop).

CONFIG=/sys/kernel/config
FCOE=/sys/module/libfcoe/parameters
LOOP=/sys/class/fcloop/ctl
MAC=02:00:00:00:00:1
# Worldwide names of fc0 to fc2, of a port that is not there, and of both ends of the loop.
TARGET=20:00:${MAC}0
HOST=20:00:${MAC}1
STRANGER=20:00:${MAC}2
ABSENT=20:00:02:00:00:00:00:77
NVME_TARGET=20:00:02:00:00:00:01:01
NVME_HOST=20:00:02:00:00:00:01:02
NQN=nqn.2026-11.example:host
OTHER_NQN=nqn.2026-11.example:other

# digits WWPN: without colons, as NVMe has it.
digits() { echo "0x$1" | tr -d :; }

# names PREFIX WWPN: the names of a port, as the loop takes them.
names() { echo "$1wwnn=$(digits "$2"),$1wwpn=$(digits "$2")"; }

need_ports() {
    local number
    modprobe configfs
    grep -q " $CONFIG " /proc/mounts || mount -t configfs none "$CONFIG"
    for number in libfcoe fcoe veth bridge sd_mod nvme-fc nvmet-fc nvme-fcloop; do
        modprobe "$number" || return 1
    done
    ip link add br0 type bridge && ip link set br0 up || return 1
    for number in 0 1 2; do
        # busybox's ip gives the other end a name of its own.
        ip link add "fc$number" type veth && ip link set veth0 name "p$number" \
            && ip link set "fc$number" address "$MAC$number" mtu 2500 \
            && ip link set "p$number" mtu 2500 master br0 \
            && ip link set "fc$number" up || return 1
    done
    ip link set br0 mtu 2500
    port_up 0
}

# port_up NUMBER: makes the port. Linux 6.12 may die of frames that come while one is made.
port_up() {
    ip link set "p$1" down
    echo "fc$1" >$FCOE/create_vn2vn || return 1
    ip link set "p$1" up
    wait_for is_online "20:00:$MAC$1"
}
port_down() {
    [ -z "$(host_of "20:00:$MAC$1")" ] || echo "fc$1" >$FCOE/destroy
    wait_for is_away "20:00:$MAC$1"
}
# host_of WWPN: the host of SCSI that the port is.
host_of() {
    grep -lx "$(digits "$1")" /sys/class/fc_host/host*/port_name 2>/dev/null | cut -d/ -f5
}
is_online() { grep -qx Online "/sys/class/fc_host/$(host_of "$1")/port_state"; }
is_away() { [ -z "$(host_of "$1")" ]; }

# export_at WORD…: exports the volume: ID.
export_at() {
    palisade export create data/v "$@" || fail "no export"
    known_export
}
known_export() {
    # shellcheck disable=SC2046 # two words
    set -- $(shown '.exports[0] | "\(.id) \(.health.state)"')
    ID=$1
    [ "$2" = ok ] || fail "it is $2: $(of_export .health.problem)"
}
# target: exports it by FCP to fc1.
target() { export_at --fc "$TARGET" --initiator "$HOST"; }
# subsystem: exports it by NVMe.
subsystem() {
    [ -e /tmp/loop ] || names '' $NVME_TARGET >$LOOP/add_target_port
    : >/tmp/loop
    export_at --nvme-fc "$NVME_TARGET" --host "$NQN"
    SUBSYSTEM=$(of_export .fc.subsystem)
}

# log_in: the volume is DEV.
log_in() {
    port_up 1 || fail "no port"
    wait_for has_device
    DEV=$(of_target)
}
# of_target: the device of the unit.
of_target() {
    local device
    for device in /sys/block/sd*; do
        [ -e "$device" ] && echo "/dev/${device##*/}" && return 0
    done
    return 1
}
has_device() { [ -b "$(of_target)" ]; }
log_out() {
    port_down 1
    wait_for has_none
}
has_none() { ! of_target; }

# connect NQN: the host of that name comes to the subsystem. Linux has one identifier for each.
connect() {
    local id=11111111-1111-4111-8111-111111111111
    [ "$1" = "$NQN" ] || id=22222222-2222-4222-8222-222222222222
    nvme connect -t fc -a "nn-$(digits $NVME_TARGET):pn-$(digits $NVME_TARGET)" \
        -w "nn-$(digits $NVME_HOST):pn-$(digits $NVME_HOST)" -n "$SUBSYSTEM" -q "$1" \
        -I $id --ctrl-loss-tmo=600 --reconnect-delay=1
}
# attach_nvme: the volume is DEV.
attach_nvme() {
    [ -e /tmp/remote ] || {
        names '' $NVME_HOST >$LOOP/add_local_port
        # Without these roles nobody connects.
        echo "$(names '' $NVME_TARGET),$(names lp $NVME_HOST),roles=0x60" >$LOOP/add_remote_port
    }
    : >/tmp/remote
    connect "$NQN" || fail "not connected"
    wait_for has_namespace
    DEV=$(of_subsystem)
}
of_subsystem() {
    local device
    for device in /dev/nvme*n1; do
        [ -b "$device" ] && echo "$device" && return 0
    done
    return 1
}
has_namespace() { of_subsystem; }
detach_nvme() {
    nvme disconnect -n "$SUBSYSTEM" || fail "not disconnected"
    wait_for has_no_namespace
}
has_no_namespace() { ! of_subsystem; }

nothing_left() {
    [ -z "$(ls -A $FOLDER)" ] && ! ls /dev/ublkb* 2>/dev/null && [ ! -e /dev/palisade ] \
        && [ -z "$(ls -d $CONFIG/target/core/iblock_* $CONFIG/target/fc/20:* 2>/dev/null)" ] \
        && [ -z "$(ls -d $CONFIG/nvmet/subsystems/* $CONFIG/nvmet/ports/* \
            $CONFIG/nvmet/hosts/* 2>/dev/null)" ]
}

# clear_up: leaves nothing of a check behind.
clear_up() {
    local job
    touch enough
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    nvme disconnect-all || true
    port_down 1 || true
    port_down 2 || true
    if ! is_over "$(cat $PID)"; then
        ID=$(of_export '.id // empty')
        [ -z "$ID" ] || palisade export delete "$ID"
    fi
    cd /tmp
    rm -rf /tmp/work
}

# load: as that of here.sh, on DEV.
writes() { awk '{ print $5 }' "/sys/block/${DEV#/dev/}/stat"; }

# A host sees what it is; a stranger sees nothing.
check_made() {
    local about uuid roles
    palisade port list --json | jq -e ".ports[] | select(.wwpn == \"$TARGET\" \
        and .driver == \"fcoe\" and .state == \"Online\" and .exports == [])" || fail "its port"
    says 'no fibre channel port' palisade export create data/v --fc "$ABSENT" \
        --initiator "$HOST" || fail "a port that is not there"
    [ "$(of_export '.id // empty')" = '' ] || fail "what could not be served is there"
    target
    [ "$(of_export .kind)" = fc ] || fail "its kind"
    [ "$(of_export .fc.port)" = "$TARGET" ] && [ "$(of_export .fc.lun)" = 1 ] \
        && [ "$(of_export '.fc.initiators | join(",")')" = "$HOST" ] || fail "what it says of it"
    palisade port list --json | jq -e ".ports[] | select(.exports == [\"$ID\"])" \
        || fail "its port does not say it"
    # Who has no name on the list has nothing, wherever that is looked for.
    port_up 2
    log_in
    [ "$(ls -d /sys/block/sd* | wc -l)" = 1 ] || fail "a stranger has it"
    readlink -f "/sys/block/${DEV#/dev/}" | grep -q "/$(host_of "$HOST")/" || fail "whose is it?"
    roles=$(cat "/sys/class/fc_host/$(host_of "$STRANGER")"/device/rport-*/fc_remote_ports/*/roles)
    case $roles in *Target*) fail "a stranger is told of a target" ;; esac
    about=/sys/block/${DEV#/dev/}
    uuid=$(palisade volume list --json | jq -r '.volumes[0].uuid')
    [ "$(tr -d ' ' <"$about/device/vendor")" = PALISADE ] || fail "its vendor"
    [ "$(tr -d ' ' <"$about/device/model")" = VOLUME ] || fail "its product"
    grep -qx "naa.6001405$(echo "$uuid" | tr -d - | cut -c 1-25)" "$about/device/wwid" \
        || fail "it is $(cat "$about/device/wwid")"
    grep -q "$uuid" "$about/device/vpd_pg80" || fail "its serial number"
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB << 20)) ] || fail "its size"
    [ "$(cat "$about/queue/write_cache")" = 'write back' ] || fail "its cache"
    [ "$(cat "$about/queue/discard_max_bytes")" -gt 0 ] || fail "no discard"
    wait_for has_session
    port_down 2
    log_out
    wait_for has_no_session
    says 'already' palisade export create data/v --fc "$TARGET" --initiator "$STRANGER" \
        || fail "two units of one volume"
    unserve
}
has_session() { [ "$(of_export '.fc.sessions | join(",")')" = "$HOST" ]; }
has_no_session() { [ "$(of_export '.fc.sessions | length')" = 0 ]; }

# verify: what is written by the host is what is read, with a drive lost and rebuilt meanwhile.
verify() {
    local was spare=/dev/shm/drive-4
    [ ! -e /tmp/spare ] || spare=$(cat /tmp/spare)
    verified --rw=randrw --bsrange=4k-1m --size=48m --iodepth=16
    load
    was=$(shown '.slots[1].drive')
    palisade array fail data --drive "$was" || fail "not failed"
    goes_on
    palisade array replace data --slot 1 --with "$spare" --overwrite "$spare" --yes \
        || fail "not replaced"
    # Each check has a shell of its own.
    echo "$was" >/tmp/spare
    wait_for array_is optimal
    calm
}
check_verified() {
    target
    log_in
    verify
    log_out
    unserve
}

# kill_all: the daemon, and then `palisade services`, are killed in the middle of it and started
# again: hosts see nothing of it.
kill_all() {
    local round=0
    load
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        again 9
        goes_on
        echo "round $round: killed" >&3
    done
    ended $SERVICES_PID 9
    goes_on
    start_services
    wait_for is_well
    calm
}
check_killed() {
    target
    log_in
    kill_all
    log_out
    unserve
}

# The array stops and starts again: hosts wait for it.
stop_and_start() {
    load
    palisade array stop data || fail "not stopped"
    palisade array assemble data || fail "not started"
    wait_for is_well
    goes_on
    calm
}
check_stopped() {
    target
    log_in
    stop_and_start
    log_out
    unserve
}

# Larger: who is logged in has the size that it had, and the next one the new one.
check_resized() {
    target
    log_in
    palisade volume resize data/v --size $((MIB + 12))M || fail "not resized"
    wait_for has_problem 'until'
    log_out
    wait_for is_whole
    log_in
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB + 12 << 20)) ] || fail "its size"
    log_out
    palisade volume resize data/v --size ${MIB}M --yes || fail "not made smaller"
    wait_for is_whole
    unserve
}
has_problem() { of_export .health.problem | grep -q "$1"; }
is_whole() { is_well && [ "$(of_export .health.problem)" = null ]; }

# Who is logged in before an export is made, as a stranger, is let in without asking for it: the
# port's link begins anew. Linux's own hosts of FCoE don't look for units then.
check_later() {
    port_up 1
    wait_for is_logged_in
    target
    wait_for has_session
    port_down 1
    wait_for has_no_session
    log_in
    log_out
    unserve
}
# The port of the daemon's machine has the host's among those that it knows.
is_logged_in() {
    grep -qx "$(digits "$HOST")" \
        "/sys/class/fc_host/$(host_of "$TARGET")"/device/rport-*/fc_remote_ports/*/port_name
}

# By NVMe a host has the size that it had, until the export is made anew.
check_nvme_resized() {
    subsystem
    attach_nvme
    palisade volume resize data/v --size $((MIB + 12))M || fail "not resized"
    wait_for has_problem 'until'
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB << 20)) ] || fail "it grows in use"
    detach_nvme
    unserve
    subsystem
    attach_nvme
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB + 12 << 20)) ] || fail "its size"
    detach_nvme
    unserve
    palisade volume resize data/v --size ${MIB}M --yes || fail "not made smaller"
}

# By NVMe: a host sees what it is; a stranger is not let in.
check_nvme_made() {
    local about
    says 'takes nvme' palisade export create data/v --nvme-fc "$ABSENT" --host "$NQN" \
        || fail "a port that is not there"
    subsystem
    [ "$(of_export .kind)" = nvme-fc ] || fail "its kind"
    [ "$(of_export .fc.port)" = "$NVME_TARGET" ] || fail "its port"
    attach_nvme
    about=/sys/block/${DEV#/dev/}
    [ "$(cat "$about/uuid")" = "$(palisade volume list --json | jq -r '.volumes[0].uuid')" ] \
        || fail "its UUID"
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB << 20)) ] || fail "its size"
    refused connect "$OTHER_NQN" || fail "a stranger is let in"
    detach_nvme
    unserve
}
check_nvme_verified() {
    subsystem
    attach_nvme
    verify
    detach_nvme
    unserve
}
check_nvme_killed() {
    subsystem
    attach_nvme
    kill_all
    detach_nvme
    unserve
}
check_nvme_stopped() {
    subsystem
    attach_nvme
    stop_and_start
    detach_nvme
    unserve
}

# Two volumes at one port, by either protocol: one goes and comes, and who has the other goes on.
check_beside() {
    local first second
    palisade volume create data/w --size 16M || fail "no second volume"
    target
    first=$ID
    log_in
    load
    palisade export create data/w --fc "$TARGET" --initiator "$HOST" || fail "no second unit"
    second=$(palisade export list --json | jq -r '.exports[] | select(.volume == "w") | .id')
    [ "$(palisade export show "$second" --json | jq .fc.lun)" = 2 ] || fail "its number"
    scan
    wait_for has_both
    palisade export delete "$second" || fail "the second is not deleted"
    goes_on
    calm
    ID=$first
    log_out
    unserve
    subsystem
    first=$ID
    attach_nvme
    load
    palisade export create data/w --nvme-fc "$NVME_TARGET" --host "$NQN" || fail "no second"
    second=$(palisade export list --json | jq -r '.exports[] | select(.volume == "w") | .id')
    palisade export delete "$second" || fail "the second is not deleted"
    goes_on
    calm
    ID=$first
    detach_nvme
    unserve
    palisade volume delete data/w --yes
}
scan() { echo '- - -' >"/sys/class/scsi_host/$(host_of "$HOST")/scan"; }
has_both() { [ "$(ls -d /sys/block/sd* | wc -l)" = 2 ]; }

# Where no daemon comes back the device is released, whoever serves it; the next one makes another.
check_released() {
    target
    ended $PID 9
    palisade export release data/v || true
    start_daemon 2 || fail "the daemon does not start"
    wait_for is_well
    log_in
    verified --rw=randwrite --bs=64k --size=16m --iodepth=8
    log_out
    unserve
}

# `palisade services` is killed at random moments of create and delete, by FCP and by NVMe.
check_services_killed() {
    local round=0 is_nvme='' asking
    while [ $round -lt 6 ]; do
        round=$((round + 1))
        ID=$(of_export '.id // empty')
        if [ -z "$ID" ]; then
            if [ -z "$is_nvme" ]; then
                is_nvme=1
                (palisade export create data/v --nvme-fc "$NVME_TARGET" --host "$NQN" || true) &
            else
                is_nvme=''
                (palisade export create data/v --fc "$TARGET" --initiator "$HOST" || true) &
            fi
        else
            (palisade export delete "$ID" || true) &
        fi
        asking=$!
        usleep $((round * 7919 % 13 * 60000))
        ended $SERVICES_PID 9
        start_services
        wait "$asking"
    done
    ID=$(of_export '.id // empty')
    if [ -n "$ID" ]; then
        unserve
    fi
    wait_for nothing_left
    target
    log_in
    log_out
    unserve
}
