/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops_internal.h"

/* Place in one channel of x that output (row, column) meets at one place of the kernel; -1 where
 * that is padding. */
static int64_t meets(const struct elv_layer *l, uint32_t row, uint32_t col, uint32_t kh,
                     uint32_t kw)
{
    const int64_t h = (int64_t)row * l->stride + kh - l->pad_h;
    const int64_t w = (int64_t)col * l->stride + kw - l->pad_w;
    if (h < 0 || h >= l->in.h || w < 0 || w >= l->in.w)
        return -1;
    return h * l->in.w + w;
}

/* One output value: products over channel, kernel row, kernel column. Padding counts as zeros,
 * which are multiplied like any value. */
static float output(const struct elv_layer *l, const float *x, const float *w, float sum,
                    uint32_t row, uint32_t col)
{
    for (uint32_t c = 0; c < l->in.c; c++) {
        const float *channel = x + (size_t)c * l->in.h * l->in.w;
        for (uint32_t kh = 0; kh < l->kernel_h; kh++) {
            for (uint32_t kw = 0; kw < l->kernel_w; kw++) {
                const int64_t at = meets(l, row, col, kh, kw);
                sum += *w++ * (at < 0 ? 0.0f : channel[at]);
            }
        }
    }
    return sum;
}

void elv_conv_forward_ref(const struct elv_conv *a)
{
    const struct elv_layer *l = a->l;
    const size_t n_in = elv_shape_len(l->in), n_out = elv_shape_len(l->out);
    const size_t per_out = l->n_weight / l->out.c;
    for (uint32_t k = 0; k < a->of.n; k++) {
        const float *w = a->w + k * a->of.param_stride;
        const float *b = a->b + k * a->of.param_stride;
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            float *y = a->y + example * n_out;
            for (uint32_t o = 0; o < l->out.c; o++)
                for (uint32_t row = 0; row < l->out.h; row++)
                    for (uint32_t col = 0; col < l->out.w; col++)
                        *y++ = output(l, a->x + example * n_in, w + o * per_out, b[o], row, col);
        }
    }
}

/* Adds to one channel of dx what one place of the kernel passes back. */
static void pass_back(const struct elv_layer *l, const float *w, const float *dy, float *dx,
                      uint32_t kh, uint32_t kw)
{
    const size_t per_out = l->n_weight / l->out.c, area = (size_t)l->out.h * l->out.w;
    for (uint32_t row = 0; row < l->out.h; row++) {
        for (uint32_t col = 0; col < l->out.w; col++) {
            const int64_t at = meets(l, row, col, kh, kw);
            if (at < 0)
                continue;
            float sum = 0.0f;
            for (uint32_t o = 0; o < l->out.c; o++)
                sum += w[o * per_out] * dy[o * area + (size_t)row * l->out.w + col];
            dx[at] += sum;
        }
    }
}

void elv_conv_back_data_ref(const struct elv_conv *a)
{
    const struct elv_layer *l = a->l;
    const size_t n_in = elv_shape_len(l->in), n_out = elv_shape_len(l->out);
    const size_t area = (size_t)l->in.h * l->in.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            const float *w = a->w + k * a->of.param_stride;
            float *dx = a->dx + example * n_in;
            for (size_t i = 0; i < n_in; i++)
                dx[i] = 0.0f;
            for (uint32_t c = 0; c < l->in.c; c++)
                for (uint32_t kh = 0; kh < l->kernel_h; kh++)
                    for (uint32_t kw = 0; kw < l->kernel_w; kw++)
                        pass_back(l, w++, a->dy + example * n_out, dx + c * area, kh, kw);
        }
    }
}

/* One example's share of one weight's gradient. */
static float weight_share(const struct elv_layer *l, const float *x, const float *dy, float sum,
                          uint32_t kh, uint32_t kw)
{
    for (uint32_t row = 0; row < l->out.h; row++) {
        for (uint32_t col = 0; col < l->out.w; col++) {
            const int64_t at = meets(l, row, col, kh, kw);
            sum += *dy++ * (at < 0 ? 0.0f : x[at]);
        }
    }
    return sum;
}

static float bias_share(const float *dy, size_t n)
{
    float lane[16] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % 16] += dy[i];
    return elv_lanes16(lane);
}

static void back_weight(const struct elv_layer *l, const float *x, const float *dy, float *dw,
                        float *db)
{
    const size_t in = (size_t)l->in.h * l->in.w, out = (size_t)l->out.h * l->out.w;
    for (uint32_t o = 0; o < l->out.c; o++, dy += out) {
        db[o] += bias_share(dy, out);
        for (uint32_t c = 0; c < l->in.c; c++)
            for (uint32_t kh = 0; kh < l->kernel_h; kh++)
                for (uint32_t kw = 0; kw < l->kernel_w; kw++, dw++)
                    *dw = weight_share(l, x + c * in, dy, *dw, kh, kw);
    }
}

void elv_conv_back_weight_ref(const struct elv_conv *a)
{
    const struct elv_layer *l = a->l;
    const size_t n_in = elv_shape_len(l->in), n_out = elv_shape_len(l->out);
    for (uint32_t k = 0; k < a->of.n; k++) {
        if (a->of.rows[k] == 0)
            continue;
        float *dw = a->dw + k * a->of.grad_stride;
        float *db = a->db + k * a->of.grad_stride;
        for (uint32_t i = 0; i < l->n_weight; i++)
            dw[i] = 0.0f;
        for (uint32_t i = 0; i < l->n_bias; i++)
            db[i] = 0.0f;
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            back_weight(l, a->x + example * n_in, a->dy + example * n_out, dw, db);
        }
    }
}
