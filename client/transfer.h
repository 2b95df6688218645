/* SPDX-License-Identifier: Apache-2.0 */
/* client/transfer.h - which chunks of a body to ask for (down) or to send (up), and when.
 *
 * The engine of both directions: it knows chunk numbers, request ids and times, never contents. One
 * request per chunk, sent once and repeated from here when no answer came in time. Every
 * transmission has an id of its own, so an answer always tells which one it answers and each gives
 * a round-trip time. At most a window of requests is in flight: it starts small, grows by one with
 * each answer up to what the server granted, and is halved when more than a fifth of a window's
 * worth went unanswered.
 *
 * The caller owns the bitmap's words. Nothing here can fail; times are those of the events. */
#ifndef ELV_CLIENT_TRANSFER_H
#define ELV_CLIENT_TRANSFER_H

#include "../common/chunk.h"
#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_WINDOW_MAX 32u
#define ELV_WINDOW_FIRST 4u

enum elv_flight_state {
    ELV_FLIGHT_FREE,   /* its ids may still be answered; nobody waits for them */
    ELV_FLIGHT_FLYING, /* sent, not answered, not overdue */
    ELV_FLIGHT_LOST,   /* to be sent again when the window allows */
};

struct elv_flight {
    enum elv_flight_state state;
    uint32_t chunk;
    uint32_t n_sent;        /* transmissions of this chunk so far */
    uint32_t id[2];         /* of the latest transmission and the one before; 0: none */
    elv_time_us sent_us[2]; /* when those two went out */
    elv_time_us overdue_us; /* FLYING: counts as lost from then on */
};

struct elv_transfer {
    struct elv_bitmap have; /* chunks that are where they should be */
    uint32_t next;          /* no chunk below was left untouched */
    struct elv_flight flights[ELV_WINDOW_MAX];
    uint32_t n_flying;
    uint32_t window, grant;
    uint32_t n_answered, n_lost; /* since the window was last judged */
    elv_time_us paused_until;
    struct elv_rtt rtt; /* outlives a body */
};

/* What to send now. */
struct elv_transmission {
    uint32_t chunk;
    bool repeated;      /* it was sent before */
    uint32_t forget[2]; /* ids whose answers are of no interest any more; 0: none */
};

void elv_transfer_init(struct elv_transfer *t);

/* Starts a body of `n` chunks, 1 or more, of which nothing is there. `words`: ELV_BITMAP_WORDS(n),
 * used until the next begin. */
void elv_transfer_begin(struct elv_transfer *t, uint64_t *words, uint32_t n);
/* Gives the body up; answers to what is in flight mean nothing from now on. */
void elv_transfer_end(struct elv_transfer *t);

/* At most `grant` requests in flight, as the server said; 0 counts as 1. */
void elv_transfer_grant(struct elv_transfer *t, uint32_t grant);

/* The next thing to send, under `id`; false when there is none now. */
bool elv_transfer_next(struct elv_transfer *t, elv_time_us now, uint32_t id,
                       struct elv_transmission *out);

/* An answer to `id` came: true when it is about a chunk of this body that is still wanted, whose
 * number is written. The chunk stays wanted until `elv_transfer_have`. */
bool elv_transfer_answered(struct elv_transfer *t, elv_time_us now, uint32_t id, uint32_t *chunk);
/* Whether `id` is one of ours that may still be answered. */
bool elv_transfer_knows(const struct elv_transfer *t, uint32_t id);

void elv_transfer_have(struct elv_transfer *t, uint32_t chunk);
/* The receiver lists what it has; takes only additions, because answers may be old. */
void elv_transfer_progress(struct elv_transfer *t, const struct elv_missing *m);
/* The receiver says what it lacks, as the last word: those are sent again. */
void elv_transfer_missing(struct elv_transfer *t, const struct elv_missing *m);
bool elv_transfer_complete(const struct elv_transfer *t); /* false while there is no body */
bool elv_transfer_waits(const struct elv_transfer *t);    /* something is in flight */

/* Counts what is overdue as lost. */
void elv_transfer_expire(struct elv_transfer *t, elv_time_us now);
/* Sends nothing before `until`; what is in flight will be sent again. */
void elv_transfer_pause(struct elv_transfer *t, elv_time_us until);
/* The association is replaced: one request at a time until an answer comes, so that little is sent
 * twice that the receiver has. */
void elv_transfer_relink(struct elv_transfer *t);

/* When `elv_transfer_next` or `elv_transfer_expire` has something to do: a moment in the past for
 * "now", ELV_NEVER for nothing. */
elv_time_us elv_transfer_deadline(const struct elv_transfer *t);

#ifdef __cplusplus
}
#endif
#endif
