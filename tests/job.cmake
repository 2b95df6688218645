# SPDX-License-Identifier: Apache-2.0
# Tests of the job file.
elv_test(test_job elv_server)
elv_fuzz(fuzz_job elv_server)
elv_test(test_model_file elv_server)
elv_test(test_report elv_server)
elv_test(test_settings elv_server)
elv_test(test_value elv_server)
