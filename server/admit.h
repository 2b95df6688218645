/* SPDX-License-Identifier: Apache-2.0 */
/* server/admit.h - may this chunk, join or claim come in? Pure checks of what a peer sent. */
#ifndef ELV_SERVER_ADMIT_H
#define ELV_SERVER_ADMIT_H

#include "../common/msg.h"
#include "job.h"

struct elv_chunk_rules {
    uint8_t codec;     /* the one assigned */
    uint32_t bound;    /* chunks at most */
    uint32_t n_params; /* coordinates in all */
    bool inflates;     /* deflated chunks can be read */
};

/* What a single chunk shows; whether they fit together is seen at the commit. `index` is the one in
 * the request's path. ELV_REASON_NONE: it may come in. */
enum elv_reason elv_admit_chunk(const struct elv_chunk_rules *rules, const struct elv_chunk *c,
                                uint32_t index);

struct elv_join_rules {
    const struct elv_job *job;
    const uint8_t *manifest; /* [8] */
    struct elv_text software_min;
};

/* Chooses wire version and codec into `*out`. */
enum elv_reason elv_admit_join(const struct elv_join_rules *rules, const struct elv_join *join,
                               struct elv_joined *out);

/* Compares "name/1.2.3" by its numbers; another name, or none, is old. An empty minimum accepts
 * all. */
bool elv_software_is_old(struct elv_text software, struct elv_text least);

#endif
