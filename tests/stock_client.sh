#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/stock_client.sh SERVER - a CoAP client that is not ours, with another TLS library, gets what
# the protocol promises. SERVER is the program built from stock_server.c. Exits 77 when Debian's
# libcoap3-bin is not installed.
set -eu

server=$1
dir=$(mktemp -d)
pid=
cleanup() {
    exec 3>&- || true
    [ -z "$pid" ] || wait "$pid" || true
    rm -rf "$dir"
}
trap cleanup EXIT

clients=
for c in coap-client-openssl coap-client-gnutls; do
    if command -v "$c" >/dev/null; then
        clients="$clients $c"
    fi
done
if [ -z "$clients" ]; then
    echo "SKIPPED: no coap-client here; install libcoap3-bin to test against a stock client" >&2
    exit 77
fi

mkfifo "$dir/in"
"$server" <"$dir/in" >"$dir/port" &
pid=$!
exec 3>"$dir/in"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    port=$(sed -n 's/^port //p' "$dir/port")
    [ -z "$port" ] || break
    sleep 0.2
done
[ -n "$port" ] || { echo "the server did not start" >&2; exit 1; }

fail() {
    echo "FAILED with $client: $*" >&2
    cat "$dir/out" "$dir/err" >&2
    exit 1
}

ask() { # method path [arguments of the client]
    method=$1
    path=$2
    shift 2
    "$client" -B 10 -u dev-1 -k 0123456789abcdef -m "$method" "$@" \
        "coaps://127.0.0.1:$port/$path" >"$dir/out" 2>"$dir/err" </dev/null || fail "$method $path"
}

says() { grep -q -- "$1" "$dir/out" "$dir/err" || fail "no '$1' in the answer"; }

# The pattern of world_byte(n, i).
pattern() { # n length
    awk -v n="$1" -v len="$2" \
        'BEGIN { for (i = 0; i < len; i++) print (n * 31 + i * 7 + int(i / 256)) % 256 }'
}
same_bytes() { # file n length
    od -An -v -tu1 -w1 "$1" | tr -d ' ' >"$dir/got"
    pattern "$2" "$3" | cmp -s - "$dir/got" || fail "the bytes differ"
}

for client in $clients; do
    ask get .well-known/core
    says '</j/demo>;rt="elver.manifest";ct=60'
    says '</j/demo/t>;rt="elver.ticket";ct=60;obs'

    ask get j/demo -o "$dir/manifest" # 5,000 bytes, block by block
    same_bytes "$dir/manifest" 1 5000
    ask get j/demo -b 256 -o "$dir/manifest"
    same_bytes "$dir/manifest" 1 5000
    ask get j/demo/m/0123456789abcdef/3 -o "$dir/chunk"
    same_bytes "$dir/chunk" 3 1024

    ask get j/demo/t -o "$dir/ticket"
    [ "$(wc -c <"$dir/ticket")" = 4 ] || fail "a ticket of another size"
    ask get j/demo/t -N -o "$dir/ticket"
    [ "$(wc -c <"$dir/ticket")" = 4 ] || fail "a ticket of another size, asked for once"
    rm -f "$dir/ticket"
    ask get j/demo/t -s 1 -o "$dir/ticket" # the file is appended to with each notification
    [ "$(wc -c <"$dir/ticket")" -ge 8 ] || fail "no notification"

    head -c 1000 /dev/zero >"$dir/body"
    ask put j/demo/u/7/12 -f "$dir/body"
    ask post j/demo/u/7 -e x
    ask delete j/demo/join
    ask put j/demo/t -e x
    says 4.05
    ask get j/demo/nothing
    says 4.04
    ask get j/another/t
    says 4.04
    head -c 3000 /dev/zero >"$dir/body"
    ask put j/demo/u/7/12 -f "$dir/body"
    says 4.13
    echo "$client: as promised"
done
