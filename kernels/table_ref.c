/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops_internal.h"

static size_t no_dense_scratch(uint32_t rows_cap, uint32_t n_in, uint32_t n_out)
{
    (void)rows_cap;
    (void)n_in;
    (void)n_out;
    return 0;
}

static size_t no_conv_scratch(const struct elv_layer *l)
{
    (void)l;
    return 0;
}

const struct elv_kernels *elv_kernels_ref(void)
{
    static const struct elv_kernels table = {
        .name = "ref",
        .sync = elv_nothing_pending,
        .dense_scratch = no_dense_scratch,
        .conv_scratch = no_conv_scratch,
        .dense_forward = elv_dense_forward_ref,
        .dense_back_data = elv_dense_back_data_ref,
        .dense_back_weight = elv_dense_back_weight_ref,
        .conv_forward = elv_conv_forward_ref,
        .conv_back_data = elv_conv_back_data_ref,
        .conv_back_weight = elv_conv_back_weight_ref,
        .pool_forward = elv_pool_forward_ref,
        .pool_back = elv_pool_back_ref,
        .relu_forward = elv_relu_forward_ref,
        .relu_back = elv_relu_back_ref,
        .xent = elv_xent_ref,
        .sgd = elv_sgd_ref,
        .sub = elv_sub_ref,
        .norm2 = elv_norm2_ref,
        .quantise_q8 = elv_quantise_q8_ref,
        .apply = elv_apply_ref,
        .fold = elv_fold_ref,
        .check = elv_check_ref,
        .unfold = elv_unfold_ref,
    };
    return &table;
}
