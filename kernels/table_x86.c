/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/table_x86.c - built for the baseline, so that asking needs nothing the answer may lack.
 *
 * A level of the x86-64 psABI is told by its vector features; every processor that has those has
 * the rest of the level. */
#include "kernels/simd_internal.h"

const struct elv_kernels *elv_kernels_v2(void)
{
    static const struct elv_kernels table = ELV_SIMD_TABLE("x86-64-v2", v2);
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") ? &table : NULL;
}

const struct elv_kernels *elv_kernels_v3(void)
{
    static const struct elv_kernels table = ELV_SIMD_TABLE("x86-64-v3", v3);
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi2")
               ? &table
               : NULL;
}

const struct elv_kernels *elv_kernels_v4(void)
{
    static const struct elv_kernels table = ELV_SIMD_TABLE("x86-64-v4", v4);
    return elv_kernels_v3() != NULL && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? &table
               : NULL;
}
