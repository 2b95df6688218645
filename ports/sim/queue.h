/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/queue.h - what happens next: a heap of things to come and a heap of node deadlines.
 *
 * Both order by time; ties in the first go by the order of pushing and in the second by index, so
 * the order of events never depends on memory. Every operation costs O(log n). */
#ifndef ELV_PORTS_SIM_QUEUE_H
#define ELV_PORTS_SIM_QUEUE_H

#include <stdbool.h>

#include "common/node.h"

struct elv_sim_entry {
    elv_time_us at;
    uint64_t seq;
    uint32_t kind; /* meaning of the three is the caller's */
    uint32_t arg;
    void *what;
};

struct elv_sim_queue { /* zero: empty */
    struct elv_sim_entry *heap;
    uint32_t n, cap, peak;
    uint64_t seq;
};

void elv_sim_queue_push(struct elv_sim_queue *q, elv_time_us at, uint32_t kind, uint32_t arg,
                        void *what);
/* NULL when empty. */
const struct elv_sim_entry *elv_sim_queue_first(const struct elv_sim_queue *q);
struct elv_sim_entry elv_sim_queue_pop(struct elv_sim_queue *q); /* not empty */
void elv_sim_queue_free(struct elv_sim_queue *q);

/* One deadline per index, changed in place. */
struct elv_sim_timers { /* zero: none */
    elv_time_us *due;   /* [n] by index; ELV_NEVER: not in the heap */
    uint32_t *place;    /* [n] by index: where in the heap */
    uint32_t *heap;     /* [n_armed] indices */
    uint32_t n, n_armed, cap;
};

uint32_t elv_sim_timers_add(struct elv_sim_timers *t); /* a new index, not armed */
void elv_sim_timers_set(struct elv_sim_timers *t, uint32_t index, elv_time_us due);
/* The earliest deadline and whose it is; ELV_NEVER: none. */
elv_time_us elv_sim_timers_first(const struct elv_sim_timers *t, uint32_t *index);
void elv_sim_timers_free(struct elv_sim_timers *t);

/* Memory for the simulated world: a run that cannot have it stops. */
void *elv_sim_alloc(size_t len);                      /* zeroed */
void *elv_sim_grow(void *old, size_t n, size_t size); /* not zeroed */
/* What stopping means to a program: `end` does not return, and may be called by any thread. Without
 * it an assertion fails. To be said before the first world is made. */
void elv_sim_on_no_memory(void (*end)(void));

#endif
