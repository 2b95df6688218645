/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_sign.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/quant_internal.h"

enum { SIZE_LEN = 4, FULL = 8 * (ELV_CHUNK_PAYLOAD_MAX - SIZE_LEN), LANES = 8 };

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

/* A magnitude as it enters the mean: 0 when it is so small that some machines make it 0. */
static double size_of(float v)
{
    const float size = elv_f32_of_bits(elv_bits_of_f32(v) & INT32_MAX);
    return (double)(size < ELV_QUANT_SCALE_MIN ? 0.0f : size);
}

/* Value i is added in lane i % LANES, and the lanes in order: one result, however wide the machine.
 */
static float mean_size(const float *v, uint32_t n)
{
    double lane[LANES] = {0}, sum = 0;
    uint32_t i = 0;
    for (; n - i >= LANES; i += LANES)
        for (uint32_t k = 0; k < LANES; k++)
            lane[k] += size_of(v[i + k]);
    for (uint32_t k = 0; i + k < n; k++)
        lane[k] += size_of(v[i + k]);
    for (uint32_t k = 0; k < LANES; k++)
        sum += lane[k];
    const float mean = (float)(sum / (double)n);
    return mean < ELV_QUANT_SCALE_MIN ? 0.0f : mean;
}

static uint8_t eight(const float *v, uint32_t n)
{
    uint32_t byte = 0;
    for (uint32_t k = 0; k < n; k++)
        byte |= (uint32_t)(elv_bits_of_f32(v[k]) < 0) << k;
    return (uint8_t)byte;
}

static void pack(uint8_t *out, const float *v, uint32_t n)
{
    for (uint32_t i = 0; i < n / 8; i++)
        out[i] = eight(v + 8 * i, 8);
    if (n % 8 != 0)
        out[n / 8] = eight(v + n / 8 * 8, n % 8);
}

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    (void)index, (void)arg;
    ELV_ASSERT(first < n);
    if (cap <= SIZE_LEN)
        return ELV_ERR_SPACE;
    const uint32_t fit = cap < ELV_CHUNK_PAYLOAD_MAX ? 8 * (uint32_t)(cap - SIZE_LEN) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    const float size = mean_size(v + first, taken);

    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_f32(&w, size);
    if (size > 0.0f)
        pack(w.at, v + first, taken);
    else
        memset(w.at, 0, (taken + 7) / 8);
    *len = SIZE_LEN + (taken + 7) / 8;
    *count = taken;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    const uint32_t n = d->left;
    if (d->in.left < SIZE_LEN || d->in.left - SIZE_LEN != n / 8 + (n % 8 != 0))
        return ELV_ERR_FORMAT;
    if (n % 8 != 0 && d->in.at[d->in.left - 1] >> n % 8 != 0)
        return ELV_ERR_FORMAT;
    d->scale = elv_rd_f32(&d->in);
    return d->scale >= 0.0f && d->scale <= FLT_MAX ? ELV_OK : ELV_ERR_RANGE;
}

static float value(float size, uint32_t byte, uint32_t k)
{
    return (byte & 1u << k) != 0 ? -size : size;
}

/* Whole bytes, but for the last values. */
static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    const uint32_t taken = cap < d->left ? cap - cap % 8 : cap;
    const uint8_t *in = elv_rd_bytes(&d->in, (taken + 7) / 8).at;
    const float size = d->scale;
    for (uint32_t i = 0; i < taken / 8; i++)
        for (uint32_t k = 0; k < 8; k++)
            out[8 * i + k] = value(size, in[i], k);
    for (uint32_t k = 0; k < taken % 8; k++)
        out[taken / 8 * 8 + k] = value(size, in[taken / 8], k);
    *n = taken;
    return ELV_OK;
}

const struct elv_codec elv_codec_sign = {
    .id = ELV_CODEC_SIGN,
    .name = "sign",
    .biased = true,
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
