/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/shelf.h"

#include <stdlib.h>
#include <string.h>

#include "ports/sim/queue.h"

struct sim_blob sim_blob_of(struct elv_bytes head, struct elv_bytes bytes)
{
    struct sim_blob b = {.len = head.len + bytes.len};
    b.at = elv_sim_alloc(b.len);
    if (head.len > 0)
        memcpy(b.at, head.at, head.len);
    if (bytes.len > 0)
        memcpy(b.at + head.len, bytes.at, bytes.len);
    return b;
}

uint32_t sim_shelf_place(const struct sim_shelf *s, uint32_t table, uint64_t number)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const struct sim_named *v = &s->at[mid];
        if (v->table < table || (v->table == table && v->number < number))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct sim_named *sim_shelf_find(const struct sim_shelf *s, uint32_t table, uint64_t number)
{
    const uint32_t i = sim_shelf_place(s, table, number);
    const bool there = i < s->n && s->at[i].table == table && s->at[i].number == number;
    return there ? &s->at[i] : NULL;
}

static struct sim_named *insert(struct sim_shelf *s, uint32_t table, uint64_t number)
{
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 16 : 2 * s->cap;
        s->at = elv_sim_grow(s->at, s->cap, sizeof *s->at);
    }
    const uint32_t i = sim_shelf_place(s, table, number);
    memmove(&s->at[i + 1], &s->at[i], (s->n - i) * sizeof *s->at);
    s->n++;
    s->at[i] = (struct sim_named){.table = table, .number = number};
    return &s->at[i];
}

void sim_shelf_put(struct sim_shelf *s, uint32_t table, uint64_t number, struct sim_blob value)
{
    struct sim_named *v = sim_shelf_find(s, table, number);
    if (v == NULL)
        v = insert(s, table, number);
    s->used += value.len;
    s->used -= v->value.len;
    free(v->value.at);
    v->value = value;
}

void sim_shelf_erase(struct sim_shelf *s, uint32_t table, uint64_t number)
{
    struct sim_named *v = sim_shelf_find(s, table, number);
    if (v == NULL)
        return;
    s->used -= v->value.len;
    free(v->value.at);
    s->n--;
    memmove(v, v + 1, (s->n - (size_t)(v - s->at)) * sizeof *v);
}

void sim_shelf_free(struct sim_shelf *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        free(s->at[i].value.at);
    free(s->at);
    *s = (struct sim_shelf){0};
}

struct sim_log *sim_logs_find(const struct sim_logs *l, uint64_t number)
{
    for (uint32_t i = 0; i < l->n; i++) /* one per open round: a handful */
        if (l->at[i].number == number)
            return &l->at[i];
    return NULL;
}

struct sim_log *sim_logs_open(struct sim_logs *l, uint64_t number)
{
    struct sim_log *log = sim_logs_find(l, number);
    if (log != NULL)
        return log;
    if (l->n == l->cap) {
        l->cap = l->cap == 0 ? 4 : 2 * l->cap;
        l->at = elv_sim_grow(l->at, l->cap, sizeof *l->at);
    }
    log = &l->at[l->n++];
    *log = (struct sim_log){.number = number};
    return log;
}

bool sim_logs_broken(const struct sim_logs *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].broken && !l->at[i].dropping)
            return true;
    return false;
}

void sim_logs_append(struct sim_logs *l, struct sim_log *log, struct elv_bytes bytes, uint64_t seq)
{
    if (bytes.len > log->cap - log->len) {
        log->cap = 2 * (log->len + bytes.len);
        log->at = elv_sim_grow(log->at, log->cap, 1);
    }
    if (bytes.len > 0)
        memcpy(log->at + log->len, bytes.at, bytes.len);
    log->len += bytes.len;
    l->used += bytes.len;
    if (log->n_marks == log->marks_cap) {
        log->marks_cap = log->marks_cap == 0 ? 16 : 2 * log->marks_cap;
        log->marks = elv_sim_grow(log->marks, log->marks_cap, sizeof *log->marks);
    }
    log->marks[log->n_marks++] = (struct sim_mark){.seq = seq, .end = log->len};
}

void sim_logs_drop(struct sim_logs *l, uint64_t number)
{
    struct sim_log *log = sim_logs_find(l, number);
    if (log == NULL)
        return;
    l->used -= log->len;
    free(log->at);
    free(log->marks);
    *log = l->at[--l->n];
}

void sim_logs_sync(struct sim_logs *l, uint64_t seq)
{
    for (uint32_t i = 0; i < l->n; i++) {
        struct sim_log *log = &l->at[i];
        uint32_t n = 0;
        while (n < log->n_marks && log->marks[n].seq <= seq)
            log->durable = log->marks[n++].end;
        if (n == 0)
            continue;
        log->n_marks -= n;
        memmove(log->marks, log->marks + n, log->n_marks * sizeof *log->marks);
    }
}

static size_t cut_of(const struct sim_log *log, struct elv_rng *rng, bool torn)
{
    if (torn)
        return (size_t)elv_sim_between(rng, (elv_time_us)log->durable, (elv_time_us)log->len);
    const uint32_t kept = elv_rng_below(rng, log->n_marks + 1);
    return kept == 0 ? log->durable : log->marks[kept - 1].end;
}

uint64_t sim_logs_tear(struct sim_logs *l, struct elv_rng *rng, bool torn)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        struct sim_log *log = &l->at[i];
        const size_t len = cut_of(log, rng, torn);
        lost += log->len - len;
        log->len = len;
    }
    l->used -= lost;
    return lost;
}

void sim_logs_settle(struct sim_logs *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        l->at[i].durable = l->at[i].len;
        l->at[i].n_marks = 0;
        l->at[i].broken = l->at[i].dropping = false;
    }
}

void sim_logs_free(struct sim_logs *l)
{
    while (l->n > 0)
        sim_logs_drop(l, l->at[0].number);
    free(l->at);
    *l = (struct sim_logs){0};
}
