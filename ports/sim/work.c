/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/work.c - COMPUTE and CANCEL: slices of work, and how long they take. */
#include <stdlib.h>

#include "ports/sim/world_parts.h"

void sim_compute(struct elv_sim *w, uint32_t node, const struct elv_action *a)
{
    struct sim_node *n = w->nodes[node];
    for (const struct work *k = n->works; k != NULL; k = k->next)
        if (k->id == a->id) {
            sim_break(w, "COMPUTE with the id of one under way");
            return;
        }
    struct work *k = elv_sim_alloc(sizeof *k);
    *k = (struct work){.compute = a->compute, .node = node, .id = a->id, .next = n->works};
    n->works = k;
    elv_sim_queue_push(&w->queue, w->now, AT_SLICE, 0, k);
}

void sim_cancel(struct elv_sim *w, uint32_t node, uint32_t id)
{
    struct sim_node *n = w->nodes[node];
    struct work *k = n->works;
    while (k != NULL && k->id != id)
        k = k->next;
    if (k == NULL || k->cancelled)
        return; /* its end is on the way */
    k->cancelled = true;
    if (n->cfg.slice == 0 && k->finished) /* it was all done at the start; end it here */
        elv_sim_queue_push(&w->queue, w->now, AT_COMPUTED, 0, k);
}

static void take_work_out(struct sim_node *n, struct work *k)
{
    struct work **at = &n->works;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
}

static void computed(struct elv_sim *w, struct work *k)
{
    struct sim_node *n = w->nodes[k->node];
    struct elv_event ev = {.kind = ELV_EV_COMPUTED, .id = k->id, .err = k->err};
    const uint32_t node = k->node;
    take_work_out(n, k);
    free(k);
    sim_deliver(w, node, &ev);
}

static elv_time_us cost(struct sim_node *n, const struct work *k, uint32_t units)
{
    const struct elv_sim_device *d = &n->cfg.device;
    return d->cost == NULL ? 0 : d->cost(d->self, k->node, &k->compute, units, &n->device);
}

static void slice(struct elv_sim *w, struct work *k)
{
    struct sim_node *n = w->nodes[k->node];
    if (k->cancelled) {
        k->err = ELV_ERR_CANCELLED;
        computed(w, k);
        return;
    }
    uint32_t units = UINT32_MAX;
    if (n->cfg.slice > 0)
        units = 1 + elv_rng_below(&n->device, n->cfg.slice);
    do
        k->err = n->node.run(n->node.self, &k->compute, units);
    while (k->err == ELV_ERR_BUSY && n->cfg.slice == 0);
    k->finished = k->err != ELV_ERR_BUSY;
    elv_sim_queue_push(&w->queue, w->now + cost(n, k, units), k->finished ? AT_COMPUTED : AT_SLICE,
                       0, k);
}

/* A cancelled work of a node without slices is in the queue twice: at the moment of cancelling, and
 * at its old end, where only its memory is left to free. */
void sim_work_event(struct elv_sim *w, const struct elv_sim_entry *e)
{
    struct work *k = e->what;
    struct sim_node *n = w->nodes[k->node];
    const bool twice = k->cancelled && k->finished && n->cfg.slice == 0;
    if (k->dead) {
        if (twice)
            k->cancelled = false; /* the other entry frees it */
        else
            free(k);
        return;
    }
    if (e->kind == AT_SLICE) {
        slice(w, k);
    } else if (twice) {
        struct elv_event ev = {.kind = ELV_EV_COMPUTED, .id = k->id, .err = ELV_ERR_CANCELLED};
        const uint32_t node = k->node;
        take_work_out(n, k);
        k->dead = true;
        k->cancelled = false;
        sim_deliver(w, node, &ev);
    } else {
        computed(w, k);
    }
}
