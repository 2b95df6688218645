#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_profiles.sh BUILD [PROFILE...] - clients behind links that people know, in real time:
# every round closes with all updates before its deadline. The other profiles, and longer bodies,
# have their turn in virtual time (test_profiles).
. "$(dirname "$0")/e2e.sh"
shift
[ $# -gt 0 ] || set -- lan lte lossy
make_world
sed -i 's/^layers = .*/layers = dense 128 relu, dense 3/; s/^min_clients = .*/min_clients = 2/
    s/^quorum = .*/quorum = 2/' "$dir/job.ini"

for profile; do
    case $profile in
    lan | lte) rounds=3 deadline=20s ;;
    lossy) rounds=1 deadline=60s ;;
    *) rounds=1 deadline=120s ;;
    esac
    say "$profile"
    fresh
    start_server --set job.rounds=$rounds --set sync.deadline=$deadline
    : >"$dir/relay.out"
    launch relay "$relay_main" --server "127.0.0.1:$port" --profile "$profile" --seed 3
    relay=$!
    await 10 "the relay" seen "$dir/relay.out" '^port '
    client_port=$(sed -n 's/^port //p' "$dir/relay.out")
    start_client 1
    start_client 2
    await_result 150
    [ "$(result updates_used)" = $((2 * rounds)) ] || fail "not $((2 * rounds)) updates"
    [ "$(result updates_late)" = 0 ] || fail "late updates"
    ! seen "$dir/server.log" 'event=round_abandoned ' || fail "a round was abandoned"
    say "bench profile_$profile train_seconds=$(result train_seconds) rounds=$rounds"
    for n in 1 2; do
        eval "pid=\$client_$n"
        expect_exit 0 "$pid" "client $n" 60
    done
    stop_server
    kill "$relay"
    expect_exit 0 "$relay" "the relay"
    cat "$dir/relay.out"
    [ "$(count_of "$dir/relay.out" ' foreign=0$')" = 2 ] || fail "not only DTLS records on the wire"
done
say "passed"
