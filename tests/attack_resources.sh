#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/attack_resources.sh BUILD - streams that are closed, descriptors that run out, a state
# folder that goes away, processes that stand still: an error with a message, or the run goes on.
. "$(dirname "$0")/e2e.sh"
make_world

reap() {
    for n in 1 2 3 4; do
        eval "kill -9 \$client_$n 2>/dev/null; wait \$client_$n 2>/dev/null" || true
    done
}

say "standard streams that are closed"
# closed STREAMS: what is redirected for server and clients alike; their logs are elsewhere.
for streams in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
    fresh
    server_from=1
    eval "\"\$elver_server\" --config \"\$dir/server.ini\" --job \"\$dir/job.ini\" \
        --set server.linger=1s >>\"\$dir/server.out\" 2>>\"\$dir/server.log\" $streams &"
    server=$!
    pids="$pids $server"
    for n in 1 2 3 4; do
        eval "\"\$elver_client\" --server coaps://127.0.0.1:\$port --job tiny \
            --credential \"\$dir/dev-$n.cred\" --data \"csv \$dir/train.csv\" --index $((n - 1)) \
            --of 4 >>\"\$dir/client-$n.out\" 2>>\"\$dir/client-$n.log\" $streams &"
        eval "client_$n=$!"
        pids="$pids $!"
    done
    expect_exit 0 "$server" "the server with $streams" 60
    reap
    digest=$(tr ',' '\n' <"$dir/stats.json" | sed -n 's/^"digest":"\(.*\)"$/\1/p')
    weights "$dir/state/tiny/model.safetensors" | sha256sum | grep -q "^$digest" ||
        fail "$streams: the model is not what the statistics say"
    case $streams in
    *'>&-'*) ;;
    *) [ -n "$(result digest)" ] || fail "$streams: no result" ;;
    esac
done

say "a reader that goes away"
fresh
mkfifo "$dir/pipe"
head -n 1 "$dir/pipe" >/dev/null &
pids="$pids $!"
"$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" --set server.linger=1s \
    >"$dir/pipe" 2>>"$dir/server.log" </dev/null &
server=$!
pids="$pids $server"
start_clients
expect_exit 0 "$server" "the server without a reader" 60
reap

serves_or_ended() { ended "$server" || seen "$dir/server.log" 'event=serving '; }

say "few descriptors"
served=0
for limit in 4 6 8 10 12 14 16 18 20 24 32; do
    fresh
    code=0
    server_from=1
    # shellcheck disable=SC3045
    (ulimit -n $limit && exec "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" \
        --set server.linger=1s) >>"$dir/server.out" 2>>"$dir/server.log" </dev/null &
    server=$!
    pids="$pids $server"
    await 30 "the server with $limit descriptors" serves_or_ended
    if ended "$server"; then
        wait "$server" || code=$?
        case $code in
        1 | 2 | 127) ;; # 127: not even its libraries could be opened
        *) fail "$limit descriptors: exit code $code" ;;
        esac
        [ -s "$dir/server.log" ] || fail "$limit descriptors: not a word"
        continue
    fi
    served=$((served + 1))
    start_clients
    expect_exit 0 "$server" "the server with $limit descriptors" 60
    reap
done
[ $served -gt 0 ] || fail "32 descriptors are not enough to serve"
for limit in 5 8 10 12; do
    code=0
    # shellcheck disable=SC3045
    (ulimit -n $limit && exec timeout 2 "$elver_client" --server coaps://127.0.0.1:1 \
        --job tiny --credential "$dir/dev-1.cred" --data "csv $dir/train.csv") \
        >"$dir/few.out" 2>"$dir/few.log" </dev/null || code=$?
    case $code in
    1 | 2 | 124 | 127) ;;
    *) fail "a client with $limit descriptors: exit code $code" ;;
    esac
done

say "a state folder that cannot be"
refuses 1 'cannot make' "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" \
    --state /proc/elver
refuses 1 'Not a directory' "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" \
    --state "$dir/train.csv"
refuses 1 'No such file' "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" \
    --state "$dir/not/there"
if [ "$(id -u)" != 0 ]; then
    mkdir "$dir/mine" && chmod 500 "$dir/mine"
    refuses 1 'Permission denied' "$elver_server" --config "$dir/server.ini" \
        --job "$dir/job.ini" --state "$dir/mine"
fi

say "a state folder that goes away"
fresh
start_server
start_clients
await 60 "a round" seen "$dir/server.log" 'event=round_closed '
rm -rf "$dir/state"
await 60 "word of it" seen "$dir/server.log" 'level=error event=store_failed'
expect_exit 1 "$server" "the server without its state" 20
seen "$dir/server.log" '^elver-server: .*state could not be written' || fail "not a word at the end"
reap

say "a server that stands still"
fresh
start_server --set sync.deadline=2s --set sync.quorum=2 --set job.rounds=6
start_clients
await 60 "a round" seen "$dir/server.log" 'event=round_closed '
kill -STOP "$server"
sleep "${ELV_STILL:-4}"
kill -CONT "$server"
await_result 60
[ "$(result rounds)" = 6 ] || fail "not six rounds"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server
say "passed"
