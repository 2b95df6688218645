/* SPDX-License-Identifier: Apache-2.0 */
#include "common/quant_internal.h"

#include "common/rng.h"

float elv_quant_scale(const float *v, uint32_t n, float most)
{
    /* Without the sign bit, finite floats are in the order of their bits, and a maximum of integers
     * is something compilers make vectors of. */
    int32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t bits = elv_bits_of_f32(v[i]) & INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    const float scale = elv_f32_of_bits(largest) / most;
    return scale < ELV_QUANT_SCALE_MIN ? 0.0f : scale;
}

/* A binary32 next to 3 * 2^22 has steps of 1, so the addition rounds as asked and leaves the
 * integer in the lowest bits: |x| < 128. No conversion, no branch, and vectors on any processor. */
static int8_t nearest(float x) { return (int8_t)(uint8_t)elv_bits_of_f32(x + 0x1.8p23f); }

void elv_quant_nearest(int8_t *q, const float *v, uint32_t n, float scale)
{
    for (uint32_t i = 0; i < n; i++)
        q[i] = nearest(v[i] / scale);
}

/* The magnitude is rounded, so the part behind the point is exact for both signs. Of that part 24
 * bits count: below, machines that flush subnormal values to zero would differ. No branch depends
 * on the dice. */
static int8_t either(float x, uint32_t word, int32_t most)
{
    const float a = elv_f32_of_bits(elv_bits_of_f32(x) & INT32_MAX);
    const int32_t whole = (int32_t)a, minus = -(int32_t)(elv_bits_of_f32(x) < 0);
    const int32_t chance = (int32_t)((a - (float)whole) * 0x1p24f);
    const int32_t up = whole + ((int32_t)(word >> 8) < chance);
    const int32_t size = up < most ? up : most;
    return (int8_t)((size ^ minus) - minus);
}

void elv_quant_random(int8_t *q, const float *v, uint32_t n, float scale, int32_t most,
                      uint64_t seed, uint32_t first)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_CODEC});
    elv_rng_seek(&r, first);
    while (n > 0) {
        uint32_t word[128];
        const uint32_t part = n < 128 ? n : 128;
        elv_rng_words(&r, word, part);
        for (uint32_t i = 0; i < part; i++)
            q[i] = either(v[i] / scale, word[i], most);
        q += part;
        v += part;
        n -= part;
    }
}
