# SPDX-License-Identifier: Apache-2.0
# tests/e2e_live.sh - what the tests of synchronisation policies at work share; sourced by
# e2e_live_*.sh, whose first argument is the build folder. Real programs, real DTLS, real pictures:
# the first of Fashion-MNIST, and a small convolutional network.
#
# Devices train a share of the time only (--duty), so that how slow one is against the others does
# not depend on the machine, and many fit on few processors.
# shellcheck shell=sh

# A test that is called with the build folder alone runs its parts, which $side_by_side names, at the
# same time: they mostly wait. Parts joined by + follow each other. Called with names after the
# folder it runs only these.
if [ $# -eq 1 ] && [ -n "${side_by_side:-}" ]; then
    all=''
    for group in $side_by_side; do
        # shellcheck disable=SC2046
        sh "$0" "$1" $(echo "$group" | tr + ' ') &
        all="$all $!"
    done
    # shellcheck disable=SC2064
    trap "kill $all 2>/dev/null" INT TERM
    status=0
    for p in $all; do
        wait "$p" || status=$?
    done
    exit $status
fi

. "$(dirname "$0")/e2e.sh"
pictures=/usr/share/datasets/fashion-mnist
[ -d "$pictures" ] || { say "skipped: no $pictures" && exit 77; }

# first_of SET COUNT: the first pictures of a set and their labels, as IDX files.
first_of() {
    count=$(printf '\\000\\000\\%03o\\%03o' $(($2 / 256)) $(($2 % 256)))
    # shellcheck disable=SC2059
    {
        printf "\\000\\000\\010\\003$count\\000\\000\\000\\034\\000\\000\\000\\034"
        zcat "$pictures/$1-images-idx3-ubyte.gz" 2>/dev/null | tail -c +17 | head -c $((784 * $2))
    } >"$dir/$1-images-idx3-ubyte"
    # shellcheck disable=SC2059
    {
        printf "\\000\\000\\010\\001$count"
        zcat "$pictures/$1-labels-idx1-ubyte.gz" 2>/dev/null | tail -c +9 | head -c "$2"
    } >"$dir/$1-labels-idx1-ubyte"
}

# make_live DEVICES: data, keys, a job and a configuration for so many. What a test wants otherwise
# it gives the server with --set.
make_live() {
    devices=$1
    first_of train 1600
    first_of t10k 400
    make_keys "$devices"
    make_job
    cat >"$dir/job.ini" <<JOB
[job]
name = tiny
seed = 7

[data]
test = idx $dir
scale = 1/255
mean = 0.2860
std = 0.3530
partition = iid

[model]
input = 1x28x28
layers = conv 6 5x5 relu, maxpool 4, dense 10
loss = softmax-cross-entropy

[client]
local_steps = 20
batch_size = 32
optimizer = sgd momentum 0.9
learning_rate = 0.02

[sync]
quorum = 2

[transfer]
up = q8
down = q8
JOB
}

# start_device NUMBER DUTY [OPTION...]: its process id is in $! and in client_NUMBER.
start_device() {
    number=$1 duty=$2
    shift 2
    launch "client-$number" "$elver_client" --server "coaps://127.0.0.1:$port" --job tiny \
        --credential "$dir/dev-$number.cred" --data "idx $dir" --index $((number - 1)) \
        --of "$devices" --duty "$duty" "$@"
    eval "client_$number=$!"
}

# kill_hard PID
kill_hard() {
    kill -9 "$1"
    wait "$1" 2>/dev/null || true
}

# all_end NUMBER...: these devices end by themselves.
all_end() {
    for n in "$@"; do
        eval "pid=\$client_$n"
        expect_exit 0 "$pid" "client $n"
    done
}

# A number in the statistics file.
figure() { sed -n "s/.*\"$1\":\([0-9.]*\)[,}].*/\1/p" "$dir/stats.json"; }
# The sum of KEY over all rounds that ended.
sum_of() {
    grep -E 'event=round_(closed|abandoned) ' "$dir/server.log" | tr ' ' '\n' |
        awk -F= -v key="$1" '$1 == key { n += $2 } END { print n + 0 }'
}
is() { awk "BEGIN { exit !($1) }"; }

# judge_rounds COUNT: the run made so many versions, none of its rounds outlived its deadline by
# more than a second, and the model is a good one.
judge_rounds() {
    [ "$(result rounds)" = "$1" ] || fail "not $1 versions"
    [ "$(figure model_version)" = "$1" ] || fail "the statistics do not know of $1 versions"
    is "$(result worst_round_overrun_ms) <= 1000" || fail "a round outlived its deadline"
    is "$(result accuracy) > ${2:-0.55}" || fail "it did not learn"
    weights "$(result model)" >"$dir/weights"
    [ "$(sha256sum <"$dir/weights" | cut -d' ' -f1)" = "$(result digest)" ] ||
        fail "the digest printed is not that of the model file"
    ! od -An -v -tf4 "$dir/weights" | grep -qi -e nan -e inf || fail "the model is not finite"
}

# judge_books: log, result and statistics say the same about what became of the updates.
judge_books() {
    for key in used late discarded; do
        n=$(sum_of $key)
        [ "$(result updates_$key)" = "$n" ] || fail "updates_$key in the result is not $n"
        [ "$(figure updates_$key)" = "$n" ] || fail "updates_$key in the statistics is not $n"
    done
    [ "$(count_of "$dir/server.log" 'event=update_accepted ')" = "$(result updates_used)" ] ||
        fail "not every update used was accepted once"
    [ "$(figure lapsed)" = "$(count_of "$dir/server.log" 'event=lapsed ')" ] ||
        fail "the statistics do not know of those who lapsed"
}

# rounds_with NUMBER: versions that hold an update of this device.
rounds_with() {
    awk -v client="client=$1" '
        /event=update_accepted / && $4 == client { here = 1 }
        /event=round_closed / { n += here; here = 0 }
        END { print n + 0 }' "$dir/server.log"
}
# contributed NUMBER LINE: after this line of the server's log.
contributed() { seen "$dir/server.log" "event=update_accepted client=$1 " 1 "$2"; }
