#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_full_disk.sh BUILD - the disk fills up and has room again. The server does not end but
# tells clients to come back, and gives up no round in which an update was acknowledged; also when
# it is killed meanwhile. A small tmpfs is the disk; exits 77 where none may be mounted.
. "$(dirname "$0")/e2e.sh"
mkdir "$dir/disk"
if ! mount -t tmpfs -o size=8m,mode=700 tmpfs "$dir/disk" 2>/dev/null; then
    if [ -z "${ELV_OWN_MOUNTS:-}" ] && unshare -rm true 2>/dev/null; then
        rm -rf "$dir"
        trap - EXIT
        ELV_OWN_MOUNTS=yes exec unshare -rm sh "$0" "$@"
    fi
    echo "SKIPPED: no tmpfs may be mounted here" >&2
    exit 77
fi
trap 'status=$?; trap - EXIT; umount -l "$dir/disk"; (exit $status); cleanup' EXIT
make_world
sed -i 's/^layers = .*/layers = dense 512 relu, dense 64 relu, dense 3/' "$dir/job.ini"
state=$dir/disk/state

fill() { dd if=/dev/zero of="$dir/disk/filler" bs=4096 2>/dev/null || true; }
make_room() { rm "$dir/disk/filler"; }
serve() { start_server --state "$state" --set job.rounds="$1" --set sync.deadline=60s; }
closed() { count_of "$dir/server.log" 'event=round_closed '; }
version_in() { sed -n "s/^.*event=$1 .*version=\([0-9]*\).*\$/\1/p" "$dir/server.log" | tail -n 1; }

say "full, and room again"
serve 1000000
start_clients
await 60 "two rounds" seen "$dir/server.log" 'event=round_closed ' 2
fill
await 60 "the server to notice" seen "$dir/server.log" 'event=store_failed '
sleep 2
running "$server" || fail "the server ended"
before=$(closed)
sleep 1
[ "$(closed)" = "$before" ] || fail "a round was closed on a full disk"
# Between two rounds nobody uploads; within one, whoever does is told.
if seen "$dir/server.log" 'event=store_failed .*upload log'; then
    cat "$dir"/client-?.log >"$dir/clients.log"
    seen "$dir/clients.log" 'event=refused reason=storage' || fail "no client was told why"
fi
make_room
await 60 "two more rounds" seen "$dir/server.log" 'event=round_closed ' $((before + 2))

say "killed while it is full"
fill
from=$(($(lines "$dir/server.log") + 1))
await 60 "the server to notice" seen "$dir/server.log" 'event=store_failed ' 1 "$from"
kill -9 "$server"
wait "$server" 2>/dev/null || true
last=$(version_in round_closed)
code=0 # it either serves, or says why not and leaves everything as it is
timeout 3 "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" --state "$state" \
    >"$dir/full.out" 2>"$dir/full.log" || code=$?
[ $code -eq 1 ] || [ $code -eq 124 ] || [ $code -eq 0 ] || fail "on a full disk it ends with $code"
make_room
serve $((last + 3))
[ "$(version_in restored)" -ge "$last" ] || fail "version $last is lost"
await_result 90
[ "$(result rounds)" = $((last + 3)) ] || fail "not $((last + 3)) rounds"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server

say "no round with an acknowledged update was given up"
sed -n 's/^.*event=accepted .*round=\([0-9]*\) .*$/\1/p' "$dir"/client-?.log | sort -u >"$dir/acknowledged"
sed -n 's/^.*event=round_abandoned round=\([0-9]*\) .*$/\1/p' "$dir/server.log" | sort -u >"$dir/abandoned"
lost=$(comm -12 "$dir/acknowledged" "$dir/abandoned" | tr '\n' ' ')
[ -z "$lost" ] || fail "given up: $lost"
say "passed"
