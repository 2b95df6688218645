#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_keys.sh BUILD - who may connect, while the server runs: unknown identities, wrong keys,
# revocation, rotation, and a table with a mistake in it.
. "$(dirname "$0")/e2e.sh"
make_world
make_keys_more() { "$elver_key" make --keys "$dir/keys" --out "$dir" "$@" >"$dir/key.out"; }
retired() { ! grep -q "^4 dev-4 " "$dir/keys"; }
accepted() { grep -c "event=update_accepted client=$1 " "$dir/server.log" || true; }

start_server --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1000000 \
    --set sync.deadline=1s
start_client 1 --duty 1 --leave
start_client 2 --duty 1
await 30 "both to contribute" seen "$dir/server.log" 'event=update_accepted client=2 '

# Five refused handshakes, further and further apart, make a client give up: meanwhile the rest runs.
say "an unknown identity and a wrong key"
(umask 077 && sed 's/^identity = .*/identity = dev-9/' "$dir/dev-3.cred" >"$dir/dev-9.cred")
(umask 077 && sed "s/^key = .*/$(grep '^key = ' "$dir/dev-4.cred")/" "$dir/dev-3.cred" >"$dir/dev-8.cred")
start_client 9
start_client 8

say "a device that was enrolled while the server runs"
make_keys_more dev-7
start_client 7 --once
await 15 "the table to be taken" seen "$dir/server.log" 'event=keys_taken '
expect_exit 0 "$client_7" "the new device" 30

say "a table with a mistake keeps the old one"
cp -p "$dir/keys" "$dir/good-keys"
echo '8 dev-6 nonsense' >>"$dir/keys"
line=$(wc -l <"$dir/keys")
await 10 "the mistake in the log" seen "$dir/server.log" \
    "level=error event=keys_refused file=$dir/keys line=$line reason="
cp -p "$dir/good-keys" "$dir/keys.new" && mv "$dir/keys.new" "$dir/keys"
before=$(accepted 1)
await 15 "client 1 to go on" seen "$dir/server.log" 'event=update_accepted client=1 ' $((before + 2))

say "a revoked device is out within five seconds, and its number stays its own"
revoked=$(date +%s%3N)
"$elver_key" revoke --keys "$dir/keys" dev-2 >"$dir/key.out"
await 10 "the revocation" seen "$dir/server.log" 'event=revoked client=2'
took=$(($(date +%s%3N) - revoked))
say "bench revoke taken_ms=$took"
from=$(($(lines "$dir/server.log") + 1))
before=$(accepted 1)
await 15 "client 1 to go on" seen "$dir/server.log" 'event=update_accepted client=1 ' $((before + 2))
seen "$dir/server.log" 'client=2 ' 1 "$from" && fail "the revoked client was served"
"$elver_key" list --keys "$dir/keys" dev-2 | grep -q revoked || fail "not listed as revoked"

say "rotation: the old key works until the new one was used"
"$elver_key" rotate --keys "$dir/keys" --out "$dir/rotated" dev-4 >"$dir/key.out"
grep -q '^identity = dev-4#2$' "$dir/rotated/dev-4.cred" || fail "not the second generation"
taken=$(count_of "$dir/server.log" 'event=keys_taken ')
start_client 4 --once
expect_exit 0 "$client_4" "the client with the old key"
await 10 "the rotation to be taken" seen "$dir/server.log" 'event=keys_taken ' "$taken"
cp -p "$dir/dev-4.cred" "$dir/dev-5.cred"
cp -p "$dir/rotated/dev-4.cred" "$dir/dev-4.cred"
start_client 4 --once
expect_exit 0 "$client_4" "the client with the new key"
start_client 5

expect_exit 3 "$client_9" "the unknown identity" 60
expect_exit 3 "$client_8" "the wrong key" 60
seen "$dir/client-9.log" 'refuses this identity or its key' || fail "it does not say why"
await 15 "the retired key to be refused" seen "$dir/client-5.log" 'event=link state=refused'
seen "$dir/client-5.log" 'event=joined' && fail "the retired key was accepted"
await 15 "the retired key to leave the table" retired
running "$client_1" || fail "client 1 ended"
kill "$client_1"
expect_exit 0 "$client_1" "client 1"
await 5 "client 1 to leave" seen "$dir/server.log" 'event=left client=1'
stop_server
say "passed"
