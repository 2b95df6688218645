/* SPDX-License-Identifier: Apache-2.0 */
#include "client/transfer.h"

#include "common/assert.h"

enum {
    MARGIN_MAX = 16,
    MARGIN_ROUNDS = 16,     /* without an answer out of order, then the margin is narrowed */
    MARGIN_LEAST_US = 2000, /* a machine's own disorder */
    QUIET_LONG = 4,         /* silences after which the path is taken for another one */
    TRIES_SAME = 2,         /* single requests of a silence before the wait doubles: a burst of
                               losses may last for some requests */
    DOUBLINGS_MAX = 6,      /* 200 ms six times doubled is past the longest wait */
};

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static elv_time_us longer(elv_time_us a, elv_time_us b) { return a > b ? a : b; }

void elv_transfer_init(struct elv_transfer *t, struct elv_flight *flights, uint32_t n)
{
    ELV_ASSERT(n > 0);
    *t = (struct elv_transfer){.flights = flights, .n_flights = n, .margin = 1};
    for (uint32_t i = 0; i < n; i++)
        flights[i] = (struct elv_flight){.state = ELV_FLIGHT_FREE};
    elv_flow_init(&t->flow);
    elv_transfer_grant(t, ELV_WINDOW_FIRST);
}

/* Ids stay: the answers may still come and must be told from those of the next body. */
static void release(struct elv_transfer *t, struct elv_flight *f)
{
    if (f->state == ELV_FLIGHT_FLYING)
        t->n_flying--;
    f->state = ELV_FLIGHT_FREE;
}

static void release_all(struct elv_transfer *t)
{
    for (uint32_t i = 0; i < t->n_flights; i++)
        release(t, &t->flights[i]);
}

void elv_transfer_begin(struct elv_transfer *t, uint64_t *words, uint32_t n)
{
    ELV_ASSERT(n > 0);
    release_all(t);
    elv_bitmap_init(&t->have, words, n);
    t->next = 0;
    t->paused_until = 0;
    t->n_quiet = 0;
    t->probe = false;
}

void elv_transfer_end(struct elv_transfer *t)
{
    release_all(t);
    t->have = (struct elv_bitmap){0};
}

void elv_transfer_grant(struct elv_transfer *t, uint32_t grant)
{
    elv_flow_grant(&t->flow, grant == 0 ? 1 : smaller(grant, t->n_flights));
}

static struct elv_flight *flight_of(struct elv_transfer *t, uint32_t chunk)
{
    for (uint32_t i = 0; i < t->n_flights; i++)
        if (t->flights[i].state != ELV_FLIGHT_FREE && t->flights[i].chunk == chunk)
            return &t->flights[i];
    return NULL;
}

static struct elv_flight *lowest_lost(struct elv_transfer *t)
{
    struct elv_flight *best = NULL;
    for (uint32_t i = 0; i < t->n_flights; i++) {
        struct elv_flight *f = &t->flights[i];
        if (f->state == ELV_FLIGHT_LOST && (best == NULL || f->chunk < best->chunk))
            best = f;
    }
    return best;
}

static struct elv_flight *free_flight(struct elv_transfer *t)
{
    for (uint32_t i = 0; i < t->n_flights; i++)
        if (t->flights[i].state == ELV_FLIGHT_FREE)
            return &t->flights[i];
    return NULL;
}

/* Moves `next` to the first chunk that is neither there nor on its way. */
static bool untouched(struct elv_transfer *t)
{
    while (t->next < t->have.n &&
           (elv_bitmap_get(&t->have, t->next) || flight_of(t, t->next) != NULL))
        t->next++;
    return t->next < t->have.n;
}

static struct elv_flight *pick(struct elv_transfer *t)
{
    struct elv_flight *f = lowest_lost(t);
    if (f != NULL || !untouched(t))
        return f;
    f = free_flight(t);
    if (f == NULL)
        return NULL;
    f->chunk = t->next++;
    f->n_sent = 0;
    return f;
}

/* A place may hold the ids of another chunk. */
static void stamp(struct elv_flight *f, uint32_t id, struct elv_transmission *out)
{
    const bool repeated = f->n_sent > 0;
    *out = (struct elv_transmission){.chunk = f->chunk, .repeated = repeated};
    out->forget[0] = f->id[1];
    out->forget[1] = repeated ? 0 : f->id[0];
    f->id[1] = repeated ? f->id[0] : 0;
    f->order[1] = f->order[0];
    f->before_us = f->sent.sent_us;
    f->lost = repeated && f->lost;
    f->id[0] = id;
    f->n_sent++;
}

/* Times that it was quiet, but for those that usual losses explain. */
static uint32_t silences(const struct elv_transfer *t)
{
    const uint32_t usual = elv_flow_patience(&t->flow) - 1;
    return t->n_quiet > usual ? t->n_quiet - usual : 0;
}

static bool has_room(const struct elv_transfer *t)
{
    return t->probe || t->n_flying < (t->alone ? 1 : t->flow.window);
}

bool elv_transfer_next(struct elv_transfer *t, elv_time_us now, uint32_t id,
                       struct elv_transmission *out)
{
    if (!has_room(t) || now < t->paused_until || now < t->flow.pace_us)
        return false;
    struct elv_flight *f = pick(t);
    if (f == NULL) {
        elv_flow_idle(&t->flow, t->n_flying);
        return false;
    }
    stamp(f, id, out);
    f->order[0] = ++t->order;
    elv_flow_sent(&t->flow, now, t->n_flying, &f->sent);
    f->state = ELV_FLIGHT_FLYING;
    t->n_flying++;
    t->sent_us = now;
    t->probe = false;
    return true;
}

static struct elv_flight *by_id(struct elv_transfer *t, uint32_t id, uint32_t *which)
{
    for (uint32_t i = 0; id != 0 && i < t->n_flights; i++) {
        for (*which = 0; *which < 2; ++*which)
            if (t->flights[i].id[*which] == id)
                return &t->flights[i];
    }
    return NULL;
}

bool elv_transfer_knows(const struct elv_transfer *t, uint32_t id)
{
    for (uint32_t i = 0; id != 0 && i < t->n_flights; i++)
        if (t->flights[i].id[0] == id || t->flights[i].id[1] == id)
            return true;
    return false;
}

static bool is_later(uint32_t a, uint32_t b) { return (int32_t)(a - b) > 0; }

/* A flight that was counted as lost was not; answers may come that late. One of them shifts those
 * behind it, too, so the margin grows once in a round trip. */
static void found(struct elv_transfer *t, struct elv_flight *f)
{
    f->lost = false;
    elv_flow_found(&t->flow);
    if (t->margin > 1 && t->margin_round == t->flow.round)
        return;
    t->margin = smaller(t->margin + 1, MARGIN_MAX);
    t->margin_round = t->flow.round;
}

static elv_time_us sent_at(const struct elv_flight *f, uint32_t which)
{
    return which == 0 ? f->sent.sent_us : f->before_us;
}

/* Where the answered transmission stands among the others. */
static void place(struct elv_transfer *t, elv_time_us now, struct elv_flight *f, uint32_t which)
{
    if (is_later(f->order[which], t->newest)) {
        t->newest = f->order[which];
        t->newest_took = now - sent_at(f, which);
    }
    if (f->lost && (which == 1 || f->state == ELV_FLIGHT_LOST))
        found(t, f);
    if (t->margin > 1 && t->flow.round - t->margin_round >= MARGIN_ROUNDS) {
        t->margin--;
        t->margin_round = t->flow.round;
    }
}

bool elv_transfer_answered(struct elv_transfer *t, elv_time_us now, uint32_t id, uint32_t *chunk)
{
    uint32_t which;
    struct elv_flight *f = by_id(t, id, &which);
    if (f == NULL)
        return false;
    f->id[which] = 0;
    place(t, now, f, which);
    if (silences(t) >= QUIET_LONG)
        elv_flow_restart(&t->flow, ELV_WINDOW_FIRST);
    t->n_quiet = 0;
    t->alone = false;
    t->heard_us = now;
    const uint32_t others = t->n_flying - (f->state == ELV_FLIGHT_FLYING);
    if (which == 0)
        elv_flow_answered(&t->flow, now, &f->sent, others);
    else
        elv_flow_late(&t->flow, now, f->before_us);
    if (f->state == ELV_FLIGHT_FREE)
        return false;
    *chunk = f->chunk;
    return true;
}

void elv_transfer_have(struct elv_transfer *t, uint32_t chunk)
{
    if (chunk >= t->have.n || !elv_bitmap_set(&t->have, chunk))
        return;
    struct elv_flight *f = flight_of(t, chunk);
    if (f != NULL)
        release(t, f);
}

static bool listed(const struct elv_missing *m, uint32_t i)
{
    return m->have[i / 8] >> (i % 8) & 1;
}

/* On the receiver's list: its own answer was lost or is late. */
static void is_there(struct elv_transfer *t, uint32_t chunk)
{
    if (elv_bitmap_get(&t->have, chunk))
        return;
    struct elv_flight *f = flight_of(t, chunk);
    if (f != NULL) {
        if (f->lost)
            elv_flow_found(&t->flow);
        f->lost = false;
        elv_flow_delivered(&t->flow);
    }
    elv_transfer_have(t, chunk);
}

void elv_transfer_progress(struct elv_transfer *t, const struct elv_missing *m)
{
    for (uint32_t i = t->have.first_clear; i < t->have.n && i < m->first; i++)
        is_there(t, i);
    for (uint32_t i = 0; i < ELV_MISSING_BITS && m->first < t->have.n; i++)
        if (listed(m, i) && i < t->have.n - m->first)
            is_there(t, m->first + i);
}

void elv_transfer_missing(struct elv_transfer *t, const struct elv_missing *m)
{
    elv_transfer_progress(t, m);
    for (uint32_t i = 0; i < ELV_MISSING_BITS && m->first < t->have.n; i++) {
        if (i < t->have.n - m->first && !listed(m, i))
            elv_bitmap_clear(&t->have, m->first + i);
    }
    if (m->first < t->next)
        t->next = m->first;
}

bool elv_transfer_complete(const struct elv_transfer *t)
{
    return t->have.n > 0 && t->have.n_set == t->have.n;
}

bool elv_transfer_waits(const struct elv_transfer *t) { return t->n_flying > 0; }

static void lose(struct elv_transfer *t, struct elv_flight *f, bool counts)
{
    f->state = ELV_FLIGHT_LOST;
    t->n_flying--;
    f->lost = counts;
    if (counts)
        elv_flow_lost(&t->flow);
}

static void lose_all(struct elv_transfer *t)
{
    for (uint32_t i = 0; i < t->n_flights; i++)
        if (t->flights[i].state == ELV_FLIGHT_FLYING)
            lose(t, &t->flights[i], false);
}

/* When a flight is lost if no answer comes; ELV_NEVER while none sent later was answered. */
static elv_time_us overtaken_at(const struct elv_transfer *t, const struct elv_flight *f)
{
    if (f->state != ELV_FLIGHT_FLYING || !is_later(t->newest, f->order[0]))
        return ELV_NEVER;
    const elv_time_us margin = longer(t->margin * t->flow.least / 4, MARGIN_LEAST_US);
    return f->sent.sent_us + longer(t->newest_took, t->flow.rtt.smoothed) + margin;
}

/* When it has been quiet for too long. The first time soon after an answer was due; answers that
 * still come, although nothing may be sent now, put it off. */
static elv_time_us quiet_at(const struct elv_transfer *t)
{
    if (t->n_flying == 0)
        return ELV_NEVER;
    if (silences(t) == 0)
        return longer(t->sent_us + elv_rtt_probe(&t->flow.rtt),
                      t->heard_us + t->flow.rtt.smoothed / 2);
    const uint32_t tries = silences(t), same = t->flow.rtt.measured ? TRIES_SAME : 0;
    const uint32_t doublings = tries > same ? smaller(tries - same, DOUBLINGS_MAX) : 0;
    const elv_time_us wait = elv_rto(&t->flow.rtt) << doublings;
    return t->sent_us + (wait < ELV_RTO_MAX_US ? wait : ELV_RTO_MAX_US);
}

static struct elv_flight *oldest(struct elv_transfer *t)
{
    struct elv_flight *best = NULL;
    for (uint32_t i = 0; i < t->n_flights; i++) {
        struct elv_flight *f = &t->flights[i];
        if (f->state == ELV_FLIGHT_FLYING &&
            (best == NULL || is_later(best->order[0], f->order[0])))
            best = f;
    }
    return best;
}

/* One is sent again at first; then nobody knows about any of them. */
static void be_quiet(struct elv_transfer *t)
{
    if (silences(t) == 0) {
        lose(t, oldest(t), false);
        t->probe = true;
    } else {
        lose_all(t);
        t->alone = true;
    }
    t->n_quiet += t->n_quiet < UINT16_MAX;
}

void elv_transfer_expire(struct elv_transfer *t, elv_time_us now)
{
    for (uint32_t i = 0; i < t->n_flights; i++)
        if (overtaken_at(t, &t->flights[i]) <= now)
            lose(t, &t->flights[i], true);
    if (quiet_at(t) <= now)
        be_quiet(t);
}

void elv_transfer_unanswered(struct elv_transfer *t, uint32_t id)
{
    uint32_t which;
    struct elv_flight *f = by_id(t, id, &which);
    if (f != NULL && which == 0 && f->state == ELV_FLIGHT_FLYING)
        lose(t, f, false);
}

void elv_transfer_slept(struct elv_transfer *t, elv_time_us us)
{
    for (uint32_t i = 0; i < t->n_flights; i++) {
        t->flights[i].sent.sent_us += us;
        t->flights[i].before_us += us;
    }
    t->sent_us += us;
    t->heard_us += us;
    elv_flow_slept(&t->flow, us);
}

void elv_transfer_pause(struct elv_transfer *t, elv_time_us until)
{
    lose_all(t);
    t->paused_until = until;
}

void elv_transfer_relink(struct elv_transfer *t)
{
    lose_all(t);
    t->alone = true;
    elv_flow_restart(&t->flow, ELV_WINDOW_FIRST);
    t->n_quiet = elv_flow_patience(&t->flow);
}

static bool may_send(const struct elv_transfer *t)
{
    uint32_t n_lost = 0, n_free = 0;
    for (uint32_t i = 0; i < t->n_flights; i++) {
        n_lost += t->flights[i].state == ELV_FLIGHT_LOST;
        n_free += t->flights[i].state == ELV_FLIGHT_FREE;
    }
    return has_room(t) && (n_lost > 0 || (n_free > 0 && t->next < t->have.n));
}

elv_time_us elv_transfer_deadline(const struct elv_transfer *t)
{
    elv_time_us first = quiet_at(t);
    for (uint32_t i = 0; i < t->n_flights; i++) {
        const elv_time_us at = overtaken_at(t, &t->flights[i]);
        first = at < first ? at : first;
    }
    const elv_time_us send = longer(t->paused_until, t->flow.pace_us);
    return may_send(t) && send < first ? send : first;
}
