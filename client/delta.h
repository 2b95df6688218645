/* SPDX-License-Identifier: Apache-2.0 */
/* client/delta.h - what the device learnt: new minus old, clipped, plus what earlier updates left
 * over, in chunks.
 *
 * No more than `clip` is ever sent, by the L2 norm of what the receiver decodes: where a codec that
 * rounds up or the residual brings it above, the vector is made shorter, and what is taken off
 * becomes part of the residual.
 *
 * Works in place: the trained weights become the vector that is sent, and the base takes over what
 * layers marked `local` learnt, so no third vector is needed. The work is cut into slices;
 * afterwards any chunk can be made again, with the same bytes, as often as it must be sent. */
#ifndef ELV_CLIENT_DELTA_H
#define ELV_CLIENT_DELTA_H

#include "../common/model.h"
#include "../common/msg.h"
#include "pack.h"
#include "residual.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_delta_cfg { /* all borrowed until the update is done with */
    const struct elv_model *model;
    const struct elv_pack *pack;
    float *trained;  /* f32 [n_params] in; the vector f32 [n_shared] out */
    float *base;     /* f32 [n_params]; its local layers become the trained ones */
    uint32_t *first; /* [first_cap] where each chunk starts, and where the last one ends */
    uint32_t first_cap;
    uint8_t codec;
    struct elv_codec_arg arg;            /* but for the plan */
    struct elv_codec_plan *plan;         /* NULL for a codec without */
    const struct elv_residual *residual; /* added; NULL: none is */
    float bound;                         /* largest magnitude the server takes */
    float clip;                          /* L2 norm that is sent at most; 0: any */
    uint64_t nonce;                      /* the attempt; tags the chunks */
};

struct elv_delta { /* the fields below belong to delta.c */
    struct elv_delta_cfg cfg;
    enum {
        ELV_DELTA_CHECK,
        ELV_DELTA_KEEP,
        ELV_DELTA_SUBTRACT,
        ELV_DELTA_CLIP,
        ELV_DELTA_ADD,
        ELV_DELTA_PLAN,
        ELV_DELTA_HASH,
        ELV_DELTA_SHORTEN
    } at;
    uint32_t done; /* of the current pass */
    double norm2;
    float largest;
    struct elv_body_digest hash;
    double sent2;  /* squared norm of what was decoded of the chunks */
    double factor; /* SHORTEN: of the vector */
    uint32_t n_shortened;

    /* Known once `elv_delta_run` returned ELV_OK. */
    double learnt; /* norm of the update as it was before anything was added */
    double whole;  /* the vector as it was before it was shortened is the vector times this */
    uint32_t n_chunks;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
};

/* How many entries `first` needs at most for a codec: one more than there are chunks. 0: too many
 * chunks, or no such codec. */
uint32_t elv_delta_first_cap(const struct elv_model *m, const struct elv_codec_choice *codec);

/* What a codec that rounds or turns at random does it by: another one for each client and
 * assignment, or the clients of a round, whose assignments have the same number, would all err
 * alike and their mean would keep the error. */
static inline uint64_t elv_delta_seed(uint64_t run_seed, uint32_t client, uint32_t assignment)
{
    return run_seed ^ ((uint64_t)client << 32 | assignment);
}

void elv_delta_begin(struct elv_delta *d, const struct elv_delta_cfg *cfg);
/* `trained` is the vector already, as a run left it: only chunks and digest are made again. What it
 * was shortened by is not known any more, and lost. */
void elv_delta_resume(struct elv_delta *d, const struct elv_delta_cfg *cfg);

/* `budget` slices of some thousand coordinates or a few chunks. ELV_ERR_BUSY: there is more.
 * ELV_ERR_FORMAT: a weight is not finite (the base is untouched). ELV_ERR_RANGE: a value is beyond
 * the bound even after clipping; what goes beyond it only with the residual is cut to it; or the
 * codec does not let the update be as short as it must be.
 * ELV_ERR_UNSUPPORTED: no such codec. */
enum elv_err elv_delta_run(struct elv_delta *d, uint32_t budget);

/* Chunk `index` below `n_chunks`, as it travels. Cannot fail after a run that succeeded. */
void elv_delta_chunk(const struct elv_delta *d, uint32_t index, uint8_t out[ELV_CHUNK_MAX],
                     size_t *len);

/* The codec's bytes of that chunk, before they are deflated. */
void elv_delta_payload(const struct elv_delta *d, uint32_t index,
                       uint8_t out[ELV_CHUNK_PAYLOAD_MAX], size_t *len);

#ifdef __cplusplus
}
#endif
#endif
