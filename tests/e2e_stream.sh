#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_stream.sh BUILD - policies without rounds: clients start when they like, and neither a
# killed server nor one slow client holds anybody up.
. "$(dirname "$0")/e2e.sh"
make_world

accepted() { count_of "$dir/server.log" "event=update_accepted client=$1 "; }
has() { [ "$(accepted "$1")" -ge "$2" ]; }

for policy in asp fedasync fedbuff; do
    say "policy $policy"
    fresh
    options="--set sync.policy=$policy --set sync.publish_interval=0s --set sync.quorum=1"
    [ $policy != fedbuff ] || options="$options --set sync.buffer=4"
    # shellcheck disable=SC2086
    start_server $options --set job.rounds=24
    start_client 1 --duty 5 # a slow one
    for n in 2 3 4; do
        start_client $n
    done
    await_result 120
    [ "$(result rounds)" = 24 ] || fail "not 24 versions"
    [ "$(count_of "$dir/server.out" '^round ')" = 24 ] || fail "not 24 progress lines"
    awk -v a="$(result accuracy)" 'BEGIN { exit !(a > 0.6) }' || fail "it did not learn"
    seen "$dir/server.out" '^round .* staleness=[0-9]' 24 || fail "no staleness is told"
    for n in 1 2 3 4; do
        eval "pid=\$client_$n"
        expect_exit 0 "$pid" "client $n"
    done
    stop_server
done

say "a server that is killed goes on with the work that is under way"
fresh
start_server --set sync.policy=asp --set sync.publish_interval=0s --set sync.quorum=1 --set job.rounds=100000
start_clients
await 60 "everybody's first update" has 1 1
for n in 2 3 4; do
    await 60 "everybody's first update" has $n 1
done
for blow in 1 2 3; do
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    start_server --set sync.policy=asp --set sync.publish_interval=0s --set sync.quorum=1 --set job.rounds=100000
    for n in 1 2 3 4; do
        await 60 "client $n to contribute after blow $blow" seen "$dir/server.log" \
            "event=update_accepted client=$n " 1 "$server_from"
    done
done
stop_server
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    running "$pid" || fail "client $n did not survive it"
done
