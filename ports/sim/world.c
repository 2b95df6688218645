/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/world.h"

#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/world_parts.h"

void *sim_life(uint32_t life) { return (void *)(uintptr_t)life; }

void sim_break(struct elv_sim *w, const char *how)
{
    if (w->broken == NULL)
        w->broken = how;
}

/* A node's own clock. */
static elv_time_us local(const struct sim_node *n, elv_time_us now)
{
    const elv_time_us t = now - n->base;
    return n->origin + t + t * n->cfg.drift_ppm / (elv_time_us)ELV_SIM_PPM;
}

/* The first moment of the world at which a node's clock shows `then`. */
static elv_time_us moment(const struct sim_node *n, elv_time_us then)
{
    const elv_time_us centuries = 3000000000000000; /* keeps the products below 2^63 */
    if (then == ELV_NEVER || then - n->origin > centuries)
        return ELV_NEVER;
    if (then <= n->origin)
        return n->base;
    const elv_time_us t = then - n->origin, ppm = n->cfg.drift_ppm;
    elv_time_us at = n->base + t - t * ppm / ((elv_time_us)ELV_SIM_PPM + ppm);
    while (at > n->base && local(n, at - 1) >= then) /* a rounding error away */
        at--;
    while (local(n, at) < then)
        at++;
    return at;
}

static void arm(struct elv_sim *w, uint32_t node, bool ticked)
{
    struct sim_node *n = w->nodes[node];
    elv_time_us due = moment(n, n->node.deadline(n->node.self));
    if (due < w->now)
        due = w->now;
    n->spins = ticked && due == w->now ? n->spins + 1 : 0;
    if (n->spins > 0) {
        w->stats.spins++;
        if (n->spins > w->stats.spins_max)
            w->stats.spins_max = n->spins;
        due = w->now + 1;
    }
    elv_sim_timers_set(&w->timers, node, due);
}

static void arm_disk(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    const elv_time_us due = elv_sim_disk_due(n->cfg.disk);
    if (due == n->disk_due)
        return;
    n->disk_due = due;
    if (due != ELV_NEVER)
        elv_sim_queue_push(&w->queue, due, AT_DISK, node, NULL);
}

/* Whatever ends a node's life, its memory is not touched again. */
static void bury(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    n->up = n->doomed = false;
    n->life++;
    n->disk_due = ELV_NEVER;
    elv_sim_timers_set(&w->timers, node, ELV_NEVER);
    sim_work_lost(w, node);
    net_node_gone(w, node);
    if (n->cfg.host.gone != NULL)
        n->cfg.host.gone(n->cfg.host.self, node);
}

static void start_at(struct elv_sim *w, uint32_t node, elv_time_us when)
{
    if (when != ELV_NEVER)
        elv_sim_queue_push(&w->queue, when, AT_START, node, sim_life(w->nodes[node]->life));
}

static void crash(struct elv_sim *w, uint32_t node, struct elv_sim_crash how)
{
    struct sim_node *n = w->nodes[node];
    sim_mix(w, (uint64_t)node << 1 | how.power);
    sim_say(w, node, how.power ? "power_loss" : "crash", 0, "");
    w->stats.crashes++;
    bury(w, node);
    if (n->cfg.disk != NULL)
        elv_sim_disk_crash(n->cfg.disk, how.power);
    if (how.down_us != ELV_NEVER)
        start_at(w, node, w->now + how.down_us);
}

static void end(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    bury(w, node);
    if (n->cfg.disk != NULL)
        elv_sim_disk_flush(n->cfg.disk);
}

static void end_later(struct elv_sim *w, uint32_t node, uint32_t exit_code)
{
    struct sim_node *n = w->nodes[node];
    sim_say(w, node, "ended", exit_code, "");
    n->ended = true;
    n->exit_code = exit_code;
    if (n->cfg.linger_us == 0 || n->told_to_stop)
        end(w, node);
    else if (n->cfg.linger_us != ELV_NEVER)
        elv_sim_queue_push(&w->queue, w->now + n->cfg.linger_us, AT_END, node, sim_life(n->life));
}

/* A node without a disk keeps nothing and is told that all went well, as on POSIX. */
static void store_nowhere(struct elv_sim *w, uint32_t node, const struct elv_actions *did)
{
    for (uint32_t i = 0; i < did->n; i++)
        if (did->at[i].kind == ELV_DO_STORE && did->at[i].id != 0) {
            struct stored *s = elv_sim_alloc(sizeof *s);
            *s = (struct stored){.life = w->nodes[node]->life, .id = did->at[i].id};
            elv_sim_queue_push(&w->queue, w->now, AT_STORED, node, s);
        }
}

/* All STOREs of a step are one transaction, handed over before anything else of the step. */
static void store(struct elv_sim *w, uint32_t node, const struct elv_actions *did)
{
    struct sim_node *n = w->nodes[node];
    if (did->n > w->stores_cap) {
        w->stores_cap = 2 * did->n;
        w->stores = elv_sim_grow(w->stores, w->stores_cap, sizeof *w->stores);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < did->n; i++)
        if (did->at[i].kind == ELV_DO_STORE)
            w->stores[count++] = did->at[i];
    if (count == 0)
        return;
    if (n->cfg.disk == NULL) {
        store_nowhere(w, node, did);
        return;
    }
    const struct elv_store disk = elv_sim_disk_store(n->cfg.disk);
    disk.submit(disk.self, w->stores, count);
    arm_disk(w, node);
}

static void carry_out_one(struct elv_sim *w, uint32_t node, const struct elv_action *a)
{
    switch (a->kind) {
    case ELV_DO_SEND:
        net_send(w, node, a);
        break;
    case ELV_DO_FORGET:
        net_forget(w, node, a->id);
        break;
    case ELV_DO_RELINK:
        net_relink(w, node);
        break;
    case ELV_DO_REPLY:
        net_reply(w, node, a);
        break;
    case ELV_DO_NOTIFY:
        net_notify(w, node, a->peer);
        break;
    case ELV_DO_STORE: /* done, see `store` */
        break;
    case ELV_DO_COMPUTE:
        sim_compute(w, node, a);
        break;
    case ELV_DO_CANCEL:
        sim_cancel(w, node, a->id);
        break;
    case ELV_DO_END: /* after the others */
        break;
    }
}

/* True: the node dies before its next action. */
static bool dies(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    if (!n->doomed || n->doom.actions-- > 0)
        return false;
    crash(w, node, n->doom);
    return true;
}

static void carry_out(struct elv_sim *w, uint32_t node)
{
    const struct elv_actions *did = &w->actions;
    if (did->n == 0 || dies(w, node))
        return;
    store(w, node, did);
    for (uint32_t i = 0; i < did->n; i++) {
        if (i > 0 && dies(w, node))
            return;
        carry_out_one(w, node, &did->at[i]);
    }
    for (uint32_t i = 0; i < did->n; i++)
        if (did->at[i].kind == ELV_DO_END) {
            end_later(w, node, did->at[i].id);
            return;
        }
}

void sim_deliver(struct elv_sim *w, uint32_t node, struct elv_event *ev)
{
    struct sim_node *n = w->nodes[node];
    ELV_ASSERT(n->up && !n->stepping);
    ev->now = local(n, w->now);
    ELV_ASSERT(ev->now >= n->last_now);
    n->last_now = ev->now;
    w->actions.n = 0;
    w->actions.cap = n->node.actions_max;
    sim_log_event(w, node, ev);
    n->stepping = true;
    n->node.step(n->node.self, ev, &w->actions);
    w->stats.events++;
    if (w->actions.n > w->actions.cap) {
        sim_break(w, "more actions than actions_max");
        w->actions.n = 0;
    }
    for (uint32_t i = 0; i < w->actions.n; i++)
        sim_log_action(w, node, &w->actions.at[i]);
    if (w->cfg.watch.stepped != NULL)
        w->cfg.watch.stepped(w->cfg.watch.self, node, ev, &w->actions);
    n->stepping = false;
    const uint32_t life = n->life;
    carry_out(w, node);
    if (n->life == life)
        arm(w, node, ev->kind == ELV_EV_TICK);
}

static void start(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    if (n->cfg.odd_clock || n->starts == 0) {
        n->base = n->cfg.odd_clock ? w->now : 0;
        n->origin = n->cfg.odd_clock ? elv_sim_between(&n->device, 0, 1000000000000) : 0;
        n->last_now = 0;
    }
    const elv_time_us now = local(n, w->now);
    if (n->cfg.host.start(n->cfg.host.self, node, now, &n->node) != ELV_OK) {
        w->stats.failed_starts++;
        sim_say(w, node, "start_failed", 0, "");
        start_at(w, node, w->now + n->cfg.retry_us);
        return;
    }
    ELV_ASSERT(n->node.actions_max > 0);
    if (n->node.actions_max > w->actions_cap) {
        w->actions_cap = n->node.actions_max;
        w->actions.at = elv_sim_grow(w->actions.at, w->actions_cap, sizeof *w->actions.at);
    }
    n->up = true;
    n->ended = n->told_to_stop = false;
    n->starts++;
    w->stats.starts++;
    sim_say(w, node, "started", n->starts, "");
    sim_deliver(w, node, &(struct elv_event){.kind = ELV_EV_TICK});
}

static void disk_event(struct elv_sim *w, uint32_t node)
{
    struct sim_node *n = w->nodes[node];
    if (!n->up || n->disk_due != w->now)
        return; /* it crashed or was armed anew */
    n->disk_due = ELV_NEVER;
    const uint32_t life = n->life;
    struct elv_event ev = {.kind = ELV_EV_STORED};
    if (elv_sim_disk_poll(n->cfg.disk, &ev.id, &ev.err))
        sim_deliver(w, node, &ev);
    if (n->life == life)
        arm_disk(w, node);
}

static void stored(struct elv_sim *w, const struct elv_sim_entry *e)
{
    const struct stored s = *(const struct stored *)e->what;
    free(e->what);
    if (w->nodes[e->arg]->life == s.life)
        sim_deliver(w, e->arg, &(struct elv_event){.kind = ELV_EV_STORED, .id = s.id});
}

static bool still(const struct elv_sim *w, const struct elv_sim_entry *e)
{
    return sim_life(w->nodes[e->arg]->life) == e->what;
}

static void happen(struct elv_sim *w, const struct elv_sim_entry *e)
{
    struct call *call = e->what;
    switch (e->kind) {
    case AT_SLICE:
    case AT_COMPUTED:
        sim_work_event(w, e);
        break;
    case AT_DISK:
        disk_event(w, e->arg);
        break;
    case AT_START:
        if (still(w, e) && !w->nodes[e->arg]->up)
            start(w, e->arg);
        break;
    case AT_STOP:
        if (still(w, e) && w->nodes[e->arg]->up) {
            w->nodes[e->arg]->told_to_stop = true;
            sim_deliver(w, e->arg, &(struct elv_event){.kind = ELV_EV_STOP});
        }
        break;
    case AT_END:
        if (still(w, e))
            end(w, e->arg);
        break;
    case AT_STORED:
        stored(w, e);
        break;
    case AT_CALL:
        call->what(call->ctx, call->arg);
        free(call);
        break;
    default:
        net_event(w, e);
        break;
    }
}

static void defaults(struct elv_sim_repeat *r)
{
    if (r->first_us == 0)
        r->first_us = 2000000;
    if (r->max == 0)
        r->max = 4;
    if (r->memory_us == 0)
        r->memory_us = 247000000;
    if (r->plain_us == 0)
        r->plain_us = 145000000;
}

struct elv_sim *elv_sim_new(const struct elv_sim_cfg *cfg)
{
    struct elv_sim *w = elv_sim_alloc(sizeof *w);
    w->cfg = *cfg;
    if (w->cfg.way.job.len == 0)
        w->cfg.way = elv_wire_usual((struct elv_text){"job", 3});
    defaults(&w->cfg.repeat);
    sim_mix(w, cfg->seed);
    return w;
}

static uint32_t add(struct elv_sim *w, const struct elv_sim_node_cfg *cfg, bool client)
{
    if (w->n_nodes == w->nodes_cap) {
        w->nodes_cap = w->nodes_cap == 0 ? 16 : 2 * w->nodes_cap;
        w->nodes = elv_sim_grow(w->nodes, w->nodes_cap, sizeof(struct sim_node *));
    }
    struct sim_node *n = elv_sim_alloc(sizeof *n);
    const uint32_t node = w->n_nodes++;
    w->nodes[node] = n;
    n->cfg = *cfg;
    n->client = client;
    n->life = 1;
    n->disk_due = ELV_NEVER;
    if (n->cfg.retry_us == 0)
        n->cfg.retry_us = 1000000;
    struct elv_rng_key key = {.seed = w->cfg.seed, .client = node, .purpose = ELV_RNG_NETWORK};
    n->net = elv_rng_of(key);
    key.purpose = ELV_RNG_DEVICE;
    n->device = elv_rng_of(key);
    const uint32_t timer = elv_sim_timers_add(&w->timers);
    ELV_ASSERT(timer == node);
    start_at(w, node, cfg->start_us > w->now ? cfg->start_us : w->now);
    return node;
}

uint32_t elv_sim_add_server(struct elv_sim *w, const struct elv_sim_node_cfg *cfg)
{
    return add(w, cfg, false);
}

uint32_t elv_sim_add_client(struct elv_sim *w, const struct elv_sim_node_cfg *cfg)
{
    ELV_ASSERT(cfg->server < w->n_nodes && !w->nodes[cfg->server]->client && cfg->number > 0);
    return add(w, cfg, true);
}

elv_time_us elv_sim_next(const struct elv_sim *w)
{
    const struct elv_sim_entry *first = elv_sim_queue_first(&w->queue);
    uint32_t node = 0;
    const elv_time_us tick = elv_sim_timers_first(&w->timers, &node);
    return first != NULL && first->at < tick ? first->at : tick;
}

bool elv_sim_step(struct elv_sim *w)
{
    const struct elv_sim_entry *first = elv_sim_queue_first(&w->queue);
    uint32_t node = 0;
    const elv_time_us tick = elv_sim_timers_first(&w->timers, &node);
    if (w->broken != NULL || (first == NULL && tick == ELV_NEVER))
        return false;
    if (first != NULL && first->at <= tick) {
        const struct elv_sim_entry e = elv_sim_queue_pop(&w->queue);
        w->now = e.at;
        happen(w, &e);
    } else {
        w->now = tick;
        sim_deliver(w, node, &(struct elv_event){.kind = ELV_EV_TICK});
    }
    return w->broken == NULL;
}

bool elv_sim_run(struct elv_sim *w, elv_time_us until)
{
    for (;;) { /* ends: time passes, or a node spins and each spin costs a microsecond */
        const elv_time_us next = elv_sim_next(w);
        if (next > until && w->broken == NULL) {
            w->now = until > w->now ? until : w->now;
            return next != ELV_NEVER;
        }
        if (!elv_sim_step(w))
            return false;
    }
}

void elv_sim_at(struct elv_sim *w, elv_time_us when, void (*what)(void *ctx, uint32_t arg),
                void *ctx, uint32_t arg)
{
    struct call *call = elv_sim_alloc(sizeof *call);
    *call = (struct call){.what = what, .ctx = ctx, .arg = arg};
    elv_sim_queue_push(&w->queue, when > w->now ? when : w->now, AT_CALL, 0, call);
}

void elv_sim_crash(struct elv_sim *w, uint32_t node, struct elv_sim_crash how)
{
    struct sim_node *n = w->nodes[node];
    if (!n->up)
        return;
    if (how.actions == 0 && !n->stepping) {
        crash(w, node, how);
        return;
    }
    n->doomed = true;
    n->doom = how;
}

void elv_sim_start(struct elv_sim *w, uint32_t node) { start_at(w, node, w->now); }

void elv_sim_stop(struct elv_sim *w, uint32_t node)
{
    elv_sim_queue_push(&w->queue, w->now, AT_STOP, node, sim_life(w->nodes[node]->life));
}

void elv_sim_revoke(struct elv_sim *w, uint32_t server, uint32_t number)
{
    net_revoke(w, server, number);
}

void elv_sim_free(struct elv_sim *w)
{
    if (w == NULL)
        return;
    for (uint32_t i = 0; i < w->n_nodes; i++)
        if (w->nodes[i]->up)
            bury(w, i);
    while (w->queue.n > 0) {
        const struct elv_sim_entry e = elv_sim_queue_pop(&w->queue);
        if (e.kind == AT_SLICE || e.kind == AT_COMPUTED)
            sim_work_event(w, &e);
        else if (e.kind == AT_CALL || e.kind == AT_STORED)
            free(e.what);
        else
            net_drop(w, &e);
    }
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        free(w->nodes[i]->pending);
        free(w->nodes[i]->numbers);
        free(w->nodes[i]);
    }
    elv_sim_queue_free(&w->queue);
    elv_sim_timers_free(&w->timers);
    free(w->nodes);
    free(w->actions.at);
    free(w->stores);
    free(w->pieces);
    free(w->piece_works);
    free(w);
}

static elv_time_us clock_now(void *self) { return elv_sim_now(self); }

struct elv_clock elv_sim_clock(struct elv_sim *w)
{
    return (struct elv_clock){.self = w, .now = clock_now};
}

elv_time_us elv_sim_now(const struct elv_sim *w) { return w->now; }
const char *elv_sim_broken(const struct elv_sim *w) { return w->broken; }
size_t elv_sim_node_bytes(void) { return sizeof(struct sim_node) + sizeof(struct sim_node *); }
bool elv_sim_up(const struct elv_sim *w, uint32_t node) { return w->nodes[node]->up; }
uint32_t elv_sim_starts(const struct elv_sim *w, uint32_t node) { return w->nodes[node]->starts; }
uint64_t elv_sim_hash(const struct elv_sim *w) { return w->hash; }
struct elv_sim_stats elv_sim_stats(const struct elv_sim *w)
{
    struct elv_sim_stats s = w->stats;
    s.sent = s.up.put + s.down.put;
    s.lost = elv_sim_fates_lost(&s.up) + elv_sim_fates_lost(&s.down);
    s.duplicated = s.up.duplicated + s.down.duplicated;
    s.wire_up = s.up.bytes + w->wire_more;
    s.wire_down = s.down.bytes;
    return s;
}

bool elv_sim_ended(const struct elv_sim *w, uint32_t node, uint32_t *exit_code)
{
    if (w->nodes[node]->ended && exit_code != NULL)
        *exit_code = w->nodes[node]->exit_code;
    return w->nodes[node]->ended;
}

struct elv_sim_link *elv_sim_link(struct elv_sim *w, uint32_t client)
{
    return &w->nodes[client]->cfg.link;
}
