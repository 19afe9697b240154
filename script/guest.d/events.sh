# Checks in which something happens to the target meanwhile. To be sourced by
# script/guest.d/checks. What they ask for outside, each with the subsystem's NQN:
#
#   restart NQN         the target ends without a word, and is back after a second or two
#   fail-drive NQN      one drive of what is behind the first namespace fails
#   grow NQN BYTES      the first namespace gets this much larger
#   add NQN             the subsystem gets one more namespace
#   remove NQN          it loses that again
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# under_io NAME ARGUMENT…: lets it happen in the midst of writing; all that was written is verified
# after, by the same job.
under_io() {
    verified --rw=randwrite --bs=8k --iodepth=16 --size=8m --loops=3 &
    usleep 1500000
    event "$@"
    wait $! || fail "writes failed over $*: $(cat /tmp/why)"
    verified --rw=randwrite --bs=8k --iodepth=16 --size=8m
}

check_restart_in_io() {
    attach "$NQN"
    under_io restart "$NQN"
    dmesg_says reconnect || fail "the connection was never lost"
    is_live "$CTRL" || fail "not live"
}

check_drive_fails_in_io() {
    attach "$NQN"
    under_io fail-drive "$NQN"
    is_live "$CTRL" || fail "not live"
}

larger() { [ "$(blockdev --getsize64 "$DEV")" -gt "$SIZE" ]; }

# By an asynchronous event: nobody here asks for a rescan.
check_resize() {
    attach "$NQN"
    event grow "$NQN" 4194304
    within "$PATIENCE" larger || fail "still $SIZE bytes"
    echo "$SIZE, now $(blockdev --getsize64 "$DEV")"
    pattern 65536 resize >data
    put data "$SIZE"
    same data "$SIZE" || fail "other data in the new part"
}

count_is() { [ "$(blocks "$NQN" | wc -l)" = "$1" ]; }

check_add_remove() {
    local before
    attach "$NQN"
    before=$(blocks "$NQN" | wc -l)
    event add "$NQN"
    within "$PATIENCE" count_is $((before + 1)) || fail "no namespace came"
    blocks "$NQN"
    event remove "$NQN"
    within "$PATIENCE" count_is "$before" || fail "no namespace went"
    get 0 "$BLOCK" >/dev/null || fail "the first namespace went too"
}
