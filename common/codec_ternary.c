/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec_ternary.h"

#include <float.h>
#include <string.h>

#include "common/sparse.h"

enum { VALUE_BITS = 1 };

static uint32_t chunks_max(uint32_t n, const struct elv_codec_arg *arg)
{
    return elv_sparse_chunks_max(n, arg->param, VALUE_BITS);
}

static uint32_t sign_of(float v, float magnitude)
{
    uint32_t bits;
    (void)magnitude;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31;
}

static float signed_as(uint32_t sign, float magnitude)
{
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits |= sign << 31;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
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
    const double mean = s.n_coded > 0 ? s.sum / (double)s.n_coded : 0.0;
    *len = elv_sparse_write(&s, &part, elv_sparse_magnitude((float)mean), sign_of, out, cap);
    *count = s.count;
    return ELV_OK;
}

static enum elv_err open_payload(struct elv_decoder *d)
{
    return elv_sparse_open(d, VALUE_BITS, FLT_MAX);
}

static enum elv_err next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    *n = cap;
    return elv_sparse_next(d, VALUE_BITS, signed_as, out, cap);
}

const struct elv_codec elv_codec_ternary = {
    .id = ELV_CODEC_TERNARY,
    .name = "ternary",
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
