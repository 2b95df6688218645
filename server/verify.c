/* SPDX-License-Identifier: Apache-2.0 */
#include "server/verify.h"

#include <string.h>

#include "common/assert.h"

void elv_verify_layout(struct elv_verify *v, struct elv_arena *a)
{
    elv_unpacked_layout(&v->buf, a);
}

static void begin_item(struct elv_verify *v)
{
    v->index = v->first = 0;
    v->open = false;
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

/* Squares of the next values of a chunk, `at` of which were seen: value i goes to lane i mod 16. */
static void add_squares(double lane[16], uint32_t at, const float *v, uint32_t n)
{
    uint32_t i = 0;
    for (; i < n && (at + i) % 16 != 0; i++)
        lane[(at + i) % 16] += (double)v[i] * (double)v[i];
    for (; n - i >= 16; i += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += (double)v[i + j] * (double)v[i + j];
    for (uint32_t j = 0; i + j < n; j++)
        lane[j] += (double)v[i + j] * (double)v[i + j];
}

static enum elv_reason check_window(struct elv_verify *v)
{
    struct elv_unpacked *buf = &v->buf;
    const uint32_t at = buf->chunk.count - buf->decoder.left;
    const enum elv_reason reason = reason_of(elv_unpack_decode(buf, ELV_WINDOW));
    if (reason != ELV_REASON_NONE)
        return reason;
    uint32_t bad = 0;
    v->kernels->check(&bad, &buf->view, v->bound);
    if (bad > 0)
        return ELV_REASON_OUT_OF_RANGE; /* finite: else the decoder had said so */
    if (buf->view.n == buf->chunk.count) {
        v->kernels->norm2(&v->chunk_norm2, buf->values, buf->view.n);
        return ELV_REASON_NONE;
    }
    add_squares(v->lane, at, buf->values, buf->view.n);
    v->chunk_norm2 = elv_lanes16_f64(v->lane); /* the last window's is the one that counts */
    return ELV_REASON_NONE;
}

static enum elv_reason open_chunk(struct elv_verify *v, const struct elv_verify_item *item)
{
    const struct elv_chunk *c = &v->buf.chunk;
    if (c->first != v->first || elv_nonce_of(c->tag) != item->up->nonce)
        return ELV_REASON_WRONG_SHAPE;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_chunk_hash(v->buf.bytes, hash);
    elv_body_digest_add(&v->digest, hash);
    memset(v->lane, 0, sizeof v->lane);
    return reason_of(elv_unpack_open(v->unpack, &v->buf));
}

/* The next window of a chunk, and what comes before its first and after its last. */
static void check_some(struct elv_verify *v, struct elv_verify_item *item)
{
    if (!v->open) {
        if (elv_unpack_read(v->unpack, item->up, v->index, &v->buf) != ELV_OK) {
            item->lost = true;
            return;
        }
        item->reason = open_chunk(v, item);
    }
    if (item->reason == ELV_REASON_NONE)
        item->reason = check_window(v);
    v->open = v->buf.decoder.left > 0;
    if (v->open || item->reason != ELV_REASON_NONE)
        return;
    item->norm2 += v->chunk_norm2;
    v->first += v->buf.chunk.count;
    v->index++;
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
            check_some(v, item);
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
