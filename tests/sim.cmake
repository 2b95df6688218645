# SPDX-License-Identifier: Apache-2.0
elv_test(test_sim_queue elv_port_sim)
elv_test(test_sim_disk elv_port_sim)
elv_test(test_sim_world elv_port_sim)
