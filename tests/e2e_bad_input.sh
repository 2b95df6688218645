#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_bad_input.sh BUILD - what the programs refuse, with which exit code, and in what words.
. "$(dirname "$0")/e2e.sh"
make_world
ini=$dir/server.ini job=$dir/job.ini cred=$dir/dev-1.cred

# server CODE PATTERN [OPTION...]; client likewise, with what it needs.
server() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$elver_server" --config "$ini" --job "$job" "$@"
}
client() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
        --credential "$cred" --data "csv $dir/train.csv" "$@"
}
# edited FILE SED_SCRIPT: a changed copy, its name in $copy
edited() {
    copy=$dir/edited.ini
    sed "$2" "$1" >"$copy"
}
line_of() { grep -n "$2" "$1" | head -n 1 | cut -d: -f1; }

say "usage"
refuses 2 'unrecognized option' "$elver_server" --no-such-flag
refuses 2 'a job is missing' "$elver_server" --config "$ini"
server 2 'it takes no arguments' more
server 2 'SECTION.KEY=VALUE' --set nonsense
server 2 '--set job.rounds=many: ' --set job.rounds=many
server 2 'no key round.*did you mean rounds' --set job.round=4
refuses 2 'unrecognized option' "$elver_client" --no-such-flag
refuses 2 'the server is missing' "$elver_client" --job tiny --credential "$cred" --data "csv x"
client 2 'the job is missing or no name' --job 'a b'
client 2 '1 to 100' --duty 200
client 2 'from 0 to one less than --of' --index 4 --of 4
client 2 'reserved' --trainer true
client 1 'Not a directory' --state /dev/null/state
client 1 'No such file' --state "$dir/no/such/folder"
launch holder "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny --credential "$cred" \
    --data "csv $dir/train.csv" --state "$dir/client-state"
holder=$!
await 10 "a client that holds its state" test -s "$dir/client-state/lock"
client 1 "process $holder uses it" --state "$dir/client-state"
kill "$holder"
expect_exit 0 "$holder" "the client that holds its state"
client 2 'another device or job' --state "$dir/client-state" --credential "$dir/dev-2.cred"
refuses 2 'a command is missing' "$elver_key"
refuses 2 'no such command' "$elver_key" burn
refuses 0 'elver-server 0' "$elver_server" --version
refuses 0 'elver-client 0' "$elver_client" --version
refuses 0 'elver-key 0' "$elver_key" --version
refuses 0 'Exit codes' "$elver_client" --help

say "configuration files"
edited "$ini" 's/^linger/lingre/'
server 2 "edited.ini:$(line_of "$copy" lingre): .*linger" --config "$copy"
edited "$ini" 's/^linger = .*/linger = soon/'
server 2 "edited.ini:$(line_of "$copy" linger): .*duration" --config "$copy"
edited "$job" 's/^rounds/ronds/'
server 2 "edited.ini:$(line_of "$copy" ronds): .*rounds" --job "$copy"
edited "$job" 's/^learning_rate = .*/learning_rate = fast/'
server 2 "edited.ini:$(line_of "$copy" learning_rate): .*number" --job "$copy"
edited "$job" 's/^policy = .*/policy = anarchy/'
server 2 "edited.ini:$(line_of "$copy" anarchy): .*bsp" --job "$copy"
edited "$job" 's/^layers = .*/layers = dense 16 relu, dance 3/'
server 2 "edited.ini:$(line_of "$copy" dance): " --job "$copy"
edited "$job" 's/^seed/nonsense\nseed/'
server 2 "edited.ini:$(line_of "$copy" nonsense): " --job "$copy"
server 2 'no-such.ini: ' --job "$dir/no-such.ini"
server 2 'no-such-keys' --keys "$dir/no-such-keys"
server 2 'no-such.csv' --set "data.test=csv $dir/no-such.csv"
server 0 'job.ini: ok' --check-config
server 2 'many' --check-config --set job.rounds=many
server 0 "^server.linger = 60s *; $ini:[0-9]*" --print-config
server 0 '^server.linger = 1s *; flag' --print-config --linger 1s
server 0 '^job.rounds = 9 *; flag' --print-config --set job.rounds=9
server 0 "^job.seed = 7 *; $job:[0-9]*" --print-config
server 0 '^aggregate.rule = fedavg *; default' --print-config
refuses 0 '^sync.policy = bsp *; default' "$elver_server" --print-config
refuses 2 '^job.rounds = 0 *; default' "$elver_server" --print-config --job /dev/null
[ ! -e "$dir/state" ] || fail "a refused start left a state"

say "data"
client 2 'no-such.csv' --data "csv $dir/no-such.csv"
client 2 'idx DIR' --data nonsense
sed '5s/,/,x/' "$dir/train.csv" >"$dir/broken.csv"
client 2 'broken.csv.*5' --data "csv $dir/broken.csv"
: >"$dir/empty.csv"
client 2 'empty.csv' --data "csv $dir/empty.csv"

server 2 '8 values and 3 classes do not fit .* 7 inputs and 3 outputs' --set model.input=7x1x1
server 2 '8 values and 3 classes do not fit .* 8 inputs and 2 outputs' --set 'model.layers=dense 2'

say "credentials and keys"
client 2 'no-such.cred' --credential "$dir/no-such.cred"
cp "$cred" "$dir/open.cred" && chmod 644 "$dir/open.cred"
client 2 'open.cred' --credential "$dir/open.cred"
cp "$dir/keys" "$dir/open-keys" && chmod 644 "$dir/open-keys"
server 2 'open-keys' --keys "$dir/open-keys"
sed 's/^key = .*/key = xyz/' "$cred" >"$dir/bad.cred" && chmod 600 "$dir/bad.cred"
client 2 'bad.cred:2: ' --credential "$dir/bad.cred"
(umask 077 && cat "$dir/keys" >"$dir/bad-keys" && echo '5 dev-5 xyz' >>"$dir/bad-keys")
server 2 "bad-keys:$(wc -l <"$dir/bad-keys"): " --keys "$dir/bad-keys"
refuses 1 'dev-1.*in the table already' "$elver_key" make --keys "$dir/keys" --out "$dir" dev-1
refuses 1 'nobody.*not in the table' "$elver_key" revoke --keys "$dir/keys" nobody
[ "$("$elver_key" list --keys "$dir/keys" | grep -c enabled)" = 4 ] || fail "not four keys"

say "in the clear"
client 2 'in the clear' --server "coap://127.0.0.1:$port"
server 2 'in the clear' --listen "coap://127.0.0.1:$port"
start_server --insecure --listen "coap://127.0.0.1:$port" --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1000
seen "$dir/server.log" 'level=warn event=insecure ' || fail "the server does not shout"
client 0 'event=accepted' --server "coap://127.0.0.1:$port" --insecure --once
server 1 "another server uses .* (process $server)" --listen "127.0.0.1:$((port + 1))"
stop_server
start_server --set sync.quorum=1 --set select.min_clients=1 --set job.rounds=1000
running "$server" || fail "the server ended"
sed 's/^[^,]*,//' "$dir/train.csv" >"$dir/narrow.csv"
client 3 '7 values and 3 classes do not fit .* 8 inputs and 3 outputs' --data "csv $dir/narrow.csv"
timeout -s KILL 3 "$elver_client" --server "coap://127.0.0.1:$port" --insecure --job tiny \
    --credential "$cred" --data "csv $dir/train.csv" --once 2>"$dir/clear.log" &&
    fail "a client in the clear was served"
[ "$(count_of "$dir/clear.log" 'event=joined')" = 0 ] || fail "a client in the clear has joined"

say "addresses"
server 1 "127.0.0.1:$port" --state "$dir/state-2"
server 2 "cannot read the address '127.0.0.1:x'" --state "$dir/state-2" --listen 127.0.0.1:x
client 2 'coaps://host' --server "http://127.0.0.1"

say "a model that does not fit"
stop_server
fresh
sed -i 's/^layers = .*/layers = dense 4096 relu, dense 2048 relu, dense 3/' "$job"
start_server --set sync.quorum=1 --set select.min_clients=1
client 3 'model_too_big' --memory 1
await 5 "the refusal in the log" seen "$dir/server.log" 'event=join_refused .*reason=model_too_big'
stop_server
say "passed"
