/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_transfer.c - the transfer engine over random bad links, replayed by seed.
 *
 *     sim_transfer FIRST COUNT [-v]
 *
 * A seed draws a link (delay, jitter, rate, queue, loss up to 30 % each way, bursts, duplicates,
 * reordering, outages, changes of address) and what happens on the way: the server loses the
 * association, the receiver restarts and loses what it had not synced, the grant changes. One to
 * three transfers share the link, up or down. Each must be complete and right within a time that
 * follows from the link, repeat no more than was lost and a window for each event, and keep the
 * engine's promises at each step. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/transfer_track.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

enum { EVENTS_MAX = 4, GRANT_MAX = 96 };

enum mishap { CUT, FORGET, REGRANT, MISHAPS };

struct draw {
    struct elv_rng rng;
    struct elv_sim_way up, down;
    uint32_t n_racers, n_events;
    struct {
        elv_time_us at;
        enum mishap what;
        uint32_t who, value;
    } event[EVENTS_MAX];
};

static uint32_t below(struct draw *d, uint32_t n) { return elv_rng_below(&d->rng, n); }
static bool one_in(struct draw *d, uint32_t n) { return below(d, n) == 0; }

static struct elv_sim_way draw_way(struct draw *d)
{
    static const uint32_t rates[] = {0, 0, 3250, 12500, 37500, 125000, 1000000};
    struct elv_sim_way w = {
        .delay = {.shape = one_in(d, 4) ? ELV_SIM_EXPONENTIAL : ELV_SIM_UNIFORM,
                  .min_us = (elv_time_us)below(d, 1 + below(d, 400)) * MS,
                  .max_us = 2 * SECOND},
        .bps = rates[below(d, sizeof rates / sizeof rates[0])],
        .queue_bytes = 8000 + below(d, 100000),
        .loss_ppm = one_in(d, 3) ? 0 : below(d, 1 + below(d, 300000)),
        .in_order = one_in(d, 2),
    };
    w.delay.spread_us = one_in(d, 3) ? 0 : w.delay.min_us * below(d, 100) / 100;
    if (one_in(d, 3))
        w.bursts = (struct elv_sim_bursts){2000 + below(d, 10000), 100000 + below(d, 400000),
                                           500000 + below(d, 500000)};
    if (one_in(d, 3))
        w.duplicate_ppm = below(d, 100000);
    if (one_in(d, 3)) {
        w.reorder_ppm = below(d, 50000);
        w.held_back = (struct elv_sim_delay){.min_us = 1 * MS, .spread_us = 100 * MS};
    }
    if (one_in(d, 4)) {
        w.outages = (struct elv_sim_times){.first_us = 1 + below(d, 3000) * MS};
        w.outage_us = (1 + below(d, 8000)) * MS;
    }
    if (one_in(d, 6))
        w.moves = (struct elv_sim_times){.first_us = 1 + below(d, 3000) * MS,
                                         .every_us = (2000 + below(d, 5000)) * MS};
    return w;
}

static struct draw draw(uint64_t seed)
{
    struct draw d = {.rng =
                         elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST})};
    d.up = draw_way(&d);
    d.down = draw_way(&d);
    d.n_racers = one_in(&d, 2) ? 1 : 1 + below(&d, 3);
    d.n_events = below(&d, EVENTS_MAX + 1);
    elv_time_us at = 0;
    for (uint32_t i = 0; i < d.n_events; i++) {
        at += (1 + below(&d, 3000)) * MS;
        d.event[i].at = at;
        d.event[i].what = (enum mishap)below(&d, MISHAPS);
        d.event[i].who = below(&d, d.n_racers);
        d.event[i].value = 1 + below(&d, GRANT_MAX);
    }
    return d;
}

static void happen(struct track *k, struct racer *r, enum mishap what, uint32_t value)
{
    if (r->done)
        return;
    if (what == CUT)
        track_cut(r);
    else if (what == FORGET && r->upload && r->started) { /* a restart: the association, too */
        track_cut(r);
        track_forget(k, r, value);
    } else if (what == REGRANT)
        elv_transfer_grant(&r->t, value);
}

/* What the link takes for all of it, many times over, and for each event the time in which a dead
 * association is noticed and replaced. */
static elv_time_us bound(const struct track *k, const struct draw *d)
{
    const double kept = (1.0 - elv_sim_way_loss(&k->up)) * (1.0 - elv_sim_way_loss(&k->down));
    double line = 0.0, n = 0.0;
    for (uint32_t i = 0; i < k->n_racers; i++)
        n += k->racers[i]->n;
    const elv_time_us trip = track_trip(k);
    if (k->up.bps != 0)
        line += (double)(TRACK_BIG + k->header) * 1e6 / k->up.bps;
    if (k->down.bps != 0)
        line += (double)(TRACK_BIG + k->header) * 1e6 / k->down.bps;
    const double queue = k->up.bps != 0 || k->down.bps != 0 ? line * 100 : 0.0;
    const double moves = (k->up.moves.first_us != 0) + (k->down.moves.first_us != 0);
    return (elv_time_us)((2 * n * line + n * (double)trip / 2 + 20 * ((double)trip + queue)) /
                         kept) +
           2 * (k->up.outage_us + k->down.outage_us) +
           (elv_time_us)(d->n_events + 2 * moves + 1) * 60 * SECOND;
}

static const char *judge(const struct track *k, const struct draw *d, elv_time_us limit)
{
    if (k->broken != NULL)
        return k->broken;
    uint64_t n = 0, sent = 0;
    for (uint32_t i = 0; i < k->n_racers; i++) {
        const struct racer *r = k->racers[i];
        if (!r->done)
            return k->now >= limit ? "not done in time" : "not done";
        n += r->n;
        sent += r->n_sent;
    }
    const uint64_t lost = elv_sim_fates_lost(&k->fates_up) + elv_sim_fates_lost(&k->fates_down);
    const uint64_t late = k->fates_up.held_back + k->fates_down.held_back;
    uint64_t windows = 0;
    for (uint32_t i = 0; i < k->n_racers; i++)
        windows += k->racers[i]->grant * (1 + 2 * (uint64_t)d->n_events + k->racers[i]->n_relinks);
    if (sent - n > lost + late + 2 * windows + n / 4)
        return "far more is repeated than was lost";
    return NULL;
}

struct figures {
    double longest;
    uint64_t n, sent, vain, lost, worst;
};

static const char *one(uint64_t seed, bool verbose, struct figures *f)
{
    static struct racer racers[3];
    struct draw d = draw(seed);
    struct track k;
    track_open(&k, &d.up, &d.down, seed);
    k.header = TRACK_IP_UDP;
    for (uint32_t i = 0; i < d.n_racers; i++)
        track_enter(&k, &racers[i], one_in(&d, 2), 1 + below(&d, 1 + below(&d, 400)),
                    1 + below(&d, GRANT_MAX), 1 + below(&d, 2000) * MS);
    const elv_time_us limit = bound(&k, &d);
    for (uint32_t i = 0; i < d.n_events; i++) {
        track_run(&k, d.event[i].at);
        happen(&k, &racers[d.event[i].who], d.event[i].what, d.event[i].value);
    }
    track_run(&k, limit);
    const char *wrong = judge(&k, &d, limit);
    for (uint32_t i = 0; i < k.n_racers; i++) {
        f->n += racers[i].n;
        f->sent += racers[i].n_sent;
        f->vain += racers[i].n_vain;
    }
    f->lost += elv_sim_fates_lost(&k.fates_up) + elv_sim_fates_lost(&k.fates_down);
    if ((double)k.now / (double)limit > f->longest) {
        f->longest = (double)k.now / (double)limit;
        f->worst = seed;
    }
    if (verbose || wrong != NULL)
        for (uint32_t i = 0; i < k.n_racers; i++)
            printf("seed %" PRIu64 " racer %u %s: %u of %u chunks, sent %u, repeated %u, in vain "
                   "%u, relinks %u, %.1f s of %.1f s\n",
                   seed, i, racers[i].upload ? "up" : "down", racers[i].t.have.n_set, racers[i].n,
                   racers[i].n_sent, racers[i].n_repeated, racers[i].n_vain, racers[i].n_relinks,
                   (double)(racers[i].done ? racers[i].done_us : k.now) / 1e6, (double)limit / 1e6);
    track_close(&k);
    return wrong;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: sim_transfer FIRST COUNT [-v]\n");
        return 2;
    }
    const uint64_t from = strtoull(argv[1], NULL, 10), n = strtoull(argv[2], NULL, 10);
    const bool verbose = argc > 3 && strcmp(argv[3], "-v") == 0;
    struct figures f = {0};
    int failures = 0;
    for (uint64_t seed = from; seed - from < n && failures < 5; seed++) {
        const char *wrong = one(seed, verbose, &f);
        if (wrong != NULL) {
            printf("seed %" PRIu64 ": %s; replay: sim_transfer %" PRIu64 " 1 -v\n", seed, wrong,
                   seed);
            failures++;
        }
    }
    printf("%" PRIu64 " seeds: %" PRIu64 " chunks, %" PRIu64 " requests, %" PRIu64
           " of them in vain, %" PRIu64
           " datagrams lost; longest %.0f %% of its time (seed %" PRIu64 ")\n",
           n, f.n, f.sent, f.vain, f.lost, 100.0 * f.longest, f.worst);
    return failures > 0;
}
