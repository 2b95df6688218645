#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_live_ebsp.sh BUILD - the elastic barrier with eight devices: one works ten times slower,
# one is killed in the middle and stays away until its time is over, one comes late. All of them
# contribute and they meet at barriers, but between those the others do not wait for the slow one.
. "$(dirname "$0")/e2e_live.sh"
make_live 8
rounds=16

# Versions at which at most three devices were at work: the others had met and waited for it. At any
# other moment all are, but for those just handing in an update.
barriers() {
    awk '/event=round_closed / {
            for (i = 1; i <= NF; i++) { split($i, field, "="); n[field[1]] = field[2] }
            at_work += n["asked"] - n["used"] - n["late"] - n["refused"]
            met += at_work <= 3
        }
        END { print met + 0 }' "$dir/server.log"
}
updates_of() { count_of "$dir/server.log" "event=update_accepted client=$1 "; }

say "ebsp, eight devices"
start_server --set sync.policy=ebsp --set sync.deadline=4s --set sync.publish_interval=1s \
    --set client.local_steps=10 --set select.min_clients=7 --set job.rounds=$rounds
for n in 1 2 3 4 5 6; do start_device $n 10 --observe; done
start_device 7 1 --observe
await 60 "the first version" seen "$dir/server.log" 'event=round_closed '
kill_hard "$client_3"
start_device 8 10 --observe
await 60 "the time of who was killed to be over" seen "$dir/server.log" 'event=lapsed client=3 '
back=$(($(lines "$dir/server.log") + 1))
start_device 3 10 --observe
await_result 120
contributed 3 "$back" || fail "who was killed did not contribute again"
contributed 8 1 || fail "who came late did not contribute"
contributed 7 1 || fail "the slow device did not contribute"
judge_rounds $rounds
judge_books
all_end 1 2 3 4 5 6 7 8
stop_server

[ "$(barriers)" -ge 1 ] || fail "they did not meet"
[ "$(updates_of 1)" -ge $((3 * $(updates_of 7))) ] || fail "the slow device held the others up"
say "live ebsp rounds=$rounds barriers=$(barriers) updates_of_slow=$(updates_of 7)" \
    "of_another=$(updates_of 1) seconds=$(result train_seconds) used=$(result updates_used)" \
    "late=$(result updates_late) discarded=$(result updates_discarded) lapsed=$(result lapsed)" \
    "overrun_ms=$(result worst_round_overrun_ms) accuracy=$(result accuracy)"
say "passed"
