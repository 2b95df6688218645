/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/queue.h"

#include <stdlib.h>

#include "common/assert.h"
#include "common/size.h"

static void (*no_memory)(void);

void elv_sim_on_no_memory(void (*end)(void)) { no_memory = end; }

static void *checked(void *p)
{
    if (p == NULL && no_memory != NULL)
        no_memory();
    ELV_ASSERT(p != NULL);
    return p;
}

void *elv_sim_alloc(size_t len) { return checked(calloc(1, len > 0 ? len : 1)); }

void *elv_sim_grow(void *old, size_t n, size_t size)
{
    size_t len = 0;
    ELV_ASSERT(elv_size_mul(n, size, &len) && len > 0);
    return checked(realloc(old, len));
}

static bool before(const struct elv_sim_entry *a, const struct elv_sim_entry *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

void elv_sim_queue_push(struct elv_sim_queue *q, elv_time_us at, uint32_t kind, uint32_t arg,
                        void *what)
{
    if (q->n == q->cap) {
        q->cap = q->cap == 0 ? 64 : 2 * q->cap;
        q->heap = elv_sim_grow(q->heap, q->cap, sizeof *q->heap);
    }
    const struct elv_sim_entry e = {
        .at = at, .seq = q->seq++, .kind = kind, .arg = arg, .what = what};
    uint32_t i = q->n++;
    for (; i > 0 && before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = e;
    if (q->n > q->peak)
        q->peak = q->n;
}

const struct elv_sim_entry *elv_sim_queue_first(const struct elv_sim_queue *q)
{
    return q->n > 0 ? &q->heap[0] : NULL;
}

struct elv_sim_entry elv_sim_queue_pop(struct elv_sim_queue *q)
{
    ELV_ASSERT(q->n > 0);
    const struct elv_sim_entry first = q->heap[0];
    const struct elv_sim_entry last = q->heap[--q->n];
    uint32_t i = 0;
    for (;;) { /* ends: i at least doubles */
        uint32_t child = 2 * i + 1;
        if (child >= q->n)
            break;
        if (child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    if (q->n > 0)
        q->heap[i] = last;
    return first;
}

void elv_sim_queue_free(struct elv_sim_queue *q)
{
    free(q->heap);
    *q = (struct elv_sim_queue){0};
}

uint32_t elv_sim_timers_add(struct elv_sim_timers *t)
{
    if (t->n == t->cap) {
        t->cap = t->cap == 0 ? 16 : 2 * t->cap;
        t->due = elv_sim_grow(t->due, t->cap, sizeof *t->due);
        t->place = elv_sim_grow(t->place, t->cap, sizeof *t->place);
        t->heap = elv_sim_grow(t->heap, t->cap, sizeof *t->heap);
    }
    t->due[t->n] = ELV_NEVER;
    t->place[t->n] = 0;
    return t->n++;
}

static bool earlier(const struct elv_sim_timers *t, uint32_t a, uint32_t b)
{
    return t->due[a] < t->due[b] || (t->due[a] == t->due[b] && a < b);
}

static void put(struct elv_sim_timers *t, uint32_t place, uint32_t index)
{
    t->heap[place] = index;
    t->place[index] = place;
}

static void rise(struct elv_sim_timers *t, uint32_t i, uint32_t index)
{
    for (; i > 0 && earlier(t, index, t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        put(t, i, t->heap[(i - 1) / 2]);
    put(t, i, index);
}

static void sink(struct elv_sim_timers *t, uint32_t i, uint32_t index)
{
    for (;;) { /* ends: i at least doubles */
        uint32_t child = 2 * i + 1;
        if (child >= t->n_armed)
            break;
        if (child + 1 < t->n_armed && earlier(t, t->heap[child + 1], t->heap[child]))
            child++;
        if (!earlier(t, t->heap[child], index))
            break;
        put(t, i, t->heap[child]);
        i = child;
    }
    put(t, i, index);
}

static void take_out(struct elv_sim_timers *t, uint32_t index)
{
    const uint32_t hole = t->place[index];
    const uint32_t last = t->heap[--t->n_armed];
    if (last == index)
        return;
    rise(t, hole, last);
    sink(t, t->place[last], last);
}

void elv_sim_timers_set(struct elv_sim_timers *t, uint32_t index, elv_time_us due)
{
    ELV_ASSERT(index < t->n);
    if (t->due[index] == due)
        return;
    if (t->due[index] != ELV_NEVER)
        take_out(t, index);
    t->due[index] = due;
    if (due != ELV_NEVER)
        rise(t, t->n_armed++, index);
}

elv_time_us elv_sim_timers_first(const struct elv_sim_timers *t, uint32_t *index)
{
    if (t->n_armed == 0)
        return ELV_NEVER;
    *index = t->heap[0];
    return t->due[t->heap[0]];
}

void elv_sim_timers_free(struct elv_sim_timers *t)
{
    free(t->due);
    free(t->place);
    free(t->heap);
    *t = (struct elv_sim_timers){0};
}
