# SPDX-License-Identifier: Apache-2.0
# End-to-end tests: the programs as they are installed, over real DTLS on loopback.

# elv_e2e(NAME SECONDS [LABEL]...): NAME.sh with the build folder; SECONDS is how long it may take.
function(elv_e2e name seconds)
    add_test(NAME ${name} COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh ${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds} LABELS "${ARGN}"
        SKIP_RETURN_CODE 77)
endfunction()

elv_e2e(e2e_run 180)
elv_e2e(e2e_kill_client 180)
elv_e2e(e2e_same_bytes 180)
elv_e2e(e2e_bad_input 180)
elv_e2e(e2e_keys 180)
