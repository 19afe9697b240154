# Steps of script/test that run where something changed since they last passed.
# To be sourced by bash after lib.sh and steps.sh; the caller's folder is the root of the tree.
# shellcheck shell=bash
#
# docs/unchanged.json holds a hash for each of these steps: over the files that it tests and tests
# with, and over the versions of the compilers and packages that it needs. A package that is not
# there counts by the version that apt would install, so that nothing is installed only to find
# that nothing changed. A machine with other versions has another hash, and runs the step.

UNCHANGED=docs/unchanged.json
PARITY_SOURCES=(Cargo.toml Cargo.lock .cargo crates/parity crates/units crates/layout fuzz/replay.rs
    fuzz/corpus/parity)

# sources STEP: the files and folders that a step depends on.
sources() {
    printf '%s\n' script/lib.sh
    case $1 in
        neon) printf '%s\n' script/test-neon "${PARITY_SOURCES[@]}" ;;
        kernels) printf '%s\n' script/kernels crates/parity-gpu/kernels ;;
        opencl) printf '%s\n' script/test-opencl "${PARITY_SOURCES[@]}" crates/parity-gpu crates/io ;;
    esac
}

# packages STEP: the packages of its tools.
packages() {
    case $1 in
        neon) printf '%s\n' qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
        kernels) printf '%s\n' clang-19 ;;
        opencl)
            printf '%s\n' gcc oclgrind libpocl2 pocl-opencl-icd ocl-icd-opencl-dev \
                opencl-c-headers
            ;;
    esac
}

# versions PACKAGE…: each with its version as it is installed, else as it would be.
versions() {
    # Where nobody knows, nothing is the same as before.
    command -v apt-cache >/dev/null 2>&1 || { date +%s%N; return; }
    LC_ALL=C apt-cache policy "$@" 2>/dev/null | awk '
        /^[^ ]/ { name = $1 }
        $1 == "Installed:" { found = $2 }
        $1 == "Candidate:" { print name, found == "(none)" ? $2 : found }'
}

# hash_of STEP: the hash over its sources and tools.
hash_of() {
    local files packages
    mapfile -t files < <(sources "$1")
    mapfile -t packages < <(packages "$1")
    {
        find "${files[@]}" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        [ "$1" = kernels ] || rustc -vV
        uname -m
        versions "${packages[@]}"
    } | sha256sum | cut -d ' ' -f 1
}

# keep_hash STEP: into the file, where the others stay.
keep_hash() {
    python3 - "$UNCHANGED" "$1" "$(hash_of "$1")" <<'PYTHON'
import json, sys
path, step, value = sys.argv[1:]
with open(path) as file:
    kept = json.load(file)
kept[step] = value
with open(path, "w") as file:
    json.dump(kept, file, indent=2, sort_keys=True)
    file.write("\n")
PYTHON
}

# unless_unchanged STEP KIND COMMAND…: runs `KIND STEP COMMAND…`, check or run_counted, unless its
# hash is the one that is kept. Where all is run a pass is kept.
unless_unchanged() {
    local step=$1 kind=$2 failed_before=$failed skipped_before=$skipped start
    shift 2
    start=$(now_ms)
    # A version that apt does not know yet would be none, and the step run for nothing.
    if [ -z "$all" ] && [ -n "$(apt_lists_missing)" ]; then update_packages; fi
    if [ -z "$all" ] && grep -qF "\"$step\": \"$(hash_of "$step")\"" "$UNCHANGED"; then
        unchanged+=("$step")
        report same "$step" $(($(now_ms) - start)) "unchanged since it last passed; not run"
        return
    fi
    "$kind" "$step" "$@"
    if [ -n "$all" ] && [ "$failed" = "$failed_before" ] && [ "$skipped" = "$skipped_before" ]; then
        keep_hash "$step"
    fi
}

# apt_lists_missing: says so where apt has never fetched its lists.
apt_lists_missing() {
    compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || echo yes
}
