#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/e2e_report.sh BUILD - the simulator's report in a real browser, without a window.
#
# Loads reports of one to twelve policies at several widths, in light and in dark: every chart is
# there and has a size, no label covers another, nothing is wider than the window, every text stands
# out from what is behind it, nothing is fetched, and the browser has nothing to complain about.
# Exit code 77 (skipped) when no Chromium is installed.
set -eu

build=$1
tests=$(cd "$(dirname "$0")" && pwd)

browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
if [ -z "$browser" ]; then
    echo "SKIPPED: no Chromium is installed (Debian: chromium)"
    exit 77
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/elver-report.XXXXXX")
trap 'rm -rf "$work"' EXIT
status=0

make() { # name, arguments of html_sample
    name=$1
    shift
    "$build/tests/html_sample" "$@" >"$work/$name.html"
    size=$(wc -c <"$work/$name.html")
    if [ "$size" -ge 1000000 ]; then
        echo "FAILED: $name.html has $size bytes"
        status=1
    fi
    if command -v xmllint >/dev/null && ! xmllint --noout "$work/$name.html"; then
        echo "FAILED: $name.html is not well-formed"
        status=1
    fi
}

make one 1 1 40
make three 3 3 110
make twelve 12 5 110
make many 16 2 100 20
make short 2 1 1
make long 4 2 6000 100
cp "$tests/e2e_report.html" "$work/"
# A report of the simulator itself, if one is given.
[ -z "${ELV_REPORT:-}" ] || cp "$ELV_REPORT" "$work/given.html"

look() { # 0 dark, 1 light
    scheme=$([ "$1" -eq 0 ] && echo dark || echo light)
    query="$scheme&one.html&three.html&twelve.html&many.html&short.html&long.html"
    [ -z "${ELV_REPORT:-}" ] || query="$query&given.html"
    HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu --no-first-run \
        --disable-dev-shm-usage --disable-background-networking --disable-component-update \
        --user-data-dir="$work/profile" --allow-file-access-from-files \
        --host-resolver-rules="MAP * ~NOTFOUND" --blink-settings="preferredColorScheme=$1" \
        --enable-logging=stderr --virtual-time-budget=60000 --dump-dom \
        "file://$work/e2e_report.html?$query" >"$work/dom" 2>"$work/log" || {
        echo "FAILED: the browser ended with $?"
        tail -n 20 "$work/log"
        status=1
        return
    }
    sed -n 's/.*<pre id="verdict">//; /^fail \|^checked /p' "$work/dom" | sort -u >"$work/verdict"
    if grep -q '^fail ' "$work/verdict" || ! grep -q '^checked [1-9]' "$work/verdict"; then
        echo "FAILED: in $scheme:"
        head -n 40 "$work/verdict"
        status=1
    fi
    # Messages of pages, not of the browser about the machine it runs on.
    if grep 'CONSOLE' "$work/log"; then
        echo "FAILED: the console of $scheme is not empty"
        status=1
    fi
    echo "$scheme: $(grep '^checked' "$work/verdict" || echo nothing checked)"
}

look 1
look 0
exit $status
