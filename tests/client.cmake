# SPDX-License-Identifier: Apache-2.0
# Tests of the client.
elv_test(test_link elv_client)
elv_test(test_transfer elv_client)
elv_test(test_delta elv_client)
elv_test(test_residual elv_client)
elv_test(test_client elv_client client_world.c fake_disk.c)
elv_test(test_builtin elv_client client_world.c fake_disk.c)
elv_fuzz(fuzz_client elv_client)
elv_test(test_persist elv_client client_world.c fake_disk.c)
elv_test(test_base elv_client client_world.c fake_disk.c)
