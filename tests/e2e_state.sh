#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_state.sh BUILD - what a server makes of the state it finds: its own, that of another
# job, that of a newer program, or one that another server holds.
. "$(dirname "$0")/e2e.sh"
make_world
server() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" "$@"
}
# Runs to the end of the job as it is now; the clients are told to stop.
finish() {
    start_server "$@"
    start_clients
    await_result 60
    for n in 1 2 3 4; do
        eval "pid=\$client_$n"
        expect_exit 0 "$pid" "client $n"
    done
}

say "one server for one state"
finish --set job.rounds=2
first=$(result digest)
server 1 "another server uses $dir/state (process $server)" --listen "127.0.0.1:$((port + 1))"
stop_server

say "a restart may change some things of a job, and not others"
server 2 "'job.seed' differs.*--new-run" --set job.seed=8
server 2 "'model.layers' differs.*--new-run" --set 'model.layers=dense 4 relu, dense 3'
server 2 "'transfer.up' differs.*--new-run" --set transfer.up=f32
server 2 "'data.partition' differs.*--new-run" --set 'data.partition=shards 2'
finish --set job.rounds=3 --set sync.deadline=5m --set sync.quorum=3
[ "$(result rounds)" = 3 ] || fail "it did not go on to round 3"
third=$(result digest)
[ "$third" != "$first" ] || fail "the third round changed nothing"
stop_server

say "a finished job is still finished, and says stop"
start_client 1
start_server --set job.rounds=3
expect_exit 0 "$client_1" "client 1"
await_result 10
[ "$(result digest)" = "$third" ] || fail "another model than before"
stop_server

say "a new run sets the old one aside"
finish --set job.rounds=2 --new-run --set job.seed=8
[ -e "$dir/state/tiny.1/ledger.db" ] || fail "the old state is gone"
[ "$(result digest)" != "$first" ] || fail "another seed, and the same model"
stop_server

say "a state that a newer program wrote"
cp "$dir/state/tiny/ledger.db" "$dir/ledger.db"
printf '\0\0\003\347' | dd of="$dir/state/tiny/ledger.db" bs=1 seek=60 conv=notrunc 2>/dev/null
server 1 'written by a newer program (schema 999' --set job.rounds=2 --set job.seed=8
echo 'this is no database, and long enough to be one of something else' >"$dir/state/tiny/ledger.db"
server 1 'ledger' --set job.rounds=2 --set job.seed=8

say "a model file that is damaged"
cp "$dir/ledger.db" "$dir/state/tiny/ledger.db"
for f in "$dir"/state/tiny/files/*; do
    printf 'xxxx' | dd of="$f" bs=1 seek=$(($(wc -c <"$f") - 10)) conv=notrunc 2>/dev/null
done
server 1 'state' --set job.rounds=2 --set job.seed=8
say "passed"
