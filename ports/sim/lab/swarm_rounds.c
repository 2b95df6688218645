/* SPDX-License-Identifier: Apache-2.0 */
/* The flow of policies that ask: as server/rounds.c and grant.c do it, without storing anything.
 *
 * Asked are only clients that are there. One that is asked and then goes away, or whose work is
 * dropped, is silent: the server cannot know, and waits for it until the deadline. When it is back
 * in time it starts anew. One that leaves for good says so. */
#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static struct elv_sync_call call_of(const struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    return sync->call ? sync->call(&s->sync_cfg) : (struct elv_sync_call){0};
}

/* When the next round may open, with those there as they are. */
static elv_time_us opens_at(const struct elv_swarm *s)
{
    const struct elv_swarm_round *r = &s->round;
    const struct elv_sync_call call = call_of(s);
    const uint32_t first = r->seq == 0 ? s->job->min_clients : 1;
    const uint32_t least = larger(first, s->sync_cfg.quorum);
    if (s->there.n < least)
        return ELV_NEVER;
    if (s->there.n >= call.ask)
        return r->not_before;
    const elv_time_us patience = r->ended + call.wait_us;
    if (call.least == 0 || s->there.n < call.least)
        return ELV_NEVER;
    return patience > r->not_before ? patience : r->not_before;
}

static void reserve(struct elv_swarm_round *r, uint32_t n)
{
    if (n <= r->cap)
        return;
    r->cap = larger(n, r->cap * 2);
    r->asked = elv_sim_grow(r->asked, r->cap, sizeof *r->asked);
}

/* By a policy that has to see the candidates. */
static uint32_t choose(struct elv_swarm *s, const struct elv_select_ask *ask)
{
    const uint32_t n = s->there.n;
    struct elv_candidate *at = elv_sim_grow(NULL, n, sizeof *at);
    for (uint32_t i = 0; i < n; i++)
        at[i] = elv_swarm_candidate(s, elv_swarm_set_at(&s->there, i));
    const uint32_t chosen = s->policies.select->choose(ask, at, n);
    reserve(&s->round, chosen);
    for (uint32_t i = 0; i < chosen; i++)
        s->round.asked[i] = at[i].row;
    free(at);
    return chosen;
}

static uint32_t ask(struct elv_swarm *s)
{
    struct elv_swarm_round *r = &s->round;
    const uint32_t n = s->there.n, called = call_of(s).ask;
    const struct elv_select *select = s->policies.select;
    struct elv_select_ask ask = {.params = &s->job->select_params,
                                 .seed = s->cfg.seed,
                                 .round = r->seq,
                                 .count = called > 0 ? called : s->job->select_count};
    const bool all = ask.count == 0 || ask.count >= n;
    if (select->draw == NULL)
        return choose(s, &ask);
    ask.count = all ? n : ask.count;
    reserve(r, ask.count);
    select->draw(&ask, n, r->asked);
    for (uint32_t i = 0; i < ask.count; i++)
        r->asked[i] = elv_swarm_set_at(&s->there, r->asked[i]);
    return ask.count;
}

static void keep_asked(struct elv_swarm_round *r)
{
    uint32_t *const old = r->before;
    const uint32_t cap = r->cap_before;
    r->before = r->asked;
    r->cap_before = r->cap;
    r->n_before = r->n_asked;
    r->asked = old;
    r->cap = cap;
}

static void give(struct elv_swarm *s, uint32_t c, uint32_t assignment)
{
    struct elv_swarm_client *cl = &s->clients[c];
    cl->seq = s->round.seq;
    cl->assignment = assignment;
    cl->open = true;
    s->round.n_waiting++;
}

static void start_if_free(struct elv_swarm *s, uint32_t c)
{
    if (s->clients[c].work == ELV_SWARM_NONE && s->clients[c].there)
        elv_swarm_start(s, c, s->clients[c].assignment);
}

static void open_round(struct elv_swarm *s)
{
    struct elv_swarm_round *r = &s->round;
    keep_asked(r);
    r->open = true;
    r->seq++;
    r->assignment = s->next_assignment++;
    r->version = s->versions.at[s->versions.newest].version;
    r->opened = s->now;
    r->deadline = s->now + s->sync_cfg.deadline_us;
    r->timer_done = -1;
    r->n_got = r->n_waiting = 0;
    r->n_asked = ask(s);
    for (uint32_t i = 0; i < r->n_asked; i++)
        give(s, r->asked[i], r->assignment);
    for (uint32_t i = 0; i < r->n_before; i++) /* they are not waiting for this one */
        if (s->clients[r->before[i]].seq != r->seq)
            elv_swarm_set_waits(s, r->before[i], false);
    const struct elv_sync_round view = elv_swarm_view(s);
    if (s->policies.sync->on_open)
        s->policies.sync->on_open(s->sync_state, &s->sync_cfg, &view);
    for (uint32_t i = 0; i < r->n_asked; i++)
        start_if_free(s, r->asked[i]);
}

/* It learns at once when versions are pushed to it, else when the notice arrives. */
static void interrupt(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const elv_time_us at = s->pushes ? s->now : s->now + elv_swarm_notice(s, w);
    const uint32_t c = w->client;
    if (at > s->now) {
        elv_swarm_later(s, at, c, elv_swarm_what(ELV_SWARM_ABORT, w->piece));
        return;
    }
    elv_swarm_tell(s, ELV_LAB_INTERRUPTED, c, w, 0, 0);
    elv_swarm_end_work(s, w);
}

/* Nobody is waited for any more. The number of those that were still at work. */
static uint32_t call_off(struct elv_swarm *s, bool interrupts)
{
    const struct elv_sync *sync = s->policies.sync;
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->round.n_asked; i++) {
        const uint32_t c = s->round.asked[i];
        struct elv_swarm_client *cl = &s->clients[c];
        if (!cl->open)
            continue;
        cl->open = false;
        left += cl->work != ELV_SWARM_NONE;
        if (cl->work != ELV_SWARM_NONE && interrupts && sync->interrupts &&
            sync->interrupts(s->sync_state, &s->sync_cfg, elv_swarm_id(c)))
            interrupt(s, &s->works.at[cl->work]);
    }
    return left;
}

/* True: the round ended. */
static bool check_round(struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    elv_swarm_run_timer(s);
    const struct elv_sync_round view = elv_swarm_view(s);
    const bool quorum = view.n_got >= s->sync_cfg.quorum;
    const bool late = s->now >= s->round.deadline;
    if (quorum &&
        (late || sync->should_commit(s->sync_state, &s->sync_cfg, &view, s->now) != ELV_SYNC_NO))
        elv_swarm_close(s, call_off(s, true));
    else if (!quorum && (late || view.n_waiting == 0))
        elv_swarm_abandon(s, call_off(s, false));
    else
        return false;
    return true;
}

static void settle(struct elv_swarm *s)
{
    while (!s->ended) {
        if (!s->round.open && s->now < opens_at(s))
            return;
        if (!s->round.open)
            open_round(s);
        if (!check_round(s))
            return;
    }
}

static elv_time_us next(const struct elv_swarm *s)
{
    const struct elv_swarm_round *r = &s->round;
    if (!r->open)
        return opens_at(s);
    const elv_time_us timer = elv_swarm_timer(s);
    return timer < r->deadline ? timer : r->deadline;
}

static bool is_asked(const struct elv_swarm *s, uint32_t c)
{
    return s->round.open && s->clients[c].seq == s->round.seq;
}

/* Without work: it takes up what it was asked for, or asks. */
static void came(struct elv_swarm *s, uint32_t c)
{
    const struct elv_sync *sync = s->policies.sync;
    struct elv_swarm_round *r = &s->round;
    if (is_asked(s, c)) {
        if (s->clients[c].open)
            start_if_free(s, c);
        return;
    }
    if (!r->open || sync->on_pull == NULL)
        return;
    const struct elv_sync_round view = elv_swarm_view(s);
    if (sync->on_pull(s->sync_state, &s->sync_cfg, &view, elv_swarm_id(c), s->now).start !=
        ELV_SYNC_START)
        return;
    reserve(r, r->n_asked + 1);
    r->asked[r->n_asked++] = c;
    give(s, c, s->next_assignment++);
    start_if_free(s, c);
}

static void went(struct elv_swarm *s, uint32_t c, bool good)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (!good || !is_asked(s, c) || !cl->open)
        return;
    cl->open = false;
    s->round.n_waiting--;
}

static void come_late(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_swarm_view(s);
    elv_swarm_miss(s, w);
    elv_swarm_count_up(s, w);
    elv_swarm_tell(s, ELV_LAB_LATE, w->client, w, 0, 0);
    if (sync->on_late)
        sync->on_late(s->sync_state, &s->sync_cfg, &view, elv_swarm_id(w->client),
                      s->versions.at[w->base].version, s->now);
}

static void arrived(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const uint32_t c = w->client;
    const bool current = s->round.open && w->seq == s->round.seq;
    if (w->dropped) {
        elv_swarm_lose_work(s, w);
        if (!current)
            came(s, c);
        return;
    }
    if (!current) {
        come_late(s, w);
        elv_swarm_end_work(s, w);
        came(s, c);
        return;
    }
    ELV_ASSERT(s->clients[c].open);
    elv_swarm_judge(s, w);
    s->clients[c].open = false;
    s->round.n_waiting--;
    elv_swarm_end_work(s, w);
    elv_swarm_set_waits(s, c, true);
}

static void due(struct elv_swarm *s, uint32_t c, enum elv_swarm_due_kind kind, uint32_t number)
{
    const struct elv_swarm_client *cl = &s->clients[c];
    ELV_ASSERT(kind == ELV_SWARM_ABORT);
    if (cl->work == ELV_SWARM_NONE || !elv_swarm_is(cl->pieces, number))
        return;
    elv_swarm_tell(s, ELV_LAB_INTERRUPTED, c, &s->works.at[cl->work], 0, 0);
    elv_swarm_end_work(s, &s->works.at[cl->work]);
    came(s, c);
}

const struct elv_swarm_flow elv_swarm_rounds = {
    .settle = settle,
    .next = next,
    .came = came,
    .went = went,
    .arrived = arrived,
    .due = due,
};
