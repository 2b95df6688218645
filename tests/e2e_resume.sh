#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_resume.sh BUILD [WIDTH ROUNDS DEEDS [SEED]] - transfers that are broken in the middle go
# on where they were: client or server is killed at random points of each update and each model on
# its way, or the client's address changes; once it sleeps. Nothing the other side has is sent again
# beyond two windows each time, and the model is the one of a run that nobody disturbed.
#
# The model has 8 WIDTH + WIDTH + WIDTH^2 + WIDTH + 3 WIDTH + 3 parameters, 4 bytes each. By
# default it is 3 MB and there are 4 rounds, with one deed in each transfer. The whole thing, 10 MB,
# with 20 kills and 10 moves each way, one in each transfer, and then 60 deeds in each of three:
#     sh tests/e2e_resume.sh build/dev 1574 31 1 && sh tests/e2e_resume.sh build/dev 1574 2 60
. "$(dirname "$0")/e2e.sh"
width=${2:-860}
rounds=${3:-4}
deeds=${4:-1}
seed=${5:-1}
make_data 64 16
make_job
make_keys 1
sed -i -e "s/^layers = .*/layers = dense $width relu, dense $width relu, dense 3/" \
    -e "s/^rounds = .*/rounds = $rounds/" -e 's/^local_epochs = .*/local_steps = 1/' \
    -e 's/^up = .*/up = f32/' -e 's/^down = .*/down = f32/' -e 's/^quorum = .*/quorum = 1/' \
    -e 's/^min_clients = .*/min_clients = 1/' -e 's/^partition = .*//' "$dir/job.ini"
n=$((8 * width + width + width * width + width + 3 * width + 3))
chunks=$(((n + 249) / 250))
say "$n parameters, $chunks chunks"

disturb() { # DEEDS
    timeout -s KILL 1000 "$build/tests/e2e_resume_main" "$elver_server" "$elver_client" "$dir" \
        "$port" "$chunks" "$rounds" "$1" "$seed"
}

say "$rounds rounds, with something that happens in each transfer: $deeds"
disturb "$deeds" || fail "it was not resumed as it should be"
first=$(result digest)
[ -n "$first" ] || fail "no result"
[ "$(result updates_used)" = "$rounds" ] || fail "not $rounds updates"
[ "$(count_of "$dir/client-1.log" 'event=resumed ')" -ge 1 ] || fail "no update was taken up again"
[ "$(count_of "$dir/client-1.log" 'event=replayed ')" -ge 1 ] || fail "no download was taken up again"
relinked=$(count_of "$dir/client-1.log" 'event=relinked ')
[ "$relinked" -ge 1 ] || fail "no association that a restart took was replaced"
[ "$(count_of "$dir/client-1.log" 'event=state_')" = 0 ] || fail "its state was not kept"

say "bench resume relinked=$relinked resumed=$(count_of "$dir/client-1.log" 'event=resumed ')"

say "the same without disturbance"
fresh
rm -rf "$dir/client-state"
disturb 0 || fail "it sends too much even when nobody disturbs it"
[ "$(result digest)" = "$first" ] || fail "another model than without disturbance"
say "passed"
