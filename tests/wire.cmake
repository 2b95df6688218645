# SPDX-License-Identifier: Apache-2.0
# Tests of what travels: CBOR, messages, paths, chunks and codecs.
elv_test(test_cbor)
elv_test(test_msg wire_samples.c)
elv_test(test_path)
elv_test(test_chunk)
elv_test(test_codec codec_cases.c)
elv_test(test_codec_dense)
elv_test(test_bits)
elv_test(test_range)
elv_test(test_select_top)
elv_test(test_sparse)
elv_test(test_codec_rotate)
elv_test(test_text)
elv_test(test_golden wire_samples.c)

elv_bench(bench_quant codec_cases.c)
elv_program(wire_golden wire_samples.c)
elv_program(cbor_echo)

find_program(ELV_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(ELV_PYTHON3)
    add_test(NAME cbor_cross COMMAND ${ELV_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/cbor_cross.py
        $<TARGET_FILE:cbor_echo> ${CMAKE_CURRENT_SOURCE_DIR}/golden/wire-1)
    set_tests_properties(cbor_cross PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
endif()

elv_bench(bench_rotate elv_common)

elv_fuzz(fuzz_cbor)
elv_fuzz(fuzz_msg wire_samples.c)
elv_fuzz(fuzz_chunk)
elv_fuzz(fuzz_path)
elv_fuzz(fuzz_codec codec_cases.c)
elv_bench(bench_sparse codec_cases.c elv_kernels elv_port_zlib)
