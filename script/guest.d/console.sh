# The check of the web console by somebody outside who looks at it through a forwarded port. To be
# sourced after drives.sh.
#
# Whoever is outside and has the browser says what happens here, one thing after the other. The guest
# asks for it by events, each of which tells how the last one ended:
#
#   @ console begin USER PASSWORD      the daemon serves the console at port 443 of the guest
#   @ console done [WHAT]              it is done
#   @ console failed WHY               it is not
#
# and the answer is what to do next:
#
#   go load URI        begins requests to an export, which never cease, and verifies them
#   go unplug SERIAL   takes a drive out
#   go rest            ends the requests; it failed if one of them did
#   go end             all is well
#   no WHY             there is nobody with a browser
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# place_of SERIAL: where the drive is plugged in.
place_of() {
    local place=0
    while [ "$place" -lt "$NVME" ]; do
        [ "$(serial_at $place)" != "$1" ] || echo $place
        place=$((place + 1))
    done
}

# carry_out WORD ARGUMENT: what was asked for; sets OUTCOME to what came of it.
carry_out() {
    OUTCOME='done'
    case $1 in
        load)
            URI=$2
            rm -f worked enough
            # Not so much that the daemon has no time for a browser.
            work --iodepth=2 --rate_iops=40,40 &
            LOAD=$!
            wait_for has_work
            ;;
        unplug)
            PULLED="$PULLED $(place_of "$2")"
            is_at_work "$LOAD" || fail "nothing was written when the drive went: $(cat /tmp/why)"
            unplug "$(place_of "$2")"
            ;;
        rest)
            touch enough
            wait "$LOAD" || OUTCOME="failed the host saw it: $(cat /tmp/why)"
            ;;
        *) OUTCOME="failed it is not known what this is: $*" ;;
    esac
}

# It begins and ends without an array; what was unplugged is back in the end, and empty.
check_console() {
    local place password PULLED='' OUTCOME LOAD=''
    need_no_array
    password=$(head -c 15 /dev/urandom | base64 | tr '/+' '_-')
    echo "$password" | palisade account create admin --role Administrator --password-stdin \
        || fail "no account"
    OUTCOME="begin admin $password"
    # shellcheck disable=SC2086 # words
    while :; do
        event console $OUTCOME
        set -- ${ANSWER#go}
        [ "$1" != end ] || break
        carry_out "$@"
    done
    for place in $PULLED; do
        plug "$place"
        wait_for is_there "$(serial_at "$place")"
        wait_for is_listed "$(serial_at "$place")"
        palisade drive wipe "$(device_of "$(serial_at "$place")")" --yes || fail "it is not wiped"
    done
}
