#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what Elver needs and builds its programs, as the other scripts here do before they start.
#
#     sh examples/build.sh [test]
#
# Debian's packages (as root, or through sudo without a question; otherwise it prints the command
# and exits 2), libcoap and Mbed TLS into .deps/ or the folder ELV_DEPS names, and Elver into
# build/release/; with `test` the tests, too. What is there already is not made again. Afterwards
# `cmake --install build/release --prefix /usr/local` installs everything.
set -eu

case ${1:-run} in
run | test) what=${1:-run} ;;
*)
    sed -n '3,10s/^# \{0,1\}//p' "$0"
    [ "$1" = -h ] || [ "$1" = --help ] || exit 2
    exit 0
    ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
deps=${ELV_DEPS:-$root/.deps} log=$root/build/release.log
tests=OFF
[ "$what" = run ] || tests=ON
say() { printf '== %s\n' "$*" >&2; }

sh "$root/ports/packages.sh" "$what" >&2
say "building libcoap and Mbed TLS (once; about half a minute)"
sh "$root/ports/deps.sh" "$deps" >&2
say "building Elver"
mkdir -p "$root/build"
{ cd "$root" && cmake --preset release -DELV_TESTS=$tests -DELV_SIM=ON -DCMAKE_PREFIX_PATH="$deps" &&
    cmake --build build/release; } >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    exit 1
}
