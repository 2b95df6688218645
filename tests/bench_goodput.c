/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_goodput.c - what the transfer engine makes of links that people know, beside a
 * transfer that waits for each block (RFC 7959), computed for the same link.
 *
 * On virtual time, so the figures are the same on every machine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/transfer_track.h"

static struct racer racers[TRACK_RACERS_MAX];

/* Bytes per second of one kilobyte in each round trip: the first time out is 2 to 3 s and doubles,
 * RFC 7252, section 4.2; at most four repeats, and then the whole is lost. */
static double block1(const struct elv_sim_way *up, const struct elv_sim_way *down, bool upload)
{
    const struct elv_sim_way *way = upload ? up : down;
    const double line = way->bps == 0 ? 0.0 : (double)(TRACK_BIG + TRACK_IP_UDP) / way->bps;
    const double trip = (double)(up->delay.min_us + up->delay.spread_us / 2 + down->delay.min_us +
                                 down->delay.spread_us / 2) /
                            1e6 +
                        line;
    const double kept = (1.0 - elv_sim_way_loss(up)) * (1.0 - elv_sim_way_loss(down));
    double time = trip, wait = 2.5, lost = 1.0 - kept;
    for (int i = 0; i < 4; i++, wait *= 2, lost *= 1.0 - kept)
        time += lost * wait;
    return TRACK_VALUES / time;
}

static void one(const char *name, const struct elv_sim_way *up, const struct elv_sim_way *down,
                bool upload, uint32_t n, uint32_t header)
{
    struct track k;
    double total = 0.0, repeated = 0.0;
    elv_time_us wait = 0;
    enum { TIMES = 5 };
    for (uint64_t seed = 1; seed <= TIMES; seed++) {
        track_open(&k, up, down, seed);
        k.header = header;
        track_enter(&k, &racers[0], upload, n, ELV_WINDOW_MAX, 1);
        const bool done = track_run(&k, (elv_time_us)3600 * 1000000);
        if (!done || k.broken != NULL) {
            printf("%s: %s\n", name, k.broken ? k.broken : "not done");
            exit(1);
        }
        total += (double)n * TRACK_VALUES / ((double)racers[0].done_us / 1e6);
        repeated += racers[0].n_repeated;
        const struct elv_sim_fates *f = upload ? &k.fates_up : &k.fates_down;
        wait = f->wait_longest_us > wait ? f->wait_longest_us : wait;
        track_close(&k);
    }
    const double ours = total / TIMES, theirs = block1(up, down, upload);
    printf("bench goodput_%s_%s %.0f bytes/s ref block1 %.0f ratio %.1f  # repeats %.1f%% longest "
           "queue %" PRId64 " ms%s",
           name, upload ? "up" : "down", ours, theirs, ours / theirs, 100.0 * repeated / TIMES / n,
           wait / 1000, "");
    const struct elv_sim_way *way = upload ? up : down;
    if (way->bps != 0)
        printf(" of the line %.1f%%", 100.0 * ours / way->bps);
    printf("\n");
}

static struct elv_sim_way way(elv_time_us delay, uint32_t bps, uint32_t queue, uint32_t loss_ppm)
{
    return (struct elv_sim_way){
        .delay = {.min_us = delay}, .bps = bps, .queue_bytes = queue, .loss_ppm = loss_ppm};
}

static void share(uint32_t n_racers, elv_time_us apart, uint32_t loss)
{
    struct track k;
    const struct elv_sim_way w = way(50000, 125000, 64000, loss);
    track_open(&k, &w, &w, 1);
    for (uint32_t i = 0; i < n_racers; i++)
        track_enter(&k, &racers[i], true, 10000, ELV_WINDOW_MAX, 1 + i * apart);
    for (elv_time_us t = 5; t <= 40; t += 5) {
        uint32_t before[TRACK_RACERS_MAX], all = 0;
        for (uint32_t i = 0; i < n_racers; i++)
            before[i] = racers[i].t.have.n_set;
        k.fates_up.wait_longest_us = 0;
        track_run(&k, t * 1000000);
        printf("share %u apart %d ms: to %2d s ", n_racers, (int)(apart / 1000), (int)t);
        for (uint32_t i = 0; i < n_racers; i++)
            all += racers[i].t.have.n_set - before[i];
        for (uint32_t i = 0; i < n_racers; i++)
            printf(" %4.1f%%", 100.0 * (racers[i].t.have.n_set - before[i]) / all);
        printf("  fill %.1f%% queue %d ms, least %d ms w %u\n", all * 1000.0 / 5 / 125000 * 100,
               (int)(k.fates_up.wait_longest_us / 1000), (int)(racers[0].t.flow.least / 1000),
               racers[0].t.flow.window);
    }
    track_close(&k);
}

int main(void)
{
    const struct elv_sim_profile *p;
    for (size_t i = 0; (p = elv_sim_profile_at(i)) != NULL; i++) {
        const uint32_t n = p->up.bps < 10000 ? 80 : 1000;
        one(p->name, &p->up, &p->down, true, n, TRACK_IP_UDP);
        one(p->name, &p->up, &p->down, false, n, TRACK_IP_UDP);
    }
    static const elv_time_us trips[] = {50, 100};
    static const uint32_t losses[] = {0, 10000, 50000};
    for (int t = 0; t < 2; t++) {
        for (int l = 0; l < 3; l++) {
            char name[32];
            snprintf(name, sizeof name, "%d_ms_%u", (int)trips[t], losses[l] / 10000);
            const struct elv_sim_way w = way(trips[t] * 500, 0, 0, losses[l]);
            one(name, &w, &w, true, 1000, 0);
            one(name, &w, &w, false, 1000, 0);
        }
    }
    for (int l = 0; l < 3; l += 2) {
        const struct elv_sim_way w = way(50000, 125000, 64000, losses[l]);
        one(l == 0 ? "mbit" : "mbit_5", &w, &w, true, 2000, 0);
        one(l == 0 ? "mbit" : "mbit_5", &w, &w, false, 2000, 0);
    }
    share(2, 0, 0);
    share(2, 3000000, 0);
    share(2, 3000000, 50000);
    share(4, 1000000, 0);
    share(8, 500000, 0);
    return 0;
}
