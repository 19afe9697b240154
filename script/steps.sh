# Steps of script/test: run, time, count and report.
# To be sourced by bash after lib.sh; the caller's folder is the root of the tree.
# shellcheck shell=bash

TARGET=${CARGO_TARGET_DIR:-target}
# Set where nothing was built yet.
COLD=
[ -e "$TARGET/debug" ] || COLD=1
LOGS=$TARGET/test-logs
mkdir -p "$LOGS"
# Of this run only.
rm -f "$LOGS"/*.end "$LOGS"/*.log
# The canary and eleven bugs of different kinds that the trials must catch.
MUTANTS=canary,trust-parity,never-unclean,fua-dropped,resync-skips,same-slot,flush-early,copy-any,stop-unflushed,ana-ignored,owner-unread,take-over-early
passed=0 failed=0 skipped=0
skips=()
failures=()
# Steps that were not run, as nothing that they test has changed (unchanged.sh).
unchanged=()
# STEP MILLISECONDS of each step.
spans=()

# now_ms: milliseconds since 1970.
now_ms() { date +%s%3N; }
BEGUN=$(now_ms)

# seconds MILLISECONDS: with one decimal.
seconds() { printf '%s.%s' $(($1 / 1000)) $(($1 % 1000 / 100)); }

# report WORD STEP MILLISECONDS [TEXT]: one line about a step.
report() {
    spans+=("$2 $3")
    printf '%-7s %-12s %6s s  %s\n' "$1" "$2" "$(seconds "$3")" "${4:-}"
}

# fail WHAT WHY: counts a failure that is no test's.
fail() {
    failed=$((failed + 1))
    failures+=("$1: $2")
}

# skip WHAT WHY: counts something left out.
skip() {
    skipped=$((skipped + 1))
    skips+=("$1: $2")
}

# check STEP COMMAND…: a step that passes or fails as one.
check() {
    local step=$1 start rc=0
    shift
    start=$(now_ms)
    "$@" >"$LOGS/$step.log" 2>&1 || rc=$?
    judge "$step" "$rc" $(($(now_ms) - start)) "$*"
}

# left_out STEP: a step that ended with status 77: its log's last line says why nothing could be tested.
left_out() {
    local why
    why=$(tail -n 1 "$LOGS/$1.log")
    if [ "${CI:-}" = true ]; then fail "$1" "$why"; else skip "$1" "$why"; fi
}

# judge STEP STATUS MILLISECONDS COMMAND: counts a step that passes or fails as one, by its log.
judge() {
    if [ "$2" = 77 ]; then
        left_out "$1"
    elif [ "$2" = 0 ]; then
        passed=$((passed + 1))
        report ok "$1" "$3" "$(tail -n 1 "$LOGS/$1.log" | cut -c 1-100)"
    else
        fail "$1" "$4 (status $2)"
        cat "$LOGS/$1.log"
        report FAILED "$1" "$3"
    fi
}

# component STEP PROGRAM PACKAGE COMMAND…: as check, where PROGRAM is an optional part of Rust
# that a distribution may lack: PACKAGE is tried, then the step is skipped (in CI: fails).
component() {
    local step=$1 program=$2 package=$3
    shift 3
    # A rustup proxy exists even where its component does not: ask it.
    if ! "$program" --version >/dev/null 2>&1 && [ -n "$package" ]; then
        install_packages "$package"
    fi
    if "$program" --version >/dev/null 2>&1; then
        check "$step" "$@"
    elif [ "${CI:-}" = true ]; then
        fail "$step" "this Rust has no $program"
    else
        skip "$step" "this Rust has no $program"
    fi
}

# count_cargo LOG: sums up `test result:` lines and lists failed and skipped tests. A failed test is
# told with the first lines of its panic: who reads the end of a run sees what it was. A test skips
# itself by printing `skipped: WHY`; an ignored one carries its reason in the attribute.
count_cargo() {
    awk '
        /^test result:/ {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) passed += $i
                if ($(i + 1) ~ /^failed/) failed += $i
                if ($(i + 1) ~ /^ignored/) ignored += $i
            }
        }
        /^test .* \.\.\. FAILED/ { failures[++failures_count] = $2; why[$2] = "" }
        /^test .* \.\.\. ignored/ {
            name = $2; reason = $0
            if (!sub(/^.*\.\.\. ignored, /, "", reason)) reason = "ignored without a reason"
            print "skip " name ": " reason
        }
        /^---- .* stdout ----$/ { current = $2; lines = 0 }
        /^(stack backtrace|note: |$)/ { lines = 0 }
        lines > 0 && length($0) > 0 { why[current] = why[current] " " substr($0, 1, 300); lines-- }
        /^thread .* panicked at / && (current in why) && why[current] == "" {
            at = $0; sub(/^.* panicked at /, "", at)
            why[current] = " " at; lines = 6
        }
        /^skipped: / {
            if (!(current in seen)) { print "skip " current ": " substr($0, 10); own++ }
            seen[current] = 1
        }
        END {
            for (i = 1; i <= failures_count; i++)
                print "failure " failures[i] (why[failures[i]] ? ":" why[failures[i]] : "")
            print "sum " passed - own, failed + 0, ignored + own
        }
    ' "$1"
}

# take_counts: reads the lines of count_cargo or count_python into the totals.
take_counts() {
    local kind rest p f s
    step_passed=0 step_failed=0 step_skipped=0
    while read -r kind rest; do
        case $kind in
            failure) failures+=("$rest") ;;
            skip) skips+=("$rest") ;;
            sum)
                read -r p f s <<<"$rest"
                step_passed=$((step_passed + p)) step_failed=$((step_failed + f))
                step_skipped=$((step_skipped + s))
                ;;
        esac
    done
    passed=$((passed + step_passed)) failed=$((failed + step_failed))
    skipped=$((skipped + step_skipped))
}

# cargo_tests STEP ARGUMENT…: `cargo test` of the workspace, all of it even if a part fails.
cargo_tests() {
    local step=$1
    shift
    run_counted "$step" cargo test --workspace --locked --no-fail-fast "$@"
}

# run_counted STEP COMMAND…: a step that is counted by the tests that cargo runs in it. Status 77
# says on the log's last line why nothing could be tested: skipped (in CI: failed).
run_counted() {
    run_logged "$@"
    take_up "$1"
}

# beside STEP COMMAND…: starts what run_counted runs, and goes on; `joined STEP` waits and counts.
beside() {
    set -m
    run_logged "$@" &
    set +m
    running[$1]=$!
}
# What was started beside, each a process group of its own.
declare -A running

# stop_running: ends what runs beside, and all that it started.
stop_running() {
    local group
    for group in "${running[@]}"; do kill -- "-$group" 2>/dev/null; done
}

# joined STEP LEAST: see beside. Tests that are known by their names can lose them: fewer than LEAST
# that passed, failed or were skipped are a failure.
joined() {
    wait "${running[$1]}"
    take_up "$1"
    [ "$((step_passed + step_failed + step_skipped))" -ge "$2" ] \
        || fail "$1" "fewer than $2 tests were run: did their names change?"
}

# beside_all NAME FUNCTION: starts a function that takes steps by run_logged, one after the other,
# where nothing else wants the processors; `judged NAME STEP…` waits and counts each.
beside_all() {
    set -m
    (renice -n 10 -p "$BASHPID" >/dev/null && "$2") &
    set +m
    running[$1]=$!
}

# judged NAME STEP…: see beside_all. A step that did not come to its end has failed.
judged() {
    local step rc span command
    wait "${running[$1]}"
    shift
    for step in "$@"; do
        rc='' span='' command=''
        [ ! -e "$LOGS/$step.end" ] || read -r rc span command <"$LOGS/$step.end"
        [ -e "$LOGS/$step.log" ] || : >"$LOGS/$step.log"
        judge "$step" "${rc:-1}" "${span:-0}" "${command:-was not run to its end}"
    done
}

# run_logged STEP COMMAND…: runs it; its output goes to STEP.log, how it ended to STEP.end.
run_logged() {
    local step=$1 start rc=0
    shift
    start=$(now_ms)
    "$@" >"$LOGS/$step.log" 2>&1 || rc=$?
    printf '%s %s %s\n' $rc $(($(now_ms) - start)) "$*" >"$LOGS/$step.end"
}

# take_up STEP: counts what run_logged left; of one that was killed that is nothing.
take_up() {
    local step=$1 rc span command word=ok
    step_passed=0 step_failed=0 step_skipped=0
    read -r rc span command <"$LOGS/$step.end"
    if [ "${rc:=1}" = 77 ]; then
        left_out "$step"
        return
    fi
    take_counts < <(count_cargo "$LOGS/$step.log")
    if [ "$rc" != 0 ]; then
        word=FAILED
        grep -vE '^test .* \.\.\. ok$|^ +(Compiling|Downloaded|Downloading) ' "$LOGS/$step.log"
        # A program that does not build, or dies, has no result line.
        [ "$step_failed" -gt 0 ] || fail "$step" "${command:-it} ended with status $rc"
    fi
    report $word "$step" "${span:-0}" \
        "$step_passed passed, $step_failed failed, $step_skipped skipped"
}

# parity_kernels STEP…: how the tests of these steps ran each parity kernel, a line each. NEON that
# is unchanged was not run.
parity_kernels() {
    local logs=() step
    for step in "$@"; do
        [ ! -e "$LOGS/$step.log" ] || logs+=("$LOGS/$step.log")
    done
    awk -v unchanged=" ${unchanged[*]} " '
        /^parity kernel [^ ]+: / {
            name = $3; sub(/:$/, "", name)
            if (!(name in seen)) names[++count] = name
            seen[name] = 1
            if ($4 == "natively" || $4 == "emulated" || $4 == "model") ran[name, $4] = 1
        }
        END {
            if (!("neon" in seen)) names[++count] = "neon"
            if (unchanged ~ / neon /) ran["neon", "unchanged"] = 1
            for (i = 1; i <= count; i++) {
                name = names[i]; text = ""
                if ((name, "natively") in ran) text = "natively"
                if ((name, "emulated") in ran) text = text (text ? ", " : "") "under emulation"
                if ((name, "model") in ran) text = text (text ? ", on the model" : "on the model only")
                if ((name, "unchanged") in ran)
                    text = text (text ? "; " : "") "not run: unchanged since it last passed under emulation"
                printf "parity kernel %-12s %s\n", name, text ? text : "NOT RUN"
            }
        }
    ' "${logs[@]}" /dev/null
}

# count_python LOG: as count_cargo, of `python3 -m unittest -v`.
count_python() {
    awk '
        / \.\.\. (FAIL|ERROR)$/ { print "failure " $1; failed++ }
        / \.\.\. skipped / { why = $0; sub(/^.*\.\.\. skipped /, "", why); print "skip " $1 ": " why; skipped++ }
        / \.\.\. ok$/ { passed++ }
        END { print "sum " passed + 0, failed + 0, skipped + 0 }
    ' "$1"
}

# python_tests: every folder with test_*.py, by the standard library's runner.
python_tests() {
    local folder start rc word
    while read -r folder; do
        start=$(now_ms) rc=0 word=ok
        python3 -m unittest discover -v -s "$folder" >"$LOGS/python.log" 2>&1 || rc=$?
        take_counts < <(count_python "$LOGS/python.log")
        if [ $rc != 0 ]; then
            word=FAILED
            cat "$LOGS/python.log"
            [ "$step_failed" -gt 0 ] || fail python "unittest in $folder ended with status $rc"
        fi
        report $word python $(($(now_ms) - start)) \
            "$folder: $step_passed passed, $step_failed failed, $step_skipped skipped"
    done < <(find . \( -name target -o -name .git \) -prune -o -name 'test_*.py' -printf '%h\n' \
        | sort -u)
}

# machine: this one, in a line.
machine() {
    local model
    model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    printf '%s x %s, %s MiB, Linux %s' "$(nproc)" "${model:-$(uname -m)}" \
        "$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)" "$(uname -r)"
}

# times KEY: the seconds of all steps, and of the run by this key, as JSON.
times() {
    local span comma=
    printf '{\n  "machine": "%s",\n  "commit": "%s",\n' "$(machine | tr -d '"\\')" \
        "$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)"
    printf '  "%s": %s,\n  "steps": [' "$1" "$(seconds $(($(now_ms) - BEGUN)))"
    for span in "${spans[@]}"; do
        printf '%s\n    {"name": "%s", "seconds": %s}' "$comma" "${span% *}" "$(seconds "${span#* }")"
        comma=,
    done
    printf '\n  ]\n}\n'
}

# slowest: the five slowest steps, and how long all of it took; nothing where no step was run.
slowest() {
    local span text=
    [ "${#spans[@]}" -gt 0 ] || return 0
    while read -r span; do
        text+="${text:+, }${span% *} $(seconds "${span#* }") s"
    done < <(printf '%s\n' "${spans[@]}" | sort -k 2 -n -r | head -n 5)
    printf 'slowest of %s s: %s\n' "$(seconds $(($(now_ms) - BEGUN)))" "$text"
}

# finish: the slowest steps, what was skipped and what failed, then the sum as the last line; ends
# the script.
finish() {
    local line
    times "${COLD:+cold_}seconds" >"$LOGS/times.json"
    if [ -n "${record:-}" ]; then
        if [ "$failed" = 0 ]; then
            cp "$LOGS/times.json" docs/test-times.json
        else
            say "docs/test-times.json is as it was: something failed"
        fi
    fi
    slowest
    for line in "${skips[@]}"; do printf 'skipped: %s\n' "$line"; done
    for line in "${failures[@]}"; do printf 'failed: %s\n' "$line"; done
    printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
    exit
}
