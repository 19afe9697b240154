# Checks by file systems. To be sourced by script/guest.d/checks.
# shellcheck shell=dash disable=SC2034,SC2153,SC2154

# tree FOLDER: files of many sizes, with their sums in FOLDER/sums.
tree() {
    local file
    mkdir -p "$1/programs/more"
    # Some of the guest's own, up to 1 MB each.
    for file in /lib/lib[a-d]*.so* /bin/mkfs.ext4; do
        [ "$(stat -c %s "$file")" -gt 1000000 ] || cp "$file" "$1/programs/"
    done
    seq 1 200 | while read -r n; do echo "file $n" >"$1/programs/more/$n"; done
    pattern 3000001 tree >"$1/large"
    (cd "$1" && find . -type f -exec sha256sum {} +) >sums
    mv sums "$1/sums"
}

# file_system OPTIONS MAKE CHECK…: makes, fills, mounts again, compares, empties, checks.
file_system() {
    local options=$1 make=$2 type
    shift 2
    attach "$NQN"
    type=${make%% *}
    type=${type#mkfs.}
    $make "$DEV" || fail "$make"
    mount -t "$type" -o "$options" "$DEV" /mnt || fail "cannot be mounted"
    tree /mnt/tree
    sync
    umount /mnt
    echo 3 >/proc/sys/vm/drop_caches
    "$@" "$DEV" || fail "$*: not clean after the first mount"
    mount -t "$type" -o "$options" "$DEV" /mnt
    (cd /mnt/tree && sha256sum -c sums) | grep -v ': OK$' && fail "files changed"
    rm -r /mnt/tree/programs
    if offers 2; then fstrim -v /mnt || fail "fstrim"; fi
    grep ' ./large$' /mnt/tree/sums >sums
    (cd /mnt/tree && sha256sum -c) <sums || fail "a file changed by fstrim"
    umount /mnt
    "$@" "$DEV" || fail "$*: not clean at last"
}

check_ext4() { file_system noatime "mkfs.ext4 -q -F" e2fsck -f -n; }
check_xfs() { file_system discard,noatime "mkfs.xfs -q -f" xfs_repair -n; }
