/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_q8.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"

enum { SCALE_LEN = 4, FULL = ELV_CHUNK_PAYLOAD_MAX - SCALE_LEN };
static const float scale_min = 0x1p-100f;

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    (void)arg;
    return n / FULL + (n % FULL != 0);
}

static uint32_t first_of(uint32_t index) { return index * FULL; }

/* The largest magnitude. Without the sign bit, finite floats are in the order of their bits, and a
 * maximum of integers is something compilers make vectors of. */
static float largest(const float *v, uint32_t n)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float a;
    memcpy(&a, &most, sizeof a);
    return a;
}

/* Nearest integer, ties to even, without asking for the machine's rounding mode: |x| < 128, so the
 * cut-off part is exact. Without branches, for the sake of vectors. */
static int32_t nearest(float x)
{
    const int32_t whole = (int32_t)x; /* towards zero */
    const float rest = x - (float)whole;
    const int32_t odd = whole & 1;
    const int32_t up = (rest > 0.5f) | ((rest == 0.5f) & odd);
    const int32_t down = (rest < -0.5f) | ((rest == -0.5f) & odd);
    return whole + up - down;
}

static void quantise(const float *v, uint32_t n, float scale, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)nearest(v[i] / scale);
}

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    (void)index, (void)arg;
    ELV_ASSERT(first < n);
    if (cap <= SCALE_LEN)
        return ELV_ERR_SPACE;
    const uint32_t fit = cap - SCALE_LEN < FULL ? (uint32_t)(cap - SCALE_LEN) : FULL;
    const uint32_t taken = n - first < fit ? n - first : fit;
    float scale = largest(v + first, taken) / 127.0f;
    if (scale < scale_min)
        scale = 0.0f;

    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_f32(&w, scale);
    if (scale > 0.0f)
        quantise(v + first, taken, scale, w.at);
    else
        memset(w.at, 0, taken);
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
    .biased = true,
    .chunks_max = chunks_max,
    .encode = encode,
    .first_of = first_of,
    .open = open_payload,
    .next = next,
};
