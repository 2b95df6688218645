/* SPDX-License-Identifier: Apache-2.0 */
/* client/flow.h - how many requests a path bears in flight, and how close together.
 *
 * About 1.25 x delivery rate x the shortest round trip, and three more, between 1 and what the
 * server granted. The rate is the largest of the last round trips; each sample is what was answered
 * between the sending of a request and its answer. So the window follows what the path carries. A
 * request lost by itself does not shrink it: the share that is always lost is measured, and made up
 * for. What does: answers that take more than twice the shortest time, which means a queue, and
 * more losses than usual by a fifth.
 *
 * In the beginning, and after a silence, the window grows by one with each answer until the rate no
 * longer grows or a queue is seen. The shortest time is that of some seconds; when nothing has
 * confirmed it for so long, or the answers take twice as long, the window shrinks to a third for
 * a round trip. That drains the queue; if it does not shorten the round trip then the path is what
 * got longer. The three more, alike for all, are what makes several transfers share a path fairly:
 * who has less gets relatively more.
 *
 * Sources: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control",
 * ACM Queue 14(5), 2016 (rate, shortest time, gains, the drain); the rate samples are those of
 * Cheng, Cardwell, Yeganeh, Jacobson, "Delivery Rate Estimation", draft-cheng-iccrg-delivery-rate-
 * estimation, 2022; Wei, Jin, Low, Hegde, "FAST TCP", IEEE/ACM Transactions on Networking 14(6),
 * 2006 (a fixed number beyond the path's own); RFC 9406 (a start that ends when answers slow down);
 * RFC 9438, section 4.6: 7/10 is what a loss leaves of the window.
 *
 * Pure integers; nothing fails; no memory but the struct. */
#ifndef ELV_CLIENT_FLOW_H
#define ELV_CLIENT_FLOW_H

#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_WINDOW_FIRST 4u
#define ELV_FLOW_ROUNDS 8u /* round trips whose rate is remembered */
#define ELV_FLOW_LOSSES 8u /* and stretches whose losses are */

/* What a request remembers of the moment it was sent. */
struct elv_flow_mark {
    elv_time_us sent_us;
    uint32_t delivered;    /* answers until then */
    uint32_t answered_ago; /* microseconds since the latest of them, */
    uint32_t first_ago;    /* and since the request was sent that it was for */
};

struct elv_flow { /* read what you like, change nothing */
    struct elv_rtt rtt;
    uint32_t grant, window;
    uint32_t ceiling; /* of the window, since losses were heavy */
    bool quick;       /* growing with each answer */

    /* Delivery. Counts wrap around; only differences count. */
    uint32_t delivered;
    elv_time_us delivered_us, first_us;
    uint32_t limited; /* requests sent before that many answers do not show what the path bears */

    /* Round trips: one ends with the answer to a request that was sent after the last one ended. */
    uint32_t round_end;
    uint32_t round;
    uint32_t rate[ELV_FLOW_ROUNDS]; /* largest of each round trip: answers per second x 256 */
    uint32_t full;                  /* the rate that must be exceeded to grow on */
    uint8_t n_flat;                 /* round trips in a row that did not */
    uint8_t n_slow;                 /* answers in a row that waited in a queue */

    /* The path's own time. */
    elv_time_us took;       /* of the latest answer */
    elv_time_us jitter;     /* how much it differs from one answer to the next, smoothed */
    bool confirmed;         /* by a drain */
    bool overdue;           /* the drain is to confirm the shortest time */
    elv_time_us least;      /* the shortest round trip; 0: unknown */
    elv_time_us least_us;   /* when it was last seen */
    uint32_t drained_from;  /* round trip of the last drain */
    elv_time_us drain_us;   /* and when it began */
    elv_time_us last_least; /* the shortest one of the drain before; 0: none */
    enum { ELV_FLOW_STEADY, ELV_FLOW_DRAINING, ELV_FLOW_DRAINED } drain;
    elv_time_us drained_us;     /* DRAINED: since when */
    elv_time_us drained_least;  /* DRAINED: the shortest of its round trips, 0: none yet */
    uint32_t n_drained, narrow; /* DRAINED: answers; and the window */

    /* Losses. */
    uint32_t n_answered, n_lost;   /* since they were last judged */
    uint8_t loss[ELV_FLOW_LOSSES]; /* share lost of the latest stretches; UINT8_MAX: all */
    uint32_t n_losses;

    elv_time_us pace_us; /* nothing is sent before */
};

/* A path about which nothing is known. */
void elv_flow_init(struct elv_flow *f);
/* The same, or another: what is known of it may no longer hold. Starts with `window`. */
void elv_flow_restart(struct elv_flow *f, uint32_t window);
/* At most so many in flight; 1 or more. */
void elv_flow_grant(struct elv_flow *f, uint32_t grant);

/* A request goes out while `n_flying` others are in flight. */
void elv_flow_sent(struct elv_flow *f, elv_time_us now, uint32_t n_flying,
                   struct elv_flow_mark *mark);
/* It was answered. `n_flying`: those still in flight. */
void elv_flow_answered(struct elv_flow *f, elv_time_us now, const struct elv_flow_mark *mark,
                       uint32_t n_flying);
/* One was answered, sent at `sent_us`, that another one has taken the place of. */
void elv_flow_late(struct elv_flow *f, elv_time_us now, elv_time_us sent_us);
/* The receiver has it although its answer did not come. */
void elv_flow_delivered(struct elv_flow *f);
/* A request was given up, */
void elv_flow_lost(struct elv_flow *f);
/* and was answered after all. */
void elv_flow_found(struct elv_flow *f);
/* How many requests in a row may stay without an answer by the losses that are usual here; 1 or
 * more. */
uint32_t elv_flow_patience(const struct elv_flow *f);
/* A stretch of time that does not count: the device slept. */
void elv_flow_slept(struct elv_flow *f, elv_time_us us);
/* There is nothing more to send although the window has room for it. */
void elv_flow_idle(struct elv_flow *f, uint32_t n_flying);

#ifdef __cplusplus
}
#endif
#endif
