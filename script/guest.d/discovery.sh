# Checks of discovery and of who may connect. To be sourced by script/guest.d/checks.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# The log has a record for each subsystem, with our address and port, and a generation.
check_discover() {
    local log=records nqn
    discover >$log
    cat $log
    grep -q 'Discovery Log Number of Records [1-9][0-9]*, Generation counter [0-9]' $log \
        || fail "no number of records or generation"
    for nqn in $NQNS; do
        grep -q "^subnqn: *$nqn *$" $log || fail "no record of $nqn"
    done
    grep -q '^trtype: *tcp' $log || fail "no record says tcp"
    grep -q '^subtype: *nvme subsystem' $log || fail "no record says nvme subsystem"
    grep -q "^trsvcid: *$PORT *$" $log || fail "no record has our port"
    grep -q "^traddr: *$ADDR *$" $log || fail "no record has our address"
}

# Nothing changes the generation but a change.
check_discover_generation() {
    discover | grep Generation >first
    discover | grep Generation >second
    cmp first second || fail "the generation changed: $(cat first second)"
}

# A discovery controller that stays (with keep-alive) says what it is, and gives its log again.
check_discover_persistent() {
    connect "$DISCOVERY" --keep-alive-tmo=2 || fail "cannot connect to the discovery subsystem"
    [ "$(ctrl_field subnqn)" = "$DISCOVERY" ] || fail "subnqn is $(ctrl_field subnqn)"
    [ "$(ctrl_field cntrltype)" = 2 ] || fail "cntrltype is $(ctrl_field cntrltype)"
    nvme get-log "/dev/$CTRL" --log-id=0x70 --log-len=1024 -b | head -c 1024 >log
    [ "$(od -An -tu8 -j8 -N8 log | tr -d ' ')" -ge "$(echo "$NQNS" | wc -w)" ] \
        || fail "too few records"
    sleep 5
    is_live "$CTRL" || fail "lost while idle"
    refused dmesg_says 'keep-alive\|keep alive\|reconnect' || fail "keep-alive went wrong"
    nvme disconnect -d "$CTRL"
}

dmesg_says() { dmesg | grep -i "$1"; }

# Discovery and connecting at once.
check_connect_all() {
    local nqn
    nvme connect-all -t tcp -a "$ADDR" -s "$PORT" -q "$HOST" -I "$HOST_ID"
    for nqn in $NQNS; do
        [ -n "$(controllers "$nqn")" ] || fail "not connected to $nqn"
        within "$PATIENCE" has_block "$nqn" || fail "no namespace of $nqn"
    done
    nvme list-subsys
    nvme disconnect-all
    for nqn in $NQNS; do
        within "$PATIENCE" has_no_block "$nqn" || fail "namespaces of $nqn stay"
    done
}

# Connect to a subsystem that is not there: Connect Invalid Parameters, of the subsystem's name.
check_unknown_subsystem() {
    refused connect nqn.2014-08.org.nvmexpress:uuid:no-such-subsystem || fail "was let in"
    dmesg_says 'invalid data parameter, subsysnqn' || fail "another reason: $(dmesg | tail -n 2)"
}

# A host that is not on the list: Connect Invalid Host; it sees no record either.
check_unknown_host() {
    [ -n "$CLOSED" ] || skip "the subsystem lets any host in"
    (HOST=$STRANGER HOST_ID=$STRANGER_ID; refused connect "$NQN") || fail "was let in"
    dmesg_says 'is not allowed, hostnqn' || fail "another reason: $(dmesg | tail -n 2)"
    (HOST=$STRANGER HOST_ID=$STRANGER_ID; discover) >records || return 0
    refused grep "^subnqn: *$NQN *$" records || fail "sees the subsystem's record"
}
