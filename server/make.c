/* SPDX-License-Identifier: Apache-2.0 */
#include "server/make.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

enum { STRIDE = 4096, STRIDE_THOUSANDS = 4 }; /* coordinates per unit of budget */

static void enter(struct elv_make *m, enum elv_make_phase phase)
{
    m->phase = phase;
    m->at = m->index = 0;
}

void elv_make_start(struct elv_make *m)
{
    m->step = elv_broadcast_step_slot(m->cast, m->version);
    m->rec = (struct elv_rec_version){.full = {.codec = m->cast->full->id}};
    elv_sha256_init(&m->sha);
    elv_body_digest_init(&m->digest);
    enter(m, m->n_bases > 0 ? ELV_MAKE_MIX : ELV_MAKE_RULE);
}

static uint32_t stretch(const struct elv_make *m)
{
    const uint32_t left = m->cast->n - m->at;
    return left < STRIDE ? left : STRIDE;
}

static bool all_finite(const float *v, uint32_t n)
{
    bool fine = true;
    for (uint32_t i = 0; i < n; i++)
        fine = fine && v[i] >= -FLT_MAX && v[i] <= FLT_MAX;
    return fine;
}

/* The values of base `index` in the stretch at `at`: those of the newest are in memory. */
static enum elv_err read_base(struct elv_make *m, uint32_t n, const float **v)
{
    struct elv_broadcast *c = m->cast;
    struct elv_kept *kept = &m->bases[m->index].kept;
    *v = c->b + m->at;
    if (kept->version == c->version)
        return ELV_OK;
    *v = c->next + m->at;
    return elv_kept_read(kept, m->disk, m->at, n, (uint8_t *)(c->next + m->at));
}

/* What a client's model is off from w is its update, and how far the version it started from is:
 * that is added here, for all clients of one version at once, in the same fixed point. With every
 * distance at most twice the bound the sum stays below 2^62. */
static enum elv_err mix_base(struct elv_make *m)
{
    const struct elv_broadcast *c = m->cast;
    const uint32_t n = stretch(m);
    const double most = ldexp(2.0, 30 - m->value_bits); /* 2^30 is the bound, or a little more */
    const double scale = ldexp((double)m->bases[m->index].weight, m->value_bits);
    const float *v = NULL;
    const enum elv_err err = read_base(m, n, &v);
    if (err != ELV_OK)
        return err;
    for (uint32_t i = 0; i < n; i++) {
        const double off = (double)v[i] - (double)c->w[m->at + i];
        if (!(off >= -most && off <= most))
            return ELV_ERR_RANGE;
        c->sum[m->at + i] += (int64_t)rint(off * scale);
    }
    if (++m->index == m->n_bases) {
        m->index = 0;
        m->at += n;
    }
    return ELV_OK;
}

static enum elv_err apply_rule(struct elv_make *m)
{
    struct elv_broadcast *c = m->cast;
    const uint32_t n = stretch(m);
    const struct elv_rule_step s = {
        .params = &m->job->rule_params,
        .kernels = m->kernels,
        .version = m->version,
        .sum = c->sum + m->at,
        .gain = m->gain,
        .w = c->w + m->at,
        .mean = c->next + m->at,
        .state = c->rule ? c->rule + (size_t)m->at * m->rule->state_per_param : NULL,
        .n = n,
    };
    m->rule->apply(&s);
    double norm2 = 0.0; /* of the step, so far */
    m->kernels->norm2(&norm2, s.mean, n);
    m->step_norm2 += norm2;
    memset(c->sum + m->at, 0, n * sizeof *c->sum);
    const bool fine = all_finite(c->w + m->at, n);
    m->at += n;
    return fine ? ELV_OK : ELV_ERR_RANGE;
}

static void end_rule(struct elv_make *m)
{
    const double ratio = m->gain > 0.0 ? m->mean_gain / m->gain : 0.0;
    m->mean_norm2 = m->step_norm2 * ratio * ratio;
    enter(m, ELV_MAKE_DELTA);
}

static void take_delta(struct elv_make *m)
{
    struct elv_broadcast *c = m->cast;
    const uint32_t n = stretch(m);
    if (m->step)
        m->kernels->sub(c->next + m->at, c->w + m->at, c->b + m->at, n);
    else
        memcpy(c->next + m->at, c->w + m->at, n * sizeof *c->next);
    m->at += n;
}

/* The same version is the same bytes, however often it is made. */
static void begin_step(struct elv_make *m)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = m->job->seed, .round = m->version, .purpose = ELV_RNG_CODEC});
    m->arg = m->cast->arg;
    m->arg.seed = elv_rng_u64(&r);
    m->plan = (struct elv_codec_plan){0};
    m->step->len = 0;
    m->step->ref = (struct elv_body_ref){.codec = m->cast->down->id};
}

/* Replaces the payload by its deflated form in `out`, when that is shorter. */
static void deflate(const struct elv_make *m, struct elv_chunk *c, uint8_t *out)
{
    size_t len;
    if (m->squeeze == NULL || m->cast->down->tight ||
        m->squeeze->deflate(m->squeeze->self, out, c->payload.len - 1, c->payload, &len) != ELV_OK)
        return;
    c->payload = (struct elv_bytes){.at = out, .len = len};
    c->flags |= ELV_CHUNK_DEFLATED;
}

/* ELV_ERR_BUSY: there is more to look at. */
static enum elv_err look(struct elv_make *m)
{
    const struct elv_broadcast *c = m->cast;
    if (c->down->plan == NULL)
        return ELV_OK;
    const enum elv_err err = c->down->plan(&m->plan, c->next, c->n, &m->arg, STRIDE_THOUSANDS);
    m->arg.plan = &m->plan;
    return err;
}

static enum elv_err encode_step_chunk(struct elv_make *m)
{
    struct elv_broadcast *c = m->cast;
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX], deflated[ELV_CHUNK_PAYLOAD_MAX];
    struct elv_chunk chunk = {.kind = ELV_BODY_STEP,
                              .codec = c->down->id,
                              .index = m->index,
                              .first = m->at,
                              .payload = {payload, 0}};
    enum elv_err err = c->down->encode(c->next, c->n, m->at, m->index, &m->arg, payload,
                                       sizeof payload, &chunk.payload.len, &chunk.count);
    if (err != ELV_OK)
        return err;
    if (m->index >= c->step_chunks_max)
        return ELV_ERR_SPACE; /* the codec broke its own bound */
    deflate(m, &chunk, deflated);

    struct elv_step *s = m->step;
    uint8_t *prefix = s->bytes + s->len;
    size_t len = 0;
    err = elv_chunk_encode(&chunk, prefix + ELV_STEP_PREFIX, ELV_CHUNK_MAX, &len);
    if (err != ELV_OK)
        return err;
    prefix[0] = (uint8_t)len;
    prefix[1] = (uint8_t)(len >> 8);
    s->at[m->index++] = (uint32_t)s->len;
    s->len += ELV_STEP_PREFIX + len;
    m->at += chunk.count;

    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_chunk_hash((struct elv_bytes){prefix + ELV_STEP_PREFIX, len}, hash);
    elv_body_digest_add(&m->digest, hash);
    return ELV_OK;
}

/* The digest is known now; every chunk carries its first bytes, which are not part of it. */
static void end_step(struct elv_make *m)
{
    struct elv_step *s = m->step;
    s->ref.n_chunks = m->index;
    elv_body_digest_final(&m->digest, s->ref.digest);
    elv_body_digest_init(&m->digest);
    m->rec.step = s->ref;
}

/* The chunk gets its tag, and its values are next. */
static enum elv_err open_step_chunk(struct elv_make *m)
{
    const struct elv_step *s = m->step;
    const struct elv_bytes bytes = elv_step_chunk(s, m->index);
    uint8_t copy[ELV_CHUNK_MAX]; /* the payload must not move onto itself */
    struct elv_chunk chunk;
    size_t len = 0;
    memcpy(copy, bytes.at, bytes.len);
    enum elv_err err = elv_chunk_decode((struct elv_bytes){copy, bytes.len}, &chunk);
    if (err != ELV_OK)
        return err;
    memcpy(chunk.tag, s->ref.digest, sizeof chunk.tag);
    uint8_t *at = s->bytes + s->at[m->index] + ELV_STEP_PREFIX;
    err = elv_chunk_encode(&chunk, at, bytes.len, &len);
    if (err != ELV_OK)
        return err;
    struct elv_bytes payload = {at + ELV_CHUNK_HEAD_LEN, chunk.payload.len};
    if (chunk.flags & ELV_CHUNK_DEFLATED) {
        err = m->squeeze->inflate(m->squeeze->self, m->inflated, sizeof m->inflated, chunk.payload,
                                  &payload.len);
        if (err != ELV_OK)
            return err;
        payload.at = m->inflated;
    }
    return elv_decode_begin(&m->decoder, m->cast->down, payload, chunk.count);
}

/* Some values of the step take the place of the delta, which has been read. */
static enum elv_err add_some(struct elv_make *m)
{
    struct elv_broadcast *c = m->cast;
    uint32_t n = 0;
    enum elv_err err = m->decoder.left == 0 ? open_step_chunk(m) : ELV_OK;
    float *out = c->next + m->at;
    if (err == ELV_OK)
        err = elv_decode_next(&m->decoder, out, stretch(m), &n);
    if (err != ELV_OK)
        return err;
    const float *b = c->b + m->at, *w = c->w + m->at;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = b[i] + out[i];
        m->rec.master = m->rec.master || out[i] != w[i];
    }
    m->at += n;
    m->index += m->decoder.left == 0;
    return all_finite(out, n) ? ELV_OK : ELV_ERR_RANGE;
}

static void digest_chunk(struct elv_make *m)
{
    static const uint8_t no_tag[ELV_CHUNK_TAG_LEN];
    uint8_t chunk[ELV_CHUNK_MAX], hash[ELV_CHUNK_HASH_LEN];
    const struct elv_broadcast *c = m->cast;
    const size_t len = elv_broadcast_chunk(c, c->next, no_tag, m->index++, chunk);
    elv_chunk_hash((struct elv_bytes){chunk, len}, hash);
    elv_body_digest_add(&m->digest, hash);
    /* The payload of an f32 chunk is those values as little-endian bytes. */
    elv_sha256_update(&m->sha, chunk + ELV_CHUNK_HEAD_LEN, len - ELV_CHUNK_HEAD_LEN);
    m->at += (uint32_t)((len - ELV_CHUNK_HEAD_LEN) / 4);
}

static void end_digest(struct elv_make *m)
{
    elv_body_digest_final(&m->digest, m->rec.full.digest);
    elv_sha256_final(&m->sha, m->rec.model);
    m->rec.full.n_chunks = m->index;
}

/* One unit of the phase; the next phase once its last unit is done. */
static enum elv_err advance(struct elv_make *m)
{
    const uint32_t n = m->cast->n;
    enum elv_err err = ELV_OK;
    switch (m->phase) {
    case ELV_MAKE_MIX:
        err = mix_base(m);
        if (m->at == n)
            enter(m, ELV_MAKE_RULE);
        break;
    case ELV_MAKE_RULE:
        err = apply_rule(m);
        if (m->at == n)
            end_rule(m);
        break;
    case ELV_MAKE_DELTA:
        take_delta(m);
        if (m->at == n && m->step)
            begin_step(m);
        if (m->at == n)
            enter(m, m->step ? ELV_MAKE_PLAN : ELV_MAKE_DIGEST);
        break;
    case ELV_MAKE_PLAN:
        err = look(m);
        if (err == ELV_OK)
            enter(m, ELV_MAKE_STEP);
        return err == ELV_ERR_BUSY ? ELV_OK : err;
    case ELV_MAKE_STEP:
        err = encode_step_chunk(m);
        if (m->at == n) {
            end_step(m);
            enter(m, ELV_MAKE_ADD);
        }
        break;
    case ELV_MAKE_ADD:
        err = add_some(m);
        if (m->at == n)
            enter(m, ELV_MAKE_DIGEST);
        break;
    case ELV_MAKE_DIGEST:
        digest_chunk(m);
        if (m->at == n) {
            end_digest(m);
            enter(m, ELV_MAKE_DONE);
        }
        break;
    case ELV_MAKE_DONE:
        break;
    }
    return err;
}

enum elv_err elv_make_run(struct elv_make *m, uint32_t budget)
{
    enum elv_err err = ELV_OK;
    for (uint32_t i = 0; err == ELV_OK && i < budget && m->phase != ELV_MAKE_DONE; i++)
        err = advance(m);
    if (err != ELV_OK)
        return err;
    return m->phase == ELV_MAKE_DONE ? ELV_OK : ELV_ERR_BUSY;
}

void elv_make_publish(struct elv_make *m)
{
    struct elv_broadcast *c = m->cast;
    ELV_ASSERT(m->phase == ELV_MAKE_DONE);
    float *old = c->b;
    c->b = c->next;
    c->next = old;
    c->version = m->version;
    c->rec = m->rec;
    if (m->step)
        m->step->version = m->version;
}
