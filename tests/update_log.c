/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/update_log.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

enum { CHUNKS_MAX = 16384, LOG = 7 };

static void *block(size_t len)
{
    void *p = calloc(len > 0 ? len : 1, 1);
    ELV_ASSERT(p != NULL);
    return p;
}

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    const struct update_log *l = self;
    ELV_ASSERT(number == LOG && offset <= l->len);
    *got = l->len - offset < len ? l->len - offset : len;
    memcpy(out, l->bytes + offset, *got);
    return ELV_OK;
}

float update_log_param(const struct elv_codec *codec)
{
    if (codec->param_max <= 0.0f)
        return 0.0f;
    return codec->param_min >= 1.0f ? 2.0f : 0.01f;
}

void update_log_open(struct update_log *l, uint32_t n)
{
    *l = (struct update_log){.n = n};
    struct elv_arena a = elv_arena_of(NULL, 0);
    elv_uploads_layout(&l->uploads, &a, UPDATE_LOG_UPDATES, CHUNKS_MAX);
    l->slots = aligned_alloc(ELV_ARENA_ALIGN, a.used);
    ELV_ASSERT(l->slots != NULL);
    a = elv_arena_of(l->slots, a.used);
    elv_uploads_layout(&l->uploads, &a, UPDATE_LOG_UPDATES, CHUNKS_MAX);
    elv_uploads_clear(&l->uploads);
    l->disk = (struct elv_disk){.self = l, .read_log = read_log};
    l->unpack = (struct elv_unpack){.disk = &l->disk, .log = LOG};
}

void update_log_close(struct update_log *l)
{
    for (uint32_t i = 0; i < l->n_up; i++)
        free(l->decoded[i]);
    free(l->bytes);
    free(l->slots);
}

static void append(struct update_log *l, struct elv_upload *up, const struct elv_chunk *c,
                   struct elv_bytes chunk)
{
    if (l->cap - l->len < ELV_LOG_RECORD_MAX) {
        l->cap = 2 * l->cap + ELV_LOG_RECORD_MAX;
        l->bytes = realloc(l->bytes, l->cap);
        ELV_ASSERT(l->bytes != NULL);
    }
    const struct elv_log_record r = {
        .client = up->client, .assignment = up->assignment, .chunk = chunk};
    elv_upload_note(up, c, l->len, chunk.len);
    l->len += elv_log_record_encode(&r, l->bytes + l->len);
}

/* The next chunk of `v`, into the log and back into `out`. */
static void add_chunk(struct update_log *l, struct elv_upload *up, const struct elv_codec *codec,
                      const float *v, const struct elv_codec_arg *arg, struct elv_chunk *c,
                      struct elv_body_digest *digest, float *out)
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX], chunk[ELV_CHUNK_MAX], hash[ELV_CHUNK_HASH_LEN];
    size_t len = 0;
    c->payload.at = payload;
    enum elv_err err = codec->encode(v, l->n, c->first, c->index, arg, payload, sizeof payload,
                                     &c->payload.len, &c->count);
    ELV_ASSERT(err == ELV_OK);
    err = elv_codec_decode(codec, c->payload, c->count, out + c->first);
    ELV_ASSERT(err == ELV_OK);
    err = elv_chunk_encode(c, chunk, sizeof chunk, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_chunk_hash((struct elv_bytes){chunk, len}, hash);
    elv_body_digest_add(digest, hash);
    append(l, up, c, (struct elv_bytes){chunk, len});
}

void update_log_add(struct update_log *l, const struct elv_codec *codec, float size)
{
    const uint32_t i = l->n_up++;
    static struct elv_codec_plan plan;
    struct elv_codec_arg arg = {.seed = 3 + i, .param = update_log_param(codec)};
    struct elv_upload *up = elv_upload_take(&l->uploads, i, i + 1, 1, codec->id, CHUNKS_MAX);
    ELV_ASSERT(up != NULL);
    l->up[i] = up;
    l->decoded[i] = block(l->n * sizeof(float));
    float *v = block(l->n * sizeof *v);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = i});
    for (uint32_t k = 0; k < l->n; k++)
        v[k] = size * elv_rng_normal(&r);
    elv_codec_plan(codec, &plan, v, l->n, &arg);

    struct elv_body_digest digest;
    struct elv_chunk c = {.kind = ELV_BODY_UPDATE, .codec = codec->id, .tag = {1}};
    elv_body_digest_init(&digest);
    elv_upload_restart(up, elv_nonce_of(c.tag));
    for (; c.first < l->n; c.first += c.count, c.index++)
        add_chunk(l, up, codec, v, &arg, &c, &digest, l->decoded[i]);
    up->commit.n_chunks = c.index;
    elv_body_digest_final(&digest, up->commit.digest);
    up->weight = 10 + i;
    free(v);
}

uint8_t *update_log_chunk(struct update_log *l, uint32_t up, uint32_t index, size_t *len)
{
    const struct elv_chunk_ref *ref = &l->up[up]->refs[index];
    *len = elv_chunk_ref_len(ref);
    return l->bytes + elv_chunk_ref_offset(ref) + ELV_LOG_HEAD_LEN;
}

void update_log_seal(struct update_log *l, uint32_t up, uint32_t index)
{
    uint8_t copy[ELV_CHUNK_MAX];
    size_t len;
    uint8_t *at = update_log_chunk(l, up, index, &len);
    memcpy(copy, at, len);
    const struct elv_log_record r = {
        .client = l->up[up]->client, .assignment = l->up[up]->assignment, .chunk = {copy, len}};
    elv_log_record_encode(&r, at - ELV_LOG_HEAD_LEN);
}
