#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_sim.sh BUILD [threads] - elver-sim as it is used: real training, a sweep on one and on two
# threads, interrupted and taken up again, and what it refuses in which words; with a second argument
# only what threads do beside each other.
. "$(dirname "$0")/e2e.sh"
sim=$build/ports/sim/elver-sim
job=$dir/job.ini world=$dir/world.ini
make_data
make_job
sed -i 's/^quorum = .*/quorum = 1/;s/^deadline = .*/deadline = 5s/' "$job"
cat >"$world" <<'INI'
[world]
learning = network
[device]
compute = lognormal 20ms 0.5
per = step
stragglers = 0.25 10 fixed
[link]
latency = constant 10ms
[availability]
dropout = 0.05
INI
cat >"$dir/cheap.ini" <<'INI'
[job]
name = cheap
rounds = 30
[client]
local_steps = 1
learning_rate = 0.1
[sync]
policy = backup
backup = 2
INI
cat >"$dir/cheap-world.ini" <<'INI'
[world]
learning = quadratic
clients = 16
noise = 4
[device]
compute = exponential 0.3 0.7
INI

# sim CODE PATTERN [OPTION...]: with the tiny job; cheap likewise.
sim() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$sim" --job "$job" --world "$world" --clients 4 "$@"
}
cheap() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$sim" --job "$dir/cheap.ini" --world "$dir/cheap-world.ini" "$@"
}
# field KEY [LINE_PATTERN]: of the last such line of what the program said.
field() {
    grep "^${2:-run} " "$dir/refused.out" | tail -n 1 | tr ' ' '\n' | sed -n "s/^$1=//p"
}
# same DIR DIR: every file but host.json has the same bytes.
same() {
    diff -r --exclude=host.json "$1" "$2" >/dev/null || fail "$1 and $2 differ"
}
line_of() { grep -n "$2" "$1" | head -n 1 | cut -d: -f1; }

say "threads beside each other, on the same data"
sim 0 '^result label=backup:backup=1 seeds=2 ' --sweep sync.policy=bsp,backup:backup=1 --seeds 2 \
    --threads 4 --out "$dir/beside" --set job.rounds=2
[ -z "${2:-}" ] || { say "passed"; exit 0; }

say "real training"
sim 0 '^run label=bsp seed=7 reached=- ' --out "$dir/real" --set client.arithmetic=reference
[ "$(field rounds)" = 4 ] || fail "not four rounds"
[ "$(field accuracy)" \> 0.5 ] || fail "nothing was learnt: $(field accuracy)"
for f in manifest.json rounds.csv events.jsonl participation.csv summary.json report.html host.json; do
    [ -s "$dir/real/$f" ] || fail "no $f"
done
[ "$(lines "$dir/real/rounds.csv")" = 5 ] || fail "not a row for each round"
[ "$(lines "$dir/real/events.jsonl")" = 4 ] || fail "not an event for each round"
[ -z "$(find "$dir/real" -name '*.part')" ] || fail "something is left over"
grep -q "\"job.seed\": {\"value\": \"7\", \"from\": \"$job:" "$dir/real/manifest.json" ||
    fail "the manifest does not say where the seed is from"
grep -q '"world.clients": {"value": "4", "from": "flag"}' "$dir/real/manifest.json" ||
    fail "the manifest does not say where the clients are from"
if command -v python3 >/dev/null; then
    python3 - "$dir/real" <<'PY' || fail "that is no JSON"
import json, sys
for name in ("manifest", "summary", "host"):
    json.load(open(f"{sys.argv[1]}/{name}.json"))
for line in open(f"{sys.argv[1]}/events.jsonl"):
    json.loads(line)
PY
fi

say "the same bytes on other kernels with reference arithmetic, and without files the same figures"
was=$(field model)
ELV_KERNELS=ref "$sim" --job "$job" --world "$world" --clients 4 --set client.arithmetic=reference \
    --out "$dir/ref" --quiet >"$dir/refused.out" || fail "a run fails"
same "$dir/real" "$dir/ref"
sim 0 '^result label=bsp seeds=1 ' --set client.arithmetic=reference
[ "$(field model)" = "$was" ] || fail "another model without --out"

say "events"
sim 0 '^run ' --out "$dir/all" --events all
seen "$dir/all/events.jsonl" '"event":"used"' 8 || fail "no events of clients"
sim 0 '^run ' --out "$dir/none" --events none
[ ! -e "$dir/none/events.jsonl" ] || fail "events nobody asked for"

say "the server and the clients themselves, exchanging every message"
sim 0 '^run label=bsp seed=7 reached=- ' --out "$dir/messages" --detail messages --events all \
    --set availability.dropout=0 --set client.arithmetic=reference --set sync.deadline=60s
[ "$(field rounds)" = 4 ] || fail "not four rounds"
was=$(field model)
[ "$(lines "$dir/messages/rounds.csv")" = 5 ] || fail "not a row for each round"
seen "$dir/messages/events.jsonl" '"event":"used"' 16 || fail "not an event for each update"
sim 0 '^run ' --set availability.dropout=0 --set client.arithmetic=reference --set sync.deadline=60s
[ "$(field model)" = "$was" ] || fail "another model than when messages are only times"
sim 0 '^run ' --out "$dir/faults" --detail messages --set faults.client_crash=3s \
    --set faults.server_crash=4s --set link.duplicate=0.05 --set link.loss=0.02
[ "$(field rounds)" -ge 4 ] || fail "crashes end a run"

say "clients that evaluate tell the same in both details, of streams and of rounds"
for policy in bsp asp; do
    for detail in timing messages; do
        sim 0 '^run .*end=rounds' --set data.holdout=0.25 --set eval.on=clients --set link.latency='constant 0' \
            --set availability.dropout=0 --set client.arithmetic=reference --set sync.deadline=60s \
            --set sync.policy=$policy --detail $detail --out "$dir/$policy-$detail"
    done
    cut -d, -f1,2,9-12 "$dir/$policy-timing/rounds.csv" >"$dir/timing.cut"
    cut -d, -f1,2,9-12 "$dir/$policy-messages/rounds.csv" | cmp - "$dir/timing.cut" ||
        fail "$policy: other updates when every message is sent"
done
for detail in timing messages; do
    sim 0 '^run label=bsp seed=7 reached=1 .*end=target' --set data.holdout=0.25 --set eval.on=clients \
        --set availability.dropout=0 --detail $detail --until accuracy=0.6
done
sim 2 'give .data. holdout' --set eval.on=clients --until accuracy=0.6

say "until"
cheap 0 '^run .*reached=1 ' --until loss=3
[ "$(field rounds)" -lt 30 ] || fail "it did not stop at the target"
cheap 3 '^run .*reached=0 time=nan ' --until loss=1e-9
cheap 0 '^run .*reached=- ' --until rounds=5
[ "$(field rounds)" = 5 ] || fail "not five rounds"
cheap 0 '^run .*ended=9\.000000 ' --until time=9s
cheap 3 '^run .*reached=0 ' --until loss=1e-9 --until time=9s
sim 3 '^run .*reached=0 ' --until accuracy=1 --until rounds=1

say "a sweep, the same on one thread and on two"
set -- --sweep sync.policy=bsp,backup,backup:backup=5,asp --sweep device.jitter=0,0.2 --seeds 3
cheap 0 '^result label=asp,device.jitter=0.2 seeds=3 ' "$@" --out "$dir/one" --threads 1
cp "$dir/refused.out" "$dir/one.out"
cheap 0 '^result ' "$@" --out "$dir/two" --threads 2
same "$dir/one" "$dir/two"
diff "$dir/one.out" "$dir/refused.out" || fail "it says something else on two threads"
[ "$(count_of "$dir/one.out" '^run ')" = 24 ] || fail "not 24 runs"
[ "$(count_of "$dir/one.out" '^result ')" = 8 ] || fail "not 8 labels"
[ -s "$dir/one/runs/backup:backup=5,device.jitter=0-seed-3/rounds.csv" ] || fail "no folder of a run"
[ "$(count_of "$dir/one/summary.json" '"label"')" = 8 ] || fail "not 8 labels in the summary"

say "finished runs are kept, others are not confused with them"
touch -d '2001-01-01' "$dir/one/runs/asp,device.jitter=0-seed-1/rounds.csv"
rm -r "$dir/one/runs/bsp,device.jitter=0-seed-2"
cheap 0 '^result ' "$@" --out "$dir/one" --threads 2
same "$dir/one" "$dir/two"
[ "$(count_of "$dir/one/host.json" wall_s)" = 2 ] || fail "more was run than was missing"
[ -z "$(find "$dir/one/runs/asp,device.jitter=0-seed-1/rounds.csv" -newermt 2002-01-01)" ] ||
    fail "a finished run was repeated"
sed -i 's/"used": /"used": 1/' "$dir/one/runs/bsp,device.jitter=0-seed-1/summary.json"
sed -i 's/"seed": 2/"seed": 3/' "$dir/one/runs/bsp,device.jitter=0-seed-2/summary.json"
cheap 0 '^run label=bsp,device.jitter=0 seed=2 ' "$@" --out "$dir/one"
cmp "$dir/one/runs/bsp,device.jitter=0-seed-2/summary.json" \
    "$dir/two/runs/bsp,device.jitter=0-seed-2/summary.json" || fail "a wrong summary was believed"
cheap 2 'holds results of another configuration' --out "$dir/one" "$@" --set world.noise=5
cheap 2 'holds results of another configuration' --out "$dir/one"
cheap 0 '^run ' --out "$dir/one" --force
[ ! -e "$dir/one/runs" ] || fail "results of another configuration are left"
[ -s "$dir/one/rounds.csv" ] || fail "no results"

say "interrupted and taken up again"
set -- --job "$dir/cheap.ini" --world "$dir/cheap-world.ini" --sweep sync.policy=bsp,backup --seeds 10 \
    --until rounds=6000
"$sim" "$@" --out "$dir/whole" --quiet >"$dir/whole.out" 2>"$dir/whole.log"
launch cut "$sim" "$@" --out "$dir/cut" --threads 1
await 20 "a run to end" test -s "$dir/cut/runs/bsp-seed-2/summary.json"
kill -INT $!
expect_exit 130 $! "the interrupted sweep"
seen "$dir/cut.log" 'interrupted: [0-9]* of 20 runs are finished and kept in ' ||
    fail "it does not say what is kept"
[ ! -e "$dir/cut/summary.json" ] || fail "a summary of half a sweep"
[ -z "$(find "$dir/cut" -name '*.part')" ] || fail "a part of a file is left"
kept=$(find "$dir/cut" -name summary.json | wc -l)
[ "$kept" -lt 20 ] || fail "it was not interrupted"
"$sim" "$@" --out "$dir/cut" --threads 2 --quiet >"$dir/again.out" 2>"$dir/again.log" ||
    fail "it does not go on"
same "$dir/whole" "$dir/cut"
diff "$dir/whole.out" "$dir/again.out" || fail "it says something else after an interruption"
[ "$(count_of "$dir/cut/host.json" wall_s)" = $((21 - kept)) ] || fail "finished runs were repeated"
[ ! -s "$dir/again.log" ] || fail "--quiet is not quiet"

say "one folder, one process"
launch first "$sim" "$@" --out "$dir/shared" --threads 1 --until rounds=10000000
await 10 "the folder" test -s "$dir/shared/manifest.json"
refuses 1 'another elver-sim writes there' "$sim" "$@" --out "$dir/shared"
kill $!
expect_exit 143 $! "the terminated sweep"

say "usage"
refuses 2 'unrecognized option' "$sim" --no-such-flag
refuses 2 'a job is missing' "$sim" --world "$world"
refuses 0 'Exit codes: 0 done' "$sim" --help
refuses 0 '^elver-sim 0' "$sim" --version
sim 2 'it takes no arguments' more
sim 2 'SECTION.KEY=VALUE' --set nonsense
sim 2 '--set job.rounds=many: ' --set job.rounds=many
sim 2 '--set world.clients=-1: .*whole number' --clients -1
sim 2 'a world has world, device' --set wrld.clients=3
sim 2 '--threads 0: ' --threads 0
sim 2 '--events some: .*none, rounds or all' --events some
sim 2 '--until.*accuracy=A' --until tomorrow
sim 2 '--sweep sync.policy: ' --sweep sync.policy
sim 2 '--seeds 0: ' --seeds 0
sim 2 'more than 10000 runs' --seeds 1000 --sweep device.jitter=0,1,2,3,4,5,6,7,8,9,10
sim 2 'detail cannot be' --detail fine
cheap 2 'learning = network' --detail messages
sim 2 'max_weight' --set aggregate.max_weight=4294967295 --clients 16777216 --set data.partition=iid
sim 1 'Not a directory' --out "$job/x"
ELV_KERNELS=abacus "$sim" --job "$job" --world "$world" --clients 4 2>"$dir/refused.log" &&
    fail "it runs with kernels that are not there"

say "files"
# edited FILE SED_SCRIPT: a changed copy, its name in $copy
edited() {
    copy=$dir/edited.ini
    sed "$2" "$1" >"$copy"
}
edited "$world" 's/^compute = .*/compute = lognormal -1 0.5/'
sim 2 "edited.ini:$(line_of "$copy" compute): .*lognormal MEDIAN SIGMA" --world "$copy"
edited "$world" 's/^compute/compute_time/'
sim 2 "edited.ini:$(line_of "$copy" compute_time): .*compute" --world "$copy"
edited "$world" 's/^dropout/dropuot/'
sim 2 "edited.ini:$(line_of "$copy" dropuot): .*did you mean dropout" --world "$copy"
edited "$world" 's/^dropout = .*/on = constant 5s/'
sim 2 "edited.ini:$(line_of "$copy" 'on = '): .*give both" --world "$copy"
edited "$world" '$a [faults]\nserver_crash = 10s'
sim 2 "edited.ini:$(line_of "$copy" server_crash): .*detail = messages" --world "$copy"
edited "$world" '$a [fault]\nserver_crash = 10s'
sim 2 "edited.ini:$(line_of "$copy" server_crash): .*did you mean faults" --world "$copy"
edited "$job" 's/^quorum = .*/quorum = 5/;s/^min_clients = .*/min_clients = 5/'
sim 2 "edited.ini:$(line_of "$copy" quorum): quorum is at most 4" --job "$copy"
edited "$job" 's/^policy = .*/policy = anarchy/'
sim 2 "edited.ini:$(line_of "$copy" anarchy): .*bsp" --job "$copy"
edited "$job" 's/^policy = .*/policy = backup\nk = 5/'
sim 2 "edited.ini:$(line_of "$copy" 'k = 5'): .*at most the number of clients" --job "$copy"
edited "$job" 's/^rounds/; rounds/'
sim 2 'a run needs an end' --job "$copy"
edited "$job" 's/^train/; train/'
sim 2 'what do clients train on' --job "$copy"
sim 2 'no-such.ini: ' --world "$dir/no-such.ini"
sim 2 'no-such.csv' --set "data.train=csv $dir/no-such.csv"
sim 2 'job.ini: .*examples' --clients 400 --set 'data.partition=dirichlet 0.5'
sim 2 'job.ini: the training examples have 8 values' --set model.input=9x1x1
sim 2 'job.ini: the training examples have 3 classes' --set 'model.layers=dense 2'
echo 1,2,3,0 >"$dir/narrow.csv"
sim 2 'job.ini: the examples of the test set have 3 values' --set "data.test=csv $dir/narrow.csv"
cheap 2 'backup: .*takes one of' --sweep sync.policy=bsp,backup --set sync.k=99
cheap 2 'cheap.ini:[0-9]*: backup is not a parameter' --sweep sync.policy=bsp
cheap 2 'anarchy: .*anarchy is not known here' --sweep sync.policy=backup,anarchy
cat >"$dir/gap.csv" <<'CSV'
client,start,end,compute_ms,up_bytes_s,down_bytes_s
1,0,10,5,1000,1000
3,0,10,5,1000,1000
CSV
edited "$dir/cheap-world.ini" "s/^compute = .*/jitter = 0/;\$a [availability]\ntrace = $dir/gap.csv"
cheap 2 'gap.csv:3: ' --world "$copy"
sed -i 's/^3,0,10,5/2,0,10,five/' "$dir/gap.csv"
cheap 2 'gap.csv:3: ' --world "$copy"
sed -i 's/five/5/' "$dir/gap.csv"
cheap 2 'fewer clients than the world' --world "$copy"
sed -i 's/^clients.*//' "$copy"
cheap 0 '^world.clients = 2 ' --world "$copy" --print-config
cheap 0 '^run ' --world "$copy" --set sync.backup=1 --until rounds=1

say "configuration in force"
sim 0 "^device.per = step *; $world:[0-9]*" --print-config
sim 0 '^world.clients = 4 *; flag' --print-config
sim 0 '^link.loss = 0 *; default' --print-config
sim 0 '^select.min_clients = 4 *; ' --print-config
refuses 0 '^world.detail = timing *; default' "$sim" --print-config
sim 2 'anarchy is not known' --print-config --set sync.policy=anarchy
say "passed"
