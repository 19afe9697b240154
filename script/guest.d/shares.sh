# Checks of shares of a volume, as the kernel's own clients of SMB and NFS have them. To be sourced
# by script/guest.d/shares after here.sh.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154
#
# The share `docs` of volume `v` (XFS) is alice's by SMB, bob may read it, and carol may not; by NFS
# it is that of 127.0.0.1, and of no other address of this machine.

DRIVE_MIB=192
# XFS takes no less than 300.
MIB=320
SMB_PORT=445 NFS_PORT=2049
# Another address of this machine.
OTHER=10.0.2.15
# What clients have: /mnt/smb, /mnt/nfs40 and /mnt/nfs41.
CLIENTS='smb nfs40 nfs41'

need_clients() {
    mkdir -p /var /run/lock
    ln -sf /run /var/run
    # Ganesha looks here for mounts, and asks who the machine is.
    ln -sf /proc/self/mounts /etc/mtab
    echo 127.0.0.1 localhost guest >/etc/hosts
    modprobe cifs && modprobe nfsv4
}

# of_share FILTER [NAME]: what jq makes of the share.
of_share() { palisade share show "${2:-docs}" --json | jq -r "$1"; }
# is_served [NAME]: true if the share is well by all its protocols.
is_served() {
    [ "$(of_share '[.protocols[].health.state] | unique | join(",")' "${1:-docs}")" = ok ]
}
share() { palisade share create "$@" || fail "not shared: $*"; }
user() {
    printf '%s\n' "$1-secret" | palisade share user add "$1" --share "${2:-docs}" \
        || fail "no user $1"
}

share_docs() {
    share docs --volume data/v --smb --nfs --smb-user alice bob:ro --nfs-client 127.0.0.1/32 "$@"
}
# need_share: `docs` is there, with its users.
need_share() {
    local name
    if [ -z "$(of_share .name)" ]; then
        if [ -e /tmp/made ]; then
            share_docs
        else
            share_docs --format xfs
            for name in alice bob carol; do user $name; done
            touch /tmp/made
        fi
    fi
    wait_for is_served
}

# mounted CLIENT SHARE [USER [PASSWORD]]: the client has the share at /mnt/CLIENT.
mounted() {
    mkdir -p "/mnt/$1"
    case $1 in
        smb)
            PASSWD=${4:-${3:-alice}-secret} mount.cifs "//127.0.0.1/$2" /mnt/smb \
                -o "vers=3.1.1,seal,hard,port=$SMB_PORT,username=${3:-alice}"
            ;;
        nfs4?)
            mount.nfs4 "${SERVER:-127.0.0.1}:/$2" "/mnt/$1" \
                -o "minorversion=${1#nfs4},port=$NFS_PORT,retry=0"
            ;;
    esac
}
left() { umount "/mnt/$1" || fail "$1 is not unmounted"; }
# forgotten: what no client has to write is in no memory of this machine.
forgotten() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# clear_up: leaves nothing of a check behind, but for shares.
clear_up() {
    local job client
    touch enough
    for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
    for client in $CLIENTS; do
        ! grep -q " /mnt/$client " /proc/mounts || umount "/mnt/$client" \
            || umount -lf "/mnt/$client"
    done
    cd /tmp
    rm -rf /tmp/work
}

# same_files CLIENT: files of several sizes are what was written, also after the client is another.
same_files() {
    local size sums at=/mnt/$1/files
    mkdir files "$at"
    for size in 0 1 4095 65537 1000000 3000000; do
        pattern $size "$1 $size" >files/$size
        cp files/$size "$at/" || fail "$size bytes are not written"
    done
    mv "$at/4095" "$at/größe 1"
    mv files/4095 'files/größe 1'
    sums=$PWD/sums
    (cd files && sha256sum -- * >"$sums")
    left "$1"
    forgotten
    mounted "$1" docs || fail "not mounted again"
    (cd "$at" && sha256sum -c -s "$sums") || fail "other bytes"
    [ "$(cd "$at" && echo *)" = "$(cd files && echo *)" ] || fail "other names: $(ls "$at")"
    # Over what is there, and in the midst of it.
    dd if=/dev/zero of="$at/3000000" bs=1000 seek=1000 count=7 conv=notrunc,fsync
    dd if=/dev/zero of=files/3000000 bs=1000 seek=1000 count=7 conv=notrunc
    truncate -s 70000 "$at/1000000"
    truncate -s 70000 files/1000000
    forgotten
    for size in 1000000 3000000; do cmp files/$size "$at/$size" || fail "$size: other bytes"; done
    rm -r "$at" || fail "not removed"
}

# reads_only CLIENT: what is there is read, and nothing is written.
reads_only() {
    cmp "/mnt/$1/one" one || fail "not read"
    refused touch "/mnt/$1/other" || fail "a file is made"
    refused dd if=/dev/zero of="/mnt/$1/one" bs=1 count=1 conv=notrunc || fail "a file is written"
    refused rm -f "/mnt/$1/one" || fail "a file is removed"
}
# put_one: `one` is in the share.
put_one() {
    pattern 100000 one >one
    mounted smb docs && cp one /mnt/smb/one && umount /mnt/smb || fail "not written"
}

check_smb() {
    need_share
    mounted smb docs || fail "not let in"
    grep -q 'Dialect 0x311' /proc/fs/cifs/DebugData || fail "not by SMB 3.1.1"
    grep -A 2 '127.0.0.1.docs Mounts' /proc/fs/cifs/DebugData | grep -q encrypted \
        || fail "not sealed"
    same_files smb
    left smb
    says 'permission denied' mounted smb docs alice wrong || fail "let in with another password"
    says 'permission denied' mounted smb docs dave || fail "a stranger is let in"
    says 'permission denied' mounted smb docs carol || fail "who may not have it is let in"
    says 'no such file' mounted smb other || fail "another share"
    put_one
    mounted smb docs bob || fail "bob is not let in"
    reads_only smb
    left smb
}

check_nfs40() { nfs nfs40; }
check_nfs41() { nfs nfs41; }
nfs() {
    need_share
    mounted "$1" docs || fail "not let in"
    grep " /mnt/$1 " /proc/mounts | grep -q "vers=4.${1#nfs4}," || fail "of another version"
    same_files "$1"
    left "$1"
    # From another address of this machine.
    SERVER=$OTHER
    refused mounted "$1" docs || fail "a stranger is let in"
    SERVER=127.0.0.1
    put_one
    palisade share set docs --nfs-client 127.0.0.1/32:ro || fail "not set"
    mounted "$1" docs || fail "a reader is not let in"
    reads_only "$1"
    palisade share set docs --nfs-client 192.0.2.0/24 || fail "not set"
    # It asks there how the share is: names are told to who is root here, no bytes.
    forgotten
    refused cat "/mnt/$1/one" || fail "who may not have it any more still reads it"
    umount -f "/mnt/$1"
    palisade share set docs --nfs-client 127.0.0.1/32 || fail "not set"
    mounted "$1" docs && rm "/mnt/$1/one" && left "$1" || fail "not let in again"
}

# A share that nobody may write is read by all.
check_read_only() {
    local client
    need_share
    put_one
    palisade share set docs --read-only || fail "not set"
    for client in $CLIENTS; do
        mounted $client docs || fail "$client is not let in"
        reads_only $client
        left $client
    done
    palisade share set docs --read-write || fail "not set"
    for client in $CLIENTS; do
        mounted $client docs && cp one "/mnt/$client/$client" && rm "/mnt/$client/$client" \
            || fail "$client does not write again"
        left $client
    done
}

# A file system without room says so to clients; what was written before is whole, and where there
# is room again they go on.
check_full() {
    local client sum count
    palisade volume create data/w --size 32M || fail "no volume"
    share small --volume data/w --format ext4 --smb --nfs --nfs-client 127.0.0.1/32 \
        --smb-listen 127.0.0.1:1445 --nfs-listen 127.0.0.1:12049
    user alice small
    SMB_PORT=1445 NFS_PORT=12049
    wait_for is_served small
    pattern 3000000 full >piece
    sum=$(sha256sum <piece)
    for client in smb nfs41; do
        mounted $client small || fail "$client is not let in"
        count=0
        while cp piece "/mnt/$client/$count" 2>said && sync -f "/mnt/$client/$count" 2>said; do
            count=$((count + 1))
            [ $count -lt 20 ] || fail "$client: more was written than there is room"
        done
        [ $count -gt 3 ] && grep -qi 'no space' said || fail "$client: after $count: $(cat said)"
        left $client
        forgotten
        # Nothing of what clients have to say is lost: who comes is let in, and health is kept.
        mounted $client small || fail "$client is not let in where there is no room"
        rm "/mnt/$client/$count" || fail "$client: what was cut off stays"
        while [ $count -gt 0 ]; do
            count=$((count - 1))
            [ "$(sha256sum <"/mnt/$client/$count")" = "$sum" ] || fail "$client: other bytes"
        done
        rm "/mnt/$client/0" && cp piece "/mnt/$client/0" && sync -f "/mnt/$client/0" \
            || fail "$client: it does not go on"
        rm "/mnt/$client"/*
        left $client
        wait_for is_served small
    done
    palisade share delete small --yes || fail "not deleted"
    palisade volume delete data/w --yes || fail "its volume is not deleted"
}

# loads CLIENT…: mounts them, and writes and reads in the background, past the page cache and
# through it, again and again until `enough` is there. Each pass writes other bytes, and a line to
# CLIENT.passes once all of them were read. What goes wrong leaves `wrong`.
loads() {
    local one
    LOADS=''
    for one in "$@"; do load "$one"; done
    for one in "$@"; do wait_for has_begun "$one"; done
}
has_begun() { [ -e wrong ] || [ -s "/mnt/$1/$1.load" ]; }
load() {
    mounted "$1" docs || fail "$1 is not let in"
    : >"$1.passes"
    (
        pass=0
        until [ -e enough ]; do
            pass=$((pass + 1))
            if ! passed "$1" $pass $((pass % 2)) >"$1.said" 2>&1; then
                echo "$1, pass $pass: $(grep -v '^$' "$1.said" | head -n 3 | cut -c 1-200)" >>wrong
                exit 1
            fi
            echo $pass >>"$1.passes"
        done
    ) &
    LOADS="$LOADS $!"
}
# passed CLIENT PASS DIRECT
passed() {
    asked "$1" on_file "$@" --do_verify=0 --end_fsync=1 || return 1
    echo 1 >/proc/sys/vm/drop_caches
    asked "$1" on_file "$@" --verify_only=1
}
# asked CLIENT COMMAND…: does it, and again if BREAKS says that requests of the client may fail.
asked() {
    local client=$1 often=0
    shift
    until "$@" >"$client.told" 2>&1; do
        cat "$client.told"
        often=$((often + 1))
        [ "$client" = "$BREAKS" ] && [ $often -lt 9 ] && ! grep -q 'bad pattern' "$client.told" \
            && grep -qE "error=($BROKEN)" "$client.told" || return 1
    done
}
BREAKS=''
BROKEN='Input/output|Resource temporarily un|Software caused connection abort|Host is down'
# Linux's cifs, of a file that it has not opened anew yet.
BROKEN="$BROKEN|Bad file descriptor"
on_file() {
    local at=/mnt/$1/$1.load bytes
    bytes=\"$(printf '%.8d' "$2")\"%o
    shift
    fio --name=check --filename="$at" --direct="$2" --ioengine=libaio --thread=1 --rw=randwrite \
        --bsrange=4k-64k --size=2m --iodepth=16 --verify=pattern --verify_pattern="$bytes" \
        --verify_fatal=1 --verify_dump=0 --fallocate=none --output-format=terse "$3" ${4:+"$4"}
}
# goes_on: waits until each has ended another pass.
goes_on() {
    local one
    [ ! -e wrong ] || fail "$(cat wrong)"
    for one in *.passes; do wc -l <"$one" >"$one.before"; done
    wait_for all_have_more
    [ ! -e wrong ] || fail "$(cat wrong)"
}
all_have_more() {
    local one
    [ ! -e wrong ] || return 0
    for one in *.passes; do
        [ "$(wc -l <"$one")" -gt "$(cat "$one.before")" ] || return 1
    done
}
# calm: waits for the end of all loads, and unmounts.
calm() {
    local client
    touch enough
    # shellcheck disable=SC2086 # one word each
    wait $LOADS || true
    [ ! -e wrong ] || fail "what was written came to harm: $(cat wrong)"
    for client in $CLIENTS; do
        [ ! -e $client.passes ] || { rm "/mnt/$client/$client.load" && left $client; }
    done
    rm -f ./*.passes* enough
}

# smb_workers: processes of Samba that speak with clients, and not the one that lets them in.
smb_workers() {
    local one parent
    parent=$(cat $FOLDER/*.shares/smb/pid/smbd.pid)
    for one in $(pidof smbd); do
        # Others of its children have other names.
        [ "$(cat "/proc/$one/comm" 2>/dev/null)" = smbd ] \
            && grep -qx "PPid:.$parent" "/proc/$one/status" && echo "$one"
    done
    return 0
}
another_ganesha() { pidof ganesha.nfsd && [ "$(pidof ganesha.nfsd)" != "$1" ]; }

# What speaks each protocol is killed in the midst of it: clients go on, and what they wrote is
# there. By NFS nobody sees anything of it but that it takes long. Linux 6.12 gives requests of SMB
# that are under way an error, mounted `hard` or not; who asks again, in the same mount, goes on.
check_server_killed() {
    local round=0 own BREAKS=smb
    need_share
    # shellcheck disable=SC2086 # one word each
    loads $CLIENTS
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        own=$(smb_workers)
        [ -n "$own" ] || fail "nobody speaks with the client of SMB"
        # shellcheck disable=SC2086 # one word each
        kill -9 $own || true
        own=$(pidof ganesha.nfsd)
        kill -9 "$own"
        wait_for another_ganesha "$own"
        goes_on
        wait_for is_served
        echo "round $round: killed what speaks with clients" >&3
    done
    calm
}

# A drive is lost and another takes its place, while clients of all protocols write.
check_drive_lost() {
    local was spare=/dev/shm/drive-4
    [ ! -e /tmp/spare ] || spare=$(cat /tmp/spare)
    need_share
    # shellcheck disable=SC2086 # one word each
    loads $CLIENTS
    was=$(shown '.slots[1].drive')
    palisade array fail data --drive "$was" || fail "not failed"
    goes_on
    palisade array replace data --slot 1 --with "$spare" --overwrite "$spare" --yes \
        || fail "not replaced"
    # Each check has a shell of its own.
    echo "$was" >/tmp/spare
    wait_for array_is optimal
    calm
    wait_for is_served
}

# The daemon is killed in the midst of it and started again: clients wait, and see nothing of it.
check_daemon_killed() {
    local round=0
    need_share
    # shellcheck disable=SC2086 # one word each
    loads $CLIENTS
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        again 9
        goes_on
        echo "round $round: killed the daemon" >&3
    done
    wait_for is_served
    calm
}

# So is `palisade services`: servers go on without it, and the next one finds them.
check_services_killed() {
    local round=0 had starting
    need_share
    had=$(pidof ganesha.nfsd)
    # shellcheck disable=SC2086 # one word each
    loads $CLIENTS
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        ended $SERVICES_PID 9
        goes_on
        start_services
        wait_for is_served
        goes_on
        echo "round $round: killed palisade services" >&3
    done
    [ "$(pidof ganesha.nfsd)" = "$had" ] || fail "its servers are others"
    # Both, and either comes first.
    ended $PID 9
    ended $SERVICES_PID 9
    start_services &
    starting=$!
    start_daemon 2
    wait $starting
    wait_for is_served
    goes_on
    calm
}

# unshared: no share, and nothing of any.
unshared() { palisade share delete docs --yes || fail "not deleted"; wait_for nothing_left; }
nothing_left() {
    [ -z "$(ls -A $FOLDER)" ] && [ ! -e $FOLDER.shares ] && ! grep -q " $FOLDER" /proc/mounts \
        && ! ls /dev/ublkb* 2>/dev/null && [ ! -e /dev/palisade ] && no_server
}
no_server() {
    ! cat /proc/[0-9]*/comm 2>/dev/null | grep -E '^(smbd|samba|rpcd|cleanupd|ganesha)'
}

# The array stops and starts again; what is shared of it then has the files and users that it had.
check_moved() {
    need_share
    put_one
    says 'docs' palisade array stop data || fail "it stops under a share"
    unshared
    palisade array stop data || fail "not stopped"
    palisade array assemble data || fail "not started"
    share_docs
    wait_for is_served
    mounted smb docs || fail "alice is not let in with the password that was"
    cmp one /mnt/smb/one || fail "other bytes by SMB"
    left smb
    says 'permission denied' mounted smb docs alice wrong || fail "let in with another password"
    mounted nfs41 docs && cmp one /mnt/nfs41/one || fail "other bytes by NFS"
    rm /mnt/nfs41/one && left nfs41
    # All of it stops as it should, and starts again.
    ended $SERVICES_PID TERM
    again TERM
    start_services
    wait_for is_served
    mounted smb docs && left smb || fail "alice is not let in"
}

# `palisade services` is killed at random moments of create and delete: what is there afterwards is
# what is wanted, and nothing twice.
check_interrupted() {
    local round=0 asking before
    before=$(grep -c " $FOLDER.shares/" /proc/mounts || true)
    palisade volume create data/w --size 32M || fail "no volume"
    while [ $round -lt "$ROUNDS" ]; do
        round=$((round + 1))
        if [ -z "$(of_share .name small)" ]; then
            (palisade share create small --volume data/w --format ext4 --overwrite --yes \
                --smb --smb-listen 127.0.0.1:1445 --nfs --nfs-listen 127.0.0.1:12049 || true) &
        else
            (palisade share delete small --yes || true) &
        fi
        asking=$!
        usleep $((round * 7919 % 17 * 700000))
        ended $SERVICES_PID 9
        start_services
        wait $asking
        echo "round $round: killed palisade services, $(of_share .name small)" >&3
    done
    if [ -n "$(of_share .name small)" ]; then
        wait_for is_served small
        are_there $((before + 1)) || fail "more is there than is wanted"
        user alice small
        SMB_PORT=1445 mounted smb small || fail "not let in"
        left smb
        palisade share delete small --yes || fail "not deleted"
    fi
    wait_for are_there "$before"
    palisade volume delete data/w --yes || fail "its volume is not deleted"
}
# are_there N: there are so many file systems, and of each what it has.
are_there() {
    local what
    for what in "$(grep -c " $FOLDER.shares/" /proc/mounts)" "$(pidof ganesha.nfsd | wc -w)" \
        "$(find /dev -name 'ublkb*' | wc -l)" "$(find $FOLDER -maxdepth 1 -name '*.shares' | wc -l)"; do
        [ "$what" -eq "$1" ] || return 1
    done
}

# With the last share all goes that was made for it.
check_left() {
    need_share
    mounted smb docs && mounted nfs41 docs || fail "not let in"
    says 'shared' palisade volume delete data/v --yes || fail "its volume is deleted"
    left smb
    left nfs41
    palisade share create more --volume data/v --smb --nfs || fail "no second share"
    palisade share delete more --yes || fail "not deleted"
    is_served || fail "the first share went with the second"
    unshared
}
