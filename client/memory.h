/* SPDX-License-Identifier: Apache-2.0 */
/* client/memory.h - how a client node cuts up the block it was given.
 *
 *     | messages | chunks to send | flights | residual? | velocity? | base | fresh | hashes |
 * starts | plan? | bitmap | scratch | trainer |
 *
 * The first three are cut when the node is made, the rest when it has read a manifest; the trainer
 * gets all that is left. Run over a counting arena, the same functions tell the size beforehand. */
#ifndef ELV_CLIENT_MEMORY_H
#define ELV_CLIENT_MEMORY_H

#include "../common/arena.h"
#include "../common/codec.h"
#include "../common/model.h"
#include "../common/msg.h"
#include "transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_memory {
    uint8_t *message;           /* [ELV_MSG_MAX] the control message of this step */
    uint8_t *chunks;            /* [burst][ELV_CHUNK_MAX] the chunks of this step */
    struct elv_flight *flights; /* [window] the chunks on their way */
    void *residual;             /* f32 or binary16 [n_shared]; NULL: none is kept */
    float *velocity;            /* f32 [n_shared]; NULL: no momentum correction */
    float *base;                /* f32 [n_params] the version held */
    float *fresh;               /* f32 [n_params] being fetched, then trained, then the update */
    uint8_t *hash;              /* [hash_cap][ELV_CHUNK_HASH_LEN] of a full body */
    uint32_t hash_cap;
    uint32_t *first; /* [first_cap] where each chunk of the update starts */
    uint32_t first_cap;
    struct elv_codec_plan *plan; /* of an update; NULL: no codec of the job needs one */
    uint64_t *bitmap;            /* of the body on its way, either direction */
    float *values;               /* f32 [ELV_PACK_VALUES] */
    uint8_t *bytes;              /* [ELV_CHUNK_PAYLOAD_MAX] */
};

/* What a node needs whatever the run. */
void elv_memory_fixed(struct elv_arena *a, uint32_t burst, uint32_t window, struct elv_memory *m);

/* Whether any of this run's codecs is better with a residual. */
bool elv_memory_feeds_back(const struct elv_manifest *manifest);

/* What this run needs besides, but for the trainer; `feedback`: with a residual, if the run wants
 * one. ELV_ERR_SPACE: it does not fit, or no machine could address it. */
enum elv_err elv_memory_run(struct elv_arena *a, const struct elv_manifest *manifest,
                            const struct elv_model *model, bool feedback, struct elv_memory *m);

#ifdef __cplusplus
}
#endif
#endif
