# Checks of Palisade on the NVMe drives of an emulated machine. To be sourced by
# script/guest.d/drives after lib.sh and machine.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

export PALISADE_SOCKET=/tmp/palisade.socket
# What the daemon says, and what was measured.
SAID=/tmp/daemon.log
FIGURES=/tmp/figures

# figure NAME VALUE: tells something that was measured.
figure() { echo "figure $*" >>$FIGURES; }

# start_daemon [LINE…]: starts it, with more lines in its configuration, and waits until it is ready.
# A drive that is back while the daemon still has its former device has another name: nvme1n2.
start_daemon() {
    printf '%s\n' "socket = \"$PALISADE_SOCKET\"" 'drives = ["/dev/nvme?n?"]' 'drive_wait_ms = 0' \
        'state = "/tmp/state"' "$@" >/tmp/palisade.toml
    mkdir -p /tmp/state
    palisade serve --config /tmp/palisade.toml </dev/null >/tmp/daemon.out 2>>$SAID &
    DAEMON=$!
    within "$PATIENCE" grep -qx ready /tmp/daemon.out
}

# stop_daemon: true if it ends well.
stop_daemon() {
    kill "$DAEMON" && wait "$DAEMON"
}

# shown FILTER: what jq makes of the array.
shown() { palisade array show data --json | jq -r "$1"; }
# slot_of SERIAL: the slot of a drive, and slot_is SLOT STATE.
slot_of() { shown ".slots[] | select(.serial == \"$1\") | .slot"; }
slot_is() { [ "$(shown ".slots[$1].state")" = "$2" ]; }
array_is() { [ "$(shown .state)" = "$1" ]; }

# need_no_array: none has a drive.
need_no_array() {
    ! palisade array show data >/dev/null 2>&1 \
        || palisade array delete data --yes || fail "the array cannot be deleted"
}

# need_array: the array on all drives, with a volume that is exported: URI.
need_array() {
    if ! palisade array show data >/dev/null 2>&1; then
        # shellcheck disable=SC2046 # one word each
        palisade array create data --level 5 --drives \
            $(palisade drive list --json | jq -r '.drives[].path') || fail "no array"
        palisade volume create data/v --size 64M || fail "no volume"
        palisade export create data/v --nbd unix:/tmp/v.nbd || fail "no export"
    fi
    URI=$(shown '.exports[] | .uri // empty')
    array_is optimal || fail "the array is $(shown .state)"
}

# over_nbd ARGUMENT…: fio on the volume; all that it writes it verifies.
over_nbd() {
    fio --name=check --ioengine=nbd --uri="$URI" --thread=1 --verify=crc32c --verify_fatal=1 \
        --verify_dump=0 --group_reporting --output-format=terse "$@" || fail "fio $*: status $?"
}

# kept WORD: what stays on the upper half of the volume; `write` or `verify_only`.
kept() {
    case $1 in write) set -- --do_verify=0 ;; *) set -- "--$1" ;; esac
    over_nbd --rw=write --bs=64k --iodepth=4 --offset=32m --size=8m "$@"
}

# listed, by_nvme: path, number, size and block of all drives, each by one program.
listed() {
    palisade drive list --json \
        | jq -r '.drives[] | "\(.path) \(.serial) \(.bytes) \(.block_bytes)"'
}
by_nvme() {
    nvme list -o json | jq -r '.Devices[]
        | "\(.DevicePath) \(.SerialNumber) \(.PhysicalSize) \(.SectorSize)"'
}

check_inventory() {
    local path serial rest
    by_nvme | sort >expected
    [ "$(wc -l <expected)" = "$NVME" ] || fail "$(wc -l <expected) drives, not $NVME"
    listed | sort >found
    diff expected found || fail "other drives than nvme list tells of"
    while read -r path serial rest; do
        [ "$(id_ctrl "$path" '.sn')" = "$serial" ] || fail "$path has another number: $serial"
    done <found
}

# id_ctrl PATH FILTER: what jq makes of what the drive's controller says of itself.
id_ctrl() { nvme id-ctrl "$1" -o json | jq -r "$2" | sed 's/ *$//'; }

check_write_read() {
    need_array
    over_nbd --rw=randwrite --iodepth=16 --size=4m --bssplit=512/10:4k/40:64k/30:256k/20
    kept write
    kept verify_only
}

# has_work: true once the job has been through its part once.
has_work() { [ -e worked ]; }
is_at_work() { kill -0 "$1" 2>/dev/null; }

# shellcheck disable=SC2120 # others give arguments
# work [ARGUMENT…]: writes and verifies by fio until there is a file `enough`.
work() {
    until [ -e enough ]; do
        over_nbd --rw=randwrite --bs=8k --iodepth=16 --size=1m "$@"
        touch worked
    done
}

# A drive goes in the midst of writing: nobody notices but Palisade.
check_unplug_under_load() {
    local slot
    need_array
    kept write
    slot=$(slot_of "$(serial_at 1)")
    work &
    wait_for has_work
    unplug 1
    wait_for slot_is "$slot" failed
    is_at_work $! || fail "nothing was written when the drive went: $(cat /tmp/why)"
    touch enough
    wait $! || fail "the host saw it: $(cat /tmp/why)"
    array_is degraded || fail "the array is $(shown .state)"
    kept verify_only
    make_whole 1 "$slot"
    kept verify_only
}

# is_listed SERIAL: true once the daemon knows the drive where the kernel has it.
is_listed() {
    local path
    path=$(device_of "$1")
    [ -n "$path" ] && [ -n "$(palisade drive list --json \
        | jq ".drives[] | select(.serial == \"$1\" and .path == \"$path\")")" ]
}

# make_whole PLACE SLOT: a new drive in the place, and in the array.
make_whole() {
    local serial
    serial=palisade-new-$(($(cat /tmp/new 2>/dev/null || echo 0) + 1))
    echo "${serial##*-}" >/tmp/new
    plug "$1" "$serial"
    wait_for is_there "$serial"
    wait_for is_listed "$serial"
    fill "$2" "$serial"
    palisade array scrub data --check || fail "no scrub"
    palisade array wait data --timeout "$PATIENCE"
    [ "$(shown .last_scrub.mismatches)" = 0 ] || fail "mismatches: $(shown .last_scrub)"
}

# fill SLOT SERIAL: the drive is put into the slot, and the array is whole.
fill() {
    palisade array replace data --slot "$1" --with "$2" || fail "$2 cannot be put into slot $1"
    palisade array wait data --timeout "$PATIENCE" || fail "not rebuilt: $(shown .tasks)"
    array_is optimal || fail "the array is $(shown .state)"
    [ "$(slot_of "$2")" = "$1" ] || fail "another drive is in slot $1"
}

# drive SERIAL FILTER: what jq makes of a drive, and of what is known of it as a device.
drive() { palisade drive show "$(device_of "$1")" --json | jq -r "$2"; }

# A SMART log of nvme-cli's in the words of Palisade's. Temperatures of the former are Kelvin, its
# large numbers text.
SMART='{
    critical_warning, celsius: (.temperature - 273),
    available_spare_percent: .avail_spare, spare_threshold_percent: .spare_thresh,
    percentage_used: .percent_used,
    read_bytes: ((.data_units_read | tonumber) * 512000),
    written_bytes: ((.data_units_written | tonumber) * 512000),
    read_commands: (.host_read_commands | tonumber),
    write_commands: (.host_write_commands | tonumber),
    busy_minutes: (.controller_busy_time | tonumber),
    power_cycles: (.power_cycles | tonumber), power_on_hours: (.power_on_hours | tonumber),
    unsafe_shutdowns: (.unsafe_shutdowns | tonumber), media_errors: (.media_errors | tonumber),
    error_log_entries: (.num_err_log_entries | tonumber),
    warning_minutes: .warning_temp_time, critical_minutes: .critical_comp_time,
    sensors_celsius: [.temperature_sensor_1, .temperature_sensor_2, .temperature_sensor_3,
        .temperature_sensor_4, .temperature_sensor_5, .temperature_sensor_6,
        .temperature_sensor_7, .temperature_sensor_8 | values - 273]
}'
# What a controller says of itself, the same way. Power is in steps of 10 or of 0.1 mW.
DEVICE='{
    firmware: (.fr | sub(" *$"; "")), warning_celsius: (.wctemp - 273),
    critical_celsius: (.cctemp - 273),
    states: [.psds[:.npss + 1][] | .max_power * (if .flags % 2 == 1 then 0.1 else 10 end)]
}'

# is_told SERIAL: true if Palisade tells of the drive what nvme-cli does; leaves both in files.
is_told() {
    local path
    path=$(device_of "$1")
    { nvme smart-log "$path" -o json | jq -S "$SMART"; nvme id-ctrl "$path" -o json | jq -S "$DEVICE"; } \
        >expected
    palisade drive show "$path" --json >shown
    { jq -S '.hardware.smart' shown; jq -S '.hardware | {firmware, warning_celsius,
        critical_celsius, states: [.power.states[].max_milliwatts]}' shown; } >found
    cmp -s expected found
}

# Palisade may have asked before something was read or written; it asks again.
check_smart() {
    local place=0
    need_array
    while [ "$place" -lt "$NVME" ]; do
        if ! within $PATIENCE is_told "$(serial_at $place)"; then
            diff expected found
            fail "other things of $(serial_at $place) than nvme-cli tells"
        fi
        [ "$(jq -r .hardware.transport shown)" = pcie ] || fail "it is not on PCI Express"
        [ "$(jq -r .hardware.controller shown)" = "$(controller_of "$(serial_at $place)")" ] \
            || fail "another controller than that of $(serial_at $place)"
        place=$((place + 1))
    done
}

# alerts PATH: the gravity of each alert about a drive.
alerts() { palisade alert list --json | jq -r ".alerts[] | select(.name == \"$1\") | .severity"; }
has_alert() { [ -n "$(alerts "$1")" ]; }
has_no_alert() { [ -z "$(alerts "$1")" ]; }
health_is() { [ "$(drive "$1" .hardware.health)" = "$2" ]; }

# The drive says that it is not reliable (bit 2), and then that it is.
check_smart_warning() {
    local serial path
    serial=$(serial_at 0)
    path=$(device_of "$serial")
    wait_for has_no_alert "$path"
    wait_for health_is "$serial" ok
    smart_warning 0 4
    within $PATIENCE has_alert "$path" || fail "no alert"
    [ "$(alerts "$path")" = critical ] || fail "an alert of another gravity"
    [ "$(drive "$serial" .hardware.smart.critical_warning)" = 4 ] || fail "other bits"
    wait_for health_is "$serial" critical
    [ "$(drive "$serial" '.hardware.reasons | length')" = 1 ] || fail "not one reason"
    smart_warning 0 0
    within $PATIENCE has_no_alert "$path" || fail "the alert stays"
    wait_for health_is "$serial" ok
}

# The emulated drive has one power state, and refuses to be told.
check_power() {
    local path
    path=$(device_of "$(serial_at 0)")
    palisade drive power "$path"
    [ "$(drive "$(serial_at 0)" .hardware.power.state)" = 0 ] || fail "another state than 0"
    says 'not changeable' palisade drive power "$path" --state 0 || fail "not in the drive's words"
}

# stamp: the milliseconds since the start, without another program.
STAMP='read -r up _ </proc/uptime; up=${up%.*}${up#*.}0'
stamp() { eval "$STAMP"; }

# stamped: each line behind its moment.
stamped() {
    local line up
    while read -r line; do
        stamp
        echo "$up $line"
    done
}

# watch: begins to note the kernel's events in the file `uevents`, and Palisade's in `events`; both
# are known to be noted when this returns. What prints the former keeps lines back, so it starts a
# program for each.
watch() {
    printf '#!/bin/sh\n%s\necho "$up $ACTION@$DEVPATH" >>uevents\n' "$STAMP" >note
    chmod +x note
    touch uevents
    uevent ./note &
    palisade event watch | stamped >events &
    wait_for is_noted
}
is_noted() {
    echo change >/sys/class/mem/null/uevent
    grep -q 'change@/devices/virtual/mem/null$' uevents || return 1
    # Something that Palisade tells of.
    palisade volume create data/noted --size 1M && palisade volume delete data/noted --yes
    grep -q noted events
}

# first FILE PATTERN: the moment of the first line of a file that has this, or nothing.
first() { sed -n "/$2/{s/ .*//p;q}" "$1"; }
is_in() { [ -n "$(first "$@")" ]; }

# A drive goes while nobody reads or writes: Palisade says so, and takes it out.
check_unplug_idle() {
    local path slot gone
    need_array
    path=$(device_of "$(serial_at 2)")
    slot=$(slot_of "$(serial_at 2)")
    watch
    # The first of several that tell of it.
    gone="remove@.*\\/nvme\\/$(controller_of "$(serial_at 2)")\\/"
    unplug 2
    wait_for is_in uevents "$gone"
    wait_for is_in events "\\/dev\\/${path##*/}"
    figure unplug-ms $(($(first events "\\/dev\\/${path##*/}") - $(first uevents "$gone")))
    cat events
    # An event is told before what it tells is shown.
    wait_for slot_is "$slot" failed
    array_is degraded || fail "the array is $(shown .state)"
    make_whole 2 "$slot"
}

# state_of SERIAL: the slot's state of a drive, whatever the drive's name is.
state_of() { shown ".slots[] | select(.serial == \"$1\") | .state"; }
# is_held SERIAL PATH: true while the array counts on a drive that is gone, and an alert says so.
is_held() { [ "$(state_of "$1")" = in-sync ] && [ "$(alerts "$2")" = critical ]; }

is_short() { [ "$(shown '[.slots[] | select(.state == "failed")] | length')" != 0 ]; }
are_held() { is_held "$1" "$2" && is_held "$3" "$4"; }

# is_at_rest: true once the engine has no more to do for what was written, and has asked nothing of
# the drives for longer than it puts anything off.
is_at_rest() {
    local asked
    asked=$(shown '[.region_map.dirty_regions, .drive_io]')
    if [ "$(shown .region_map.dirty_regions)" != 0 ] || [ "$asked" != "$(cat asked 2>/dev/null)" ]; then
        echo "$asked" >asked
        now_ms >since
        return 1
    fi
    [ "$(now_ms)" -gt $(($(cat since) + 10000)) ]
}

# is_complete: true once the daemon knows where each drive is.
is_complete() { [ "$(shown '[.slots[] | select(.state == "missing")] | length')" = 0 ]; }

# are_away SERIAL…: true once the kernel has let go of all of these.
are_away() {
    local serial
    for serial in "$@"; do
        [ -z "$(controller_of "$serial")" ] || return 1
    done
}

# The cable of an enclosure: more drives go at once than the array can spare. None is failed, until
# a request needs one, the engine's own included; all that was kept is there when they are back.
#
# The daemon stands still while they go: for it they go together, however long the machine takes.
check_cable() {
    local one two first second slot
    need_array
    kept write
    wait_for is_at_rest
    one=$(serial_at 1) two=$(serial_at 3)
    first=$(device_of "$one") second=$(device_of "$two")
    kill -STOP "$DAEMON"
    unplug_all 1 3
    within "$PATIENCE" are_away "$one" "$two" || { kill -CONT "$DAEMON"; fail "they did not go"; }
    kill -CONT "$DAEMON"
    within "$PATIENCE" are_held "$one" "$first" "$two" "$second" \
        || fail "not held: $(shown .slots) $(palisade alert list) $(ls /dev/nvme*n1)"
    array_is optimal || fail "the array is $(shown .state)"
    palisade status | grep 'none was failed' || fail "not told: $(palisade status)"
    # What its drives can't give nobody gets.
    refused fio --name=check --ioengine=nbd --uri="$URI" --thread=1 --rw=read --bs=64k \
        --offset=32m --size=8m || fail "read without two drives"
    # A drive is out now, of which the others would have told what it held, were they there.
    wait_for is_short
    plug 1
    plug 3
    wait_for is_there "$one"
    wait_for is_there "$two"
    palisade array stop data || fail "it cannot be stopped"
    wait_for is_complete
    palisade array assemble data || fail "it cannot be assembled"
    kept verify_only
    slot=$(shown '.slots[] | select(.state == "failed") | .slot')
    [ "$(echo "$slot" | wc -w)" = 1 ] || fail "not one drive is failed: $(shown .slots)"
    fill "$slot" "$(shown ".slots[$slot].serial")"
    kept verify_only
}
