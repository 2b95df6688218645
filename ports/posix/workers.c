/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/assert.h"

#define BUDGET_MAX (1u << 20)

struct work {
    struct work *next;
    uint32_t id;
    uint32_t budget;
    struct elv_compute compute;
    enum elv_err result; /* once ended */
    bool cancelled;
};

struct queue {
    struct work *first, **end;
};

struct elv_workers {
    struct elv_workers_cfg cfg;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int event;          /* written when `ended` may have something */
    struct queue ready; /* waits for its next slice */
    struct queue running;
    struct queue ended; /* its event is owed */
    bool stopping;
    struct elv_workers_stats stats;
    uint32_t n_threads;
    pthread_t threads[];
};

static void queue_init(struct queue *q)
{
    q->first = NULL;
    q->end = &q->first;
}

static void push(struct queue *q, struct work *k)
{
    k->next = NULL;
    *q->end = k;
    q->end = &k->next;
}

static void unlink_work(struct queue *q, struct work **at)
{
    struct work *k = *at;
    *at = k->next;
    if (q->end == &k->next)
        q->end = at;
}

static struct work *pop(struct queue *q)
{
    struct work *k = q->first;
    if (k != NULL)
        unlink_work(q, &q->first);
    return k;
}

static struct work **find(struct queue *q, uint32_t id)
{
    for (struct work **at = &q->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->id == id)
            return at;
    }
    return NULL;
}

static void remove_work(struct queue *q, const struct work *k)
{
    struct work **at = find(q, k->id);
    ELV_ASSERT(at != NULL && *at == k);
    unlink_work(q, at);
}

static void free_all(struct queue *q)
{
    for (struct work *k = pop(q); k != NULL; k = pop(q))
        free(k);
}

/* A full counter means that a wake-up is pending already, so the result does not matter. */
static void notify(struct elv_workers *w)
{
    const uint64_t one = 1;
    ssize_t n;
    do
        n = write(w->event, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

/* With the mutex held. */
static void end_work(struct elv_workers *w, struct work *k, enum elv_err result)
{
    k->result = result;
    push(&w->ended, k);
    w->stats.works++;
    notify(w);
}

static elv_time_us now_of(const struct elv_workers *w)
{
    return w->cfg.clock.now(w->cfg.clock.self);
}

static void adapt(const struct elv_workers *w, struct work *k, elv_time_us took)
{
    if (took * 2 < w->cfg.slice_us && k->budget < BUDGET_MAX)
        k->budget *= 2;
    else if (took > w->cfg.slice_us * 2 && k->budget > 1)
        k->budget /= 2;
}

/* Runs one slice of the first work; false if there was none. Called with the mutex held; lets it go
 * while the node computes. */
static bool run_slice(struct elv_workers *w)
{
    struct work *k = pop(&w->ready);
    if (k == NULL)
        return false;
    push(&w->running, k);
    pthread_mutex_unlock(&w->mutex);

    const elv_time_us began = now_of(w);
    const enum elv_err err = w->cfg.node.run(w->cfg.node.self, &k->compute, k->budget);
    const elv_time_us took = now_of(w) - began;

    pthread_mutex_lock(&w->mutex);
    remove_work(&w->running, k);
    w->stats.slices++;
    w->stats.busy_us += took;
    if (took > w->stats.slice_max_us)
        w->stats.slice_max_us = took;
    adapt(w, k, took);
    if (err != ELV_ERR_BUSY)
        end_work(w, k, err);
    else if (k->cancelled)
        end_work(w, k, ELV_ERR_CANCELLED);
    else
        push(&w->ready, k);
    return true;
}

static void *thread(void *self)
{
    struct elv_workers *w = self;
    pthread_mutex_lock(&w->mutex);
    while (!w->stopping) {
        if (!run_slice(w) && !w->stopping)
            pthread_cond_wait(&w->wake, &w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

void elv_workers_start(struct elv_workers *w, uint32_t id, const struct elv_compute *work)
{
    struct work *k = malloc(sizeof *k);
    ELV_ASSERT(k != NULL);
    *k = (struct work){.id = id, .budget = 1, .compute = *work};
    pthread_mutex_lock(&w->mutex);
    push(&w->ready, k);
    w->stats.waiting++;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

void elv_workers_cancel(struct elv_workers *w, uint32_t id)
{
    pthread_mutex_lock(&w->mutex);
    struct work **at = find(&w->ready, id);
    if (at != NULL) {
        struct work *k = *at;
        unlink_work(&w->ready, at);
        end_work(w, k, ELV_ERR_CANCELLED);
    } else if ((at = find(&w->running, id)) != NULL) {
        (*at)->cancelled = true;
    }
    pthread_mutex_unlock(&w->mutex);
}

/* The events are delivered with the mutex free: the node may start and cancel in answer. */
static void deliver_ended(struct elv_workers *w)
{
    uint64_t count;
    while (read(w->event, &count, sizeof count) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&w->mutex);
    for (struct work *k = pop(&w->ended); k != NULL; k = pop(&w->ended)) {
        w->stats.waiting--;
        pthread_mutex_unlock(&w->mutex);
        struct elv_event ev = {.kind = ELV_EV_COMPUTED, .id = k->id, .err = k->result};
        free(k);
        w->cfg.sink.event(w->cfg.sink.self, &ev);
        pthread_mutex_lock(&w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
}

static void ready(void *self)
{
    struct elv_workers *w = self;
    if (w->n_threads == 0) {
        pthread_mutex_lock(&w->mutex);
        run_slice(w);
        pthread_mutex_unlock(&w->mutex);
    }
    deliver_ended(w);
}

static elv_time_us deadline(const void *self)
{
    const struct elv_workers *w = self;
    if (w->n_threads > 0 || w->ready.first == NULL)
        return ELV_NEVER; /* what has ended makes the descriptor readable */
    return 0;             /* at once */
}

struct elv_source elv_workers_source(struct elv_workers *w)
{
    return (struct elv_source){.self = w, .handle = w->event, .ready = ready, .deadline = deadline};
}

void elv_workers_stats(struct elv_workers *w, struct elv_workers_stats *out)
{
    pthread_mutex_lock(&w->mutex);
    *out = w->stats;
    pthread_mutex_unlock(&w->mutex);
}

static enum elv_err start_threads(struct elv_workers *w)
{
    for (; w->n_threads < w->cfg.n_threads; w->n_threads++) {
        if (pthread_create(&w->threads[w->n_threads], NULL, thread, w) != 0)
            return ELV_ERR_IO;
    }
    return ELV_OK;
}

static struct elv_workers *allocate(const struct elv_workers_cfg *cfg)
{
    struct elv_workers *w = calloc(1, sizeof *w + cfg->n_threads * sizeof w->threads[0]);
    if (w == NULL)
        return NULL;
    w->cfg = *cfg;
    if (w->cfg.slice_us == 0)
        w->cfg.slice_us = cfg->n_threads > 0 ? 20000 : 5000;
    queue_init(&w->ready);
    queue_init(&w->running);
    queue_init(&w->ended);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wake, NULL);
    return w;
}

enum elv_err elv_workers_open(struct elv_workers **out, const struct elv_workers_cfg *cfg)
{
    struct elv_workers *w = allocate(cfg);
    if (w == NULL)
        return ELV_ERR_MEMORY;
    w->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    const enum elv_err err = w->event < 0 ? ELV_ERR_IO : start_threads(w);
    if (err != ELV_OK) {
        elv_workers_close(w);
        return err;
    }
    *out = w;
    return ELV_OK;
}

void elv_workers_close(struct elv_workers *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->mutex);
    w->stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    for (uint32_t i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    free_all(&w->ready);
    free_all(&w->running);
    free_all(&w->ended);
    if (w->event >= 0)
        close(w->event);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}
