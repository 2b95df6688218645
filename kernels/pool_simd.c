/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "kernels/simd_internal.h"

typedef float f32x4 __attribute__((vector_size(16), aligned(1), may_alias));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint8_t u8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint8_t u8x8 __attribute__((vector_size(8), aligned(1), may_alias));

/* What a window has found so far, for several windows side by side. */
struct best4 {
    f32x4 value;
    i32x4 from;
};

struct best8 {
    elv_f32x8 value;
    i32x8 from;
};

ELV_INLINE void challenge4(struct best4 *b, f32x4 v, int32_t place)
{
    const i32x4 take = (v > b->value) | (v != v);
    b->value = (f32x4)((take & (i32x4)v) | (~take & (i32x4)b->value));
    b->from = (take & place) | (~take & b->from);
}

ELV_INLINE void challenge8(struct best8 *b, elv_f32x8 v, int32_t place)
{
    const i32x8 take = (v > b->value) | (v != v);
    b->value = (elv_f32x8)((take & (i32x8)v) | (~take & (i32x8)b->value));
    b->from = (take & place) | (~take & b->from);
}

/* Four windows of 2 x 2, two apart: eight values of each of two rows. */
ELV_INLINE void four_windows(const float *x, size_t w, float *y, uint8_t *from)
{
    const f32x4 a = *(const f32x4 *)x, b = *(const f32x4 *)(x + 4);
    const f32x4 c = *(const f32x4 *)(x + w), d = *(const f32x4 *)(x + w + 4);
    struct best4 best = {.value = __builtin_shufflevector(a, b, 0, 2, 4, 6)};
    challenge4(&best, __builtin_shufflevector(a, b, 1, 3, 5, 7), 1);
    challenge4(&best, __builtin_shufflevector(c, d, 0, 2, 4, 6), 2);
    challenge4(&best, __builtin_shufflevector(c, d, 1, 3, 5, 7), 3);
    *(f32x4 *)y = best.value;
    *(u8x4 *)from = __builtin_convertvector(best.from, u8x4);
}

/* Eight of them. */
ELV_INLINE void eight_windows(const float *x, size_t w, float *y, uint8_t *from)
{
    const elv_f32x8 a = *(const elv_f32x8 *)x, b = *(const elv_f32x8 *)(x + 8);
    const elv_f32x8 c = *(const elv_f32x8 *)(x + w), d = *(const elv_f32x8 *)(x + w + 8);
    struct best8 best = {.value = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)};
    challenge8(&best, __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15), 1);
    challenge8(&best, __builtin_shufflevector(c, d, 0, 2, 4, 6, 8, 10, 12, 14), 2);
    challenge8(&best, __builtin_shufflevector(c, d, 1, 3, 5, 7, 9, 11, 13, 15), 3);
    *(elv_f32x8 *)y = best.value;
    *(u8x8 *)from = __builtin_convertvector(best.from, u8x8);
}

/* Places in a channel, from a window's first, of the window's values. */
struct places {
    uint32_t at[ELV_MODEL_POOL_MAX * ELV_MODEL_POOL_MAX];
    uint32_t n;
};

static struct places places_of(const struct elv_layer *l)
{
    struct places p = {.n = l->kernel_h * l->kernel_w};
    for (uint32_t i = 0; i < p.n; i++)
        p.at[i] = i / l->kernel_w * l->in.w + i % l->kernel_w;
    return p;
}

static void one_window(const struct places *p, const float *x, float *y, uint8_t *from)
{
    float value = x[0];
    uint32_t place = 0;
    for (uint32_t i = 1; i < p->n; i++) {
        const float v = x[p->at[i]];
        const int take = (v > value) | (v != v);
        value = take ? v : value;
        place = take ? i : place;
    }
    *y = value;
    *from = (uint8_t)place;
}

static void pool_row(const struct elv_layer *l, const struct places *p, const float *x, float *y,
                     uint8_t *from)
{
    const bool pairs = p->n == 4 && l->stride == 2;
    size_t col = 0;
    for (; pairs && l->out.w - col >= 8; col += 8)
        eight_windows(x + col * 2, l->in.w, y + col, from + col);
    for (; pairs && l->out.w - col >= 4; col += 4)
        four_windows(x + col * 2, l->in.w, y + col, from + col);
    for (; col < l->out.w; col++)
        one_window(p, x + col * l->stride, y + col, from + col);
}

void ELV_SIMD(pool_forward)(const struct elv_pool *a)
{
    const struct elv_layer *l = a->l;
    const struct places p = places_of(l);
    const size_t in = (size_t)l->in.h * l->in.w, out = (size_t)l->out.h * l->out.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t first = (size_t)k * a->of.rows_cap * l->in.c;
        for (size_t i = first; i < first + (size_t)a->of.rows[k] * l->in.c; i++)
            for (size_t row = 0; row < l->out.h; row++)
                pool_row(l, &p, a->x + i * in + row * l->stride * l->in.w,
                         a->y + i * out + row * l->out.w, a->from + i * out + row * l->out.w);
    }
}

static void back_channel(const struct elv_layer *l, const struct places *p, const float *dy,
                         const uint8_t *from, float *dx)
{
    memset(dx, 0, (size_t)l->in.h * l->in.w * sizeof *dx);
    for (size_t row = 0; row < l->out.h; row++, dy += l->out.w, from += l->out.w) {
        float *first = dx + row * l->stride * l->in.w;
        for (size_t col = 0; col < l->out.w; col++)
            first[col * l->stride + p->at[from[col]]] += dy[col];
    }
}

void ELV_SIMD(pool_back)(const struct elv_pool *a)
{
    const struct elv_layer *l = a->l;
    const struct places p = places_of(l);
    const size_t in = (size_t)l->in.h * l->in.w, out = (size_t)l->out.h * l->out.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        const size_t first = (size_t)k * a->of.rows_cap * l->in.c;
        for (size_t i = first; i < first + (size_t)a->of.rows[k] * l->in.c; i++)
            back_channel(l, &p, a->dy + i * out, a->from + i * out, a->dx + i * in);
    }
}
