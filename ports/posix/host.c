/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/host.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"

enum elv_err elv_host_init(struct elv_host *h, struct elv_node node, struct elv_clock clock)
{
    memset(h, 0, sizeof *h);
    h->node = node;
    h->clock = clock;
    const size_t n = node.actions_max > 0 ? node.actions_max : 1;
    h->actions = calloc(n, sizeof *h->actions);
    h->stores = calloc(n, sizeof *h->stores);
    if (h->actions == NULL || h->stores == NULL) {
        elv_host_free(h);
        return ELV_ERR_MEMORY;
    }
    return ELV_OK;
}

void elv_host_wire(struct elv_host *h, struct elv_net net, struct elv_store store,
                   struct elv_workers *workers)
{
    h->net = net;
    h->store = store;
    h->workers = workers;
}

/* The node is promised a time that never goes back, whatever the clock is. */
static elv_time_us read_clock(struct elv_host *h)
{
    const elv_time_us now = h->clock.now(h->clock.self);
    if (now > h->now)
        h->now = now;
    return h->now;
}

static void make_room(struct elv_host *h)
{
    if (h->n_waiting < h->waiting_cap)
        return;
    ELV_ASSERT(h->waiting_cap < ELV_HOST_WAITING_MAX);
    const uint32_t cap = h->waiting_cap == 0 ? 16 : h->waiting_cap * 2;
    struct elv_host_waiting *grown = realloc(h->waiting, cap * sizeof *grown);
    ELV_ASSERT(grown != NULL);
    h->waiting = grown;
    h->waiting_cap = cap;
}

static struct elv_bytes copy(uint8_t *to, struct elv_bytes from)
{
    if (from.len > 0)
        memcpy(to, from.at, from.len);
    return (struct elv_bytes){.at = to, .len = from.len};
}

/* Keeps an event for later. The bodies are the port's and gone when it returns, so they move. */
static void defer(struct elv_host *h, const struct elv_event *ev)
{
    make_room(h);
    struct elv_host_waiting *w = &h->waiting[h->n_waiting++];
    const size_t request = ev->request.body.len, response = ev->response.body.len;
    w->ev = *ev;
    w->body = NULL;
    if (request + response > 0) {
        w->body = malloc(request + response);
        ELV_ASSERT(w->body != NULL);
        w->ev.request.body = copy(w->body, ev->request.body);
        w->ev.response.body = copy(w->body + request, ev->response.body);
    }
    h->stats.deferred++;
    if (h->n_waiting - h->waiting_at > h->stats.waiting_max)
        h->stats.waiting_max = h->n_waiting - h->waiting_at;
}

static void report_stored(struct elv_host *h, const struct elv_action *stores, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (stores[i].id != 0)
            defer(h, &(struct elv_event){.kind = ELV_EV_STORED, .id = stores[i].id});
    }
}

static void carry_out_stores(struct elv_host *h, const struct elv_actions *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        if (out->at[i].kind == ELV_DO_STORE)
            h->stores[n++] = out->at[i];
    }
    if (n == 0)
        return;
    if (h->store.submit != NULL)
        h->store.submit(h->store.self, h->stores, n);
    else
        report_stored(h, h->stores, n);
}

static void carry_out(struct elv_host *h, const struct elv_action *a)
{
    switch (a->kind) {
    case ELV_DO_STORE:
        return; /* done, all together */
    case ELV_DO_COMPUTE:
        ELV_ASSERT(h->workers != NULL);
        elv_workers_start(h->workers, a->id, &a->compute);
        return;
    case ELV_DO_CANCEL:
        ELV_ASSERT(h->workers != NULL);
        elv_workers_cancel(h->workers, a->id);
        return;
    case ELV_DO_END:
        h->ended = true;
        h->exit_code = a->id;
        return;
    case ELV_DO_SEND:
    case ELV_DO_FORGET:
    case ELV_DO_RELINK:
    case ELV_DO_REPLY:
    case ELV_DO_NOTIFY:
        if (h->net.act != NULL)
            h->net.act(h->net.self, a);
        return;
    }
}

static void turn(struct elv_host *h, struct elv_event *ev)
{
    if (h->ended)
        return;
    struct elv_actions out = {.at = h->actions, .cap = h->node.actions_max};
    ev->now = read_clock(h);
    h->node.step(h->node.self, ev, &out);
    const elv_time_us step_us = read_clock(h) - ev->now;
    ELV_ASSERT(out.n <= out.cap);

    carry_out_stores(h, &out);
    for (uint32_t i = 0; i < out.n; i++)
        carry_out(h, &out.at[i]);

    const elv_time_us turn_us = read_clock(h) - ev->now;
    h->stats.steps++;
    if (step_us > h->stats.step_max_us)
        h->stats.step_max_us = step_us;
    if (turn_us > h->stats.turn_max_us)
        h->stats.turn_max_us = turn_us;
}

static void event(void *self, struct elv_event *ev)
{
    struct elv_host *h = self;
    if (h->turning) {
        defer(h, ev);
        return;
    }
    h->turning = true;
    turn(h, ev);
    for (; h->waiting_at < h->n_waiting; h->waiting_at++) {
        struct elv_host_waiting w = h->waiting[h->waiting_at]; /* the array may move meanwhile */
        turn(h, &w.ev);
        free(w.body);
    }
    h->waiting_at = h->n_waiting = 0;
    h->turning = false;
}

struct elv_sink elv_host_sink(struct elv_host *h)
{
    return (struct elv_sink){.self = h, .event = event};
}

void elv_host_tick(struct elv_host *h) { event(h, &(struct elv_event){.kind = ELV_EV_TICK}); }

void elv_host_stop(struct elv_host *h) { event(h, &(struct elv_event){.kind = ELV_EV_STOP}); }

elv_time_us elv_host_deadline(const struct elv_host *h)
{
    return h->ended ? ELV_NEVER : h->node.deadline(h->node.self);
}

void elv_host_free(struct elv_host *h)
{
    free(h->actions);
    free(h->stores);
    free(h->waiting);
    h->actions = h->stores = NULL;
    h->waiting = NULL;
    h->waiting_cap = 0;
}
