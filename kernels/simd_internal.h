/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/simd_internal.h - vectors for the sources that are compiled once per instruction set.
 *
 * The build gives two numbers: ELV_SIMD_NAME, the suffix of every function (v2, v3, v4, neon), and
 * ELV_SIMD_WIDTH, floats per register. Nothing else depends on the machine: GCC's vector extensions
 * (clang has them too) do the rest. */
#ifndef ELV_KERNELS_SIMD_INTERNAL_H
#define ELV_KERNELS_SIMD_INTERNAL_H

#include "ops_internal.h"

#define ELV_SIMD_JOIN_(op, name) elv_##op##_##name
#define ELV_SIMD_JOIN(op, name) ELV_SIMD_JOIN_(op, name)
#define ELV_SIMD(op) ELV_SIMD_JOIN(op, ELV_SIMD_NAME)

/* Declares the operations of one instruction set. */
#define ELV_SIMD_OPS(name)                                                                         \
    size_t elv_dense_scratch_##name(uint32_t rows_cap, uint32_t n_in, uint32_t n_out);             \
    size_t elv_conv_scratch_##name(const struct elv_layer *l);                                     \
    void elv_dense_forward_##name(const struct elv_dense *a);                                      \
    void elv_dense_back_data_##name(const struct elv_dense *a);                                    \
    void elv_dense_back_weight_##name(const struct elv_dense *a);                                  \
    void elv_conv_forward_##name(const struct elv_conv *a);                                        \
    void elv_conv_back_data_##name(const struct elv_conv *a);                                      \
    void elv_conv_back_weight_##name(const struct elv_conv *a);                                    \
    void elv_pool_forward_##name(const struct elv_pool *a);                                        \
    void elv_pool_back_##name(const struct elv_pool *a);                                           \
    void elv_relu_forward_##name(const struct elv_relu *a);                                        \
    void elv_relu_back_##name(const struct elv_relu *a);                                           \
    void elv_sgd_##name(const struct elv_sgd *a);                                                  \
    void elv_sub_##name(float *out, const float *a, const float *b, size_t n);                     \
    void elv_norm2_##name(double *out, const float *v, size_t n);                                  \
    void elv_quantise_q8_##name(int8_t *q, float *scale, const float *v, size_t n);                \
    void elv_apply_##name(float *out, const struct elv_view *views, size_t n_views);               \
    void elv_fold_##name(int64_t *acc, const struct elv_view *views, size_t n_views, int shift);   \
    void elv_check_##name(uint32_t *bad, const struct elv_view *view, float bound);                \
    void elv_unfold_##name(float *out, const int64_t *acc, double gain, size_t n)

/* A table of them. */
#define ELV_SIMD_TABLE(text, suffix)                                                               \
    {                                                                                              \
        .name = text, .sync = elv_nothing_pending, .dense_scratch = elv_dense_scratch_##suffix,    \
        .conv_scratch = elv_conv_scratch_##suffix, .dense_forward = elv_dense_forward_##suffix,    \
        .dense_back_data = elv_dense_back_data_##suffix,                                           \
        .dense_back_weight = elv_dense_back_weight_##suffix,                                       \
        .conv_forward = elv_conv_forward_##suffix, .conv_back_data = elv_conv_back_data_##suffix,  \
        .conv_back_weight = elv_conv_back_weight_##suffix,                                         \
        .pool_forward = elv_pool_forward_##suffix, .pool_back = elv_pool_back_##suffix,            \
        .relu_forward = elv_relu_forward_##suffix, .relu_back = elv_relu_back_##suffix,            \
        .xent = elv_xent_ref, .sgd = elv_sgd_##suffix, .sub = elv_sub_##suffix,                    \
        .norm2 = elv_norm2_##suffix, .quantise_q8 = elv_quantise_q8_##suffix,                      \
        .apply = elv_apply_##suffix, .fold = elv_fold_##suffix, .check = elv_check_##suffix,       \
        .unfold = elv_unfold_##suffix                                                              \
    }

ELV_SIMD_OPS(v2);
ELV_SIMD_OPS(v3);
ELV_SIMD_OPS(v4);
ELV_SIMD_OPS(neon);

/* Loads and stores through these need no alignment and may see any type. */
typedef float elv_f32x8 __attribute__((vector_size(32), aligned(1), may_alias));

#define ELV_INLINE static inline __attribute__((always_inline))

#endif
