# SPDX-License-Identifier: Apache-2.0
# Tests of the client.
elv_test(test_link elv_client)
elv_test(test_transfer elv_client)
