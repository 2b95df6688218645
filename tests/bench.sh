#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the release and runs its benchmarks, on a machine that should have nothing else to do.
#
#     sh tests/bench.sh                  all of them: five minutes
#     sh tests/bench.sh round commits    only these
#
#     round     a round of eight real clients over DTLS     commits   durable commits of a server
#     start     restarting a server, a waiting client       store     what the disk alone could do
#     kernels   training and folding                        coap      requests of the CoAP server
#     zipline   planning a barrier                          dbw       choosing how many to wait for
#     learn     the cheap models of learning                swarm     simulated clients, messages as times
#     deploy    simulated clients with every message
#     transfer  bodies over bad links, beside block-wise transfer
#     deploy    simulated clients with every message  rotate    coding after a random rotation
#     deploy    simulated clients with every message         fold      verifying and folding updates
#     deploy    simulated clients with every message        rotate    coding after a random rotation
#     transfer  bodies over bad links, beside block-wise transfer
#     quant     coding in 1 to 32 bits a value              sparse    coding the largest values only
#
# Prints one line for each figure,
#
#     bench NAME FIGURE UNIT ref REFERENCE FIGURE ratio X
#
# where the reference is a budget or something measured beside it. Fails when what a benchmark
# computes is wrong; no figure makes it fail.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
deps=${ELV_DEPS:-$root/.deps}

sh ports/packages.sh test >&2
DEPS_BUILD=1 sh ports/deps.sh "$deps" >&2
mkdir -p build
{ cmake --preset release -DELV_TESTS=ON -DELV_SIM=ON -DCMAKE_PREFIX_PATH="$deps" &&
    cmake --build build/release; } >build/release.log 2>&1 || {
    tail -n 30 build/release.log >&2
    exit 1
}

[ $# -gt 0 ] || set -- round commits start store kernels coap zipline dbw learn swarm deploy transfer
[ $# -gt 0 ] || set -- round commits start store kernels coap zipline dbw learn swarm deploy rotate
[ $# -gt 0 ] || set -- round commits start store kernels fold coap zipline dbw learn swarm deploy
[ $# -gt 0 ] || set -- round commits start store kernels coap zipline dbw learn swarm deploy \
    transfer rotate quant sparse
status=0
for name in "$@"; do
    program=build/release/tests/bench_$name
    if [ -f "tests/bench_$name.sh" ]; then
        sh "tests/bench_$name.sh" build/release || status=1
    elif [ -x "$program" ]; then
        (cd build/release && "tests/bench_$name") || status=1
    else
        echo "there is no benchmark '$name'" >&2
        exit 2
    fi
done
exit $status
