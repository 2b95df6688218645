#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian packages that Elver needs: `packages.sh run` to build and run, `packages.sh test` for the
# tests besides. Installs what is missing (as root, or through sudo without a question); otherwise
# prints the one command to type and exits 2.
set -eu

run="build-essential cmake ninja-build pkg-config dpkg-dev debian-archive-keyring patch bzip2 ca-certificates
     zlib1g-dev libsqlite3-dev libinih-dev dataset-fashion-mnist"
test="libcmocka-dev clang clang-format libclang-rt-14-dev python3 python3-cbor2 libcoap3-bin procps
      chromium"
case "${1:-}" in
run) want=$run ;;
test) want="$run $test" ;;
*) sed -n '3,5s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac

missing=
for package in $want; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

command="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" -eq 0 ]; then
    as=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as="sudo "
else
    echo "these packages are missing; install them and run this again:" >&2
    if command -v sudo >/dev/null 2>&1; then
        echo "    sudo apt-get update && sudo $command" >&2
    else
        echo "    su -c 'apt-get update && $command'" >&2
    fi
    exit 2
fi
echo "== installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
{ ${as}apt-get update -qq && ${as}apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 $missing; } >/dev/null || {
    echo "installing failed; try: $command" >&2
    exit 1
}
