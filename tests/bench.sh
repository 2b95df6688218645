#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the release and runs its benchmarks.
#
#     sh tests/bench.sh               all of them
#     sh tests/bench.sh fold commits  only bench_fold and bench_commits
#
# Each prints its figures beside the reference it is measured against, and fails when what it
# computes is wrong; no figure makes it fail.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
deps=${ELV_DEPS:-$root/.deps}

sh ports/packages.sh test
DEPS_BUILD=1 sh ports/deps.sh "$deps"
mkdir -p build
{ cmake --preset release -DELV_TESTS=ON -DCMAKE_PREFIX_PATH="$deps" &&
    cmake --build build/release; } >build/release.log 2>&1 || {
    tail -n 30 build/release.log >&2
    exit 1
}

if [ $# -eq 0 ]; then
    for source in tests/bench_*.c; do
        [ -e "$source" ] || continue
        name=${source#tests/bench_}
        set -- "$@" "${name%.c}"
    done
fi
status=0
for name in "$@"; do
    program=build/release/tests/bench_$name
    if [ ! -x "$program" ]; then
        echo "there is no benchmark '$name'" >&2
        exit 2
    fi
    printf '== %s\n' "$name"
    "$program" || status=1
done
exit $status
