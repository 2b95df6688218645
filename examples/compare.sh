#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four synchronisation policies on a simulated fleet of fifty phones, five of them ten times slower:
# how long, in virtual time, until 84 of 100 Fashion-MNIST test images get their right name?
#
#     sh examples/compare.sh [OPTION of elver-sim...]
#
# Installs what it needs and builds (see build.sh), runs for half a minute on two cores, prints a
# table and opens build/compare/report.html where there is a desktop. The job is compare.ini, the
# world compare.world.ini. Options stand for the policies and seeds compared otherwise:
#
#     sh examples/compare.sh --sweep sync.policy=dbw,overselect:goal=38 --seeds 5
#     sh examples/compare.sh --sweep availability.dropout=0,0.1,0.3 --set sync.policy=dbw
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
out=build/compare
case ${1:-} in
-h | --help) sed -n '3,14s/^# \{0,1\}//p' "$0" && exit 0 ;;
'') set -- --sweep sync.policy=bsp,backup:backup=10,dbw,fedbuff:buffer=10 --seeds 3 ;;
esac

sh "$here/build.sh"
cd "$root"
status=0
build/release/ports/sim/elver-sim --job examples/compare.ini --world examples/compare.world.ini \
    --out $out --force "$@" || status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || exit $status # 3: a run missed the target
echo "report       $root/$out/report.html"
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null 2>&1; then
    xdg-open "$root/$out/report.html" >/dev/null 2>&1 || true
fi
exit $status
