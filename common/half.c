/* SPDX-License-Identifier: Apache-2.0 */
#include "common/half.h"

#include <stdbool.h>

#include "common/quant_internal.h"

/* Bits of binary32: 65504, the largest finite binary16; 2^-14, the smallest normal one; and what
 * lies between the exponents of both formats. Signed, because not every processor compares vectors
 * of unsigned numbers. */
#define LARGEST 0x477FE000
#define NORMAL 0x38800000
#define REBIAS (112 << 23)

/* `a` or `b`, both of which are computed: compilers make vectors of that, and not of a branch that
 * leaves an operation with floats out. */
static int32_t pick(bool first, int32_t a, int32_t b)
{
    const int32_t mask = -(int32_t)first;
    return (a & mask) | (b & ~mask);
}

static uint16_t half_of(float v)
{
    const int32_t bits = elv_bits_of_f32(v), sign = pick(bits < 0, 0x8000, 0);
    const int32_t all = bits & INT32_MAX, size = all < LARGEST ? all : LARGEST;
    /* Half a unit less a bit, and that bit when the part that stays is odd. */
    const int32_t normal = (size - REBIAS + 0xFFF + (size >> 13 & 1)) >> 13;
    /* A binary32 next to 1/2 has steps of 2^-24, the only ones below 2^-14. */
    const int32_t small = elv_bits_of_f32(elv_f32_of_bits(size) + 0.5f) - elv_bits_of_f32(0.5f);
    return (uint16_t)(sign | pick(size < NORMAL, small, normal));
}

static float of_half(int32_t half)
{
    const int32_t size = half & 0x7FFF;
    const int32_t small = elv_bits_of_f32((float)size * 0x1p-24f), normal = (size << 13) + REBIAS;
    const int32_t sign = pick(half >= 0x8000, INT32_MIN, 0);
    return elv_f32_of_bits(sign | pick(size < 0x400, small, normal));
}

uint16_t elv_half_of(float v) { return half_of(v); }

float elv_half_value(uint16_t h) { return of_half(h); }

void elv_halves_of(uint16_t *h, const float *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        h[i] = half_of(v[i]);
}

void elv_halves_value(float *v, const uint16_t *h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = of_half(h[i]);
}
