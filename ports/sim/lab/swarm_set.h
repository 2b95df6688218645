/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/swarm_set.h - a set of clients in which the i-th smallest is found without a walk.
 *
 * Source: Fenwick, "A New Data Structure for Cumulative Frequency Tables", Software: Practice and
 * Experience 24, 1994. */
#ifndef ELV_PORTS_SIM_LAB_SWARM_SET_H
#define ELV_PORTS_SIM_LAB_SWARM_SET_H

#include <stdint.h>

struct elv_swarm_set {
    uint32_t *tree; /* [cap + 1] */
    uint32_t n, cap;
    uint32_t top; /* the largest power of two up to cap */
};

/* Members are numbers below `cap`; none at first. */
void elv_swarm_set_init(struct elv_swarm_set *s, uint32_t cap);
void elv_swarm_set_free(struct elv_swarm_set *s);
/* Adds one that is not in it; O(log cap), as all that follow. */
void elv_swarm_set_add(struct elv_swarm_set *s, uint32_t member);
void elv_swarm_set_remove(struct elv_swarm_set *s, uint32_t member); /* is in it */
/* The member that `place` others are smaller than; place is below n. */
uint32_t elv_swarm_set_at(const struct elv_swarm_set *s, uint32_t place);

#endif
