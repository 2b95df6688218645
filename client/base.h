/* SPDX-License-Identifier: Apache-2.0 */
/* client/base.h - the broadcast model on the device: which chunks bring it, and how they become it.
 *
 * The server's version t is the version before plus an encoded step, and also a full body; version
 * 0 can be made from the seed. The base takes the way with the fewest chunks, and the full body
 * when it cannot read the steps. Steps stay encoded
 * until all are there and their digests fit, then they are applied in one pass: each decoded value
 * is rounded to f32, then added (never fused), so that every device ends with the server's bits.
 *
 * Two vectors of the caller's suffice: `base` is the version held, `fresh` is where chunks are kept
 * while they come in and where the weights to train from are in the end. */
#ifndef ELV_CLIENT_BASE_H
#define ELV_CLIENT_BASE_H

#include "../common/model.h"
#include "../common/msg.h"
#include "pack.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_base_cfg { /* all borrowed as long as the base is used */
    const struct elv_model *model;
    const struct elv_pack *pack;
    uint64_t seed;
    float *base;   /* f32 [n_params] */
    float *fresh;  /* f32 [n_params] */
    uint8_t *hash; /* [hash_cap][ELV_CHUNK_HASH_LEN] */
    uint32_t hash_cap;
    const uint8_t *codecs; /* [n_codecs] those a step may come in; n_codecs 0: all built in */
    uint32_t n_codecs;
};

enum elv_base_way {
    ELV_BASE_HELD,  /* nothing to fetch */
    ELV_BASE_STEPS, /* fetch 0 or more steps, apply them to what is held or to version 0 */
    ELV_BASE_FULL,  /* fetch all values */
};

enum elv_base_pass { /* of a run, in order */
                     ELV_BASE_SEED,
                     ELV_BASE_VERIFY,
                     ELV_BASE_APPLY,
                     ELV_BASE_TAKE_OVER,
                     ELV_BASE_DIGEST,
                     ELV_BASE_COPY,
};

struct elv_base { /* the fields belong to base.c */
    struct elv_base_cfg cfg;
    bool held;       /* `base` is `version` */
    bool local_made; /* the layers marked local have values */
    bool seed_fails; /* this run's version 0 is not what the seed gives */
    uint32_t version;
    uint8_t digest[ELV_SHA256_LEN];

    enum elv_base_way way;
    struct elv_ticket ticket; /* what is wanted */
    uint32_t n_steps;
    enum elv_base_pass at;
    uint32_t step, done; /* of the current pass */
    uint32_t covered;    /* coordinates the chunks verified so far tile */
    bool reading;        /* APPLY: chunk `done` is being read */
    struct elv_unpacking chunk;
    struct elv_body_digest body;
    struct elv_sha256 sha;
};

/* How many chunks a full body has: the number of hashes kept. 0: too many. */
uint32_t elv_base_hash_cap(const struct elv_model *m);
/* The most chunks any body or bodies fetched at a time can have. */
uint32_t elv_base_chunks_max(const struct elv_model *m);

/* Holds nothing yet. */
void elv_base_init(struct elv_base *b, const struct elv_base_cfg *cfg);

/* Decides how to get what `t` names. `*n_chunks` are to be fetched, maybe none. `fresh` is
 * overwritten from now on. ELV_ERR_FORMAT: nothing offered can be the model. */
enum elv_err elv_base_plan(struct elv_base *b, const struct elv_ticket *t, uint32_t *n_chunks);

/* What to ask for chunk `i` of those to be fetched. */
struct elv_request elv_base_request(const struct elv_base *b, uint32_t i);

/* The answer for chunk `i`. Any error: it is not that chunk, or damaged; ask again. */
enum elv_err elv_base_take(struct elv_base *b, uint32_t i, struct elv_bytes chunk);

/* A version read back from a disk: `base` holds its values, the local layers' too. */
void elv_base_restore(struct elv_base *b, uint32_t version, const uint8_t digest[ELV_SHA256_LEN]);

/* Which of those to be fetched `chunk` is, told by what it says of itself; false: none of them. */
bool elv_base_find(const struct elv_base *b, struct elv_bytes chunk, uint32_t *i);

/* With all chunks taken: makes `base` the version of the ticket, and `fresh` a copy to train.
 * `budget` slices of some thousand coordinates or a few chunks. ELV_ERR_BUSY: there is more. Any
 * other failure: nothing is held any more, and the next plan takes a simpler way. */
enum elv_err elv_base_run(struct elv_base *b, uint32_t budget);

/* The run will not be finished: what is held no longer counts if it was being changed. */
void elv_base_abort(struct elv_base *b);

#ifdef __cplusplus
}
#endif
#endif
