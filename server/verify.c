/* SPDX-License-Identifier: Apache-2.0 */
#include "server/verify.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"

void elv_verify_layout(struct elv_verify *v, struct elv_arena *a, uint32_t coords_max)
{
    elv_unpacked_layout(&v->buf, a, coords_max);
    v->decoded = elv_arena_take_raw(a, coords_max, sizeof *v->decoded);
}

static void begin_item(struct elv_verify *v)
{
    v->index = v->first = 0;
    elv_body_digest_init(&v->digest);
}

void elv_verify_start(struct elv_verify *v)
{
    v->item = 0;
    begin_item(v);
}

static enum elv_reason reason_of(enum elv_err err)
{
    switch (err) {
    case ELV_OK:
        return ELV_REASON_NONE;
    case ELV_ERR_RANGE:
        return ELV_REASON_NOT_FINITE;
    case ELV_ERR_UNSUPPORTED:
        return ELV_REASON_CODEC;
    default:
        return ELV_REASON_MALFORMED;
    }
}

/* Values that are in no order to be counted: not numbers at all, or only too large? */
static enum elv_reason why_bad(const float *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(v[i] >= -FLT_MAX && v[i] <= FLT_MAX))
            return ELV_REASON_NOT_FINITE;
    return ELV_REASON_OUT_OF_RANGE;
}

static enum elv_reason check_values(struct elv_verify *v, struct elv_verify_item *item)
{
    const struct elv_chunk *c = &v->buf.chunk;
    enum elv_reason reason = reason_of(elv_unpack_view(v->unpack, &v->buf));
    if (reason != ELV_REASON_NONE)
        return reason;
    uint32_t bad = 0;
    v->kernels->check(&bad, &v->buf.view, v->bound);
    const struct elv_codec *codec = elv_codec_by_id(c->codec);
    reason = reason_of(elv_codec_decode(codec, v->buf.payload, c->count, v->decoded));
    if (reason != ELV_REASON_NONE)
        return reason;
    if (bad > 0)
        return why_bad(v->decoded, c->count);
    double norm2 = 0.0;
    v->kernels->norm2(&norm2, v->decoded, c->count);
    item->norm2 += norm2; /* in index order, so it is the same on every machine */
    return ELV_REASON_NONE;
}

static void check_chunk(struct elv_verify *v, struct elv_verify_item *item)
{
    if (elv_unpack_read(v->unpack, item->up, v->index, &v->buf) != ELV_OK) {
        item->lost = true;
        return;
    }
    const struct elv_chunk *c = &v->buf.chunk;
    if (c->first != v->first || elv_nonce_of(c->tag) != item->up->nonce) {
        item->reason = ELV_REASON_WRONG_SHAPE;
        return;
    }
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_chunk_hash(v->buf.bytes, hash);
    elv_body_digest_add(&v->digest, hash);
    item->reason = check_values(v, item);
    v->first += c->count;
}

/* What only the whole can tell. */
static void check_whole(struct elv_verify *v, struct elv_verify_item *item)
{
    const struct elv_commit *commit = &item->up->commit;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    elv_body_digest_final(&v->digest, digest);
    /* The client computes its norm in another order: it may be off by rounding. */
    const double most = (double)v->clip * 1.001;
    if (v->first != v->n_params || item->up->have.n_set != commit->n_chunks)
        item->reason = ELV_REASON_WRONG_SHAPE;
    else if (memcmp(digest, commit->digest, sizeof digest) != 0)
        item->reason = ELV_REASON_DIGEST;
    else if (v->clip > 0.0f && !(item->norm2 <= most * most))
        item->reason = ELV_REASON_OVER_NORM;
}

enum elv_err elv_verify_run(struct elv_verify *v, uint32_t budget)
{
    while (v->item < v->n) {
        struct elv_verify_item *item = &v->items[v->item];
        if (v->index < item->up->commit.n_chunks) {
            if (budget-- == 0)
                return ELV_ERR_BUSY;
            check_chunk(v, item);
            v->index++;
            if (item->reason == ELV_REASON_NONE && !item->lost)
                continue;
        } else {
            check_whole(v, item);
        }
        v->item++;
        begin_item(v);
    }
    return ELV_OK;
}
