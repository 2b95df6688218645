#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_herd.sh BUILD [CLIENTS] - many DTLS sessions at once, and the server killed with SIGKILL
# in the middle of a round: every client finds its way back, every one contributes, and that round
# closes inside its deadline, with nobody missing. `tests/bench.sh herd` does it with 2,000 clients,
# which takes a minute.
#
# Prints, and does not judge, how long it took until all had contributed again.
. "$(dirname "$0")/e2e.sh"
clients=${2:-200}
spread=2000
make_data
make_job
make_keys "$clients"
sed -i "s/^deadline = .*/deadline = 90s/;s/^quorum = .*/quorum = $clients/
    s/^min_clients = .*/min_clients = $clients/" "$dir/job.ini"
printf '[limits]\nclients = %d\n' "$clients" >>"$dir/server.ini"

now_ms() { date +%s%3N; }
accepted_since() { tail -n "+$1" "$dir/server.log" | grep -c 'event=update_accepted ' || true; }
some_accepted() { [ "$(accepted_since "$round_from")" -ge "$1" ]; }
closed() { seen "$dir/server.log" 'event=round_closed ' "$1"; }

start_server --set job.rounds=3
launch herd "$build/tests/herd" "coaps://127.0.0.1:$port" tiny "$clients" "$dir/dev-" $spread
herd=$!
sleep 0.2
if ended "$herd"; then
    wait "$herd" || [ $? -ne 77 ] || exit 77
    fail "the clients ended at once"
fi
await 120 "the first round to close" closed 1
round_from=$(($(lines "$dir/server.log") + 1))
await 60 "a third of the clients to contribute" some_accepted $((clients / 3))
kill -9 "$server"
wait "$server" 2>/dev/null || true
before=$(accepted_since "$round_from")
[ "$before" -lt "$clients" ] || fail "all had contributed before the server was killed"
say "killed with $before of $clients updates accepted"
began=$(now_ms)
start_server --set job.rounds=3
say "serving again after $(($(now_ms) - began)) ms"
await 90 "the round to close" closed 2
took=$(($(now_ms) - began))
await 180 "the result" seen "$dir/server.out" '^result '
expect_exit 0 "$herd" "the clients" 60

# Every round, the one that was killed among them: all were used, none came late.
for n in 1 2 3; do
    line=$(grep 'event=round_closed ' "$dir/server.log" | sed -n "${n}p")
    case $line in
    *" used=$clients late=0 "*" overrun_ms=0.000 "*) ;;
    *) fail "round $n: $line" ;;
    esac
done
[ "$(grep -c 'event=round_closed ' "$dir/server.log")" -eq 3 ] || fail "not three rounds"
! grep -q 'event=round_abandoned' "$dir/server.log" || fail "a round was given up"
tail -n 1 "$dir/herd.out"
handshakes=$(sed -n 's/^herd .* handshakes=\([0-9]*\) .*/\1/p' "$dir/herd.out")
[ "$handshakes" -ge $((2 * clients)) ] || fail "only $handshakes handshakes"
of() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
rss=$(($(result server_peak_rss_kib) / clients))
say "bench herd_${clients}_all_back $took ms ref deadline 90000 ratio $(of $took 90000)"
say "bench herd_${clients}_server_rss $rss KiB/client ref budget 64 ratio $(of $rss 64)"
say "passed"
