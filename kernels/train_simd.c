/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers, convolutions and descent, as matrix products and plain loops. */

#include "kernels/gemm_internal.h"

static size_t up16(size_t n) { return (n + 15) / 16 * 16; }

/* Rows of a batch, with lanes that nobody looks at. */
static size_t up_to_width(size_t n)
{
    return (n + ELV_SIMD_WIDTH - 1) / ELV_SIMD_WIDTH * ELV_SIMD_WIDTH;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Forward needs x and y with examples side by side; backward needs an edge of 16 columns. */
size_t ELV_SIMD(dense_scratch)(uint32_t rows_cap, uint32_t n_in, uint32_t n_out)
{
    const size_t rows = up16(rows_cap);
    const size_t edge = 16 * larger(n_out, rows_cap);
    return larger(rows * n_in + rows * n_out, edge) * sizeof(float);
}

/* to[i][r] = from[r][i], rows of `to` padded with zeros to `cap`. Sixteen columns at a time, so
 * that the scattered side stays in the first cache. */
static void transpose(float *to, size_t cap, const float *from, size_t rows, size_t cols)
{
    for (size_t at = 0; at < cols; at += 16) {
        const size_t n = cols - at < 16 ? cols - at : 16;
        for (size_t r = 0; r < cap; r++)
            for (size_t i = 0; i < n; i++)
                to[(at + i) * cap + r] = r < rows ? from[r * cols + at + i] : 0.0f;
    }
}

/* Lanes run along the examples: no weight is rearranged, and a batch is smaller than a layer. */
void ELV_SIMD(dense_forward)(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t rows = a->of.rows[k], cap = up_to_width(rows);
        const size_t first = (size_t)k * a->of.rows_cap;
        float *xt = a->scratch, *yt = xt + cap * a->n_in;
        if (rows == 0)
            continue;
        transpose(xt, cap, a->x + first * a->n_in, rows, a->n_in);
        const struct elv_gemm g = {.m = a->n_out,
                                   .n = cap,
                                   .k = a->n_in,
                                   .a = a->w + k * a->of.param_stride,
                                   .a_row = a->n_in,
                                   .a_col = 1,
                                   .b = xt,
                                   .b_row = cap,
                                   .c = yt,
                                   .c_row = cap,
                                   .start = ELV_GEMM_BIAS,
                                   .bias = a->b + k * a->of.param_stride};
        ELV_SIMD(gemm)(&g);
        float *y = a->y + first * a->n_out;
        for (size_t r = 0; r < rows; r++)
            for (size_t o = 0; o < a->n_out; o++)
                y[r * a->n_out + o] = yt[o * cap + r];
    }
}

void ELV_SIMD(dense_back_data)(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t first = (size_t)k * a->of.rows_cap;
        const struct elv_gemm g = {.m = a->of.rows[k],
                                   .n = a->n_in,
                                   .k = a->n_out,
                                   .a = a->dy + first * a->n_out,
                                   .a_row = a->n_out,
                                   .a_col = 1,
                                   .b = a->w + k * a->of.param_stride,
                                   .b_row = a->n_in,
                                   .c = a->dx + first * a->n_in,
                                   .c_row = a->n_in,
                                   .edge = a->scratch};
        ELV_SIMD(gemm)(&g);
    }
}

void ELV_SIMD(dense_back_weight)(const struct elv_dense *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        if (a->of.rows[k] == 0)
            continue;
        const size_t first = (size_t)k * a->of.rows_cap;
        const float *dy = a->dy + first * a->n_out;
        const struct elv_gemm g = {.m = a->n_out,
                                   .n = a->n_in,
                                   .k = a->of.rows[k],
                                   .a = dy,
                                   .a_row = 1,
                                   .a_col = a->n_out,
                                   .b = a->x + first * a->n_in,
                                   .b_row = a->n_in,
                                   .c = a->dw + k * a->of.grad_stride,
                                   .c_row = a->n_in,
                                   .edge = a->scratch};
        ELV_SIMD(gemm)(&g);
        float *restrict db = a->db + k * a->of.grad_stride;
        for (size_t o = 0; o < a->n_out; o++)
            db[o] = 0.0f;
        for (size_t r = 0; r < a->of.rows[k]; r++)
            for (size_t o = 0; o < a->n_out; o++)
                db[o] += dy[r * a->n_out + o];
    }
}

void ELV_SIMD(relu_forward)(const struct elv_relu *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        float *y = a->y + (size_t)k * a->of.rows_cap * a->n;
        for (size_t i = 0; i < (size_t)a->of.rows[k] * a->n; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i];
    }
}

void ELV_SIMD(relu_back)(const struct elv_relu *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const float *restrict y = a->y + (size_t)k * a->of.rows_cap * a->n;
        float *restrict dy = a->dy + (size_t)k * a->of.rows_cap * a->n;
        for (size_t i = 0; i < (size_t)a->of.rows[k] * a->n; i++)
            dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

static void descend(float *restrict w, const float *restrict g, float rate, float decay, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float step = g[i] + decay * w[i];
        w[i] = w[i] - rate * step;
    }
}

static void descend_fast(float *restrict w, float *restrict v, const float *restrict g,
                         const struct elv_sgd *a)
{
    const float rate = a->rate, momentum = a->momentum, decay = a->decay;
    for (size_t i = 0; i < a->n; i++) {
        const float pull = g[i] + decay * w[i];
        const float step = pull + momentum * v[i];
        v[i] = step;
        w[i] = w[i] - rate * step;
    }
}

static void descend_pulled(float *restrict w, float *restrict v, const float *restrict g,
                           const float *restrict home, const struct elv_sgd *a)
{
    const float rate = a->rate, momentum = a->momentum, decay = a->decay, pull = a->pull;
    for (size_t i = 0; i < a->n; i++) {
        const float shrunk = g[i] + decay * w[i];
        float step = shrunk + pull * (w[i] - home[i]);
        if (v != NULL)
            v[i] = step = step + momentum * v[i];
        w[i] = w[i] - rate * step;
    }
}

void ELV_SIMD(sgd)(const struct elv_sgd *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        float *w = a->w + k * a->of.param_stride;
        const float *g = a->g + k * a->of.grad_stride;
        if (a->of.rows[k] == 0)
            continue;
        float *v = a->v == NULL ? NULL : a->v + k * a->v_stride;
        if (a->home != NULL)
            descend_pulled(w, v, g, a->home + k * a->home_stride, a);
        else if (v == NULL)
            descend(w, g, a->rate, a->decay, a->n);
        else
            descend_fast(w, v, g, a);
    }
}
