#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_run.sh BUILD - one server and four clients train; every promise about how they end.
. "$(dirname "$0")/e2e.sh"
make_world

say "four clients, four rounds, policy bsp"
start_server
start_clients
await_result 60
[ "$(result rounds)" = 4 ] || fail "not four rounds"
[ "$(result updates_used)" = 16 ] || fail "not sixteen updates"
[ "$(result updates_late)" = 0 ] || fail "an update was late"
[ "$(count_of "$dir/server.out" '^round ')" = 4 ] || fail "not four progress lines"
awk -v a="$(result accuracy)" 'BEGIN { exit !(a > 0.6) }' || fail "it did not learn"
[ "$(result wire_bytes_up)" -gt "$(result bytes_up)" ] || fail "the wire carried less than the chunks"
[ "$(count_of "$dir/server.out" '^round .* wire_bytes_up=[1-9][0-9]* wire_bytes_down=[1-9]')" = 4 ] ||
    fail "the wire carried nothing in a round"

model=$(result model)
[ -s "$model" ] || fail "no model file"
weights "$model" >"$dir/weights"
[ "$(wc -c <"$dir/weights")" = $((4 * (8 * 16 + 16 + 16 * 3 + 3))) ] || fail "the model has another size"
[ "$(sha256sum <"$dir/weights" | cut -d' ' -f1)" = "$(result digest)" ] ||
    fail "the digest printed is not that of the model file"

if command -v python3 >/dev/null; then
    python3 - "$dir/stats.json" "$(result digest)" <<'PY' || fail "the statistics do not agree"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["over"] and s["model_version"] == 4 and s["updates_used"] == 16, s
assert s["digest"] == sys.argv[2] and s["refused"] == {}, s
assert 1.05 * s["bytes_up"] < s["wire_bytes_up"] < 30 * s["bytes_up"], s
assert s["bytes_down"] + 28 * s["datagrams_out"] < s["wire_bytes_down"], s
PY
fi

say "the finished server tells the clients to stop"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server

say "the clients evaluate, the last version, too; and all that can be deflated is"
fresh
start_server --set transfer.deflate=on --set eval.on=clients --set data.holdout=0.2 --set job.target_accuracy=0.6 --set job.rounds=4
start_clients
await_result 60
[ "$(count_of "$dir/server.log" 'event=evaluation_taken ')" = 4 ] || fail "not four evaluated the last version"
[ "$(count_of "$dir/server.log" "event=clients_evaluated .*version=$(result rounds) ")" = 1 ] ||
    fail "no score of the last version"
awk -v a="$(result accuracy)" 'BEGIN { exit !(a > 0.6) }' || fail "no accuracy, or a poor one"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server

say "--once, --linger, and a target that is missed"
fresh
start_server --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1000
start_client 1 --once
expect_exit 0 "$client_1" "the client with --once"
[ "$(count_of "$dir/client-1.log" 'event=accepted ')" = 1 ] || fail "--once is not one update"
stop_server

fresh
start_server --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1 \
    --set job.target_accuracy=1 --linger 1s
start_client 1
expect_exit 3 "$server" "the server whose target was missed"
expect_exit 0 "$client_1" "its client"
say "passed"
