/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_f32.h"

#include <float.h>

#include "common/assert.h"

enum { FULL = ELV_CHUNK_PAYLOAD_MAX / 4 };

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
    const uint32_t fit = cap / 4 < FULL ? (uint32_t)(cap / 4) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    if (taken == 0)
        return ELV_ERR_SPACE;
    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_f32s(&w, v + first, taken);
    *len = w.need;
    *count = taken;
    return w.err;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    return d->in.left % 4 != 0 || d->in.left / 4 != d->left ? ELV_ERR_FORMAT : ELV_OK;
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    uint32_t n_finite = 0;
    elv_rd_f32s(&d->in, out, cap);
    for (uint32_t i = 0; i < cap; i++)
        n_finite += out[i] >= -FLT_MAX && out[i] <= FLT_MAX;
    *n = cap;
    return n_finite == cap ? ELV_OK : ELV_ERR_RANGE;
}

const struct elv_codec elv_codec_f32 = {
    .id = ELV_CODEC_F32,
    .name = "f32",
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
