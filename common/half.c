/* SPDX-License-Identifier: Apache-2.0 */
#include "common/half.h"

#include <string.h>

enum { SIGN = 0x8000, LARGEST = 0x7BFF };

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* u / 2^shift to the nearest, ties to even; shift 1 to 31. */
static uint32_t rounded(uint32_t u, uint32_t shift)
{
    const uint32_t half = (uint32_t)1 << (shift - 1);
    const uint32_t rest = u & (2 * half - 1);
    const uint32_t whole = u >> shift;
    return whole + (rest > half || (rest == half && (whole & 1)));
}

uint16_t elv_half_of(float v)
{
    const uint32_t u = bits_of(v), size = u & 0x7FFFFFFF;
    const uint16_t sign = (uint16_t)(u >> 16 & SIGN);
    const uint32_t exponent = size >> 23;
    uint32_t h = 0;
    if (exponent >= 127 + 16)
        h = LARGEST;
    else if (exponent >= 127 - 14) /* the exponents differ by 112; a carry out of the digits fits */
        h = rounded(size - ((uint32_t)112 << 23), 13);
    else if (exponent >= 127 - 25) /* subnormal: in units of 2^-24 */
        h = rounded((size & 0x7FFFFF) | 0x800000, 126 - exponent);
    return (uint16_t)(sign | (h > LARGEST ? LARGEST : h));
}

float elv_half_value(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & SIGN) << 16, size = h & 0x7FFF;
    if (size >= 0x400)
        return float_of(sign | ((size << 13) + ((uint32_t)112 << 23)));
    const float v = (float)size * 0x1p-24f;
    return sign ? -v : v;
}
