/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_vandal.h"

#include <math.h>
#include <string.h>

#include "common/assert.h"
#include "common/codec.h"

enum mischief {
    FINE,
    NOT_FINITE,
    BEYOND_BOUND,
    OVERLAP,
    HOLE,
    BAD_DIGEST,
    TOO_FEW,
    FOREIGN_NONCE,
    ABSURD_WEIGHT,
    TRUNCATED,
    OTHER_CODEC,
    SILENT, /* takes work and never delivers */
    N_MISCHIEFS
};

enum {
    PER_CHUNK = 250,    /* f32 values */
    KEPT = 40,          /* questions whose answers it still reads */
    QUIET_US = 5000000, /* then the server has lost the association */
};

void vandal_init(struct vandal *v, uint64_t seed, uint32_t n_params, const uint8_t manifest[8])
{
    memset(v, 0, sizeof *v);
    v->rng = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST, .round = 666});
    v->n_params = n_params;
    memcpy(v->manifest, manifest, sizeof v->manifest);
}

static uint32_t n_chunks(const struct vandal *v)
{
    return (v->n_params + PER_CHUNK - 1) / PER_CHUNK;
}

static void send(struct vandal *v, struct elv_actions *out, struct elv_request request)
{
    ELV_ASSERT(out->n < out->cap);
    out->at[out->n++] =
        (struct elv_action){.kind = ELV_DO_SEND, .id = ++v->last_id, .request = request};
}

static float value_of(struct vandal *v, uint32_t coordinate)
{
    if (v->mischief == NOT_FINITE && coordinate % 101 == 7)
        return coordinate % 2 == 0 ? NAN : INFINITY;
    if (v->mischief == BEYOND_BOUND && coordinate == v->n_params - 1)
        return 1e9f;
    return 0.001f * (float)(coordinate % 17);
}

/* Chunk `index` as it travels; the same bytes each time, so that a digest can be made of it. */
static size_t make_chunk(struct vandal *v, uint32_t index, uint8_t out[ELV_CHUNK_MAX])
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    struct elv_wr w = elv_wr_of(payload, sizeof payload);
    uint32_t first = index * PER_CHUNK;
    if (v->mischief == OVERLAP && index > 0)
        first -= 3;
    if (v->mischief == HOLE && index > 0)
        first += first + 3 < v->n_params ? 3 : 0;
    uint32_t count = v->n_params - first < PER_CHUNK ? v->n_params - first : PER_CHUNK;
    for (uint32_t i = 0; i < count; i++)
        elv_wr_f32(&w, value_of(v, first + i));
    struct elv_chunk c = {.kind = ELV_BODY_UPDATE,
                          .codec = v->mischief == OTHER_CODEC ? ELV_CODEC_Q8 : ELV_CODEC_F32,
                          .index = index,
                          .first = first,
                          .count = count,
                          .payload = {.at = payload, .len = 4u * count}};
    const uint64_t nonce = v->nonce + (v->mischief == FOREIGN_NONCE && index % 3 == 2);
    for (unsigned i = 0; i < ELV_CHUNK_TAG_LEN; i++)
        c.tag[i] = (uint8_t)(nonce >> (8 * i));
    size_t len = 0;
    const enum elv_err err = elv_chunk_encode(&c, out, ELV_CHUNK_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    return len;
}

static void send_chunk(struct vandal *v, uint32_t index, struct elv_actions *out)
{
    uint8_t *at = v->bodies[out->n];
    size_t len = make_chunk(v, index, at);
    if (v->mischief == TRUNCATED && index % 2 == 1)
        len = elv_rng_below(&v->rng, (uint32_t)len);
    send(v, out,
         (struct elv_request){.op = ELV_OP_UPDATE_CHUNK,
                              .assignment = v->assignment,
                              .chunk = index,
                              .body = {.at = at, .len = len}});
}

static void digest_of(struct vandal *v, uint8_t digest[ELV_BODY_DIGEST_LEN])
{
    struct elv_body_digest d;
    uint8_t chunk[ELV_CHUNK_MAX], hash[ELV_CHUNK_HASH_LEN];
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < n_chunks(v); i++) {
        const size_t len = make_chunk(v, i, chunk);
        elv_chunk_hash((struct elv_bytes){.at = chunk, .len = len}, hash);
        elv_body_digest_add(&d, hash);
    }
    elv_body_digest_final(&d, digest);
    if (v->mischief == BAD_DIGEST)
        digest[0] ^= 1;
}

static void send_commit(struct vandal *v, struct elv_actions *out)
{
    uint8_t *at = v->bodies[out->n];
    struct elv_commit c = {.status = ELV_STATUS_DONE,
                           .nonce = v->nonce,
                           .samples = v->mischief == ABSURD_WEIGHT ? UINT32_MAX : 20,
                           .seen = 20,
                           .steps = 3,
                           .loss_sum = 1,
                           .n_chunks = n_chunks(v) - (v->mischief == TOO_FEW)};
    digest_of(v, c.digest);
    const uint32_t dice = elv_rng_below(&v->rng, 20);
    if (dice == 0)
        c.n_chunks = 1u << 30;
    if (dice == 1)
        c.status = ELV_STATUS_DECLINED, c.reason = ELV_REASON_BUSY, c.n_chunks = 0;
    size_t len = 0;
    if (elv_commit_encode(&c, at, ELV_CHUNK_MAX, &len) != ELV_OK)
        return;
    const uint32_t which = dice == 2   ? v->assignment_before
                           : dice == 3 ? v->assignment + 1
                           : dice == 4 ? 0
                                       : v->assignment;
    send(v, out,
         (struct elv_request){
             .op = ELV_OP_COMMIT, .assignment = which, .body = {.at = at, .len = len}});
}

static void send_noise(struct vandal *v, struct elv_actions *out)
{
    uint8_t *at = v->bodies[out->n];
    const uint32_t len = elv_rng_below(&v->rng, 200);
    for (uint32_t i = 0; i < len; i++)
        at[i] = (uint8_t)elv_rng_u32(&v->rng);
    send(v, out,
         (struct elv_request){.op = (enum elv_op)elv_rng_below(&v->rng, ELV_OP_COMMIT + 2),
                              .digest = elv_rng_u64(&v->rng),
                              .assignment = elv_rng_below(&v->rng, v->assignment + 3),
                              .chunk = elv_rng_below(&v->rng, 2) * elv_rng_u32(&v->rng),
                              .body = {.at = at, .len = len}});
}

static void send_join(struct vandal *v, struct elv_actions *out)
{
    uint8_t *at = v->bodies[out->n];
    struct elv_join j = {.wire_min = ELV_WIRE_MIN,
                         .wire_max = ELV_WIRE_MAX,
                         .software = {.at = "elver/0.1.0", .len = 11},
                         .boot = elv_rng_below(&v->rng, 3),
                         .samples = 20,
                         .codecs = {ELV_CODEC_F32, ELV_CODEC_Q8},
                         .n_codecs = 2};
    memcpy(j.manifest, v->manifest, sizeof j.manifest);
    size_t len = 0;
    const enum elv_err err = elv_join_encode(&j, at, ELV_CHUNK_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    send(v, out, (struct elv_request){.op = ELV_OP_JOIN, .body = {.at = at, .len = len}});
}

static void work(struct vandal *v, struct elv_actions *out)
{
    for (uint32_t i = 0; i < 3; i++)
        send_chunk(v, v->next_chunk++ % n_chunks(v), out);
    if (v->next_chunk >= 2 * n_chunks(v)) /* each went twice: the link is bad */
        send_commit(v, out);
}

static void take_ticket(struct vandal *v, const struct elv_response *r)
{
    struct elv_ticket t;
    if (elv_ticket_decode(r->body, &t) != ELV_OK)
        return;
    v->over |= t.what == ELV_WHAT_STOP;
    v->told = t.what == ELV_WHAT_TRAIN;
    if (!v->told || t.assignment == v->assignment)
        return;
    v->assignment_before = v->assignment;
    v->assignment = t.assignment;
    v->nonce = elv_rng_u64(&v->rng);
    v->mischief = elv_rng_below(&v->rng, N_MISCHIEFS);
    v->next_chunk = 0;
}

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct vandal *v = self;
    if (ev->kind == ELV_EV_RESPONSE)
        v->heard_us = ev->now;
    if (ev->kind == ELV_EV_RESPONSE && elv_code_is_success(ev->response.code))
        take_ticket(v, &ev->response); /* other answers do not decode as one */
    if (v->over || ev->kind == ELV_EV_STOP) {
        v->over = true;
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_END};
        return;
    }
    if (ev->kind != ELV_EV_TICK || ev->now < v->next_us)
        return;
    v->next_us = ev->now + 200000 + elv_rng_below(&v->rng, 300000);
    if (ev->now - v->heard_us > QUIET_US) {
        v->heard_us = ev->now;
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_RELINK};
    }
    if (elv_rng_below(&v->rng, 4) == 0)
        send_noise(v, out);
    if (elv_rng_below(&v->rng, 6) == 0)
        send_join(v, out);
    if (elv_rng_below(&v->rng, 60) == 0)
        send(v, out, (struct elv_request){.op = ELV_OP_LEAVE});
    if (v->told && v->mischief != SILENT)
        work(v, out);
    send(v, out, (struct elv_request){.op = ELV_OP_TICKET});
    for (; v->forgotten + KEPT < v->last_id; v->forgotten++) {
        ELV_ASSERT(out->n < out->cap);
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_FORGET, .id = v->forgotten + 1};
    }
}

static elv_time_us deadline(const void *self)
{
    const struct vandal *v = self;
    return v->over ? ELV_NEVER : v->next_us;
}

struct elv_node vandal_node(struct vandal *v)
{
    return (struct elv_node){
        .self = v, .actions_max = 3 * VANDAL_SENDS_MAX, .step = step, .deadline = deadline};
}
