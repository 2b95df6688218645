/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_noise.h"

#include <math.h>

#include "common/exact.h"

enum { POINTS = 32 }; /* looked at together, so that their latencies overlap */

/* Uniform in [-1, 1). */
static float signed_unit(uint32_t word)
{
    return (float)((int32_t)(word >> 8) - (1 << 23)) * 0x1p-23f;
}

/* The next `n` points of the square; those inside the unit disc go to `out`, pair by pair, and
 * their squared distances to `s`. Returns how many they are: about pi / 4 of all. */
static uint32_t inside(struct elv_rng *r, uint32_t n, float *out, float *s)
{
    uint32_t word[2 * POINTS];
    for (uint32_t i = 0; i < 2 * n; i++)
        word[i] = elv_rng_u32(r);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n; i++) { /* what is refused is overwritten by the next */
        const float u = signed_unit(word[2 * i]), v = signed_unit(word[2 * i + 1]);
        const float s2 = u * u + v * v;
        out[2 * taken] = u;
        out[2 * taken + 1] = v;
        s[taken] = s2;
        taken += s2 < 1.0f && s2 != 0.0f;
    }
    return taken;
}

/* `n` pairs, at most POINTS. */
static uint32_t pairs(struct elv_rng *r, float *out, uint32_t n)
{
    float s[POINTS];
    const uint32_t taken = inside(r, n, out, s);
    for (uint32_t i = 0; i < taken; i++) {
        const float scale = sqrtf(-2.0f * elv_ln(s[i]) / s[i]);
        out[2 * i] *= scale;
        out[2 * i + 1] *= scale;
    }
    return taken;
}

void elv_lab_normals(struct elv_rng *r, float *out, uint32_t n)
{
    uint32_t i = 0;
    while (n - i >= 2) {
        const uint32_t left = (n - i) / 2;
        i += 2 * pairs(r, out + i, left < POINTS ? left : POINTS);
    }
    while (i < n) {
        float last[2] = {0};
        i += pairs(r, last, 1);
        out[n - 1] = last[0];
    }
}
