/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/ops_internal.h - operations that several tables share; internal to kernels/. */
#ifndef ELV_KERNELS_OPS_INTERNAL_H
#define ELV_KERNELS_OPS_INTERNAL_H

#include "kernels.h"

enum elv_err elv_nothing_pending(void);
float elv_power_of_two(int exponent); /* -126 to 127 */

void elv_dense_forward_ref(const struct elv_dense *a);
void elv_dense_back_data_ref(const struct elv_dense *a);
void elv_dense_back_weight_ref(const struct elv_dense *a);
void elv_conv_forward_ref(const struct elv_conv *a);
void elv_conv_back_data_ref(const struct elv_conv *a);
void elv_conv_back_weight_ref(const struct elv_conv *a);
void elv_pool_forward_ref(const struct elv_pool *a);
void elv_pool_back_ref(const struct elv_pool *a);
void elv_relu_forward_ref(const struct elv_relu *a);
void elv_relu_back_ref(const struct elv_relu *a);
void elv_xent_ref(const struct elv_xent *a);
void elv_sgd_ref(const struct elv_sgd *a);

void elv_sub_ref(float *out, const float *a, const float *b, size_t n);
void elv_norm2_ref(double *out, const float *v, size_t n);
void elv_quantise_q8_ref(int8_t *q, float *scale, const float *v, size_t n);
void elv_apply_ref(float *out, const struct elv_view *views, size_t n_views);
void elv_fold_ref(int64_t *acc, const struct elv_view *views, size_t n_views, int shift);
void elv_check_ref(uint32_t *bad, const struct elv_view *view, float bound);
void elv_unfold_ref(float *out, const int64_t *acc, double gain, size_t n);

/* Each only in programs that build it. NULL: this computer cannot run it. */
const struct elv_kernels *elv_kernels_ref(void);
const struct elv_kernels *elv_kernels_v2(void);
const struct elv_kernels *elv_kernels_v3(void);
const struct elv_kernels *elv_kernels_v4(void);
const struct elv_kernels *elv_kernels_neon(void);

#endif
