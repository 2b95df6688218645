/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/gemm_internal.h - the matrix product all layers are made of; internal to kernels/.
 *
 * c[m][n] starts from 0, from bias[m] or from itself and takes a[m][k] * b[k][n] for k in order,
 * one fused multiply-add each. Lanes run along n, so how many there are never shows in a result. */
#ifndef ELV_KERNELS_GEMM_INTERNAL_H
#define ELV_KERNELS_GEMM_INTERNAL_H

#include <stdbool.h>

#include "simd_internal.h"

enum elv_gemm_start { ELV_GEMM_ZERO, ELV_GEMM_BIAS, ELV_GEMM_SELF };

struct elv_gemm {
    size_t m, n, k;
    const float *a;
    size_t a_row, a_col; /* floats between neighbours in m and in k */
    const float *b;
    size_t b_row; /* floats from one k to the next; neighbours in n are adjacent */
    float *c;
    size_t c_row;
    enum elv_gemm_start start;
    const float *bias; /* [m] */
    float *edge; /* [k][16] scratch for the last columns; NULL: b may be read up to 15 past n */
};

void ELV_SIMD(gemm)(const struct elv_gemm *g);

#endif
