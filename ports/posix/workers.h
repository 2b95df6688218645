/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/workers.h - where a node's COMPUTE actions run.
 *
 * Work is done in slices by calling the node's `run`: on threads, or with none inside the source's
 * `ready`, one slice between two polls. Unfinished work goes to the end of the queue, so a long
 * evaluation does not hold up short work. The budget of a slice doubles and halves until a slice
 * takes about `slice_us`. Results do not depend on any of this.
 *
 * `start`, `cancel` and the source belong to the node's thread; COMPUTED events are delivered on it
 * too, never inside `start` or `cancel`. */
#ifndef ELV_PORTS_POSIX_WORKERS_H
#define ELV_PORTS_POSIX_WORKERS_H

#include "common/port.h"

struct elv_workers_cfg {
    struct elv_node node;
    struct elv_clock clock;
    struct elv_sink sink;
    uint32_t n_threads;   /* 0: no threads */
    elv_time_us slice_us; /* what a slice should take; 0: 20 ms on threads, 5 ms without */
};

struct elv_workers_stats {
    uint64_t works;  /* ended, in whatever way */
    uint64_t slices; /* calls of `run` */
    elv_time_us slice_max_us;
    elv_time_us busy_us; /* in all slices together */
    uint32_t waiting;    /* started and not ended */
};

struct elv_workers;

/* Starts the threads. ELV_ERR_MEMORY; ELV_ERR_IO: the system gives no descriptor or thread. */
enum elv_err elv_workers_open(struct elv_workers **w, const struct elv_workers_cfg *cfg);

/* `id` is not in use by work that has not ended. What `work` points to stays until it has. */
void elv_workers_start(struct elv_workers *w, uint32_t id, const struct elv_compute *work);

/* Work not yet running, or between two slices, ends with ELV_ERR_CANCELLED; a slice under way is
 * waited for and may still finish the work. An id that is not at work is ignored: its COMPUTED is
 * already on the way. */
void elv_workers_cancel(struct elv_workers *w, uint32_t id);

struct elv_source elv_workers_source(struct elv_workers *w);
void elv_workers_stats(struct elv_workers *w, struct elv_workers_stats *out);

/* Waits for the slices under way; work that has not ended never will. NULL is fine. */
void elv_workers_close(struct elv_workers *w);

#endif
