/* SPDX-License-Identifier: Apache-2.0 */
#include "common/exact.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

/* Wider intermediates (x87) would round twice and change the last bit. */
_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated as float");

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x = 2^e * m with m in [0.75, 1.5), then 2 artanh((m - 1) / (m + 1)) as a series. */
float elv_ln(float x)
{
    if (!(x <= FLT_MAX))
        return x;
    const uint32_t bits = bits_of(x);
    int32_t e = (int32_t)(bits >> 23 & 0xFF) - 127;
    float m = from_bits((bits & 0x007FFFFFu) | 0x3F800000u);
    if (m >= 1.5f) {
        m = m * 0.5f;
        e++;
    }
    const float t = (m - 1.0f) / (m + 1.0f);
    const float t2 = t * t;
    float s = 1.0f / 11.0f;
    s = s * t2 + 1.0f / 9.0f;
    s = s * t2 + 1.0f / 7.0f;
    s = s * t2 + 1.0f / 5.0f;
    s = s * t2 + 1.0f / 3.0f;
    s = s * t2 * t + t;
    return (float)e * 0.69314718f + 2.0f * s;
}

/* x = n ln 2 + r with |r| <= ln 2 / 2, then 2^n times the series of e^r. ln 2 is split in two so
 * that n times its upper part is exact (Cody and Waite). */
float elv_exp(float x)
{
    if (x != x)
        return x;
    if (x < -87.0f)
        return 0.0f;
    const float n = elv_rint(x * 1.44269504f);
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float s = 1.0f / 720.0f;
    s = s * r + 1.0f / 120.0f;
    s = s * r + 1.0f / 24.0f;
    s = s * r + 1.0f / 6.0f;
    s = s * r + 0.5f;
    s = s * r * r + r + 1.0f;
    return s * from_bits((uint32_t)((int32_t)n + 127) << 23);
}

float elv_rint(float x)
{
    const float sign = x < 0.0f ? -0x1p23f : 0x1p23f;
    if (!(x > -0x1p23f && x < 0x1p23f))
        return x; /* no fraction left */
    return (x + sign) - sign;
}
