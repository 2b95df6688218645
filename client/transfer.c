/* SPDX-License-Identifier: Apache-2.0 */
#include "client/transfer.h"

#include "common/assert.h"

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

void elv_transfer_init(struct elv_transfer *t)
{
    *t = (struct elv_transfer){.grant = ELV_WINDOW_FIRST, .window = ELV_WINDOW_FIRST};
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
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++)
        release(t, &t->flights[i]);
}

void elv_transfer_begin(struct elv_transfer *t, uint64_t *words, uint32_t n)
{
    ELV_ASSERT(n > 0);
    release_all(t);
    elv_bitmap_init(&t->have, words, n);
    t->next = 0;
    t->paused_until = 0;
    t->n_answered = t->n_lost = 0;
    t->window = smaller(t->grant, t->window > ELV_WINDOW_FIRST ? t->window : ELV_WINDOW_FIRST);
}

void elv_transfer_end(struct elv_transfer *t)
{
    release_all(t);
    t->have = (struct elv_bitmap){0};
}

void elv_transfer_grant(struct elv_transfer *t, uint32_t grant)
{
    t->grant = grant == 0 ? 1 : smaller(grant, ELV_WINDOW_MAX);
    t->window = smaller(t->window, t->grant);
}

static struct elv_flight *flight_of(struct elv_transfer *t, uint32_t chunk)
{
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++)
        if (t->flights[i].state != ELV_FLIGHT_FREE && t->flights[i].chunk == chunk)
            return &t->flights[i];
    return NULL;
}

static struct elv_flight *lowest_lost(struct elv_transfer *t)
{
    struct elv_flight *best = NULL;
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++) {
        struct elv_flight *f = &t->flights[i];
        if (f->state == ELV_FLIGHT_LOST && (best == NULL || f->chunk < best->chunk))
            best = f;
    }
    return best;
}

static struct elv_flight *free_flight(struct elv_transfer *t)
{
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++)
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

bool elv_transfer_next(struct elv_transfer *t, elv_time_us now, uint32_t id,
                       struct elv_transmission *out)
{
    if (now < t->paused_until || t->n_flying >= t->window)
        return false;
    struct elv_flight *f = pick(t);
    if (f == NULL)
        return false;

    const bool repeated = f->n_sent > 0;
    *out = (struct elv_transmission){.chunk = f->chunk, .repeated = repeated};
    out->forget[0] = f->id[1];
    out->forget[1] = repeated ? 0 : f->id[0]; /* of another chunk, when the place is reused */
    f->id[1] = repeated ? f->id[0] : 0;
    f->sent_us[1] = f->sent_us[0];
    f->id[0] = id;
    f->sent_us[0] = now;

    const elv_time_us rto = elv_rto(&t->rtt);
    const uint32_t doublings = smaller(f->n_sent, 6); /* 200 ms six times doubled is past the cap */
    const elv_time_us wait = rto << doublings;
    f->overdue_us = now + (wait < ELV_RTO_MAX_US ? wait : ELV_RTO_MAX_US);
    f->n_sent++;
    f->state = ELV_FLIGHT_FLYING;
    t->n_flying++;
    return true;
}

static struct elv_flight *by_id(struct elv_transfer *t, uint32_t id, uint32_t *which)
{
    for (uint32_t i = 0; id != 0 && i < ELV_WINDOW_MAX; i++) {
        for (*which = 0; *which < 2; ++*which)
            if (t->flights[i].id[*which] == id)
                return &t->flights[i];
    }
    return NULL;
}

bool elv_transfer_knows(const struct elv_transfer *t, uint32_t id)
{
    for (uint32_t i = 0; id != 0 && i < ELV_WINDOW_MAX; i++)
        if (t->flights[i].id[0] == id || t->flights[i].id[1] == id)
            return true;
    return false;
}

/* Halves the window when more than a fifth of a window's worth was lost, then counts afresh. */
static void judge(struct elv_transfer *t)
{
    const uint32_t n = t->n_answered + t->n_lost;
    if (n < t->window)
        return;
    if (5 * t->n_lost > n && t->window > 1)
        t->window /= 2;
    t->n_answered = t->n_lost = 0;
}

bool elv_transfer_answered(struct elv_transfer *t, elv_time_us now, uint32_t id, uint32_t *chunk)
{
    uint32_t which;
    struct elv_flight *f = by_id(t, id, &which);
    if (f == NULL)
        return false;
    f->id[which] = 0;
    elv_rtt_sample(&t->rtt, now - f->sent_us[which]);
    t->n_answered++;
    judge(t);
    if (t->window < t->grant)
        t->window++;
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

void elv_transfer_progress(struct elv_transfer *t, const struct elv_missing *m)
{
    for (uint32_t i = t->have.first_clear; i < t->have.n && i < m->first; i++)
        elv_transfer_have(t, i);
    for (uint32_t i = 0; i < ELV_MISSING_BITS && m->first < t->have.n; i++)
        if (listed(m, i) && i < t->have.n - m->first)
            elv_transfer_have(t, m->first + i);
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

static void lose(struct elv_transfer *t, struct elv_flight *f)
{
    f->state = ELV_FLIGHT_LOST;
    t->n_flying--;
}

void elv_transfer_expire(struct elv_transfer *t, elv_time_us now)
{
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++) {
        struct elv_flight *f = &t->flights[i];
        if (f->state != ELV_FLIGHT_FLYING || f->overdue_us > now)
            continue;
        lose(t, f);
        t->n_lost++;
        judge(t);
    }
}

static void lose_all(struct elv_transfer *t)
{
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++)
        if (t->flights[i].state == ELV_FLIGHT_FLYING)
            lose(t, &t->flights[i]);
}

void elv_transfer_pause(struct elv_transfer *t, elv_time_us until)
{
    lose_all(t);
    t->paused_until = until;
}

void elv_transfer_relink(struct elv_transfer *t)
{
    lose_all(t);
    t->window = 1;
    t->n_answered = t->n_lost = 0;
}

static bool may_send(const struct elv_transfer *t)
{
    uint32_t n_lost = 0, n_free = 0;
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++) {
        n_lost += t->flights[i].state == ELV_FLIGHT_LOST;
        n_free += t->flights[i].state == ELV_FLIGHT_FREE;
    }
    return n_lost > 0 || (n_free > 0 && t->next < t->have.n);
}

elv_time_us elv_transfer_deadline(const struct elv_transfer *t)
{
    elv_time_us first = ELV_NEVER;
    for (uint32_t i = 0; i < ELV_WINDOW_MAX; i++) {
        const struct elv_flight *f = &t->flights[i];
        if (f->state == ELV_FLIGHT_FLYING && f->overdue_us < first)
            first = f->overdue_us;
    }
    if (t->n_flying < t->window && may_send(t) && t->paused_until < first)
        first = t->paused_until;
    return first;
}
