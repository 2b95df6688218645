#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_lossy.sh BUILD - clients behind a bad network: a tenth of all datagrams is lost, some
# come twice or out of order, each takes 50 ms and more, and in the middle of the run every client
# gets a new address. The model is the one of a good network, and nothing but DTLS records is on the
# wire.
. "$(dirname "$0")/e2e.sh"
make_world
sed -i 's/^layers = .*/layers = dense 512 relu, dense 64 relu, dense 3/' "$dir/job.ini"
rounds=3

start_server --set job.rounds=$rounds
launch relay "$relay_main" --server "127.0.0.1:$port" --seed 5 --loss 100000 --duplicate 50000 \
    --delay-us 50000 --jitter-us 20000
relay=$!
await 10 "the relay" seen "$dir/relay.out" '^port '
client_port=$(sed -n 's/^port //p' "$dir/relay.out")
start_clients
await 60 "two rounds" seen "$dir/server.log" 'event=round_closed ' 2
say "all clients get new addresses"
kill -USR1 "$relay"
await_result 120
[ "$(result updates_used)" = $((4 * rounds)) ] || fail "not $((4 * rounds)) updates"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n" 60
done
first=$(result digest)
stop_server
kill "$relay"
expect_exit 0 "$relay" "the relay"
cat "$dir/relay.out"
[ "$(count_of "$dir/relay.out" ' foreign=0$')" = 2 ] || fail "not only DTLS records on the wire"
seen "$dir/relay.out" '^up datagrams=[1-9][0-9]* lost=[1-9]' || fail "nothing was lost"
relinks=$(cat "$dir"/client-?.log | grep -c 'event=relinked' || true)
say "bench lossy relinks=$relinks train_seconds=$(result train_seconds)"

say "the same on a good network"
fresh
client_port=$port
start_server --set job.rounds=$rounds
start_clients
await_result 60
[ "$(result digest)" = "$first" ] || fail "another model than over the bad network"
say "passed"
