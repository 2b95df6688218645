/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/client_internal.h - what the files of the client share.
 *
 *     client.c        requests out, responses in
 *     client_line.c   associations: opening, moving to another, what their end means
 *     client_open.c   opening and closing
 *     asked.c         requests in flight */
#ifndef ELV_PORTS_LIBCOAP_CLIENT_INTERNAL_H
#define ELV_PORTS_LIBCOAP_CLIENT_INTERNAL_H

#include "ports/libcoap/client.h"
#include "ports/libcoap/message.h"
#include "ports/libcoap/socket.h"
#include "ports/libcoap/tls.h"

#define ELV_COAP_TOKEN_LEN 4u /* of a request's token: its sequence number */

/* A request that has been sent and not answered. Its token is its sequence number, which is not
 * used twice, so a late response cannot be taken for another's (RFC 9175, section 4.2). */
struct elv_coap_asked {
    uint32_t sequence; /* 0: vacant */
    uint32_t id;
    enum elv_op op;
    bool lost;  /* NO_ANSWER is to be reported */
    bool moved; /* because a new association takes the place of the one it was asked on */
    bool observe;
    bool observed; /* `seen` is meaningful */
    uint32_t seen; /* sequence number of the newest notification */
    coap_session_t *on;
};

/* An association, standing or being opened. */
struct elv_coap_line {
    coap_session_t *session; /* NULL: none */
    bool up;
    bool failed;
    bool untrusted;
    coap_tick_t since;
};

/* The manifest arrives in blocks; one at a time. */
struct elv_coap_fetch {
    uint32_t id;
    uint32_t restarts;
    uint8_t tag[8];
    size_t tag_len;
    size_t len;
    uint8_t body[ELV_MANIFEST_MAX];
};

struct elv_coap_client {
    struct elv_coap_client_cfg cfg;
    struct elv_coap_place place;
    char job[ELV_JOB_NAME_MAX];
    char identity[ELV_COAP_IDENTITY_MAX];
    uint8_t psk[ELV_COAP_PSK_MAX];
    char *server_name;
    struct elv_coap_pem pem;
    coap_context_t *context;
    struct elv_coap_pump pump;
    struct elv_coap_line current, next;
    uint32_t attempts; /* picks the address */
    bool relink;
    struct elv_coap_asked *asked;
    uint32_t mask; /* of `asked`; at least twice as many as may be in flight */
    uint32_t sequence, n_lost;
    struct elv_coap_fetch fetch;
    struct elv_coap_client_status status;
};

/* asked.c. NULL: as many are in flight as may be. */
struct elv_coap_asked *elv_coap_asked_take(struct elv_coap_client *c, uint32_t id, enum elv_op op);
void elv_coap_asked_release(struct elv_coap_client *c, struct elv_coap_asked *a);
/* NO_ANSWER is owed for it; told by `elv_coap_asked_report_lost`, outside of libcoap's callbacks.
 */
void elv_coap_asked_lose(struct elv_coap_client *c, struct elv_coap_asked *a);
void elv_coap_asked_lose_all(struct elv_coap_client *c, const coap_session_t *session, bool moved);
void elv_coap_asked_report_lost(struct elv_coap_client *c);
struct elv_coap_asked *elv_coap_asked_by_token(struct elv_coap_client *c,
                                               const coap_session_t *session,
                                               coap_bin_const_t token);

/* client_line.c */
void elv_coap_line_open(struct elv_coap_client *c, struct elv_coap_line *line);
void elv_coap_line_close(struct elv_coap_client *c, struct elv_coap_line *line);
/* What became of both, and the move from one to the other. */
void elv_coap_lines_look_after(struct elv_coap_client *c);
void elv_coap_client_on_nack(coap_session_t *session, const coap_pdu_t *sent,
                             const coap_nack_reason_t why, const coap_mid_t mid);
int elv_coap_client_on_event(coap_session_t *session, const coap_event_t event);

/* client.c */
coap_response_t elv_coap_client_on_response(coap_session_t *session, const coap_pdu_t *sent,
                                            const coap_pdu_t *pdu, const coap_mid_t mid);

#endif
