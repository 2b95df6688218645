/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_campaign.c - very many seeds of sim_rounds, on all processors.
 *
 *     sim_campaign FIRST COUNT [THREADS]
 *
 * Each thread runs one world after the other; worlds share nothing. One seed in ten runs twice and
 * must give the same events. Prints how far it is now and then, what a failing seed is about and
 * how to replay it, and at the end one line:
 *
 *     campaign seeds=N failed=N events=N faults=N crashes=N versions=N updates=N seconds=S
 *
 * Told to stop, by Ctrl-C or SIGTERM, it ends with the seeds that are under way. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim_explain.h"

enum { THREADS_MAX = 256, EXPLAINED_MAX = 20, TRIES = 300, TWICE = 10, TOLD_EVERY_S = 10 };

struct campaign {
    uint64_t first, count;
    char replay[1024]; /* the program that replays one seed */
    double began;
    pthread_mutex_t lock; /* of all below */
    uint64_t next, n_done, failed;
    double told;
    struct sim_case_sums sums;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell(struct campaign *c)
{
    const double t = now(), took = t - c->began;
    if (t - c->told < TOLD_EVERY_S)
        return;
    c->told = t;
    const double rate = (double)c->n_done / took;
    printf("%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed, %.1f seeds/s, %.0f s left\n",
           c->n_done, c->count, c->failed, rate, (double)(c->count - c->n_done) / rate);
    fflush(stdout);
}

/* False: there is no more. */
static bool take(struct campaign *c, uint64_t *seed)
{
    pthread_mutex_lock(&c->lock);
    const bool more = c->next < c->count && !stop;
    *seed = c->first + c->next;
    c->next += more;
    pthread_mutex_unlock(&c->lock);
    return more;
}

static void give(struct campaign *c, const struct sim_case_cfg *cfg, struct sim_case_end *end)
{
    const bool fine = end->why[0] == '\0';
    pthread_mutex_lock(&c->lock);
    c->n_done++;
    c->failed += !fine;
    sim_case_add(&c->sums, &end->sums);
    if (!fine)
        sim_explain(cfg, end, c->failed <= EXPLAINED_MAX ? TRIES : 0, c->replay);
    tell(c);
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *arg)
{
    struct campaign *c = arg;
    struct sim_case_cfg cfg = {0};
    struct sim_case_end end;
    while (take(c, &cfg.seed)) {
        if (cfg.seed % TWICE == 0)
            sim_case_same(&cfg, &end);
        else
            sim_case_run(&cfg, &end);
        give(c, &cfg, &end);
    }
    return NULL;
}

static uint32_t processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (uint32_t)n;
}

/* The program beside this one. */
static void name_replay(struct campaign *c, const char *self)
{
    const char *slash = strrchr(self, '/');
    const int folder = slash != NULL ? (int)(slash - self) + 1 : 0;
    snprintf(c->replay, sizeof c->replay, "%.*ssim_rounds", folder, self);
}

static void report(const struct campaign *c)
{
    const struct sim_case_sums *s = &c->sums;
    printf("refused=%" PRIu64 " late=%" PRIu64 " lapsed=%" PRIu64 " declined=%" PRIu64
           " abandoned=%" PRIu64 " store_failures=%" PRIu64 " logs_lost=%" PRIu64
           " virtual_hours=%.0f worst_gap=%.3f worst_wait=%.3f\n",
           s->refused, s->late, s->lapsed, s->declined, s->abandoned, s->store_failures,
           s->log_losses, (double)s->virtual_us / 3.6e9, (double)s->worst_gap_us / 1e6,
           (double)s->worst_wait_us / 1e6);
    printf("campaign seeds=%" PRIu64 " failed=%" PRIu64 " events=%" PRIu64 " faults=%" PRIu64
           " crashes=%" PRIu64 " versions=%" PRIu64 " updates=%" PRIu64 " seconds=%.0f\n",
           s->seeds, c->failed, s->events, s->faults, s->crashes, s->versions, s->updates,
           now() - c->began);
}

int main(int argc, char **argv)
{
    static struct campaign c;
    pthread_t threads[THREADS_MAX];
    uint32_t n = processors(), started = 0;
    if (argc > 3)
        n = (uint32_t)strtoul(argv[3], NULL, 10);
    if (argc < 3 || argc > 4 || n < 1 || n > THREADS_MAX) {
        fprintf(stderr, "usage: %s FIRST COUNT [THREADS]\n", argv[0]);
        return 2;
    }
    c.first = strtoull(argv[1], NULL, 10);
    c.count = strtoull(argv[2], NULL, 10);
    c.began = c.told = now();
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
    pthread_mutex_init(&c.lock, NULL);
    name_replay(&c, argv[0]);
    while (started < n && pthread_create(&threads[started], NULL, work, &c) == 0)
        started++;
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    report(&c);
    pthread_mutex_destroy(&c.lock);
    return c.failed == 0 && c.sums.seeds == c.count ? 0 : 1;
}
