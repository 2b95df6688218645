/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops_internal.h"

void elv_dense_forward_ref(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const float *w = a->w + k * a->of.param_stride;
        const float *b = a->b + k * a->of.param_stride;
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t row = (size_t)k * a->of.rows_cap + r;
            const float *x = a->x + row * a->n_in;
            float *y = a->y + row * a->n_out;
            for (uint32_t o = 0; o < a->n_out; o++) {
                float sum = b[o];
                for (uint32_t i = 0; i < a->n_in; i++)
                    sum += x[i] * w[(size_t)o * a->n_in + i];
                y[o] = sum;
            }
        }
    }
}

void elv_dense_back_data_ref(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const float *w = a->w + k * a->of.param_stride;
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t row = (size_t)k * a->of.rows_cap + r;
            const float *dy = a->dy + row * a->n_out;
            float *dx = a->dx + row * a->n_in;
            for (uint32_t i = 0; i < a->n_in; i++)
                dx[i] = 0.0f;
            for (uint32_t o = 0; o < a->n_out; o++) /* the order per element; rows of w in a line */
                for (uint32_t i = 0; i < a->n_in; i++)
                    dx[i] += dy[o] * w[(size_t)o * a->n_in + i];
        }
    }
}

void elv_dense_back_weight_ref(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        if (a->of.rows[k] == 0)
            continue;
        float *dw = a->dw + k * a->of.grad_stride;
        float *db = a->db + k * a->of.grad_stride;
        const float *x = a->x + (size_t)k * a->of.rows_cap * a->n_in;
        const float *dy = a->dy + (size_t)k * a->of.rows_cap * a->n_out;
        for (uint32_t o = 0; o < a->n_out; o++) {
            float *to = dw + (size_t)o * a->n_in;
            db[o] = 0.0f;
            for (uint32_t i = 0; i < a->n_in; i++)
                to[i] = 0.0f;
            for (uint32_t r = 0; r < a->of.rows[k]; r++) {
                const float d = dy[(size_t)r * a->n_out + o];
                db[o] += d;
                for (uint32_t i = 0; i < a->n_in; i++)
                    to[i] += d * x[(size_t)r * a->n_in + i];
            }
        }
    }
}
