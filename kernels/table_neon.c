/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd_internal.h"

/* Part of every 64-bit Arm processor that runs an operating system. */
const struct elv_kernels *elv_kernels_neon(void)
{
    static const struct elv_kernels table = ELV_SIMD_TABLE("neon", neon);
    return &table;
}
