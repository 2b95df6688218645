/* SPDX-License-Identifier: Apache-2.0 */
/* client/transfer.h - which chunks of a body to ask for (down) or to send (up), and when.
 *
 * The engine of both directions: it knows chunk numbers, request ids and times, never contents. One
 * request per chunk, sent once and repeated from here. Every transmission has an id of its own, so
 * an answer always tells which one it answers and each gives a round-trip time. How many may be in
 * flight, and how close together, is the flow's to say (client/flow.h).
 *
 * A request counts as lost once one that was sent later has been answered, and the margin for
 * answers out of order has passed as well: RACK, RFC 8985, section 6.2 (see also RFC 9002, section
 * 6.1). An answer to a request that was taken for lost widens the margin. When nothing at all comes
 * one request is repeated, long before a timer would give everything up; what its answer says of
 * the others decides about them. After a longer silence one request at a time asks the way, and
 * nothing more is sent, so that little is sent twice that the receiver has.
 *
 * The caller owns the flights and the bitmap's words. Nothing here can fail; times are those of the
 * events. */
#ifndef ELV_CLIENT_TRANSFER_H
#define ELV_CLIENT_TRANSFER_H

#include "../common/chunk.h"
#include "flow.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As many flights as a client usually has. A datagram of a chunk takes some 2,300 bytes of a
 * socket's buffer, whose usual 208 KiB hold about 90. */
#define ELV_WINDOW_MAX 64u

enum elv_flight_state {
    ELV_FLIGHT_FREE,   /* its ids may still be answered; nobody waits for them */
    ELV_FLIGHT_FLYING, /* sent, not answered, not overdue */
    ELV_FLIGHT_LOST,   /* to be sent again when the window allows */
};

struct elv_flight {
    enum elv_flight_state state;
    bool lost; /* a transmission of it was counted as lost */
    uint32_t chunk;
    uint32_t n_sent;           /* transmissions of this chunk so far */
    uint32_t id[2];            /* of the latest transmission and the one before; 0: none */
    uint32_t order[2];         /* all transmissions are numbered as they go out */
    struct elv_flow_mark sent; /* when the latest one did */
    elv_time_us before_us;     /* and the one before */
};

struct elv_transfer {
    struct elv_bitmap have; /* chunks that are where they should be */
    uint32_t next;          /* no chunk below was left untouched */
    struct elv_flight *flights;
    uint32_t n_flights;
    uint32_t n_flying;
    elv_time_us paused_until;
    struct elv_flow flow; /* outlives a body */

    uint32_t order;  /* of the latest transmission */
    uint32_t newest; /* the last one among those answered */
    elv_time_us newest_took;
    uint32_t margin;       /* for answers out of order, in quarters of the shortest round trip */
    uint32_t margin_round; /* when it was changed last */

    elv_time_us sent_us, heard_us; /* the latest transmission and answer */
    uint32_t n_quiet;              /* times that nothing came for too long, since the last answer */
    bool probe;                    /* one more than the window allows may be sent */
    bool alone;                    /* one at a time: nobody knows who listens */
};

/* What to send now. */
struct elv_transmission {
    uint32_t chunk;
    bool repeated;      /* it was sent before */
    uint32_t forget[2]; /* ids whose answers are of no interest any more; 0: none */
};

/* `flights`: `n` of the caller's, 1 or more, used as long as the transfer is. */
void elv_transfer_init(struct elv_transfer *t, struct elv_flight *flights, uint32_t n);

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

/* Takes for lost what must be by now. */
void elv_transfer_expire(struct elv_transfer *t, elv_time_us now);
/* Request `id` will have no answer: the association it went over is gone. */
void elv_transfer_unanswered(struct elv_transfer *t, uint32_t id);
/* The device slept for `us`, in which nothing was sent and no answer looked at: that time does not
 * count. */
void elv_transfer_slept(struct elv_transfer *t, elv_time_us us);
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
