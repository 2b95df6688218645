/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

void elv_swarm_set_waits(struct elv_swarm *s, uint32_t c, bool waits)
{
    s->n_waiting += waits;
    s->n_waiting -= s->clients[c].waits;
    s->clients[c].waits = waits;
}

/* What its updates will weigh. */
static uint32_t claim_of(const struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_work w = {.client = c};
    const struct elv_candidate who = elv_swarm_candidate(s, c);
    elv_swarm_measure(s, &w, s->policies.sizing->size(s->job, &who));
    return elv_weight_of(&s->scales, elv_weight_claim(s->job->weight, w.samples, w.seen), 1.0);
}

void elv_swarm_enlist(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    ELV_ASSERT(!cl->joined);
    cl->joined = true;
    cl->lapsed = false;
    s->n_ever += !cl->ever;
    cl->ever = true;
    s->n_joined++;
    s->fleet += claim_of(s, c);
    if (s->policies.sync->on_join)
        s->policies.sync->on_join(s->sync_state, &s->sync_cfg, elv_swarm_id(c), s->now);
    elv_swarm_tell(s, ELV_LAB_JOINED, c, NULL, 0, 0);
}

void elv_swarm_discharge(struct elv_swarm *s, uint32_t c)
{
    ELV_ASSERT(s->clients[c].joined);
    s->clients[c].joined = false;
    s->n_joined--;
    s->fleet -= claim_of(s, c);
    if (s->policies.sync->on_leave)
        s->policies.sync->on_leave(s->sync_state, &s->sync_cfg, elv_swarm_id(c), s->now);
}

static void set_there(struct elv_swarm *s, uint32_t c, bool there)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (cl->there == there)
        return;
    cl->there = there;
    if (there)
        elv_swarm_set_add(&s->there, c);
    else
        elv_swarm_set_remove(&s->there, c);
}

/* The next time it goes or returns. Stretches of no length are passed over. */
static void await_turn(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    const struct elv_lab_world *w = s->world;
    elv_time_us at = elv_lab_stretch(w, s->cfg.seed, c + 1, cl->turns, s->now);
    while (at != ELV_NEVER && elv_lab_stretch(w, s->cfg.seed, c + 1, cl->turns + 1, at) == at) {
        cl->turns += 2;
        at = elv_lab_stretch(w, s->cfg.seed, c + 1, cl->turns, at);
    }
    elv_swarm_later(s, at, c, elv_swarm_what(ELV_SWARM_TURN, cl->comings));
}

static void join(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    cl->comings++;
    const elv_time_us stays = elv_lab_stays(s->world, s->cfg.seed, c + 1, cl->comings);
    if (stays != ELV_NEVER)
        elv_swarm_later(s, s->now + stays, c, elv_swarm_what(ELV_SWARM_LEAVE, cl->comings));
    elv_swarm_enlist(s, c);
    set_there(s, c, true);
    await_turn(s, c);
    s->flow->came(s, c);
}

static void go_away(struct elv_swarm *s, uint32_t c, bool good)
{
    struct elv_swarm_client *cl = &s->clients[c];
    set_there(s, c, false);
    elv_swarm_set_waits(s, c, false);
    if (cl->work != ELV_SWARM_NONE && !s->works.at[cl->work].delivered)
        elv_swarm_lose_work(s, &s->works.at[cl->work]);
    s->flow->went(s, c, good);
}

static void leave(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    go_away(s, c, true);
    if (cl->joined)
        elv_swarm_discharge(s, c);
    cl->lapsed = false;
    cl->turns = (cl->turns + 2) / 2 * 2; /* it is there when it comes again */
    elv_swarm_tell(s, ELV_LAB_LEFT, c, NULL, 0, 0);
    if (s->gone)
        s->gone[(s->gone_from + s->n_gone++) % s->cfg.n_clients] = c;
}

static void turn(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    cl->turns++;
    await_turn(s, c);
    if (cl->there) {
        go_away(s, c, false);
        return;
    }
    if (!cl->joined)
        elv_swarm_enlist(s, c);
    set_there(s, c, true);
    s->flow->came(s, c);
}

static void await_device(struct elv_swarm *s)
{
    const elv_time_us gap = elv_lab_gap(s->world, s->cfg.seed, ++s->n_come);
    elv_swarm_later(s, s->now + gap, 0, elv_swarm_what(ELV_SWARM_COME, 0));
}

/* New numbers first; then those come again that have been gone the longest. */
static void device_comes(struct elv_swarm *s)
{
    await_device(s);
    if (s->n_new < s->cfg.n_clients) {
        join(s, s->n_new++);
    } else if (s->n_gone > 0) {
        const uint32_t c = s->gone[s->gone_from];
        s->gone_from = (s->gone_from + 1) % s->cfg.n_clients;
        s->n_gone--;
        join(s, c);
    }
}

void elv_swarm_client_due(struct elv_swarm *s, uint32_t c, enum elv_swarm_due_kind kind,
                          uint32_t number)
{
    const struct elv_swarm_client *cl = &s->clients[c];
    const bool present = elv_swarm_is(cl->comings, number);
    if (kind == ELV_SWARM_COME)
        device_comes(s);
    else if (kind == ELV_SWARM_JOIN)
        join(s, c);
    else if (kind == ELV_SWARM_LEAVE && present)
        leave(s, c);
    else if (kind == ELV_SWARM_TURN && present && (cl->joined || cl->lapsed))
        turn(s, c);
}

void elv_swarm_populate(struct elv_swarm *s)
{
    const uint32_t n = s->cfg.n_clients;
    if (s->world->availability.churn_rate > 0.0 && s->world->trace == NULL) {
        s->gone = elv_sim_alloc((size_t)n * sizeof *s->gone);
        await_device(s);
        return;
    }
    for (uint32_t c = 0; c < n; c++) {
        const elv_time_us at = elv_lab_comes(s->world, s->cfg.seed, c + 1, n);
        if (at == 0)
            join(s, c);
        else
            elv_swarm_later(s, at, c, elv_swarm_what(ELV_SWARM_JOIN, 0));
    }
}
