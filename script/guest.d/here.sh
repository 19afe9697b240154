# The daemon and `palisade services` in a guest, and a volume of theirs that the guest itself uses. To be
# sourced after lib.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

export PALISADE_SOCKET=/tmp/palisade.socket
# What the daemon and `palisade services` say.
SAID=/tmp/daemon.log
FOLDER=/tmp/services
# Where the daemon looks for drives, and what it keeps.
DRIVES='/dev/shm/drive-?'
STATE=/tmp/state
# The volume's link, and MiB of it and of a drive.
LINK=/dev/palisade/data/v
DEV=$LINK
MIB=64
DRIVE_MIB=128
# Numbers of the processes, kept in files: each check has a shell of its own.
PID=/tmp/daemon.pid
SERVICES_PID=/tmp/services.pid

# start_daemon CORES: starts it with so many data cores, and waits until it is ready.
start_daemon() {
    printf '%s\n' "socket = \"$PALISADE_SOCKET\"" "drives = [\"$DRIVES\"]" \
        'drive_deadline_ms = 600000' "state = \"$STATE\"" "services = \"$FOLDER\"" \
        "cores = $1" >/tmp/palisade.toml
    mkdir -p $STATE
    palisade serve --config /tmp/palisade.toml </dev/null >/tmp/daemon.out 2>>$SAID &
    echo $! >$PID
    within "$PATIENCE" grep -qx ready /tmp/daemon.out
}

start_services() {
    palisade services --config /tmp/palisade.toml </dev/null >/tmp/services.out 2>>$SAID &
    echo $! >$SERVICES_PID
    within "$PATIENCE" grep -qx ready /tmp/services.out
}

# ended FILE SIGNAL: sends the process a signal, and waits until it is gone.
ended() {
    local own
    own=$(cat "$1")
    kill "-$2" "$own"
    within "$PATIENCE" is_over "$own"
}
# A process whose parent has not asked is a zombie.
is_over() { [ ! -d "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }

# again SIGNAL [CORES]: the daemon is ended and started.
again() {
    ended $PID "$1" || fail "the daemon does not end"
    start_daemon "${2:-2}" || fail "the daemon does not start"
}

shown() { palisade array show data --json | jq -r "$1"; }
array_is() { [ "$(shown .state)" = "$1" ]; }
# of_export FILTER: what jq makes of the export that is there.
of_export() { shown ".exports[0]$1"; }
is_well() { [ "$(of_export .health.state)" = ok ]; }
wait_for() { within "$PATIENCE" "$@" || fail "not within $PATIENCE s: $*"; }

need_array() {
    local drives='' one
    for one in 0 1 2 3 4; do
        truncate -s ${DRIVE_MIB}M "/dev/shm/drive-$one"
        drives="$drives /dev/shm/drive-$one"
    done
    start_daemon 2 && start_services || return 1
    # shellcheck disable=SC2086 # one word each
    palisade array create data --level 5 --drives ${drives% *} \
        && palisade volume create data/v --size ${MIB}M
}

# serve [HOW]: exports the volume, by --ublk unless another way is said: DEVICE, ID.
serve() {
    palisade export create data/v "${1:---ublk}" || fail "no export"
    known
}
known() {
    # Where others compute, each question takes seconds.
    # shellcheck disable=SC2046 # three words
    set -- $(shown '.exports[0] | "\(.device) \(.id) \(.health.state)"')
    DEVICE=$1 ID=$2
    [ "$3" = ok ] || fail "it is $3"
    leads_there || fail "$LINK does not lead to $DEVICE"
}
leads_there() { [ -b "$DEVICE" ] && [ "$(readlink $LINK)" = "$DEVICE" ]; }
# unserve: deletes the export; nothing of it is left.
unserve() {
    palisade export delete "$ID" || fail "it is not deleted"
    wait_for nothing_left
}
nothing_left() {
    [ ! -e /dev/palisade ] && [ -z "$(ls -A $FOLDER)" ] && ! ls /dev/ublkb* /dev/ublkc* 2>/dev/null
}

# clear_up: leaves nothing of a check behind.
clear_up() {
    local job
    touch enough
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    grep -q ' /mnt ' /proc/mounts && umount /mnt
    if ! is_over "$(cat $PID)"; then
        ID=$(of_export '.id // empty')
        [ -z "$ID" ] || palisade export delete "$ID"
    fi
    cd /tmp
    rm -rf /tmp/work
}

# load: writes and verifies in the background, again and again, until `enough` is there. What goes
# wrong leaves `wrong`. `calm` waits for its end.
load() {
    rm -f enough wrong
    (
        until [ -e enough ]; do
            verified --rw=randwrite --bsrange=4k-64k --size=16m --iodepth=16 || touch wrong
            [ ! -e wrong ] || exit 1
        done
    ) &
    LOAD=$!
    goes_on
}
calm() {
    touch enough
    wait "$LOAD" || fail "what was written came to harm: $(cat /tmp/why)"
}
# writes: how many were carried out.
writes() { awk '{ print $5 }' "/sys/block/${DEVICE#/dev/}/stat"; }
# goes_on: waits until more are.
goes_on() {
    local before
    before=$(writes)
    wait_for has_more "$before"
}
has_more() { [ -e wrong ] || [ "$(writes)" -gt $(($1 + 20)) ]; }
