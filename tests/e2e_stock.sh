#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_stock.sh BUILD - CoAP clients that are not ours, with other TLS libraries, and a device's
# credential get from a running server what the protocol promises. Exits 77 when Debian's
# libcoap3-bin is not installed.
. "$(dirname "$0")/e2e.sh"
clients=
for c in coap-client-openssl coap-client-gnutls; do
    if command -v $c >/dev/null; then clients="$clients $c"; fi
done
if [ -z "$clients" ]; then
    echo "SKIPPED: no coap-client here; install libcoap3-bin to test against a stock client" >&2
    exit 77
fi
make_data
make_job
# The tool takes the key as text, so it must be printable.
"$elver_key" make --keys "$dir/keys" --out "$dir" --prefix dev- --count 4 >"$dir/key.out"
key=0123456789abcdef0123456789abcdef
hex=$(printf %s "$key" | od -An -v -tx1 | tr -d ' \n')
(umask 077 && sed "s/^4 dev-4 [0-9a-f]*/4 dev-4 $hex/" "$dir/keys" >"$dir/keys.new")
mv "$dir/keys.new" "$dir/keys"
sed -i "s/^key = .*/key = $hex/" "$dir/dev-4.cred"

start_server --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1000000
start_client 4 # joins; the tool then asks for work in its place
await 30 "the next round" seen "$dir/server.log" 'event=round_opened ' 2
kill -9 "$client_4"
wait "$client_4" 2>/dev/null || true

ask() { # METHOD PATH [OPTION...]: the body goes to $dir/body, what the tool says to asked.log
    method=$1 path=$2
    shift 2
    rm -f "$dir/body"
    timeout -s KILL 20 "$client" -B 10 -v 6 -u dev-4 -k "$key" -m "$method" -o "$dir/body" "$@" \
        "coaps://127.0.0.1:$port/$path" >"$dir/asked.log" 2>&1 </dev/null ||
        fail "$client $method $path"
}
says() { grep -q -a -e "$1" "$dir/asked.log" "$dir/body" 2>/dev/null || fail "$client: no '$1' in the answer"; }

for client in $clients; do
    ask get .well-known/core
    says '</j/tiny>;rt="elver.manifest"'
    says '</j/tiny/t>;rt="elver.ticket"'
    ask get j/tiny
    [ -s "$dir/body" ] || fail "$client: no manifest"
    says 'dense 16 relu, dense 3'
    ask get j/tiny/t
    says ' c:2.05 .*Content-Format:application/cbor'
    [ "$(wc -c <"$dir/body")" -gt 30 ] || fail "$client: that is no ticket"
    ask get j/nothing
    says '4\.04'
    timeout -s KILL 20 "$client" -B 3 -u dev-4 -k 'another key of some length' -m get \
        "coaps://127.0.0.1:$port/j/tiny" >"$dir/asked.log" 2>&1 </dev/null || true
    grep -q -a 'dense 16' "$dir/asked.log" && fail "$client: served with a wrong key"
    say "$client: as promised"
done
stop_server
say "passed"
