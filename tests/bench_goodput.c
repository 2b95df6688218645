/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_goodput.c - what the transfer engine makes of links that people know, beside a
 * transfer that waits for each block (RFC 7959), computed for the same link.
 *
 * On virtual time, so the figures are the same on every machine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

enum { TIMES = 5 };
#define LONG_US (INT64_C(3600) * 1000000)

struct figures {
    double rate, repeated; /* bytes of the model per second; share sent again */
    elv_time_us queue;     /* the longest wait for the line */
};

static struct figures measure(const struct elv_sim_way *up, const struct elv_sim_way *down,
                              bool upload, uint32_t n, uint32_t header)
{
    struct figures f = {0};
    for (uint64_t seed = 1; seed <= TIMES; seed++) {
        struct track k;
        track_open(&k, up, down, seed);
        k.header = header;
        track_enter(&k, &racers[0], upload, n, ELV_WINDOW_MAX, 1);
        if (!track_run(&k, LONG_US) || k.broken != NULL) {
            fprintf(stderr, "bench_goodput: %s\n", k.broken != NULL ? k.broken : "not done");
            exit(1);
        }
        const struct elv_sim_fates *fates = upload ? &k.fates_up : &k.fates_down;
        f.rate += (double)n * TRACK_VALUES * 1e6 / (double)racers[0].done_us / TIMES;
        f.repeated += (double)racers[0].n_repeated / n / TIMES;
        f.queue = fates->wait_longest_us > f.queue ? fates->wait_longest_us : f.queue;
        track_close(&k);
    }
    return f;
}

static void one(const char *name, const struct elv_sim_way *up, const struct elv_sim_way *down,
                bool upload, uint32_t n, uint32_t header)
{
    const struct figures f = measure(up, down, upload, n, header);
    const double theirs = block1(up, down, upload);
    const struct elv_sim_way *laden = upload ? up : down;
    printf("bench goodput_%s_%s %.0f bytes/s ref block1 %.0f ratio %.1f\n", name,
           upload ? "up" : "down", f.rate, theirs, f.rate / theirs);
    printf("goodput_%s_%s sent %.1f %% again, waited %" PRId64 " ms at most", name,
           upload ? "up" : "down", 100.0 * f.repeated, f.queue / 1000);
    if (laden->bps != 0)
        printf(", filled %.1f %% of the line", 100.0 * f.rate / laden->bps);
    printf("\n");
}

static void both(const char *name, const struct elv_sim_way *up, const struct elv_sim_way *down,
                 uint32_t n, uint32_t header)
{
    one(name, up, down, true, n, header);
    one(name, up, down, false, n, header);
}

static struct elv_sim_way way(elv_time_us delay, uint32_t bps, uint32_t queue, uint32_t loss_ppm)
{
    return (struct elv_sim_way){
        .delay = {.min_us = delay}, .bps = bps, .queue_bytes = queue, .loss_ppm = loss_ppm};
}

/* Transfers that start one after the other on 1 Mbit/s: what the poorest got of an even share. */
static void share(uint32_t n, elv_time_us apart)
{
    struct track k;
    const struct elv_sim_way w = way(50000, 125000, 64000, 0);
    uint32_t before[TRACK_RACERS_MAX], all = 0, least = UINT32_MAX;
    track_open(&k, &w, &w, 1);
    for (uint32_t i = 0; i < n; i++)
        track_enter(&k, &racers[i], true, 10000, ELV_WINDOW_MAX, 1 + i * apart);
    track_run(&k, n * apart + 3000000);
    for (uint32_t i = 0; i < n; i++)
        before[i] = racers[i].t.have.n_set;
    k.fates_up.wait_longest_us = 0;
    track_run(&k, n * apart + 23000000);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t got = racers[i].t.have.n_set - before[i];
        all += got;
        least = got < least ? got : least;
    }
    printf("bench goodput_share_of_%u %.2f even ref budget 0.80 ratio %.2f\n", n,
           (double)least * n / all, (double)least * n / all / 0.8);
    printf("goodput_share_of_%u filled %.1f %% of the line, waited %" PRId64 " ms at most\n", n,
           all * (double)TRACK_VALUES / 20 / 1250, k.fates_up.wait_longest_us / 1000);
    track_close(&k);
}

int main(void)
{
    const struct elv_sim_profile *p;
    for (size_t i = 0; (p = elv_sim_profile_at(i)) != NULL; i++)
        both(p->name, &p->up, &p->down, p->up.bps < 10000 ? 80 : 1000, TRACK_IP_UDP);
    static const int trips[] = {50, 100}, losses[] = {0, 1, 5};
    for (int t = 0; t < 2; t++) {
        for (int l = 0; l < 3; l++) {
            char name[32];
            snprintf(name, sizeof name, "%d_ms_%d_pct", trips[t], losses[l]);
            const struct elv_sim_way w = way(trips[t] * 500, 0, 0, (uint32_t)losses[l] * 10000);
            both(name, &w, &w, 1000, 0);
        }
    }
    const struct elv_sim_way clean = way(50000, 125000, 64000, 0),
                             bad = way(50000, 125000, 64000, 50000);
    both("1_mbit_0_pct", &clean, &clean, 2000, 0);
    both("1_mbit_5_pct", &bad, &bad, 2000, 0);
    for (uint32_t n = 2; n <= 8; n *= 2)
        share(n, 1000000);
    return 0;
}
