/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/transfer_track.h"

#include <stdlib.h>

enum { ASK, TELL };

struct packet {
    uint32_t id, chunk, epoch;
    struct elv_missing missing;
};

static void promise(struct track *k, bool kept, const char *what)
{
    if (!kept && k->broken == NULL)
        k->broken = what;
}

void track_open(struct track *k, const struct elv_sim_way *up, const struct elv_sim_way *down,
                uint64_t seed)
{
    *k = (struct track){.up = *up, .down = *down, .now = 1};
    k->net = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_NETWORK});
    k->rng = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
}

void track_close(struct track *k)
{
    while (k->queue.n > 0)
        free(elv_sim_queue_pop(&k->queue).what);
    elv_sim_queue_free(&k->queue);
}

void track_enter(struct track *k, struct racer *r, bool upload, uint32_t n, uint32_t grant,
                 elv_time_us at)
{
    *r = (struct racer){.upload = upload,
                        .n = n,
                        .grant = grant,
                        .burst = 4,
                        .number = k->n_racers,
                        .start_us = at};
    elv_transfer_init(&r->t, r->flights, TRACK_WINDOW_MAX);
    elv_transfer_grant(&r->t, grant);
    elv_bitmap_init(&r->got, r->there, n);
    k->racers[k->n_racers++] = r;
}

static void put(struct track *k, bool up, const struct racer *r, uint32_t bytes,
                const struct packet *p)
{
    struct elv_sim_passage passage =
        elv_sim_pass(up ? &k->lane_up : &k->lane_down, up ? &k->up : &k->down, &k->net, k->now,
                     bytes + k->header);
    elv_sim_fates_count(up ? &k->fates_up : &k->fates_down, &passage, bytes + k->header);
    for (uint32_t i = 0; i < passage.n; i++) {
        struct packet *copy = elv_sim_alloc(sizeof *copy);
        *copy = *p;
        elv_sim_queue_push(&k->queue, passage.at[i], up ? ASK : TELL, r->number, copy);
    }
}

static void ask(struct track *k, struct racer *r, const struct elv_transmission *s)
{
    const struct packet p = {.id = r->id, .chunk = s->chunk, .epoch = r->epoch};
    promise(k, !elv_bitmap_get(&r->t.have, s->chunk), "a chunk is sent that is known to be there");
    r->n_sent++;
    r->n_repeated += s->repeated;
    elv_link_asked(&r->link, k->now, elv_rto(&r->t.flow.rtt), &k->rng);
    if (r->upload && elv_bitmap_get(&r->got, s->chunk))
        r->n_vain++;
    if (r->up_us == 0)
        put(k, true, r, r->upload ? TRACK_BIG : TRACK_ASK, &p);
}

static void arrive(struct track *k, struct racer *r, const struct packet *p)
{
    if (p->epoch != r->server_epoch)
        return;
    struct packet answer = *p;
    if (r->upload) {
        elv_bitmap_set(&r->got, p->chunk);
        elv_missing_of(&r->got, &answer.missing);
    }
    put(k, false, r, r->upload ? TRACK_TELL : TRACK_BIG, &answer);
}

static void answered(struct track *k, struct racer *r, const struct packet *p)
{
    uint32_t chunk;
    if (p->epoch != r->epoch || r->done)
        return;
    elv_link_heard(&r->link, k->now, elv_rto(&r->t.flow.rtt), &k->rng);
    if (!elv_transfer_answered(&r->t, k->now, p->id, &chunk))
        return;
    promise(k, chunk == p->chunk, "an answer is taken for one about another chunk");
    elv_transfer_have(&r->t, chunk);
    if (r->upload)
        elv_transfer_progress(&r->t, &p->missing);
}

elv_time_us track_trip(const struct track *k)
{
    return k->up.delay.min_us + k->up.delay.spread_us + k->down.delay.min_us +
           k->down.delay.spread_us + 1000;
}

static void relink(struct track *k, struct racer *r)
{
    r->n_relinks++;
    elv_link_renewed(&r->link, k->now, elv_rto(&r->t.flow.rtt), &k->rng);
    elv_transfer_relink(&r->t);
    if (r->up_us == 0)
        r->up_us = k->now + 3 * track_trip(k); /* a handshake with a cookie */
}

static void associated(struct track *k, struct racer *r)
{
    r->up_us = 0;
    r->epoch = ++r->server_epoch;
    elv_transfer_pause(&r->t, k->now); /* what was in flight is asked again */
}

static void commit(struct track *k, struct racer *r)
{
    struct elv_missing m;
    r->commit_us = 0;
    if (r->upload && r->got.n_set != r->got.n) {
        elv_missing_of(&r->got, &m);
        elv_transfer_missing(&r->t, &m);
        promise(k, !elv_transfer_complete(&r->t), "what is missing is not sent again");
        return;
    }
    r->done = true;
    r->done_us = k->now;
    elv_link_idle(&r->link);
    promise(k, r->upload || r->t.have.n_set == r->n, "a body is done that is not complete");
}

static void start(struct track *k, struct racer *r)
{
    (void)k;
    r->started = true;
    elv_transfer_begin(&r->t, r->words, r->n);
}

static void send(struct track *k, struct racer *r)
{
    struct elv_transmission s;
    const uint32_t most = r->t.flow.window > r->t.n_flying ? r->t.flow.window : r->t.n_flying;
    for (uint32_t i = 0; elv_transfer_next(&r->t, k->now, r->id + 1, &s); i++) {
        r->id++;
        ask(k, r, &s);
    }
    uint32_t flying = 0;
    for (uint32_t i = 0; i < r->t.n_flights; i++) {
        const struct elv_flight *f = &r->t.flights[i];
        flying += f->state == ELV_FLIGHT_FLYING;
        promise(k, f->state == ELV_FLIGHT_FREE || !elv_bitmap_get(&r->t.have, f->chunk),
                "a chunk that is there is still waited for");
    }
    promise(k, flying == r->t.n_flying, "flights are miscounted");
    promise(k, r->t.n_flying <= most + 1, "more is in flight than the window allows");
    promise(k, r->t.flow.window <= r->t.flow.grant && r->t.flow.window > 0,
            "the window is beyond the grant");
}

/* All that is due for one racer. */
static void turn(struct track *k, struct racer *r)
{
    if (r->done || k->now < r->start_us)
        return;
    if (!r->started)
        start(k, r);
    if (r->commit_us != 0 && k->now >= r->commit_us)
        commit(k, r);
    if (r->up_us != 0 && k->now >= r->up_us)
        associated(k, r);
    if (r->done || r->commit_us != 0)
        return;
    elv_transfer_expire(&r->t, k->now);
    if (k->now >= elv_link_deadline(&r->link))
        relink(k, r);
    send(k, r);
    if (elv_transfer_complete(&r->t)) {
        elv_link_idle(&r->link);
        r->commit_us = r->upload ? k->now + track_trip(k) : k->now;
        if (!r->upload)
            commit(k, r);
    }
}

static elv_time_us deadline(const struct track *k, const struct racer *r)
{
    if (r->done)
        return ELV_NEVER;
    if (!r->started)
        return r->start_us;
    if (r->commit_us != 0)
        return r->commit_us;
    elv_time_us at = elv_transfer_deadline(&r->t);
    const elv_time_us quiet = elv_link_deadline(&r->link);
    at = quiet < at ? quiet : at;
    at = r->up_us != 0 && r->up_us < at ? r->up_us : at;
    return at > k->now ? at : k->now + 1;
}

static elv_time_us next_event(const struct track *k)
{
    const struct elv_sim_entry *first = elv_sim_queue_first(&k->queue);
    elv_time_us at = first != NULL ? first->at : ELV_NEVER;
    for (uint32_t i = 0; i < k->n_racers; i++) {
        const elv_time_us due = deadline(k, k->racers[i]);
        at = due < at ? due : at;
    }
    return at;
}

static bool all_done(const struct track *k)
{
    for (uint32_t i = 0; i < k->n_racers; i++)
        if (!k->racers[i]->done)
            return false;
    return true;
}

static void deliver(struct track *k)
{
    while (elv_sim_queue_first(&k->queue) != NULL && elv_sim_queue_first(&k->queue)->at <= k->now) {
        const struct elv_sim_entry e = elv_sim_queue_pop(&k->queue);
        struct packet *p = e.what;
        struct racer *r = k->racers[e.arg];
        if (e.kind == ASK)
            arrive(k, r, p);
        else
            answered(k, r, p);
        free(p);
    }
}

bool track_run(struct track *k, elv_time_us until)
{
    while (!all_done(k) && k->broken == NULL) {
        const elv_time_us at = next_event(k);
        if (at > until) {
            promise(k, at != ELV_NEVER, "a transfer waits for nothing");
            break;
        }
        k->now = at > k->now ? at : k->now;
        deliver(k);
        for (uint32_t i = 0; i < k->n_racers; i++)
            turn(k, k->racers[i]);
    }
    if (!all_done(k) && until > k->now && until != ELV_NEVER)
        k->now = until;
    return all_done(k);
}

void track_cut(struct racer *r) { r->server_epoch++; }

void track_forget(struct track *k, struct racer *r, uint32_t n)
{
    for (uint32_t i = r->got.n; i > 0 && n > 0; i--) {
        if (!elv_bitmap_get(&r->got, i - 1))
            continue;
        n--;
        if (elv_rng_below(&k->rng, 2) == 0)
            elv_bitmap_clear(&r->got, i - 1);
    }
}

elv_time_us track_ideal(const struct track *k, bool upload, uint32_t n)
{
    const struct elv_sim_way *way = upload ? &k->up : &k->down;
    const elv_time_us line =
        way->bps == 0 ? 0 : (elv_time_us)((uint64_t)(TRACK_BIG + k->header) * 1000000u / way->bps);
    const double kept = (1.0 - elv_sim_way_loss(&k->up)) * (1.0 - elv_sim_way_loss(&k->down));
    return (elv_time_us)((double)line * n / kept) + track_trip(k);
}
