/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_f16.h"

#include <string.h>

#include "common/assert.h"

enum { FULL = ELV_CHUNK_PAYLOAD_MAX / 2 };

/* Bits of binary32. */
#define LARGEST 0x477FE000u /* 65504, the largest finite binary16 */
#define NORMAL 0x38800000u  /* 2^-14, the smallest normal one */
#define REBIAS (112u << 23) /* between the exponents of both formats */
#define INFINITE_16 0x7C00u /* exponents from here on mean infinity or no number */

static uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Both cases are computed and one is taken, for the sake of vectors. */
static uint16_t half_of(float v)
{
    const uint32_t bits = bits_of(v), sign = bits >> 31 << 15;
    uint32_t size = bits & INT32_MAX;
    size = size < LARGEST ? size : LARGEST;
    /* Half a unit less a bit, and that bit when the part that stays is odd. */
    const uint32_t normal = (size - REBIAS + 0xFFFu + (size >> 13 & 1u)) >> 13;
    /* A binary32 next to 1/2 has steps of 2^-24, the only ones below 2^-14. */
    const uint32_t small = bits_of(of_bits(size) + 0.5f) - bits_of(0.5f);
    return (uint16_t)(sign | (size < NORMAL ? small : normal));
}

static float of_half(uint32_t half)
{
    const uint32_t sign = (half & 0x8000u) << 16, size = half & 0x7FFFu;
    const uint32_t small = bits_of((float)(int32_t)size * 0x1p-24f);
    return of_bits(sign | (size < 0x400u ? small : (size << 13) + REBIAS));
}

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    (void)index, (void)arg;
    ELV_ASSERT(first < n);
    const uint32_t fit = cap / 2 < FULL ? (uint32_t)(cap / 2) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    if (taken == 0)
        return ELV_ERR_SPACE;
    for (uint32_t i = 0; i < taken; i++) {
        const uint16_t half = half_of(v[first + i]);
        out[2 * i] = (uint8_t)half;
        out[2 * i + 1] = (uint8_t)(half >> 8);
    }
    *len = 2 * taken;
    *count = taken;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    return d->in.left % 2 != 0 || d->in.left / 2 != d->left ? ELV_ERR_FORMAT : ELV_OK;
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    const uint8_t *in = elv_rd_bytes(&d->in, 2 * (size_t)cap).at;
    uint32_t n_finite = 0;
    for (uint32_t i = 0; i < cap; i++) {
        const uint32_t half = (uint32_t)in[2 * i] | (uint32_t)in[2 * i + 1] << 8;
        n_finite += (half & INFINITE_16) != INFINITE_16;
        out[i] = of_half(half);
    }
    *n = cap;
    return n_finite == cap ? ELV_OK : ELV_ERR_RANGE;
}

const struct elv_codec elv_codec_f16 = {
    .id = ELV_CODEC_F16,
    .name = "f16",
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
