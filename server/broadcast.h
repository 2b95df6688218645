/* SPDX-License-Identifier: Apache-2.0 */
/* server/broadcast.h - the model as the clients get it, and the sums the next one is made from.
 *
 * The master model w is what the updates made; clients train from the broadcast model b, which
 * follows it by encoded steps: b(t) = b(t-1) + decode(encode(w(t) - b(t-1))). What a step could not
 * carry is in the next one, so nothing is lost (error feedback). Without a lossy codec b is w, and
 * no steps exist: they would cost as much as the model.
 *
 * Chunks of the full model are made from b whenever they are asked for, and so never deflated; the
 * newest steps are kept as they travel, as many as fit in the space of one model. */
#ifndef ELV_SERVER_BROADCAST_H
#define ELV_SERVER_BROADCAST_H

#include "../common/arena.h"
#include "../common/codec.h"
#include "ledger.h"

#define ELV_STEP_PREFIX 2u /* a 16-bit length before each chunk in ELV_FILE_STEP */

struct elv_step {
    uint32_t version; /* it leads to; 0: empty */
    struct elv_body_ref ref;
    uint32_t *at;   /* [chunks_max] offset of each chunk in `bytes` */
    uint8_t *bytes; /* length, chunk, length, chunk, ... */
    size_t len;
};

struct elv_broadcast {
    uint32_t n;   /* shared coordinates */
    float *w;     /* f32 [n] master */
    float *b;     /* f32 [n] published */
    float *next;  /* f32 [n] the one being made */
    float *rule;  /* the rule's state; NULL: none */
    int64_t *sum; /* [n] */
    uint32_t version;
    struct elv_rec_version rec; /* of `version` */
    const struct elv_codec *full, *down;
    struct elv_codec_arg arg;
    struct elv_step steps[ELV_STEPS_MAX]; /* version v in place v % n_steps */
    uint32_t n_steps;                     /* places; 0: no steps */
    uint32_t step_chunks_max;
    size_t step_cap;
};

/* `state_per_param`: of the aggregation rule. */
void elv_broadcast_layout(struct elv_broadcast *c, struct elv_arena *a, const struct elv_job *job,
                          uint32_t state_per_param);

/* The digests of the model in `v` [n]: of the vector, and of its full body. Slow: for start-up. */
void elv_broadcast_digest(const struct elv_broadcast *c, const float *v, uint8_t model[32],
                          struct elv_body_ref *full);

/* One chunk of the full body of `v`, whose digest starts with `tag`. Returns its length. */
size_t elv_broadcast_chunk(const struct elv_broadcast *c, const float *v,
                           const uint8_t tag[ELV_CHUNK_TAG_LEN], uint32_t index,
                           uint8_t out[ELV_CHUNK_MAX]);

/* The kept step whose digest starts with `digest`, as requests name it. NULL: not kept. */
const struct elv_step *elv_broadcast_step(const struct elv_broadcast *c, uint64_t digest);
struct elv_bytes elv_step_chunk(const struct elv_step *s, uint32_t index); /* below n_chunks */

/* Where the step to `version` goes; what was there is forgotten. NULL: none are kept. */
struct elv_step *elv_broadcast_step_slot(struct elv_broadcast *c, uint32_t version);
/* Takes `s->bytes` [len] as read from a file. ELV_ERR_FORMAT: not a step with that digest. */
enum elv_err elv_step_index(struct elv_step *s, uint32_t chunks_max);

/* Fills in the version of a ticket and the steps that are kept of those leading to it, as many as
 * together are fewer bytes than the full body. */
void elv_broadcast_offer(const struct elv_broadcast *c, uint32_t version, struct elv_ticket *t);

#endif
