#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Few bytes: what every codec costs in both directions, and what is learnt with it.
#
#     sh examples/codecs.sh [--quick] [--network mlp|lenet] [--seed N] [--threads N] [--out DIR]
#                           [--build DIR]
#
# Fashion-MNIST over 20 clients with 100 rounds of real training, by the server and the clients
# themselves exchanging every message in virtual time; see codecs.ini and codecs.world.ini. All
# codecs on a network of 159,010 parameters (mlp), three of them on LeNet-5 (61,706). About 20
# minutes on two cores; --quick makes do with 5 rounds of two codecs, seconds.
#
# Prints a table, also kept as codecs.md and codecs.csv in DIR, build/codecs unless given:
#
#     chunk bytes   heads and payloads of the chunks; up with the commits, too
#     wire bytes    every datagram, IP, UDP, DTLS and CoAP included, handshakes and polls as well
#     up            from all clients in all rounds; down: to all clients, after the first round
#     fewer         how many times, than with f32
#     accuracy      of the test images, mean of the last ten versions
#     to 0.85       chunk bytes both ways until a version gets so many of them right
#
# Then come the conditions,
#
#     codecs mlp ... pass
#
# or FAIL, and `N passed, M failed`; exits 1 when one failed. Interrupted, the same command goes on
# with what is missing. --build names a build with elver-sim; without it build/release is built.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
quick='' network='' seed=1 out=$root/build/codecs build=''
threads=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
usage() { sed -n '3,27s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --quick) quick=1 && shift && continue ;;
    esac
    [ $# -gt 1 ] || { usage >&2 && exit 2; }
    case $1 in
    --network) network=$2 ;;
    --seed) seed=$2 ;;
    --threads) threads=$2 ;;
    --out) out=$2 ;;
    --build) build=$(cd "$2" && pwd) ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2
done

if [ -z "$build" ]; then
    sh "$root/examples/build.sh"
    build=$root/build/release
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/elver-codecs.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

lenet='conv 6 5x5 pad 2 relu, maxpool 2, conv 16 5x5 relu, maxpool 2, dense 120 relu, dense 84 relu, dense 10'

# Network, codec up, codec down, and what else is set; the longest first. Where few values are sent,
# what devices keep for later is summed up as it is, and as a velocity.
if [ -n "$quick" ]; then
    rounds=5
    cat >"$work/list" <<'LIST'
mlp|f32|f32|
mlp|ternary 0.01|ternary 0.02|transfer.momentum_correction=0.5
LIST
else
    rounds=100
    cat >"$work/list" <<'LIST'
lenet|f32|f32|
lenet|q8|q8|
lenet|ternary 0.01|ternary 0.05|
lenet|ternary 0.01|ternary 0.05|transfer.momentum_correction=0.5
mlp|f32|f32|
mlp|f16|f16|
mlp|q8|q8|
mlp|q4|q4|
mlp|sign|q4|
mlp|rotate 1|rotate 2|
mlp|rotate 2 unbiased|rotate 2|transfer.feedback=none
mlp|topk 0.01|topk 0.02|
mlp|ternary 0.01|ternary 0.02|
mlp|ternary 0.01|ternary 0.02|transfer.momentum_correction=0.5
LIST
fi

grep "^$network" "$work/list" >"$work/jobs" || { usage >&2 && exit 2; }

# One run, in a folder of its own that it leaves in rows.N.
run() { # N, network, up, down, more
    dir=$out/runs/$(echo "$rounds-$seed-$2-$3-$4${5:+-$5}" | tr ' ' '_')
    # What an older program made is no part of this table.
    [ ! -f "$dir/manifest.json" ] ||
        [ -n "$(find "$dir/manifest.json" -newer "$build/ports/sim/elver-sim")" ] || rm -rf "$dir"
    layers=
    [ "$2" = mlp ] || layers=model.layers=$lenet
    "$build/ports/sim/elver-sim" --job "$here/codecs.ini" --world "$here/codecs.world.ini" \
        --seed "$seed" --set "job.rounds=$rounds" --set "transfer.up=$3" --set "transfer.down=$4" \
        ${layers:+--set "$layers"} ${5:+--set "$5"} --threads 1 --out "$dir" --force --quiet >"$work/out.$1" 2>&1 || {
        echo "codecs: $2, up $3, down $4${5:+, $5}:" >&2
        cat "$work/out.$1" >&2
        return 1
    }
    echo "$2|$3${5:+, ${5#transfer.}}|$4|$dir/rounds.csv" >"$work/rows.$1"
    echo "codecs: $2, up $3, down $4${5:+, $5}: $(($(date +%s) - began)) s" >&2
}

# Takes of the list what no other worker has taken.
work_off() {
    n=10 # two digits: they sort
    while IFS='|' read -r name up down more; do
        n=$((n + 1))
        mkdir "$work/taken.$n" 2>/dev/null || continue
        run $n "$name" "$up" "$down" "$more" || exit 1
    done <"$work/jobs"
}

mkdir -p "$out/runs"
began=$(date +%s) workers=
for _ in $(seq "$threads"); do
    work_off &
    workers="$workers $!"
done
status=0
for worker in $workers; do
    wait "$worker" || status=$?
done
[ $status -eq 0 ] || exit $status

cat "$work"/rows.* | awk -F'|' -v rounds="$rounds" -v quick="$quick" -v out="$out" '
function read_run(file, r,    line, cell, at, i, n, seen, bytes) {
    getline line <file
    n = split(line, cell, ",")
    for (i = 1; i <= n; i++)
        at[cell[i]] = i
    while ((getline line <file) > 0) {
        split(line, cell, ",")
        seen++
        used[r] += cell[at["used"]]
        up[r] += cell[at["bytes_up"]] + commit * cell[at["used"]]
        wire_up[r] += cell[at["wire_up"]]
        bytes = cell[at["bytes_down"]]
        if (seen > 1) {
            down[r] += bytes
            wire_down[r] += cell[at["wire_down"]]
        }
        all[r] += cell[at["bytes_up"]] + commit * cell[at["used"]] + bytes
        last[r] = cell[at["accuracy"]]
        if (!(r in reached) && last[r] >= 0.85)
            reached[r] = sprintf("%.1f", all[r] / 1e6)
        if (seen > rounds - 10)
            sum[r] += last[r]
    }
    close(file)
    complete[r] = seen == rounds && used[r] == 20 * rounds
    accuracy[r] = sum[r] / (rounds < 10 ? rounds : 10)
    if (!(r in reached))
        reached[r] = "-"
}
function fewer(bytes, r) { return bytes[r] > 0 ? bytes[base[network[r]]] / bytes[r] : 0 }
function both(bytes, r) { return sprintf("%.2f | %.1fx", bytes[r] / 1e6, fewer(bytes, r)) }
function csv(bytes, r) { return sprintf("%d,%.2f", bytes[r], fewer(bytes, r)) }
function say(text) {
    print text
    print text >(out "/codecs.md")
}
function judge(r, text, good) {
    print "codecs " network[r] " " text (good ? " pass" : " FAIL")
    good ? passed++ : failed++
}
function limits(net, up_least, wire_least, down_least,    r, best) {
    for (r = 1; r <= NR; r++)
        if (network[r] == net && fewer(up, r) >= up_least &&
            (best == "" || accuracy[r] > accuracy[best]))
            best = r
    r = best == "" ? base[net] : best
    judge(r, sprintf("%s up, %s down: %.0fx fewer chunk bytes up (%d)", codec[r], back[r],
        fewer(up, r), up_least), best != "")
    judge(r, sprintf("and %.0fx fewer on the wire (%d)", fewer(wire_up, r), wire_least),
        fewer(wire_up, r) >= wire_least)
    judge(r, sprintf("and %.0fx fewer chunk bytes down after the first round (%d)", fewer(down, r),
        down_least), fewer(down, r) >= down_least)
    if (!quick)
        judge(r, sprintf("with an accuracy of %.4f, %+.2f points off %.4f (-0.5)", accuracy[r],
            100 * (accuracy[r] - accuracy[base[net]]), accuracy[base[net]]),
            accuracy[r] >= accuracy[base[net]] - 0.005)
    else
        judge(r, sprintf("with an accuracy of %.4f on the way (0.6)", last[r]), last[r] >= 0.6)
}
BEGIN { commit = 80 } # bytes of one, a few more than there are
{
    network[NR] = $1
    codec[NR] = $2
    back[NR] = $3
    if ($2 == "f32" && $3 == "f32")
        base[$1] = NR
    read_run($4, NR)
}
END {
    say("| network | up | down | chunk MB up | fewer | wire MB up | fewer | chunk MB down | fewer " \
        "| wire MB down | fewer | accuracy | last | MB to 0.85 |")
    say("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    print "network,up,down,chunk_up,fewer,wire_up,fewer,chunk_down,fewer,wire_down,fewer," \
        "accuracy,last,mb_to_0.85" >(out "/codecs.csv")
    for (r = 1; r <= NR; r++) {
        say(sprintf("| %s | %s | %s | %s | %s | %s | %s | %.4f | %.4f | %s |", network[r], codec[r],
            back[r], both(up, r), both(wire_up, r), both(down, r), both(wire_down, r), accuracy[r],
            last[r], reached[r]))
        printf "%s,%s,%s,%s,%s,%s,%s,%.6f,%.6f,%s\n", network[r], codec[r], back[r], csv(up, r),
            csv(wire_up, r), csv(down, r), csv(wire_down, r), accuracy[r], last[r],
            reached[r] >(out "/codecs.csv")
    }
    print ""
    for (r = 1; r <= NR; r++) {
        whole[network[r]] += complete[r]
        of[network[r]]++
        some[network[r]] = r
    }
    for (net in base)
        judge(some[net], whole[net] " of " of[net] " runs counted every update of every round",
            whole[net] == of[net])
    for (net in base)
        limits(net, 300, net == "mlp" ? 250 : 150, 50)
    print ""
    printf "%d passed, %d failed", passed, failed
    exit failed > 0
}' && status=0 || status=1
echo " in $(($(date +%s) - began)) s; $out/codecs.md, $out/codecs.csv"
exit $status
