/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake_disk.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"

static void *grow(void *at, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return at;
    *cap = *cap ? *cap * 2 : 16;
    void *more = realloc(at, *cap * size);
    ELV_ASSERT(more != NULL);
    return more;
}

static uint8_t *copy(const uint8_t *at, size_t len)
{
    uint8_t *own = malloc(len > 0 ? len : 1);
    ELV_ASSERT(own != NULL);
    if (len > 0)
        memcpy(own, at, len);
    return own;
}

void fake_disk_init(struct fake_disk *d) { *d = (struct fake_disk){0}; }

static void free_items(struct fake_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        free(items->at[i].at);
    free(items->at);
}

static void forget_queue(struct fake_disk *d)
{
    for (size_t i = 0; i < d->n_queue; i++)
        free(d->queue[i].own);
    d->n_queue = 0;
}

void fake_disk_free(struct fake_disk *d)
{
    forget_queue(d);
    free_items(&d->records);
    free_items(&d->files);
    for (size_t i = 0; i < d->n_logs; i++)
        free(d->logs[i].at);
    free(d->logs);
    free(d->queue);
    free(d->last);
    free(d->events);
}

/* Items are kept in rising order of (table, number). */
static size_t rank(const struct fake_items *items, uint32_t table, uint64_t number)
{
    size_t i = 0;
    while (i < items->n && (items->at[i].table < table ||
                            (items->at[i].table == table && items->at[i].number < number)))
        i++;
    return i;
}

static struct fake_item *find(const struct fake_items *items, uint32_t table, uint64_t number)
{
    const size_t i = rank(items, table, number);
    const bool here = i < items->n && items->at[i].table == table && items->at[i].number == number;
    return here ? &items->at[i] : NULL;
}

static void erase(struct fake_items *items, uint32_t table, uint64_t number)
{
    struct fake_item *item = find(items, table, number);
    if (item == NULL)
        return;
    free(item->at);
    const size_t i = (size_t)(item - items->at);
    memmove(item, item + 1, (items->n - i - 1) * sizeof *item);
    items->n--;
}

static void put(struct fake_items *items, uint32_t table, uint64_t number, struct elv_bytes head,
                struct elv_bytes bytes)
{
    erase(items, table, number);
    items->at = grow(items->at, items->n, &items->cap, sizeof *items->at);
    const size_t i = rank(items, table, number);
    memmove(items->at + i + 1, items->at + i, (items->n - i) * sizeof *items->at);
    struct fake_item item = {.table = table, .number = number, .len = head.len + bytes.len};
    item.at = malloc(item.len > 0 ? item.len : 1);
    ELV_ASSERT(item.at != NULL);
    if (head.len > 0)
        memcpy(item.at, head.at, head.len);
    if (bytes.len > 0)
        memcpy(item.at + head.len, bytes.at, bytes.len);
    items->at[i] = item;
    items->n++;
}

struct fake_log *fake_disk_log(struct fake_disk *d, uint64_t number)
{
    for (size_t i = 0; i < d->n_logs; i++)
        if (d->logs[i].number == number)
            return &d->logs[i];
    return NULL;
}

static void append(struct fake_disk *d, uint64_t number, struct elv_bytes bytes)
{
    if (d->drop_appends)
        d->broken_log = number;
    if (d->broken_log == number && number != 0)
        return;
    struct fake_log *log = fake_disk_log(d, number);
    if (log == NULL) {
        d->logs = realloc(d->logs, (d->n_logs + 1) * sizeof *d->logs);
        ELV_ASSERT(d->logs != NULL);
        log = &d->logs[d->n_logs++];
        *log = (struct fake_log){.number = number};
    }
    while (log->cap < log->len + bytes.len) {
        log->cap = log->cap ? log->cap * 2 : 4096;
        log->at = realloc(log->at, log->cap);
        ELV_ASSERT(log->at != NULL);
    }
    if (bytes.len > 0)
        memcpy(log->at + log->len, bytes.at, bytes.len);
    log->len += bytes.len;
}

static void drop(struct fake_disk *d, uint64_t number)
{
    struct fake_log *log = fake_disk_log(d, number);
    if (d->broken_log == number)
        d->broken_log = 0;
    if (log == NULL)
        return;
    free(log->at);
    *log = d->logs[--d->n_logs];
}

static void enqueue(struct fake_disk *d, const struct elv_action *a)
{
    size_t cap = d->cap_queue;
    d->queue = grow(d->queue, d->n_queue, &d->cap_queue, sizeof *d->queue);
    d->last = grow(d->last, d->n_queue, &cap, sizeof *d->last);
    struct fake_op *q = &d->queue[d->n_queue];
    *q = (struct fake_op){.op = a->store, .id = a->id};
    if (a->store.kind != ELV_STORE_FILE) { /* those stay in place until STORED */
        q->own = copy(a->store.bytes.at, a->store.bytes.len);
        q->op.bytes.at = q->own;
    }
    d->last[d->n_queue++] = false;
}

void fake_disk_submit(struct fake_disk *d, const struct elv_action *actions, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n && !d->dead; i++) {
        if (actions[i].kind != ELV_DO_STORE)
            continue;
        if (actions[i].store.kind == ELV_STORE_APPEND) {
            append(d, actions[i].store.number, actions[i].store.bytes);
            ELV_ASSERT(actions[i].id == 0); /* nobody waits for an append alone */
            continue;
        }
        if (actions[i].store.kind == ELV_STORE_MEND && actions[i].store.number == d->broken_log &&
            !d->drop_appends)
            d->broken_log = 0;
        enqueue(d, &actions[i]);
        any = true;
    }
    if (any)
        d->last[d->n_queue - 1] = true;
}

static void carry_out(struct fake_disk *d, const struct fake_op *q)
{
    const struct elv_store_op *op = &q->op;
    const struct elv_bytes none = {0};
    switch (op->kind) {
    case ELV_STORE_DROP:
        drop(d, op->number);
        break;
    case ELV_STORE_PUT:
        put(&d->records, op->table, op->number, none, op->bytes);
        break;
    case ELV_STORE_ERASE:
        erase(&d->records, op->table, op->number);
        break;
    case ELV_STORE_FILE:
        put(&d->files, op->table, op->number, op->head, op->bytes);
        break;
    case ELV_STORE_UNLINK:
        erase(&d->files, op->table, op->number);
        break;
    case ELV_STORE_APPEND:
    case ELV_STORE_MEND:
        break;
    }
}

static void report(struct fake_disk *d, uint32_t id, enum elv_err err)
{
    if (id == 0)
        return;
    d->events = grow(d->events, d->n_events, &d->cap_events, sizeof *d->events);
    d->events[d->n_events++] = (struct elv_event){.kind = ELV_EV_STORED, .id = id, .err = err};
}

static bool drops_broken_log(const struct fake_disk *d, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (d->queue[i].op.kind == ELV_STORE_DROP && d->queue[i].op.number == d->broken_log)
            return true;
    return false;
}

static void transact(struct fake_disk *d, size_t from, size_t to, bool *failing)
{
    if (d->crash_at != 0 && d->n_transactions + 1 >= d->crash_at) {
        d->dead = true;
        return;
    }
    const bool broken = d->broken_log != 0 && !drops_broken_log(d, from, to);
    bool told = false;
    if (d->fail > 0 || broken) {
        d->fail -= d->fail > 0;
        *failing = true; /* and with it all that was submitted behind it */
    }
    if (!*failing)
        d->n_transactions++;
    for (size_t i = from; i < to; i++) {
        if (!*failing)
            carry_out(d, &d->queue[i]);
        report(d, d->queue[i].id, *failing ? ELV_ERR_IO : ELV_OK);
        told = told || d->queue[i].id != 0;
    }
    d->failing = *failing && !told;
    for (size_t i = 0; i < d->n_logs && !*failing; i++)
        d->logs[i].synced = d->logs[i].len;
}

void fake_disk_flush(struct fake_disk *d)
{
    bool failing = d->failing; /* until somebody hears of it */
    for (size_t from = 0, to; from < d->n_queue && !d->dead; from = to) {
        for (to = from; !d->last[to]; to++)
            continue;
        to++;
        transact(d, from, to, &failing);
    }
    forget_queue(d);
}

bool fake_disk_next(struct fake_disk *d, struct elv_event *ev)
{
    if (d->dead || d->at_event == d->n_events) {
        d->at_event = d->n_events = 0;
        return false;
    }
    *ev = d->events[d->at_event++];
    return true;
}

void fake_disk_crash(struct fake_disk *d, bool power)
{
    forget_queue(d);
    d->n_events = d->at_event = 0;
    d->dead = d->failing = false;
    d->crash_at = 0;
    d->broken_log = 0;
    for (size_t i = 0; power && i < d->n_logs; i++)
        d->logs[i].len = d->logs[i].synced;
}

static enum elv_err scan(void *self, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value))
{
    const struct fake_disk *d = self;
    for (size_t i = 0; i < d->records.n; i++) {
        const struct fake_item *item = &d->records.at[i];
        if (item->table != table)
            continue;
        const enum elv_err err = each(ctx, item->number, (struct elv_bytes){item->at, item->len});
        if (err != ELV_OK)
            return err;
    }
    return ELV_OK;
}

static enum elv_err slice(const uint8_t *at, size_t have, uint64_t offset, uint8_t *out, size_t len,
                          size_t *got)
{
    *got = 0;
    if (offset >= have)
        return ELV_OK;
    const size_t left = have - (size_t)offset;
    *got = len < left ? len : left;
    if (*got > 0)
        memcpy(out, at + offset, *got);
    return ELV_OK;
}

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    const struct fake_log *log = fake_disk_log(self, number);
    if (log == NULL)
        return ELV_ERR_MISSING;
    return slice(log->at, log->len, offset, out, len, got);
}

static enum elv_err read_file(void *self, uint32_t table, uint64_t number, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got)
{
    const struct fake_item *file = fake_disk_file(self, table, number);
    if (file == NULL)
        return ELV_ERR_MISSING;
    return slice(file->at, file->len, offset, out, len, got);
}

struct elv_disk fake_disk_disk(struct fake_disk *d)
{
    return (struct elv_disk){.self = d, .scan = scan, .read_log = read_log, .read_file = read_file};
}

const struct fake_item *fake_disk_record(const struct fake_disk *d, uint32_t table, uint64_t number)
{
    return find(&d->records, table, number);
}

const struct fake_item *fake_disk_file(const struct fake_disk *d, uint32_t table, uint64_t number)
{
    return find(&d->files, table, number);
}
