/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base.h"

#include <string.h>

#include "common/assert.h"

/* A step's chunk waits in a slot of its own until all are there: its length, then its bytes. */
enum { SLOT_HEAD = 2, SLOT_LEN = SLOT_HEAD + ELV_CHUNK_MAX };
enum { SLICE = 4096, CHUNKS_PER_SLICE = 4 }; /* coordinates; chunks, or windows of them */

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static const struct elv_codec *full_codec(void) { return elv_codec_by_id(ELV_CODEC_F32); }

static uint32_t slots(const struct elv_model *m)
{
    return (uint32_t)((size_t)m->n_params * sizeof(float) / SLOT_LEN);
}

uint32_t elv_base_hash_cap(const struct elv_model *m)
{
    const struct elv_codec_arg arg = {0};
    return full_codec()->chunks_max(m->n_shared, &arg);
}

uint32_t elv_base_chunks_max(const struct elv_model *m)
{
    const uint32_t full = elv_base_hash_cap(m);
    return full > slots(m) ? full : slots(m);
}

void elv_base_init(struct elv_base *b, const struct elv_base_cfg *cfg)
{
    *b = (struct elv_base){.cfg = *cfg};
}

/* Steps needed from what is at hand, the oldest leading from there; false: they do not reach. */
static bool reachable(const struct elv_base *b, uint32_t *n_steps)
{
    const bool has_local = b->cfg.model->n_shared < b->cfg.model->n_params;
    if (!b->held && (b->seed_fails || (has_local && b->local_made)))
        return false; /* the seed would undo what the local layers learnt */
    const uint32_t from = b->held ? b->version : 0;
    if (b->ticket.version < from || b->ticket.version - from > b->ticket.n_steps)
        return false;
    *n_steps = b->ticket.version - from;
    return *n_steps > 0 || !b->held; /* the same version with another digest: not by steps */
}

static bool can_read(const struct elv_base *b, uint8_t codec)
{
    const struct elv_base_cfg *cfg = &b->cfg;
    return elv_codec_by_id(codec) != NULL &&
           (cfg->n_codecs == 0 || memchr(cfg->codecs, codec, cfg->n_codecs) != NULL);
}

/* False when a step cannot be used, or all together do not fit the slots. */
static bool count_steps(const struct elv_base *b, uint32_t n_steps, uint32_t *n_chunks)
{
    *n_chunks = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        const struct elv_body_ref *s = &b->ticket.step[i];
        if (s->n_chunks == 0 || s->n_chunks > slots(b->cfg.model) - *n_chunks ||
            !can_read(b, s->codec))
            return false;
        *n_chunks += s->n_chunks;
    }
    return true;
}

static bool full_offered(const struct elv_base *b)
{
    return b->ticket.full.codec == ELV_CODEC_F32 && b->ticket.full.n_chunks > 0 &&
           b->ticket.full.n_chunks == b->cfg.hash_cap;
}

enum elv_err elv_base_plan(struct elv_base *b, const struct elv_ticket *t, uint32_t *n_chunks)
{
    b->ticket = *t;
    b->at = ELV_BASE_SEED;
    b->done = b->n_steps = 0;
    if (b->held && memcmp(b->digest, t->model, sizeof b->digest) == 0) {
        b->way = ELV_BASE_HELD;
        b->version = t->version;
        *n_chunks = 0;
        return ELV_OK;
    }
    uint32_t n_steps = 0, n = 0;
    const bool full = full_offered(b);
    if (reachable(b, &n_steps) && count_steps(b, n_steps, &n) && (!full || n < t->full.n_chunks)) {
        b->way = ELV_BASE_STEPS;
        b->n_steps = n_steps;
        *n_chunks = n;
        return ELV_OK;
    }
    if (!full)
        return ELV_ERR_FORMAT;
    b->way = ELV_BASE_FULL;
    *n_chunks = t->full.n_chunks;
    return ELV_OK;
}

/* Which step, counted from the oldest, chunk `i` is of, and its number there. */
static const struct elv_body_ref *body_of(const struct elv_base *b, uint32_t i, uint32_t *index)
{
    *index = i;
    if (b->way == ELV_BASE_FULL)
        return &b->ticket.full;
    for (uint32_t k = b->n_steps; k > 0; k--) {
        const struct elv_body_ref *s = &b->ticket.step[k - 1];
        if (*index < s->n_chunks)
            return s;
        *index -= s->n_chunks;
    }
    ELV_ASSERT(false);
    return NULL;
}

struct elv_request elv_base_request(const struct elv_base *b, uint32_t i)
{
    uint32_t index;
    const struct elv_body_ref *body = body_of(b, i, &index);
    return (struct elv_request){.op = b->way == ELV_BASE_FULL ? ELV_OP_MODEL_CHUNK
                                                              : ELV_OP_STEP_CHUNK,
                                .digest = elv_digest_key(body->digest),
                                .chunk = index};
}

/* Every value but the last chunk's has the place the codec gives it, so ranges that pass tile. */
static bool in_its_place(const struct elv_base *b, const struct elv_chunk *c)
{
    const struct elv_codec *codec = full_codec();
    const uint32_t n = b->cfg.model->n_shared;
    const uint32_t first = codec->first_of(c->index);
    const uint32_t end = c->index + 1 < b->cfg.hash_cap ? codec->first_of(c->index + 1) : n;
    return c->first == first && c->count == end - first;
}

static enum elv_err take_full(struct elv_base *b, const struct elv_chunk *c, struct elv_bytes in)
{
    if (!in_its_place(b, c))
        return ELV_ERR_FORMAT;
    uint32_t first, n;
    struct elv_unpacking u;
    enum elv_err err = elv_unpack_begin(&u, b->cfg.pack, c);
    for (bool more = err == ELV_OK; more; more = err == ELV_ERR_BUSY) {
        err = elv_unpack_next(&u, &first, &n);
        if (err == ELV_OK || err == ELV_ERR_BUSY)
            elv_model_scatter(b->cfg.model, b->cfg.fresh, first, n, b->cfg.pack->values);
    }
    if (err != ELV_OK)
        return err;
    elv_chunk_hash(in, b->cfg.hash + (size_t)c->index * ELV_CHUNK_HASH_LEN);
    return ELV_OK;
}

static uint8_t *slot(const struct elv_base *b, uint32_t i)
{
    return (uint8_t *)b->cfg.fresh + (size_t)i * SLOT_LEN;
}

static struct elv_bytes slot_bytes(const struct elv_base *b, uint32_t i)
{
    const uint8_t *at = slot(b, i);
    return (struct elv_bytes){.at = at + SLOT_HEAD, .len = (size_t)(at[0] | at[1] << 8)};
}

static void keep_in_slot(const struct elv_base *b, uint32_t i, struct elv_bytes in)
{
    uint8_t *at = slot(b, i);
    at[0] = (uint8_t)(in.len & 0xFF);
    at[1] = (uint8_t)(in.len >> 8);
    memcpy(at + SLOT_HEAD, in.at, in.len);
}

static struct elv_chunk_want expected(const struct elv_body_ref *body, enum elv_body_kind kind,
                                      uint32_t index)
{
    return (struct elv_chunk_want){
        .kind = kind, .codec = body->codec, .index = index, .tag = body->digest};
}

enum elv_err elv_base_take(struct elv_base *b, uint32_t i, struct elv_bytes in)
{
    uint32_t index;
    struct elv_chunk c;
    const struct elv_body_ref *body = body_of(b, i, &index);
    const bool full = b->way == ELV_BASE_FULL;
    const struct elv_chunk_want want = expected(body, full ? ELV_BODY_MODEL : ELV_BODY_STEP, index);
    const enum elv_err err = elv_chunk_expect(in, &want, &c);
    if (err != ELV_OK)
        return err;
    if (full)
        return take_full(b, &c, in);
    keep_in_slot(b, i, in);
    return ELV_OK;
}

void elv_base_restore(struct elv_base *b, uint32_t version, const uint8_t digest[ELV_SHA256_LEN])
{
    b->held = b->local_made = true;
    b->version = version;
    memcpy(b->digest, digest, sizeof b->digest);
}

static bool is_of(const struct elv_chunk *c, const struct elv_body_ref *body)
{
    return c->index < body->n_chunks && memcmp(c->tag, body->digest, sizeof c->tag) == 0;
}

bool elv_base_find(const struct elv_base *b, struct elv_bytes chunk, uint32_t *i)
{
    struct elv_chunk c;
    if (elv_chunk_decode(chunk, &c) != ELV_OK)
        return false;
    *i = c.index;
    if (b->way == ELV_BASE_FULL)
        return is_of(&c, &b->ticket.full);
    for (uint32_t k = b->n_steps; k > 0; k--) {
        if (is_of(&c, &b->ticket.step[k - 1]))
            return true;
        *i += b->ticket.step[k - 1].n_chunks;
    }
    return false;
}

static void enter(struct elv_base *b, enum elv_base_pass at)
{
    b->at = at;
    b->done = b->step = b->covered = 0;
    b->reading = false;
    elv_body_digest_init(&b->body);
    elv_sha256_init(&b->sha);
}

static enum elv_err from_seed(struct elv_base *b)
{
    if ((b->way == ELV_BASE_STEPS && !b->held) || !b->local_made)
        elv_model_init_params(b->cfg.model, b->cfg.seed, b->cfg.base);
    b->local_made = true;
    const bool steps = b->way == ELV_BASE_STEPS;
    if (b->way == ELV_BASE_HELD)
        enter(b, ELV_BASE_COPY);
    else if (steps && b->n_steps == 0)
        enter(b, ELV_BASE_DIGEST);
    else
        enter(b, ELV_BASE_VERIFY);
    return ELV_ERR_BUSY;
}

static enum elv_err check_body(struct elv_base *b, const struct elv_body_ref *body)
{
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    elv_body_digest_final(&b->body, digest);
    elv_body_digest_init(&b->body);
    return memcmp(digest, body->digest, sizeof digest) == 0 ? ELV_ERR_BUSY : ELV_ERR_MISMATCH;
}

/* Full: the chunks' places were checked when they came; their hashes were kept. */
static enum elv_err verify_full(struct elv_base *b)
{
    for (uint32_t i = 0; i < b->cfg.hash_cap; i++)
        elv_body_digest_add(&b->body, b->cfg.hash + (size_t)i * ELV_CHUNK_HASH_LEN);
    const enum elv_err err = check_body(b, &b->ticket.full);
    enter(b, ELV_BASE_TAKE_OVER);
    return err;
}

/* One chunk of a step: its hash, and that its range continues the one before. */
static enum elv_err verify_chunk(struct elv_base *b)
{
    uint32_t index;
    struct elv_chunk c;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    const struct elv_body_ref *body = body_of(b, b->done, &index);
    const struct elv_bytes in = slot_bytes(b, b->done);
    enum elv_err err = elv_chunk_decode(in, &c);
    if (err != ELV_OK)
        return err;
    if (c.first != b->covered || c.count > b->cfg.model->n_shared - b->covered)
        return ELV_ERR_FORMAT;
    b->covered += c.count;
    elv_chunk_hash(in, hash);
    elv_body_digest_add(&b->body, hash);
    b->done++;
    if (index + 1 < body->n_chunks)
        return ELV_ERR_BUSY;
    if (b->covered != b->cfg.model->n_shared)
        return ELV_ERR_FORMAT;
    b->covered = 0;
    b->step++;
    err = check_body(b, body);
    if (err == ELV_ERR_BUSY && b->step == b->n_steps)
        enter(b, ELV_BASE_APPLY);
    return err;
}

/* base += values, over the stretches in which shared coordinates lie side by side. */
static void add(const struct elv_base *b, uint32_t first, uint32_t n)
{
    const float *values = b->cfg.pack->values;
    while (n > 0) {
        uint32_t at = 0;
        const uint32_t some = smaller(elv_model_run(b->cfg.model, first, &at), n);
        for (uint32_t i = 0; i < some; i++)
            b->cfg.base[at + i] += values[i];
        values += some;
        first += some;
        n -= some;
    }
}

static enum elv_err open_chunk(struct elv_base *b)
{
    struct elv_chunk c;
    const enum elv_err err = elv_chunk_decode(slot_bytes(b, b->done), &c);
    b->reading = true;
    return err == ELV_OK ? elv_unpack_begin(&b->chunk, b->cfg.pack, &c) : err;
}

/* A window of the chunk that is next. */
static enum elv_err apply_window(struct elv_base *b)
{
    uint32_t index, first, n;
    enum elv_err err = b->reading ? ELV_OK : open_chunk(b);
    if (err == ELV_OK)
        err = elv_unpack_next(&b->chunk, &first, &n);
    if (err != ELV_OK && err != ELV_ERR_BUSY)
        return err;
    add(b, first, n);
    if (err == ELV_ERR_BUSY)
        return err;
    const struct elv_body_ref *body = body_of(b, b->done, &index);
    b->reading = false;
    b->done++;
    if (index + 1 == body->n_chunks && ++b->step == b->n_steps)
        enter(b, ELV_BASE_DIGEST);
    return ELV_ERR_BUSY;
}

static enum elv_err some_chunks(struct elv_base *b, enum elv_base_pass pass)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i < CHUNKS_PER_SLICE && err == ELV_ERR_BUSY && b->at == pass; i++)
        err = pass == ELV_BASE_VERIFY ? verify_chunk(b) : apply_window(b);
    return err;
}

/* The shared values that came in replace those of the base; its local layers stay. */
static enum elv_err take_over(struct elv_base *b)
{
    uint32_t at = 0;
    const uint32_t n = smaller(elv_model_run(b->cfg.model, b->done, &at), SLICE);
    memcpy(b->cfg.base + at, b->cfg.fresh + at, n * sizeof(float));
    b->done += n;
    if (b->done == b->cfg.model->n_shared)
        enter(b, ELV_BASE_DIGEST);
    return ELV_ERR_BUSY;
}

static enum elv_err digest(struct elv_base *b)
{
    uint32_t at = 0;
    const uint32_t n = smaller(elv_model_run(b->cfg.model, b->done, &at), SLICE);
    elv_sha256_update_f32(&b->sha, b->cfg.base + at, n);
    b->done += n;
    if (b->done < b->cfg.model->n_shared)
        return ELV_ERR_BUSY;
    elv_sha256_final(&b->sha, b->digest);
    enter(b, ELV_BASE_COPY);
    return memcmp(b->digest, b->ticket.model, sizeof b->digest) == 0 ? ELV_ERR_BUSY
                                                                     : ELV_ERR_MISMATCH;
}

static enum elv_err copy(struct elv_base *b)
{
    const uint32_t n = smaller(b->cfg.model->n_params - b->done, SLICE);
    memcpy(b->cfg.fresh + b->done, b->cfg.base + b->done, n * sizeof(float));
    b->done += n;
    if (b->done < b->cfg.model->n_params)
        return ELV_ERR_BUSY;
    b->held = true;
    b->version = b->ticket.version;
    return ELV_OK;
}

static enum elv_err slice(struct elv_base *b)
{
    switch (b->at) {
    case ELV_BASE_SEED:
        return from_seed(b);
    case ELV_BASE_VERIFY:
        return b->way == ELV_BASE_FULL ? verify_full(b) : some_chunks(b, ELV_BASE_VERIFY);
    case ELV_BASE_APPLY:
        return some_chunks(b, ELV_BASE_APPLY);
    case ELV_BASE_TAKE_OVER:
        return take_over(b);
    case ELV_BASE_DIGEST:
        return digest(b);
    case ELV_BASE_COPY:
        return copy(b);
    }
    return ELV_ERR_ARG;
}

enum elv_err elv_base_run(struct elv_base *b, uint32_t budget)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i == 0 || (i < budget && err == ELV_ERR_BUSY); i++)
        err = slice(b);
    if (err == ELV_OK || err == ELV_ERR_BUSY)
        return err;
    b->seed_fails |= b->way == ELV_BASE_STEPS && !b->held;
    b->held = false;
    return err;
}

void elv_base_abort(struct elv_base *b)
{
    if (b->way != ELV_BASE_HELD && b->at >= ELV_BASE_APPLY)
        b->held = false;
}
