# SPDX-License-Identifier: Apache-2.0
# Tests of the shared tools and the arithmetic.
elv_test(test_exact)
elv_test(test_half elv_common)
elv_test(test_rng elv_common)
elv_test(test_sha256 elv_common)
elv_test(test_model elv_common)
elv_test(test_kernels elv_kernels)
# The oracle rounds each operation by itself.
target_compile_options(test_kernels PRIVATE -ffp-contract=off)
elv_test(test_nn elv_kernels)
elv_test(test_trainer elv_client)
elv_bench(bench_kernels elv_kernels)
elv_test(test_safetensors)
elv_fuzz(fuzz_model)
elv_fuzz(fuzz_safetensors)
