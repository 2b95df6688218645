/* SPDX-License-Identifier: Apache-2.0 */
/* server/barrier.h - with which of its next updates does each client come to the barrier?
 *
 * Predicts the updates of clients from their last one and their interval, and lets the planner
 * (server/zipline.h) choose one of each so that first and last are close together. Few clients are
 * planned one by one. In a large fleet near coincidences are rare, so there tiers of similar pace
 * (server/tiers.h) are planned in their place, and the clients of a tier aim at one moment, each
 * with the update predicted nearest to it.
 *
 * A client that should have delivered by now is expected now. No barrier can be sooner than the
 * first moment possible with the slowest, so everybody's lookahead reaches at least that far. */
#ifndef ELV_SERVER_BARRIER_H
#define ELV_SERVER_BARRIER_H

#include <stddef.h>

#include "../common/node.h"

struct elv_barrier_cfg {
    uint32_t lookahead; /* updates of each client, from the next one */
    uint32_t r_min;     /* no sooner than this one; 1 to lookahead */
    uint32_t alone_max; /* clients planned one by one; more: as tiers */
    uint32_t tiers;     /* 1 or more if there can be more clients than alone_max */
};

struct elv_barrier_client {
    elv_time_us pushed;   /* its last update; not before the clients last started together */
    elv_time_us interval; /* 1 to ELV_ZIP_INTERVAL_MAX */
    uint32_t row;         /* whatever the caller knows it by */
    uint32_t updates;     /* out: as many from now, then it waits */
    uint32_t colour;      /* the planner's */
};

/* Bytes of scratch, aligned to 8, for at most n clients. */
size_t elv_barrier_scratch_len(const struct elv_barrier_cfg *cfg, uint32_t n);

/* `began` is when the clients last started together. Writes the moment when all should have come
 * to `*barrier`. False, and nothing is planned, without clients. The cost is linear in lookahead
 * times clients. */
bool elv_barrier_plan(const struct elv_barrier_cfg *cfg, struct elv_barrier_client *at, uint32_t n,
                      elv_time_us began, elv_time_us now, void *scratch, elv_time_us *barrier);

#endif
