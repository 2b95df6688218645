# SPDX-License-Identifier: Apache-2.0
# Elver attacked from outside: by clients, by servers, by damaged state and by scarce resources.
elv_program(hostile hostile_codec.c hostile_net.c hostile_update.c elv_port_libcoap elv_port_posix
    elv_port_zlib libcoap::coap-3)
elv_e2e(attack_server 360 ${ELV_SANITIZE})
elv_e2e(attack_certs 180)
elv_e2e(attack_state 300)
elv_e2e(attack_resources 300)
elv_e2e(attack_sim 600 ${ELV_SANITIZE})
set_tests_properties(attack_state attack_resources PROPERTIES LABELS slow)
elv_test(test_coap_message elv_port_libcoap libcoap::coap-3)
elv_test(test_client_hostile elv_client client_world.c fake_disk.c)
