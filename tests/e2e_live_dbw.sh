#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_live_dbw.sh BUILD [observe | poll] - dynamic backup workers with eight devices: one works
# ten times slower, one is killed in the middle and comes back, one comes late. Nobody holds a round
# up, and who is interrupted stops training, told by a notification or by the next answer to its
# polling.
side_by_side='observe poll'
. "$(dirname "$0")/e2e_live.sh"
make_live 8

# Of the work of the slow device: taken up, trained to the end, dropped with nothing to send yet.
slow_log=$dir/client-7.log
taken() { count_of "$slow_log" 'event=assigned '; }
trained() { count_of "$slow_log" 'event=trained '; }
dropped() { # PHASE
    count_of "$slow_log" "event=\\(superseded\\|expired\\) .*phase=$1"
}

shift
for way in "$@"; do
    say "dbw, eight devices, $way"
    fresh
    case $way in
    observe) option=--observe rounds=16 steps=15 ;;
    poll) option='' rounds=13 steps=40 ;; # longer than a client waits before it asks again
    esac
    start_server --set sync.policy=dbw --set sync.k_min=5 --set sync.deadline=4s \
        --set select.min_clients=7 --set job.rounds=$rounds --set client.local_steps=$steps
    # shellcheck disable=SC2086
    {
        for n in 1 2 4 5 6; do start_device $n 10 $option; done
        start_device 3 1 $option # so that it can be killed in the middle
        start_device 7 1 $option
        # The first round waits for all, one of whom is killed: only its deadline ends it.
        await 60 "work for who is killed" seen "$dir/client-3.log" 'event=assigned '
        kill_hard "$client_3"
        await 60 "a round" seen "$dir/server.log" 'event=round_closed round=1 '
        back=$(($(lines "$dir/server.log") + 1))
        start_device 3 10 $option
        start_device 8 10 $option
    }
    await_result 120
    contributed 3 "$back" || fail "who was killed did not contribute again"
    contributed 8 "$back" || fail "who came late did not contribute"
    judge_rounds $rounds
    judge_books
    all_end 1 2 3 4 5 6 7 8
    stop_server

    without=$((rounds - $(rounds_with 7)))
    [ $without -gt $((rounds / 2)) ] || fail "rounds waited for the slow device"
    [ "$(dropped training)" -ge 1 ] || fail "the slow device was not interrupted while it trained"
    interrupted=$(dropped '\(fetching\|loading\|training\|encoding\)')
    [ $(($(trained) + interrupted)) -le $(($(taken) + $(dropped encoding))) ] ||
        fail "what was dropped was trained to the end"
    if [ $way = observe ]; then
        [ "$(figure notifications)" -gt 0 ] || fail "nobody was notified"
    else
        [ "$(figure notifications)" = 0 ] || fail "somebody was notified"
    fi
    say "live dbw $way rounds=$rounds without_slow=$without seconds=$(result train_seconds)" \
        "used=$(result updates_used) late=$(result updates_late)" \
        "discarded=$(result updates_discarded) overrun_ms=$(result worst_round_overrun_ms)" \
        "accuracy=$(result accuracy) slow_taken=$(taken) slow_trained=$(trained)" \
        "slow_interrupted=$interrupted"
done
say "passed"
