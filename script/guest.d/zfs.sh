# Checks of a pool of ZFS on a volume. To be sourced by script/guest.d/zfs after here.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154
#
# The pool `tank` is on the volume `v`, with SHA-256 as its checksum. What is synced is in the book
# before the power is cut: the file `synced` has a line `NAME SHA-256` for each file that is to be
# there, or `NAME -` for one that is being written. The last line of a name counts.

# The drive with the book, and where it is mounted.
BOOK_SERIAL=palisade-nvme-$((NVME - 1))
BOOK=/book
# The drives that were last in each place: a cut leaves them where they are.
PLACES=$BOOK/places
# The daemon has the machine's drives, and what it keeps outlives a cut.
DRIVES='/dev/nvme?n?'
STATE=$BOOK/state
# MiB of the volume.
MIB=320
POOL=/tank
# How often something is synced before the power may be cut, and the files that there are.
SYNCS=12 FILES=24
# Bytes a second of a drive that is rebuilt while the power is cut.
SLOW=1000000

# need_zfs: the modules, and the book, which is new on a drive that is empty.
need_zfs() {
    local device
    modprobe loop && modprobe fuse && modprobe zfs || return 1
    mkdir -p $BOOK $POOL
    within "$PATIENCE" is_there "$BOOK_SERIAL" || return 1
    device=$(device_of "$BOOK_SERIAL")
    if [ -z "$(blkid "$device")" ]; then mkfs.ext4 -q "$device" || return 1; fi
    mount -t ext4 "$device" $BOOK && mkdir -p $PLACES
}

# clear_up: all that a check leaves but its folder is wanted.
clear_up() {
    cd /tmp || return
    rm -rf /tmp/work
}

# noted LINE…: a line in the book that is there after a cut.
noted() { echo "$*" | dd of=$BOOK/synced oflag=append conv=notrunc,fsync 2>/dev/null; }

# when: in what state the power is cut in this round.
when() {
    case $((ROUND % 3)) in
        1) echo whole ;;
        2) echo degraded ;;
        0) echo rebuilding ;;
    esac
}

# drives: the paths of the array's drives, in order of their places.
drives() {
    local place=0
    while [ $place -lt $((NVME - 1)) ]; do
        device_of "$(serial_at $place)"
        place=$((place + 1))
    done
}

check_made() {
    # shellcheck disable=SC2046 # one word each
    palisade array create data --level "$LEVEL" --drives $(drives) || fail "no array"
    palisade volume create data/v --size ${MIB}M || fail "no volume"
    serve --local
    zpool create -o ashift=12 -o autotrim=on -o cachefile=none -O checksum=sha256 -O atime=off \
        -m $POOL tank $LINK || fail "no pool"
    zpool status tank
    zpool get all tank
    echo "pool: ZFS $(cat /sys/module/zfs/version), Linux $(uname -r), $DEVICE," \
        "blocks of $(blockdev --getss $LINK) bytes, RAID $LEVEL of $((NVME - 1)) drives" >&3
}

# writer: writes files and has them synced, one after the other, for ever: new ones, and parts of
# such that are there. What each is to hold is worked out of memory.
writer() {
    local number=0 name size at
    mkdir -p /tmp/shadow
    while :; do
        number=$((number + 1))
        name=file-$((number * 7 % FILES))
        noted "$name -"
        if [ $((number % 3)) = 0 ] && [ -e /tmp/shadow/$name ]; then
            # A part of it, in the midst of what ZFS has as one record.
            at=$(($(drawn) % 200))
            pattern $((1 + $(drawn) % 70000)) "$ROUND part $number" >/tmp/part
            for file in /tmp/shadow/$name $POOL/$name; do
                dd if=/tmp/part of=$file bs=65536 oflag=seek_bytes seek=$((at * 512)) \
                    conv=notrunc,fsync || return 1
            done
        else
            size=$((1 + $(drawn) * $(drawn) % 1500000))
            pattern $size "$ROUND $number" >/tmp/shadow/$name
            dd if=/tmp/shadow/$name of=$POOL/$name bs=65536 conv=fsync || return 1
        fi
        # shellcheck disable=SC2046 # the first word
        noted "$name" $(sha256sum </tmp/shadow/$name | cut -d ' ' -f 1) || return 1
        echo $number >/tmp/syncs
    done
}
# drawn: a number from 0 to 65535.
drawn() { od -An -tu2 -N 2 /dev/urandom | tr -d ' '; }

# hurried: writes without a sync, and removes, for ever: ZFS writes it when it likes.
hurried() {
    local number=0
    while :; do
        number=$((number + 1))
        pattern $((2 << 20)) "$ROUND bulk $number" >$POOL/bulk-$((number % 6)) || return 1
        [ $((number % 4)) != 0 ] || rm -f $POOL/bulk-$((number / 4 % 6))
    done
}
has_synced() { [ ! -e /tmp/wrong ] && [ "$(cat /tmp/syncs 2>/dev/null || echo 0)" -ge "$1" ]; }

# The power is cut in the midst of writing. Does not come back.
check_cut() {
    local place slot
    echo $ROUND >$BOOK/round
    sync -f $BOOK/round
    (writer || echo "a synced file is not written" >/tmp/wrong) &
    (hurried || echo "a file is not written" >/tmp/wrong) &
    place=$(place)
    if [ "$(when)" != whole ]; then
        wait_for has_synced 3
        slot=$(slot_at $place)
        unplug $place
        wait_for slot_is "$slot" failed
        echo "$slot $place" >$BOOK/lost
        sync -f $BOOK/lost
    fi
    wait_for has_synced $SYNCS
    if [ "$(when)" = rebuilding ]; then
        replaced $SLOW
        wait_for is_rebuilding
    fi
    usleep $(($(drawn) * 15))
    [ ! -e /tmp/wrong ] || fail "$(cat /tmp/wrong)"
    echo "round $ROUND: the power is cut, after $(cat /tmp/syncs) syncs: $(state)" >&3
    qmp set-action '"reboot": "reset"'
    # At once: nothing is synced or unmounted.
    echo b >/proc/sysrq-trigger
    sleep $PATIENCE
    fail "the machine goes on"
}
# place: that of the drive which is lost in this round.
place() { echo $((ROUND % (NVME - 1))); }
slot_at() { shown ".slots[] | select(.serial == \"$(serial_at "$1")\") | .slot"; }
slot_is() { [ "$(shown ".slots[$1].state")" = "$2" ]; }
is_rebuilding() { case $(state) in *rebuild*) ;; *) return 1 ;; esac }
# state: the array's, with its tasks, and how many regions are dirty.
state() {
    shown '[.state, (.tasks[] | "\(.kind) \(.progress * 100 | floor)%"),
        "\(.region_map.dirty_regions) dirty regions"] | join(", ")'
}

# at_most PLACE BYTES: the drive there takes and gives so many a second; 0 for all that it can.
at_most() {
    qmp block_set_io_throttle "\"id\": \"nvme-$1\", \"bps\": $2, \"bps_rd\": 0, \"bps_wr\": 0,
        \"iops\": 0, \"iops_rd\": 0, \"iops_wr\": 0"
}

# replaced [BYTES]: a new drive, as slow as that, is plugged into the place of the one that is lost,
# and is in its slot.
replaced() {
    local slot place serial=palisade-new-$ROUND
    read -r slot place <$BOOK/lost
    plug "$place" "$serial"
    [ $# = 0 ] || at_most "$place" "$1"
    wait_for is_there "$serial"
    wait_for is_listed "$serial"
    palisade array replace data --slot "$slot" --with "$serial" || fail "not replaced"
    rm $BOOK/lost
    sync
}
is_listed() {
    [ -n "$(palisade drive list --json | jq ".drives[] | select(.serial == \"$1\")")" ]
}

# After a cut the array is there again, and so are the volume, its device and the pool.
check_survived() {
    local found files scrubbed
    wait_for has_array
    found=$(state)
    [ ! -e $BOOK/lost ] || array_is degraded || fail "the array is $found"
    if [ "$(when)" = rebuilding ]; then
        is_rebuilding || fail "the rebuild is not taken up: $found"
        at_most "$(place)" 0
    fi
    wait_for is_well
    known
    again_imported
    same_as_in_the_book
    cat $POOL/* >/dev/null || fail "a file is not read"
    clean
    files=$FILES_ARE scrubbed=$SCRUBBED
    if [ -e $BOOK/lost ]; then
        # And while it is rebuilt.
        replaced
        clean
    fi
    palisade array wait data --timeout "$PATIENCE" || fail "the array has tasks: $(state)"
    array_is optimal || fail "the array is $(state)"
    palisade array scrub data --check || fail "no scrub of the array"
    palisade array wait data --timeout "$PATIENCE"
    [ "$(shown .last_scrub.mismatches)" = 0 ] || fail "mismatches: $(shown .last_scrub)"
    same_as_in_the_book
    clean
    echo "round $ROUND: survived, $(when), $found; $files; $scrubbed" >&3
}
again_imported() {
    zpool import -f -d ${LINK%/*} -o cachefile=none tank || fail "the pool is not imported"
}
has_array() { [ -n "$(palisade array show data --json 2>/dev/null)" ]; }

# same_as_in_the_book: all files that were synced hold what they are to hold. What was being written
# is from now on to hold what it holds now. FILES_ARE tells how many there are.
same_as_in_the_book() {
    local name sum count open=0
    awk '{ last[$1] = $2 } END { for (name in last) print name, last[name] }' $BOOK/synced >last
    count=0
    while read -r name sum; do
        if [ "$sum" = - ]; then
            open=$((open + 1))
            [ ! -e $POOL/$name ] || noted "$name" "$(sha256sum <$POOL/$name | cut -d ' ' -f 1)"
            continue
        fi
        [ "$(sha256sum <$POOL/$name | cut -d ' ' -f 1)" = "$sum" ] || fail "$name: other bytes"
        count=$((count + 1))
    done <last
    [ $count -ge 3 ] || fail "only $count files"
    FILES_ARE="$count synced files are right, $open was being written"
}

# clean: a scrub of the pool finds nothing, and nor did anybody before. SCRUBBED: what it says.
clean() {
    zpool scrub -w tank || fail "no scrub"
    zpool status -p tank >status
    cat status
    SCRUBBED=$(scrubbed)
    case $SCRUBBED in 'scrub repaired 0B in '*' with 0 errors') ;; *) fail "$SCRUBBED" ;; esac
    grep -qx 'errors: No known data errors' status || fail "$(grep errors: status)"
    [ "$(counts)" = '0 0 0' ] || fail "reads, writes and checksums that failed: $(counts)"
}
scrubbed() { sed -n 's/^ *scan: \(scrub repaired .*\) on .*/\1/p' status; }
# counts: the sums of the columns READ, WRITE and CKSUM.
counts() {
    awk '$3 $4 $5 ~ /^[0-9]+$/ { for (c = 0; c < 3; c++) sum[c] += $(3 + c) }
        END { print sum[0] + 0, sum[1] + 0, sum[2] + 0 }' status
}

# What ZFS frees the array gives up; and what is spoilt beneath ZFS it tells, and mends where it has
# two copies.
check_told() {
    local before
    before=$(written)
    rm $POOL/bulk-*
    zpool sync tank
    zpool trim -w tank || fail "no trim"
    wait_for is_less "$before"
    echo "trim: $((before >> 20)) MiB of the array were written, now $(($(written) >> 20))" >&3
    zfs create -o copies=2 tank/twice || fail "no file system"
    full_of X $POOL/once
    full_of Y $POOL/twice/twice
    zpool export tank || fail "not exported"
    spoil X
    spoil Y
    again_imported
    zpool scrub -w tank || fail "no scrub"
    zpool status -p -v tank >status
    cat status
    [ "$(counts | cut -d ' ' -f 3)" -gt 0 ] || fail "other bytes, and ZFS says nothing"
    sed '1,/^errors:/d' status | grep -v '^$' | tr -d '\t ' >spoilt
    [ "$(cat spoilt)" = $POOL/once ] || fail "spoilt is not what is told: $(cat spoilt)"
    refused cat $POOL/once >/dev/null || fail "other bytes are read"
    [ "$(tr -d Y <$POOL/twice/twice | wc -c)" = 0 ] || fail "other bytes are read"
    same_as_in_the_book
    echo "spoilt: $(scrubbed); $(cat spoilt) is told, and what has two copies is mended" >&3
}
# full_of LETTER FILE: it has nothing else.
full_of() { tr '\0' "$1" </dev/zero | head -c $((16 << 20)) >"$2"; }
# spoil LETTER: a MiB of the volume that has nothing else gets other bytes.
spoil() {
    local at=4
    while [ $at -lt $((MIB - 4)) ]; do
        if [ "$(dd if=$LINK bs=1M skip=$at count=1 2>/dev/null | tr -d "$1" | wc -c)" = 0 ]; then
            dd if=/dev/urandom of=$LINK bs=1M seek=$at count=1 conv=notrunc,fsync
            return 0
        fi
        at=$((at + 1))
    done
    fail "no MiB has nothing but $1"
}
written() { shown .region_map.written_bytes; }
is_less() { [ "$(written)" -lt "$1" ]; }
