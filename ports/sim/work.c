/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/work.c - COMPUTE and CANCEL: slices of work, how long they take, and what is gathered
 * to be done together. */
#include <stdlib.h>

#include "ports/sim/world_parts.h"

/* What is gathered. */

static bool is_gathered(const struct elv_sim *w, const struct work *k)
{
    const struct sim_node *n = w->nodes[k->node];
    const uint32_t kind = w->cfg.gather.kind;
    return kind != 0 && n->client && n->cfg.slice == 0 && k->compute.kind == kind;
}

static void gather(struct elv_sim *w, struct work *k)
{
    k->gathered = true;
    k->before = w->gathered_last;
    *(k->before != NULL ? &k->before->after : &w->gathered) = k;
    w->gathered_last = k;
}

static void ungather(struct elv_sim *w, struct work *k)
{
    if (!k->gathered)
        return;
    *(k->before != NULL ? &k->before->after : &w->gathered) = k->after;
    *(k->after != NULL ? &k->after->before : &w->gathered_last) = k->before;
    k->before = k->after = NULL;
    k->gathered = false;
}

static void take_piece(struct elv_sim *w, struct work *k, uint32_t at)
{
    if (at == w->pieces_cap) {
        w->pieces_cap = at == 0 ? 16 : 2 * at;
        w->pieces = elv_sim_grow(w->pieces, w->pieces_cap, sizeof *w->pieces);
        w->piece_works = elv_sim_grow(w->piece_works, w->pieces_cap, sizeof(struct work *));
    }
    ungather(w, k);
    w->pieces[at] = (struct elv_sim_piece){.node = k->node, .work = &k->compute};
    w->piece_works[at] = k;
}

static enum elv_err whole(const struct sim_node *n, const struct elv_compute *work)
{
    enum elv_err err = ELV_ERR_BUSY;
    while (err == ELV_ERR_BUSY)
        err = n->node.run(n->node.self, work, UINT32_MAX);
    return err;
}

/* `first` is due. */
static void do_gathered(struct elv_sim *w, struct work *first)
{
    const struct elv_sim_gather *g = &w->cfg.gather;
    uint32_t n = 0;
    take_piece(w, first, n++);
    while (w->gathered != NULL && (g->most == 0 || n < g->most))
        take_piece(w, w->gathered, n++);
    w->stats.gathered++;
    if (g->work != NULL)
        g->work(g->self, w->pieces, n);
    for (uint32_t i = 0; i < n; i++) {
        struct elv_sim_piece *p = &w->pieces[i];
        if (g->work == NULL)
            p->err = whole(w->nodes[p->node], p->work);
        w->piece_works[i]->err = p->err;
    }
}

void sim_work_lost(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    for (struct work *k = n->works; k != NULL; k = k->next) {
        k->dead = true;
        ungather(w, k);
    }
    n->works = NULL;
}

/* One work. */

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
    ungather(w, k);
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
    if (n->cfg.slice > 0) {
        units = 1 + elv_rng_below(&n->device, n->cfg.slice);
        k->err = n->node.run(n->node.self, &k->compute, units);
    } else if (is_gathered(w, k)) {
        gather(w, k);
        k->err = ELV_OK;
    } else {
        k->err = whole(n, &k->compute);
    }
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
        if (k->gathered)
            do_gathered(w, k);
        computed(w, k);
    }
}
