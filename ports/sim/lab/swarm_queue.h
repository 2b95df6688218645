/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/swarm_queue.h - what is to happen in a swarm, earliest first.
 *
 * A heap with four children per entry, so that siblings share a cache line. Ties go by client, then
 * by what it is, so the order never depends on memory or on when something was pushed. */
#ifndef ELV_PORTS_SIM_LAB_SWARM_QUEUE_H
#define ELV_PORTS_SIM_LAB_SWARM_QUEUE_H

#include "common/node.h"

struct elv_swarm_due {
    elv_time_us at;
    uint32_t who;  /* client's place */
    uint32_t what; /* meaning is the caller's */
};

struct elv_swarm_queue { /* zero: empty */
    struct elv_swarm_due *heap;
    uint32_t n, cap;
};

void elv_swarm_queue_push(struct elv_swarm_queue *q, struct elv_swarm_due e);
/* ELV_NEVER: empty. */
elv_time_us elv_swarm_queue_first(const struct elv_swarm_queue *q);
struct elv_swarm_due elv_swarm_queue_pop(struct elv_swarm_queue *q); /* not empty */
void elv_swarm_queue_free(struct elv_swarm_queue *q);

#endif
