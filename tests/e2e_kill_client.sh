#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_kill_client.sh BUILD - a client is killed with SIGKILL in the middle of a round and
# started again. It takes up the same assignment, with what its state folder kept, and with policy
# bsp nothing of it shows in the model.
. "$(dirname "$0")/e2e.sh"
make_data 2400 150
make_job
make_keys 4
# Long enough to be interrupted: client 2 works a hundredth of the time.
# A codec that leaves much over for the next time, which its state folder keeps.
sed -i 's/^up = .*/up = ternary 0.05/' "$dir/job.ini"
job="--set client.local_epochs=20 --set job.rounds=4"

# How many updates of client 2 were accepted.
second() { grep -c 'event=update_accepted client=2 ' "$dir/server.log" || true; }

say "killed while it trains, and again while the rest waits for it"
# shellcheck disable=SC2086
start_server $job
for n in 1 3 4; do start_client $n; done
start_client 2 --state "$dir/state-2" --duty 1
for round in 1 2; do
    await 60 "the others to finish round $round" seen "$dir/server.log" \
        "event=update_accepted client=[134] round=$round " 3
    await 60 "client 2 to begin" seen "$dir/client-2.log" "event=assigned .*round=$round "
    [ "$(second)" = $((round - 1)) ] || fail "client 2 was too fast to be killed in round $round"
    kill -9 "$client_2"
    wait "$client_2" 2>/dev/null || true
    if [ $round -eq 1 ]; then start_client 2 --state "$dir/state-2" --duty 1; else start_client 2 --state "$dir/state-2"; fi
    await 60 "client 2 to contribute again" seen "$dir/server.log" \
        "event=update_accepted client=2 round=$round "
done
await_result 60
[ "$(result updates_used)" = 16 ] || fail "not sixteen updates"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
[ "$(count_of "$dir/client-2.log" 'event=restored ')" -ge 1 ] || fail "client 2 fetched again what it had"
weights "$(result model)" >"$dir/disturbed"
stop_server

say "the same without disturbance"
fresh
# shellcheck disable=SC2086
start_server $job
start_clients
await_result 60
weights "$(result model)" >"$dir/undisturbed"
cmp "$dir/disturbed" "$dir/undisturbed" || fail "the bytes differ"
say "passed"
