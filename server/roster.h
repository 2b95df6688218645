/* SPDX-License-Identifier: Apache-2.0 */
/* server/roster.h - who has ever joined, what they can do, and what they were asked.
 *
 * A row per client number, found through a hash, walked in rising order of number; rows are never
 * moved or removed, because a decision is remembered for ever. Capacity is fixed. */
#ifndef ELV_SERVER_ROSTER_H
#define ELV_SERVER_ROSTER_H

#include "../common/arena.h"
#include "ledger.h"
#include "sizing.h"

#define ELV_ROW_NONE UINT32_MAX

/* Work handed out. It stands for the round that `seq` names and is void once that has ended; or it
 * is the client's `own`, in a stream, and stands until it is decided or its time is over. */
struct elv_offer {
    uint32_t assignment; /* 0: never had one */
    uint32_t seq;
    uint32_t version; /* it starts from */
    bool own;
    elv_time_us granted; /* own: on the clock of the run, see offer.c */
    bool promised;       /* not durable yet, so not to be seen */
    bool finishes;       /* its round closed without it, and the policy lets it finish, */
    elv_time_us ends;    /* until then */
    bool told;           /* the policy knows that it came too late, or need not */
    struct elv_size size;
};

struct elv_row {
    uint32_t client;
    bool joined;
    bool capped;      /* its exaggerated weight was reported */
    bool waiting;     /* the open round waits for it; in a stream: its own work is not decided */
    bool lapsed;      /* was silent past the time of its work: not there, until it asks again */
    bool wants;       /* in the queue of those that want work */
    bool used;        /* scratch: an update of it counts ... */
    uint32_t claimed; /* ... and so much is the most that one of these claims */
    bool held;        /* the policy would not let it start when it asked last */
    bool observes, to_notify;
    bool gone;        /* revoked since it joined */
    uint8_t n_asking; /* joins and leaves that wait for the disk */
    uint64_t boot, boot_before;
    elv_time_us joined_at; /* ELV_NEVER: before this process started */
    uint64_t memory;
    uint32_t speed, samples;
    uint8_t codec;
    struct elv_offer offer;
    struct elv_offer missed;      /* the one before, if it was never decided; assignment 0: none */
    struct elv_rec_decision last; /* assignment 0: none yet */
    struct elv_rec_decision before; /* durable; what `last` goes back to if it cannot be stored */
    bool last_durable, last_failed; /* neither: its STORE is under way */
    uint32_t upload;                /* slot, or ELV_ROW_NONE */
    uint64_t log_of;                /* which upload log `log_bytes` counts */
    uint64_t log_bytes;             /* what its chunks take there */
};

struct elv_roster {
    struct elv_row *rows;
    uint32_t n, cap;
    uint32_t n_joined;
    uint32_t n_lapsed; /* of those */
    uint32_t *order;   /* [n] rows in rising order of client number */
    uint32_t *slots;   /* [n_slots] hash table of row + 1; 0: free */
    uint32_t n_slots;  /* a power of two */
};

void elv_roster_layout(struct elv_roster *r, struct elv_arena *a, uint32_t cap);

/* ELV_ROW_NONE when unknown. */
uint32_t elv_roster_find(const struct elv_roster *r, uint32_t client);

/* Finds or makes the row. ELV_ROW_NONE: the roster is full. */
uint32_t elv_roster_add(struct elv_roster *r, uint32_t client);

/* Work takes the place of what was handed out before. */
void elv_roster_offer(struct elv_row *row, const struct elv_offer *offer);

/* Keeps `n_joined` and `n_lapsed` right. Who joins or leaves has not lapsed. */
void elv_roster_set_joined(struct elv_roster *r, uint32_t row, bool joined);
void elv_roster_set_lapsed(struct elv_roster *r, uint32_t row, bool lapsed);
static inline uint32_t elv_roster_there(const struct elv_roster *r)
{
    return r->n_joined - r->n_lapsed;
}

/* Rows in the order they came, each at most once. */
struct elv_row_queue {
    uint32_t *at; /* [cap] */
    uint32_t cap, head, n;
};
void elv_row_queue_layout(struct elv_row_queue *q, struct elv_arena *a, uint32_t cap);
void elv_row_queue_push(struct elv_row_queue *q, struct elv_roster *r, uint32_t row);
uint32_t elv_row_queue_pop(struct elv_row_queue *q, struct elv_roster *r); /* it is not empty */

#endif
