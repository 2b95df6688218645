# SPDX-License-Identifier: Apache-2.0
# What simulated clients learn.
elv_test(test_learn_quadratic elv_sim_lab)
elv_test(test_learn_logistic elv_sim_lab)
elv_test(test_learn_network elv_sim_lab elv_port_zlib client_world.c fake_disk.c)
elv_bench(bench_learn elv_sim_lab)
set_tests_properties(test_learn_network PROPERTIES LABELS threads)
