# Checks of reads, writes and the other I/O commands. To be sourced by script/guest.d/checks.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# What the shapes of fio write, MiB.
FIO_MIB=${FIO_MIB:-8}

check_fio_random() {
    attach "$NQN"
    verified --rw=randwrite --bs=4k --iodepth=32 --size="${FIO_MIB}m"
}

check_fio_sequential() {
    attach "$NQN"
    verified --rw=write --bs=128k --iodepth=8 --size=$((FIO_MIB * 2))m
}

# From one block to 1 MiB, at any block.
check_fio_mixed_sizes() {
    attach "$NQN"
    verified --rw=randwrite --iodepth=16 --size="${FIO_MIB}m" --ba="$BLOCK" \
        --bssplit="$BLOCK/30:$((BLOCK * 3))/20:4k/15:$((BLOCK * 13))/15:64k/10:256k/5:1m/5"
}

check_fio_trim() {
    attach "$NQN"
    offers 2 || skip "no Dataset Management"
    verified --rw=trimwrite --bs=64k --iodepth=4 --size=$((FIO_MIB / 2))m
}

# Reads and writes mixed, by two jobs in areas of their own, through the page cache in one of them.
check_fio_jobs() {
    attach "$NQN"
    verified --rw=randrw --bs=8k --iodepth=16 --size=$((FIO_MIB / 2))m --numjobs=2 \
        --offset_increment=$((FIO_MIB / 2))m
    verified --direct=0 --rw=randwrite --bs=16k --iodepth=16 --size=$((FIO_MIB / 2))m \
        --end_fsync=1
}

# Requests as large as the controller lets the kernel send, and larger ones.
check_large_io() {
    local queue bytes
    attach "$NQN"
    queue=/sys/block/${DEV##*/}/queue
    cat "$queue/max_hw_sectors_kb"
    cat "$queue/max_hw_sectors_kb" >"$queue/max_sectors_kb"
    pattern 8388608 large >data
    dd if=data of="$DEV" bs=4M oflag=direct conv=notrunc
    echo 3 >/proc/sys/vm/drop_caches
    dd if="$DEV" bs=8M count=1 iflag=direct | cmp - data || fail "other data"
    # The same by one command of nvme-cli's, as large as may be, not more than 1 MiB.
    bytes=$(($(cat "$queue/max_hw_sectors_kb") * 1024))
    [ $bytes -le 1048576 ] || bytes=1048576
    nvme read "$DEV" -s 0 -c $((bytes / BLOCK - 1)) -z $bytes -d read || fail "nvme read"
    cmp -n $bytes read data || fail "nvme read: other data"
}

# nvme-cli's own reads and writes.
check_read_write() {
    attach "$NQN"
    pattern $((BLOCK * 8)) cli >data
    nvme write "$DEV" -s 3 -c 7 -z $((BLOCK * 8)) -d data
    nvme read "$DEV" -s 3 -c 7 -z $((BLOCK * 8)) -d read
    cmp read data || fail "other data"
    # Forced to the drives.
    pattern $((BLOCK * 8)) fua >data
    nvme write "$DEV" -s 3 -c 7 -z $((BLOCK * 8)) -d data --force-unit-access
    same data $((BLOCK * 3)) || fail "other data after a forced write"
}

# around FIRST COUNT COMMAND…: fills three times COUNT blocks, runs the command, which may change
# the COUNT in the middle, and checks that the others are as they were.
around() {
    local first=$1 count=$2
    shift 2
    pattern $((count * 3 * BLOCK)) around >data
    put data $(((first - count) * BLOCK))
    "$@" || return 1
    head -c $((count * BLOCK)) data >before
    tail -c $((count * BLOCK)) data >after
    same before $(((first - count) * BLOCK)) || fail "$*: changed what is before"
    same after $(((first + count) * BLOCK)) || fail "$*: changed what is behind"
}

check_write_zeroes() {
    attach "$NQN"
    offers 3 || skip "no Write Zeroes"
    around 1003 37 nvme write-zeroes "$DEV" -s 1003 -c 36 || fail "nvme write-zeroes"
    is_zero $((1003 * BLOCK)) $((37 * BLOCK)) || fail "no zeros after Write Zeroes"
    around 4096 512 blkdiscard -z -o $((4096 * BLOCK)) -l $((512 * BLOCK)) "$DEV" \
        || fail "blkdiscard -z"
    is_zero $((4096 * BLOCK)) $((512 * BLOCK)) || fail "no zeros after blkdiscard -z"
    around 1003 37 nvme write-zeroes "$DEV" -s 1003 -c 36 --deac || fail "with deallocate"
    is_zero $((1003 * BLOCK)) $((37 * BLOCK)) || fail "no zeros after Write Zeroes, deallocating"
}

# zeros_or FILE BYTE: a discarded area reads as zeros or as before, block by block.
zeros_or() {
    local at=0 size
    size=$(wc -c <"$1")
    same "$1" "$2" && return 0
    is_zero "$2" "$size" && return 0
    get "$2" "$size" >got
    while [ $at -lt "$size" ]; do
        dd if=got of=one bs="$BLOCK" skip=$((at / BLOCK)) count=1 2>/dev/null
        dd if="$1" of=was bs="$BLOCK" skip=$((at / BLOCK)) count=1 2>/dev/null
        cmp -s one was || cmp -s -n "$BLOCK" one /dev/zero || return 1
        at=$((at + BLOCK))
    done
}

check_discard() {
    attach "$NQN"
    offers 2 || skip "no Dataset Management"
    around 8203 300 blkdiscard -o $((8203 * BLOCK)) -l $((300 * BLOCK)) "$DEV" \
        || fail "blkdiscard"
    dd if=data of=middle bs=$((300 * BLOCK)) skip=1 count=1
    zeros_or middle $((8203 * BLOCK)) || fail "neither zeros nor what was there"
    # What is discarded can be written again.
    put middle $((8203 * BLOCK))
    same middle $((8203 * BLOCK)) || fail "other data after writing again"
    blkdiscard "$DEV" || fail "blkdiscard of all of it"
}

# Several ranges in one command; what lies between them stays.
check_dsm() {
    attach "$NQN"
    offers 2 || skip "no Dataset Management"
    pattern $((BLOCK * 64)) dsm >data
    put data 0
    nvme dsm "$DEV" -n "$NSID" -d -b 8,8,4 -s 0,16,40 || fail "nvme dsm"
    dd if=data of=between bs="$BLOCK" skip=8 count=8
    same between $((BLOCK * 8)) || fail "changed blocks 8 to 15"
    dd if=data of=between bs="$BLOCK" skip=24 count=16
    same between $((BLOCK * 24)) || fail "changed blocks 24 to 39"
    dd if=data of=middle bs="$BLOCK" skip=16 count=8
    zeros_or middle $((BLOCK * 16)) || fail "neither zeros nor what was there"
    # Attributes without deallocation are advice.
    nvme dsm "$DEV" -n "$NSID" -r -b 8 -s 0 || fail "advice is refused"
}

check_compare() {
    attach "$NQN"
    offers 0 || skip "no Compare"
    pattern $((BLOCK * 8)) compare >data
    put data 0
    nvme compare "$DEV" -s 0 -c 7 -z $((BLOCK * 8)) -d data || fail "equal data differ"
    printf x | dd of=data bs=1 seek=$((BLOCK * 8 - 1)) conv=notrunc
    says 'compare failure' nvme compare "$DEV" -s 0 -c 7 -z $((BLOCK * 8)) -d data \
        || fail "data with one other byte are no Compare Failure"
}

check_verify() {
    attach "$NQN"
    offers 7 || skip "no Verify"
    nvme verify "$DEV" -s 0 -c 63 || fail "nvme verify"
}

check_flush() {
    attach "$NQN"
    pattern $((BLOCK * 8)) flush >data
    put data 0
    nvme flush "$DEV" -n "$NSID" || fail "nvme flush"
    nvme flush "/dev/$CTRL" -n 4294967295 || echo "no flush of all namespaces"
    same data 0 || fail "other data"
}

# io OPCODE FIRST COUNT [DATA]: one I/O command as it is.
io() {
    nvme io-passthru "$DEV" --opcode="$1" --namespace-id="$NSID" --cdw10=$(($2 & 0xffffffff)) \
        --cdw11=$(($2 >> 32)) --cdw12=$(($3 - 1)) ${4:+--data-len=$(($3 * BLOCK))} \
        ${4:+"$4"} <data
}

# Past the end: LBA Out of Range, and the blocks that are there stay as they are.
check_out_of_range() {
    local blocks first range='lba.*range'
    # Linux's target says other things.
    [ -z "$LOOSE" ] || range=.
    attach "$NQN"
    blocks=$((SIZE / BLOCK))
    pattern $((BLOCK * 16)) range >data
    put data $((SIZE - BLOCK * 16))
    for first in $blocks $((blocks - 4)) $((1 << 40)); do
        says "$range" io 2 "$first" 8 -r || fail "read of 8 blocks at $first of $blocks"
        says "$range" io 1 "$first" 8 -w || fail "write of 8 blocks at $first of $blocks"
        if offers 3; then
            says "$range" io 8 "$first" 8 || fail "Write Zeroes at $first of $blocks"
        fi
        if offers 0; then
            says "$range" io 5 "$first" 8 -w || fail "Compare at $first of $blocks"
        fi
    done
    # A sum that does not fit 64 bits. Linux's own target may read the first blocks then.
    [ -n "$LOOSE" ] || says "$range" nvme io-passthru "$DEV" --opcode=2 --namespace-id="$NSID" \
        --cdw10=0xfffffffe --cdw11=0xffffffff --cdw12=7 --data-len=$((BLOCK * 8)) -r \
        || fail "read of 8 blocks at 2^64 - 2"
    same data $((SIZE - BLOCK * 16)) || fail "changed the last blocks"
    io 2 $((blocks - 1)) 1 -r || fail "the last block cannot be read"
}
