# SPDX-License-Identifier: Apache-2.0
# Tests of CoAP over DTLS on real sockets, and of what stands beside it.
elv_test(test_coap coap_world.c relay.c elv_coap)
add_executable(relay_main relay_main.c relay.c)
target_link_libraries(relay_main PRIVATE elv_flags)
elv_bench(bench_coap relay.c elv_coap)
elv_test(test_zlib elv_zlib)
elv_fuzz(fuzz_squeeze elv_zlib)
