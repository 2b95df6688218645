/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sim/elver_sim_sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ports/sim/elver_sim_progress.h"
#include "ports/sim/elver_sim_run.h"

struct sweep {
    struct elv_sim_experiment *x;
    atomic_bool *stop;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    uint32_t next, n_ended; /* run to look at; threads that have ended */
    struct elv_sim_progress progress;
    bool failed;
};

struct worker {
    struct sweep *sweep;
    struct elv_sim_seat *seat;
    pthread_t thread;
};

uint32_t elv_sim_threads(const struct elv_sim_options *o)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->threads > 0)
        return o->threads;
    return n > 0 && n <= 1024 ? (uint32_t)n : 1;
}

/* The next run, NULL: there is none, or none is to start any more. */
static struct elv_sim_run *take_run(struct sweep *s, struct elv_sim_seat *seat)
{
    struct elv_sim_run *run = NULL;
    pthread_mutex_lock(&s->lock);
    while (s->next < s->x->n_runs && s->x->runs[s->next].finished)
        s->next++;
    if (!s->failed && !atomic_load(s->stop) && s->next < s->x->n_runs)
        run = &s->x->runs[s->next++];
    seat->run = run;
    atomic_store(&seat->watch.version, 0);
    atomic_store(&seat->watch.ppm, 0);
    pthread_mutex_unlock(&s->lock);
    return run;
}

static void give_run(struct sweep *s, struct elv_sim_seat *seat, enum elv_err err, const char *why)
{
    pthread_mutex_lock(&s->lock);
    if (err == ELV_OK)
        s->progress.n_done++;
    if (err != ELV_OK && err != ELV_ERR_CANCELLED) {
        elv_sim_progress_clear(&s->progress);
        fprintf(stderr, "elver-sim: %s, seed %" PRIu64 ": %s\n", seat->run->outcome.label,
                seat->run->outcome.seed, why);
        s->failed = true;
    }
    seat->run = NULL;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct elv_sim_run *run;
    char why[ELV_JOB_ERROR_MAX];
    while ((run = take_run(w->sweep, w->seat)) != NULL)
        give_run(w->sweep, w->seat, elv_sim_run_do(w->sweep->x, run, &w->seat->watch, why), why);
    pthread_mutex_lock(&w->sweep->lock);
    w->sweep->n_ended++;
    pthread_cond_signal(&w->sweep->changed);
    pthread_mutex_unlock(&w->sweep->lock);
    return NULL;
}

/* Until all threads have ended. */
static void watch_them(struct sweep *s, uint32_t n)
{
    pthread_mutex_lock(&s->lock);
    while (s->n_ended < n) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 200000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
        elv_sim_progress_show(&s->progress);
    }
    elv_sim_progress_clear(&s->progress);
    pthread_mutex_unlock(&s->lock);
}

static uint32_t count_due(const struct elv_sim_experiment *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_runs; i++)
        n += !x->runs[i].finished;
    return n;
}

static int run_on(struct sweep *s, struct worker *workers, uint32_t n)
{
    uint32_t started = 0;
    for (uint32_t i = 0; i < n; i++) {
        workers[i] = (struct worker){.sweep = s, .seat = &s->progress.seats[i]};
        workers[i].seat->watch.stop = s->stop;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            break;
        started++;
    }
    if (started == 0)
        return elv_sim_complain("threads", strerror(errno));
    watch_them(s, started);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    return s->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Whatever somebody does to the clock of the day. */
static void init_steady(pthread_cond_t *c)
{
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(c, &steady);
    pthread_condattr_destroy(&steady);
}

int elv_sim_sweep_run(struct elv_sim_experiment *x, uint32_t threads, atomic_bool *stop)
{
    const uint32_t due = count_due(x);
    const uint32_t n = threads < due ? threads : due;
    struct sweep s = {.x = x, .stop = stop};
    if (due == 0)
        return EXIT_SUCCESS;
    struct worker *workers = calloc(n, sizeof *workers);
    struct elv_sim_seat *seats = calloc(n, sizeof *seats);
    int status = workers == NULL || seats == NULL ? elv_sim_complain("threads", "out of memory")
                                                  : EXIT_SUCCESS;
    if (status == EXIT_SUCCESS) {
        elv_sim_progress_init(&s.progress, seats, n, due, x->asked->quiet);
        pthread_mutex_init(&s.lock, NULL);
        init_steady(&s.changed);
        status = run_on(&s, workers, n);
        pthread_cond_destroy(&s.changed);
        pthread_mutex_destroy(&s.lock);
    }
    free(workers);
    free(seats);
    return status;
}
