#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_examples.sh BUILD - examples/server.ini and examples/job.ini name every key, none twice,
# with its default, and are a configuration the server takes.
. "$(dirname "$0")/e2e.sh"
examples=$(cd "$(dirname "$0")/../examples" && pwd)
ini=$examples/server.ini job=$examples/job.ini

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
say "passed"
