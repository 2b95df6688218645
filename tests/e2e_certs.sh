#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_certs.sh BUILD - clients and server prove who they are with certificates instead of keys.
. "$(dirname "$0")/e2e.sh"
make_data
make_job
"$elver_key" ca --out "$dir/ca" --server-name elver.test >"$dir/key.out"
"$elver_key" make --keys "$dir/keys" --out "$dir" --prefix dev- --count 4 --ca "$dir/ca" >>"$dir/key.out"
# Another authority, whose device 3 nobody here knows.
"$elver_key" ca --out "$dir/other-ca" --server-name elver.test >>"$dir/key.out"
"$elver_key" make --keys "$dir/other-keys" --out "$dir/other" dev-3 --ca "$dir/other-ca" >>"$dir/key.out"
cat >>"$dir/server.ini" <<INI
ca = $dir/ca/ca.pem
cert = $dir/ca/elver.test.pem
key = $dir/ca/elver.test.key
INI
grep -q certificate "$dir/keys" || fail "the table does not speak of certificates"
[ "$(stat -c %a "$dir/ca/ca.key" "$dir/dev-1.key" | sort -u)" = 600 ] || fail "a private key is not private"

start_server
start_client 3 --server-name another.test # not whom it wants to talk to
wrong_name=$client_3
cp "$dir/dev-3.cred" "$dir/good.cred"
launch stranger "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
    --credential "$dir/other/dev-3.cred" --data "csv $dir/train.csv" --server-name elver.test
stranger=$!
refuses 2 'server-name\|server.s certificate must say' "$elver_client" --job tiny \
    --server "coaps://127.0.0.1:$port" --credential "$dir/dev-3.cred" --data "csv $dir/train.csv"
# Without a name it is that of the host, which the certificate does not say.
launch unnamed "$elver_client" --server "coaps://localhost:$port" --job tiny \
    --credential "$dir/dev-2.cred" --data "csv $dir/train.csv"
unnamed=$!
await 30 "the wrong name to be noticed" seen "$dir/client-3.log" 'event=link state=distrusted'
await 30 "the host's name to be missed" seen "$dir/unnamed.log" 'event=link state=distrusted'
await 30 "the stranger to be refused" seen "$dir/stranger.log" 'event=link state=\(distrusted\|refused\)'
[ "$(count_of "$dir/server.log" 'event=joined')" = 0 ] || fail "somebody was let in"
# Whoever shows a wrong certificate on the way must not be able to end a client for good.
for pid in "$wrong_name" "$stranger" "$unnamed"; do
    kill -0 "$pid" 2>/dev/null || fail "a client gave up on a server that only shows a wrong name"
done
kill -9 "$wrong_name" "$stranger" "$unnamed" 2>/dev/null || true

start_clients --server-name elver.test
await_result 60
[ "$(result updates_used)" = 16 ] || fail "not sixteen updates"
for n in 1 2 3 4; do
    eval "pid=\$client_$n"
    expect_exit 0 "$pid" "client $n"
done
stop_server
say "passed"
