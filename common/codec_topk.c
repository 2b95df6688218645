/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_topk.h"

#include <float.h>

#include "common/exact.h"
#include "common/sparse.h"

enum { VALUE_BITS = 8 };

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    return elv_sparse_chunks_max(n, arg->param, VALUE_BITS);
}

/* The scale was cut, so a quotient may pass 127, but it rounds to that. */
static uint32_t quotient(float v, float scale)
{
    return scale > 0.0f ? (uint8_t)(int32_t)elv_rint(v / scale) : 0;
}

static float product(uint32_t q, float scale)
{
    return scale * (float)((int32_t)(q ^ 0x80u) - 128);
}

static enum elv_err encode(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count)
{
    (void)index;
    const struct elv_sparse_part part = {arg->plan, v, n, first, VALUE_BITS};
    struct elv_sparse s;
    const enum elv_err err = elv_sparse_fill(&s, &part, cap);
    if (err != ELV_OK)
        return err;
    *len =
        elv_sparse_write(&s, &part, elv_sparse_magnitude(s.largest / 127.0f), quotient, out, cap);
    *count = s.count;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    return elv_sparse_open(d, VALUE_BITS, FLT_MAX / 128.0f);
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    *n = cap;
    return elv_sparse_next(d, VALUE_BITS, product, out, cap);
}

const struct elv_codec elv_codec_topk = {
    .id = ELV_CODEC_TOPK,
    .name = "topk",
    .biased = true,
    .tight = true,
    .param_min = ELV_SPARSE_FRACTION_MIN,
    .param_max = ELV_SPARSE_FRACTION_MAX,
    .chunks_max = chunks_max,
    .plan = elv_sparse_plan,
    .encode = encode,
    .open = open_payload,
    .next = next,
};
