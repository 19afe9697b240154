# Checks of connections: digests, queues, keep-alive, names that last. To be sourced by
# script/guest.d/checks.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# small: data through the connection, there and back.
small() { verified --rw=randwrite --iodepth=16 --size=4m --bssplit=4k/60:64k/30:256k/10; }

check_header_digest() { attach "$NQN" --hdr-digest; small; }
check_data_digest() { attach "$NQN" --data-digest; small; }
check_both_digests() {
    attach "$NQN" --hdr-digest --data-digest
    small
    # Commands with data of the admin queue too.
    nvme id-ctrl "/dev/$CTRL" >/dev/null
}

queue_count() { cat "/sys/class/nvme/$CTRL/queue_count"; }

check_one_queue() {
    attach "$NQN" --nr-io-queues=1
    [ "$(queue_count)" = 2 ] || fail "$(queue_count) queues, with the admin queue"
    small
}

# As many as there are processors, others for writes, others that are polled. Linux cannot connect
# more queues of a kind than it has processors.
check_many_queues() {
    attach "$NQN" --nr-io-queues=8 --nr-write-queues="$(nproc)" \
        --nr-poll-queues="$(nproc)"
    echo "$(queue_count) queues"
    [ "$(queue_count)" -gt $((1 + $(nproc))) ] || fail "$(queue_count) queues"
    small
    # Polled reads.
    fio --name=polled --filename="$DEV" --direct=1 --ioengine=pvsync2 --hipri --rw=randread \
        --bs=4k --size=1m --thread=1 --output-format=terse || fail "polled reads"
}

# sizes SIZE: a queue of this many entries, or of fewer if the controller has no more.
sizes() {
    local most
    attach "$NQN" --queue-size="$1"
    most=$(($(cat "/sys/class/nvme/$CTRL/sqsize") + 1))
    echo "asked for $1, got $most"
    [ "$most" -le "$1" ] || fail "a queue of $most entries, asked for $1"
    verified --rw=randwrite --bs=4k --iodepth=$((most * 2)) --size=4m
    nvme disconnect -d "$CTRL"
}
check_queue_size_small() { sizes 16; }
check_queue_size_large() { sizes 1024; }

# Idle for longer than the keep-alive timer, twice over; then it still works.
check_keep_alive() {
    attach "$NQN" --keep-alive-tmo=2
    sleep 6
    is_live "$CTRL" || fail "not live after 6 s"
    refused dmesg_says 'keep.alive\|reconnect\|error' || fail "it was lost"
    get 0 "$BLOCK" >/dev/null
}

names() { cat "/sys/block/${DEV##*/}/wwid"; nvme ns-descs "/dev/$CTRL" -n "$NSID" | tail -n +2; }

check_names_last() {
    attach "$NQN"
    names | tee first
    ctrl_field sn >>first
    nvme disconnect -n "$NQN"
    attach "$NQN"
    names >second
    ctrl_field sn >>second
    cmp first second || fail "other names after connecting again"
}

# Nothing stays behind, and the next connection is like the first.
check_disconnect() {
    local n=0
    while [ $n -lt 5 ]; do
        connect "$NQN" || fail "connection $n"
        # At once, while the namespaces are still looked for.
        nvme disconnect -n "$NQN"
        within "$PATIENCE" is_gone "$CTRL" || fail "$CTRL stays"
        n=$((n + 1))
    done
    within "$PATIENCE" has_no_block "$NQN" || fail "namespaces stay"
    attach "$NQN"
    small
}

# Two controllers of one host, with numbers of their own, on the same data.
check_two_controllers() {
    local one first
    attach "$NQN"
    one=$CTRL
    first=$(ctrl_field cntlid)
    second "$NQN" || fail "no second connection"
    CTRL=$(controllers "$NQN" | tr ' ' '\n' | grep -vx "$one" | head -n 1)
    within "$PATIENCE" is_live "$CTRL" || fail "the second is not live"
    [ "$(ctrl_field cntlid)" != "$first" ] || fail "both are controller $first"
    [ "$(controllers "$NQN" | wc -w)" = 2 ] || fail "controllers: $(controllers "$NQN")"
    small
    # One goes, and the other one serves on.
    nvme disconnect -d "$CTRL"
    within "$PATIENCE" is_gone "$CTRL" || fail "$CTRL stays"
    has_block "$NQN" || fail "the namespace is gone"
    small
}

# All subsystems at once.
check_all_subsystems() {
    local nqn
    [ "$(echo "$NQNS" | wc -w)" -gt 1 ] || skip "there is one subsystem only"
    for nqn in $NQNS; do attach "$nqn"; done
    for nqn in $NQNS; do
        DEV=/dev/$(blocks "$nqn" | head -n 1)
        pattern 1048576 "$nqn" >data
        put data 0
    done
    for nqn in $NQNS; do
        DEV=/dev/$(blocks "$nqn" | head -n 1)
        pattern 1048576 "$nqn" >data
        same data 0 || fail "$nqn holds other data"
    done
}

# Resets and a fast end while I/O runs.
check_reset_in_io() {
    local n=0
    attach "$NQN"
    verified --rw=randwrite --bs=4k --iodepth=16 --size=4m --loops=3 &
    while [ $n -lt 3 ]; do
        usleep 500000
        nvme reset "/dev/$CTRL" || fail "reset $n"
        within "$PATIENCE" is_live "$CTRL" || fail "not live after reset $n"
        n=$((n + 1))
    done
    wait $! || fail "I/O failed over a reset: $(cat /tmp/why)"
}

# The kernel looks for namespaces again and again while I/O runs.
check_rescan_in_io() {
    local n=0
    attach "$NQN"
    verified --rw=randwrite --bs=4k --iodepth=16 --size=4m --loops=2 &
    while [ $n -lt 10 ]; do
        nvme ns-rescan "/dev/$CTRL" || fail "rescan $n"
        n=$((n + 1))
    done
    wait $! || fail "I/O failed over a rescan: $(cat /tmp/why)"
}
