/* SPDX-License-Identifier: Apache-2.0 */
#include "common/quant_internal.h"

#include <string.h>

#include "common/rng.h"

float elv_quant_scale(const float *v, uint32_t n, float most)
{
    /* Without the sign bit, finite floats are in the order of their bits, and a maximum of integers
     * is something compilers make vectors of. */
    int32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    float a;
    memcpy(&a, &largest, sizeof a);
    const float scale = a / most;
    return scale < ELV_QUANT_SCALE_MIN ? 0.0f : scale;
}

/* Without asking for the machine's rounding mode: |x| < 128, so the cut-off part is exact. Without
 * branches, for the sake of vectors. */
static int32_t nearest(float x)
{
    const int32_t whole = (int32_t)x; /* towards zero */
    const float rest = x - (float)whole;
    const int32_t odd = whole & 1;
    const int32_t up = (rest > 0.5f) | ((rest == 0.5f) & odd);
    const int32_t down = (rest < -0.5f) | ((rest == -0.5f) & odd);
    return whole + up - down;
}

void elv_quant_nearest(int8_t *q, const float *v, uint32_t n, float scale)
{
    for (uint32_t i = 0; i < n; i++)
        q[i] = (int8_t)nearest(v[i] / scale);
}

/* The magnitude is rounded, so the part behind the point is exact for both signs. Of that part 24
 * bits count: below, machines that flush subnormal values to zero would differ. */
static int32_t either(float x, uint32_t word, int32_t most)
{
    const float a = x < 0.0f ? -x : x;
    const int32_t whole = (int32_t)a;
    const int32_t chance = (int32_t)((a - (float)whole) * 0x1p24f);
    const int32_t up = (int32_t)(word >> 8) < chance;
    const int32_t size = whole + up < most ? whole + up : most;
    return x < 0.0f ? -size : size;
}

void elv_quant_random(int8_t *q, const float *v, uint32_t n, float scale, int32_t most,
                      uint64_t seed, uint32_t first)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_CODEC});
    elv_rng_seek(&r, first);
    while (n > 0) {
        uint32_t word[256];
        const uint32_t part = n < 256 ? n : 256;
        for (uint32_t i = 0; i < part; i++)
            word[i] = elv_rng_u32(&r);
        for (uint32_t i = 0; i < part; i++)
            q[i] = (int8_t)either(v[i] / scale, word[i], most);
        q += part;
        v += part;
        n -= part;
    }
}
