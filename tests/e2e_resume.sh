#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_resume.sh BUILD [WIDTH KILLS MOVES SEED] - transfers that are broken in the middle go on
# where they were: client and server are killed at random points of an update and of a model on
# their way, the client's address changes, it sleeps. Nothing the other side has is sent again
# beyond two windows each time, and the model is the one of a run that nobody disturbed.
#
# The model has 8 WIDTH + WIDTH + WIDTH^2 + WIDTH + 3 WIDTH + 3 parameters, 4 bytes each. By
# default it is 3 MB and there are 4 kills each way; the whole thing, 10 MB:
#     sh tests/e2e_resume.sh build/dev 1574 20 20
. "$(dirname "$0")/e2e.sh"
width=${2:-860}
kills=${3:-4}
moves=${4:-4}
seed=${5:-1}
make_data 64 16
make_job
make_keys 1
sed -i -e "s/^layers = .*/layers = dense $width relu, dense $width relu, dense 3/" \
    -e 's/^rounds = .*/rounds = 2/' -e 's/^local_epochs = .*/local_steps = 1/' \
    -e 's/^up = .*/up = f32/' -e 's/^down = .*/down = f32/' -e 's/^quorum = .*/quorum = 1/' \
    -e 's/^min_clients = .*/min_clients = 1/' -e 's/^partition = .*//' "$dir/job.ini"
n=$((8 * width + width + width * width + width + 3 * width + 3))
chunks=$(((n + 249) / 250))
say "$n parameters, $chunks chunks"

disturb() { # KILLS MOVES
    timeout -s KILL 500 "$build/tests/e2e_resume_main" "$elver_server" "$elver_client" "$dir" \
        "$port" "$chunks" "$1" "$2" "$seed"
}

say "$kills kills each way, $moves other addresses"
disturb "$kills" "$moves" || fail "it was not resumed as it should be"
first=$(result digest)
[ -n "$first" ] || fail "no result"
[ "$(result updates_used)" = 2 ] || fail "not two updates"
[ "$(count_of "$dir/client-1.log" 'event=resumed ')" -ge 1 ] || fail "no update was taken up again"
[ "$(count_of "$dir/client-1.log" 'event=replayed ')" -ge 1 ] || fail "no download was taken up again"
relinked=$(count_of "$dir/client-1.log" 'event=relinked ')
[ "$relinked" -ge 1 ] || fail "no association that a restart took was replaced"
[ "$(count_of "$dir/client-1.log" 'event=state_')" = 0 ] || fail "its state was not kept"

say "bench resume relinked=$relinked resumed=$(count_of "$dir/client-1.log" 'event=resumed ')"

say "the same without disturbance"
fresh
rm -rf "$dir/client-state"
disturb 0 0 || fail "it sends too much even when nobody disturbs it"
[ "$(result digest)" = "$first" ] || fail "another model than without disturbance"
say "passed"
