/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/server_internal.h - what the files of the server share.
 *
 *     server.c         requests in, replies out
 *     server_admit.c   who comes in, and for how long
 *     server_open.c    opening and closing
 *     pending.c        requests that wait for their reply */
#ifndef ELV_PORTS_LIBCOAP_SERVER_INTERNAL_H
#define ELV_PORTS_LIBCOAP_SERVER_INTERNAL_H

#include "ports/libcoap/message.h"
#include "ports/libcoap/seats.h"
#include "ports/libcoap/server.h"
#include "ports/libcoap/socket.h"
#include "ports/libcoap/tls.h"

#define ELV_COAP_SLOT_BITS 15   /* of a request's id; the rest counts how often the slot was used */
#define ELV_COAP_LINKS_MAX 640u /* /.well-known/core */

/* A request that waits for its REPLY. */
struct elv_coap_pending {
    uint32_t id; /* 0: vacant */
    uint32_t generation;
    uint32_t seat, next; /* index + 1; `next` is the seat's next, or the next vacant slot */
    enum elv_op op;
    struct elv_coap_block block2;
    coap_pdu_type_t type;
    coap_mid_t mid;
    bool observed;     /* the answer carries a sequence number */
    bool notification; /* nobody asked just now */
    uint8_t token_len;
    uint8_t token[ELV_COAP_TOKEN_MAX];
};

struct elv_coap_server {
    struct elv_coap_server_cfg cfg;
    char job[ELV_JOB_NAME_MAX];
    char links[ELV_COAP_LINKS_MAX];
    size_t links_len;
    coap_context_t *context;
    struct elv_coap_pump pump;
    struct elv_coap_seats seats;
    struct elv_coap_pem pem;
    struct elv_coap_pending *pending;
    uint32_t pending_touched, pending_vacant;
    /* While a request is being handed to the node: its slot, and where an answer goes at once. */
    struct elv_coap_pending *current;
    coap_pdu_t *current_answer;
    coap_bin_const_t psk; /* what the last lookup returned */
    struct elv_coap_server_stats stats;
    struct elv_coap_server_info info;
};

/* pending.c. NULL: all places are taken. */
struct elv_coap_pending *elv_coap_pending_take(struct elv_coap_server *s);
void elv_coap_pending_release(struct elv_coap_server *s, struct elv_coap_pending *p);
/* NULL: nothing waits under this id any more. */
struct elv_coap_pending *elv_coap_pending_of(struct elv_coap_server *s, uint32_t id);
/* Into and out of the list of its seat. */
void elv_coap_pending_keep(struct elv_coap_server *s, struct elv_coap_pending *p,
                           struct elv_coap_seat *seat);
void elv_coap_pending_unlink(struct elv_coap_server *s, struct elv_coap_pending *p);

/* server_admit.c */
const coap_bin_const_t *elv_coap_server_on_identity(coap_bin_const_t *identity,
                                                    coap_session_t *session, void *arg);
int elv_coap_server_on_event(coap_session_t *session, const coap_event_t event);
/* Who asks. NULL: nobody who may. */
struct elv_coap_seat *elv_coap_seat_of(struct elv_coap_server *s, coap_session_t *session,
                                       const coap_pdu_t *request);
/* The session is at an end; what it waited for is dropped. */
void elv_coap_vacate(struct elv_coap_server *s, struct elv_coap_seat *seat);

/* server.c */
void elv_coap_server_on_request(coap_resource_t *resource, coap_session_t *session,
                                const coap_pdu_t *request, const coap_string_t *query,
                                coap_pdu_t *answer);
void elv_coap_server_on_nack(coap_session_t *session, const coap_pdu_t *sent,
                             const coap_nack_reason_t why, const coap_mid_t mid);

#endif
