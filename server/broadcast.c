/* SPDX-License-Identifier: Apache-2.0 */
#include "server/broadcast.h"

#include <string.h>

#include "common/assert.h"

enum { STEPS_LEN_MIN = 1 << 20 }; /* small models can afford more than their own size */

static void layout_steps(struct elv_broadcast *c, struct elv_arena *a)
{
    c->step_chunks_max = c->down->chunks_max(c->n, &c->arg);
    c->step_cap = (size_t)c->step_chunks_max * (ELV_CHUNK_MAX + ELV_STEP_PREFIX);
    const size_t model_len = (size_t)c->n * sizeof(float);
    const size_t fit = (model_len > STEPS_LEN_MIN ? model_len : STEPS_LEN_MIN) / c->step_cap;
    c->n_steps = fit < 1 ? 1 : fit > ELV_STEPS_MAX ? ELV_STEPS_MAX : (uint32_t)fit;
    for (uint32_t i = 0; i < c->n_steps; i++) {
        c->steps[i].at = elv_arena_take_raw(a, c->step_chunks_max, sizeof *c->steps[i].at);
        c->steps[i].bytes = elv_arena_take_raw(a, c->step_cap, 1);
    }
}

void elv_broadcast_layout(struct elv_broadcast *c, struct elv_arena *a, const struct elv_job *job,
                          uint32_t state_per_param)
{
    *c = (struct elv_broadcast){
        .n = job->model.n_shared,
        .full = elv_codec_by_id(ELV_CODEC_F32),
        .down = elv_codec_by_id(job->down.id),
        .arg = {.param = job->down.param},
    };
    const bool lossy = c->down->id != ELV_CODEC_F32;
    c->b = elv_arena_take(a, c->n, sizeof *c->b);
    c->next = elv_arena_take(a, c->n, sizeof *c->next);
    c->sum = elv_arena_take(a, c->n, sizeof *c->sum);
    c->w = elv_arena_take(a, c->n, sizeof *c->w);
    if (state_per_param > 0)
        c->rule = elv_arena_take(a, c->n, state_per_param * sizeof *c->rule);
    if (lossy)
        layout_steps(c, a);
}

size_t elv_broadcast_chunk(const struct elv_broadcast *c, const float *v,
                           const uint8_t tag[ELV_CHUNK_TAG_LEN], uint32_t index,
                           uint8_t out[ELV_CHUNK_MAX])
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    struct elv_chunk chunk = {
        .kind = ELV_BODY_MODEL, .codec = c->full->id, .index = index, .payload = {payload, 0}};
    const struct elv_codec_arg arg = {0};
    chunk.first = c->full->first_of(index);
    enum elv_err err = c->full->encode(v, c->n, chunk.first, index, &arg, payload, sizeof payload,
                                       &chunk.payload.len, &chunk.count);
    ELV_ASSERT(err == ELV_OK);
    memcpy(chunk.tag, tag, sizeof chunk.tag);
    size_t len = 0;
    err = elv_chunk_encode(&chunk, out, ELV_CHUNK_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    return len;
}

void elv_broadcast_digest(const struct elv_broadcast *c, const float *v, uint8_t model[32],
                          struct elv_body_ref *full)
{
    static const uint8_t no_tag[ELV_CHUNK_TAG_LEN];
    const struct elv_codec_arg arg = {0};
    uint8_t chunk[ELV_CHUNK_MAX], hash[ELV_CHUNK_HASH_LEN];
    struct elv_body_digest d;
    *full =
        (struct elv_body_ref){.codec = c->full->id, .n_chunks = c->full->chunks_max(c->n, &arg)};
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < full->n_chunks; i++) {
        const size_t len = elv_broadcast_chunk(c, v, no_tag, i, chunk);
        elv_chunk_hash((struct elv_bytes){chunk, len}, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, full->digest);
    elv_sha256_f32(v, c->n, model);
}

const struct elv_step *elv_broadcast_step(const struct elv_broadcast *c, uint64_t digest)
{
    for (uint32_t i = 0; i < c->n_steps; i++)
        if (c->steps[i].version != 0 && elv_digest_key(c->steps[i].ref.digest) == digest)
            return &c->steps[i];
    return NULL;
}

struct elv_bytes elv_step_chunk(const struct elv_step *s, uint32_t index)
{
    ELV_ASSERT(index < s->ref.n_chunks);
    const uint8_t *prefix = s->bytes + s->at[index];
    return (struct elv_bytes){.at = prefix + ELV_STEP_PREFIX,
                              .len = (size_t)prefix[0] | (size_t)prefix[1] << 8};
}

struct elv_step *elv_broadcast_step_slot(struct elv_broadcast *c, uint32_t version)
{
    if (c->n_steps == 0)
        return NULL;
    struct elv_step *s = &c->steps[version % c->n_steps];
    s->version = 0;
    return s;
}

enum elv_err elv_step_index(struct elv_step *s, uint32_t chunks_max)
{
    struct elv_rd r = elv_rd_of((struct elv_bytes){s->bytes, s->len});
    struct elv_body_digest d;
    uint8_t digest[ELV_BODY_DIGEST_LEN], hash[ELV_CHUNK_HASH_LEN];
    uint32_t n = 0;
    elv_body_digest_init(&d);
    while (r.err == ELV_OK && r.left > 0 && n < chunks_max) {
        s->at[n++] = (uint32_t)(s->len - r.left);
        const struct elv_bytes chunk = elv_rd_bytes(&r, elv_rd_u16(&r));
        struct elv_chunk seen;
        if (r.err != ELV_OK || elv_chunk_decode(chunk, &seen) != ELV_OK)
            return ELV_ERR_FORMAT;
        elv_chunk_hash(chunk, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, digest);
    if (r.left != 0 || n != s->ref.n_chunks || memcmp(digest, s->ref.digest, sizeof digest) != 0)
        return ELV_ERR_FORMAT;
    return ELV_OK;
}

static size_t full_len(const struct elv_broadcast *c)
{
    const struct elv_codec_arg arg = {0};
    return (size_t)c->n * sizeof(float) +
           (size_t)c->full->chunks_max(c->n, &arg) * ELV_CHUNK_HEAD_LEN;
}

void elv_broadcast_offer(const struct elv_broadcast *c, uint32_t version, struct elv_ticket *t)
{
    t->version = version;
    t->n_steps = 0;
    size_t len = 0;
    while (t->n_steps < c->n_steps && t->n_steps < version) {
        const uint32_t to = version - t->n_steps;
        const struct elv_step *s = &c->steps[to % c->n_steps];
        len += s->len;
        if (s->version != to || len >= full_len(c))
            break;
        t->step[t->n_steps++] = s->ref;
    }
}
