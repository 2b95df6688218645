/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_f16.h"

#include "common/assert.h"
#include "common/quant_internal.h"

enum { FULL = ELV_CHUNK_PAYLOAD_MAX / 2, PART = 128 };

/* Bits of binary32: 65504, the largest finite binary16; 2^-14, the smallest normal one; and what
 * lies between the exponents of both formats. Signed, because not every processor compares vectors
 * of unsigned numbers. */
#define LARGEST 0x477FE000
#define NORMAL 0x38800000
#define REBIAS (112 << 23)
#define INFINITE_16 0x7C00 /* exponents from here on mean infinity or no number */

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

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

/* By way of an array, so that the conversion is done in vectors and the order of bytes apart. */
static void write_part(uint8_t *out, const float *v, uint32_t n)
{
    uint16_t half[PART];
    for (uint32_t i = 0; i < n; i++)
        half[i] = half_of(v[i]);
    for (uint32_t i = 0; i < n; i++) {
        out[2 * i] = (uint8_t)half[i];
        out[2 * i + 1] = (uint8_t)(half[i] >> 8);
    }
}

/* Returns the largest of them without their signs. */
static int32_t read_part(float *out, const uint8_t *in, uint32_t n)
{
    uint16_t half[PART];
    int32_t largest = 0;
    for (uint32_t i = 0; i < n; i++)
        half[i] = (uint16_t)(in[2 * i] | in[2 * i + 1] << 8);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t size = half[i] & 0x7FFF;
        largest = size > largest ? size : largest;
        out[i] = of_half(half[i]);
    }
    return largest;
}

static uint32_t part_of(uint32_t n) { return n < PART ? n : PART; }

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
    for (uint32_t i = 0; i < taken; i += PART)
        write_part(out + 2 * i, v + first + i, part_of(taken - i));
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
    bool finite = true;
    for (uint32_t i = 0; i < cap; i += PART)
        finite &= read_part(out + i, in + 2 * i, part_of(cap - i)) < INFINITE_16;
    *n = cap;
    return finite ? ELV_OK : ELV_ERR_RANGE;
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
