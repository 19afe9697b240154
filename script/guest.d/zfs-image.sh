# What the guest's image with ZFS has besides: modules that are built of zfs-dkms, and programs.
# To be sourced by bash after image.sh.
# shellcheck shell=bash
#
# ZFS is no part of Linux: its modules are built for one kernel, of sources in Debian's `contrib`.
# Neither they nor dkms are installed here: the sources are built in a folder of their own, against
# the headers of the image's kernel, which are unpacked beside them. $GUEST holds
#
#   apt/zfs/        the downloaded packages
#   zfs.KEY/        the modules of a kernel and a ZFS, in a version each; or, where they could not
#                   be built, no such folder, and the log of it, zfs.log

# Debian's programs of ZFS, with their libraries.
ZFS_PACKAGES=(zfsutils-linux libzfs4linux libzpool5linux libnvpair3linux libuutil3linux)
# shellcheck disable=SC2034 # image.sh reads both
ZFS_PROGRAMS=(sbin/zfs sbin/zpool sbin/mount.zfs)
# Modules of the image besides: a volume is a device there by FUSE.
# shellcheck disable=SC2034
ZFS_MODULES=(zfs fuse)

# is_zfs KERNEL: true for an image with ZFS.
is_zfs() { [ "$1" != "${1%-zfs}" ]; }

# header_packages PACKAGE: the packages that modules of this kernel are built with: its headers,
# those that all flavours share, and programs of the build.
header_packages() {
    local own=linux-headers-${1#linux-image-}
    printf '%s\n' "$own"
    private_apt apt-cache show "$own" | sed -n 's/^Depends: //p' | head -n 1 \
        | grep -oE 'linux-(headers|kbuild)-[^ ,]+'
}

# zfs_packages PACKAGE: all that is to be downloaded besides, for this kernel.
zfs_packages() {
    header_packages "$1"
    printf '%s\n' zfs-dkms "${ZFS_PACKAGES[@]}"
}

# needed_for_zfs PACKAGE: lines as those of needed_packages; apt names what is there already, too,
# where it looks into an empty folder.
needed_for_zfs() {
    local packages
    mapfile -t packages < <(zfs_packages "$1")
    (cd "$GUEST/apt/empty" && private_apt apt-get download --print-uris "${packages[@]}")
}

# fetch_zfs PACKAGE: downloads what is not there yet, and leaves no other versions.
fetch_zfs() {
    local packages deb folder=$GUEST/apt/zfs
    mapfile -t packages < <(zfs_packages "$1")
    mkdir -p "$folder" && cd "$folder" || return 1
    for deb in *.deb; do
        grep -qF " $deb " "$GUEST/apt/needed" || rm -f "$deb"
    done
    private_apt apt-get download "${packages[@]}"
}

# zfs_key PACKAGE: what the modules of this kernel depend on: the packages, and how they are built.
zfs_key() {
    local name
    {
        for name in $(header_packages "$1") zfs-dkms; do
            awk -v name="${name}_" 'index($2, name) == 1 { print $2, $4 }' "$GUEST/apt/needed"
        done
        declare -f build_zfs
    } | sha256sum | cut -c 1-16
}

# build_zfs VERSION FOLDER: builds the modules for the kernel in FOLDER, where packages are unpacked
# in root/, and puts them into modules/.
build_zfs() {
    local version=$1 folder=$2 source compiler file
    local headers=$folder/root/usr/src/linux-headers-$version
    local common=$folder/root/usr/src/linux-headers-${version%%-cloud-*}
    common=${common%-amd64}-common
    # The headers name where they would be installed, and the compiler.
    sed -i "s|/usr/src/|$folder/root/usr/src/|g" "$headers/Makefile" || return 1
    compiler=$(sed -n 's/^CC = .*\(gcc-[0-9]*\)$/\1/p' "$headers/.kernelvariables")
    install_tools "${compiler:=gcc}:$compiler" make:make file:file && install_libraries \
        libelf.so.1:libelf1 || return 1
    links || install_packages libc6-dev || return 1
    for source in "$folder"/root/usr/src/zfs-*; do break; done
    # zfs-dkms has configure with it: nothing makes that anew.
    (cd "$source" && ./configure CC="$compiler" KERNEL_CC="$compiler" --with-config=kernel \
        "--with-linux=$common" "--with-linux-obj=$headers" && make -j"$(nproc)") || return 1
    mkdir "$folder/modules"
    find "$source/module" -name '*.ko' >"$folder/built"
    while read -r file; do
        strip --strip-debug -o "$folder/modules/${file##*/}" "$file" || return 1
    done <"$folder/built"
    [ -e "$folder/modules/zfs.ko" ]
}

# zfs_modules PACKAGE: makes sure that the modules for this kernel are there, and sets ZFS_BUILT to
# their folder. The last ones stay until there are others.
zfs_modules() {
    local new deb rc=0 key old
    key=$(zfs_key "$1")
    ZFS_BUILT=$GUEST/zfs.$key
    [ ! -e "$ZFS_BUILT/zfs.ko" ] || return 0
    say "guest: building ZFS for ${1#linux-image-}: this takes minutes"
    new=$(mktemp -d "$GUEST/new.XXXXXX") || return 1
    mkdir "$new/root"
    for deb in "$GUEST"/apt/zfs/{linux-*,zfs-dkms_*}.deb; do
        dpkg-deb -x "$deb" "$new/root" || rc=1
    done
    [ $rc != 0 ] || build_zfs "${1#linux-image-}" "$new" >"$GUEST/zfs.log" 2>&1 || rc=1
    if [ $rc = 0 ]; then
        for old in "$GUEST"/zfs.*/; do rm -rf "$old"; done
        mv "$new/modules" "$ZFS_BUILT"
    else
        tail -n 20 "$GUEST/zfs.log" >&2
    fi
    rm -rf "$new"
    return $rc
}

# unpack_zfs ROOT VERSION: adds ZFS to where the image's packages are unpacked.
unpack_zfs() {
    local name to=$1/lib/modules/$2
    zfs_modules "linux-image-$2" || return 1
    [ -d "$to" ] || to=$1/usr/lib/modules/$2
    mkdir "$to/zfs" && cp "$ZFS_BUILT"/*.ko "$to/zfs/" || return 1
    for name in "${ZFS_PACKAGES[@]}"; do
        dpkg-deb -x "$GUEST/apt/zfs/$name"_*.deb "$1" || return 1
    done
}
