# Functions by which a guest's script has something done at the machine: drives are unplugged and
# plugged in, and warn. To be sourced after lib.sh, in a machine with `--nvme`.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154
#
# A place is a number from 0 to $NVME - 1; at first the drive `palisade-nvme-PLACE` is in it.

# The serial number of the drive that was last in each place: a file for each.
PLACES=/tmp/places

# wait_for COMMAND…: waits until the command is true; ends the check where that takes too long.
wait_for() { within "$PATIENCE" "$@" || fail "not within $PATIENCE s: $*"; }

# qmp_says COMMAND [ARGUMENTS]: has qemu carry out a command of QMP; sets ANSWER to `go RESULT` or
# `no WHY`. The arguments are the inside of a JSON object.
qmp_says() {
    [ -n "${QMP:-}" ] || skip "no machine that does: $1"
    ask qmp "{\"execute\": \"$1\", \"arguments\": {${2:-}}}"
}

# qmp COMMAND [ARGUMENTS]: see above; what cannot be done ends the check. Sets ANSWER.
qmp() {
    qmp_says "$@"
    case $ANSWER in go*) ;; *) fail "$1 ${2:-}: ${ANSWER#no }" ;; esac
}

# serial_at PLACE: the serial number of the drive that is or was last there.
serial_at() { cat "$PLACES/$1" 2>/dev/null || echo "palisade-nvme-$1"; }

# unplug PLACE: takes the drive out. It goes as soon as Linux has let go of it.
unplug() { qmp device_del "\"id\": \"nvme-$1\""; }

# unplug_all PLACE…: takes drives out together: all is asked for before anything is answered.
unplug_all() {
    local place all=''
    for place in "$@"; do
        all="$all@ qmp {\"execute\": \"device_del\", \"arguments\": {\"id\": \"nvme-$place\"}}
"
    done
    [ -n "${QMP:-}" ] || skip "no machine that unplugs drives"
    printf %s "$all" >/dev/hvc0
    for place in "$@"; do
        read -r ANSWER </dev/hvc0
        case $ANSWER in go*) ;; *) fail "place $place: ${ANSWER#no }" ;; esac
    done
}

# is_unplugged PLACE: true once nothing is in it.
is_unplugged() {
    qmp qom-list '"path": "/machine/peripheral"'
    case $ANSWER in *"\"nvme-$1\""*) return 1 ;; esac
}

# plug PLACE [SERIAL]: puts a drive into an empty place: the one that was there last, or the one
# with this serial number, which is new and empty if there was none.
plug() {
    wait_for is_unplugged "$1"
    mkdir -p "$PLACES"
    [ $# = 1 ] || echo "$2" >"$PLACES/$1"
    set -- "$1" "$(serial_at "$1")"
    qmp query-named-block-nodes '"flat": true'
    case $ANSWER in *"\"node-name\": \"$2\""*) ;; *) new_drive "$2" ;; esac
    qmp device_add "\"driver\": \"nvme\", \"id\": \"nvme-$1\", \"bus\": \"place-$1\",
        \"drive\": \"$2\", \"serial\": \"$2\""
}

# new_drive SERIAL: what is behind one more drive.
new_drive() {
    local file="\"driver\": \"file\", \"filename\": \"$NVME_FOLDER/$1\""
    qmp blockdev-create "\"job-id\": \"create\", \"options\": {$file,
        \"size\": $((NVME_MIB * 1048576))}"
    wait_for is_created
    case $ANSWER in *'"error"'*) fail "no new drive: $ANSWER" ;; esac
    qmp job-dismiss '"id": "create"'
    qmp blockdev-add "\"node-name\": \"$1\", $file, \"discard\": \"unmap\",
        \"cache\": {\"no-flush\": true}"
}
is_created() {
    qmp query-jobs
    case $ANSWER in *'"status": "concluded"'*) ;; *) return 1 ;; esac
}

# smart_warning PLACE BITS: sets the critical warning of the drive's SMART log. 1: little spare, 2:
# too hot or cold, 4: not reliable, 8: read only, 16: no backup of its memory.
smart_warning() {
    qmp qom-set "\"path\": \"/machine/peripheral/nvme-$1\",
        \"property\": \"smart_critical_warning\", \"value\": $2"
}

# controller_of SERIAL: Linux's name for the controller of the NVMe drive, such as nvme0.
controller_of() {
    local one serial
    for one in /sys/class/nvme/nvme*; do
        read -r serial <"$one/serial" 2>/dev/null || continue
        [ "$serial" != "$1" ] || echo "${one##*/}"
    done
}

# device_of SERIAL: its block device, such as /dev/nvme0n1.
device_of() {
    local one
    for one in "/sys/class/nvme/$(controller_of "$1")"/nvme*n*; do
        [ ! -b "/dev/${one##*/}" ] || echo "/dev/${one##*/}"
    done
}
is_there() { [ -n "$(controller_of "$1")" ] && [ -n "$(device_of "$1")" ]; }
