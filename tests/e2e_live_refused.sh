#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_live_refused.sh BUILD - parameters of synchronisation policies that can never work are
# refused before the start, with exit code 2, the line of the job file, and what would be accepted.
. "$(dirname "$0")/e2e.sh"
make_world
sed -i '/^policy = bsp/d;/^deadline/d;/^quorum/d;/^min_clients/d' "$dir/job.ini"
printf '%s\n' '[aggregate]' 'rule = fedavg' >>"$dir/job.ini"
n_rows=0

# Keys with ; between them, each with its section unless that is [sync]; the key at fault; words of
# the answer. Many a row would be fine without that key, or with another value of it.
while IFS='|' read -r keys fault words; do
    [ -n "$fault" ] || continue
    copy=$dir/refused.ini
    cp "$dir/job.ini" "$copy"
    printf '%s\n' "$keys" | tr ';' '\n' | sed 's/^ *//;s/ *$//' >"$dir/keys"
    while read -r key; do
        section=sync
        case $key in *.*' = '*) section=${key%%.*} key=${key#*.} ;; esac
        sed -i "/^${key%% *} = /d;/^\[$section\]/a $key" "$copy"
    done <"$dir/keys"
    fault=$(echo $fault) # without blanks around it
    words=$(printf '%s' "$words" | sed 's/^ *//;s/ *$//')
    at=$(grep -n "^$fault = " "$copy" | cut -d: -f1)
    refuses 2 "refused.ini:$at: .*$words" "$elver_server" --config "$dir/server.ini" --job "$copy"
    n_rows=$((n_rows + 1))
done <<'TABLE'
policy = anarchy                                      | policy | bsp, backup, ebsp, overselect, dbw, asp
policy = bsp; deadline = -5s                          | deadline | from 1ms to 960h
policy = bsp; deadline = 0s                           | deadline | from 1ms to 960h
policy = bsp; deadline = soon                         | deadline | such as 500ms
policy = asp; publish_interval = -1s                  | publish_interval | from 0s
policy = bsp; quorum = 0                              | quorum | from 1 to
policy = bsp; quorum = 3; select.count = 2            | count | at least the quorum
policy = bsp; quorum = 3; select.min_clients = 2      | min_clients | at least the quorum
policy = bsp; quorum = 1025                           | quorum | at most 1024
policy = bsp; select.count = 1025                     | count | at most 1024
policy = bsp; select.min_clients = 1025               | min_clients | at most 1024
policy = bsp; k = 3                                   | k | takes none
policy = backup; k = 0                                | k | from 1 to
policy = backup; k = 2.5                              | k | whole number
policy = backup; k = -1                               | k | whole number
policy = backup; k = 9; select.count = 8              | k | at most the number of clients
policy = backup; k = 1025                             | k | at most the number of clients
policy = backup; k = 2; quorum = 3                    | k | at least the quorum
policy = backup; k = 2; backup = 1                    | k | takes one of
policy = backup; backup = -1                          | backup | from 0 to
policy = backup; backup = 1; late = perhaps           | late | interrupt or finish
policy = overselect; goal = 0                         | goal | from 1 to
policy = overselect; goal = 1025                      | goal | at most the number of clients
policy = overselect; goal = 4; factor = 0.9           | factor | from 1 to 100
policy = overselect; goal = 4; minimum = 1.5          | minimum | at most 1
policy = overselect; goal = 10; minimum = 0.8         | minimum | quorum = 8
policy = overselect; goal = 4; selection_timeout = -3s | selection_timeout | up to 24h
policy = dbw; variant = push                          | variant | psw, psi, pull or pai
policy = dbw; rule = luck                             | rule | gain, blind or adasync
policy = dbw; k0 = 2                                  | k0 | rule = adasync
policy = dbw; k_min = 2; quorum = 3                   | k_min | at least the quorum
policy = dbw; memory = 1                              | memory | from 2 to
policy = dbw; guard = 0.9                             | guard | from 1 to
policy = dbw; slack = -1                              | slack | from 1 to
policy = dbw; depth = 65                              | depth | from 1 to 64
policy = ebsp; lookahead = 0                          | lookahead | from 1 to 10000
policy = ebsp; r_min = 16                             | r_min | at most the lookahead
policy = ebsp; predictor = oracle                     | predictor | ema or last
policy = ebsp; slack = -0.1                           | slack | from 0 to 100
policy = ebsp; tiers = some                           | tiers | auto, 0
policy = asp; threshold = 3                           | threshold | takes staleness
policy = asp; staleness = much                        | staleness | constant, polynomial, hinge or
policy = asp; staleness_a = 1                         | staleness_a | polynomial, hinge or
policy = ssp; threshold = -1                          | threshold | from 0 to
policy = dssp; low = 5; high = 3                      | high | up to 1000 more
policy = dssp; strict = perhaps                       | strict | on or off
policy = psp; beta = 1.5                              | beta | below 1, or a whole number
policy = psp; barrier = pbsp; threshold = 2           | threshold | barrier = pssp
policy = fedasync; alpha = 0                          | alpha | above 0, up to 1
policy = fedasync; alpha = nan                        | alpha | above 0, up to 1
policy = fedasync; max_staleness = -1                 | max_staleness | whole number
policy = fedbuff; buffer = 0                          | buffer | from 1 to
policy = fedbuff; buffer = 2; quorum = 3              | buffer | at least the quorum
policy = fedbuff; normalise = all                     | normalise | count or weights
policy = fedasync; aggregate.masking = additive       | masking | masking = none, or a policy that sums
policy = asp; aggregate.masking = additive            | masking | masking = none, or a policy that sums
policy = asp; aggregate.rule = magic                  | rule | fedavg, fedavgm, fednova
policy = asp; aggregate.rule = fedavgm; aggregate.server_momentum = 1 | server_momentum | not 1
TABLE

say "what must be given, and flags, which have no line"
for policy in backup overselect; do
    refuses 2 "job.ini: policy $policy takes" "$elver_server" --config "$dir/server.ini" \
        --job "$dir/job.ini" --set sync.policy=$policy
done
refuses 2 'job.ini: k is at most the number of clients' "$elver_server" --config "$dir/server.ini" \
    --job "$dir/job.ini" --set sync.policy=backup --set sync.k=5 --set limits.clients=4
refuses 0 'job.ini: ok' "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" \
    --set sync.policy=backup --set sync.k=4 --set limits.clients=4 --check-config
[ ! -e "$dir/state" ] || fail "a refused start left a state"
say "$n_rows jobs refused"
say "passed"
