# SPDX-License-Identifier: Apache-2.0
# Tests of CoAP over DTLS on real sockets, and of what stands beside it.
elv_test(test_coap coap_world.c relay.c elv_port_libcoap elv_port_mbedtls elv_port_sim)
elv_test(test_on_path coap_world.c relay.c elv_client elv_port_libcoap elv_port_sim)
elv_test(test_relay relay.c elv_port_sim)
elv_program(relay_main relay.c elv_port_sim)
elv_bench(bench_coap relay.c elv_port_libcoap elv_port_sim)
elv_bench(bench_transfer transfer_block.c transfer_chunks.c transfer_rig.c relay.c elv_client
    elv_port_libcoap libcoap::coap-3 elv_port_sim)
elv_test(test_wire_size coap_world.c relay.c elv_port_libcoap elv_port_sim)
elv_test(test_zlib elv_port_zlib)
elv_fuzz(fuzz_squeeze elv_port_zlib)
elv_test(test_certify elv_port_mbedtls)
elv_program(stock_server coap_world.c relay.c elv_port_libcoap elv_port_sim)
add_test(NAME stock_client COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/stock_client.sh
    $<TARGET_FILE:stock_server>)
set_tests_properties(stock_client PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
