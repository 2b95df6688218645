#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_live_policies.sh BUILD [POLICY...] - a short run of every other synchronisation policy
# with four devices. Each ends by itself with its versions and a model that has learnt. Where clients
# run freely, the server is killed with SIGKILL in the middle, and still every update that a device
# was told is accepted counts, once.
side_by_side='backup+asp+dssp+fedasync overselect+ssp+psp+fedbuff'
. "$(dirname "$0")/e2e_live.sh"
make_live 4

# Updates of which the devices know that they were accepted.
acknowledged() { cat "$dir"/client-*.log | grep -c 'event=accepted ' || true; }
killed() { count_of "$dir/server.log" 'event=restored '; }
# Of those of the version under way then, how many the restarted server knows.
found() { sed -n 's/.*event=restored .*value=\([0-9]*\).*/\1/p' "$dir/server.log"; }

# run POLICY VERSIONS [OPTION...]: killed once if it has updates without rounds.
run() {
    policy=$1 versions=$2
    shift 2
    fresh
    set -- --set "sync.policy=$policy" --set "job.rounds=$versions" --set client.local_steps=10 \
        --set sync.deadline=10s --set sync.publish_interval=200ms --set select.min_clients=4 "$@"
    start_server "$@"
    for n in 1 2 3; do start_device $n 15 --observe; done
    start_device 4 15
    case $policy in
    backup | overselect) ;;
    *)
        await 60 "$policy to be under way" seen "$dir/server.log" 'event=round_closed ' 2
        await 60 "an update of the next version" seen "$dir/server.log" 'event=update_accepted ' 1 \
            "$(lines "$dir/server.log")"
        kill_hard "$server"
        start_server "$@"
        ;;
    esac
    await_result 60
    all_end 1 2 3 4
    judge_rounds "$versions" 0.4
    [ "$(result updates_used)" = "$(acknowledged)" ] ||
        fail "$policy: $(acknowledged) updates acknowledged, $(result updates_used) used"
    stop_server
    say "live $policy versions=$versions killed=$(killed) found=$(found)" \
        "seconds=$(result train_seconds) used=$(result updates_used) late=$(result updates_late)" \
        "discarded=$(result updates_discarded) overrun_ms=$(result worst_round_overrun_ms)" \
        "accuracy=$(result accuracy)"
}

shift
for policy in "$@"; do
    case $policy in
    backup) run backup 6 --set sync.backup=1 ;;
    overselect) run overselect 6 --set sync.goal=2 --set sync.factor=1.5 ;;
    asp) run asp 8 ;;
    ssp) run ssp 8 --set sync.threshold=2 ;;
    dssp) run dssp 8 --set sync.low=1 --set sync.high=4 ;;
    psp) run psp 8 --set sync.beta=2 --set sync.threshold=2 ;;
    fedasync) run fedasync 8 ;;
    fedbuff) run fedbuff 8 --set sync.buffer=4 ;;
    *) fail "no such policy: $policy" ;;
    esac
done
say "passed"
