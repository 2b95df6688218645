/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_vandal.h - a client that holds a key and means no good.
 *
 * It joins and takes work like any other, then sends what an honest client never would: values that
 * are not finite or beyond the bound, ranges that overlap or leave holes, chunks of other attempts,
 * wrong digests and counts, absurd weights, commits of assignments it never had, and noise; or it
 * keeps silent, or leaves and comes back. Now and then it sends something valid. It never waits for
 * an answer. */
#ifndef ELV_TESTS_SIM_VANDAL_H
#define ELV_TESTS_SIM_VANDAL_H

#include "common/chunk.h"
#include "common/msg.h"
#include "common/rng.h"

#define VANDAL_SENDS_MAX 8u /* requests per step */

struct vandal {
    struct elv_rng rng;
    uint32_t n_params;
    uint8_t manifest[8];
    uint32_t last_id, forgotten, assignment, assignment_before, next_chunk;
    uint32_t mischief; /* of this assignment */
    uint64_t nonce;
    bool told; /* an assignment is there */
    bool over; /* the job has ended */
    elv_time_us next_us, heard_us;
    uint8_t bodies[VANDAL_SENDS_MAX][ELV_CHUNK_MAX];
};

/* `n_params`: shared coordinates of the model it attacks. */
void vandal_init(struct vandal *v, uint64_t seed, uint32_t n_params, const uint8_t manifest[8]);
struct elv_node vandal_node(struct vandal *v);

#endif
