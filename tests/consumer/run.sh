#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/consumer/run.sh BUILD WORK - installs a built tree below WORK and uses it from outside.
#
# Every installed header compiles alone, as C11 and as C++17; a C and a C++ program build and run
# through the CMake package, and the C one through pkg-config.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$1
work=$2
cc=${CC:-cc} cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "SKIPPED: no C++ compiler"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"

warnings="-Wall -Wextra -Wpedantic -Werror"
for header in $(cd "$work/prefix/include" && find elver -name '*.h' | LC_ALL=C sort); do
    echo "#include <$header>" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cpp"
    # shellcheck disable=SC2086 # a list
    {
        $cc -std=c11 $warnings -I"$here" -I"$work/prefix/include" -fsyntax-only "$work/alone.c"
        $cxx -std=c++17 $warnings -I"$here" -I"$work/prefix/include" -fsyntax-only \
            "$work/alone.cpp"
    } || { echo "$header does not compile alone"; exit 1; }
done

cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
cmake --build "$work/build"
"$work/build/consumer_c"
"$work/build/consumer_cpp"

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name elver-client.pc)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # a list
    $cc -std=c11 -I"$here" "$here/main.c" -o "$work/consumer_pc" \
        $(pkg-config --cflags --libs elver-client)
    "$work/consumer_pc"
fi
