#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/format.sh - layout is clang-format's business; nobody else's.
#
# Releases of clang-format differ in details, so one is the judge: 14. Exit code 77 (skipped) when
# it is not installed.
set -eu
cd "$(dirname "$0")/.."

for tool in clang-format-14 clang-format; do
    if command -v "$tool" >/dev/null && "$tool" --version | grep -q 'version 14\.'; then
        # shellcheck disable=SC2046 # a list
        find $(ls -d common kernels client server ports tests examples 2>/dev/null) \
            \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) -type f \
            -exec "$tool" --dry-run --Werror {} +
        exit
    fi
done
echo "SKIPPED: clang-format 14 is not installed (Debian: clang-format-14)"
exit 77
