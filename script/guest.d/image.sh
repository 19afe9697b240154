# Builds what script/guest starts: a Debian kernel and an initramfs with what its guests use.
# To be sourced by bash after lib.sh.
# shellcheck shell=bash
#
# All of it is Debian 12, whatever this machine runs: apt works in a folder of its own with sources
# of its own, checks signatures with Debian's archive keys, and installs nothing. zfs-image.sh has
# more for the image with ZFS. $GUEST holds
#
#   apt/            apt's lists and the downloaded packages
#   KERNEL          a link to the newest image of a kernel: vmlinuz, initramfs, packages
#
# An image is made anew when a package in it or this file has changed, and replaced at one stroke.

. "$ROOT/script/guest.d/zfs-image.sh"
GUEST=${CARGO_TARGET_DIR:-$ROOT/target}/guest
# The kernels that there are images of: those made for clouds, which are small, one that has all
# drivers, Fibre Channel's too, and one with ZFS.
KERNELS=(6.1 6.1-zfs 6.12 6.12-generic)
# The packages that the guest's programs come from, with what they depend on.
GUEST_PACKAGES=(busybox-static coreutils dash e2fsprogs fio jq libiscsi-bin mdadm mount nvme-cli open-iscsi tgt util-linux xfsprogs
    cifs-utils libnss-wrapper nfs-common nfs-ganesha-vfs samba samba-vfs-modules smbclient)
GUEST_PROGRAMS=(bin/dash usr/sbin/nvme usr/bin/fio bin/dd usr/bin/seq sbin/blkdiscard sbin/blockdev
    sbin/fstrim sbin/mdadm usr/bin/jq sbin/losetup sbin/mkfs.ext4 sbin/e2fsck sbin/mkfs.xfs usr/sbin/xfs_repair sbin/xfs_repair
    sbin/iscsid sbin/iscsiadm usr/sbin/tgtd usr/sbin/tgtadm usr/bin/iscsi-test-cu usr/bin/iscsi-inq usr/bin/iscsi-ls usr/bin/timeout
    usr/sbin/smbd usr/bin/smbpasswd usr/bin/testparm usr/bin/smbcontrol usr/bin/smbclient usr/bin/ganesha.nfsd
    sbin/mount.cifs usr/sbin/mount.cifs sbin/mount.nfs4 usr/sbin/mount.nfs4 sbin/blkid sbin/wipefs usr/sbin/xfs_growfs
    sbin/xfs_growfs sbin/resize2fs)
# What these start or load besides, by its path.
GUEST_PLUGINS=(
    usr/lib/x86_64-linux-gnu/{libnss_wrapper.so,samba/vfs/acl_xattr.so,samba/vfs/streams_xattr.so,ganesha/libfsalvfs.so,libnfsidmap/nsswitch.so})
# With the modules that these need. What a kernel has built in is no module.
GUEST_MODULES=(nvme nvme-tcp nvmet nvmet-tcp virtio_pci virtio_net virtio_blk virtio_console ext4 xfs loop null_blk ublk_drv raid0 raid456
    target_core_mod target_core_iblock iscsi_target_mod iscsi_tcp sd_mod
    cifs nfs nfsv4 ccm cmac gcm ghash-generic nls_utf8
    crc32c-intel crc32c_generic libcrc32c crc32_generic)
# What kernels for clouds lack, and a generic one must have: Fibre Channel over Ethernet, with both
# sides of it, and NVMe over Fibre Channel within the machine.
GENERIC_MODULES=(libfc libfcoe fcoe scsi_transport_fc tcm_fc bridge veth 8021q nvme-fc nvmet-fc
    nvme-fcloop)
# What image needs on this machine.
IMAGE_TOOLS=(cpio:cpio xz:xz-utils readelf:binutils depmod:kmod flock:util-linux)
DEBIAN=http://deb.debian.org/debian
# ZFS is in contrib, and nothing of main needs that.
COMPONENTS='main contrib'
# Minutes for which apt's lists are believed.
LISTS_MINUTES=1440

# is_kernel NAME: true for the kernels that there are images of.
is_kernel() {
    local one
    for one in "${KERNELS[@]}"; do [ "$one" != "$1" ] || return 0; done
    return 1
}

# mirrors: where this machine gets Debian from, then where anyone can.
mirrors() {
    # shellcheck disable=SC2016 # apt's own fields
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' \
        2>/dev/null | sed -n 's/^Debian|Debian|\(.*[^/]\)\/*$/\1/p' | sort -u
    printf '%s\n' "$DEBIAN"
}

# private_apt COMMAND ARGUMENT…: apt-get or apt-cache in the folder of our own.
private_apt() {
    local command=$1
    shift
    env DEBIAN_FRONTEND=noninteractive "$command" -qq \
        -o "Dir::State=$GUEST/apt/state" -o Dir::State::status=/dev/null \
        -o "Dir::Cache=$GUEST/apt/cache" -o "Dir::Etc::sourcelist=$GUEST/apt/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null \
        -o Dir::Etc::preferencesparts=/dev/null \
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Acquire::Languages=none \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o APT::Update::Error-Mode=any -o APT::Get::AllowUnauthenticated=false "$@" </dev/null
}

# archive_keys: the file with the keys that Debian signs its archive with.
archive_keys() {
    local keys
    for keys in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
        [ ! -e "$keys" ] || { printf '%s\n' "$keys"; return 0; }
    done
    return 1
}

# has_lists: true if apt's lists are there, not old, and of all that is needed.
has_lists() {
    [ -n "$(find "$GUEST/apt/updated" -mmin -$LISTS_MINUTES 2>/dev/null)" ] \
        && grep -qw "$COMPONENTS" "$GUEST/apt/sources.list"
}

# update_lists: fetches apt's lists if they are missing or old.
update_lists() {
    local mirror keys
    ! has_lists || return 0
    archive_keys >/dev/null || install_packages debian-archive-keyring || return 1
    keys=$(archive_keys) || return 1
    mkdir -p "$GUEST"/apt/state/lists/partial "$GUEST"/apt/cache/archives/partial
    while read -r mirror; do
        printf "deb [signed-by=$keys] $mirror %s $COMPONENTS\n" bookworm bookworm-backports \
            >"$GUEST/apt/sources.list"
        if private_apt apt-get update >"$GUEST/apt/log" 2>&1; then
            touch "$GUEST/apt/updated"
            return 0
        fi
        say "guest: no Debian 12 from $mirror"
    done < <(mirrors)
    cat "$GUEST/apt/log" >&2
    return 1
}

# is_generic KERNEL: true unless it is one made for clouds.
is_generic() { [ "$1" != "${1%-generic}" ]; }

# kernel_package KERNEL: the package with the newest kernel of this line and flavour.
kernel_package() {
    local line=${1%-*} newest=linux-image-cloud-amd64
    ! is_generic "$1" || newest=linux-image-amd64
    private_apt apt-cache show "$newest" \
        | grep -o "^Depends: linux-image-${line//./\\.}\.[^ ]*" | sed 's/^Depends: //' \
        | sort -V | tail -n 1
}

# needed_packages KERNEL PACKAGE: one line for each file: address, name, size, checksum. An empty
# folder instead of the downloaded packages lets apt name also what is there.
needed_packages() {
    mkdir -p "$GUEST/apt/empty/partial"
    private_apt apt-get install -o "Dir::Cache::archives=$GUEST/apt/empty" --print-uris --no-install-recommends "${GUEST_PACKAGES[@]}" \
        && private_apt apt-get download --print-uris "$2" || return 1
    ! is_zfs "$1" || needed_for_zfs "$2"
}

# fetch_packages PACKAGE: downloads what is not there yet.
fetch_packages() {
    private_apt apt-get install --download-only --yes --no-install-recommends \
        "${GUEST_PACKAGES[@]}" \
        && (cd "$GUEST/apt/cache/archives" && private_apt apt-get download "$1") \
        && private_apt apt-get autoclean
}

# needed_libraries ROOT FILE: names of shared libraries that the file asks for.
needed_libraries() {
    readelf -d "$1/$2" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# add_program ROOT STAGE PATH [FOLDER]: copies it to that folder, bin if none is given, and what it
# needs of libraries to lib/.
add_program() {
    local root=$1 stage=$2 to=${4:-bin} name folder wanted
    mkdir -p "$stage/$to" && cp -L "$root/$3" "$stage/$to/" || return 1
    mapfile -t wanted < <(needed_libraries "$stage" "$to/${3##*/}")
    while [ ${#wanted[@]} -gt 0 ]; do
        name=${wanted[0]}
        wanted=("${wanted[@]:1}")
        [ ! -e "$stage/lib/$name" ] || continue
        for folder in {usr/,}lib/x86_64-linux-gnu{,/ceph,/samba} usr/lib/ganesha; do
            [ -e "$root/$folder/$name" ] || continue
            cp -L "$root/$folder/$name" "$stage/lib/$name"
            mapfile -t -O ${#wanted[@]} wanted < <(needed_libraries "$stage" "lib/$name")
            break
        done
        [ -e "$stage/lib/$name" ] || { say "guest: no package holds $name of $3"; return 1; }
    done
}

# module_files INDEX NAME: the module and those that it needs, one a line; none for one that the
# kernel lacks or has built in. Files have `-` or `_` where the name has either.
module_files() {
    sed -n "s|^\\(.*/${2//[-_]/[-_]}\\.ko[.xz]*\\):\\(.*\\)|\\1\\2|p" "$1" | tr ' ' '\n'
}

# add_modules ROOT STAGE VERSION KERNEL: the modules, unpacked so that they load fast, and their
# index.
add_modules() {
    local root=$1 stage=$2 version=$3 names=("${GUEST_MODULES[@]}") name file
    local from=$root/lib/modules/$version
    [ -d "$from" ] || from=$root/usr/lib/modules/$version
    local to=$stage/lib/modules/$version
    mkdir -p "$to"
    cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/" || return 1
    depmod -b "${from%/lib/modules/*}" "$version" || return 1
    if is_generic "$4"; then
        for name in "${GENERIC_MODULES[@]}"; do
            [ -n "$(module_files "$from/modules.dep" "$name")" ] \
                || { say "guest: kernel $version has no module $name"; return 1; }
        done
        names+=("${GENERIC_MODULES[@]}")
    fi
    ! is_zfs "$4" || names+=("${ZFS_MODULES[@]}")
    for name in "${names[@]}"; do
        module_files "$from/modules.dep" "$name"
    done | sort -u | while read -r file; do
        mkdir -p "$to/${file%/*}"
        case $file in
            *.xz) xz -dc "$from/$file" >"$to/${file%.xz}" ;;
            *) cp "$from/$file" "$to/$file" ;;
        esac
    done
    depmod -b "$stage" "$version"
}

# make_image KERNEL PACKAGE FOLDER: vmlinuz and initramfs from the downloaded packages.
make_image() {
    local version=${2#linux-image-} root=$3/root stage=$3/stage deb program
    local programs=("${GUEST_PROGRAMS[@]}")
    mkdir -p "$root" "$stage"/{bin,dev,etc,lib,mnt,proc,run,sys,tmp,usr}
    for deb in "$GUEST"/apt/cache/archives/*.deb; do
        case ${deb##*/} in
            linux-image-*) [ "${deb##*/}" = "$2_${deb#*_}" ] || continue ;;
        esac
        dpkg-deb -x "$deb" "$root" || return 1
    done
    if is_zfs "$1"; then
        unpack_zfs "$root" "$version" || return 1
        programs+=("${ZFS_PROGRAMS[@]}")
    fi
    cp "$root/boot/vmlinuz-$version" "$3/vmlinuz" || return 1
    cp "$root"/bin/busybox "$stage/bin/busybox" || return 1
    # Programs ask for this folder by name, and may be anywhere.
    ln -s lib "$stage/lib64"
    ln -s ../bin "$stage/usr/sbin"
    ln -s ../bin "$stage/usr/bin"
    ln -s bin "$stage/sbin"
    cp -L "$root/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$stage/lib/" || return 1
    for program in "${programs[@]}"; do
        [ ! -e "$root/$program" ] || add_program "$root" "$stage" "$program" || return 1
    done
    for program in "${GUEST_PLUGINS[@]}"; do
        add_program "$root" "$stage" "$program" "${program%/*}" || return 1
    done
    cp "$root"/etc/{mke2fs.conf,netconfig} "$stage/etc/" || return 1
    add_modules "$root" "$stage" "$version" "$1" || return 1
    # Not compressed: an emulated machine unpacks slowly.
    (cd "$stage" && find . -print0 | LC_ALL=C sort -z \
        | cpio --quiet --null --create --format=newc --owner=0:0) >"$3/initramfs" || return 1
    rm -rf "$root" "$stage"
}

# builders KERNEL: the files that the image depends on.
builders() {
    printf '%s\n' "$ROOT/script/guest.d/image.sh"
    ! is_zfs "$1" || printf '%s\n' "$ROOT/script/guest.d/zfs-image.sh"
}

# build_image KERNEL: makes $GUEST/KERNEL new, if it has to be.
build_image() {
    local kernel=$1 package key new old log=$GUEST/apt/log
    package=$(kernel_package "$kernel")
    [ -n "$package" ] || { say "guest: Debian 12 has no kernel $kernel"; return 1; }
    needed_packages "$kernel" "$package" >"$GUEST/apt/needed" || return 1
    key=$({ awk '{ print $2, $4 }' "$GUEST/apt/needed" && builders "$kernel" | xargs -d '\n' cat; } \
        | sha256sum | cut -c 1-16)
    [ ! -e "$GUEST/$kernel.$key/initramfs" ] || [ ! -e "$GUEST/$kernel/initramfs" ] \
        || [ "$(readlink "$GUEST/$kernel")" != "$kernel.$key" ] || return 0
    say "guest: building the image of $package"
    install_tools "${IMAGE_TOOLS[@]}" || return 1
    (fetch_packages "$package" && { ! is_zfs "$kernel" || fetch_zfs "$package"; }) >"$log" 2>&1 \
        || { tail -n 20 "$log" >&2; return 1; }
    new=$(mktemp -d "$GUEST/new.XXXXXX") || return 1
    chmod 755 "$new"
    awk '{ print $2, $4 }' "$GUEST/apt/needed" >"$new/packages"
    if ! make_image "$kernel" "$package" "$new"; then
        rm -rf "$new"
        return 1
    fi
    old=$(readlink "$GUEST/$kernel")
    rm -rf "$GUEST/$kernel.$key"
    mv "$new" "$GUEST/$kernel.$key"
    ln -s "$kernel.$key" "$new.link"
    mv -T "$new.link" "$GUEST/$kernel"
    [ -z "$old" ] || [ "$old" = "$kernel.$key" ] || rm -rf "${GUEST:?}/$old"
}

# is_fresh KERNEL: true if neither apt's lists nor a builder are newer than when it was last looked.
is_fresh() {
    local image=$GUEST/$1/initramfs file
    has_lists && [ "$image" -nt "$GUEST/apt/updated" ] || return 1
    while read -r file; do
        [ "$image" -nt "$file" ] || return 1
    done < <(builders "$1")
}

# image KERNEL: makes sure that $GUEST/KERNEL is there and new; one at a time on a machine. An
# image that is there already serves where Debian cannot be reached.
image() {
    command -v apt-get >/dev/null 2>&1 || { say "guest: no apt-get: this needs Debian's"; return 1; }
    mkdir -p "$GUEST"
    (
        flock 9
        is_fresh "$1" && exit 0
        update_lists && build_image "$1" && touch "$GUEST/$1/initramfs"
    ) 9>"$GUEST/lock" && return 0
    [ -e "$GUEST/$1/initramfs" ] || return 1
    say "guest: the image of kernel $1 could not be made new; the old one serves"
}
