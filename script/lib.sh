# Functions that scripts share: install what is missing, find a cargo that is new enough.
# To be sourced by bash from a script in this folder.
# shellcheck shell=bash

RUST_MINIMUM=1.89
# Where Debian keeps mke2fs, losetup and mount; not in every user's PATH.
PATH="$PATH:/usr/sbin:/sbin"

# What the build needs: "command:package".
BUILD_TOOLS=(cc:gcc)
# What the demo needs besides: clients of other people, and a maker and checker of file systems.
CLIENT_TOOLS=(nbdinfo:libnbd-bin nbdcopy:libnbd-bin qemu-img:qemu-utils mke2fs:e2fsprogs
    e2fsck:e2fsprogs python3:python3)
# What `script/demo --share` needs: "program:package", and "file:package" below /usr/lib/*.
SHARE_TOOLS=(smbd:samba smbclient:smbclient smbpasswd:samba-common-bin testparm:samba-common-bin
    smbcontrol:samba-common-bin smbstatus:samba ganesha.nfsd:nfs-ganesha nfs-cat:libnfs-utils
    mkfs.ext4:e2fsprogs blkid:util-linux wipefs:util-linux losetup:util-linux mount:mount)
SHARE_PLUGINS=(ganesha/libfsalvfs.so:nfs-ganesha-vfs libnss_wrapper.so:libnss-wrapper
    samba/vfs/acl_xattr.so:samba-vfs-modules)
# What the tests need besides.
TEST_TOOLS=("${SHARE_TOOLS[@]}" c++:g++ qemu-io:qemu-utils nbdfuse:libnbd-bin fio:fio
    qemu-storage-daemon:qemu-system-common tgtd:tgt tgtadm:tgt pgrep:procps
    iscsi-ls:libiscsi-bin iscsi-test-cu:libiscsi-bin
    smbtorture:samba-testsuite setpriv:util-linux nfs-ls:libnfs-utils
    fusermount3:fuse3 sqlite3:sqlite3 fsfreeze:util-linux
    mkfs.xfs:xfsprogs xfs_repair:xfsprogs blkdiscard:util-linux blockdev:util-linux
    fallocate:util-linux)
# Shared libraries that the tests compare with: "file:package".
TEST_LIBRARIES=(libisal.so.2:libisal2)
# What programs of others load besides, below /usr/lib/*: "file:package".
TEST_PLUGINS=("${SHARE_PLUGINS[@]}" qemu/block-iscsi.so:qemu-block-extra)
# What script/test-neon needs besides.
NEON_TOOLS=(qemu-aarch64:qemu-user aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu)

say() { printf '%s\n' "$*" >&2; }

# as_root COMMAND…: runs it as root, directly or through sudo; fails where neither is possible.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        return 1
    fi
}

# links: true if the C compiler can link a program (Rust links with it).
links() {
    local out rc=0
    out=$(mktemp) || return 1
    printf 'int main(void) { return 0; }\n' | cc -x c - -o "$out" >/dev/null 2>&1 || rc=1
    rm -f "$out"
    return $rc
}

# missing_packages COMMAND:PACKAGE…: prints the packages of commands that are not there.
missing_packages() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || printf '%s\n' "${pair#*:}"
    done | sort -u
}

# One at a time: tests that run side by side install what they need, and apt waits for nobody who
# reads its lists. Where something else of the system installs just now, it does.
APT_GET=(flock --close --wait 900 /tmp/palisade-packages.lock env DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o=Dpkg::Use-Pty=0 -o=DPkg::Lock::Timeout=300)

# update_packages: refreshes apt's lists, once a run.
update_packages() {
    [ -z "${APT_UPDATED:-}" ] || return 0
    APT_UPDATED=1
    as_root "${APT_GET[@]}" update </dev/null >&2 || say "warning: apt-get update failed"
}

# install_packages PACKAGE…: installs them by apt; says how where it can't. Never removes any.
install_packages() {
    [ $# -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        say "missing: $*; no apt-get here: install them with this system's package manager"
        return 1
    fi
    say "installing: $*"
    update_packages
    local log rc=0
    log=$(mktemp) || return 1
    as_root "${APT_GET[@]}" install --yes --no-remove --no-install-recommends "$@" \
        </dev/null >"$log" 2>&1 || rc=$?
    [ $rc = 0 ] || tail -n 20 "$log" >&2
    rm -f "$log"
    [ $rc != 0 ] || return 0
    say "could not install: $*; as root, run: apt-get install $*"
    return 1
}

# install_tools COMMAND:PACKAGE…: installs what is missing of them; quick when nothing is.
install_tools() {
    local packages
    mapfile -t packages < <(missing_packages "$@")
    install_packages "${packages[@]}"
}

# install_libraries FILE:PACKAGE…: installs what is missing of shared libraries.
install_libraries() {
    local pair packages=()
    for pair in "$@"; do
        ldconfig -p | grep -qF "${pair%%:*} " || packages+=("${pair#*:}")
    done
    install_packages "${packages[@]}"
}

# install_plugins FILE:PACKAGE…: installs what is missing of QEMU's plugins.
install_plugins() {
    local pair found packages=()
    for pair in "$@"; do
        found=(/usr/lib/*/"${pair%%:*}")
        [ -e "${found[0]}" ] || packages+=("${pair#*:}")
    done
    install_packages "${packages[@]}"
}

# new_enough VERSION: true if a version such as 1.96.0+dfsg1 is at least RUST_MINIMUM.
new_enough() {
    local least
    least=$(printf '%s\n%s\n' "$RUST_MINIMUM" "$1" | sort -V | head -n 1)
    [ -n "$1" ] && [ "$least" = "$RUST_MINIMUM" ]
}

# usable_rust FOLDER: true if the cargo and rustc there run and are new enough.
usable_rust() {
    local tool
    for tool in cargo rustc; do
        [ -x "$1/$tool" ] || return 1
        new_enough "$(cd "$ROOT" && "$1/$tool" --version </dev/null 2>/dev/null | awk '{print $2}')" \
            || return 1
    done
}

# choose_rust: puts the first usable Rust of PATH, ~/.cargo/bin and the system first in PATH.
choose_rust() {
    local folder
    for folder in "$(dirname "$(command -v cargo || echo /none/cargo)")" "$HOME/.cargo/bin" \
        /usr/bin /usr/lib/rust-*/bin; do
        if usable_rust "$folder"; then
            PATH="$folder:$PATH"
            export PATH
            return 0
        fi
    done
    return 1
}

# rust_packages: the distribution's package pairs that could be new enough, best first.
rust_packages() {
    local pair candidate version
    # Debian 12 and 13 keep a newer Rust for browsers; Ubuntu has versioned packages.
    for pair in "rustc-web cargo-web" \
        $(apt-cache pkgnames cargo-1. 2>/dev/null | grep -x 'cargo-1\.[0-9]*' | sort -rV \
            | sed 's/cargo-\(.*\)/rustc-\1_cargo-\1/') \
        "rustc cargo"; do
        pair=${pair/_/ }
        candidate=$(apt-cache policy "${pair##* }" 2>/dev/null | awk '/Candidate:/ {print $2}')
        # The candidate of Ubuntu's "cargo" can carry an epoch.
        version=$(printf '%s' "${candidate#*:}" | grep -o '^[0-9][0-9.]*')
        new_enough "$version" && printf '%s\n' "$pair"
    done
    return 0
}

# install_rust: makes sure that cargo and rustc in PATH are new enough.
install_rust() {
    choose_rust && return 0
    if command -v apt-get >/dev/null 2>&1; then
        update_packages
        local pair
        while read -r pair; do
            # shellcheck disable=SC2086 # two packages
            install_packages $pair && choose_rust && return 0
        done < <(rust_packages)
    fi
    say "no cargo $RUST_MINIMUM or newer: get one from https://rustup.rs and start again"
    return 1
}

# install_build: a linker, a Rust, and the certificates that cargo checks downloads with.
install_build() {
    [ -e /etc/ssl/certs/ca-certificates.crt ] || install_packages ca-certificates || return 1
    install_tools "${BUILD_TOOLS[@]}" || return 1
    links || install_packages gcc libc6-dev || return 1
    install_rust
}
