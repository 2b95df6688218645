/* SPDX-License-Identifier: Apache-2.0 */
#include "client/delta.h"

#include <math.h>

#include "common/assert.h"
#include "common/exact.h"

enum { SLICE = 4096, CHUNKS_PER_SLICE = 4, SHORTENED_MAX = 4 };

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

uint32_t elv_delta_first_cap(const struct elv_model *m, const struct elv_codec_choice *choice)
{
    const struct elv_codec *codec = elv_codec_by_id(choice->id);
    if (codec == NULL || !elv_codec_takes(codec, choice->param))
        return 0;
    const struct elv_codec_arg arg = {.param = elv_codec_widest(codec, choice->param)};
    const uint32_t n = codec->chunks_max(m->n_shared, &arg);
    return n == UINT32_MAX || n == 0 ? 0 : n + 1;
}

void elv_delta_begin(struct elv_delta *d, const struct elv_delta_cfg *cfg)
{
    *d = (struct elv_delta){.cfg = *cfg, .whole = 1.0};
    d->cfg.arg.plan = d->cfg.plan;
}

static void to_plan(struct elv_delta *d)
{
    d->at = ELV_DELTA_PLAN;
    d->done = 0;
    if (d->cfg.plan != NULL)
        *d->cfg.plan = (struct elv_codec_plan){0};
}

void elv_delta_resume(struct elv_delta *d, const struct elv_delta_cfg *cfg)
{
    elv_delta_begin(d, cfg);
    to_plan(d);
}

static void next_pass(struct elv_delta *d)
{
    d->at++;
    d->done = 0;
}

/* Nothing is written before all of it is known to be finite. */
static enum elv_err check(struct elv_delta *d)
{
    const uint32_t end = d->done + smaller(SLICE, d->cfg.model->n_params - d->done);
    for (; d->done < end; d->done++)
        if (!elv_finite_f32(d->cfg.trained[d->done]))
            return ELV_ERR_FORMAT;
    if (d->done == d->cfg.model->n_params)
        next_pass(d);
    return ELV_ERR_BUSY;
}

/* What stays on the device moves to the base, before the subtraction writes over it. */
static void keep_local(struct elv_delta *d)
{
    const struct elv_model *m = d->cfg.model;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *l = &m->layers[i];
        for (uint32_t j = 0; l->local && j < l->n_weight + l->n_bias; j++)
            d->cfg.base[l->weight_at + j] = d->cfg.trained[l->weight_at + j];
    }
    next_pass(d);
}

/* Shared coordinate i never lies behind place i of the flat vector, so going up and writing to
 * place i overwrites nothing that is still needed. */
static void subtract(struct elv_delta *d)
{
    uint32_t at = 0;
    const uint32_t run = elv_model_run(d->cfg.model, d->done, &at);
    const uint32_t n = smaller(run, SLICE);
    const float *trained = d->cfg.trained + at, *base = d->cfg.base + at;
    float *out = d->cfg.trained + d->done, largest = d->largest;
    double norm2 = d->norm2;
    for (uint32_t i = 0; i < n; i++) {
        const float v = trained[i] - base[i];
        const float size = v < 0.0f ? -v : v;
        out[i] = v;
        norm2 += (double)v * (double)v;
        largest = size > largest ? size : largest;
    }
    d->norm2 = norm2;
    d->largest = largest;
    d->done += n;
    if (d->done == d->cfg.model->n_shared)
        next_pass(d);
}

static enum elv_err clip(struct elv_delta *d)
{
    const double norm = sqrt(d->norm2);
    const bool too_long = d->cfg.clip > 0.0f && norm > (double)d->cfg.clip;
    const double factor = too_long ? (double)d->cfg.clip / norm : 1.0;
    if (!((double)d->largest * factor <= (double)d->cfg.bound)) /* false for an infinite one too */
        return ELV_ERR_RANGE;
    const uint32_t end = too_long ? d->done + smaller(SLICE, d->cfg.model->n_shared - d->done)
                                  : d->cfg.model->n_shared;
    for (; too_long && d->done < end; d->done++)
        d->cfg.trained[d->done] = (float)((double)d->cfg.trained[d->done] * factor);
    if (end == d->cfg.model->n_shared) {
        d->learnt = norm * factor;
        next_pass(d);
        if (d->cfg.residual == NULL)
            to_plan(d);
    }
    return ELV_ERR_BUSY;
}

/* The server refuses an update with a value beyond the bound, for good: better to lose the little
 * that goes over it. */
static enum elv_err add(struct elv_delta *d)
{
    const uint32_t n = smaller(SLICE, d->cfg.model->n_shared - d->done);
    float *v = d->cfg.trained + d->done;
    const float most = d->cfg.bound;
    elv_residual_add(d->cfg.residual, d->done, v, n);
    for (uint32_t i = 0; i < n; i++)
        v[i] = v[i] > most ? most : v[i] < -most ? -most : v[i];
    d->done += n;
    if (d->done == d->cfg.model->n_shared)
        to_plan(d);
    return ELV_ERR_BUSY;
}

static enum elv_err plan(struct elv_delta *d)
{
    const struct elv_codec *codec = elv_codec_by_id(d->cfg.codec);
    const uint32_t n = d->cfg.model->n_shared;
    if (codec == NULL || (codec->plan == NULL) != (d->cfg.plan == NULL))
        return ELV_ERR_UNSUPPORTED;
    if (codec->plan != NULL) {
        const enum elv_err err =
            codec->plan(d->cfg.plan, d->cfg.trained, n, &d->cfg.arg, SLICE / 1024);
        if (err != ELV_OK)
            return err;
    }
    next_pass(d);
    d->cfg.first[0] = 0;
    d->n_chunks = 0;
    d->sent2 = 0;
    elv_body_digest_init(&d->hash);
    return ELV_ERR_BUSY;
}

static enum elv_err make(const struct elv_delta *d, uint32_t index, uint8_t out[ELV_CHUNK_MAX],
                         size_t *len, uint32_t *count)
{
    struct elv_chunk c = {.kind = ELV_BODY_UPDATE,
                          .codec = d->cfg.codec,
                          .index = index,
                          .first = d->cfg.first[index]};
    for (uint32_t i = 0; i < ELV_CHUNK_TAG_LEN; i++)
        c.tag[i] = (uint8_t)(d->cfg.nonce >> 8 * i);
    const enum elv_err err =
        elv_pack(d->cfg.pack, d->cfg.trained, d->cfg.model->n_shared, &d->cfg.arg, &c, out, len);
    *count = c.count;
    return err;
}

/* A codec that loses something may also make the vector longer. */
static bool measures(const struct elv_delta *d)
{
    return d->cfg.clip > 0.0f && d->cfg.codec != ELV_CODEC_F32;
}

static enum elv_err measure(struct elv_delta *d, struct elv_bytes chunk)
{
    struct elv_chunk c;
    struct elv_unpacking u;
    uint32_t first, n;
    enum elv_err err = elv_chunk_decode(chunk, &c);
    if (err == ELV_OK)
        err = elv_unpack_begin(&u, d->cfg.pack, &c);
    for (bool more = err == ELV_OK; more; more = err == ELV_ERR_BUSY) {
        err = elv_unpack_next(&u, &first, &n);
        for (uint32_t i = 0; (err == ELV_OK || err == ELV_ERR_BUSY) && i < n; i++)
            d->sent2 += (double)d->cfg.pack->values[i] * (double)d->cfg.pack->values[i];
    }
    return err;
}

/* All chunks are made. The receiver adds up in another order, and takes a little more. */
static enum elv_err finish(struct elv_delta *d)
{
    const double norm = sqrt(d->sent2), most = (double)d->cfg.clip;
    if (!measures(d) || norm <= most * 1.0005) {
        elv_body_digest_final(&d->hash, d->digest);
        return ELV_OK;
    }
    if (d->n_shortened++ == SHORTENED_MAX)
        return ELV_ERR_RANGE;
    d->factor = most / norm;
    d->whole /= d->factor;
    next_pass(d);
    return ELV_ERR_BUSY;
}

static void shorten(struct elv_delta *d)
{
    const uint32_t end = d->done + smaller(SLICE, d->cfg.model->n_shared - d->done);
    for (; d->done < end; d->done++)
        d->cfg.trained[d->done] = (float)((double)d->cfg.trained[d->done] * d->factor);
    if (d->done == d->cfg.model->n_shared)
        to_plan(d);
}

static enum elv_err hash(struct elv_delta *d)
{
    for (uint32_t i = 0; i < CHUNKS_PER_SLICE; i++) {
        uint8_t bytes[ELV_CHUNK_MAX], sum[ELV_CHUNK_HASH_LEN];
        size_t len;
        uint32_t count;
        ELV_ASSERT(d->n_chunks + 1 < d->cfg.first_cap);
        enum elv_err err = make(d, d->n_chunks, bytes, &len, &count);
        if (err == ELV_OK && measures(d))
            err = measure(d, (struct elv_bytes){bytes, len});
        if (err != ELV_OK)
            return err;
        elv_chunk_hash((struct elv_bytes){bytes, len}, sum);
        elv_body_digest_add(&d->hash, sum);
        const uint32_t end = d->cfg.first[d->n_chunks] + count;
        d->cfg.first[++d->n_chunks] = end;
        if (end == d->cfg.model->n_shared)
            return finish(d);
    }
    return ELV_ERR_BUSY;
}

static enum elv_err slice(struct elv_delta *d)
{
    switch (d->at) {
    case ELV_DELTA_CHECK:
        return check(d);
    case ELV_DELTA_KEEP:
        keep_local(d);
        return ELV_ERR_BUSY;
    case ELV_DELTA_SUBTRACT:
        subtract(d);
        return ELV_ERR_BUSY;
    case ELV_DELTA_CLIP:
        return clip(d);
    case ELV_DELTA_ADD:
        return add(d);
    case ELV_DELTA_PLAN:
        return plan(d);
    case ELV_DELTA_HASH:
        return hash(d);
    case ELV_DELTA_SHORTEN:
        shorten(d);
        return ELV_ERR_BUSY;
    }
    return ELV_ERR_ARG;
}

enum elv_err elv_delta_run(struct elv_delta *d, uint32_t budget)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i == 0 || (i < budget && err == ELV_ERR_BUSY); i++)
        err = slice(d);
    return err;
}

void elv_delta_chunk(const struct elv_delta *d, uint32_t index, uint8_t out[ELV_CHUNK_MAX],
                     size_t *len)
{
    uint32_t count;
    ELV_ASSERT(index < d->n_chunks);
    const enum elv_err err = make(d, index, out, len, &count);
    ELV_ASSERT(err == ELV_OK);
    ELV_ASSERT(count == d->cfg.first[index + 1] - d->cfg.first[index]);
}

void elv_delta_payload(const struct elv_delta *d, uint32_t index,
                       uint8_t out[ELV_CHUNK_PAYLOAD_MAX], size_t *len)
{
    uint32_t count;
    ELV_ASSERT(index < d->n_chunks);
    const enum elv_err err =
        elv_codec_by_id(d->cfg.codec)
            ->encode(d->cfg.trained, d->cfg.model->n_shared, d->cfg.first[index], index,
                     &d->cfg.arg, out, ELV_CHUNK_PAYLOAD_MAX, len, &count);
    ELV_ASSERT(err == ELV_OK && count == d->cfg.first[index + 1] - d->cfg.first[index]);
}
