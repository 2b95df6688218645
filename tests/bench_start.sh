#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What starting and waiting cost: how long a killed server with a run of 1.2 MB models behind it
# takes to serve again, and what memory a client takes that waits for work.
#
#     sh tests/bench_start.sh BUILD      the folder that has the programs
#
# `client_rss` leaves out the pages of the C library and its loader, which all programs of a system
# share; `client_rss_all` does not. The model is small (2,410 parameters) and so are its data, so
# hardly anything of it is the plan's.
set -eu

build=$(cd "$1" && pwd)
port=${ELV_BENCH_PORT:-5900}
run=$(mktemp -d "${TMPDIR:-/tmp}/elver-bench-XXXXXX")
server='' clients=''

stop_all() {
    # shellcheck disable=SC2086
    kill -9 $server $clients 2>/dev/null || true
    wait 2>/dev/null || true
    server='' clients=''
}
trap 'stop_all; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM

fail() {
    echo "bench_start: $1" >&2
    tail -n 5 "$run/server.log" >&2 || true
    exit 1
}

awk 'BEGIN {
    srand(7)
    for (i = 0; i < 16; i++) {
        for (k = 0; k < 64; k++) printf "%.3f,", rand() - 0.5
        print i % 10
    }
}' >"$run/data.csv"
"$build/server/elver-key" make --keys "$run/keys" --out "$run" --prefix device- \
    --count 2 >/dev/null

prepare() { # HIDDEN-LAYERS CLIENTS-NEEDED
    cat >"$run/job.ini" <<JOB
[job]
name = bench
seed = 5
rounds = 100000
[model]
input = 1x1x64
layers = $1, dense 10
[client]
local_steps = 1
batch_size = 16
[sync]
policy = bsp
quorum = 2
[select]
min_clients = $2
JOB
    cat >"$run/server.ini" <<INI
[server]
listen = 127.0.0.1:$port
state = $run/state
keys = $run/keys
INI
}

start_server() {
    : >"$run/server.log"
    "$build/server/elver-server" --config "$run/server.ini" --job "$run/job.ini" \
        >>"$run/server.out" 2>"$run/server.log" &
    server=$!
}

start_client() { # NUMBER
    "$build/client/elver-client" --server "coaps://127.0.0.1:$port" --job bench --observe \
        --credential "$run/device-$1.cred" --data "csv $run/data.csv" 2>"$run/client-$1.log" &
    clients="$clients $!"
}

wait_for() { # PATTERN FILE
    n=0
    until grep -q "$1" "$2"; do
        n=$((n + 1))
        [ $n -lt 6000 ] || fail "'$1' did not come"
        sleep 0.005
    done
}

say() { # NAME FIGURE UNIT BUDGET
    awk -v n="$1" -v f="$2" -v u="$3" -v b="$4" \
        'BEGIN { printf "bench %s %.4g %s ref budget %.4g ratio %.2f\n", n, f, u, b, f / b }'
}

now() { date +%s.%N; }

prepare "dense 4000 relu" 2
start_server
start_client 1
start_client 2
wait_for '^round 5 ' "$run/server.out"
kill -9 "$server"
wait "$server" 2>/dev/null || true
began=$(now)
start_server
wait_for 'event=serving' "$run/server.log"
served=$(now)
grep -q 'event=restored' "$run/server.log" || fail "the run did not go on"
stop_all
say restart_serving "$(awk -v a="$began" -v b="$served" 'BEGIN { print b - a }')" s 2

rm -rf "$run/state"
prepare "dense 32 relu" 3
start_server
wait_for 'event=serving' "$run/server.log"
start_client 1
wait_for 'event=joined' "$run/client-1.log"
sleep 1
client=${clients# }
all=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$client/status")
system=$(awk '/^[0-9a-f]+-/ { shared = $6 ~ /\/(libc|ld-linux|ld-musl)[^\/]*$/ }
              /^Rss:/ && shared { sum += $2 } END { print sum + 0 }' "/proc/$client/smaps")
say client_rss $((all - system)) KiB 2048
say client_rss_all "$all" KiB 2048
