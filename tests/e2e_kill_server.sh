#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_kill_server.sh BUILD [CYCLES] [SEED] - the server is killed with SIGKILL at random
# moments, again and again. Policy bsp and a deadline that cannot pass, so no kill can change which
# updates count: the model must end as in a run that nobody disturbed, to the last byte, and no
# client may need a restart.
#
# Prints, and does not judge, the longest times from a restart until the server serves and until
# every client has contributed again.
. "$(dirname "$0")/e2e.sh"
cycles=${2:-20}
random=${3:-1}
make_data 2400 150
make_job
make_keys 4

draw() { # MAX: a number from 0 to MAX - 1 in $drawn
    random=$((random * 1103515245 + 12345 & 2147483647))
    drawn=$((random / 65536 % $1))
}
pause_ms() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
now_ms() { date +%s%3N; }
# When a line was logged, in milliseconds.
at_ms() { date -u -d "$(sed -n 's/^ts=\([^ ]*\) .*/\1/p')" +%s%3N; }
closed() { grep -c 'event=round_closed ' "$dir/server.log" || true; }

# A model of some forty chunks, so that blows fall into uploads too.
job="--set client.local_epochs=4"
sed -i 's/^layers = .*/layers = dense 512 relu, dense 64 relu, dense 3/' "$dir/job.ini"
all_contributed() {
    for n in 1 2 3 4; do
        seen "$dir/server.log" "event=update_accepted client=$n " 1 "$server_from" || return 1
    done
}
last_to_contribute() {
    for n in 1 2 3 4; do
        tail -n "+$server_from" "$dir/server.log" | grep "event=update_accepted client=$n " |
            head -n 1 | at_ms
    done | sort -n | tail -n 1
}

# shellcheck disable=SC2086
start_server $job --set job.rounds=100000
start_clients
worst_serving=0 worst_back=0 back=
i=0
while [ $i -lt "$cycles" ]; do
    i=$((i + 1))
    case $((i % 3)) in
    1) # when all have come back
        await 60 "all clients to contribute" all_contributed
        [ $i -eq 1 ] || {
            took=$(($(last_to_contribute) - began))
            back="$back,$took"
            [ $took -le $worst_back ] || worst_back=$took
        }
        draw 1500
        ;;
    2) # at once
        draw 600
        ;;
    0) # while the others are at work
        await 60 "a client to contribute" seen "$dir/server.log" 'event=update_accepted ' 1 "$server_from"
        draw 100
        ;;
    esac
    pause_ms $drawn
    running "$server" || fail "the server ended by itself in cycle $i"
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    began=$(now_ms)
    # shellcheck disable=SC2086
    start_server $job --set job.rounds=100000
    took=$(($(tail -n "+$server_from" "$dir/server.log" | grep 'event=serving ' | at_ms) - began))
    [ $took -le $worst_serving ] || worst_serving=$took
done
await 60 "all clients to contribute" all_contributed

say "an orderly end: stop, and go on for three rounds"
stop_server
rounds=$(sed -n 's/^.*event=round_closed .* version=\([0-9]*\) .*$/\1/p' "$dir/server.log" | sort -n | tail -n 1)
rounds=$((rounds + 3))
# shellcheck disable=SC2086
start_server $job --set job.rounds=$rounds
await_result 60
[ "$(result rounds)" = $rounds ] || fail "not $rounds rounds"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server
used=$(grep -c 'event=update_accepted ' "$dir/server.log")
weights "$(result model)" >"$dir/disturbed"
say "$rounds rounds, $(closed) closed on record, $used updates accepted on record"

say "the same without disturbance"
mv "$dir/server.log" "$dir/disturbed-server"
fresh
# shellcheck disable=SC2086
start_server $job --set job.rounds=$rounds
start_clients
await_result 120
weights "$(result model)" >"$dir/undisturbed"
cmp "$dir/disturbed" "$dir/undisturbed" || fail "the bytes differ"
say "bench kill_server cycles=$cycles rounds=$rounds worst_serving_ms=$worst_serving" \
    "worst_contributing_ms=$worst_back all_contributing_ms=${back#,}"
say "passed"
