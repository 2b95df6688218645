#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/bench_herd.sh BUILD - 2,000 DTLS sessions, and the server killed in the middle of a round: how
# long until every client has come back and contributed. See e2e_herd.sh.
exec sh "$(dirname "$0")/e2e_herd.sh" "$1" 2000
