# Linux's own target, nvmet, through configfs. To be sourced by script/guest.d/selftest.
# shellcheck shell=dash

NVMET=/sys/kernel/config/nvmet
FIRST=nqn.2014-08.org.nvmexpress:uuid:aaaaaaaa-0000-4000-8000-000000000001
SECOND=nqn.2014-08.org.nvmexpress:uuid:aaaaaaaa-0000-4000-8000-000000000002
ALLOWED=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555
# A file in memory takes only the room that is written.
BACKING=/dev/shm/backing
BACKING_MIB=320

# namespace NQN NUMBER PATH: adds a namespace.
namespace() {
    local folder=$NVMET/subsystems/$1/namespaces/$2
    mkdir "$folder" || return 1
    printf %s "$3" >"$folder/device_path"
    # Linux 6.1 cannot open a file in memory for direct I/O.
    [ -b "$3" ] || echo 1 >"$folder/buffered_io"
    # The subsystem's last digit and the namespace's.
    echo "aaaaaaaa-0000-4000-8000-0000000001${1##*0}$2" >"$folder/device_uuid"
    echo 1 >"$folder/enable"
}

# served YES: puts both subsystems on the port, or takes them off it, with the port.
served() {
    local nqn
    for nqn in $FIRST $SECOND; do
        if [ "$1" = yes ]; then
            ln -s "$NVMET/subsystems/$nqn" "$NVMET/ports/1/subsystems/$nqn" || return 1
        else
            rm "$NVMET/ports/1/subsystems/$nqn" || return 1
        fi
    done
}

set_up() {
    local port=$NVMET/ports/1
    modprobe nvmet-tcp || return 1
    modprobe loop
    mount -t configfs none /sys/kernel/config
    mkdir "$NVMET/subsystems/$FIRST" "$NVMET/subsystems/$SECOND" "$NVMET/hosts/$ALLOWED" || return 1
    echo 0 >"$NVMET/subsystems/$FIRST/attr_allow_any_host"
    ln -s "$NVMET/hosts/$ALLOWED" "$NVMET/subsystems/$FIRST/allowed_hosts/$ALLOWED"
    echo 1 >"$NVMET/subsystems/$SECOND/attr_allow_any_host"
    truncate -s ${BACKING_MIB}M $BACKING
    truncate -s 64M $BACKING.second
    losetup /dev/loop0 $BACKING || return 1
    namespace $FIRST 1 /dev/loop0 || return 1
    namespace $SECOND 1 $BACKING.second || return 1
    mkdir $port
    echo tcp >$port/addr_trtype
    echo ipv4 >$port/addr_adrfam
    echo 127.0.0.1 >$port/addr_traddr
    echo 4420 >$port/addr_trsvcid
    served yes
}

# act WHAT NQN…: what the checks ask for; fails where this target has no such thing.
act() {
    case $1 in
        restart) served no && sleep 1 && served yes ;;
        grow)
            truncate -s $((BACKING_MIB * 1048576 + $3)) $BACKING
            losetup -c /dev/loop0 2>/dev/null || blockdev --rereadpt /dev/loop0
            echo 1 >"$NVMET/subsystems/$2/namespaces/1/revalidate_size"
            ;;
        add) truncate -s 32M $BACKING.added && namespace "$2" 2 $BACKING.added ;;
        remove) rmdir "$NVMET/subsystems/$2/namespaces/2" ;;
        *) return 1 ;;
    esac
}
