# Checks of what a controller says: identify, log pages, features. To be sourced by
# script/guest.d/checks.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

check_id_ctrl() {
    attach "$NQN"
    nvme id-ctrl "/dev/$CTRL" | tee id
    [ -n "$(field sn <id)" ] || fail "no serial number"
    [ -n "$(field mn <id)" ] || fail "no model"
    [ -n "$(field fr <id)" ] || fail "no firmware revision"
    [ "$(field subnqn <id)" = "$NQN" ] || fail "subnqn is $(field subnqn <id)"
    case $(field cntrltype <id) in 0 | 1) ;; *) fail "no I/O controller" ;; esac
    [ "$(field sqes <id)" = 0x66 ] || fail "sqes is $(field sqes <id)"
    [ "$(field cqes <id)" = 0x44 ] || fail "cqes is $(field cqes <id)"
    [ "$(field ioccsz <id)" -ge 4 ] || fail "ioccsz is $(field ioccsz <id)"
    [ "$(field iorcsz <id)" = 1 ] || fail "iorcsz is $(field iorcsz <id)"
    [ "$(field kas <id)" -gt 0 ] || fail "no keep-alive"
    [ $(($(field sgls <id))) != 0 ] || fail "no SGL support"
    [ "$(field nn <id)" -ge 1 ] || fail "nn is $(field nn <id)"
    [ $(($(field ver <id))) -ge $((0x10300)) ] || fail "version $(field ver <id)"
}

# property OFFSET: a register, in hexadecimal.
property() { nvme get-property "/dev/$CTRL" --offset="$1" | sed 's/.*value: *\(0x\)*//'; }

check_properties() {
    attach "$NQN"
    [ $((0x$(property 0) & 0xffff)) -gt 0 ] || fail "CAP has no queue entries"
    [ $((0x$(property 8))) = $(($(ctrl_field ver))) ] || fail "VS is $(property 8)"
    [ $((0x$(property 0x14) & 1)) = 1 ] || fail "CC says not enabled"
    [ $((0x$(property 0x1c) & 1)) = 1 ] || fail "CSTS says not ready"
}

check_id_ns() {
    local lbaf
    attach "$NQN"
    nvme id-ns "$DEV" -n "$NSID" | tee id
    lbaf=$(sed -n 's/^lbaf *\([0-9]*\) .*in use.*/\1/p' id)
    [ -n "$lbaf" ] || fail "no format in use"
    [ $(($(field nsze <id) * BLOCK)) = "$SIZE" ] \
        || fail "nsze $(field nsze <id) of $BLOCK bytes is not $SIZE bytes"
    [ $(($(field ncap <id))) -le $(($(field nsze <id))) ] || fail "ncap above nsze"
    # A namespace that is not there: Invalid Namespace, or nothing but zeros.
    says 'invalid n\(amespace\|s\)' nvme id-ns "/dev/$CTRL" -n 4294967294 \
        || [ "$(field nsze <said)" = 0 ] || fail "there is a namespace 4294967294"
}

check_list() {
    attach "$NQN"
    nvme list | tee list
    grep -q "^$DEV " list || fail "nvme list has no $DEV"
    nvme list -v | grep "$CTRL" || fail "nvme list -v has no $CTRL"
    nvme list-ns "/dev/$CTRL" | tee list
    grep -q ":0x$(printf %x "$NSID")\$" list || fail "list-ns has no $NSID"
}

check_list_subsys() {
    attach "$NQN"
    nvme list-subsys | tee list
    grep -q "NQN=$NQN" list || fail "no $NQN"
    grep -q "$CTRL tcp .*traddr=$ADDR,trsvcid=$PORT.* live" list || fail "no live $CTRL"
}

# At least one name that lasts, the same as the kernel's.
check_ns_descs() {
    local uuid nguid
    attach "$NQN"
    nvme ns-descs "/dev/$CTRL" -n "$NSID" | tee descs
    uuid=$(field uuid <descs) nguid=$(field nguid <descs)
    [ -n "$uuid$nguid" ] || fail "neither uuid nor nguid"
    [ -z "$uuid" ] || [ "$(cat "/sys/block/${DEV##*/}/uuid")" = "$uuid" ] || fail "another uuid"
    cat "/sys/block/${DEV##*/}/wwid"
}

check_log_pages() {
    attach "$NQN"
    nvme error-log "/dev/$CTRL" -e 1 || fail "no error log"
    nvme smart-log "/dev/$CTRL" | tee log || fail "no SMART log"
    grep -q '^critical_warning' log || fail "SMART log has no critical warning"
    [ "$(field critical_warning <log)" = 0 ] || fail "a critical warning"
    nvme fw-log "/dev/$CTRL" || fail "no firmware log"
    nvme changed-ns-list-log "/dev/$CTRL" || fail "no log of changed namespaces"
    if [ $(($(ctrl_field cmic) & 8)) != 0 ]; then
        nvme ana-log "/dev/$CTRL" || fail "no ANA log"
    fi
    if [ $(($(ctrl_field lpa) & 2)) != 0 ]; then
        nvme effects-log "/dev/$CTRL" || fail "no effects log"
        # A word for each admin command: Identify is one that is supported.
        nvme get-log "/dev/$CTRL" --log-id=5 --log-len=4096 -b >log
        [ $((0x$(od -An -tx4 -j24 -N4 log | tr -d ' ') & 1)) = 1 ] \
            || fail "the effects log does not know Identify"
    fi
    if [ $(($(ctrl_field lpa) & 32)) != 0 ]; then
        nvme supported-log-pages "/dev/$CTRL" || fail "no log of supported pages"
    fi
}

check_features() {
    attach "$NQN" --keep-alive-tmo=5
    nvme get-feature "/dev/$CTRL" -f 7 | tee feature
    grep -qi 'value:' feature || fail "no number of queues"
    nvme get-feature "/dev/$CTRL" -f 0x0b || fail "no asynchronous event configuration"
    nvme get-feature "/dev/$CTRL" -f 0x0f | tee feature
    grep -qi 'value:0x0*1388$' feature || fail "the keep-alive timer is not 5000 ms"
    if [ $(($(ctrl_field vwc) & 1)) = 1 ]; then
        nvme get-feature "/dev/$CTRL" -f 6 || fail "no volatile write cache"
    fi
}

# What is not there is refused, and nothing breaks.
check_refusals() {
    local field='invalid\|not supported'
    attach "$NQN"
    says 'invalid \(op\|command op\)' nvme admin-passthru "/dev/$CTRL" --opcode=0xc7 \
        || fail "admin command 0xc7 is not refused"
    says 'invalid \(op\|command op\)' nvme io-passthru "$DEV" --opcode=0x7d --namespace-id="$NSID" \
        || fail "I/O command 0x7d is not refused"
    says "$field" nvme get-log "/dev/$CTRL" --log-id=0xbf --log-len=512 \
        || fail "log page 0xbf is not refused"
    says "$field" nvme get-feature "/dev/$CTRL" -f 0xbf || fail "feature 0xbf is not refused"
    says "$field" nvme admin-passthru "/dev/$CTRL" --opcode=6 --cdw10=0xf0 --data-len=4096 -r \
        || fail "identify of 0xf0 is not refused"
    is_live "$CTRL" || fail "the controller is no longer live"
    get 0 "$BLOCK" >/dev/null
}

check_reset() {
    attach "$NQN"
    pattern 65536 reset >data
    put data 0
    nvme reset "/dev/$CTRL"
    within "$PATIENCE" is_live "$CTRL" || fail "not live after the reset"
    same data 0 || fail "other data after the reset"
    nvme ns-rescan "/dev/$CTRL"
    same data 0 || fail "other data after the rescan"
}
