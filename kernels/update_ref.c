/* SPDX-License-Identifier: Apache-2.0 */
/* Differences, norms, quantisation and the server's sums. */
#include <string.h>

#include "common/exact.h"
#include "kernels/ops_internal.h"

enum elv_err elv_nothing_pending(void) { return ELV_OK; }

float elv_power_of_two(int exponent)
{
    const uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

float elv_lanes16(const float lane[16])
{
    float half[8];
    for (unsigned i = 0; i < 8; i++)
        half[i] = lane[i] + lane[i + 8];
    for (unsigned apart = 4; apart > 0; apart /= 2)
        for (unsigned i = 0; i < apart; i++)
            half[i] = half[i] + half[i + apart];
    return half[0];
}

double elv_lanes16_f64(const double lane[16])
{
    double half[8];
    for (unsigned i = 0; i < 8; i++)
        half[i] = lane[i] + lane[i + 8];
    for (unsigned apart = 4; apart > 0; apart /= 2)
        for (unsigned i = 0; i < apart; i++)
            half[i] = half[i] + half[i + apart];
    return half[0];
}

void elv_sub_ref(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] - b[i];
}

void elv_norm2_ref(double *out, const float *v, size_t n)
{
    double lane[16] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % 16] += (double)v[i] * (double)v[i];
    *out = elv_lanes16_f64(lane);
}

static float magnitude(float v) { return v < 0.0f ? -v : v; }

void elv_quantise_q8_ref(int8_t *q, float *scale, const float *v, size_t n)
{
    float most = 0.0f;
    for (size_t i = 0; i < n; i++)
        most = magnitude(v[i]) > most ? magnitude(v[i]) : most;
    const float unit = most / 127.0f < 0x1p-100f ? 0.0f : most / 127.0f;
    for (size_t i = 0; i < n; i++)
        q[i] = unit > 0.0f ? (int8_t)elv_rint(v[i] / unit) : 0;
    *scale = unit;
}

static float value(const struct elv_view *view, uint32_t i)
{
    if (view->kind == ELV_VIEW_Q8)
        return view->scale * (float)((const int8_t *)view->values)[i];
    const uint8_t *p = (const uint8_t *)view->values + 4 * (size_t)i;
    const uint32_t bits =
        (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void elv_apply_ref(float *out, const struct elv_view *views, size_t n_views)
{
    for (size_t k = 0; k < n_views; k++)
        for (uint32_t i = 0; i < views[k].n; i++)
            out[views[k].first + i] += value(&views[k], i);
}

void elv_fold_ref(int64_t *acc, const struct elv_view *views, size_t n_views, int shift)
{
    const float unit = elv_power_of_two(shift);
    for (size_t k = 0; k < n_views; k++)
        for (uint32_t i = 0; i < views[k].n; i++)
            acc[views[k].first + i] +=
                (int64_t)views[k].weight * (int32_t)elv_rint(value(&views[k], i) * unit);
}

void elv_check_ref(uint32_t *bad, const struct elv_view *view, float bound)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < view->n; i++)
        n += !(magnitude(value(view, i)) <= bound); /* a NaN is not below anything */
    *bad = n;
}

void elv_unfold_ref(float *out, const int64_t *acc, double gain, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)acc[i] * gain);
}
