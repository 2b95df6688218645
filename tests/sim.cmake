# SPDX-License-Identifier: Apache-2.0
# The server and its clients in the simulated world, and those who keep its books.
set(fleet sim_fleet.c sim_history.c sim_recipe.c sim_resume.c sim_updates.c sim_vandal.c sim_versions.c sim_watch.c
    elv_client elv_server elv_kernels elv_port_sim elv_port_zlib)

elv_test(test_sim_queue elv_port_sim)
elv_test(test_sim_disk elv_port_sim)
elv_test(test_sim_link elv_port_sim)
elv_test(test_sim_world elv_port_sim)
elv_test(test_swarm swarm_case.c elv_sim_lab)
elv_test(test_swarm_stream swarm_case.c elv_sim_lab)
elv_test(test_swarm_eval swarm_case.c elv_sim_lab)
elv_test(test_swarm_random swarm_case.c elv_sim_lab)
elv_test(test_swarm_server swarm_case.c ${fleet} elv_sim_lab)
elv_test(test_deploy elv_sim_lab)
elv_bench(bench_deploy elv_sim_lab)
elv_test(test_world_file elv_sim_lab)
elv_fuzz(fuzz_world elv_sim_lab)
elv_test(test_plan elv_sim_lab)
elv_test(test_sim_output elv_sim_lab)
elv_test(test_trace elv_sim_lab)
elv_test(test_lab_world elv_sim_lab)
elv_fuzz(fuzz_trace elv_sim_lab)
elv_fuzz(fuzz_outcome elv_sim_lab)
elv_bench(bench_swarm swarm_case.c elv_sim_lab)
elv_test(test_html html_fixture.c elv_sim_lab)
elv_program(html_sample html_fixture.c elv_sim_lab)

elv_test(test_profiles ${fleet})
elv_test(test_sim_watch ${fleet})

set(case sim_case.c sim_explain.c sim_job.c sim_shrink.c sim_trouble.c ${fleet})

# elv_sim(sim_X COUNT COUNT_SANITIZED FILE|LIBRARY...): runs the seeds 1..COUNT, fewer under a
# sanitizer.
function(elv_sim name count count_sanitized)
    elv_program(${name} ${ARGN})
    if(ELV_SANITIZE)
        set(count ${count_sanitized})
    endif()
    add_test(NAME ${name} COMMAND ${name} 1 ${count})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

elv_test(test_down ${fleet})
elv_sim(sim_same_bytes 20 8 ${fleet})

# The fault campaign: some seeds everywhere, and a thousand in the optimised build, in two halves
# that run side by side.
elv_sim(sim_rounds 66 44 ${case})
if(NOT ELV_SANITIZE)
    foreach(half 1 501)
        add_test(NAME sim_rounds_${half} COMMAND sim_rounds ${half} 500)
        set_tests_properties(sim_rounds_${half} PROPERTIES TIMEOUT 600 LABELS slow)
    endforeach()
endif()
elv_program(sim_campaign ${case})
add_test(NAME sim_campaign COMMAND sim_campaign 1001 8 2)
set_tests_properties(sim_campaign PROPERTIES LABELS threads TIMEOUT 300)
elv_test(test_sim_shrink sim_shrink.c)
elv_test(test_sim_faults elv_port_sim)
elv_test(test_sim_case ${case})

# The transfer engine over modelled links.
elv_test(test_goodput transfer_track.c elv_client elv_port_sim)
elv_bench(bench_goodput transfer_track.c elv_client elv_port_sim)
elv_sim(sim_transfer 1000 300 transfer_track.c elv_client elv_port_sim)
