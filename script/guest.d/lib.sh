# Functions that the guest's checks share: run a check, connect, look at what is there.
# To be sourced by a POSIX shell in the guest. The target is at $ADDR and $PORT.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# Who we say we are.
HOST=${HOST:-nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555}
HOST_ID=11111111-2222-4333-8444-555555555555
# Somebody else.
STRANGER=nqn.2014-08.org.nvmexpress:uuid:99999999-2222-4333-8444-555555555555
STRANGER_ID=99999999-2222-4333-8444-555555555555
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery
# Seconds to wait for anything that is to come; a machine that is busy may take very long.
PATIENCE=1200
failed=0

# fail WHY…: ends the check that it is called in.
fail() {
    echo "$*" >/tmp/why
    exit 1
}

# skip WHY…: ends the check that it is called in; nothing was tested.
skip() {
    echo "$*" >/tmp/why
    exit 77
}

# died: true if a thread of the kernel has died in io_uring, since the check began. Linux 6.12 may,
# where a process is killed that serves a ublk device: docs/services.md, "Kernels".
died() { dmesg | grep -q 'RIP: .*io_fallback_req_func'; }

# perished NAME: ends all, as the kernel has died in this check.
perished() {
    dmesg | grep -A 3 'BUG: ' | sed 's/^/  > /'
    echo "DIED $1"
    exit 4
}

# now_ms: milliseconds since the start.
now_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }

# check NAME: runs check_NAME in a folder of its own, /tmp/work, and prints `ok NAME SECONDS`,
# `skipped NAME: WHY` or `FAILED NAME: WHY` with the end of what it said and of the kernel's log. Each
# begins and ends disconnected. Where the kernel has died meanwhile, it says `DIED NAME`, and all ends
# with status 4: nothing is cleared up then, as that might wait for ever.
check() {
    local rc start log=/tmp/check.log
    [ -z "$ONLY" ] || case ",$ONLY," in *",$1,"*) ;; *) return 0 ;; esac
    start=$(now_ms)
    rm -f /tmp/why
    died && perished "$1"
    dmesg -c >/dev/null
    # Not in a condition: the first command that fails ends a check.
    set +e
    (set -eu; trap 'died || clear_up' EXIT; mkdir /tmp/work; cd /tmp/work; "check_$1") >$log 2>&1 </dev/null
    rc=$?
    ! died || perished "$1"
    case $rc in
        0) echo "ok $1 $(awk "BEGIN { print ($(now_ms) - $start) / 1000 }")" ;;
        77) echo "skipped $1: $(cat /tmp/why)" ;;
        *)
            failed=$((failed + 1))
            echo "FAILED $1: $(cat /tmp/why 2>/dev/null || echo "status $rc, see below")"
            tail -n 20 $log | sed 's/^/  | /'
            dmesg | tail -n 10 | sed 's/^/  > /'
            ;;
    esac
}

# clear_up: leaves nothing of a check behind.
clear_up() {
    local job
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    grep -q ' /mnt ' /proc/mounts && umount /mnt
    nvme disconnect-all
    cd /tmp
    rm -rf /tmp/work
}

# within SECONDS COMMAND…: waits until the command is true; no longer than the kernel lives.
within() {
    local end=$(($(now_ms) + $1 * 1000)) looks=0
    shift
    until "$@"; do
        [ "$(now_ms)" -lt $end ] || return 1
        looks=$((looks + 1))
        [ $((looks % 100)) != 0 ] || ! died || return 1
        usleep 50000
    done
}

# refused COMMAND…: true if the command fails.
refused() {
    local rc=0
    "$@" || rc=$?
    [ $rc != 0 ]
}

# ask WORD…: writes an event for outside, and sets ANSWER to what is said of it.
ask() {
    # In one line, whatever the words hold.
    printf '@ %s\n' "$(printf %s "$*" | tr '\n' ' ')" >/dev/hvc0
    read -r ANSWER </dev/hvc0
}

# event NAME ARGUMENT…: asks whoever watches outside to do something and waits until it is done.
event() {
    if [ -n "${ACT:-}" ]; then
        "$ACT" "$@" || skip "nobody here to do: $*"
        return 0
    fi
    [ -n "${EVENTS:-}" ] || skip "nobody outside to do: $*"
    ask "$@"
    case $ANSWER in
        go*) ;;
        no*) skip "${ANSWER#no }" ;;
        *) fail "asked for $*, was answered: $ANSWER" ;;
    esac
}

# discover ARGUMENT…: as nvme discover of our target.
discover() { nvme discover -t tcp -a "$ADDR" -s "$PORT" -q "$HOST" -I "$HOST_ID" "$@"; }

# connect NQN ARGUMENT…: connects and sets CTRL to the controller, such as nvme0. It is lost only
# after ten minutes; every two seconds it tries again.
connect() {
    local nqn=$1 before
    shift
    before=$(controllers "$nqn")
    nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$nqn" -q "$HOST" -I "$HOST_ID" \
        --reconnect-delay=2 --ctrl-loss-tmo=600 "$@" || return 1
    for CTRL in $(controllers "$nqn"); do
        case " $before " in *" $CTRL "*) ;; *) return 0 ;; esac
    done
    return 1
}

# controllers NQN: the controllers of a subsystem, on a line.
controllers() {
    local one
    for one in /sys/class/nvme/nvme*; do
        # It may go while we look.
        [ "$(cat "$one/subsysnqn" 2>/dev/null)" != "$1" ] || printf '%s ' "${one##*/}"
    done
}

# blocks NQN: the block devices of a subsystem, without those of single paths.
blocks() {
    local one name
    for one in /sys/block/nvme*; do
        name=${one##*/}
        case ${name#nvme} in *c*) continue ;; esac
        [ "$(cat "$one/device/subsysnqn" 2>/dev/null)" != "$1" ] || printf '%s\n' "$name"
    done
}

has_block() { [ -n "$(blocks "$1")" ] && [ -b "/dev/$(blocks "$1" | head -n 1)" ]; }
is_live() { [ "$(cat "/sys/class/nvme/$1/state" 2>/dev/null)" = live ]; }
is_gone() { [ ! -e "/sys/class/nvme/$1" ]; }
has_no_block() { [ -z "$(blocks "$1")" ]; }

# attach NQN ARGUMENT…: connects and waits for the first namespace: CTRL, DEV, NSID, BLOCK (bytes).
attach() {
    connect "$@" || fail "cannot connect to $1"
    within "$PATIENCE" has_block "$1" || fail "no namespace of $1 came"
    DEV=/dev/$(blocks "$1" | head -n 1)
    NSID=$(nvme get-ns-id "$DEV" | sed 's/.*://')
    BLOCK=$(blockdev --getss "$DEV")
    SIZE=$(blockdev --getsize64 "$DEV")
}

# field NAME: the value in `NAME : VALUE` lines of nvme, without blanks at its ends.
field() {
    awk -v key="$1" '
        { at = index($0, ":"); name = substr($0, 1, at - 1); gsub(/[ \t]+$/, "", name) }
        at && name == key { value = substr($0, at + 1); gsub(/^[ \t]+|[ \t]+$/, "", value)
            print value; exit }'
}

# ctrl_field NAME: a field of what the controller says of itself.
ctrl_field() { nvme id-ctrl "/dev/$CTRL" | field "$1"; }

# offers BIT: true if the controller has this optional command (a bit of ONCS).
offers() {
    [ "${OFFERED%% *}" = "$CTRL" ] || OFFERED="$CTRL $(ctrl_field oncs)"
    [ $((${OFFERED#* } >> $1 & 1)) = 1 ]
}
OFFERED=

# pattern BYTES SEED: bytes that no other seed gives, quickly made: numbers, counted from one that
# follows from the seed.
pattern() {
    local first
    first=$((0x$(printf %s "$2" | sha256sum | cut -c 1-8) * 1000000 + 10000000))
    seq $first $((first + $1 / 8)) | head -c "$1"
}

# unit LENGTH: the largest request, at most 128 KiB, that this is whole multiples of. One request at
# a time is on the way, and each takes an emulated machine about as long, whatever its size.
unit() {
    local unit=131072
    while [ $(($1 % unit)) != 0 ]; do unit=$((unit / 2)); done
    echo $unit
}

# put FILE BYTE, get BYTE LENGTH: straight to and from the device, whole blocks.
put() {
    dd if="$1" of="$DEV" bs="$(unit "$(wc -c <"$1")")" seek="$2" oflag=direct,seek_bytes \
        conv=notrunc,fsync
}
get() {
    local bytes
    bytes=$(unit "$2")
    dd if="$DEV" bs="$bytes" skip="$1" count=$(($2 / bytes)) iflag=direct,skip_bytes
}

# is_zero BYTE LENGTH: true if the device reads as zeros there.
is_zero() { get "$1" "$2" | cmp -n "$2" - /dev/zero; }

# same FILE BYTE: true if the device reads there as the file.
same() { get "$2" "$(wc -c <"$1")" | cmp - "$1"; }

# says TEXT COMMAND…: true if the command fails and says this text, in whatever case.
says() {
    local text=$1 rc=0
    shift
    "$@" >said 2>&1 || rc=$?
    cat said
    [ $rc != 0 ] && tr 'A-Z_' 'a-z ' <said | grep -q "$text"
}

# second NQN: one more controller of the same host at the same address. Past nvme-cli, whose 2.3 does
# not tell the kernel that it is meant.
second() {
    printf %s "nqn=$1,transport=tcp,traddr=$ADDR,trsvcid=$PORT,hostnqn=$HOST,hostid=$HOST_ID" \
        ",duplicate_connect,reconnect_delay=2,ctrl_loss_tmo=600" >/dev/nvme-fabrics
}

# verified ARGUMENT…: writes with fio and verifies all of it.
verified() {
    fio --name=check --filename="$DEV" --direct=1 --ioengine=libaio --thread=1 \
        --verify=crc32c --verify_fatal=1 --verify_dump=0 --group_reporting --output-format=terse \
        --allow_file_create=0 --fallocate=none "$@" || fail "fio $*: status $?"
}

# verified_by_cache: the same through the page cache, of which nothing is left in between.
verified_by_cache() {
    cached --do_verify=0 --end_fsync=1
    echo 3 >/proc/sys/vm/drop_caches
    cached --verify_only=1
}
cached() {
    fio --name=check --filename="$DEV" --ioengine=libaio --thread=1 --rw=randwrite \
        --bsrange=4k-1m --size=48m --iodepth=16 --verify=crc32c --verify_dump=0 \
        --allow_file_create=0 --fallocate=none --output-format=terse "$@" || fail "fio $*"
}
