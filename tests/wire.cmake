# SPDX-License-Identifier: Apache-2.0
# Tests of what travels: CBOR, messages, paths, chunks and codecs.
elv_test(test_cbor)
elv_test(test_golden wire_samples.c)

elv_program(wire_golden wire_samples.c)
