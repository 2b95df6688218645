#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Elver with several compilers and sanitizers and runs every test.
#
#     sh tests/run.sh                everything
#     sh tests/run.sh dev asan      only these stages, in this order
#
# Installs what it needs (as root, or through sudo; otherwise it prints the command and exits 2).
# Stages:
#     dev    gcc, optimised: all tests, those of the source tree and the slow ones among them
#     clang  clang, optimised: the tests that are neither of the tree nor slow
#     asan   gcc with AddressSanitizer and UndefinedBehaviorSanitizer: all but the slow ones
#     tsan   gcc with ThreadSanitizer: what uses threads
#     fuzz   clang with libFuzzer: each fuzz target for some seconds
# Ends with one line `N passed, N failed`; exits 1 when anything failed. Environment:
#     ELV_DEPS          prefix of libcoap and Mbed TLS (default .deps; built when it is not there)
#     ELV_JOBS          how many jobs to run at once (default: the processors)
#     ELV_FUZZ_SECONDS  how long each fuzz target runs (default 10, less when there are many)
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
deps=${ELV_DEPS:-$root/.deps}
jobs=${ELV_JOBS:-$(nproc)}
passed=0 failed=0 skipped=0 began=$(date +%s)

say() { printf '== %s\n' "$*"; }

# The reports of a failing sanitizer name lines; the first finding ends the program.
export ASAN_OPTIONS="${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}"

# A value of the <testsuite> element ctest writes.
suite_value() { # file attribute
    tr '\n\t' '  ' <"$1" | sed -n "s/^.*<testsuite [^>]*\b$2=\"\([0-9]*\)\".*\$/\1/p"
}

count() { # report
    if [ ! -s "$1" ]; then
        failed=$((failed + 1))
        return
    fi
    all=$(suite_value "$1" tests)
    bad=$(suite_value "$1" failures)
    left_out=$(($(suite_value "$1" skipped) + $(suite_value "$1" disabled)))
    [ "$all" -gt 0 ] || bad=1 all=1 # a stage that finds no tests has not passed
    passed=$((passed + all - bad - left_out))
    failed=$((failed + bad))
    skipped=$((skipped + left_out))
}

stage() { # preset, arguments for ctest...
    preset=$1
    shift
    start=$(date +%s)
    say "$preset: building"
    mkdir -p build
    log=build/$preset.log
    if ! { cmake --preset "$preset" -DCMAKE_PREFIX_PATH="$deps" \
        -DELV_FUZZ_SECONDS="$fuzz_seconds" &&
        cmake --build "build/$preset" --parallel "$jobs"; } >"$log" 2>&1; then
        grep -E -A5 'error|Error|FAILED|warning' "$log" | head -n 60
        say "$preset: does not build, see $log"
        failed=$((failed + 1))
        return
    fi
    say "$preset: testing, $(($(date +%s) - start)) s after its start"
    report=$root/build/$preset/report.xml
    rm -f "$report"
    ctest --test-dir "build/$preset" --parallel "$jobs" --output-on-failure \
        --no-tests=error --output-junit "$report" "$@"
    count "$report"
    say "$preset: done in $(($(date +%s) - start)) s; so far $passed passed, $failed failed," \
        "$skipped skipped"
}

for name in "$@"; do
    case $name in
    dev | clang | asan | tsan | fuzz) ;;
    -h | --help) sed -n '3,19s/^# \{0,1\}//p' "$0" && exit ;;
    *)
        echo "there is no stage '$name'; the stages are dev, clang, asan, tsan and fuzz" >&2
        exit 2
        ;;
    esac
done

sh ports/packages.sh test || exit
say "libcoap and Mbed TLS"
DEPS_BUILD=1 sh ports/deps.sh "$deps" || exit 1

targets=$(find tests -maxdepth 1 -name 'fuzz_*.c' ! -name fuzz_replay.c | wc -l)
fuzz_seconds=$((120 / (targets + 1)))
[ "$fuzz_seconds" -le 10 ] || fuzz_seconds=10
[ "$fuzz_seconds" -ge 2 ] || fuzz_seconds=2
fuzz_seconds=${ELV_FUZZ_SECONDS:-$fuzz_seconds}

[ $# -gt 0 ] || set -- dev clang asan tsan fuzz
for name in "$@"; do
    case $name in
    dev) stage dev ;;
    clang) stage clang -LE 'tree|slow|fuzz' ;;
    asan) stage asan -LE 'tree|slow' ;;
    tsan) stage tsan -L threads ;;
    fuzz) stage fuzz -L fuzz ;;
    esac
done

say "$skipped skipped, $(($(date +%s) - began)) s"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
