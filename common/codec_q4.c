/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_q4.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/quant_internal.h"

enum { SCALE_LEN = 4, FULL = 2 * (ELV_CHUNK_PAYLOAD_MAX - SCALE_LEN), MOST = 7 };

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

/* Two's complement in four bits, the first of two in the lower half. */
static void pack(uint8_t *out, const int8_t *q, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++)
        out[i] = (uint8_t)((q[2 * i] & 15) | (q[2 * i + 1] & 15) << 4);
    if (n % 2 != 0)
        out[n / 2] = (uint8_t)(q[n - 1] & 15);
}

static void quantise(uint8_t *out, const float *v, uint32_t n, float scale, uint32_t first,
                     const struct elv_codec_arg *arg)
{
    enum { PART = 128 };
    for (uint32_t done = 0; done < n; done += PART) {
        int8_t q[PART];
        const uint32_t part = n - done < PART ? n - done : PART;
        if (arg->param < 0.0f)
            elv_quant_random(q, v + done, part, scale, MOST, arg->seed, first + done);
        else
            elv_quant_nearest(q, v + done, part, scale);
        pack(out + done / 2, q, part);
    }
}

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    (void)index;
    ELV_ASSERT(first < n);
    if (cap <= SCALE_LEN)
        return ELV_ERR_SPACE;
    const uint32_t fit = cap < ELV_CHUNK_PAYLOAD_MAX ? 2 * (uint32_t)(cap - SCALE_LEN) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    const float scale = elv_quant_scale(v + first, taken, MOST);

    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_f32(&w, scale);
    if (scale > 0.0f)
        quantise(w.at, v + first, taken, scale, first, arg);
    else
        memset(w.at, 0, (taken + 1) / 2);
    *len = SCALE_LEN + (taken + 1) / 2;
    *count = taken;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    const uint32_t n = d->left;
    if (d->in.left < SCALE_LEN || d->in.left - SCALE_LEN != n / 2 + n % 2)
        return ELV_ERR_FORMAT;
    if (n % 2 != 0 && d->in.at[d->in.left - 1] >> 4 != 0)
        return ELV_ERR_FORMAT;
    d->scale = elv_rd_f32(&d->in);
    return d->scale >= 0.0f && d->scale <= FLT_MAX / 8.0f ? ELV_OK : ELV_ERR_RANGE;
}

static float value(float scale, uint32_t q) { return scale * (float)((int32_t)(q ^ 8u) - 8); }

/* Whole bytes, but for the last value of an odd count. */
static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    const uint32_t taken = cap < d->left ? cap - cap % 2 : cap;
    const uint8_t *in = elv_rd_bytes(&d->in, (taken + 1) / 2).at;
    const float scale = d->scale;
    for (uint32_t i = 0; i < taken / 2; i++) {
        out[2 * i] = value(scale, in[i] & 15u);
        out[2 * i + 1] = value(scale, in[i] >> 4);
    }
    if (taken % 2 != 0)
        out[taken - 1] = value(scale, in[taken / 2]);
    *n = taken;
    return ELV_OK;
}

const struct elv_codec elv_codec_q4 = {
    .id = ELV_CODEC_Q4,
    .name = "q4",
    .biased = true,
    .option = "stochastic",
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
