# Checks of a subsystem that is reached by two ports: the usual one, which is port A1 of a shelf, and
# $ALSO, which is its port B1. To be sourced by script/guest.d/checks. What they ask for outside, each
# with the subsystem's NQN:
#
#   pull NQN PART NAME HOW      a part of the shelf is pulled out: port A1 silent, iom A reset, …
#   restore NQN PART NAME       it is put back
#   ana NQN PORT STATE          a port comes to the namespaces so from now on
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# A path of a controller to a namespace, as the kernel has it.
path_of() { find "/sys/class/nvme/$1/" -maxdepth 1 -name 'nvme*c*n*' | head -n 1; }
has_path() { [ -n "$(path_of "$1")" ]; }
access_is() { [ "$(cat "$(path_of "$1")/ana_state")" = "$2" ]; }

# both_ports ARGUMENT…: connects by both ports: FIRST and SECOND are the controllers.
both_ports() {
    attach "$NQN" --keep-alive-tmo=2 "$@"
    FIRST=$CTRL
    PORT=$ALSO connect "$NQN" --keep-alive-tmo=2 "$@" || fail "cannot connect by the second port"
    SECOND=$CTRL
    for CTRL in "$SECOND" "$FIRST"; do
        within "$PATIENCE" is_live "$CTRL" || fail "$CTRL is not live"
        within "$PATIENCE" has_path "$CTRL" || fail "$CTRL has no path"
    done
    [ "$FIRST" != "$SECOND" ] || fail "both are $FIRST"
}

check_two_ports() {
    local policy
    both_ports
    [ "$(blocks "$NQN" | wc -l)" = "$(nvme list-ns "/dev/$FIRST" | wc -l)" ] ||
        fail "namespaces are there twice: $(blocks "$NQN")"
    small
    for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin >"$policy"; done
    small
    nvme disconnect -d "$FIRST"
    within "$PATIENCE" is_gone "$FIRST" || fail "$FIRST stays"
    small
}

# By events: nobody here asks for the page.
check_ana_change() {
    local state
    both_ports
    for state in non-optimized inaccessible change persistent-loss optimized; do
        event ana "$NQN" A1 $state
        within "$PATIENCE" access_is "$FIRST" $state || fail "not $state"
        small
    done
    event ana "$NQN" B1 inaccessible
    within "$PATIENCE" access_is "$SECOND" inaccessible || fail "the second is not inaccessible"
    small
    event ana "$NQN" B1 optimized
    # In the midst of writing.
    under_io ana "$NQN" A1 inaccessible
    event ana "$NQN" A1 optimized
    within "$PATIENCE" access_is "$FIRST" optimized || fail "not optimized"
}

# pulled PART NAME: goes in the midst of writing, by a reset and in silence, and comes back.
pulled() {
    local how
    both_ports
    for how in reset silent; do
        under_io pull "$NQN" "$1" "$2" $how
        within "$PATIENCE" refused is_live "$FIRST" || fail "$how: the loss was not noticed"
        is_live "$SECOND" || fail "$how: the other went too"
        event restore "$NQN" "$1" "$2"
        within "$PATIENCE" is_live "$FIRST" || fail "$how: it does not come back"
        small
    done
    refused dmesg_says 'I/O error' || fail "a request failed"
}
check_port_pulled_in_io() { pulled port A1; }
check_iom_pulled_in_io() { pulled iom A; }
