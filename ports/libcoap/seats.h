/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/seats.h - which client sits behind which session of the server.
 *
 * A seat is taken when a handshake names an identity and counts as proven with the first request,
 * which only the holder of the key can send. Both kinds are kept in order of use, so the limits can
 * close what was unused longest. Inner header of this port. */
#ifndef ELV_PORTS_LIBCOAP_SEATS_H
#define ELV_PORTS_LIBCOAP_SEATS_H

#include <coap3/coap.h>

#include "ports/libcoap/credential.h"

#define ELV_COAP_TOKEN_MAX 8u

struct elv_coap_seat {
    coap_session_t *session; /* NULL: the session has gone */
    uint32_t client;         /* 0: refused; only waits to be closed */
    bool proven;
    bool doomed; /* to be closed by the next `ready` */
    bool listed; /* in the list of things to do */
    bool notify; /* owes its observer a notification */
    bool observing;
    uint8_t identity_len;
    uint8_t token_len; /* of the observation */
    uint8_t token[ELV_COAP_TOKEN_MAX];
    char identity[ELV_COAP_IDENTITY_MAX];
    coap_mid_t notified;   /* message id of the last notification */
    coap_tick_t confirmed; /* when a confirmable one was sent last */
    coap_tick_t counted;   /* since then, so many confirmable answers: */
    uint32_t n_confirmable;
    uint32_t observe;      /* sequence number of the last */
    uint32_t pending;      /* the rest are links: index + 1, 0 is none */
    uint32_t older, newer; /* in its list by use; `older` also chains free seats */
    uint32_t sibling, due; /* same client; list of things to do */
};

struct elv_coap_seat_list {
    uint32_t oldest, newest, n;
};

struct elv_coap_seats {
    struct elv_coap_seat *at;
    uint32_t cap, touched, vacant;
    struct elv_coap_seat_list proven, unproven;
    uint32_t *bucket, bucket_mask;
    uint32_t due;
};

enum elv_err elv_coap_seats_init(struct elv_coap_seats *s, uint32_t cap);
void elv_coap_seats_free(struct elv_coap_seats *s);

/* NULL when all are taken. */
struct elv_coap_seat *elv_coap_seat_take(struct elv_coap_seats *s, coap_session_t *session,
                                         uint32_t client, struct elv_text identity);
void elv_coap_seat_prove(struct elv_coap_seats *s, struct elv_coap_seat *seat);
void elv_coap_seat_touch(struct elv_coap_seats *s, struct elv_coap_seat *seat);
void elv_coap_seat_leave(struct elv_coap_seats *s, struct elv_coap_seat *seat);

/* Things to do outside of libcoap's callbacks: close the doomed, notify observers. */
void elv_coap_seat_doom(struct elv_coap_seats *s, struct elv_coap_seat *seat);
void elv_coap_seat_notify(struct elv_coap_seats *s, struct elv_coap_seat *seat);
struct elv_coap_seat *elv_coap_seat_next_due(struct elv_coap_seats *s); /* NULL: none */

/* The sessions of one client: first, then next. NULL ends. */
struct elv_coap_seat *elv_coap_seat_first(struct elv_coap_seats *s, uint32_t client);
struct elv_coap_seat *elv_coap_seat_next(struct elv_coap_seats *s, struct elv_coap_seat *seat);

static inline uint32_t elv_coap_seat_link(const struct elv_coap_seats *s,
                                          const struct elv_coap_seat *seat)
{
    return (uint32_t)(seat - s->at) + 1;
}

static inline struct elv_coap_seat *elv_coap_seat_at(struct elv_coap_seats *s, uint32_t link)
{
    return link == 0 ? NULL : &s->at[link - 1];
}

#endif
