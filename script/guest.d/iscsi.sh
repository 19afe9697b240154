# Checks of volumes as iSCSI targets. To be sourced by script/guest.d/iscsi after here.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

PORTAL=127.0.0.1:3260
# What the kernel's initiator is called, and others.
OWN=iqn.2026-11.example:guest
OTHER=iqn.2026-11.example:other
SECOND=iqn.2026-11.example:second
CHAP_USER=host-1
CHAP_SECRET=correct-secret
CONFIG=/sys/kernel/config/target

need_initiator() {
    mkdir -p /etc/iscsi /run/lock /var
    ln -sf /run /var/run
    ln -sf /run/lock /var/lock
    # iscsid asks who comes to it.
    echo root:x:0:0:root:/:/bin/sh >/etc/passwd
    call_me "$OWN"
    # What is lost meanwhile is waited for; nothing is asked over and over.
    printf '%s\n' 'node.startup = manual' 'node.session.timeo.replacement_timeout = 600' \
        'node.conn[0].timeo.noop_out_interval = 0' 'node.conn[0].timeo.noop_out_timeout = 0' \
        'node.session.initial_login_retry_max = 1' 'node.session.reopen_max = 0' \
        'node.conn[0].timeo.login_timeout = 30' 'node.session.iscsi.InitialR2T = No' \
        'node.session.iscsi.ImmediateData = Yes' >/etc/iscsi/iscsid.conf
    modprobe iscsi_tcp && modprobe sd_mod && iscsid
}
call_me() { echo "InitiatorName=$1" >/etc/iscsi/initiatorname.iscsi; }

# target WORD…: exports the volume over iSCSI: TARGET, ID.
target() {
    palisade export create data/v --iscsi "$PORTAL" --initiator "$OWN" "$SECOND" "$@" \
        || fail "no export"
    known_target
}
known_target() {
    # shellcheck disable=SC2046 # four words
    set -- $(shown '.exports[0] | "\(.iscsi.target) \(.id) \(.iscsi.server) \(.health.state)"')
    TARGET=$1 ID=$2 SERVER=$3
    [ "$4" = ok ] || fail "it is $4: $(of_export .problem)"
}
# A reading of all exports is a moment old.
served_by() { [ "$SERVER" = "$1" ] || fail "it is served by $SERVER"; }

node() { iscsiadm -m node -T "$TARGET" -p "$PORTAL" "$@"; }
set_node() { node -o update -n "$1" -v "$2"; }
# log_in: the volume is DEV.
log_in() {
    node -o new && node --login || fail "not let in"
    wait_for has_device
    DEV=$(of_target)
}
# of_target: the device of the session.
of_target() {
    local device
    for device in /sys/block/sd*; do
        [ -e "$device" ] && echo "/dev/${device##*/}" && return 0
    done
    return 1
}
has_device() { [ -b "$(of_target)" ]; }
log_out() {
    node --logout && node -o delete || fail "not logged out"
    wait_for has_none
}
has_none() { ! of_target; }
# Who asks targets stays the same.
nothing_left() {
    [ -z "$(ls -A $FOLDER | grep -vx asker)" ] && ! ls /dev/ublkb* 2>/dev/null \
        && [ -z "$(ls -d $CONFIG/core/iblock_* $CONFIG/iscsi/iqn* 2>/dev/null)" ] \
        && ! pidof tgtd && [ ! -e /dev/palisade ]
}

# clear_up: leaves nothing of a check behind.
clear_up() {
    local job
    touch enough
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    iscsiadm -m node --logoutall=all || true
    iscsiadm -m node -o delete || true
    call_me "$OWN"
    if ! is_over "$(cat $PID)"; then
        ID=$(of_export '.id // empty')
        [ -z "$ID" ] || palisade export delete "$ID"
    fi
    cd /tmp
    rm -rf /tmp/work
}

# load: as that of here.sh, on DEV.
writes() { awk '{ print $5 }' "/sys/block/${DEV#/dev/}/stat"; }

# LIO serves it where it can; a host sees what it is.
check_made() {
    local about
    target
    served_by lio
    [ "$(of_export .kind)" = iscsi ] || fail "its kind"
    [ -b "$(of_export .device)" ] || fail "its device"
    log_in
    about=/sys/block/${DEV#/dev/}
    [ "$(tr -d ' ' <"$about/device/vendor")" = PALISADE ] || fail "its vendor"
    [ "$(tr -d ' ' <"$about/device/model")" = VOLUME ] || fail "its product"
    grep -qx "naa.6001405$(echo "${TARGET##*:}" | tr -d - | cut -c 1-25)" "$about/device/wwid" \
        || fail "it is $(cat "$about/device/wwid")"
    grep -q "${TARGET##*:}" "$about/device/vpd_pg80" || fail "its serial number"
    [ "$(blockdev --getsize64 "$DEV")" = $((MIB << 20)) ] || fail "its size"
    [ "$(cat "$about/queue/write_cache")" = 'write back' ] || fail "its cache"
    [ "$(cat "$about/queue/discard_max_bytes")" -gt 0 ] || fail "no discard"
    wait_for has_session
    log_out
    says 'already' palisade export create data/v --iscsi 127.0.0.1:3261 --initiator "$OWN" \
        || fail "two targets of one volume"
    unserve
}
has_session() { [ "$(of_export '.iscsi.sessions | join(",")')" = "$OWN" ]; }

# What is written by the host is what is read, with a drive lost and rebuilt meanwhile.
check_verified() {
    local was spare=/dev/shm/drive-4
    [ ! -e /tmp/spare ] || spare=$(cat /tmp/spare)
    target --server "${1:-lio}"
    log_in
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
    log_out
    unserve
}

# Who has no name on the list, or no secret, is not let in.
check_let_in() {
    local server
    printf '%s\n' "$CHAP_SECRET" >/tmp/secret
    for server in lio tgt; do
        target --server $server --chap "$CHAP_USER" --secret-file /tmp/secret
        node -o new
        refused node --login || fail "$server: let in without a secret"
        set_node node.session.auth.authmethod CHAP
        set_node node.session.auth.username "$CHAP_USER"
        set_node node.session.auth.password wrong-secret1
        refused node --login || fail "$server: let in with another secret"
        set_node node.session.auth.password "$CHAP_SECRET"
        node --login || fail "$server: not let in with its secret"
        wait_for has_device
        DEV=$(of_target)
        dd if="$DEV" of=/dev/null bs=4k count=1 iflag=direct || fail "$server: not read"
        # One of those that may, whatever it says it is.
        node --logout
        refused iscsi-inq -i "$OTHER" "iscsi://$CHAP_USER%$CHAP_SECRET@$PORTAL/$TARGET/1" \
            || fail "$server: a stranger is let in"
        iscsi-inq -i "$SECOND" "iscsi://$CHAP_USER%$CHAP_SECRET@$PORTAL/$TARGET/1" \
            || fail "$server: not let in"
        if [ $server = lio ]; then
            iscsi-ls -i "$OTHER" "iscsi://$PORTAL" >seen 2>&1 || true
            refused grep "$TARGET" seen || fail "a stranger sees it"
        fi
        node -o delete
        wait_for has_none
        unserve
    done
}

# The daemon is killed in the middle of it and started again: hosts see nothing of it, where LIO
# serves the target over ublk.
check_killed() {
    local round=0
    target --server lio
    log_in
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
    log_out
    unserve
}

# tgt is killed in the middle of it: it is started again, and hosts go on.
check_server_killed() {
    local round=0 own
    target --server tgt
    log_in
    load
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        own=$(pidof tgtd)
        kill -9 "$own"
        wait_for another_serves "$own"
        goes_on
        echo "round $round: tgtd killed" >&3
    done
    wait_for is_well
    calm
    log_out
    unserve
}
another_serves() { pidof tgtd && [ "$(pidof tgtd)" != "$1" ]; }

# The same of tgt as of LIO.
check_verified_by_tgt() { check_verified tgt; }

# Larger: who is logged in has the size that it had, and the next one the new one.
check_resized() {
    local server
    for server in lio tgt; do
        target --server $server
        log_in
        palisade volume resize data/v --size $((MIB + 12))M || fail "not resized"
        wait_for has_problem 'until'
        log_out
        wait_for is_whole
        log_in
        [ "$(blockdev --getsize64 "$DEV")" = $((MIB + 12 << 20)) ] || fail "$server: its size"
        verified --rw=randrw --bs=64k --size=$((MIB + 12))m --iodepth=16
        log_out
        palisade volume resize data/v --size ${MIB}M --yes || fail "not made smaller"
        wait_for is_whole
        unserve
    done
}
has_problem() { of_export .problem | grep -q "$1"; }
is_whole() { is_well && [ "$(of_export '.problem')" = null ]; }

# The array stops and starts again: hosts wait for it.
check_stopped() {
    target --server "${1:-lio}"
    log_in
    load
    palisade array stop data || fail "not stopped"
    palisade array assemble data || fail "not started"
    wait_for is_well
    goes_on
    calm
    log_out
    unserve
}
check_stopped_with_tgt() { check_stopped tgt; }

# Which tests of libiscsi fail: a line each.
check_tested() {
    local suite all="iscsi-test-cu -i $OWN -I $SECOND --dataloss -n -t"
    target --server lio
    for suite in $(iscsi-test-cu --list | grep -x 'ALL\.[^.]*'); do
        $all "$suite" "iscsi://$PORTAL/$TARGET/1" >said 2>&1 || true
        grep -q 'Run Summary' said || echo "test ${suite#ALL.} ends" >&3
        sed -n 's/.*Suite \(.*\), Test \(.*\) had failures:$/test \1.\2 fails/p' said | tee -a failed >&3
    done
    unserve
}

# `palisade services` is killed at random moments of create and delete, with either server.
check_services_killed() {
    local round=0 server=lio asking
    while [ $round -lt 6 ]; do
        round=$((round + 1))
        ID=$(of_export '.id // empty')
        if [ -z "$ID" ]; then
            [ $server = lio ] && server=tgt || server=lio
            (palisade export create data/v --iscsi "$PORTAL" --initiator "$OWN" "$SECOND" \
                --server $server || true) &
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
    if [ -z "$ID" ]; then
        target
    else
        wait_for is_well
        known_target
    fi
    log_in
    log_out
    unserve
}
