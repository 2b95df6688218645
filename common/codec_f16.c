/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_f16.h"

#include "common/assert.h"
#include "common/half.h"

enum {
    FULL = ELV_CHUNK_PAYLOAD_MAX / 2,
    PART = 128,
    EXPONENT = 0x7C00, /* all of its bits set: infinity or no number */
};

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

static void write_part(uint8_t *out, const float *v, uint32_t n)
{
    uint16_t half[PART];
    elv_halves_of(half, v, n);
    for (uint32_t i = 0; i < n; i++) {
        out[2 * i] = (uint8_t)half[i];
        out[2 * i + 1] = (uint8_t)(half[i] >> 8);
    }
}

/* Whether all of them are finite. */
static bool read_part(float *out, const uint8_t *in, uint32_t n)
{
    uint16_t half[PART];
    uint32_t n_finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        half[i] = (uint16_t)(in[2 * i] | in[2 * i + 1] << 8);
        n_finite += (half[i] & EXPONENT) != EXPONENT;
    }
    elv_halves_value(out, half, n);
    return n_finite == n;
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
        finite &= read_part(out + i, in + 2 * i, part_of(cap - i));
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
