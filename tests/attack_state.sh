#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/attack_state.sh BUILD - damage to what a killed server left behind: it is refused with a
# message, or the run goes on to the bytes of an undisturbed one. Never a crash, never other bytes.
. "$(dirname "$0")/e2e.sh"
make_world
# Clients are killed, too, and these keep nothing: what they had not sent yet would be missing.
sed -i 's/^up = .*/&\nfeedback = none/' "$dir/job.ini"

# finish: all four clients take part; the digest printed at the end.
finish() {
    start_clients
    await_result 60
    result digest
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
    for n in 1 2 3 4; do
        eval "kill -9 \$client_$n 2>/dev/null; wait \$client_$n 2>/dev/null" || true
    done
}

start_server
want=$(finish)
fresh

say "a run killed in the middle of its third round"
start_server
start_clients
await 60 "round 3" seen "$dir/server.log" 'event=round_opened round=3 '
kill -STOP "$client_4"
await 60 "an update in round 3" seen "$dir/server.log" 'event=update_accepted client=[1-4] round=3 '
kill -9 "$server"
wait "$server" 2>/dev/null || true
for n in 1 2 3 4; do
    eval "kill -9 \$client_$n; wait \$client_$n 2>/dev/null" || true
done
cp -a "$dir/state" "$dir/before"

# damage FILE OFFSET: one byte becomes another.
damage() {
    byte=$(od -An -tu1 -j "$2" -N1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf '%03o' $((byte ^ 165)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

refused=0 went_on=0
# try WHAT: a server on the damaged state.
try() {
    rm -f "$dir"/*.out "$dir"/*.log
    code=0
    launch server "$elver_server" --config "$dir/server.ini" --job "$dir/job.ini"
    server=$!
    server_from=1
    await 30 "$1: the server to serve or refuse" settled
    if ended "$server"; then
        wait "$server" || code=$?
        if [ $code -ne 1 ] && [ $code -ne 2 ]; then fail "$1: exit code $code"; fi
        seen "$dir/server.log" '^elver-server: .*' || fail "$1: refused without a word"
        refused=$((refused + 1))
        return
    fi
    # Now and then the whole run, for it takes its time.
    went_on=$((went_on + 1))
    if [ $((went_on % 6)) -ne 1 ]; then
        kill -9 "$server"
        wait "$server" 2>/dev/null || true
        return
    fi
    got=$(finish)
    [ "$got" = "$want" ] || seen "$dir/server.log" 'level=error event=log_lost ' ||
        fail "$1: other bytes at the end, and not a word about it"
}
settled() { ended "$server" || seen "$dir/server.log" 'event=serving '; }

restore() { rm -rf "$dir/state" && cp -a "$dir/before" "$dir/state"; }

say "bytes that flip"
for file in $(cd "$dir/before" && find . -type f ! -name lock | sort); do
    size=$(wc -c <"$dir/before/$file")
    [ "$size" -gt 0 ] || continue
    for part in 0 5 50 90; do
        restore
        damage "$dir/state/$file" $((size * part / 100))
        try "$file flipped at $part %"
    done
done
say "$refused refused, $went_on went on"

say "files cut short, emptied and gone"
for file in $(cd "$dir/before" && find . -type f ! -name lock | sort); do
    size=$(wc -c <"$dir/before/$file")
    for left in 0 $((size / 2)) $((size - 1)); do
        restore
        head -c "$left" "$dir/before/$file" >"$dir/state/$file"
        try "$file cut to $left bytes"
    done
    restore
    rm "$dir/state/$file"
    try "$file gone"
done
say "$refused refused, $went_on went on"
[ $refused -gt 10 ] || fail "hardly any damage was noticed"
[ $went_on -gt 5 ] || fail "hardly any damage was overcome"
say "passed"
