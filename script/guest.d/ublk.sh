# Checks of volumes as ublk devices. To be sourced by script/guest.d/ublk after here.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# The device has what the volume has, and does what it is asked for.
check_made() {
    local queue
    serve
    set -- "$(of_export '| "\(.kind) \(.link)"')"
    [ "$1" = "ublk $LINK" ] || fail "it is $1"
    queue=/sys/block/${DEVICE#/dev/}/queue
    [ "$(blockdev --getsize64 $DEV)" = $((MIB << 20)) ] || fail "its size"
    [ "$(cat "$queue/logical_block_size")" = 512 ] || fail "its block"
    [ "$(cat "$queue/write_cache")" = 'write back' ] || fail "its cache"
    [ "$(cat "$queue/fua")" = 1 ] || fail "no FUA"
    [ "$(cat "$queue/discard_granularity")" = $((3 << 20)) ] || fail "what it discards"
    [ "$(cat "$queue/optimal_io_size")" -gt 4096 ] || fail "what it takes best"
    says 'already' palisade export create data/v --local || fail "two devices of one volume"
    unserve
    serve --local
    [ "$(of_export .kind)" = ublk ] || fail "--local is of kind $(of_export .kind)"
    unserve
}

check_verified() {
    serve
    verified --rw=randrw --bsrange=4k-1m --size=48m --iodepth=16
    verified_by_cache
    unserve
}

# Bands are given up, and what is to be zero is.
check_discarded() {
    local all
    serve
    dd if=/dev/urandom of=$DEV bs=1M count=48 oflag=direct conv=notrunc || fail "not written"
    wait_for is_clean
    all=$(shown .region_map.written_bytes)
    blkdiscard --offset $((3 << 20)) --length $((30 << 20)) $DEV || fail "not discarded"
    wait_for has_given_up $((all - (30 << 20)))
    is_zero $((3 << 20)) $((30 << 20)) || fail "what was discarded is not zero"
    blkdiscard --zeroout --offset 4096 --length 20480 $DEV || fail "not zeroed"
    is_zero 4096 20480 || fail "what was zeroed is not zero"
    unserve
}
is_clean() { [ "$(shown '[.region_map.dirty_regions, .array_state] | .[0]')" = 0 ]; }
has_given_up() { [ "$(shown .region_map.written_bytes)" -le "$1" ]; }

# File systems, with a drive lost and rebuilt meanwhile.
check_files() {
    local kind sum was spare=/dev/shm/drive-4
    serve
    for kind in ext4 xfs; do
        case $kind in
            ext4) mkfs.ext4 -q -F $DEV ;;
            # What is smaller than 300 MB is for tests only, it says.
            xfs) mkfs.xfs -q -f --unsupported $DEV ;;
        esac || fail "no $kind"
        mount -t $kind $DEV /mnt || fail "not mounted"
        pattern $((8 << 20)) "$kind" >/mnt/one
        sync
        was=$(shown '.slots[1].drive')
        palisade array fail data --drive "$was" || fail "not failed"
        says 'in use' palisade export delete "$ID" || fail "deleted under a file system"
        says 'in use' palisade array stop data || fail "stopped under a file system"
        cp /mnt/one /mnt/two
        sum=$(sha256sum </mnt/one)
        umount /mnt
        echo 3 >/proc/sys/vm/drop_caches
        case $kind in
            ext4) e2fsck -f -n $DEV ;;
            xfs) xfs_repair -n $DEV ;;
        esac || fail "$kind has mistakes"
        mount -t $kind $DEV /mnt
        [ "$(sha256sum </mnt/one)" = "$sum" ] && cmp /mnt/one /mnt/two || fail "other bytes"
        umount /mnt
        # There is one more than the array needs.
        palisade array replace data --slot 1 --with "$spare" --overwrite "$spare" --yes \
            || fail "not replaced"
        spare=$was
        wait_for array_is optimal
    done
    unserve
}

# same_device: the export has the device and the link that it had, and is well.
same_device() {
    local had=$DEVICE
    wait_for is_well
    known
    [ "$DEVICE" = "$had" ] || fail "it was $had, and is $DEVICE"
}

# The daemon is killed in the middle of it and started again: who writes sees nothing of it.
check_killed() {
    local round=0
    serve
    load
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        again 9
        goes_on
        leads_there || fail "$LINK does not lead to $DEVICE"
        echo "round $round: killed" >&3
        usleep $((round * 37 % 10 * 100000))
    done
    same_device
    calm
    unserve
}

# It is stopped as it should be, under load, and has more or fewer data cores afterwards.
check_restarted() {
    local cores
    serve
    load
    for cores in 1 2; do
        again TERM $cores
        goes_on
        leads_there || fail "$LINK does not lead to $DEVICE"
    done
    same_device
    calm
    unserve
}

# `palisade services` goes and comes, and both do, in either order.
check_both_gone() {
    local starting
    serve
    load
    ended $SERVICES_PID 9
    goes_on
    start_services
    same_device
    ended $SERVICES_PID 9
    again 9
    usleep 500000
    start_services
    goes_on
    same_device
    ended $PID 9
    ended $SERVICES_PID 9
    # Both at once.
    start_services &
    starting=$!
    start_daemon 2
    wait "$starting"
    goes_on
    same_device
    calm
    unserve
}

# A benchmark has devices of its own, and none afterwards.
check_swept() {
    local before
    before=$(ls -d /dev/ublkb* 2>/dev/null || true)
    palisade bench sweep --memory 32M --count 5 --through ublk --profile quick --seconds 0.2 \
        --instances 1 --block 4K --jobs 1 --depth 4 --json >report || fail "it failed"
    jq -e '[.results[] | select(.name == "remote-4k-random-read-1x4"
        or .name == "remote-4k-random-write-1x4")] | length == 2 and all(.value > 0)' report \
        || fail "no results: $(jq -c '[.results[].name]' report)"
    [ "$(ls -d /dev/ublkb* 2>/dev/null || true)" = "$before" ] || fail "a device is left"
}

# A volume's new size is the device's once nobody uses that.
check_resized() {
    serve
    dd if=/dev/urandom of=one bs=1M count=8
    put one 0
    palisade volume resize data/v --size $((MIB + 32))M || fail "not resized"
    [ "$(blockdev --getsize64 $DEV)" = $(((MIB + 32) << 20)) ] || fail "it does not grow"
    sha256sum <one >sum
    get 0 $((8 << 20)) | sha256sum | cmp - sum || fail "other bytes"
    known
    (exec 3<$DEV; echo >open; while [ ! -e close ]; do usleep 50000; done) &
    within "$PATIENCE" test -e open
    palisade volume resize data/v --size $((MIB + 64))M || fail "not resized in use"
    wait_for has_note
    [ "$(blockdev --getsize64 $DEV)" = $(((MIB + 32) << 20)) ] || fail "it grows in use"
    touch close
    wait
    wait_for has_size $(((MIB + 64) << 20))
    wait_for is_well
    palisade volume resize data/v --size ${MIB}M --yes || fail "not resized back"
    wait_for has_size $((MIB << 20))
    get 0 $((8 << 20)) | sha256sum | cmp - sum || fail "other bytes in the end"
    known
    unserve
}
has_size() { [ "$(blockdev --getsize64 $DEV)" = "$1" ]; }
has_note() { of_export .health.problem | grep -q 'until it is not used'; }

nothing_to_see() { [ ! -e /dev/palisade ] && ! ls /dev/ublkb* 2>/dev/null; }

# An array that stops takes its devices along, and brings them back.
check_stopped() {
    serve
    dd if=/dev/urandom of=one bs=1M count=4
    put one 4096
    palisade array stop data || fail "not stopped"
    wait_for nothing_left
    palisade array assemble data || fail "not started"
    wait_for is_well
    known
    same one 4096 || fail "other bytes"
    unserve
}

# No daemon comes back: whoever waits has errors, and the next daemon makes the device anew.
check_released() {
    serve
    says 'is served' palisade export release data/v || fail "released while it is served"
    (dd if=$DEV of=/dev/null bs=4096 count=1 iflag=direct && echo well || echo badly) >first
    [ "$(cat first)" = well ] || fail "it can't be read"
    ended $PID 9
    (dd if=$DEV of=/dev/null bs=4096 count=1 iflag=direct && echo well || echo badly) >second &
    usleep 1000000
    [ ! -s second ] || fail "a read did not wait: $(cat second)"
    palisade export release data/v || fail "not released"
    wait_for test -s second
    [ "$(cat second)" = badly ] || fail "a read of what is gone ended $(cat second)"
    wait_for nothing_to_see
    says 'no device' palisade export release data/v || fail "released twice"
    start_daemon 2
    wait_for is_well
    known
    unserve
}

# `palisade services` is killed at random moments of create and delete.
check_services_killed() {
    local round=0 asking
    while [ $round -lt $((ROUNDS / 4)) ]; do
        round=$((round + 1))
        ID=$(of_export '.id // empty')
        if [ -z "$ID" ]; then
            (palisade export create data/v --ublk || true) &
        else
            (palisade export delete "$ID" || true) &
        fi
        asking=$!
        usleep $((round * 7919 % 13 * 40000))
        ended $SERVICES_PID 9
        start_services
        wait "$asking"
    done
    ID=$(of_export '.id // empty')
    if [ -z "$ID" ]; then
        serve
    else
        wait_for is_well
        known
    fi
    unserve
}
