/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/disk.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/sim/queue.h"
#include "ports/sim/shelf.h"

struct op {
    enum elv_store_kind kind;
    uint32_t table;
    uint64_t number;
    struct sim_blob value;
    struct elv_bytes source; /* FILE: where `value` was copied from, to see that it stays */
    size_t head;             /* FILE: so much of `value` is the head */
};

struct transaction {
    uint64_t seq;
    enum elv_err err;
    struct op *ops;
    uint32_t n_ops;
    uint32_t *ids; /* those to report */
    uint32_t n_ids;
    bool quiet; /* nothing but appends without an id: it starts no sync */
};

struct report {
    uint32_t id;
    enum elv_err err;
};

struct elv_sim_disk {
    struct elv_sim_disk_cfg cfg;
    struct elv_sim_disk_stats stats;
    struct elv_rng rng;
    struct sim_shelf records, files;
    struct sim_logs logs;
    struct transaction *queue; /* in order of submission */
    uint32_t n_queue, queue_cap;
    uint32_t n_syncing; /* the first so many are being synced */
    elv_time_us sync_ends;
    enum elv_err failing;     /* until the node is told, everything fails */
    struct transaction ghost; /* the one at which the disk died */
    struct report *reports;
    uint32_t n_reports, reports_cap, next_report;
};

static uint64_t used(const struct elv_sim_disk *d)
{
    return d->records.used + d->files.used + d->logs.used;
}

static void note_peak(struct elv_sim_disk *d)
{
    if (used(d) > d->stats.peak)
        d->stats.peak = used(d);
}

static enum elv_err full_or(const struct elv_sim_disk *d, size_t bytes, enum elv_err otherwise)
{
    const bool full = d->cfg.space > 0 && bytes > 0 && used(d) + bytes > d->cfg.space;
    return full ? ELV_ERR_FULL : otherwise;
}

static enum elv_err by_lot(struct elv_sim_disk *d, const struct transaction *t)
{
    const bool unlucky = elv_sim_chance(&d->rng, d->cfg.fail_ppm);
    if (!unlucky && d->stats.transactions != d->cfg.fail_at) {
        size_t bytes = 0;
        for (uint32_t i = 0; i < t->n_ops; i++)
            bytes += t->ops[i].value.len;
        return full_or(d, bytes, ELV_OK);
    }
    return d->cfg.fail_with == ELV_OK ? ELV_ERR_IO : d->cfg.fail_with;
}

static void mark_drops(struct elv_sim_disk *d, const struct transaction *t, bool dropping)
{
    for (uint32_t i = 0; i < t->n_ops; i++) {
        struct sim_log *log = sim_logs_find(&d->logs, t->ops[i].number);
        if (t->ops[i].kind == ELV_STORE_DROP && log != NULL)
            log->dropping = dropping;
    }
}

static enum elv_err outcome(struct elv_sim_disk *d, const struct transaction *t)
{
    if (d->stats.dead || d->failing != ELV_OK)
        return d->stats.dead ? ELV_ERR_IO : d->failing;
    mark_drops(d, t, true);
    enum elv_err err = sim_logs_broken(&d->logs) ? ELV_ERR_FULL : by_lot(d, t);
    if (err != ELV_OK)
        mark_drops(d, t, false);
    return err;
}

static void fail(struct elv_sim_disk *d, struct transaction *t)
{
    d->stats.failed++;
    d->failing = t->err;
    if (t->err != ELV_ERR_IO || !d->cfg.dies || d->stats.dead)
        return;
    d->stats.dead = true;
    d->ghost = *t; /* who knows whether it is on the disk */
    t->ops = NULL;
    t->n_ops = 0;
    d->ghost.ids = NULL;
}

static struct op keep(const struct elv_store_op *s)
{
    struct op op = {.kind = s->kind, .table = s->table, .number = s->number};
    if (s->kind == ELV_STORE_PUT || s->kind == ELV_STORE_FILE)
        op.value = sim_blob_of(s->head, s->bytes);
    if (s->kind == ELV_STORE_FILE) {
        op.source = s->bytes;
        op.head = s->head.len;
    }
    return op;
}

static void try_append(struct elv_sim_disk *d, const struct elv_store_op *s, uint64_t seq)
{
    struct sim_log *log = sim_logs_open(&d->logs, s->number);
    ELV_ASSERT(!log->dropping); /* a step that drops a log is its last user */
    if (log->broken)
        return;
    if (elv_sim_chance(&d->rng, d->cfg.append_fail_ppm) || full_or(d, s->bytes.len, ELV_OK))
        log->broken = true;
    else
        sim_logs_append(&d->logs, log, s->bytes, seq);
}

static void mend(struct elv_sim_disk *d, uint64_t number)
{
    struct sim_log *log = sim_logs_find(&d->logs, number);
    if (log != NULL)
        log->broken = false;
}

static void fill(struct elv_sim_disk *d, struct transaction *t, const struct elv_action *a,
                 uint32_t n)
{
    t->ops = elv_sim_alloc(n * sizeof *t->ops);
    t->ids = elv_sim_alloc(n * sizeof *t->ids);
    t->quiet = true;
    for (uint32_t i = 0; i < n; i++) {
        ELV_ASSERT(a[i].kind == ELV_DO_STORE);
        if (a[i].id != 0)
            t->ids[t->n_ids++] = a[i].id;
        if (a[i].id != 0 || a[i].store.kind != ELV_STORE_APPEND)
            t->quiet = false;
        if (a[i].store.kind == ELV_STORE_MEND)
            mend(d, a[i].store.number);
        if (a[i].store.kind == ELV_STORE_APPEND)
            try_append(d, &a[i].store, t->seq);
        else
            t->ops[t->n_ops++] = keep(&a[i].store);
    }
    t->err = outcome(d, t);
    if (t->err != ELV_OK)
        fail(d, t);
}

static void start_sync(struct elv_sim_disk *d)
{
    bool wanted = false;
    for (uint32_t i = 0; i < d->n_queue && !wanted; i++)
        wanted = !d->queue[i].quiet;
    if (!wanted)
        return;
    d->n_syncing = d->n_queue;
    d->sync_ends = d->cfg.clock.now(d->cfg.clock.self) + elv_sim_delay_draw(&d->cfg.sync, &d->rng);
}

static void submit(void *self, const struct elv_action *actions, uint32_t n)
{
    struct elv_sim_disk *d = self;
    ELV_ASSERT(n > 0);
    if (d->n_queue == d->queue_cap) {
        d->queue_cap = d->queue_cap == 0 ? 16 : 2 * d->queue_cap;
        d->queue = elv_sim_grow(d->queue, d->queue_cap, sizeof *d->queue);
    }
    struct transaction *t = &d->queue[d->n_queue++];
    *t = (struct transaction){.seq = ++d->stats.transactions};
    fill(d, t, actions, n);
    note_peak(d);
    if (d->n_syncing == 0)
        start_sync(d);
}

static void apply(struct elv_sim_disk *d, struct op *op)
{
    switch (op->kind) {
    case ELV_STORE_APPEND: /* done when it was submitted */
    case ELV_STORE_MEND:
        break;
    case ELV_STORE_DROP:
        sim_logs_drop(&d->logs, op->number);
        break;
    case ELV_STORE_PUT:
        sim_shelf_put(&d->records, op->table, op->number, op->value);
        op->value = (struct sim_blob){0};
        break;
    case ELV_STORE_ERASE:
        sim_shelf_erase(&d->records, op->table, op->number);
        break;
    case ELV_STORE_FILE:
        sim_shelf_put(&d->files, op->table, op->number, op->value);
        op->value = (struct sim_blob){0};
        break;
    case ELV_STORE_UNLINK:
        sim_shelf_erase(&d->files, op->table, op->number);
        break;
    }
}

static void discard(struct transaction *t)
{
    for (uint32_t i = 0; i < t->n_ops; i++)
        free(t->ops[i].value.at);
    free(t->ops);
    free(t->ids);
}

/* The first `n` transactions of the queue happen, the others stay queued. */
static void commit(struct elv_sim_disk *d, uint32_t n)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct transaction *t = &d->queue[i];
        for (uint32_t k = 0; k < t->n_ops && t->err == ELV_OK; k++)
            apply(d, &t->ops[k]);
        if (!t->quiet && t->err == ELV_OK)
            last = t->seq;
        discard(t);
    }
    note_peak(d);
    sim_logs_sync(&d->logs, last);
    d->n_queue -= n;
    if (d->n_queue > 0)
        memmove(d->queue, d->queue + n, d->n_queue * sizeof *d->queue);
}

/* A FILE's bytes stay as they are until STORED: hold the node to it. */
static void check_sources(const struct elv_sim_disk *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < d->queue[i].n_ops; k++) {
            const struct op *op = &d->queue[i].ops[k];
            ELV_ASSERT(op->source.len == 0 ||
                       memcmp(op->value.at + op->head, op->source.at, op->source.len) == 0);
        }
}

static void report(struct elv_sim_disk *d, const struct transaction *t)
{
    for (uint32_t i = 0; i < t->n_ids; i++) {
        if (d->n_reports == d->reports_cap) {
            d->reports_cap = d->reports_cap == 0 ? 16 : 2 * d->reports_cap;
            d->reports = elv_sim_grow(d->reports, d->reports_cap, sizeof *d->reports);
        }
        d->reports[d->n_reports++] = (struct report){.id = t->ids[i], .err = t->err};
    }
}

static void finish_sync(struct elv_sim_disk *d)
{
    const uint32_t n = d->n_syncing;
    check_sources(d, n);
    for (uint32_t i = 0; i < n; i++)
        report(d, &d->queue[i]);
    d->n_syncing = 0;
    d->stats.syncs++;
    commit(d, n);
    start_sync(d);
}

struct elv_sim_disk *elv_sim_disk_new(const struct elv_sim_disk_cfg *cfg)
{
    ELV_ASSERT(cfg->clock.now != NULL);
    struct elv_sim_disk *d = elv_sim_alloc(sizeof *d);
    d->cfg = *cfg;
    d->rng = elv_rng_of((struct elv_rng_key){
        .seed = cfg->seed, .client = cfg->number, .round = 1, .purpose = ELV_RNG_DEVICE});
    return d;
}

void elv_sim_disk_free(struct elv_sim_disk *d)
{
    if (d == NULL)
        return;
    for (uint32_t i = 0; i < d->n_queue; i++)
        discard(&d->queue[i]);
    discard(&d->ghost);
    sim_logs_free(&d->logs);
    sim_shelf_free(&d->records);
    sim_shelf_free(&d->files);
    free(d->queue);
    free(d->reports);
    free(d);
}

struct elv_sim_disk_cfg *elv_sim_disk_cfg(struct elv_sim_disk *d) { return &d->cfg; }

struct elv_store elv_sim_disk_store(struct elv_sim_disk *d)
{
    return (struct elv_store){.self = d, .submit = submit};
}

elv_time_us elv_sim_disk_due(const struct elv_sim_disk *d)
{
    if (d->next_report < d->n_reports)
        return d->cfg.clock.now(d->cfg.clock.self);
    return d->n_syncing > 0 ? d->sync_ends : ELV_NEVER;
}

bool elv_sim_disk_poll(struct elv_sim_disk *d, uint32_t *id, enum elv_err *err)
{
    if (d->next_report == d->n_reports) {
        d->next_report = d->n_reports = 0;
        if (d->n_syncing > 0 && d->sync_ends <= d->cfg.clock.now(d->cfg.clock.self))
            finish_sync(d);
        if (d->n_reports == 0)
            return false;
    }
    const struct report *r = &d->reports[d->next_report++];
    *id = r->id;
    *err = r->err;
    if (r->err != ELV_OK)
        d->failing = ELV_OK;
    return true;
}

/* Whoever opens the disk again finds it working, and one riddle solved. */
static void reopen(struct elv_sim_disk *d)
{
    for (uint32_t i = 0; i < d->n_queue; i++)
        discard(&d->queue[i]);
    d->n_queue = d->n_syncing = 0;
    d->n_reports = d->next_report = 0;
    d->failing = ELV_OK;
    if (d->stats.dead && elv_sim_chance(&d->rng, ELV_SIM_PPM / 2))
        for (uint32_t k = 0; k < d->ghost.n_ops; k++)
            apply(d, &d->ghost.ops[k]);
    d->stats.dead = false;
    discard(&d->ghost);
    d->ghost = (struct transaction){0};
    sim_logs_settle(&d->logs);
}

void elv_sim_disk_crash(struct elv_sim_disk *d, bool power)
{
    const uint32_t kept = elv_rng_below(&d->rng, d->n_queue + 1);
    d->stats.lost += d->n_queue - kept;
    commit(d, kept);
    if (power)
        d->stats.lost_bytes += sim_logs_tear(&d->logs, &d->rng, d->cfg.torn);
    reopen(d);
}

void elv_sim_disk_flush(struct elv_sim_disk *d)
{
    commit(d, d->n_queue);
    reopen(d);
}

struct elv_sim_disk_stats elv_sim_disk_stats(const struct elv_sim_disk *d)
{
    struct elv_sim_disk_stats stats = d->stats;
    stats.used = used(d);
    stats.logs = d->logs.n;
    return stats;
}

static bool read_fails(struct elv_sim_disk *d)
{
    return elv_sim_chance(&d->rng, d->cfg.read_fail_ppm);
}

static enum elv_err scan(void *self, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value))
{
    struct elv_sim_disk *d = self;
    if (read_fails(d))
        return ELV_ERR_IO;
    const struct sim_shelf *s = &d->records;
    for (uint32_t i = sim_shelf_place(s, table, 0); i < s->n && s->at[i].table == table; i++) {
        const struct sim_named *v = &s->at[i];
        const struct elv_bytes value = {.at = v->value.at, .len = v->value.len};
        const enum elv_err err = each(ctx, v->number, value);
        if (err != ELV_OK)
            return err;
    }
    return ELV_OK;
}

static void read_part(const uint8_t *at, size_t have, uint64_t offset, uint8_t *out, size_t len,
                      size_t *got)
{
    const size_t left = offset < have ? have - (size_t)offset : 0;
    *got = len < left ? len : left;
    if (*got > 0)
        memcpy(out, at + offset, *got);
}

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    struct elv_sim_disk *d = self;
    const struct sim_log *log = sim_logs_find(&d->logs, number);
    if (read_fails(d))
        return ELV_ERR_IO;
    if (log == NULL)
        return ELV_ERR_MISSING;
    read_part(log->at, log->len, offset, out, len, got);
    return ELV_OK;
}

static enum elv_err read_file(void *self, uint32_t table, uint64_t number, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got)
{
    struct elv_sim_disk *d = self;
    const struct sim_named *v = sim_shelf_find(&d->files, table, number);
    if (read_fails(d))
        return ELV_ERR_IO;
    if (v == NULL)
        return ELV_ERR_MISSING;
    read_part(v->value.at, v->value.len, offset, out, len, got);
    return ELV_OK;
}

struct elv_disk elv_sim_disk_view(struct elv_sim_disk *d)
{
    return (struct elv_disk){.self = d, .scan = scan, .read_log = read_log, .read_file = read_file};
}
