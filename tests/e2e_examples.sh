#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_examples.sh BUILD - examples/server.ini, examples/job.ini and examples/world.ini name
# every key, none twice, with its default, and are configurations the server and the simulator take.
. "$(dirname "$0")/e2e.sh"
examples=$(cd "$(dirname "$0")/../examples" && pwd)
ini=$examples/server.ini job=$examples/job.ini world=$examples/world.ini
elver_sim=$build/ports/sim/elver-sim

say "the server takes them"
refuses 0 'job.ini: ok' "$elver_server" --config "$ini" --job "$job" --check-config

say "they name every key once, in the server's order"
"$elver_server" --print-config | sed 's/ = .*//' >"$dir/keys"
awk '/^\[/ { gsub(/[][]| .*/, ""); section = $0; next }
     /^(; )?[a-z_]+ = / { sub(/^; /, ""); print section "." $1 }' "$ini" "$job" >"$dir/named"
diff "$dir/keys" "$dir/named" || fail "the keys are not those of the server"

say "with their defaults, but for what must be given"
cat >"$dir/least.ini" <<'JOB'
[job]
name = least
[data]
test = csv test.csv
[model]
input = 1x1x1
layers = dense 2
JOB
"$elver_server" --state x --keys x --job "$dir/least.ini" --print-config >"$dir/defaults"
"$elver_server" --config "$ini" --job "$job" --print-config >"$dir/inforce"
given='^(server\.(state|keys)|job\.name|data\.test|model\.(input|layers)) = '
for file in defaults inforce; do
    grep -Ev "$given" "$dir/$file" | sed 's/    ; .*//' >"$dir/$file.values"
done
diff "$dir/defaults.values" "$dir/inforce.values" || fail "these are not the defaults"

say "what is commented out can be given as it stands"
sed 's/^; \([a-z_]* = \)/\1/' "$ini" >"$dir/server.ini"
sed 's/^; \([a-z_]* = \)/\1/' "$job" >"$dir/job.ini"
refuses 0 'job.ini: ok' "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini" --check-config

say "the same of the world"
"$elver_sim" --print-config | sed 's/ = .*//' >"$dir/keys"
awk '/^\[/ { gsub(/[][]| .*/, ""); section = $0; next }
     /^(; )?[a-z_]+[2-8]? = / { sub(/^; /, ""); print section "." $1 }' "$job" "$world" >"$dir/named"
diff "$dir/keys" "$dir/named" || fail "the keys are not those of the simulator"
"$elver_sim" --print-config | grep -E '^(world|device|link|availability|faults)\.' |
    sed 's/    ; .*//' >"$dir/defaults.values"
"$elver_sim" --world "$world" --print-config |
    grep -E '^(world|device|link|availability|faults)\.' | sed 's/    ; .*//' >"$dir/inforce.values"
diff "$dir/defaults.values" "$dir/inforce.values" || fail "these are not the defaults"
cat >"$dir/run.ini" <<'JOB'
[job]
name = run
rounds = 1
JOB
sed 's/^learning = network/learning = quadratic/' "$world" >"$dir/world.ini"
refuses 0 '^run ' "$elver_sim" --job "$dir/run.ini" --world "$dir/world.ini" --clients 3
say "passed"
