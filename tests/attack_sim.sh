#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/attack_sim.sh BUILD [SANITIZER] - elver-sim with input and machines that are out to break it:
# numbers that are none, files that are no text, worlds where nothing can happen, disks that are
# full, memory that is short, two of it in one folder, killed at any moment. It ends by itself with
# a sentence and the right code, and never takes half of something for all of it.
. "$(dirname "$0")/e2e.sh"
sim=$build/ports/sim/elver-sim
sanitizer=${2:-}
ulimit -c 0
cat >"$dir/job.ini" <<'INI'
[job]
name = cheap
rounds = 10
[client]
local_steps = 1
learning_rate = 0.1
[sync]
policy = bsp
quorum = 1
INI
cat >"$dir/world.ini" <<'INI'
[world]
learning = quadratic
clients = 8
noise = 4
[device]
compute = exponential 0.3 0.7
INI
cd "$dir"

# sim CODE PATTERN [OPTION...]
sim() {
    code=$1 words=$2
    shift 2
    refuses "$code" "$words" "$sim" --job job.ini --world world.ini --quiet "$@"
}
same() {
    diff -r --exclude=host.json "$1" "$2" >/dev/null || fail "$1 and $2 differ"
}

say "numbers that are none"
for v in nan inf -inf NaN 1e308 1e309 -1 1e-320 0x10 1e + 1/0 0/0 ''; do
    for key in world.horizon world.noise world.loss_noise world.target_loss world.spread \
        world.dimensions world.samples world.clients device.jitter link.loss link.duplicate \
        availability.dropout availability.churn faults.client_crash sync.deadline \
        client.learning_rate job.rounds; do
        sim 2 'give ' --set "$key=$v"
    done
    for text in "constant $v" "uniform $v 1" "uniform 0 $v" "exponential 0 $v" "lognormal 1 $v" \
        "classes 1:$v" "classes $v:1"; do
        sim 2 'give ' --set "device.compute=$text"
        sim 2 'give ' --set "link.up=$text"
    done
    sim 2 'give ' --set "device.stragglers=0.1 $v"
    sim 2 'give ' --set "device.regime=0.5 $v from 1s"
    sim 2 'give ' --set "device.start=spread $v"
done
sim 2 'shares adding up to 1' --set 'device.compute=classes 0.5:1 0.5000001:2'
sim 2 'shares adding up to 1' --set 'device.compute=classes 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.2:1'
sim 0 '^run ' --set 'device.compute=classes 1/3:1 1/3:2 1/3:3' --until rounds=1
sim 2 'uniform LOW HIGH' --set 'device.compute=uniform 2 1'

say "files that are no world, and some that are"
head -c 100000 /dev/urandom >random.ini
: >empty.ini
head -c 3000000 /dev/zero >zeros.ini
mkdir folder.ini
printf '[world]\nclients = 8\nclients = 9\n' >twice.ini
printf '\377\376[\0w\0o\0' >utf16.ini
printf '[world\nclients = 8\n' >bracket.ini
{ printf '[world]\ntrace = '; head -c 100000 /dev/zero | tr '\0' x; } >long.ini
sed 's/$/\r/' world.ini >crlf.ini
{ printf '\357\273\277' && cat world.ini; } >bom.ini
for f in random zeros folder twice utf16 bracket long missing; do
    refuses 2 "$f.ini" "$sim" --job job.ini --world $f.ini
    refuses 2 "$f.ini" "$sim" --job $f.ini --world world.ini
done
refuses 2 'needs input' "$sim" --job job.ini --world empty.ini
refuses 2 'a run needs an end' "$sim" --job empty.ini --world world.ini
for f in crlf bom; do
    refuses 0 '^run label=bsp seed=1 ' "$sim" --job job.ini --world $f.ini
done

say "traces"
head='client,start,end,compute_ms,up_bytes_s,down_bytes_s'
printf '[world]\nlearning = quadratic\n[availability]\ntrace = t.csv\n' >traced.ini
# trace CODE PATTERN TEXT
trace() {
    printf '%b' "$3" >t.csv
    refuses "$1" "$2" "$sim" --job job.ini --world traced.ini --quiet --until rounds=3
}
trace 2 't.csv:1: the first line is client,' ''
trace 2 't.csv:1: there is no client' "$head\n"
for row in 1,0,nan,5,0,0 1,-1,5,5,0,0 1,5,4,5,0,0 1,0,1e308,5,0,0 1,0,31536001,5,0,0 1,0,10,0,0,0 \
    1,0,10,5,inf,0 1,0,10,5,0 1,0,10,5,0,0,0 2,0,10,5,0,0 1.0,0,10,5,0,0 one,0,10,5,0,0 ,,,,,; do
    trace 2 't.csv:2: ' "$head\n$row\n"
done
trace 2 't.csv:3: ' "$head\n1,0,10,5,0,0\n1,5,20,5,0,0\n"
trace 2 't.csv:3: ' "$head\n1,0,10,5,0,0\n3,5,20,5,0,0\n"
trace 2 't.csv:3: ' "$head\n1,0,10,5,0,0\n\n2,0,10,5,0,0\n"
trace 0 '^run ' "$head\r\n1,0,10,5,0,0\r\n"
trace 0 '^run ' "\\0357\\0273\\0277$head\n1,0,10,5,0,0\n1,10,20,5,0,0"
trace 3 'ended early' "$head\n1,0,100,5,1e-9,1e-9\n"
cp random.ini t.csv
refuses 2 't.csv:1: ' "$sim" --job job.ini --world traced.ini
sim 2 'No such file' --world traced.ini --set availability.trace=none.csv
sim 2 'Is a directory' --world traced.ini --set availability.trace=.
awk -v head=$head 'BEGIN { print head; for (c = 1; c <= 20000; c++) for (s = 0; s < 50; s++)
    print c "," 100 * s "," 100 * s + 50 ",5,1000,1000" }' >t.csv
refuses 0 '^run ' "$sim" --job job.ini --world traced.ini --quiet --until rounds=2 \
    --set select.count=100 --set world.learning=nothing

say "worlds where nothing can happen end, and say so"
sim 3 'ended early.*nothing could happen any more' --set 'availability.stay=constant 1ms'
sim 3 'ended early.*no version came' --set 'availability.dropout=0.999999'
sim 3 'ended early.*no version came' --set 'link.up=constant 1e-30'
sim 3 'ended early.*no version came' --set 'link.up=constant 1e-30' --set sync.policy=asp
sim 3 'end=stuck' --set 'device.compute=constant 1e9' --set sync.deadline=1ms
sim 3 'end=stuck' --set 'availability.stay=constant 1ms' --set availability.churn=1 --set sync.quorum=8
sim 0 'end=horizon' --set 'availability.dropout=0.999999' --until time=100s
sim 0 'end=idle' --set 'availability.stay=constant 9s' --until time=100s
sim 2 'give both, above 0' --set 'availability.on=uniform 0 0' --set 'availability.off=constant 1'
sim 0 'end=horizon' --set 'availability.on=constant 1e-9' --set 'availability.off=constant 10ms' \
    --until time=9s
sim 2 'nothing takes time' --set 'device.compute=uniform 0 0' --set job.rounds=0 --set world.horizon=9s

say "what cannot be together is refused before the start"
for p in backup:k=9 overselect:goal=9 dbw:k_min=9 dbw:k0=9:rule=adasync psp:beta=9 backup \
    backup:k=2:k=3 backup:policy=bsp fedasync:alpha=2 fedbuff:buffer=0 ebsp:lookahead=0 dssp:high=1 \
    ssp:threshold=-1 asp:k=1 overselect:goal=2:selection_timeout=30; do
    sim 2 ': ' --sweep "sync.policy=$p" --out refused
done
for k in sync.quorum select.count select.min_clients; do
    sim 2 'at most 8' --set $k=9
done
for p in asp fedasync; do
    sim 2 'masking = none, or a policy that sums' --set aggregate.masking=additive --set sync.policy=$p
done
sim 2 'max_weight' --set aggregate.max_weight=4294967295 --clients 1000000 --set sync.policy=asp
sim 2 'samples is at most' --set world.learning=logistic --set world.samples=1000000000
sim 2 'from 0.001' --set world.learning=logistic --set world.spread=1e-9
sim 2 'to 4096' --set world.dimensions=4097
[ ! -e refused ] || fail "a folder for what was refused"

say "flags"
for f in '--seeds 0' '--seeds -1' '--seeds 1,1' '--seeds 1,' '--seeds 1001' \
    '--seeds 18446744073709551616' '--threads 0' '--threads 1025' '--threads x' '--until x' \
    '--until accuracy=nan' '--until accuracy=2' '--until loss=-1' '--until rounds=-1' \
    '--until rounds=4294967296' '--until time=0s' '--until time=10' '--until time=1e10s' \
    '--until rounds=0' '--until =' '--sweep x' '--sweep sync.policy=' '--sweep sync.policy=bsp,bsp' \
    '--sweep job.rounds=1,1.0' '--sweep no.key=1' '--sweep job.rounds=1|' '--clients 0' \
    '--clients 16777217' '--clients 1e3' '--set =' '--set a.b' '--set .=1' '--detail x' '--events'; do
    # shellcheck disable=SC2086
    sim 2 ... $f
done
sim 2 'given twice' --sweep sync.policy=bsp --sweep job.name=p,p
sim 0 '^result label=bsp seeds=3' --threads 1000 --seeds 3
sim 0 '^run ' --seeds 1,18446744073709551615

say "folders"
touch file
for out in file file/x /dev/null /dev/full/x "$(head -c 3000 /dev/zero | tr '\0' a)"; do
    sim 1 'elver-sim: ' --out "$out"
done
odd=' a folder
with "odd" names'
sim 0 '^run ' --out "$odd/../$odd/./x"
[ -s "$odd/x/report.html" ] || fail "no report in an odd folder"
sim 0 '^run ' --out swept --sweep 'data.train=csv ../../a.csv|csv /etc/..|csv ..' --set job.rounds=1
[ "$(find swept/runs -name summary.json | wc -l)" = 3 ] || fail "not a folder for each label"
[ "$(find swept -mindepth 1 -maxdepth 1 | wc -l)" = 5 ] || fail "a label left its folder"

say "what cannot be written is told, and nothing is left"
set -- --events all --until rounds=3000
(ulimit -f 64 && sim 1 'events.jsonl: File too large' --out limited "$@")
[ -z "$(find limited -name '*.part')" ] || fail "a part of a file is left"
[ ! -e limited/summary.json ] || fail "half a run is a finished one"
sim 0 '^run ' --out limited "$@"
sim 0 '^run ' --out whole "$@"
same limited whole
for flags in '' --print-config --help --version; do
    code=0
    # shellcheck disable=SC2086
    "$sim" --job job.ini --world world.ini $flags >/dev/full 2>refused.log || code=$?
    [ $code = 1 ] || fail "exit code $code with $flags and nowhere to print"
    grep -q 'standard output' refused.log || fail "it does not say that it cannot print"
done
"$sim" --job job.ini --world world.ini --quiet --seeds 300 --out piped 2>piped.log | head -n 1 >piped.out
await 30 "the rest without a reader" test -s piped/host.json
[ -s piped/report.html ] || fail "no report without a reader"

say "little memory"
if [ -z "$sanitizer" ]; then
    for kib in 12000 20000 40000 80000; do
        code=0
        (ulimit -v $kib && exec "$sim" --job job.ini --world world.ini --quiet --clients 2000000 \
            --until rounds=1) >refused.out 2>refused.log || code=$?
        [ $code = 1 ] || [ $code = 127 ] || fail "exit code $code in $kib KiB"
        [ -s refused.log ] || fail "no word about $kib KiB"
    done
    (ulimit -v 60000 && sim 0 '^result ' --threads 200 --seeds 200 --until rounds=2)
fi

say "killed at any moment, it goes on from there to the same bytes"
set -- --job job.ini --world world.ini --quiet --events all --until rounds=2000 --seeds 4 \
    --sweep sync.policy=bsp,backup:backup=2,asp
"$sim" "$@" --out uncut >uncut.out || fail "a sweep fails"
for pause in 0.02 0.05 0.1 0.2 0.3 0.4; do
    "$sim" "$@" --out cut --threads 2 >/dev/null 2>&1 &
    pids="$pids $!"
    sleep $pause
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
done
"$sim" "$@" --out cut >cut.out || fail "it does not go on"
same uncut cut
cmp uncut.out cut.out || fail "it says something else after being killed"

say "a run is finished when all of it is there"
truncate -s 1000 cut/runs/bsp-seed-1/rounds.csv
rm cut/runs/bsp-seed-2/events.jsonl cut/runs/bsp-seed-3/participation.csv
: >cut/runs/bsp-seed-4/rounds.csv
truncate -s -3 cut/runs/asp-seed-1/summary.json
printf 'x' >>cut/runs/asp-seed-2/events.jsonl
rm -r cut/runs/asp-seed-3 cut/report.html
"$sim" "$@" --out cut >cut.out || fail "it does not repair"
same uncut cut
[ "$(count_of cut/host.json wall_s)" = 8 ] || fail "more was run than was damaged"

say "a finished run that was changed is told, whatever was changed"
cp -r cut damaged
tr '0123456789' '9876x43210' <cut/runs/bsp-seed-1/rounds.csv >damaged/runs/bsp-seed-1/rounds.csv
refuses 1 'bsp-seed-1: a file of this run is damaged; remove its summary.json' "$sim" "$@" --out damaged
rm damaged/runs/bsp-seed-1/summary.json
"$sim" "$@" --out damaged >/dev/null || fail "it does not repair"
same uncut damaged
for seed in 1 2 3 4 5 6 7 8; do
    f=$(find damaged -name '*.csv' -o -name '*.json' | sort | sed -n "$((seed * 7 % 40 + 1))p")
    size=$(wc -c <"$f")
    printf '\377' | dd of="$f" bs=1 seek=$((seed * 977 % size)) conv=notrunc 2>/dev/null
    code=0
    timeout -s KILL 30 "$sim" "$@" --out damaged >/dev/null 2>refused.log || code=$?
    [ $code -le 2 ] || fail "exit code $code with a byte of $f changed"
done

say "many of it in one folder"
others=''
for i in 1 2 3 4; do
    launch "beside$i" "$sim" "$@" --out shared
    others="$others $!"
done
for p in $others; do
    await 60 "one of four" ended "$p"
done
[ "$(cat beside?.log | grep -c 'another elver-sim writes there')" -ge 1 ] || fail "none was refused"
"$sim" "$@" --out shared >/dev/null
same uncut shared

say "thousands of combinations"
values=$(seq -s, 1 50)
sim 2 'more than 10000 runs' --sweep "world.noise=$values" --sweep "world.spread=$values" --seeds 5
if [ -z "$sanitizer" ]; then
    sim 0 '^result label=world.noise=50,world.spread=50 ' --sweep "world.noise=$values" \
        --sweep "world.spread=$values" --until rounds=1 --set world.dimensions=1 --out many
    [ "$(find many/runs -name summary.json | wc -l)" = 2500 ] || fail "not 2500 runs"
fi
say "passed"
