/* SPDX-License-Identifier: Apache-2.0 */
#include "common/codec.h"

#include <string.h>

#include "common/assert.h"
#include "common/codec_f16.h"
#include "common/codec_f32.h"
#include "common/codec_q4.h"
#include "common/codec_q8.h"
#include "common/codec_rotate.h"
#include "common/codec_sign.h"
#include "common/codec_ternary.h"
#include "common/codec_topk.h"

static const struct elv_codec *const built[] = {
    &elv_codec_f32,  &elv_codec_q8,      &elv_codec_f16,  &elv_codec_q4,
    &elv_codec_sign, &elv_codec_ternary, &elv_codec_topk, &elv_codec_rotate,
};

size_t elv_codec_count(void) { return sizeof built / sizeof built[0]; }

const struct elv_codec *elv_codec_at(size_t i)
{
    ELV_ASSERT(i < elv_codec_count());
    return built[i];
}

const struct elv_codec *elv_codec_by_id(uint8_t id)
{
    for (size_t i = 0; i < elv_codec_count(); i++)
        if (built[i]->id == id)
            return built[i];
    return NULL;
}

const struct elv_codec *elv_codec_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < elv_codec_count(); i++)
        if (strlen(built[i]->name) == len && memcmp(built[i]->name, name, len) == 0)
            return built[i];
    return NULL;
}

bool elv_codec_takes(const struct elv_codec *codec, float param)
{
    const bool option = param < 0.0f;
    if (option && codec->option == NULL)
        return false;
    const float number = option ? -param : param;
    if (codec->param_max > 0.0f)
        return number >= codec->param_min && number <= codec->param_max;
    return number == (option ? 1.0f : 0.0f);
}

bool elv_codec_is_biased(const struct elv_codec *codec, float param)
{
    return codec->biased && !(param < 0.0f);
}

bool elv_codec_is_sparse(const struct elv_codec *codec)
{
    return codec->param_max > 0.0f && codec->param_max <= 1.0f;
}

float elv_codec_widest(const struct elv_codec *codec, float param)
{
    const bool option = param < 0.0f;
    const float number = option ? -param : param;
    const float warm = codec->param_max < ELV_CODEC_WARM ? codec->param_max : ELV_CODEC_WARM;
    const float widest = elv_codec_is_sparse(codec) && number < warm ? warm : number;
    return option ? -widest : widest;
}

enum elv_err elv_decode_begin(struct elv_decoder *d, const struct elv_codec *codec,
                              struct elv_bytes payload, uint32_t count)
{
    *d = (struct elv_decoder){.codec = codec, .in = elv_rd_of(payload), .left = count};
    return count == 0 ? ELV_ERR_FORMAT : codec->open(d);
}

enum elv_err elv_decode_next(struct elv_decoder *d, float *out, uint32_t cap, uint32_t *n)
{
    ELV_ASSERT(d->left > 0 && (cap >= ELV_DECODE_MIN || cap >= d->left));
    const enum elv_err err = d->codec->next(d, out, cap < d->left ? cap : d->left, n);
    if (err != ELV_OK)
        return err;
    ELV_ASSERT(*n > 0 && *n <= d->left);
    d->left -= *n;
    return d->left == 0 && d->in.left != 0 ? ELV_ERR_FORMAT : ELV_OK;
}

enum elv_err elv_codec_decode(const struct elv_codec *codec, struct elv_bytes payload,
                              uint32_t count, float *out)
{
    struct elv_decoder d;
    enum elv_err err = elv_decode_begin(&d, codec, payload, count);
    for (uint32_t n; err == ELV_OK && d.left > 0; out += n)
        err = elv_decode_next(&d, out, d.left, &n);
    return err;
}

void elv_codec_plan(const struct elv_codec *codec, struct elv_codec_plan *p, const float *v,
                    uint32_t n, struct elv_codec_arg *arg)
{
    arg->plan = NULL;
    if (codec->plan == NULL)
        return;
    *p = (struct elv_codec_plan){0};
    while (codec->plan(p, v, n, arg, UINT32_MAX) == ELV_ERR_BUSY)
        ;
    arg->plan = p;
}
