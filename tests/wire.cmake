# SPDX-License-Identifier: Apache-2.0
# Tests of what travels: CBOR, messages, paths, chunks and codecs.
