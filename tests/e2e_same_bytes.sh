#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_same_bytes.sh BUILD - one job and one seed give one model, however often it is run, with
# one worker thread or two, whoever comes first; another seed gives another model.
. "$(dirname "$0")/e2e.sh"
make_world
sed -i 's/^layers = .*/layers = dense 512 relu, dense 64 relu, dense 3/' "$dir/job.ini"

digest_of() { # [OPTION...]: of a whole run, in $digest
    fresh
    start_server --set job.rounds=3 "$@"
    for n in $order; do start_client $n; done
    await_result 60
    digest=$(result digest)
    [ "$(result updates_used)" = 12 ] || fail "not twelve updates"
    stop_server
    for n in 1 2 3 4; do
        eval "kill -9 \$client_$n" 2>/dev/null || true
    done
}

order='1 2 3 4'
digest_of --threads 1
first=$digest
say "one thread          $first"
digest_of --threads 1
say "one thread again    $digest"
[ "$digest" = "$first" ] || fail "two runs differ"
order='4 2 3 1'
digest_of --threads 2
say "two threads         $digest"
[ "$digest" = "$first" ] || fail "the number of threads shows"
digest_of --threads 1 --set job.seed=8
say "another seed        $digest"
[ "$digest" != "$first" ] || fail "the seed does not show"
say "passed"
