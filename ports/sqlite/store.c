/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/assert.h"
#include "ports/sqlite/state.h"

static struct elv_bytes put_copy(uint8_t **at, struct elv_bytes from)
{
    if (from.len > 0)
        memcpy(*at, from.at, from.len);
    const struct elv_bytes copy = {.at = *at, .len = from.len};
    *at += from.len;
    return copy;
}

static struct elv_queued *copy_op(const struct elv_action *a)
{
    const struct elv_store_op *s = &a->store;
    const bool keeps_bytes = s->kind == ELV_STORE_PUT;
    const size_t extra = s->head.len + (keeps_bytes ? s->bytes.len : 0);
    struct elv_queued *op = calloc(1, sizeof *op + extra);
    ELV_ASSERT(op != NULL);
    op->store = *s;
    op->id = a->id;
    op->cost = sizeof *op + extra;
    uint8_t *at = (uint8_t *)(op + 1);
    op->store.head = put_copy(&at, s->head);
    if (keeps_bytes)
        op->store.bytes = put_copy(&at, s->bytes);
    return op;
}

/* A log whose number is used again: its old file must be gone first. Rare, and short. */
static void wait_for_drop(struct elv_sqlite *s, uint64_t number)
{
    if (!elv_logs_dropping(&s->logs, number))
        return;
    pthread_mutex_lock(&s->mutex);
    s->stats.stalls++;
    while (elv_logs_dropping(&s->logs, number))
        pthread_cond_wait(&s->room, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

static void mend_all(struct elv_sqlite *s, const struct elv_action *actions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (actions[i].store.kind == ELV_STORE_MEND)
            elv_logs_mend(&s->logs, actions[i].store.number);
    }
}

static void append_all(struct elv_sqlite *s, const struct elv_action *actions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (actions[i].store.kind == ELV_STORE_APPEND) {
            wait_for_drop(s, actions[i].store.number);
            elv_logs_append(&s->logs, actions[i].store.number, actions[i].store.bytes);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (actions[i].store.kind == ELV_STORE_APPEND)
            elv_logs_touch(&s->logs, actions[i].store.number);
    }
}

static void mark_drops(struct elv_sqlite *s, const struct elv_action *actions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (actions[i].store.kind == ELV_STORE_DROP)
            elv_logs_mark_drop(&s->logs, actions[i].store.number, true);
    }
}

/* Appends nobody wants to hear of are done; all else makes a transaction. */
static bool is_work(const struct elv_action *actions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (actions[i].store.kind != ELV_STORE_APPEND || actions[i].id != 0)
            return true;
    }
    return false;
}

static void enqueue(struct elv_sqlite *s, const struct elv_action *actions, uint32_t n)
{
    struct elv_queue step;
    size_t cost = 0;
    elv_queue_init(&step);
    for (uint32_t i = 0; i < n; i++) {
        struct elv_queued *op = copy_op(&actions[i]);
        op->ends_step = i + 1 == n;
        cost += op->cost;
        elv_queue_push(&step, op);
    }
    const bool leans_on_lost_bytes = elv_logs_broken(&s->logs) > 0;

    pthread_mutex_lock(&s->mutex);
    if (leans_on_lost_bytes) {
        s->refusing = true;
        snprintf(s->why, sizeof s->why, "an upload log could not be written");
    }
    if (s->waiting_len > 0 && s->waiting_len + cost > s->queue_max)
        s->stats.stalls++;
    while (s->waiting_len > 0 && s->waiting_len + cost > s->queue_max)
        pthread_cond_wait(&s->room, &s->mutex);
    for (struct elv_queued *op = step.first; op != NULL; op = op->next)
        op->refused = s->refusing || s->stats.dead;
    elv_queue_append(&s->waiting, &step);
    s->waiting_len += cost;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
}

static void submit(void *self, const struct elv_action *actions, uint32_t n)
{
    struct elv_sqlite *s = self;
    mend_all(s, actions, n);
    append_all(s, actions, n);
    mark_drops(s, actions, n);
    if (is_work(actions, n))
        enqueue(s, actions, n);
}

struct elv_store elv_sqlite_store(struct elv_sqlite *s)
{
    return (struct elv_store){.self = s, .submit = submit};
}

static elv_time_us now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (elv_time_us)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static struct elv_queued *first_refused(struct elv_queued *op)
{
    while (op != NULL && !op->refused)
        op = op->next;
    return op;
}

static uint64_t settle(struct elv_queued *first, const struct elv_queued *end, enum elv_err result)
{
    uint64_t n = 0;
    for (struct elv_queued *op = first; op != end; op = op->next) {
        op->result = result;
        n += op->ends_step;
    }
    return n;
}

/* What failed is not dropped: the log is still in use. */
static void unmark_drops(struct elv_sqlite *s, const struct elv_queued *first)
{
    for (const struct elv_queued *op = first; op != NULL; op = op->next) {
        if (op->store.kind == ELV_STORE_DROP)
            elv_logs_mark_drop(&s->logs, op->store.number, false);
    }
}

/* With the mutex held: what has come meanwhile builds on what has failed. */
static void refuse_the_rest(struct elv_sqlite *s)
{
    s->refusing = true;
    s->stats.dead = s->batch.dead;
    snprintf(s->why, sizeof s->why, "%s", s->batch.why);
    for (struct elv_queued *op = s->waiting.first; op != NULL; op = op->next)
        op->refused = true;
}

static void count(struct elv_sqlite *s, uint64_t n_done, uint64_t n_failed, elv_time_us took)
{
    s->stats.transactions += n_done;
    s->stats.failures += n_failed;
    s->stats.batches += n_done > 0;
    if (n_done > s->stats.batch_max)
        s->stats.batch_max = n_done;
    if (took > s->stats.batch_max_us)
        s->stats.batch_max_us = took;
}

static void notify(struct elv_sqlite *s)
{
    const uint64_t one = 1;
    ssize_t n;
    do
        n = write(s->event, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

/* Called with the mutex held; lets it go for the disk. */
static void work_off(struct elv_sqlite *s)
{
    struct elv_queue taken;
    elv_queue_move(&taken, &s->waiting);
    s->waiting_len = 0;
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->mutex);

    const elv_time_us began = now();
    struct elv_queued *end = first_refused(taken.first);
    enum elv_err err = ELV_OK;
    if (taken.first != end)
        err = elv_batch_commit(&s->batch, taken.first, end);
    const uint64_t n_tried = settle(taken.first, end, err);
    const uint64_t n_refused = settle(end, NULL, ELV_ERR_IO);
    unmark_drops(s, err == ELV_OK ? end : taken.first);

    pthread_mutex_lock(&s->mutex);
    if (err != ELV_OK)
        refuse_the_rest(s);
    count(s, err == ELV_OK ? n_tried : 0, n_refused + (err == ELV_OK ? 0 : n_tried), now() - began);
    elv_queue_append(&s->done, &taken);
    pthread_cond_broadcast(&s->room);
    notify(s);
    pthread_mutex_unlock(&s->mutex);

    elv_batch_tidy(&s->batch);
    pthread_mutex_lock(&s->mutex);
    pthread_cond_broadcast(&s->room);
}

void *elv_sqlite_thread(void *self)
{
    struct elv_sqlite *s = self;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopping || s->waiting.first != NULL) {
        if (s->waiting.first != NULL)
            work_off(s);
        else
            pthread_cond_wait(&s->wake, &s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* From here on the node knows of the failure, and what it submits counts again. */
static void told(struct elv_sqlite *s)
{
    pthread_mutex_lock(&s->mutex);
    s->refusing = false;
    pthread_mutex_unlock(&s->mutex);
}

static void report(struct elv_sqlite *s, const struct elv_queued *op)
{
    if (op->id == 0)
        return;
    if (op->result != ELV_OK)
        told(s);
    struct elv_event ev = {.kind = ELV_EV_STORED, .id = op->id, .err = op->result};
    s->sink.event(s->sink.self, &ev);
}

static void ready(void *self)
{
    struct elv_sqlite *s = self;
    uint64_t ignored;
    while (read(s->event, &ignored, sizeof ignored) < 0 && errno == EINTR)
        continue;
    struct elv_queue done;
    pthread_mutex_lock(&s->mutex);
    elv_queue_move(&done, &s->done);
    pthread_mutex_unlock(&s->mutex);
    while (done.first != NULL) {
        struct elv_queued *op = done.first;
        done.first = op->next;
        report(s, op);
        free(op);
    }
}

static elv_time_us deadline(const void *self)
{
    (void)self;
    return ELV_NEVER;
}

struct elv_source elv_sqlite_source(struct elv_sqlite *s)
{
    return (struct elv_source){.self = s, .handle = s->event, .ready = ready, .deadline = deadline};
}

void elv_sqlite_connect(struct elv_sqlite *s, struct elv_sink sink) { s->sink = sink; }

static enum elv_err scan(void *self, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value))
{
    struct elv_sqlite *s = self;
    return elv_db_scan(&s->db, table, ctx, each);
}

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    struct elv_sqlite *s = self;
    return elv_logs_read(&s->logs, number, offset, out, len, got);
}

static enum elv_err read_file(void *self, uint32_t table, uint64_t number, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got)
{
    struct elv_sqlite *s = self;
    return elv_files_read(&s->files, table, number, offset, out, len, got);
}

struct elv_disk elv_sqlite_disk(struct elv_sqlite *s)
{
    return (struct elv_disk){.self = s, .scan = scan, .read_log = read_log, .read_file = read_file};
}

void elv_sqlite_stats(struct elv_sqlite *s, struct elv_sqlite_stats *out)
{
    pthread_mutex_lock(&s->mutex);
    *out = s->stats;
    pthread_mutex_unlock(&s->mutex);
    struct statvfs v;
    if (statvfs(s->folder, &v) == 0)
        out->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
}

void elv_sqlite_why(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX])
{
    pthread_mutex_lock(&s->mutex);
    memcpy(why, s->why, sizeof s->why);
    pthread_mutex_unlock(&s->mutex);
}
