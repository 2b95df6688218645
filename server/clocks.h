/* SPDX-License-Identifier: Apache-2.0 */
/* server/clocks.h - how many updates each client has delivered, and who is too far ahead.
 *
 * A client's clock counts its updates. Clients with the same clock share a bucket, the buckets are
 * linked in rising order, and a mark stands at the first that is more than `bound` ahead of the
 * slowest. A clock that ticks moves its client one bucket up; when the lowest bucket empties, the
 * mark moves up and frees the parked clients it passes. So every operation is O(1), amortised,
 * however many clients there are and however far apart they run.
 *
 * A newcomer starts at the minimum and counts from when it first asks for work; but while somebody
 * is parked, who would then have to wait for it, too, only from its first update. Who leaves, or
 * has not delivered for long while it is not parked, counts no more; it comes back as a newcomer,
 * but if it had delivered nothing since it last came by asking, it has to deliver first. So whoever
 * takes work and never delivers, by bad luck or on purpose, holds others up once, not time and
 * again.
 *
 * The whole is a policy's state: it starts as zeros, holds no pointers and cannot fail. Clients are
 * known by row, below `clients_max`. */
#ifndef ELV_SERVER_CLOCKS_H
#define ELV_SERVER_CLOCKS_H

#include "sync.h"

struct elv_clock_list {
    uint32_t first, last; /* rows + 1; 0: none */
};

enum elv_clock_place { ELV_CLOCK_AWAY, ELV_CLOCK_RUNS, ELV_CLOCK_PARKED, ELV_CLOCK_FREED };

/* A client, and a bucket: which bucket lies in which row means nothing. */
struct elv_clock {
    elv_time_us heard; /* a client that runs came, was freed or delivered */
    uint32_t client;
    enum elv_clock_place place;
    bool owes;             /* it came by asking, and has not delivered since */
    uint32_t bucket;       /* its row + 1 */
    uint32_t next, prev;   /* in the list that `place` says */
    uint32_t older, newer; /* by `heard`, of those that run */

    uint32_t value, n;                  /* the bucket's: clock, clients */
    uint32_t higher, lower;             /* buckets */
    struct elv_clock_list runs, parked; /* its clients that are not freed */
};

/* The fields belong to clocks.c. */
struct elv_clocks {
    uint32_t bound;
    uint32_t min; /* the slowest client's; stays when the last one leaves */
    uint32_t lowest, highest, mark;
    uint32_t free, n_fresh; /* buckets not in use: a list through `higher`, then rows from here */
    struct elv_clock_list freed;
    uint32_t n_parked;
    uint32_t oldest, newest;
    struct elv_clock at[];
};

size_t elv_clocks_len(uint32_t clients_max);
/* `bound` is the same each time. */
struct elv_clocks *elv_clocks_of(void *state, uint32_t bound);

/* The client asks for work. False: it does not count before it has delivered. */
bool elv_clocks_enter(struct elv_clocks *c, struct elv_sync_client who, elv_time_us now);
/* The client has delivered: it counts, runs, and its clock is one more. */
void elv_clocks_tick(struct elv_clocks *c, struct elv_sync_client who, elv_time_us now);
void elv_clocks_leave(struct elv_clocks *c, uint32_t row);

/* Whether it counts. The others are for those that do. */
bool elv_clocks_has(const struct elv_clocks *c, uint32_t row);
struct elv_sync_client elv_clocks_client(const struct elv_clocks *c, uint32_t row);
uint32_t elv_clocks_value(const struct elv_clocks *c, uint32_t row);
uint32_t elv_clocks_ahead(const struct elv_clocks *c, uint32_t row); /* of the slowest */
bool elv_clocks_leads(const struct elv_clocks *c, uint32_t row);     /* nobody is ahead of it */

/* One of the slowest that run. False: none does. */
bool elv_clocks_slowest(const struct elv_clocks *c, uint32_t *row);

/* It waits until it is no more than `bound` ahead. Again: nothing happens. */
void elv_clocks_park(struct elv_clocks *c, uint32_t row);
bool elv_clocks_is_parked(const struct elv_clocks *c, uint32_t row);
/* It waits no longer, whatever its clock. Again: nothing happens. */
void elv_clocks_resume(struct elv_clocks *c, uint32_t row, elv_time_us now);
/* The next that need wait no longer; it runs from now on. */
bool elv_clocks_next(struct elv_clocks *c, struct elv_sync_client *who, elv_time_us now);

/* When somebody that runs will not have delivered for `patience`; ELV_NEVER. */
elv_time_us elv_clocks_silent_at(const struct elv_clocks *c, elv_time_us patience);
/* The next of them makes itself felt no more; false: none. */
bool elv_clocks_drop_silent(struct elv_clocks *c, elv_time_us patience, elv_time_us now,
                            uint32_t *row);

#endif
