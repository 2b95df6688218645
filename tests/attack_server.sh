#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/attack_server.sh BUILD [SANITIZED] - a server, two honest clients and a hostile one.
#
# The hostile client acts out one group after the other. After each: the server lives, the honest
# clients were served in rounds that closed since, and the server's memory has not grown.
. "$(dirname "$0")/e2e.sh"
make_world
hostile=$build/tests/hostile
n_params=771
codecs="f32, q8, f16, q4, sign, ternary 0.05, topk 0.05, rotate 2"

# Memory that a sanitizer keeps back is no growth of the server's.
growth_kib=8192
sanitized=${2:-}
if [ -n "$sanitized" ]; then
    growth_kib=65536
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=8"
fi

rss() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$server/status"; }
stat_of() { tr ',{}' '\n' <"$dir/stats.json" | sed -n "s/^\"$1\"://p" | head -n 1; }
closed() { count_of "$dir/server.log" 'event=round_closed '; }
closed_since() { [ "$(closed)" -gt "$1" ]; }

start_server --set model.layers="dense 64 relu, dense 3" --set transfer.up="$codecs" \
    --set transfer.clip=5 --set job.rounds=100000 --set sync.quorum=2 --set sync.deadline=15s \
    --set select.min_clients=2 --set client.local_epochs=1 --set aggregate.max_weight=500 \
    --set eval.on=clients --set eval.every=1 --set data.holdout=0.2 --set job.target_accuracy=0.999 \
    --set client.learning_rate=0.0001
start_client 1
start_client 2
await 30 "a round of the honest" closed_since 1
before=$(rss)

# attack GROUP [KIB]: and the server may have grown by so much in it.
attack() {
    rounds=$(closed)
    at_first=$(rss)
    code=0
    timeout -s KILL 120 "$hostile" "$port" tiny "$dir/dev-3.cred" $n_params "$1" \
        >>"$dir/hostile.out" 2>>"$dir/hostile.log" </dev/null || code=$?
    running "$server" || fail "$1: the server ended"
    [ $code -eq 0 ] || fail "$1: exit code $code"
    await 40 "$1: a round of the honest afterwards" closed_since "$rounds"
    after=$(rss)
    [ "$after" -lt $((before + growth_kib)) ] || fail "$1: memory grew from $before to $after KiB"
    [ -n "$sanitized" ] || [ "$after" -lt $((at_first + ${2:-4096})) ] ||
        fail "$1: memory grew from $at_first to $after KiB"
    say "$1: server at $after KiB, $(closed) rounds closed"
}

for group in ${ELV_ATTACKS:-paths methods blocks joins twins malformed assignments chunks values q8 \
    deflate codecs commits leave observers flood codes handshakes fragments garbage}; do
    attack "$group"
done
attack deaf 1024

# What was refused was counted by its reason, and the honest were refused nothing.
stop_server
for reason in malformed wrong_shape codec digest not_finite out_of_range over_norm quota superseded \
    unknown_assignment not_joined no_codec wire_version manifest_old model_too_big; do
    [ -n "${ELV_ATTACKS:-}" ] || [ -n "$(stat_of "$reason")" ] || fail "no refusal counted as $reason"
done
for counter in malformed capped twins leaves chunks_repeated updates_refused updates_declined \
    updates_failed; do
    [ -n "${ELV_ATTACKS:-}" ] || [ "$(stat_of "$counter")" -gt 0 ] || fail "$counter stayed at 0"
done
[ "$(stat_of updates_used)" -ge $((2 * $(stat_of rounds_closed))) ] || fail "an honest update is missing"
[ "$(stat_of rounds_abandoned)" = 0 ] || fail "a round was abandoned"
for n in 1 2; do
    ! seen "$dir/client-$n.log" 'event=refused' || fail "client $n was refused something"
done
say "passed"
