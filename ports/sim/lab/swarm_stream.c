/* SPDX-License-Identifier: Apache-2.0 */
/* The flow of policies that let clients start: each has work of its own, made from the version that
 * was newest then, and its update counts in whatever version is being made when it arrives.
 *
 * A client whose work is dropped, or that is away, is silent: the server learns of it when the
 * work's time is over. It has lapsed then and joins again, at once or when it is back. */
#include <stdlib.h>

#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"
#include "server/drive.h"

static void open_round(struct elv_swarm *s)
{
    struct elv_swarm_round *r = &s->round;
    r->open = true;
    r->seq++;
    r->version = s->versions.at[s->versions.newest].version;
    r->opened = s->now;
    r->deadline = s->now + s->sync_cfg.deadline_us;
    r->timer_done = -1;
    r->n_got = r->n_asked = 0;
    const struct elv_sync_round view = elv_swarm_view(s);
    if (s->policies.sync->on_open)
        s->policies.sync->on_open(s->sync_state, &s->sync_cfg, &view);
}

static void put_idle(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (cl->idle)
        return;
    if (s->idle == NULL)
        s->idle = elv_sim_alloc((size_t)s->cfg.n_clients * sizeof *s->idle);
    cl->idle = true;
    cl->place = s->n_idle;
    s->idle[s->n_idle++] = c;
}

static void take_idle(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (!cl->idle)
        return;
    const uint32_t last = s->idle[--s->n_idle];
    s->idle[cl->place] = last;
    s->clients[last].place = cl->place;
    cl->idle = false;
}

static void start(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    take_idle(s, c);
    cl->open = true;
    s->round.n_asked++;
    s->round.n_waiting++;
    elv_swarm_start(s, c, s->next_assignment++);
    elv_swarm_later(s, s->now + s->sync_cfg.deadline_us, c,
                    elv_swarm_what(ELV_SWARM_LAPSE, cl->assignment));
}

/* A client without work asks. It may go on waiting; `first`: it has not been told so yet. */
static void pull(struct elv_swarm *s, uint32_t c, bool first)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_swarm_view(s);
    const struct elv_sync_grant g =
        elv_drive_pull(sync, s->sync_state, &s->sync_cfg, &view, elv_swarm_id(c), s->now);
    if (g.start == ELV_SYNC_START) {
        start(s, c);
        return;
    }
    if (g.start == ELV_SYNC_REJECT) {
        take_idle(s, c);
        elv_swarm_set_waits(s, c, false);
        elv_swarm_later(s, s->now + (elv_time_us)g.retry_ms * 1000, c,
                        elv_swarm_what(ELV_SWARM_RETRY, s->clients[c].pieces));
        return;
    }
    put_idle(s, c);
    if (!first)
        return;
    elv_swarm_set_waits(s, c, s->clients[c].pieces > 0 && sync->room == NULL);
    if (s->clients[c].waits)
        elv_swarm_tell(s, ELV_LAB_HELD, c, NULL, 0, 0);
}

/* The policy says how many, chance says which. */
static void fill_room(struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    while (s->n_idle > 0) {
        const struct elv_sync_round view = elv_swarm_view(s);
        if (sync->room(s->sync_state, &s->sync_cfg, &view) == 0)
            return;
        struct elv_rng r = elv_rng_of((struct elv_rng_key){
            .seed = s->cfg.seed, .round = s->n_picked++, .purpose = ELV_RNG_SELECT});
        start(s, s->idle[elv_rng_below(&r, s->n_idle)]);
    }
}

static void release_held(struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    struct elv_sync_client next;
    for (;;) {
        const struct elv_sync_round view = elv_swarm_view(s);
        if (!sync->next(s->sync_state, &s->sync_cfg, &view, &next, s->now))
            return;
        if (next.row < s->cfg.n_clients && s->clients[next.row].idle)
            start(s, next.row);
    }
}

/* Those held ask by themselves: after every event, one round of them. */
static void ask_again(struct elv_swarm *s)
{
    for (uint32_t i = s->n_idle; i-- > 0;)
        if (i < s->n_idle)
            pull(s, s->idle[i], false);
}

/* Only while a round is open does anybody start. */
static void wait_for_round(struct elv_swarm *s, uint32_t c)
{
    put_idle(s, c);
    elv_swarm_set_waits(s, c, s->clients[c].pieces > 0 && s->policies.sync->room == NULL);
}

static void hand_out(struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    const uint32_t freed = s->freed;
    const bool asks =
        freed != ELV_SWARM_NONE && s->clients[freed].there && s->clients[freed].joined;
    s->freed = ELV_SWARM_NONE;
    if (!s->round.open) {
        if (asks)
            wait_for_round(s, freed);
        return;
    }
    if (asks)
        pull(s, freed, true);
    if (sync->room)
        fill_room(s);
    if (sync->next)
        release_held(s);
    else if (sync->room == NULL && s->n_idle > 0)
        ask_again(s);
}

/* True: a version is due. */
static bool is_due(const struct elv_swarm *s)
{
    const struct elv_swarm_round *r = &s->round;
    const struct elv_sync_round view = elv_swarm_view(s);
    if (r->n_got < s->sync_cfg.quorum)
        return false;
    const enum elv_sync_commit_when when =
        s->policies.sync->should_commit(s->sync_state, &s->sync_cfg, &view, s->now);
    return when == ELV_SYNC_MUST || s->now >= r->deadline || r->n_got >= s->counted_max ||
           (when == ELV_SYNC_MAY && s->now >= r->opened + s->sync_cfg.publish_us);
}

static void check_round(struct elv_swarm *s)
{
    elv_swarm_run_timer(s);
    if (is_due(s))
        elv_swarm_close(s, 0);
    else if (s->now >= s->round.deadline)
        elv_swarm_abandon(s, 0);
}

/* Whoever came while no round was open asks now, in the order of coming. */
static void ask_all(struct elv_swarm *s)
{
    const uint32_t n = s->policies.sync->room == NULL ? s->n_idle : 0;
    uint32_t *waiting = elv_sim_grow(NULL, n + 1, sizeof *waiting);
    for (uint32_t i = 0; i < n; i++)
        waiting[i] = s->idle[i];
    for (uint32_t i = 0; i < n; i++)
        pull(s, waiting[i], !s->clients[waiting[i]].waits);
    free(waiting);
}

/* As many as the server wants to see before it opens a round. */
static bool may_begin(const struct elv_swarm *s)
{
    const uint32_t first = s->round.seq == 0 ? s->job->min_clients : 1;
    return s->n_joined >= first && s->n_joined >= s->sync_cfg.quorum;
}

static void decide(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const uint32_t c = w->client;
    elv_swarm_judge(s, w);
    s->clients[c].open = false;
    s->round.n_waiting--;
    elv_swarm_end_work(s, w);
    s->freed = c;
}

/* An update that came while no round was open counts in the next one. */
static void park(struct elv_swarm *s, struct elv_swarm_work *w)
{
    struct elv_swarm_parked *p = &s->parked;
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 16 : p->cap * 2;
        p->at = elv_sim_grow(p->at, p->cap, sizeof *p->at);
    }
    p->at[p->n++] = w->client;
    w->delivered = true;
    s->n_working--;
    elv_swarm_set_waits(s, w->client, true);
}

/* False: there is none left. */
static bool decide_parked(struct elv_swarm *s)
{
    struct elv_swarm_parked *p = &s->parked;
    while (p->next < p->n) {
        const uint32_t work = s->clients[p->at[p->next++]].work;
        if (work == ELV_SWARM_NONE || !s->works.at[work].delivered)
            continue; /* it has left since */
        decide(s, &s->works.at[work]);
        return true;
    }
    p->n = p->next = 0;
    return false;
}

static void settle(struct elv_swarm *s)
{
    do {
        const bool opens = !s->round.open && may_begin(s);
        if (s->round.open)
            check_round(s);
        if (!s->round.open && !s->ended && may_begin(s))
            open_round(s);
        if (opens)
            ask_all(s);
        if (!s->ended)
            hand_out(s);
    } while (s->round.open && !s->ended && decide_parked(s));
}

static elv_time_us next(const struct elv_swarm *s)
{
    const struct elv_swarm_round *r = &s->round;
    if (!r->open)
        return ELV_NEVER;
    const elv_time_us timer = elv_swarm_timer(s), paced = r->opened + s->sync_cfg.publish_us;
    elv_time_us at = timer < r->deadline ? timer : r->deadline;
    if (r->n_got >= s->sync_cfg.quorum && paced > s->now && paced < at)
        at = paced;
    return at;
}

static bool has_delivered(const struct elv_swarm *s, uint32_t c)
{
    const uint32_t work = s->clients[c].work;
    return work != ELV_SWARM_NONE && s->works.at[work].delivered;
}

static void came(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (has_delivered(s, c))
        return;
    if (cl->open) { /* the server still takes it for at work, and so it works, anew */
        elv_swarm_start(s, c, cl->assignment);
        return;
    }
    if (!cl->joined)
        elv_swarm_enlist(s, c);
    if (s->round.open && s->policies.sync->room == NULL)
        pull(s, c, true);
    else
        put_idle(s, c);
}

static void went(struct elv_swarm *s, uint32_t c, bool good)
{
    struct elv_swarm_client *cl = &s->clients[c];
    take_idle(s, c);
    if (!good || !cl->open)
        return;
    if (has_delivered(s, c))
        elv_swarm_lose_work(s, &s->works.at[cl->work]);
    cl->open = false;
    s->round.n_waiting--;
}

static void arrived(struct elv_swarm *s, struct elv_swarm_work *w)
{
    const uint32_t c = w->client;
    struct elv_swarm_client *cl = &s->clients[c];
    if (w->dropped) {
        elv_swarm_lose_work(s, w);
    } else if (!cl->open) { /* it had lapsed */
        elv_swarm_miss(s, w);
        elv_swarm_count_up(s, w);
        elv_swarm_tell(s, ELV_LAB_LATE, c, w, 0, 0);
        elv_swarm_end_work(s, w);
    } else {
        if (s->round.open)
            decide(s, w);
        else
            park(s, w);
        return;
    }
    if (!cl->open)
        came(s, c);
}

static void lapse(struct elv_swarm *s, uint32_t c)
{
    struct elv_swarm_client *cl = &s->clients[c];
    if (has_delivered(s, c))
        return;
    cl->open = false;
    cl->lapsed = true;
    s->round.n_waiting--;
    elv_swarm_tell(s, ELV_LAB_LAPSED, c, NULL, 0, 0);
    elv_swarm_discharge(s, c);
    if (cl->there && cl->work == ELV_SWARM_NONE)
        came(s, c);
}

static void due(struct elv_swarm *s, uint32_t c, enum elv_swarm_due_kind kind, uint32_t number)
{
    const struct elv_swarm_client *cl = &s->clients[c];
    if (kind == ELV_SWARM_LAPSE && cl->open && elv_swarm_is(cl->assignment, number))
        lapse(s, c);
    else if (kind == ELV_SWARM_RETRY && cl->there && !cl->open && cl->work == ELV_SWARM_NONE &&
             elv_swarm_is(cl->pieces, number))
        came(s, c);
}

const struct elv_swarm_flow elv_swarm_stream = {
    .settle = settle,
    .next = next,
    .came = came,
    .went = went,
    .arrived = arrived,
    .due = due,
};
