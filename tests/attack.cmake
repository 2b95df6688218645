# SPDX-License-Identifier: Apache-2.0
# Elver attacked from outside: by clients, by servers, by damaged state and by scarce resources.
elv_program(hostile hostile_net.c hostile_update.c elv_port_libcoap elv_port_posix elv_port_zlib
    libcoap::coap-3)
add_test(NAME attack_server COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/attack_server.sh
    ${PROJECT_BINARY_DIR} ${ELV_SANITIZE})
set_tests_properties(attack_server PROPERTIES TIMEOUT 180)
elv_e2e(attack_state 240 slow)
elv_e2e(attack_resources 240 slow)
elv_test(test_coap_message elv_port_libcoap libcoap::coap-3)
elv_test(test_client_hostile elv_client client_world.c)
