/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/host.h - one node at home: steps it and carries its actions out.
 *
 * Ports deliver events through the host's sink; the host fills in the time, steps the node, hands
 * its STORE actions to the store as one transaction, then the others to the net and the workers in
 * their order, all before the call returns. So what a step stores is with the store before any
 * answer of the same step leaves. A port that delivers an event while the host carries out an
 * action does not re-enter the node: the event is copied, bodies included, and stepped right after.
 *
 * Everything happens on the node's own thread. The struct is the caller's; init allocates its
 * action arrays and `elv_host_free` releases them. */
#ifndef ELV_PORTS_POSIX_HOST_H
#define ELV_PORTS_POSIX_HOST_H

#include "common/port.h"
#include "ports/posix/workers.h"

#define ELV_HOST_WAITING_MAX 4096u /* events brought by the actions of one step */

struct elv_host_stats {
    uint64_t steps;
    elv_time_us step_max_us; /* the longest single step of the node */
    elv_time_us turn_max_us; /* the longest step with its actions carried out */
    uint64_t deferred;       /* events that came while actions were being carried out */
    uint32_t waiting_max;    /* the most of them at one time */
};

struct elv_host_waiting {
    struct elv_event ev;
    uint8_t *body; /* what the event's bodies view; owned */
};

struct elv_host {
    struct elv_node node;
    struct elv_clock clock;
    struct elv_net net;
    struct elv_store store;
    struct elv_workers *workers;
    struct elv_host_stats stats;
    bool ended; /* the node has asked for END; nothing reaches it any more */
    uint32_t exit_code;

    /* host.c's own */
    struct elv_action *actions, *stores;
    struct elv_host_waiting *waiting;
    uint32_t waiting_at, n_waiting, waiting_cap;
    elv_time_us now;
    bool turning;
};

/* `node` and `clock` are values whose `self` must outlive the host. ELV_ERR_MEMORY. */
enum elv_err elv_host_init(struct elv_host *h, struct elv_node node, struct elv_clock clock);

/* For the ports; valid from init on. */
struct elv_sink elv_host_sink(struct elv_host *h);

/* Where actions go, before the first event. A net without `act` drops what it is given (tests). A
 * store without `submit` keeps nothing and reports every STORE as done: a client without a state
 * directory starts afresh when it is restarted. `workers` may be NULL if the node never computes.
 */
void elv_host_wire(struct elv_host *h, struct elv_net net, struct elv_store store,
                   struct elv_workers *workers);

/* Steps the node with TICK or STOP. */
void elv_host_tick(struct elv_host *h);
void elv_host_stop(struct elv_host *h);

/* When the node wants a TICK, or ELV_NEVER. */
elv_time_us elv_host_deadline(const struct elv_host *h);

void elv_host_free(struct elv_host *h);

#endif
