#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ports/deps.sh [PREFIX] - builds libcoap and Mbed TLS, static and position independent.
#
#     sh ports/deps.sh                  into <root>/.deps
#     sh ports/deps.sh /opt/elver-deps  elsewhere
#
# No Debian release carries a libcoap that uses Mbed TLS, so both are built from source. Sources
# come, in this order, from DEPS_CACHE (a directory), from Debian's signed source archive, and from
# the upstream release archives; wherever from, they must match a digest written below. Debian's
# security patches for libcoap are fetched the same way and applied where they fit, then ours from
# ports/libcoap/patches. A private apt state is used: the system's own is neither read nor changed,
# apart from asking it which mirror it uses.
#
# A second run with the same script, patches and settings does nothing. Environment:
#     DEPS_CACHE       where downloads are kept and looked for (default PREFIX/.build/dl)
#     DEPS_CMAKE_ARGS  more arguments for both builds, such as a toolchain file (split at blanks)
#     DEPS_UNPATCHED=1 go on where Debian's security patches cannot be had
#     DEPS_BUILD=1     build even where the system has a libcoap that would do (the tests want ours:
#                      it is patched)
#     DEPS_VERBOSE=1   show the builds instead of writing logs
#
# Needs: a C compiler, cmake, ninja, patch, tar, bzip2, xz, and for a first download apt with
# debian-archive-keyring, or curl.
set -eu

HERE=$(cd "$(dirname "$0")" && pwd)
PREFIX=${1:-$HERE/../.deps}
mkdir -p "$PREFIX"
PREFIX=$(cd "$PREFIX" && pwd)
WORK=$PREFIX/.build
CACHE=${DEPS_CACHE:-$WORK/dl}
APT_STATE=$WORK/apt

# Accepted sources: version, archive name, SHA-256 of the archive; the first that can be had wins.
# An archive repacked by somebody else is accepted when its contents have the tree digest given
# (see tree_digest). Mbed TLS releases are taken as published, so "-" there.
MBEDTLS_ACCEPTED='
3.6.7 mbedtls_3.6.7.orig.tar.bz2 a7e8bcbec0e6f761b4af24f25677626b35f762f68eef79c08677a363212d11f6 -
'
LIBCOAP_ACCEPTED='
4.3.5 libcoap3_4.3.5.orig.tar.bz2 a332b682ceacef4c3130b2fb17851db02020c3f64b8a562c1ffd8d9b8a9320d4 dcf9335e595a255d465cf3ced5136ef6d5aef45c3147523288fc4bfd246ea2ff
'
# Versions of Mbed TLS to ask for, best first. One without an accepted digest above is reported
# and passed over: add its line once the digest has been checked.
MBEDTLS_WANTED='3.6.8 3.6.7'
LIBCOAP_WANTED='4.3.5'

# Debian's security patches for libcoap: the accepted archive in a cache. Fetched through apt, a
# newer one is verified by apt's signature chain instead.
PATCHES_UPSTREAM=4.3.4
PATCHES_ACCEPTED='
libcoap3_4.3.4-1.1+deb13u3.debian.tar.xz 4c225353780fe616013c67bd65307c08aa0d423111520cbad1f89596b32ba471
'

say() { echo "deps: $*" >&2; }
die() { say "$*"; exit 1; }

has_digest() { # file sha256
    [ -s "$1" ] && echo "$2  $1" | sha256sum -c --status -
}

# SHA-256 over the sorted list of (SHA-256, path) of what is compiled: the same for every way of
# packing the same release.
tree_digest() { # unpacked directory
    (cd "$1" && find CMakeLists.txt LICENSE cmake cmake_coap_*.h.in include libcoap-3.* src \
        -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1)
}

# ---- fetching

# A private apt that knows the source indexes of the two suites that carry the versions wanted.
apt_setup() {
    [ ! -e "$APT_STATE/ready" ] || return 0
    [ ! -e "$APT_STATE/failed" ] || return 1
    rm -rf "$APT_STATE"
    mkdir -p "$APT_STATE/parts" "$APT_STATE/prefs" "$APT_STATE/state/lists/partial" \
        "$APT_STATE/cache/archives/partial"
    : >"$APT_STATE/failed"
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    command -v apt-get >/dev/null && [ -r "$keyring" ] || return 1
    # shellcheck disable=SC1091 # not part of this tree
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mirror=$(apt-get update --print-uris 2>/dev/null |
        sed -n "s|^'\\(.*/\\)dists/$codename/InRelease'.*|\\1|p" | head -n 1)
    [ -n "$mirror" ] || { say "apt knows no archive for '$codename'"; return 1; }
    for suite in trixie sid; do
        printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
            "$mirror" "$suite" "$keyring"
    done >"$APT_STATE/parts/src.sources"
    cat >"$APT_STATE/apt.conf" <<C
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "$APT_STATE/parts";
Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "$APT_STATE/prefs";
Dir::State "$APT_STATE/state"; Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$APT_STATE/cache"; APT::Sandbox::User "root";
Acquire::Languages "none"; Acquire::Retries "3"; Acquire::http::Timeout "30";
Acquire::Check-Valid-Until "false";
C
    # (A mirror that lags shows an expired index of sid. That cannot bring in an older archive than
    # the ones accepted above, and trixie, where the patches come from, never expires.)
    APT_CONFIG=$APT_STATE/apt.conf apt-get update -qq >"$WORK/apt.log" 2>&1 ||
        { say "apt-get update failed, see $WORK/apt.log"; return 1; }
    mv "$APT_STATE/failed" "$APT_STATE/ready"
}

apt_version() { # source upstream-version: the newest Debian revision of it
    APT_CONFIG=$APT_STATE/apt.conf apt-cache showsrc "$1" 2>/dev/null |
        awk '$1 == "Version:" { print $2 }' |
        grep -E "^$(echo "$2" | sed 's/\./\\./g')([-+~]|\$)" | sort -V | tail -1
}

apt_source() { # source=version, --tar-only or --diff-only
    (cd "$CACHE" && APT_CONFIG=$APT_STATE/apt.conf \
        apt-get source -qq --download-only "$2" "$1" >>"$WORK/apt.log" 2>&1)
}

# The release archives of the projects themselves, for machines without Debian's.
upstream_url() { # source version
    case $1 in
    mbedtls) echo "https://github.com/Mbed-TLS/mbedtls/releases/download/mbedtls-$2/mbedtls-$2.tar.bz2" ;;
    libcoap3) echo "https://github.com/obgm/libcoap/archive/refs/tags/v$2.tar.gz" ;;
    esac
}

# Sets got_version and got_file for the best version that can be had.
get() { # source, wanted versions, accepted table
    for version in $2; do
        row=$(echo "$3" | awk -v v="$version" '$1 == v')
        if [ -z "$row" ]; then
            if apt_setup && [ -n "$(apt_version "$1" "$version")" ]; then
                say "$1 $version is in the archive, but no digest of it is accepted here yet"
            fi
            continue
        fi
        # shellcheck disable=SC2086 # the fields of the row
        set -- "$1" "$2" "$3" $row
        if get_one "$1" "$4" "$5" "$6" "$7"; then
            got_version=$version
            return 0
        fi
    done
    die "no accepted version of $1 could be had ($2)"
}

get_one() { # source version archive sha256 tree
    got_file=$CACHE/$3
    if has_digest "$got_file" "$4"; then
        return 0
    fi
    if apt_setup; then
        revision=$(apt_version "$1" "$2")
        if [ -n "$revision" ] && apt_source "$1=$revision" --tar-only; then
            has_digest "$got_file" "$4" && return 0
            say "$3 from the archive has another digest than the accepted one"
        fi
    fi
    get_upstream "$@"
}

get_upstream() { # source version archive sha256 tree
    command -v curl >/dev/null || return 1
    url=$(upstream_url "$1" "$2")
    got_file=$CACHE/upstream-$(basename "$url")
    [ -s "$got_file" ] || curl -fsSL --retry 2 -m 300 -o "$got_file.part" "$url" || return 1
    [ -s "$got_file" ] || mv "$got_file.part" "$got_file"
    has_digest "$got_file" "$4" && return 0
    if [ "$5" != - ]; then
        unpack "$got_file" "$WORK/check"
        found=$(tree_digest "$WORK/check")
        rm -rf "$WORK/check"
        [ "$found" != "$5" ] || return 0
    fi
    rm -f "$got_file"
    say "$url has another digest than the accepted one"
    return 1
}

unpack() { # archive directory
    rm -rf "$2"
    mkdir -p "$2"
    tar -C "$2" --strip-components=1 -xf "$1"
}

# Sets patches to Debian's packaging archive of libcoap.
get_security_patches() {
    for row in $(echo "$PATCHES_ACCEPTED" | sed '/^$/d;s/ /=/'); do
        patches=$CACHE/${row%%=*}
        has_digest "$patches" "${row##*=}" && return 0
    done
    apt_setup || return 1
    revision=$(apt_version libcoap3 "$PATCHES_UPSTREAM")
    [ -n "$revision" ] && apt_source "libcoap3=$revision" --diff-only || return 1
    patches=$CACHE/libcoap3_$revision.debian.tar.xz
    [ -s "$patches" ]
}

# ---- patching

# Drops the parts of a patch that change files this build does not compile.
only_ours() {
    awk '/^diff --git / { held = $0 ORS; next }
         /^(index|Index:|=====)/ { held = held $0 ORS; next }
         /^--- / { from = $0 ORS; next }
         /^\+\+\+ / { keep = $2 !~ /(examples\/|coap_openssl|coap_gnutls|coap_wolfssl|coap_tinydtls)/
                      if (keep) printf "%s%s%s\n", held, from, $0; held = from = ""; next }
         /^(@@|[-+ \\]|$)/ { if (keep) print }' "$1"
}

apply_security_patches() { # source tree
    rm -rf "$WORK/debian"
    mkdir "$WORK/debian"
    tar -C "$WORK/debian" -xf "$patches"
    applied=0
    while read -r name _; do
        case $name in '' | \#*) continue ;; esac
        only_ours "$WORK/debian/debian/patches/$name" >"$WORK/one.patch"
        if patch -d "$1" -p1 -s -N -f --dry-run <"$WORK/one.patch" >/dev/null 2>&1; then
            patch -d "$1" -p1 -s -N -f --no-backup-if-mismatch <"$WORK/one.patch"
            echo "$name" >>"$WORK/applied.txt"
            applied=$((applied + 1))
        elif ! patch -d "$1" -p1 -s -R -f --dry-run <"$WORK/one.patch" >/dev/null 2>&1; then
            say "WARNING: security patch $name neither applies nor is already in libcoap"
        fi
    done <"$WORK/debian/debian/patches/series"
    [ "$applied" -gt 0 ] || say "WARNING: no security patch of $(basename "$patches") was needed"
}

apply_our_patches() { # source tree
    for p in "$HERE"/libcoap/patches/*.patch; do
        [ -e "$p" ] || continue
        if patch -d "$1" -p1 -s -N -f --dry-run <"$p" >/dev/null 2>&1; then
            patch -d "$1" -p1 -s -N -f --no-backup-if-mismatch <"$p"
            basename "$p" >>"$WORK/applied.txt"
        else
            say "WARNING: $(basename "$p") no longer applies to libcoap $libcoap_version:" \
                "check whether upstream has fixed it, otherwise rebase it"
        fi
    done
}

# ---- configuring Mbed TLS
#
# The installed header must tell the truth about structure sizes to everybody who includes it, so
# the header itself is edited; a separate user configuration would be seen by some and not others.

on() { # name [value]
    grep -qE "^(//)?#define $1( |\$)" "$config" || die "mbedtls_config.h knows no $1"
    sed -i -E "s|^(//)?#define $1( .*)?\$|#define $1${2:+ $2}|" "$config"
}
off() {
    for name in "$@"; do
        grep -qE "^(//)?#define $name( |\$)" "$config" || die "mbedtls_config.h knows no $name"
        sed -i -E "s|^#define $name( .*)?\$|//&|" "$config"
    done
}

configure_mbedtls() { # source tree
    config=$1/include/mbedtls/mbedtls_config.h

    on MBEDTLS_THREADING_C
    on MBEDTLS_THREADING_PTHREAD

    # A record carries one chunk of at most 1,024 bytes or one handshake message, the largest of
    # which is a certificate chain of two P-256 certificates. Two buffers of 16 KiB per session
    # would cost 10,000 sessions 320 MB.
    on MBEDTLS_SSL_IN_CONTENT_LEN 2048
    on MBEDTLS_SSL_OUT_CONTENT_LEN 2048
    on MBEDTLS_SSL_DTLS_MAX_BUFFERING 8192
    on MBEDTLS_PSK_MAX_LEN 32

    # DTLS 1.2 with Connection ID (RFC 9146), as RFC 7925 profiles it. Off: what has been a source
    # of vulnerabilities and is of no use here (renegotiation, resizing buffers, tickets,
    # serialised contexts), TLS 1.3, and through it the PSA key store.
    on MBEDTLS_SSL_DTLS_CONNECTION_ID
    off MBEDTLS_SSL_RENEGOTIATION MBEDTLS_SSL_VARIABLE_BUFFER_LENGTH \
        MBEDTLS_SSL_CONTEXT_SERIALIZATION MBEDTLS_SSL_SESSION_TICKETS MBEDTLS_SSL_TICKET_C \
        MBEDTLS_SSL_CACHE_C MBEDTLS_SSL_ALPN MBEDTLS_SSL_KEYING_MATERIAL_EXPORT \
        MBEDTLS_SSL_PROTO_TLS1_3 MBEDTLS_SSL_TLS1_3_COMPATIBILITY_MODE \
        MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK_ENABLED \
        MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL_ENABLED \
        MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK_EPHEMERAL_ENABLED \
        MBEDTLS_PSA_CRYPTO_C MBEDTLS_PSA_CRYPTO_STORAGE_C MBEDTLS_PSA_ITS_FILE_C \
        MBEDTLS_PSA_KEY_STORE_DYNAMIC MBEDTLS_LMS_C

    # Two ways to prove who one is: a key per device, or P-256 certificates.
    off MBEDTLS_KEY_EXCHANGE_DHE_PSK_ENABLED MBEDTLS_KEY_EXCHANGE_ECDHE_PSK_ENABLED \
        MBEDTLS_KEY_EXCHANGE_RSA_PSK_ENABLED MBEDTLS_KEY_EXCHANGE_RSA_ENABLED \
        MBEDTLS_KEY_EXCHANGE_DHE_RSA_ENABLED MBEDTLS_KEY_EXCHANGE_ECDHE_RSA_ENABLED \
        MBEDTLS_KEY_EXCHANGE_ECDH_ECDSA_ENABLED MBEDTLS_KEY_EXCHANGE_ECDH_RSA_ENABLED \
        MBEDTLS_DHM_C MBEDTLS_ECJPAKE_C MBEDTLS_RSA_C MBEDTLS_PKCS1_V15 MBEDTLS_PKCS1_V21 \
        MBEDTLS_PK_RSA_ALT_SUPPORT MBEDTLS_X509_RSASSA_PSS_SUPPORT
    on MBEDTLS_SSL_CIPHERSUITES "MBEDTLS_TLS_PSK_WITH_AES_128_CCM_8, \
MBEDTLS_TLS_PSK_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_PSK_WITH_AES_128_CCM, \
MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8, \
MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM"
    off MBEDTLS_ECP_DP_SECP192R1_ENABLED MBEDTLS_ECP_DP_SECP224R1_ENABLED \
        MBEDTLS_ECP_DP_SECP521R1_ENABLED MBEDTLS_ECP_DP_SECP192K1_ENABLED \
        MBEDTLS_ECP_DP_SECP224K1_ENABLED MBEDTLS_ECP_DP_SECP256K1_ENABLED \
        MBEDTLS_ECP_DP_BP256R1_ENABLED MBEDTLS_ECP_DP_BP384R1_ENABLED \
        MBEDTLS_ECP_DP_BP512R1_ENABLED MBEDTLS_ECP_DP_CURVE448_ENABLED
    off MBEDTLS_ARIA_C MBEDTLS_CAMELLIA_C MBEDTLS_DES_C MBEDTLS_MD5_C MBEDTLS_RIPEMD160_C \
        MBEDTLS_SHA1_C MBEDTLS_NIST_KW_C MBEDTLS_PKCS7_C MBEDTLS_PKCS12_C \
        MBEDTLS_SELF_TEST MBEDTLS_VERSION_FEATURES
}

# ---- building

# Runs a command quietly; on failure shows the end of its log and where it is.
logged() { # log command...
    log=$1
    shift
    if [ "${DEPS_VERBOSE:-0}" = 1 ]; then
        "$@"
    elif ! "$@" >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "failed: $* (log: $log)"
    fi
}

build() { # name, source tree, cmake arguments...
    name=$1
    tree=$2
    shift 2
    rm -rf "$WORK/$name-build"
    # libcoap compiles in the commit of the repository it finds itself in, which would be this one.
    # shellcheck disable=SC2086 # the extra arguments are a list
    GIT_DIR=/dev/null logged "$WORK/$name.log" cmake -S "$tree" -B "$WORK/$name-build" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_PREFIX_PATH="$PREFIX" \
        -DBUILD_SHARED_LIBS=OFF ${DEPS_CMAKE_ARGS:-} "$@"
    logged "$WORK/$name.log" cmake --build "$WORK/$name-build" --target install
}

build_all() {
    rm -rf "$WORK/mbedtls" "$WORK/libcoap" "$WORK"/*.log "$WORK/applied.txt"
    : >"$WORK/applied.txt"

    get mbedtls "$MBEDTLS_WANTED" "$MBEDTLS_ACCEPTED"
    mbedtls_version=$got_version
    unpack "$got_file" "$WORK/mbedtls"
    configure_mbedtls "$WORK/mbedtls"

    get libcoap3 "$LIBCOAP_WANTED" "$LIBCOAP_ACCEPTED"
    libcoap_version=$got_version
    unpack "$got_file" "$WORK/libcoap"
    if get_security_patches; then
        apply_security_patches "$WORK/libcoap"
    elif [ "${DEPS_UNPATCHED:-0}" = 1 ]; then
        say "WARNING: building libcoap without Debian's security patches, as asked"
    else
        die "Debian's security patches for libcoap cannot be had here: put" \
            "$(echo "$PATCHES_ACCEPTED" | awk 'NF { print $1; exit }') into DEPS_CACHE" \
            "(or DEPS_UNPATCHED=1 to build without them)"
    fi
    apply_our_patches "$WORK/libcoap"

    build mbedtls "$WORK/mbedtls" -DENABLE_PROGRAMS=OFF -DENABLE_TESTING=OFF -DGEN_FILES=OFF

    # One thread does all input and output, so no locks; chunks travel in single datagrams, so no
    # Q-Block; what is switched off beside that is code nobody here calls.
    build libcoap "$WORK/libcoap" -DENABLE_DTLS=ON -DDTLS_BACKEND=mbedtls \
        -DENABLE_CLIENT_MODE=ON -DENABLE_SERVER_MODE=ON -DENABLE_ASYNC=ON -DWITH_EPOLL=ON \
        -DENABLE_IPV4=ON -DENABLE_IPV6=ON -DENABLE_SMALL_STACK=OFF -DENABLE_THREAD_SAFE=OFF \
        -DENABLE_OSCORE=OFF -DENABLE_TCP=OFF -DENABLE_WS=OFF -DENABLE_Q_BLOCK=OFF \
        -DENABLE_PROXY_CODE=OFF -DENABLE_AF_UNIX=OFF -DWITH_OBSERVE_PERSIST=OFF \
        -DENABLE_DOCS=OFF -DENABLE_EXAMPLES=OFF -DENABLE_TESTS=OFF -DMAX_LOGGING_LEVEL=7

    third_party
}

# Who wrote what ends up in a statically linked program.
third_party() {
    share=$PREFIX/share/elver
    mkdir -p "$share"
    {
        echo "Third-party code contained in statically linked Elver programs."
        echo
        echo "libcoap $libcoap_version"
        echo "    Licence: BSD-2-Clause, with parts (uthash) under BSD-1-Clause"
        echo "    Source:  https://libcoap.net"
        echo "    Changed: $(tr '\n' ' ' <"$WORK/applied.txt")"
        echo
        echo "Mbed TLS $mbedtls_version"
        echo "    Licence: Apache-2.0 (offered as Apache-2.0 OR GPL-2.0-or-later)"
        echo "    Source:  https://www.trustedfirmware.org/projects/mbed-tls"
        echo "    Changed: include/mbedtls/mbedtls_config.h only"
        echo
        echo "---- libcoap: LICENSE"
        echo
        cat "$WORK/libcoap/LICENSE"
        echo
        echo "---- Mbed TLS: LICENSE"
        echo
        cat "$WORK/mbedtls/LICENSE"
    } >"$share/THIRD-PARTY.txt"
}

# Whether the system's own libcoap is new enough and does DTLS with Mbed TLS; CMake finds it itself.
system_has_it() {
    [ -z "${DEPS_BUILD:-}" ] && [ -z "${DEPS_CMAKE_ARGS:-}" ] || return 1
    probe=$WORK/probe
    cat >"$probe.c" <<C
#include <coap3/coap.h>
int main(void)
{
    return LIBCOAP_VERSION < 4003005 ||
           coap_get_tls_library_version()->type != COAP_TLS_LIBRARY_MBEDTLS;
}
C
    ${CC:-cc} -o "$probe" "$probe.c" -lcoap-3 -lmbedtls -lmbedx509 -lmbedcrypto >/dev/null 2>&1 &&
        "$probe"
}

main() {
    mkdir -p "$WORK" "$CACHE"
    if system_has_it; then
        say "using the system's libcoap; DEPS_BUILD=1 builds one"
        return 0
    fi
    for tool in cmake ninja patch tar bzip2 xz sha256sum; do
        command -v "$tool" >/dev/null || die "$tool is missing"
    done
    if command -v flock >/dev/null; then # two builds into one prefix: the second waits
        exec 9>"$PREFIX/.lock"
        flock 9
    fi
    # Found by find, because a pattern without a match would stay as it is.
    wanted=$({
        find "$HERE/deps.sh" "$HERE/libcoap/patches" -type f | LC_ALL=C sort | xargs cat
        echo "$PREFIX ${CC:-} ${CFLAGS:-} ${DEPS_CMAKE_ARGS:-}"
    } | sha256sum | cut -d' ' -f1)
    if [ "$(cat "$PREFIX/.stamp" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    rm -f "$PREFIX/.stamp"
    rm -rf "$APT_STATE" # ask the archive again
    build_all
    rm -rf "$WORK/mbedtls" "$WORK/libcoap" "$WORK"/*-build "$WORK/debian" "$WORK/one.patch" \
        "$APT_STATE"
    echo "$wanted" >"$PREFIX/.stamp"
    echo "deps: libcoap $libcoap_version, Mbed TLS $mbedtls_version in $PREFIX"
}

main
