#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/attack_certs.sh BUILD - certificates that prove nothing, shown to a server and to a client.
. "$(dirname "$0")/e2e.sh"
command -v openssl >/dev/null || exit 77
make_data
make_job
"$elver_key" ca --out "$dir/ca" --server-name elver.test >"$dir/key.out"
"$elver_key" make --keys "$dir/keys" --out "$dir" --prefix dev- --count 4 --ca "$dir/ca" >>"$dir/key.out"
cat >>"$dir/server.ini" <<INI
ca = $dir/ca/ca.pem
cert = $dir/ca/elver.test.pem
key = $dir/ca/elver.test.key
INI

# forge NAME SUBJECT SIGNER_CERT SIGNER_KEY [OPENSSL-OPTION...]: NAME.key, NAME.pem and NAME.cred.
forge() {
    name=$1 subject=$2 signer=$3 signer_key=$4
    shift 4
    {
        [ -s "$dir/$name.key" ] ||
            openssl ecparam -name prime256v1 -genkey -noout -out "$dir/$name.key"
        openssl req -new -key "$dir/$name.key" -subj "$subject" -out "$dir/$name.csr"
        printf '%s\n' "${extensions:-basicConstraints=CA:FALSE}" >"$dir/$name.ext"
        openssl x509 -req -in "$dir/$name.csr" -CA "$signer" -CAkey "$signer_key" \
            -set_serial $((0x1000 + $$)) -sha256 -extfile "$dir/$name.ext" -out "$dir/$name.pem" "$@"
    } >>"$dir/openssl.out" 2>&1 || fail "openssl could not make $name"
    chmod 600 "$dir/$name.key"
    printf 'identity = dev-2\ncertificate = %s.pem\nprivate_key = %s.key\nca = ca/ca.pem\n' \
        "$name" "$name" >"$dir/$name.cred"
    chmod 600 "$dir/$name.cred"
}

# shown NAME: the server is shown NAME's certificate, and lets nobody in.
shown() {
    launch "$1" "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
        --credential "$dir/$1.cred" --data "csv $dir/train.csv" --server-name elver.test
    shower=$!
    await 30 "$1 to be refused" turned_away "$1"
    kill -9 "$shower" 2>/dev/null || true
    running "$server" || fail "$1: the server ended"
    [ "$(count_of "$dir/server.log" 'event=joined')" = 0 ] || fail "$1 was let in"
}
turned_away() {
    ended "$shower" || seen "$dir/$1.log" 'event=link state=\(distrusted\|refused\|closed\)' ||
        seen "$dir/$1.log" 'reason=revoked'
}

say "certificates of clients"
start_server
ca=$dir/ca/ca.pem ca_key=$dir/ca/ca.key
forge by-device /CN=dev-2 "$dir/dev-1.pem" "$dir/dev-1.key"
cat "$dir/dev-1.pem" >>"$dir/by-device.pem" # a device is no authority
extensions='basicConstraints=CA:TRUE' forge by-device-ca /CN=dev-2 "$dir/dev-1.pem" "$dir/dev-1.key"
cat "$dir/dev-1.pem" >>"$dir/by-device-ca.pem"
forge expired /CN=dev-2 "$ca" "$ca_key" -days -1
forge self /CN=dev-2 "$ca" "$ca_key"
openssl req -x509 -key "$dir/self.key" -subj /CN=dev-2 -out "$dir/self.pem" >>"$dir/openssl.out" 2>&1
forge nobody /CN=nobody "$ca" "$ca_key"
forge no-name /O=elver "$ca" "$ca_key"
forge odd-name '/CN=..\/..\/dev-2' "$ca" "$ca_key"
forge long-name "/O=$(printf '%064d' 0)/OU=$(printf '%064d' 1)/CN=dev-2$(printf '%058d' 0)" "$ca" "$ca_key"
extensions="subjectAltName=$(seq -f 'DNS:d%g.test' -s , 300)" forge many-names /CN=nobody "$ca" "$ca_key"
openssl genrsa -out "$dir/rsa.key" 2048 >>"$dir/openssl.out" 2>&1
forge rsa /CN=nobody "$ca" "$ca_key"
openssl ecparam -name secp384r1 -genkey -noout -out "$dir/p384.key"
forge p384 /CN=nobody "$ca" "$ca_key"
for name in by-device by-device-ca expired self nobody no-name odd-name long-name rsa p384; do
    shown $name
done
printf 'identity = dev-2\ncertificate = dev-2.pem\nprivate_key = dev-1.key\nca = ca/ca.pem\n' >"$dir/mixed.cred"
chmod 600 "$dir/mixed.cred"
refuses 1 'the private key is not' "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
    --credential "$dir/mixed.cred" --data "csv $dir/train.csv" --server-name elver.test
refuses 1 'too long for a handshake' "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
    --credential "$dir/many-names.cred" --data "csv $dir/train.csv" --server-name elver.test
stop_server

say "certificates of servers"
forge false-server /CN=elver.test "$dir/dev-1.pem" "$dir/dev-1.key"
cat "$dir/dev-1.pem" >>"$dir/false-server.pem"
forge old-server /CN=elver.test "$ca" "$ca_key" -days -1
for false in dev-1 false-server old-server self; do
    rm -rf "$dir/state" "$dir"/client-3.*
    start_server --set server.cert="$dir/$false.pem" --set server.key="$dir/$false.key"
    start_client 3 --server-name elver.test
    await 30 "$false to be seen through" seen "$dir/client-3.log" \
        'event=link state=\(distrusted\|refused\)' # dev-1: its own end knows that it is no server
    [ "$(count_of "$dir/client-3.log" 'event=joined')" = 0 ] || fail "$false was believed"
    kill -9 "$client_3"
    stop_server
done
say "passed"
