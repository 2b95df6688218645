/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/kernels.h - the arithmetic, behind one table per variant.
 *
 * `ref` is the definition: plain C in a fixed order, the same bits on every machine. The `simd`
 * variants are one source compiled per instruction set.
 *
 * Training operations take a *cohort*: the same layer for several clients ("members") that each
 * have weights of their own. Arguments are structs with names; a layer's three operations share
 * one, and each comment says which fields are read and written.
 *
 * How results may differ from `ref`:
 *  - exact: the same bits in every variant.
 *  - fused: each output element starts where `ref` starts and takes its products in the same order,
 *    but a product and its addition are rounded once (fused multiply-add) where the instruction set
 *    has that. x86-64-v3, x86-64-v4 and NEON therefore agree to the last bit, for any vector width,
 *    batch and cohort. Against `ref`, n products differ by at most n * 2^-23 * (sum of |product|)
 *    per element; x86-64-v2 cannot fuse and gives the bits of `ref`.
 *
 * Pointers live in the table's memory: ordinary memory for all tables here, device memory for an
 * accelerator's. Operations queue and cannot fail; results, those through pointers too, are there
 * after `sync`, which reports the first failure since the last one. Pointers need their type's
 * alignment only, and inputs and outputs must not overlap, unless said. Operations of one table may
 * run on several threads as long as they write to different memory. */
#ifndef ELV_KERNELS_KERNELS_H
#define ELV_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "../common/err.h"
#include "../common/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Members and rows. A member's activations start at k * rows_cap * (values per row), its parameters
 * at k * param_stride, its gradients at k * grad_stride. */
struct elv_cohort {
    uint32_t n;           /* members, at least 1 */
    uint32_t rows_cap;    /* rows (examples) each member's activations have room for */
    const uint32_t *rows; /* [n] rows in use; a member with 0 is skipped, its outputs stay */
    size_t param_stride;
    size_t grad_stride;
};

/* A dense layer: y = w x + b for each row. */
struct elv_dense {
    struct elv_cohort of;
    uint32_t n_in, n_out;
    const float *x;  /* [n][rows_cap][n_in] */
    const float *w;  /* [n_out][n_in] per member */
    const float *b;  /* [n_out] per member */
    float *y;        /* [n][rows_cap][n_out] */
    const float *dy; /* like y: gradient of the loss with respect to y */
    float *dx;       /* like x */
    float *dw, *db;  /* like w, b */
    void *scratch;   /* `dense_scratch` bytes, aligned to 64 */
};

/* A convolution over channel-major images with zeros around. As everywhere in machine learning the
 * kernel is not mirrored. `l` gives in, out, kernel, stride and pad. */
struct elv_conv {
    struct elv_cohort of;
    const struct elv_layer *l;
    const float *x;  /* [n][rows_cap][in.c][in.h][in.w] */
    const float *w;  /* [out.c][in.c][kernel_h][kernel_w] per member */
    const float *b;  /* [out.c] per member */
    float *y;        /* [n][rows_cap][out.c][out.h][out.w] */
    const float *dy; /* like y */
    float *dx;       /* like x */
    float *dw, *db;  /* like w, b */
    void *scratch;   /* `conv_scratch` bytes, aligned to 64 */
};

struct elv_pool {
    struct elv_cohort of;
    const struct elv_layer *l;
    const float *x;  /* [n][rows_cap][in.c][in.h][in.w] */
    float *y;        /* [n][rows_cap][out.c][out.h][out.w] */
    uint8_t *from;   /* like y: the place in its window, row-major, of the value that won */
    const float *dy; /* like y */
    float *dx;       /* like x */
};

struct elv_relu {
    struct elv_cohort of;
    uint32_t n; /* values per row */
    float *y;   /* [n][rows_cap][n], in place */
    float *dy;  /* like y, in place */
};

/* Softmax, then cross-entropy against a label. */
struct elv_xent {
    struct elv_cohort of;
    uint32_t n_classes;
    const float *z;        /* [n][rows_cap][n_classes] logits */
    const uint32_t *label; /* [n][rows_cap], each below n_classes */
    float *dz;             /* like z: gradient of the member's mean loss; NULL: not wanted */
    uint32_t *guess;       /* [n][rows_cap] class of the largest logit, the first of equals */
    double *loss;          /* [n] sum over rows; not finite when the logits are not */
    uint32_t *correct;     /* [n] rows whose guess is the label */
};

/* One step of gradient descent: g' = g + decay * w; v = momentum * v + g'; w = w - rate * v, as
 * PyTorch's SGD with dampening 0. With a `home`, g' has pull * (w - home) added to it: the proximal
 * term of Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated Optimization in Heterogeneous
 * Networks", MLSys 2020. */
struct elv_sgd {
    struct elv_cohort of;
    uint32_t n;
    float *w;       /* [n] per member */
    const float *g; /* [n] per member, grad_stride apart */
    float *v;       /* [n] per member, v_stride apart; NULL: momentum is 0 */
    size_t v_stride;
    float rate, momentum, decay;
    const float *home; /* [n] per member, home_stride apart; NULL: no pull */
    size_t home_stride;
    float pull;
};

enum elv_view_kind { ELV_VIEW_F32 = 1, ELV_VIEW_Q8 = 2 };

/* Part of one update as its chunk holds it: values of coordinates [first, first + n). Little-endian
 * f32, or int8 times `scale` (one rounding). `values` needs no alignment. */
struct elv_view {
    enum elv_view_kind kind;
    const void *values;
    float scale; /* Q8; finite */
    uint32_t first, n;
    uint32_t weight; /* fold only; below 2^31 */
};

struct elv_kernels {
    const char *name;
    enum elv_err (*sync)(void);

    /* Bytes of scratch for the three operations of a layer; one block serves many layers. */
    size_t (*dense_scratch)(uint32_t rows_cap, uint32_t n_in, uint32_t n_out);
    size_t (*conv_scratch)(const struct elv_layer *l);

    /* y: b, then x * w over n_in in order. Fused. Reads x, w, b. */
    void (*dense_forward)(const struct elv_dense *a);
    /* dx: 0, then dy * w over n_out in order. Fused. Reads dy, w. */
    void (*dense_back_data)(const struct elv_dense *a);
    /* dw: 0, then dy * x over the rows in order; db: 0, then dy over the rows. Fused. Reads dy, x.
     */
    void (*dense_back_weight)(const struct elv_dense *a);

    /* y: b, then w * x over channel, kernel row, kernel column. Fused. Reads x, w, b. */
    void (*conv_forward)(const struct elv_conv *a);
    /* dx: 0, then for each kernel row and column in order one number is added: 0, then w * dy over
     * the output channels in order. Fused. Reads dy, w. */
    void (*conv_back_data)(const struct elv_conv *a);
    /* dw: 0, then dy * x over example, output row, output column. Fused. db: 0, then for each
     * example the sum of its dy in 16 lanes (value i to lane i mod 16, each from 0), joined by
     * `elv_lanes16`. Reads dy, x. */
    void (*conv_back_weight)(const struct elv_conv *a);

    /* Each window's first value, unless a later one is greater or not a number: like
     * `relu_forward`, this lets a NaN through to the loss, where it is noticed. Exact. Reads x,
     * writes y, from. */
    void (*pool_forward)(const struct elv_pool *a);
    /* dx: 0, then each dy in order is added to where its value came from. Exact. */
    void (*pool_back)(const struct elv_pool *a);

    void (*relu_forward)(const struct elv_relu *a); /* y = y < 0 ? 0 : y. Exact */
    void (*relu_back)(const struct elv_relu *a);    /* dy = y > 0 ? dy : 0. Exact */

    void (*xent)(const struct elv_xent *a); /* exact */

    void (*sgd)(const struct elv_sgd *a); /* fused, each product with its sum */

    /* out[i] = a[i] - b[i], for i < n. Exact. `out` may be `a` or `b`. */
    void (*sub)(float *out, const float *a, const float *b, size_t n);

    /* *out = sum of v[i]^2 in double: value i goes to lane i mod 16, each lane from 0 in order,
     * then `elv_lanes16_f64`. The square of a float is exact in double, fused or not, so this is
     * exact in every variant. */
    void (*norm2)(double *out, const float *v, size_t n);

    /* *scale = max |v[i]| / 127, or 0 when that is below 2^-100, and q[i] = v[i] / *scale to the
     * nearest integer, ties to even; all 0 when *scale is. What codec q8 writes. `v` must be
     * finite. Exact. */
    void (*quantise_q8)(int8_t *q, float *scale, const float *v, size_t n);

    /* out[first + i] += value i, for each view in turn. A q8 value is rounded as a product, then
     * the sum is: never fused, because both ends of a link must get the same model. Exact. */
    void (*apply)(float *out, const struct elv_view *views, size_t n_views);

    /* acc[first + i] += weight * rint(value i * 2^shift), for each view; rint takes ties to even.
     * Values must have passed `check` with a bound of at most 2^(30 - shift); shift is -96 to 126.
     * Exact: any order and any grouping of the same views gives the same bytes, as long as the sums
     * stay within int64. */
    void (*fold)(int64_t *acc, const struct elv_view *views, size_t n_views, int shift);

    /* *bad = how many values of the view are not finite, or larger than `bound` in magnitude. */
    void (*check)(uint32_t *bad, const struct elv_view *view, float bound);

    /* out[i] = (float)((double)acc[i] * gain): the mean of what was folded. Exact. */
    void (*unfold)(float *out, const int64_t *acc, double gain, size_t n);
};

/* Sixteen lanes become one number: halves are added to halves, 8, 4, 2, then 1 apart. */
float elv_lanes16(const float lane[16]);
double elv_lanes16_f64(const double lane[16]);

/* The built-in tables. `at` is NULL for one this computer cannot run; the reference is the last one
 * and always there; `best` is never NULL. Tests walk `at`, so no variant is built untested. */
size_t elv_kernels_count(void);
const struct elv_kernels *elv_kernels_at(size_t i);
const struct elv_kernels *elv_kernels_best(void);

/* "ref", "x86-64-v2", "x86-64-v3", "x86-64-v4", "neon", or "simd" for the best of the others. NULL:
 * not built in, or this computer cannot run it. */
const struct elv_kernels *elv_kernels_by_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
