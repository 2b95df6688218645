/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/queue.h - what waits for the store's thread, and what waits to be reported. */
#ifndef ELV_PORTS_SQLITE_QUEUE_H
#define ELV_PORTS_SQLITE_QUEUE_H

#include <stdbool.h>

#include "common/port.h"

struct elv_queued { /* one STORE action; the copied bytes follow it in the same block */
    struct elv_queued *next;
    struct elv_store_op store;
    uint32_t id;
    bool ends_step; /* the last of its transaction */
    bool refused;   /* comes after a failure nobody has been told yet */
    size_t cost;    /* bytes it keeps in memory */
    uint64_t name;  /* FILE: what the content is called; 0 until written */
    uint64_t sum;   /* FILE: of the content */
    enum elv_err result;
};

struct elv_queue {
    struct elv_queued *first, **end;
};

static inline void elv_queue_init(struct elv_queue *q)
{
    q->first = NULL;
    q->end = &q->first;
}

static inline void elv_queue_push(struct elv_queue *q, struct elv_queued *op)
{
    op->next = NULL;
    *q->end = op;
    q->end = &op->next;
}

/* `to` is replaced; `from` is empty afterwards. */
static inline void elv_queue_move(struct elv_queue *to, struct elv_queue *from)
{
    elv_queue_init(to);
    if (from->first != NULL) {
        to->first = from->first;
        to->end = from->end;
        elv_queue_init(from);
    }
}

static inline void elv_queue_append(struct elv_queue *to, struct elv_queue *from)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    elv_queue_init(from);
}

#endif
