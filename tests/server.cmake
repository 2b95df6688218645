# SPDX-License-Identifier: Apache-2.0
# Tests of the server's parts, and of the server on a fake disk with scripted peers.
elv_test(test_server server_world.c fake_disk.c elv_server)
elv_test(test_server_restart server_world.c fake_disk.c elv_server)
elv_test(test_server_refuse server_world.c fake_disk.c elv_server)
elv_test(test_server_rounds server_world.c fake_disk.c elv_server)
elv_test(test_server_eval server_world.c fake_disk.c elv_server)
elv_test(test_policies elv_server)
elv_test(test_ledger elv_server)
elv_test(test_upload fake_disk.c elv_server)
elv_test(test_roster elv_server)
