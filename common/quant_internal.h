/* SPDX-License-Identifier: Apache-2.0 */
/* common/quant_internal.h - values as whole multiples of one scale, for the codecs that do that.
 *
 * The same bytes on every machine: each operation is a single IEEE one, and no value involved is
 * subnormal, because a scale below 2^-100 counts as none. */
#ifndef ELV_COMMON_QUANT_INTERNAL_H
#define ELV_COMMON_QUANT_INTERNAL_H

#include <stdint.h>
#include <string.h>

#define ELV_QUANT_SCALE_MIN 0x1p-100f

/* As the bits of binary32, negative when the sign is. */
static inline int32_t elv_bits_of_f32(float v)
{
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float elv_f32_of_bits(int32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The largest magnitude of `v` f32 [n], finite, over `most`, rounded once; 0 when that is below
 * ELV_QUANT_SCALE_MIN. */
float elv_quant_scale(const float *v, uint32_t n, float most);

/* q[i] = v[i] / scale, rounded once to binary32, then to the nearest integer, ties to even. The
 * scale is one of `elv_quant_scale` with `most` up to 127. */
void elv_quant_nearest(int8_t *q, const float *v, uint32_t n, float scale);

/* The same with the second rounding at random: away from zero with a chance of what is behind the
 * point, so that the expected value is the value. No magnitude passes `most`. Coordinate first + i
 * uses word first + i of the stream ELV_RNG_CODEC of `seed`. */
void elv_quant_random(int8_t *q, const float *v, uint32_t n, float scale, int32_t most,
                      uint64_t seed, uint32_t first);

#endif
