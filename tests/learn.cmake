# SPDX-License-Identifier: Apache-2.0
# What simulated clients learn.
elv_test(test_learn_quadratic elv_sim_lab)
