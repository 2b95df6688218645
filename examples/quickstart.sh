#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One real federated training run on this machine: a server and eight clients, DTLS on loopback,
# Fashion-MNIST split unevenly, one slow client, one that is killed and comes back.
#
#   sh examples/quickstart.sh [--seed N] [--rounds N] [--port N]
#
# Installs what it needs (as root; otherwise it prints the command and exits 2), builds, runs about
# a minute, and ends with a line `result accuracy=...`. Exits 1 when accuracy stays below 0.85 or
# the killed client did not contribute again. Safe to run again. Files go to build/quickstart/.
set -eu

seed=1 rounds=30 port=5684
usage() { sed -n '3,11s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help) usage && exit 0 ;;
    esac
    [ $# -gt 1 ] || { usage >&2 && exit 2; }
    case "$1" in
    --seed) seed=$2 ;;
    --rounds) rounds=$2 ;;
    --port) port=$2 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2
done

root=$(cd "$(dirname "$0")/.." && pwd)
data=/usr/share/datasets/fashion-mnist
run=$root/build/quickstart
clients=8 slow=7 victim=3 # numbers start at 1
say() { printf '== %s\n' "$*"; }

sh "$root/examples/build.sh"
bin=$root/build/release

rm -rf "$run" && mkdir -p "$run"
cat >"$run/job.ini" <<JOB
[job]
name = fashion
seed = $seed
rounds = $rounds

[data]
test = idx $data
scale = 1/255
mean = 0.2860
std = 0.3530
partition = dirichlet 0.5

[model]
input = 1x28x28
layers = conv 8 5x5 relu, maxpool 2, conv 16 5x5 relu, maxpool 2, dense 64 relu, dense 10
loss = softmax-cross-entropy

[client]
local_steps = 100
batch_size = 32
optimizer = sgd momentum 0.9
learning_rate = 0.02
learning_rate_decay = 0.94

[sync]
policy = backup
backup = 1
deadline = 30s
quorum = 4

[select]
min_clients = $clients

[transfer]
up = q8
down = q8
JOB
cat >"$run/server.ini" <<INI
[server]
listen = 127.0.0.1:$port
state = $run/state
keys = $run/keys
stats = $run/stats.json
linger = 5s
INI

say "making keys for $clients devices"
"$bin/server/elver-key" make --keys "$run/keys" --out "$run" --prefix device- --count $clients

pids=
victim_pid=
tail_pid=
cleanup() {
    # shellcheck disable=SC2086
    kill $pids $victim_pid $tail_pid 2>/dev/null || true
    wait 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

start_client() { # NUMBER [OPTION...]; the process id is left in $!
    n=$1 && shift
    "$bin/client/elver-client" --server "coaps://127.0.0.1:$port" --job fashion \
        --credential "$run/device-$n.cred" --data "idx $data" --index $((n - 1)) --of $clients "$@" \
        >>"$run/client-$n.log" 2>&1 &
}

say "starting the server and $clients clients; client $slow works a fifth of the time"
: >"$run/server.out" # there before the one who writes and the one who follows
"$bin/server/elver-server" --config "$run/server.ini" --job "$run/job.ini" \
    >"$run/server.out" 2>"$run/server.log" &
server=$!
pids=$server
tail -n +1 -f "$run/server.out" --pid=$server | grep --line-buffered -v '^result ' &
tail_pid=$!
n=1
while [ $n -le $clients ]; do
    if [ $n -eq $slow ]; then start_client $n --duty 20; else start_client $n; fi
    if [ $n -eq $victim ]; then victim_pid=$!; else pids="$pids $!"; fi
    n=$((n + 1))
done

# A round N line on the server's output means that N rounds are closed.
reached() { grep -q "^round $1 " "$run/server.out"; }
wait_for() {
    until reached "$1"; do
        kill -0 $server 2>/dev/null || return 1
        sleep 0.1
    done
}
wait_for 2 && kill -9 $victim_pid && say "round 3: client $victim killed with SIGKILL"
wait_for 5 && start_client $victim && victim_pid=$! && say "round 6: client $victim started again"
back=$(wc -l <"$run/server.log")

status=0
wait $server || status=$?
wait $tail_pid 2>/dev/null || true
tail_pid=
if [ $status -ne 0 ]; then
    tail -n 20 "$run/server.log" >&2
    ! grep -q 'cannot listen' "$run/server.log" || say "another port: --port N" >&2
    exit 1
fi

contributed=$(tail -n +"$back" "$run/server.log" |
    grep -c "event=update_accepted .*client=$victim\b" || true)
say "client $victim contributed $contributed times after its restart"
[ "$contributed" -gt 0 ] || exit 1
result=$(grep '^result ' "$run/server.out")
accuracy=$(printf '%s\n' "$result" | sed 's/^result accuracy=\([0-9.]*\).*/\1/')
learned() { awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.85) }'; }
learned || say "the accuracy is below 0.85: this run has failed"
printf '%s\n' "$result"
learned
