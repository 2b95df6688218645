/* SPDX-License-Identifier: Apache-2.0 */
/* Differences, norms, quantisation and the server's sums: the bits of the reference, faster.
 *
 * Compiled without contraction. Loops are plain; the compiler makes the vectors. */
#include <stdbool.h>

#include "kernels/simd_internal.h"

/* A float at any address. These machines are little-endian, as the views are. */
typedef float loose __attribute__((aligned(1), may_alias));

void ELV_SIMD(sub)(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] - b[i];
}

void ELV_SIMD(norm2)(double *out, const float *v, size_t n)
{
    double lane[16] = {0};
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        for (size_t j = 0; j < 16; j++)
            lane[j] += (double)v[i + j] * (double)v[i + j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] += (double)v[i + j] * (double)v[i + j];
    *out = elv_lanes16_f64(lane);
}

ELV_INLINE float magnitude(float v) { return v < 0.0f ? -v : v; }

static float largest(const float *v, size_t n)
{
    float lane[16] = {0}; /* the largest is the same in any order */
    size_t i = 0;
    for (; n - i >= 16; i += 16)
        for (size_t j = 0; j < 16; j++)
            lane[j] = magnitude(v[i + j]) > lane[j] ? magnitude(v[i + j]) : lane[j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] = magnitude(v[i + j]) > lane[j] ? magnitude(v[i + j]) : lane[j];
    float most = lane[0];
    for (size_t j = 1; j < 16; j++)
        most = lane[j] > most ? lane[j] : most;
    return most;
}

void ELV_SIMD(quantise_q8)(int8_t *restrict q, float *scale, const float *restrict v, size_t n)
{
    const float most = largest(v, n);
    const float unit = most / 127.0f < 0x1p-100f ? 0.0f : most / 127.0f;
    *scale = unit;
    const float divisor = unit > 0.0f ? unit : 1.0f; /* then every value is below one half */
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)(int32_t)__builtin_rintf(v[i] / divisor);
}

static void apply_f32(float *restrict out, const loose *restrict v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += v[i];
}

static void apply_q8(float *restrict out, const int8_t *restrict q, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += scale * (float)q[i];
}

void ELV_SIMD(apply)(float *out, const struct elv_view *views, size_t n_views)
{
    for (size_t k = 0; k < n_views; k++) {
        if (views[k].kind == ELV_VIEW_Q8)
            apply_q8(out + views[k].first, views[k].values, views[k].scale, views[k].n);
        else
            apply_f32(out + views[k].first, views[k].values, views[k].n);
    }
}

ELV_INLINE int64_t weighed(float value, float unit, int32_t weight)
{
    return (int64_t)(int32_t)__builtin_rintf(value * unit) * weight;
}

static void fold_f32(int64_t *restrict acc, const loose *restrict v, int32_t weight, float unit,
                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += weighed(v[i], unit, weight);
}

static void fold_q8(int64_t *restrict acc, const int8_t *restrict q, float scale, int32_t weight,
                    float unit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += weighed(scale * (float)q[i], unit, weight);
}

/* Four at once: the sums are read and written once, and four streams come from memory together. */
static void fold4_f32(int64_t *restrict acc, const struct elv_view *v, size_t at, float unit,
                      size_t n)
{
    const loose *restrict v0 = (const loose *)v[0].values + at;
    const loose *restrict v1 = (const loose *)v[1].values + at;
    const loose *restrict v2 = (const loose *)v[2].values + at;
    const loose *restrict v3 = (const loose *)v[3].values + at;
    const int32_t w0 = (int32_t)v[0].weight, w1 = (int32_t)v[1].weight;
    const int32_t w2 = (int32_t)v[2].weight, w3 = (int32_t)v[3].weight;
    for (size_t i = 0; i < n; i++)
        acc[i] += weighed(v0[i], unit, w0) + weighed(v1[i], unit, w1) + weighed(v2[i], unit, w2) +
                  weighed(v3[i], unit, w3);
}

static void fold4_q8(int64_t *restrict acc, const struct elv_view *v, size_t at, float unit,
                     size_t n)
{
    const int8_t *restrict q0 = (const int8_t *)v[0].values + at;
    const int8_t *restrict q1 = (const int8_t *)v[1].values + at;
    const int8_t *restrict q2 = (const int8_t *)v[2].values + at;
    const int8_t *restrict q3 = (const int8_t *)v[3].values + at;
    const float s0 = v[0].scale, s1 = v[1].scale, s2 = v[2].scale, s3 = v[3].scale;
    const int32_t w0 = (int32_t)v[0].weight, w1 = (int32_t)v[1].weight;
    const int32_t w2 = (int32_t)v[2].weight, w3 = (int32_t)v[3].weight;
    for (size_t i = 0; i < n; i++)
        acc[i] += weighed(s0 * (float)q0[i], unit, w0) + weighed(s1 * (float)q1[i], unit, w1) +
                  weighed(s2 * (float)q2[i], unit, w2) + weighed(s3 * (float)q3[i], unit, w3);
}

static void fold_part(int64_t *acc, const struct elv_view *v, size_t at, size_t n, float unit)
{
    if (v->kind == ELV_VIEW_Q8)
        fold_q8(acc, (const int8_t *)v->values + at, v->scale, (int32_t)v->weight, unit, n);
    else
        fold_f32(acc, (const loose *)v->values + at, (int32_t)v->weight, unit, n);
}

/* Views of the same coordinates [at, at + n) of their ranges. */
static void fold_block(int64_t *acc, const struct elv_view *v, size_t n_views, size_t at, size_t n,
                       float unit)
{
    for (size_t k = 0; k < n_views;) {
        const enum elv_view_kind kind = v[k].kind;
        const bool four = n_views - k >= 4 && v[k + 1].kind == kind && v[k + 2].kind == kind &&
                          v[k + 3].kind == kind;
        if (four && kind == ELV_VIEW_Q8)
            fold4_q8(acc, v + k, at, unit, n);
        else if (four)
            fold4_f32(acc, v + k, at, unit, n);
        else
            fold_part(acc, v + k, at, n, unit);
        k += four ? 4 : 1;
    }
}

/* Updates of the same coordinates meet the sums while these are in the second cache. Shorter blocks
 * would fit the first, but then the streams end before the processor has seen where they go: 1,024
 * sums at a time read 14 GB/s of updates where 16,384 read 18. */
enum { BLOCK = 16384 };

void ELV_SIMD(fold)(int64_t *acc, const struct elv_view *views, size_t n_views, int shift)
{
    const float unit = elv_power_of_two(shift);
    for (size_t from = 0, to; from < n_views; from = to) {
        const uint32_t first = views[from].first, n = views[from].n;
        to = from + 1;
        while (to < n_views && views[to].first == first && views[to].n == n)
            to++;
        for (uint32_t at = 0; at < n; at += BLOCK) {
            const size_t some = n - at < BLOCK ? n - at : BLOCK;
            fold_block(acc + first + at, views + from, to - from, at, some, unit);
        }
    }
}

static uint32_t count_f32(const loose *v, float bound, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += magnitude(v[i]) <= bound ? 0 : 1;
    return bad;
}

static uint32_t count_q8(const int8_t *q, float scale, float bound, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += magnitude(scale * (float)q[i]) <= bound ? 0 : 1;
    return bad;
}

void ELV_SIMD(check)(uint32_t *bad, const struct elv_view *view, float bound)
{
    *bad = view->kind == ELV_VIEW_Q8 ? count_q8(view->values, view->scale, bound, view->n)
                                     : count_f32(view->values, bound, view->n);
}

void ELV_SIMD(unfold)(float *restrict out, const int64_t *restrict acc, double gain, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)acc[i] * gain);
}
