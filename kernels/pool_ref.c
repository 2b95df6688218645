/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ops_internal.h"

static void pool_channel(const struct elv_layer *l, const float *x, float *y, uint8_t *from)
{
    for (uint32_t row = 0; row < l->out.h; row++) {
        for (uint32_t col = 0; col < l->out.w; col++) {
            const float *window = x + (size_t)row * l->stride * l->in.w + (size_t)col * l->stride;
            float best = window[0];
            uint8_t at = 0;
            for (uint32_t i = 1; i < l->kernel_h * l->kernel_w; i++) {
                const float v = window[(size_t)(i / l->kernel_w) * l->in.w + i % l->kernel_w];
                if (v > best || v != v) {
                    best = v;
                    at = (uint8_t)i;
                }
            }
            *y++ = best;
            *from++ = at;
        }
    }
}

void elv_pool_forward_ref(const struct elv_pool *a)
{
    const struct elv_layer *l = a->l;
    const size_t in = (size_t)l->in.h * l->in.w, out = (size_t)l->out.h * l->out.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t first = (size_t)k * a->of.rows_cap * l->in.c;
        for (size_t i = first; i < first + (size_t)a->of.rows[k] * l->in.c; i++)
            pool_channel(l, a->x + i * in, a->y + i * out, a->from + i * out);
    }
}

static void back_channel(const struct elv_layer *l, const float *dy, const uint8_t *from, float *dx)
{
    for (size_t i = 0; i < (size_t)l->in.h * l->in.w; i++)
        dx[i] = 0.0f;
    for (uint32_t row = 0; row < l->out.h; row++) {
        for (uint32_t col = 0; col < l->out.w; col++) {
            const size_t h = (size_t)row * l->stride + *from / l->kernel_w;
            const size_t w = (size_t)col * l->stride + *from % l->kernel_w;
            dx[h * l->in.w + w] += *dy++;
            from++;
        }
    }
}

void elv_pool_back_ref(const struct elv_pool *a)
{
    const struct elv_layer *l = a->l;
    const size_t in = (size_t)l->in.h * l->in.w, out = (size_t)l->out.h * l->out.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t first = (size_t)k * a->of.rows_cap * l->in.c;
        for (size_t i = first; i < first + (size_t)a->of.rows[k] * l->in.c; i++)
            back_channel(l, a->dy + i * out, a->from + i * out, a->dx + i * in);
    }
}
