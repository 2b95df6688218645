#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/bench_transfer.sh BUILD - bench_transfer with a libcoap that has Q-Block, to compare with.
#
# Elver's own libcoap is built without it. The same script builds another one, with nothing else
# changed, once; where that cannot be had, the benchmark runs with the usual one and says so.
set -eu
build=$1
root=$(cd "$(dirname "$0")/.." && pwd)
deps=${ELV_DEPS:-$root/.deps}
with=$root/build/q-block

make_one() {
    mkdir -p "$with/ports/libcoap" "$with/deps"
    cp -R "$root/ports/libcoap/patches" "$with/ports/libcoap"
    sed 's/ENABLE_Q_BLOCK=OFF/ENABLE_Q_BLOCK=ON/' "$root/ports/deps.sh" >"$with/ports/deps.sh"
    DEPS_BUILD=1 DEPS_CACHE=${DEPS_CACHE:-$deps/.build/dl} sh "$with/ports/deps.sh" "$with/deps" &&
        cmake --preset release -B "$with/build" -DELV_TESTS=ON -DELV_SIM=ON \
            -DCMAKE_PREFIX_PATH="$with/deps" &&
        cmake --build "$with/build" --target bench_transfer
}

mkdir -p "$with"
if make_one >"$with/log" 2>&1; then
    program=$with/build/tests/bench_transfer
else
    echo "bench_transfer: no libcoap with Q-Block could be built, see $with/log" >&2
    program=$build/tests/bench_transfer
fi
exec "$program"
