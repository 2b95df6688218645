/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as a matrix product over patches, and pooling.
 *
 * A patch matrix is made for a block of output rows at a time, small enough for the second cache.
 * Blocks change no result: sums go on where they stopped, in the same order. */
#include <string.h>

#include "kernels/gemm_internal.h"

enum { BLOCK = 16384 }; /* floats of a patch matrix, unless one output row needs more */

static size_t up16(size_t n) { return (n + 15) / 16 * 16; }

/* Sizes of a convolution, and its scratch cut in three. */
struct conv {
    const struct elv_layer *l;
    size_t h, w;    /* of the padded input */
    size_t patch;   /* values in a patch: channels * kernel */
    size_t block;   /* output rows per block */
    float *image;   /* [in.c][h][w] padded input, or its gradient, and 16 to spare */
    float *patches; /* [patch][block * out.w up to 16s] or [block * out.w][patch up to 16s] */
    float *edge;    /* [out.c][16] */
    size_t image_len, patches_len;
};

static struct conv sizes_of(const struct elv_layer *l)
{
    struct conv c = {
        .l = l, .h = l->in.h + 2 * (size_t)l->pad_h, .w = l->in.w + 2 * (size_t)l->pad_w};
    c.patch = l->n_weight / l->out.c;
    const size_t row = up16(c.patch) * up16(l->out.w);
    c.block = row >= BLOCK ? 1 : BLOCK / row;
    c.block = c.block > l->out.h ? l->out.h : c.block;
    c.image_len = up16(l->in.c * c.h * c.w + 16);
    c.patches_len = up16(c.patch) * up16(c.block * l->out.w) + 16;
    return c;
}

static struct conv conv_of(const struct elv_layer *l, float *scratch)
{
    struct conv c = sizes_of(l);
    c.image = scratch;
    c.patches = scratch + c.image_len;
    c.edge = c.patches + c.patches_len;
    return c;
}

size_t ELV_SIMD(conv_scratch)(const struct elv_layer *l)
{
    const struct conv c = sizes_of(l);
    return (c.image_len + c.patches_len + 16 * (size_t)l->out.c) * sizeof(float);
}

/* Copies n floats eight at a time: both sides have at least 7 floats more than n. */
ELV_INLINE void copy(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        *(elv_f32x8 *)(to + i) = *(const elv_f32x8 *)(from + i);
}

static void pad_image(const struct conv *c, const float *x)
{
    const struct elv_layer *l = c->l;
    if (l->pad_h == 0 && l->pad_w == 0) {
        memcpy(c->image, x, elv_shape_len(l->in) * sizeof *x);
        return;
    }
    memset(c->image, 0, c->image_len * sizeof *c->image);
    for (size_t i = 0; i < (size_t)l->in.c * l->in.h; i++) {
        const size_t row = i / l->in.h * c->h + i % l->in.h + l->pad_h;
        memcpy(c->image + row * c->w + l->pad_w, x + i * l->in.w, l->in.w * sizeof *x);
    }
}

/* Where in a channel of the image the patches of an output row start. */
static const float *row_start(const struct conv *c, size_t channel, size_t row)
{
    return c->image + (channel * c->h + row * c->l->stride) * c->w;
}

/* patches[i][p]: value i of the patch under output p, for output rows [from, from + n). Rows are
 * written in order, each over what the copy before it wrote too far. */
static void patches_by_value(const struct conv *c, size_t from, size_t n)
{
    const struct elv_layer *l = c->l;
    const size_t stride = up16(n * l->out.w), area = (size_t)l->kernel_h * l->kernel_w;
    for (size_t i = 0; i < c->patch; i++) {
        const size_t kh = i % area / l->kernel_w, kw = i % l->kernel_w;
        const float *x = row_start(c, i / area, from) + kh * c->w + kw;
        float *to = c->patches + i * stride;
        for (size_t row = 0; row < n; row++, to += l->out.w, x += l->stride * c->w) {
            if (l->stride == 1)
                copy(to, x, l->out.w);
            else
                for (size_t col = 0; col < l->out.w; col++)
                    to[col] = x[col * l->stride];
        }
    }
}

/* patches[p][i], likewise. */
static void patches_by_place(const struct conv *c, size_t from, size_t n)
{
    const struct elv_layer *l = c->l;
    const size_t stride = up16(c->patch);
    for (size_t p = 0; p < n * l->out.w; p++) {
        const size_t row = from + p / l->out.w, col = p % l->out.w * l->stride;
        float *to = c->patches + p * stride;
        for (size_t channel = 0; channel < l->in.c; channel++) {
            const float *x = row_start(c, channel, row) + col;
            for (size_t kh = 0; kh < l->kernel_h; kh++, to += l->kernel_w, x += c->w)
                copy(to, x, l->kernel_w);
        }
    }
}

static size_t rows_in(const struct conv *c, size_t from)
{
    return c->l->out.h - from < c->block ? c->l->out.h - from : c->block;
}

static void forward(const struct conv *c, const float *w, const float *b, float *y)
{
    const struct elv_layer *l = c->l;
    for (size_t from = 0; from < l->out.h; from += c->block) {
        const size_t n = rows_in(c, from) * l->out.w;
        patches_by_value(c, from, rows_in(c, from));
        const struct elv_gemm g = {.m = l->out.c,
                                   .n = n,
                                   .k = c->patch,
                                   .a = w,
                                   .a_row = c->patch,
                                   .a_col = 1,
                                   .b = c->patches,
                                   .b_row = up16(n),
                                   .c = y + from * l->out.w,
                                   .c_row = (size_t)l->out.h * l->out.w,
                                   .start = ELV_GEMM_BIAS,
                                   .bias = b};
        ELV_SIMD(gemm)(&g);
    }
}

void ELV_SIMD(conv_forward)(const struct elv_conv *a)
{
    const struct conv c = conv_of(a->l, a->scratch);
    const size_t n_in = elv_shape_len(a->l->in), n_out = elv_shape_len(a->l->out);
    for (uint32_t k = 0; k < a->of.n; k++) {
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            pad_image(&c, a->x + example * n_in);
            forward(&c, a->w + k * a->of.param_stride, a->b + k * a->of.param_stride,
                    a->y + example * n_out);
        }
    }
}

static void add_row(float *restrict to, size_t step, const float *restrict from, size_t n)
{
    for (size_t i = 0; step == 1 && i < n; i++)
        to[i] += from[i];
    for (size_t i = 0; step != 1 && i < n; i++)
        to[i * step] += from[i];
}

/* Adds the patches of output rows [from, from + n) to the image they were cut from. */
static void add_patches(const struct conv *c, size_t from, size_t n)
{
    const struct elv_layer *l = c->l;
    const size_t stride = up16(n * l->out.w), area = (size_t)l->kernel_h * l->kernel_w;
    for (size_t i = 0; i < c->patch; i++) {
        const size_t kh = i % area / l->kernel_w, kw = i % l->kernel_w;
        const size_t at = (i / area * c->h + from * l->stride + kh) * c->w + kw;
        for (size_t row = 0; row < n; row++)
            add_row(c->image + at + row * l->stride * c->w, l->stride,
                    c->patches + i * stride + row * l->out.w, l->out.w);
    }
}

static void unpad_image(const struct conv *c, float *dx)
{
    const struct elv_layer *l = c->l;
    for (size_t i = 0; i < (size_t)l->in.c * l->in.h; i++) {
        const size_t row = i / l->in.h * c->h + i % l->in.h + l->pad_h;
        memcpy(dx + i * l->in.w, c->image + row * c->w + l->pad_w, l->in.w * sizeof *dx);
    }
}

/* Blocks from the last to the first: then a pixel meets kernel rows from the first to the last. */
static void back_data(const struct conv *c, const float *w, const float *dy, float *dx)
{
    const struct elv_layer *l = c->l;
    memset(c->image, 0, c->image_len * sizeof *c->image);
    for (size_t block = (l->out.h + c->block - 1) / c->block; block-- > 0;) {
        const size_t from = block * c->block, n = rows_in(c, from) * l->out.w;
        const struct elv_gemm g = {.m = c->patch,
                                   .n = n,
                                   .k = l->out.c,
                                   .a = w,
                                   .a_row = 1,
                                   .a_col = c->patch,
                                   .b = dy + from * l->out.w,
                                   .b_row = (size_t)l->out.h * l->out.w,
                                   .c = c->patches,
                                   .c_row = up16(n),
                                   .edge = c->edge};
        ELV_SIMD(gemm)(&g);
        add_patches(c, from, rows_in(c, from));
    }
    unpad_image(c, dx);
}

void ELV_SIMD(conv_back_data)(const struct elv_conv *a)
{
    const struct conv c = conv_of(a->l, a->scratch);
    const size_t n_in = elv_shape_len(a->l->in), n_out = elv_shape_len(a->l->out);
    for (uint32_t k = 0; k < a->of.n; k++) {
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            back_data(&c, a->w + k * a->of.param_stride, a->dy + example * n_out,
                      a->dx + example * n_in);
        }
    }
}

static void back_weight(const struct conv *c, const float *dy, float *dw)
{
    const struct elv_layer *l = c->l;
    for (size_t from = 0; from < l->out.h; from += c->block) {
        patches_by_place(c, from, rows_in(c, from));
        const struct elv_gemm g = {.m = l->out.c,
                                   .n = c->patch,
                                   .k = rows_in(c, from) * l->out.w,
                                   .a = dy + from * l->out.w,
                                   .a_row = (size_t)l->out.h * l->out.w,
                                   .a_col = 1,
                                   .b = c->patches,
                                   .b_row = up16(c->patch),
                                   .c = dw,
                                   .c_row = c->patch,
                                   .start = ELV_GEMM_SELF};
        ELV_SIMD(gemm)(&g);
    }
}

static float sum16(const float *v, size_t n)
{
    float lane[16] = {0};
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        for (size_t j = 0; j < 16; j++)
            lane[j] += v[i + j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] += v[i + j];
    return elv_lanes16(lane);
}

void ELV_SIMD(conv_back_weight)(const struct elv_conv *a)
{
    const struct elv_layer *l = a->l;
    const struct conv c = conv_of(l, a->scratch);
    const size_t n_in = elv_shape_len(l->in), n_out = elv_shape_len(l->out);
    const size_t area = (size_t)l->out.h * l->out.w;
    for (uint32_t k = 0; k < a->of.n; k++) {
        if (a->of.rows[k] == 0)
            continue;
        float *dw = a->dw + k * a->of.grad_stride, *db = a->db + k * a->of.grad_stride;
        memset(dw, 0, l->n_weight * sizeof *dw);
        memset(db, 0, l->n_bias * sizeof *db);
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t example = (size_t)k * a->of.rows_cap + r;
            const float *dy = a->dy + example * n_out;
            pad_image(&c, a->x + example * n_in);
            back_weight(&c, dy, dw);
            for (size_t o = 0; o < l->out.c; o++)
                db[o] += sum16(dy + o * area, area);
        }
    }
}
