#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How long a round takes when training takes none: a real server and eight real clients over DTLS on
# loopback, observing, a dense model of 300,652 parameters (1.2 MB), one step on sixteen examples.
#
#     sh tests/bench_round.sh BUILD [SETTING...]    settings: f32 f32_q8 q8
#
# For each setting (f32 both ways; f32 down and q8 up; q8 both ways) two runs from one seed, which
# must use all eight clients in every round and end with the same model; then the median time from
# one closed round to the next, and the server's memory against its budget. Figures never fail it.
set -eu

build=$(cd "$1" && pwd) && shift
[ $# -gt 0 ] || set -- f32 f32_q8 q8
clients=8 rounds=${ELV_BENCH_ROUNDS:-16} port=${ELV_BENCH_PORT:-5900}
params=300652
run=$(mktemp -d "${TMPDIR:-/tmp}/elver-bench-XXXXXX")
pids=

stop_all() {
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    wait 2>/dev/null || true
    pids=
}
trap 'stop_all; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM

fail() {
    echo "bench_round: $1" >&2
    tail -n 5 "$run/server.log" >&2 || true
    exit 1
}

awk 'BEGIN {
    srand(7)
    for (i = 0; i < 16; i++) {
        for (k = 0; k < 256; k++) printf "%.3f,", rand() - 0.5
        print i % 10
    }
}' >"$run/data.csv"
"$build/server/elver-key" make --keys "$run/keys" --out "$run" --prefix device- \
    --count $clients >/dev/null

write_job() { # UP DOWN
    cat >"$run/job.ini" <<JOB
[job]
name = bench
seed = 5
rounds = $rounds
[model]
input = 1x1x256
layers = dense 1126 relu, dense 10
[client]
local_steps = 1
batch_size = 16
learning_rate = 0.01
[sync]
policy = bsp
deadline = 60s
quorum = $clients
[select]
min_clients = $clients
[transfer]
up = $1
down = $2
JOB
    cat >"$run/server.ini" <<INI
[server]
listen = 127.0.0.1:$port
state = $run/state
keys = $run/keys
linger = 3s
INI
}

resident() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }

# One run; leaves `result`, its closed rounds in $run/closed and the memory after round 4 and at the
# end in `early` and `late`.
run_once() {
    rm -rf "$run/state"
    "$build/server/elver-server" --config "$run/server.ini" --job "$run/job.ini" \
        >"$run/server.out" 2>"$run/server.log" &
    server=$!
    pids=$server
    n=1
    while [ $n -le $clients ]; do
        "$build/client/elver-client" --server "coaps://127.0.0.1:$port" --job bench --observe \
            --credential "$run/device-$n.cred" --data "csv $run/data.csv" --log-level warn \
            2>"$run/client-$n.log" &
        pids="$pids $!"
        n=$((n + 1))
    done
    early='' late=''
    while kill -0 "$server" 2>/dev/null && ! grep -q '^result' "$run/server.out"; do
        sleep 0.05
        [ -n "$early" ] || ! grep -q '^round 4 ' "$run/server.out" || early=$(resident "$server")
        late=$(resident "$server" 2>/dev/null) && [ -n "$late" ] || late=$early
    done
    wait "$server" || fail "the server failed"
    stop_all
    result=$(grep '^result' "$run/server.out") || fail "there is no result"
    grep 'event=round_closed' "$run/server.log" >"$run/closed"
    [ "$(wc -l <"$run/closed")" -eq "$rounds" ] || fail "not all rounds were closed"
    ! grep -vq " used=$clients " "$run/closed" || fail "a round did without a client"
}

value_of() { printf '%s\n' "$result" | sed -n "s/.* $1=\([^ ]*\).*/\1/p"; }

# Seconds between closed rounds, first without: it waits for everybody to join.
gaps() {
    sed 's/^ts=[^T]*T\([0-9]*\):\([0-9]*\):\([0-9.]*\)Z.*/\1 \2 \3/' "$run/closed" |
        awk '{ t = $1 * 3600 + $2 * 60 + $3
               if (NR > 1) print t < before ? t - before + 86400 : t - before
               before = t }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

say() { # NAME FIGURE UNIT BUDGET
    awk -v n="$1" -v f="$2" -v u="$3" -v b="$4" \
        'BEGIN { printf "bench %s %.4g %s ref budget %.4g ratio %.2f\n", n, f, u, b, f / b }'
}

measure() { # NAME UP DOWN BUDGET
    write_job "$2" "$3"
    run_once
    gaps >"$run/gaps"
    digest=$(value_of digest)
    run_once
    gaps >>"$run/gaps"
    [ "$(value_of digest)" = "$digest" ] || fail "two runs from one seed differ"
    say "round_$1" "$(median <"$run/gaps")" s "$4"
    say "round_$1_server_rss" "$(value_of server_peak_rss_kib)" KiB \
        $((16 * 1024 + 6 * params * 4 / 1024 + 64 * clients))
    [ -z "$early" ] || say "round_$1_server_growth" $((late - early)) KiB 256
}

for setting in "$@"; do
    case $setting in
    f32) measure f32 f32 f32 0.5 ;;
    f32_q8) measure f32_q8 q8 f32 0.35 ;;
    q8) measure q8 q8 q8 0.15 ;;
    *) fail "there is no setting '$setting'" ;;
    esac
done
