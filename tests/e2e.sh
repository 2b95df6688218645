# SPDX-License-Identifier: Apache-2.0
# tests/e2e.sh - what the end-to-end tests share; sourced by e2e_*.sh, whose first argument is the
# build folder. Real programs, real DTLS on loopback, a tiny data set and a tiny model.
#
# Everything a test starts is killed when it ends, and its folder removed unless it failed with
# ELV_KEEP set. Waiting is always bounded.
# shellcheck shell=sh
set -eu

build=$1
elver_server=$build/server/elver-server
elver_client=$build/client/elver-client
elver_key=$build/server/elver-key
relay_main=$build/tests/relay_main
dir=$(mktemp -d)
server='' # process id of the server
pids=''   # of all that was started
port=$((20000 + $$ % 10000))

cleanup() {
    status=$?
    for p in $pids; do
        kill -9 "$p" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    if [ $status -eq 0 ] || [ -z "${ELV_KEEP:-}" ]; then
        rm -rf "$dir"
    else
        echo "kept: $dir" >&2
    fi
    exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { printf '%s\n' "$*"; }

fail() {
    echo "FAILED: $*" >&2
    for f in "$dir"/*.out "$dir"/*.log; do
        [ ! -s "$f" ] || { echo "--- $(basename "$f")" && tail -n 15 "$f"; } >&2
    done
    exit 1
}

# await SECONDS WHAT COMMAND...: until the command succeeds.
await() {
    end=$(($(date +%s) + $1))
    what=$2
    shift 2
    until "$@"; do
        [ "$(date +%s)" -lt $end ] || fail "waited in vain for $what"
        sleep 0.03
    done
}

# A process that was not waited for is a zombie and has ended all the same.
running() { grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null; }
ended() { ! running "$1"; }

# expect_exit CODE PID NAME [SECONDS]
expect_exit() {
    await "${4:-30}" "$3 to end" ended "$2"
    code=0
    wait "$2" || code=$?
    [ $code -eq "$1" ] || fail "$3 ended with $code, not with $1"
}

# refuses CODE PATTERN COMMAND...: it ends by itself with that code and says why.
refuses() {
    code=0 want=$1 pattern=$2
    shift 2
    timeout -s KILL 30 "$@" >"$dir/refused.out" 2>"$dir/refused.log" </dev/null || code=$?
    [ $code -eq "$want" ] || fail "exit code $code, not $want: $*"
    cat "$dir/refused.out" "$dir/refused.log" | grep -q -e "$pattern" ||
        fail "no '$pattern' in what it says: $*"
}

# seen FILE PATTERN [COUNT [FROM_LINE]]: so many lines match at least.
seen() {
    [ "$(tail -n "+${4:-1}" "$1" 2>/dev/null | grep -c -e "$2")" -ge "${3:-1}" ]
}
lines() { wc -l <"$1" 2>/dev/null || echo 0; }
count_of() { grep -c -e "$2" "$1" || true; }

port_is_free() {
    hex=$(printf ':%04X ' "$port")
    ! cat /proc/net/udp /proc/net/udp6 2>/dev/null | grep -q "$hex"
}
until port_is_free; do port=$((port + 1)); done

# make_data [TRAIN TEST]: three noisy clouds in eight dimensions, as CSV.
make_data() {
    awk -v train="${1:-600}" -v test="${2:-150}" -v dir="$dir" '
        function draw() { x = (x * 16807) % 2147483647; return x / 2147483647 }
        BEGIN {
            x = 4711
            for (c = 0; c < 3; c++)
                for (i = 0; i < 8; i++)
                    center[c, i] = 2 * draw() - 1
            for (n = 0; n < train + test; n++) {
                c = n % 3
                line = ""
                for (i = 0; i < 8; i++)
                    line = line sprintf("%.4f,", center[c, i] + draw() + draw() - 1)
                print line c > (dir (n < train ? "/train.csv" : "/test.csv"))
            }
        }'
}

# make_job: a job that closes a version only when all four clients have contributed. What a test
# wants otherwise it gives the server with --set.
make_job() {
    cat >"$dir/job.ini" <<JOB
[job]
name = tiny
seed = 7
rounds = 4

[data]
train = csv $dir/train.csv
test = csv $dir/test.csv
partition = iid

[model]
input = 8x1x1
layers = dense 16 relu, dense 3
loss = softmax-cross-entropy

[client]
local_epochs = 2
batch_size = 16
optimizer = sgd momentum 0.9
learning_rate = 0.02

[sync]
policy = bsp
deadline = 10m
quorum = 4

[select]
min_clients = 4

[transfer]
up = q8
down = q8
JOB
    cat >"$dir/server.ini" <<INI
[server]
listen = 127.0.0.1:$port
state = $dir/state
keys = $dir/keys
stats = $dir/stats.json
linger = 60s
INI
}

# make_keys COUNT: devices dev-1 ... dev-COUNT
make_keys() { "$elver_key" make --keys "$dir/keys" --out "$dir" --prefix dev- --count "$1" >"$dir/key.out"; }

# All three, for four clients.
make_world() {
    make_data
    make_job
    make_keys 4
}

# launch NAME COMMAND...: in the background, what it says in NAME.out and NAME.log; see $!
launch() {
    name=$1
    shift
    "$@" >>"$dir/$name.out" 2>>"$dir/$name.log" </dev/null &
    pids="$pids $!"
}

# start_server [OPTION...]: and waits until it serves.
start_server() {
    : >>"$dir/server.log"
    server_from=$(($(lines "$dir/server.log") + 1))
    launch server "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" "$@"
    server=$!
    await 30 "the server to serve" serves
}
serves() {
    seen "$dir/server.log" 'event=serving ' 1 "$server_from" ||
        { ended "$server" && fail "the server ended at once"; }
}

# stop_server: orderly; it may be started again.
stop_server() {
    kill "$server"
    expect_exit 0 "$server" "the server"
}

# start_client NUMBER [OPTION...]: its process id is in $! and in client_NUMBER. It takes a quarter
# of the data.
start_client() {
    number=$1
    shift
    launch "client-$number" "$elver_client" --server "coaps://127.0.0.1:${client_port:-$port}" \
        --job tiny --credential "$dir/dev-$number.cred" --data "csv $dir/train.csv" \
        --index $(((number - 1) % 4)) --of 4 "$@"
    eval "client_$number=$!"
}
start_clients() {
    for n in 1 2 3 4; do
        start_client $n "$@"
    done
}

# await_result SECONDS: the run is over and its result printed.
await_result() { await "$1" "the result" seen "$dir/server.out" '^result '; }

# The value of KEY in the last result line.
result() { grep '^result ' "$dir/server.out" | tail -n 1 | tr ' ' '\n' | sed -n "s/^$1=//p"; }

# The weights in a safetensors file, as bytes: eight bytes of length, a header, then they.
weights() {
    head_len=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c "+$((9 + head_len))" "$1"
}

# fresh: forgets a run and what was said about it, so that the next begins anew.
fresh() {
    rm -rf "$dir/state" "$dir"/*.out "$dir"/*.log "$dir/stats.json"
}
