# SPDX-License-Identifier: Apache-2.0
# End-to-end tests: the programs as they are installed, over real DTLS on loopback.

# elv_e2e(NAME SECONDS [ARGUMENT...]): NAME.sh with the build folder; SECONDS is how long it may
# take, many times what it does take.
function(elv_e2e name seconds)
    add_test(NAME ${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh ${PROJECT_BINARY_DIR}
        ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds} SKIP_RETURN_CODE 77)
endfunction()

elv_e2e(e2e_bad_input 180)
elv_e2e(e2e_certs 180)
elv_e2e(e2e_codecs 180)
elv_e2e(e2e_examples 60)
elv_e2e(e2e_full_disk 300)
elv_e2e(e2e_keys 180)
elv_e2e(e2e_kill_client 180)
elv_e2e(e2e_kill_server 600 20)
set_tests_properties(e2e_kill_server PROPERTIES LABELS slow)
elv_e2e(e2e_live_dbw 300)
elv_e2e(e2e_live_ebsp 300)
elv_e2e(e2e_live_policies 300)
elv_e2e(e2e_live_refused 180)
# How fast devices are against each other means nothing under a sanitizer.
set_tests_properties(e2e_live_dbw e2e_live_ebsp PROPERTIES LABELS slow RUN_SERIAL ON)
elv_e2e(e2e_lossy 300)
elv_e2e(e2e_profiles 300)
elv_e2e(e2e_report 300)
elv_program(e2e_resume_main relay.c elv_port_sim)
elv_e2e(e2e_resume 300)
elv_e2e(e2e_run 180)
elv_e2e(e2e_same_bytes 180)
elv_e2e(e2e_state 180)
elv_e2e(e2e_stream 300)
elv_e2e(e2e_sim 300)
if(ELV_SANITIZE STREQUAL "thread")
    add_test(NAME e2e_sim_threads COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/e2e_sim.sh
        ${PROJECT_BINARY_DIR} threads)
    set_tests_properties(e2e_sim_threads PROPERTIES TIMEOUT 300 LABELS threads)
endif()
elv_e2e(e2e_stock 120)

# A few of the kills under the sanitizers, too.
if(ELV_SANITIZE)
    add_test(NAME e2e_kill_server_thrice COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/e2e_kill_server.sh
        ${PROJECT_BINARY_DIR} 3 7)
    set_tests_properties(e2e_kill_server_thrice PROPERTIES TIMEOUT 300)
endif()

# The experiments of the papers, those that are cheap.
if(NOT ELV_SANITIZE AND NOT ELV_FUZZ)
    add_test(NAME papers_quick COMMAND sh ${PROJECT_SOURCE_DIR}/examples/papers/run.sh --quick
        --build ${PROJECT_BINARY_DIR})
    set_tests_properties(papers_quick PROPERTIES LABELS slow TIMEOUT 900)
    if(EXISTS /usr/share/datasets/fashion-mnist)
        add_test(NAME codecs_quick COMMAND sh ${PROJECT_SOURCE_DIR}/examples/codecs.sh --quick
            --build ${PROJECT_BINARY_DIR} --out ${CMAKE_CURRENT_BINARY_DIR}/codecs_quick)
        set_tests_properties(codecs_quick PROPERTIES TIMEOUT 600)
    endif()
endif()
