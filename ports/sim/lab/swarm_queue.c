/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/swarm_queue.h"

#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/queue.h"

static bool before(const struct elv_swarm_due *a, const struct elv_swarm_due *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    return a->who != b->who ? a->who < b->who : a->what < b->what;
}

void elv_swarm_queue_push(struct elv_swarm_queue *q, struct elv_swarm_due e)
{
    if (q->n == q->cap) {
        q->cap = q->cap == 0 ? 64 : q->cap * 2;
        q->heap = elv_sim_grow(q->heap, q->cap, sizeof *q->heap);
    }
    uint32_t i = q->n++;
    while (i > 0) {
        const uint32_t up = (i - 1) / 4;
        if (!before(&e, &q->heap[up]))
            break;
        q->heap[i] = q->heap[up];
        i = up;
    }
    q->heap[i] = e;
}

elv_time_us elv_swarm_queue_first(const struct elv_swarm_queue *q)
{
    return q->n > 0 ? q->heap[0].at : ELV_NEVER;
}

/* The earliest child of `i`; `n` when it has none. */
static uint32_t first_child(const struct elv_swarm_queue *q, uint32_t i)
{
    const uint32_t from = 4 * i + 1;
    if (from >= q->n)
        return q->n;
    const uint32_t to = q->n - from < 4 ? q->n : from + 4;
    uint32_t best = from;
    for (uint32_t k = from + 1; k < to; k++)
        if (before(&q->heap[k], &q->heap[best]))
            best = k;
    return best;
}

struct elv_swarm_due elv_swarm_queue_pop(struct elv_swarm_queue *q)
{
    ELV_ASSERT(q->n > 0);
    const struct elv_swarm_due first = q->heap[0], last = q->heap[--q->n];
    uint32_t i = 0;
    for (uint32_t child; (child = first_child(q, i)) < q->n && before(&q->heap[child], &last);
         i = child)
        q->heap[i] = q->heap[child];
    q->heap[i] = last;
    return first;
}

void elv_swarm_queue_free(struct elv_swarm_queue *q)
{
    free(q->heap);
    *q = (struct elv_swarm_queue){0};
}
