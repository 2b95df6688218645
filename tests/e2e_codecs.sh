#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_codecs.sh BUILD - real programs learn with updates and new versions in few bits each.
. "$(dirname "$0")/e2e.sh"
make_world

for codec in f16 'q8 stochastic' 'q4 stochastic' sign; do
    say "$codec both ways"
    start_server --set "transfer.up=$codec" --set "transfer.down=$codec" --set job.rounds=6
    start_clients
    await_result 60
    [ "$(result updates_used)" = 24 ] || fail "an update in $codec was not used"
    awk -v a="$(result accuracy)" 'BEGIN { exit !(a > 0.6) }' || fail "it did not learn"
    for n in 1 2 3 4; do
        eval "pid=\$client_$n"
        expect_exit 0 "$pid" "client $n"
    done
    stop_server
    fresh
done
say "passed"
