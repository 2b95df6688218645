#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/papers/run.sh - what papers say of their policies, and what they do here.
#
#     sh examples/papers/run.sh [--quick] [--build DIR] [X8 ...]
#
# Runs the experiments X1 to X9, X15, X16, X18 and X20, or those named. Each has a job and a world
# beside this file, X8 has x8.ini and x8.world.ini, which say what is claimed and by whom; X4 and X5
# are about a planner alone and have programs of their own. For each it prints its figures, then
#
#     paper X8 reference=... ours=... pass
#
# or FAIL, and at the end a line `N passed, N failed`; exits 1 when one failed. About two minutes on
# two cores. --quick takes fewer seeds and leaves out what is measured in processor time (X5).
# --build names a build with elver-sim and the tests; without it build/release is built.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
quick= build= wanted=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --build)
        [ $# -gt 1 ] || { echo "--build takes a folder" >&2 && exit 2; }
        build=$(cd "$2" && pwd)
        shift
        ;;
    X1 | X2 | X3 | X4 | X5 | X6 | X7 | X8 | X9 | X15 | X16 | X18 | X20) wanted="$wanted $1" ;;
    *)
        sed -n '3,17s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

if [ -z "$build" ]; then
    sh "$root/examples/build.sh" test
    build=$root/build/release
fi
elver_sim=$build/ports/sim/elver-sim
work=$(mktemp -d "${TMPDIR:-/tmp}/elver-papers.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$here" # worlds name their traces from here
passed=0 failed=0

# The first as a rule, the second with --quick.
seeds() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }

title() { printf '\n%s\n' "$*"; }
note() { printf '    %s\n' "$*"; }

# A condition in awk's words; a figure that is nan makes it false.
holds() { case $1 in *nan*) false ;; *) awk "BEGIN { exit !($1) }" ;; esac; }
calc() { awk "BEGIN { printf \"${2:-%.4g}\", ($1) }"; }

paper() { # X, reference, ours, condition
    if holds "$4"; then
        echo "paper $1 reference=$2 ours=$3 pass"
        passed=$((passed + 1))
    else
        echo "paper $1 reference=$2 ours=$3 FAIL"
        failed=$((failed + 1))
    fi
}

# The simulator on the job and world of that name; a missed target is a result like another.
sim() { # name, flags...
    name=$1
    shift
    status=0
    "$elver_sim" --quiet --job "$name.ini" --world "$name.world.ini" "$@" \
        >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || {
        cat "$work/err" >&2
        rm -rf "$work"/x* # nothing is left to be taken for this one's results
        return 1
    }
}

# A figure of a label, the mean over its seeds; of the only one for "". nan: there is none.
figure() { # label, key
    awk -v label="$1" -v key="$2" '$1 == "result" && (label == "" || $2 == "label=" label) {
        for (i = 3; i <= NF; i++)
            if (index($i, key "=") == 1)
                value = substr($i, length(key) + 2)
    }
    END { print (value != "" ? value : "nan") }' "$work/out"
}

# The greatest lead over the slowest that a client had with an update, from the events of a
# label's runs in a folder. nan: there was no update.
gap() { # clients, folder, label; "": the only one
    for events in "$2"/events.jsonl "$2/runs/${3:-}"*/events.jsonl; do
        [ ! -f "$events" ] || lead_of "$1" <"$events"
    done | awk '{ most = $1 > most ? $1 : most } END { print (most > 0 ? most : "nan") }'
}

lead_of() { # clients
    awk -v n="$1" 'BEGIN { at[least = 0] = n }
        /"event":"used"/ {
            sub(/.*"client":/, "")
            sub(/,.*/, "")
            at[count[$0] + 0]--
            at[++count[$0]]++
            while (at[least] == 0)
                least++
            lead = count[$0] - least
            most = lead > most ? lead : most
        }
        END { print most + 0 }'
}

# A column of a rounds.csv, with the number, opening and closing of each round before it.
column() { # name, file
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) place[$i] = i; next }
        { print $place["round"], $place["opened"], $place["closed"], $place[name] }' "$2"
}

harmonic() { # n, k: 1/n + ... + 1/(n-k+1)
    awk -v n="$1" -v k="$2" 'BEGIN { for (i = n; i > n - k; i--) h += 1 / i; printf "%.6f", h }'
}

x1() {
    title "X1  the k-th of 16 round trips of 1 - a + a Exp(1) comes after (1 - a) + a (H_16 - H_(16-k))"
    worst=0 ours= reference=
    for a in 0.2 1; do
        sim x1 --set "device.compute=exponential $(calc "1 - $a") $a" \
            --until rounds="$(seeds 100000 20000)" \
            --sweep sync.policy=backup:k=4,backup:k=8,backup:k=12,backup:k=16
        for k in 4 8 12 16; do
            expected=$(calc "1 - $a + $a * $(harmonic 16 $k)" %.4f)
            mean=$(calc "$(figure backup:k=$k ended) / $(figure backup:k=$k rounds)" %.4f)
            off=$(calc "$mean / $expected - 1" %.5f)
            note "a = $a, k = $k: expected $expected, ours $mean"
            reference=$reference${reference:+/}$expected ours=$ours${ours:+/}$mean
            worst=$(calc "$off < 0 ? ($worst > -($off) ? $worst : -($off)) : ($worst > $off ? $worst : $off)" %.5f)
        done
    done
    paper X1 "$reference" "$ours" "$worst <= 0.01"
}

x2() {
    title "X2  ssp is as slow as the slowest client whatever its threshold s; the lead is s + 1"
    good=1 ours=
    for s in 0 3 6; do
        sim x2 --set sync.threshold=$s --events all --out "$work/x2" --force
        rate=$(figure "" updates_per_s) lead=$(gap 4 "$work/x2")
        note "s = $s: n / T $(calc '4 / 3.1' %.4f), ours $rate updates per second; greatest lead $lead"
        good="$good && $rate / (4 / 3.1) <= 1.01 && $rate / (4 / 3.1) >= 0.99 && $lead == $s + 1"
        ours=$ours${ours:+/}$rate,$lead
    done
    paper X2 "1.2903,1/1.2903,4/1.2903,7" "$ours" "$good"
}

x3() {
    title "X3  dssp as printed is as fast as asp, and unbounded; with its bound it is as slow as ssp"
    good=1 ours=
    while read -r trace n policy rate lead; do
        sim x3 --clients "$n" --set "availability.trace=$trace.csv" --sweep sync.policy="$policy" \
            --events all --out "$work/x3" --force
        our_rate=$(figure "" updates_per_s) our_lead=$(gap "$n" "$work/x3")
        note "$trace, $policy: $rate updates per second, lead $lead; ours $our_rate, $our_lead"
        good="$good && $our_rate / $rate >= 0.98 && $our_rate / $rate <= 1.02"
        good="$good && $our_lead / $lead >= 0.98 && $our_lead / $lead <= 1.02"
        [ "$trace" != x3-pair ] || ours=$ours${ours:+/}$our_rate,$our_lead
    done <<-TABLE
	x3-pair 2 ssp 1.094 4
	x3-pair 2 dssp:strict=off 1.546 908
	x3-pair 2 dssp 1.099 15
	x3-pair 2 asp 1.546 908
	x3-far 2 ssp 0.668 4
	x3-far 2 dssp:strict=off 1.329 1327
	x3-far 2 dssp 0.668 6
	x3-far 2 asp 1.333 1334
	x2 4 ssp 1.294 4
	x2 4 dssp:strict=off 1.970 1354
	x2 4 dssp 1.296 15
	x2 4 asp 2.656 1355
	TABLE
    paper X3 "1.094,4/1.546,908/1.099,15/1.546,908" "$ours" "$good"
}

x4() {
    title "X4  the planner of ebsp finds the best barrier: 10,000 instances against trying everything"
    if (cd "$root" && "$build/tests/test_zipline") >"$work/out" 2>&1; then good=1; else good=0; fi
    grep -E 'OK|FAILED' "$work/out" | sed 's/^\[ *\([A-Z]*\) *\]/\1/' >"$work/tests"
    while read -r line; do note "$line"; done <"$work/tests"
    paper X4 best "$([ $good -eq 1 ] && echo best || echo other)" "$good"
}

x5() {
    title "X5  and takes time in proportion to the moments: at most 20 ms for 1000 clients, 150 each"
    "$build/tests/bench_zipline" >"$work/out"
    while read -r line; do note "$line"; done <"$work/out"
    ms=$(awk '$2 == "zipline_1000x150" { print $3 }' "$work/out")
    ratios=$(awk '/per_moment/ { least = !n++ || $NF < least ? $NF : least
                                 most = $NF > most ? $NF : most } END { print least, most }' "$work/out")
    paper X5 "20ms,linear" "${ms}ms,${ratios% *}..${ratios#* }" \
        "$ms <= 20 && ${ratios% *} >= 0.5 && ${ratios#* } <= 2"
}

# Loss of the version by which a run has used so many updates; the mean over the runs in a folder.
loss_at() { # updates, folder, label
    for run in "$2/runs/$3"-seed-*; do
        awk -F, -v n="$1" 'NR == 1 { for (i = 1; i <= NF; i++) place[$i] = i; next }
            { used += $place["used"] }
            used >= n { print $place["loss"]; exit }' "$run/rounds.csv"
    done | awk '{ sum += $1 } END { printf "%.4f", NR ? sum / NR : "nan" }'
}

x6() {
    title "X6  an elastic barrier: more updates and less waiting than bsp, and a model no worse"
    good=1 ours= reference=
    r="r_min=1 r_min=5 lookahead=60:r_min=5 lookahead=60:r_min=20"
    policies=bsp,ebsp:predictor=ema
    for p in $r; do policies=$policies,ebsp:$p; done
    while read -r n jitter bsp bsp_wait rates; do
        sim x6 --clients "$n" --set "device.jitter=$jitter" --set "select.min_clients=$n" \
            --seeds "$(seeds 30 8)" --sweep "sync.policy=$policies"
        note "$n clients, jitter $jitter: updates per second and waiting share"
        note "    bsp: $bsp $bsp_wait, ours $(figure bsp updates_per_s) $(figure bsp waiting)"
        for p in $r predictor=ema; do
            rate=$(figure "ebsp:$p" updates_per_s) wait=$(figure "ebsp:$p" waiting)
            case $p in predictor=ema) theirs= ;; *) theirs=${rates%% *} rates=${rates#* } ;; esac
            note "    ebsp:$p: ${theirs:-not measured}, ours $rate $wait"
            good="$good && $rate > $(figure bsp updates_per_s) && $wait < $(figure bsp waiting)"
            [ -z "$theirs" ] || good="$good && $rate / ${theirs%,*} >= 0.95 && $rate / ${theirs%,*} <= 1.05"
            [ "$n" != 16 ] || [ "$p" != r_min=5 ] || {
                reference=$reference${reference:+/}$theirs
                ours=$ours${ours:+/}$(calc "$rate"),$(calc "$wait" %.3f)
            }
        done
    done <<-TABLE
	4 0 2.77 0.122 3.14,0.022 3.17,0.014 3.21,0.004 3.21,0.002
	4 0.1 2.66 0.157 2.93,0.089 2.94,0.088 2.94,0.087 2.99,0.067
	16 0 10.95 0.132 12.14,0.047 12.31,0.036 12.70,0.006 12.70,0.006
	16 0.1 10.00 0.207 10.93,0.144 10.76,0.157 10.81,0.153 11.10,0.128
	64 0 42.7 0.151 45.5,0.106 48.8,0.043 50.0,0.020 50.4,0.011
	64 0.1 37.1 0.262 41.3,0.190 41.2,0.192 40.3,0.209 39.5,0.221
	TABLE
    sim x6 --set world.learning=logistic --set device.jitter=0.1 --set select.min_clients=16 \
        --seeds "$(seeds 10 3)" --sweep sync.policy=bsp,ebsp --out "$work/x6" --force
    bsp=$(loss_at 2500 "$work/x6" bsp) ebsp=$(loss_at 2500 "$work/x6" ebsp)
    note "model L after 2500 updates: loss $bsp with bsp, $ebsp with ebsp"
    paper X6 "$reference" "$ours" "$good && $ebsp <= $bsp * 1.01"
}

x7() {
    title "X7  of 100 workers, the best number of backup workers is a few percent"
    all="0 1 2 3 4 6 8 12 16 24" policies=
    for b in $all; do policies=$policies${policies:+,}backup:backup=$b; done
    sim x7 --seeds "$(seeds 40 10)" --sweep "sync.policy=$policies"
    best=
    for b in $all; do
        time=$(figure "backup:backup=$b" time)
        note "b = $b: $(calc "$time") s to the target, $(figure "backup:backup=$b" rounds) rounds"
        if [ -z "$best" ] || holds "$time < $least"; then best=$b least=$time; fi
    done
    ends="$(figure backup:backup=0 time) > 1.1 * $least && $(figure backup:backup=24 time) > 1.1 * $least"
    paper X7 "b=2..8" "b=$best" "$best >= 2 && $best <= 8 && $ends"
}

# dbw against static numbers in one cell: `dbw` and `best` are times to the target, or never, `best`
# that of the quickest k of 4, 8, 12 and 16, and `mean_k` is dbw's.
x8_cell() { # a, sigma, variant, what becomes of late workers when k is static
    statics=$(seeds "1 2 4 6 8 10 12 14 16" "4 8 12 16") policies=dbw:variant=$3,dbw:variant=$3:rule=blind
    for k in $statics; do policies=$policies,backup:k=$k:late=$4; done
    sim x8 --set "device.compute=exponential $(calc "1 - $1") $1" --set world.noise="$2" \
        --seeds 20 --sweep "sync.policy=$policies"
    dbw=$(time_of "dbw:variant=$3") best=never line=
    mean_k=$(calc "$(figure "dbw:variant=$3" used) / $(figure "dbw:variant=$3" rounds)" %.1f)
    for k in $statics; do
        time=$(time_of "backup:k=$k:late=$4")
        line="$line $k: $time"
        case $k,$time,$best in
        1,* | 2,* | 6,* | 10,* | 14,* | *,never,*) ;;
        *,never) best=$time ;;
        *) best=$(calc "$time < $best ? $time : $best") ;;
        esac
    done
    note "a = $1, sigma = $2, $3: dbw $dbw (k $mean_k), blind $(time_of "dbw:variant=$3:rule=blind");" \
        "static$line"
}

# Mean time to the target, if every seed reached it.
time_of() { # label
    if [ "$(figure "$1" reached)" = "$(figure "$1" seeds)" ]; then
        calc "$(figure "$1" time)" %.1f
    else
        echo never
    fi
}

x8() {
    title "X8  dbw needs no tuning: virtual time to the target loss beside static numbers k"
    good=1
    for pair in pull:finish $(seeds pai:interrupt ""); do
        variant=${pair%:*} sum=0 worst=0 speedup=99
        for a in 0.2 1; do
            for sigma in 3 12; do
                x8_cell $a $sigma "$variant" "${pair#*:}"
                ratio=$(calc "$dbw / $best" %.3f)
                gain=$(calc "$(time_of "backup:k=16:late=${pair#*:}") / $dbw" %.2f)
                sum=$(calc "$sum + $ratio") worst=$(calc "$ratio > $worst ? $ratio : $worst")
                [ $a = 0.2 ] || speedup=$(calc "$gain < $speedup ? $gain : $speedup")
            done
            x8_cell $a 40 "$variant" "${pair#*:}"
            good="$good && $mean_k >= 15"
            [ "$dbw" = never ] || good=0
        done
        mean=$(calc "$sum / 4" %.2f)
        note "$variant: $mean of the best static k on average, at most $worst; $speedup times faster than" \
            "k = n, or more, at a = 1"
        good="$good && $mean <= 1.15 && $worst <= 1.3 && $speedup >= 1.8"
        [ "$variant" != pull ] || ours=$mean,$worst,$speedup
    done
    paper X8 "<=1.15,<=1.3,>=1.8" "$ours" "$good"
}

# Mean and swing (standard deviation) of k in the last 20 rounds before, in and after the slow time;
# means over the seeds in a folder.
k_in_phases() { # folder
    for run in "$1"/runs/*-seed-*; do
        column wanted "$run/rounds.csv" | awk '
            { p = $2 < 100 ? 1 : $2 < 400 ? 2 : 3; k[p, ++n[p]] = $4 }
            END {
                for (p = 1; p <= 3; p++) {
                    sum = squares = 0
                    for (i = n[p] - 19; i <= n[p]; i++) {
                        sum += k[p, i]
                        squares += k[p, i] ^ 2
                    }
                    mean = sum / 20
                    spread = squares / 20 - mean ^ 2
                    printf "%s %s ", mean, (spread > 0 ? sqrt(spread) : 0)
                }
                print ""
            }'
    done | awk '{ for (i = 1; i <= 6; i++) sum[i] += $i }
        END { for (i = 1; i <= 6; i++) printf "%.2f ", sum[i] / NR }'
}

x9() {
    title "X9  when half of the workers become five times slower, dbw waits for the other half"
    good=1 ours=
    for rule in gain blind; do
        for memory in 50 0; do
            sim x9 --set sync.rule=$rule --set sync.memory=$memory --seeds "$(seeds 20 8)" \
                --sweep sync.policy=dbw --out "$work/x9" --force
            read -r before swing0 slow swing1 after swing2 <<-PHASES
			$(k_in_phases "$work/x9")
			PHASES
            note "rule $rule, memory $memory: k $before, slow $slow, after $after; swing $swing0, $swing1, $swing2"
            [ $memory = 50 ] || continue
            good="$good && $before - $slow >= 3 && $after - $slow >= 3 && $swing1 < 1"
            ours=$ours${ours:+/}$before,$slow,$after
        done
    done
    paper X9 "k-3,swing<1" "$ours" "$good"
}

x15() {
    title "X15 fedbuff is M / K versions stale, and sooner there than rounds that over-select"
    good=1 ours=
    while read -r m k versions; do
        sim x15 --set sync.concurrency="$m" --set sync.buffer="$k" --until rounds="$versions"
        stale=$(calc "$(figure "" staleness) / $k" %.2f)
        note "M = $m, K = $k: expected $(calc "$m / $k"), ours $stale"
        good="$good && $stale * $k / $m >= 0.9 && $stale * $k / $m <= 1.1"
        ours=$ours${ours:+/}$stale
    done <<-TABLE
	100 10 4000
	1000 10 8000
	1000 100 800
	TABLE
    sim x15 --set world.learning=quadratic --seeds "$(seeds 10 3)" \
        --sweep "sync.policy=fedbuff:buffer=10:concurrency=130,overselect:goal=100:factor=1.3"
    fedbuff=$(figure fedbuff:buffer=10:concurrency=130 time)
    rounds=$(figure overselect:goal=100:factor=1.3 time)
    note "130 clients at work: target after $fedbuff s with fedbuff, $rounds s with overselect"
    paper X15 "10/100/10,>1" "$ours,$(calc "$rounds / $fedbuff" %.3g)" "$good && $fedbuff < $rounds"
}

x16() {
    title "X16 with ten times as many local steps for half of the clients, fednova finds the optimum"
    sim x16 --seeds "$(seeds 3 2)" --sweep aggregate.rule=fedavg,fednova --out "$work/x16" --force
    # The loss is above its least by half the curvature, 0.066 to 1.05, times the distance squared.
    for rule in fedavg fednova; do
        sed -n 's/^ *"loss": \([^,]*\),.*/\1/p' "$work/x16/runs/aggregate.rule=$rule"-seed-*/summary.json |
            awk -v rule=$rule '$1 > most { most = $1 }
                END { printf "%.2g\n", sqrt(2 * most / (rule == "fedavg" ? 1.05 : 0.0664)) }' \
                >"$work/$rule"
    done
    fedavg=$(cat "$work/fedavg") fednova=$(cat "$work/fednova")
    note "distance from the optimum: fedavg at least $fedavg, fednova at most $fednova"
    paper X16 "biased,<0.001" "$fedavg,$fednova" "$fednova < 0.001 && $fedavg > 0.1"
}

x18() {
    title "X18 looking at one percent of the others keeps clients together, and few wait"
    ssp_lead=nan psp_lead=nan ssp_wait=nan psp_wait=nan
    sim x18 --sweep sync.policy=ssp,psp,asp --seeds "$(seeds 6 3)" --events all \
        --out "$work/x18" --force
    for policy in ssp psp asp; do
        lead=$(gap 300 "$work/x18" $policy) wait=$(figure $policy waiting)
        note "$policy: greatest lead $lead, waiting $wait"
        case $policy in
        ssp) ssp_lead=$lead ssp_wait=$wait ;;
        psp) psp_lead=$lead psp_wait=$wait ;;
        esac
    done
    paper X18 "lead<=3,waiting<0.5" \
        "lead=$(calc "$psp_lead / $ssp_lead" %.3g),waiting=$(calc "$psp_wait / $ssp_wait" %.3g)" \
        "$psp_lead <= 3 * $ssp_lead && $psp_wait < 0.5 * $ssp_wait"
}

# The longest time without a new version, after the first 300 s, in which clients come, and by how
# much a round outlived its deadline; of all runs in a folder.
x20_times() { # folder
    for run in "$1"/runs/*; do
        column abandoned "$run/rounds.csv" | awk '
            $3 - $2 - 30 > over { over = $3 - $2 - 30 }
            !$4 && $3 >= 300 { if (seen && $3 - last > most) most = $3 - last; last = $3; seen = 1 }
            END { if (3000 - last > most) most = 3000 - last; printf "%.2f %.2f\n", most, over }'
    done | awk '{ most = $1 > most ? $1 : most; over = $2 > over ? $2 : over } END { print most + 0, over + 0 }'
}

x20() {
    title "X20 whoever dies, and whenever, the next version comes: one deadline finds the dead"
    worst=0 late=0
    for world in x20 x20-dead; do
        for policy in bsp backup:backup=8 overselect:goal=20:factor=1.3:selection_timeout=5s dbw \
            dbw:variant=pull asp ssp dssp psp:beta=2 fedasync fedbuff:buffer=5 ebsp; do
            sim x20 --world $world.world.ini --seeds "$(seeds 10 2)" --sweep "sync.policy=$policy" \
                --out "$work/x20" --force
            read -r most over <<-TIMES
			$(x20_times "$work/x20")
			TIMES
            note "$world, $policy: at most $most s from version to version"
            worst=$(calc "$most > $worst ? $most : $worst") late=$(calc "$over > $late ? $over : $late")
        done
    done
    paper X20 "<=60.5s,overrun<=0.5s" "${worst}s,overrun=${late}s" "$worst <= 60.5 && $late <= 0.5"
}

began=$(date +%s)
for x in ${wanted:-X1 X2 X3 X4 X5 X6 X7 X8 X9 X15 X16 X18 X20}; do
    [ -z "$quick" ] || [ "$x" != X5 ] || continue
    run=$(echo "$x" | tr X x)
    $run || paper "$x" - "did-not-run" 0
done
echo
echo "$passed passed, $failed failed in $(($(date +%s) - began)) s"
[ $failed -eq 0 ]
