/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_q8.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/quant_internal.h"

enum { SCALE_LEN = 4, FULL = ELV_CHUNK_PAYLOAD_MAX - SCALE_LEN, MOST = 127 };

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
    (void)index;
    ELV_ASSERT(first < n);
    if (cap <= SCALE_LEN)
        return ELV_ERR_SPACE;
    const uint32_t fit = cap - SCALE_LEN < FULL ? (uint32_t)(cap - SCALE_LEN) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    const float scale = elv_quant_scale(v + first, taken, MOST);

    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_f32(&w, scale);
    int8_t *q = (int8_t *)w.at;
    if (!(scale > 0.0f))
        memset(q, 0, taken);
    else if (arg->param < 0.0f)
        elv_quant_random(q, v + first, taken, scale, MOST, arg->seed, first);
    else
        elv_quant_nearest(q, v + first, taken, scale);
    *len = SCALE_LEN + taken;
    *count = taken;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    if (d->in.left < SCALE_LEN || d->in.left - SCALE_LEN != d->left)
        return ELV_ERR_FORMAT;
    d->scale = elv_rd_f32(&d->in);
    return d->scale >= 0.0f && d->scale <= FLT_MAX / 128.0f ? ELV_OK : ELV_ERR_RANGE;
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    const struct elv_bytes in = elv_rd_bytes(&d->in, cap);
    const float scale = d->scale;
    for (uint32_t i = 0; i < cap; i++)
        out[i] = scale * (float)((int32_t)(in.at[i] ^ 0x80u) - 128);
    *n = cap;
    return ELV_OK;
}

const struct elv_codec elv_codec_q8 = {
    .id = ELV_CODEC_Q8,
    .name = "q8",
    .option = "stochastic",
    .biased = true,
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
