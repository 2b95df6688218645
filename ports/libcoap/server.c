/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/server.c - requests in, replies out. */
#include "ports/libcoap/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/libcoap/message.h"
#include "ports/libcoap/seats.h"
#include "ports/libcoap/socket.h"
#include "ports/libcoap/timer.h"
#include "ports/libcoap/tls.h"

enum {
    SLOT_BITS = 15, /* of a request's id; the rest counts how often the slot was used */
    SLOT_MASK = (1 << SLOT_BITS) - 1,
    LINKS_MAX = 640, /* /.well-known/core */
    NSTART = 16,     /* separate responses on their way to one client */
    BUSY_S = 2,      /* a full table says to come back after so long */
};

/* A request that waits for its REPLY. */
struct pending {
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
    char links[LINKS_MAX];
    size_t links_len;
    coap_context_t *context;
    struct elv_coap_pump pump;
    struct elv_coap_seats seats;
    struct elv_coap_pem pem;
    bool with_cert;
    struct pending *pending;
    uint32_t pending_touched, pending_vacant;
    /* While a request is being handed to the node: its slot, and where an answer goes at once. */
    struct pending *current;
    coap_pdu_t *current_answer;
    coap_bin_const_t psk; /* what the last lookup returned */
    struct elv_coap_server_stats stats;
    struct elv_coap_server_info info;
};

/* ---- requests that wait */

static struct pending *pending_take(struct elv_coap_server *s)
{
    struct pending *p;
    if (s->pending_vacant != 0) {
        p = &s->pending[s->pending_vacant - 1];
        s->pending_vacant = p->next;
    } else if (s->pending_touched < s->cfg.pending_max) {
        p = &s->pending[s->pending_touched++];
        p->generation = 0;
    } else {
        return NULL;
    }
    const uint32_t slot = (uint32_t)(p - s->pending);
    const uint32_t generation = (p->generation + 1) & (UINT32_MAX >> SLOT_BITS);
    *p = (struct pending){.generation = generation != 0 ? generation : 1};
    p->id = p->generation << SLOT_BITS | slot;
    s->stats.pending++;
    return p;
}

static void pending_release(struct elv_coap_server *s, struct pending *p)
{
    p->id = 0;
    p->next = s->pending_vacant;
    s->pending_vacant = (uint32_t)(p - s->pending) + 1;
    s->stats.pending--;
}

static struct pending *pending_of(struct elv_coap_server *s, uint32_t id)
{
    const uint32_t slot = id & SLOT_MASK;
    return id != 0 && slot < s->pending_touched && s->pending[slot].id == id ? &s->pending[slot]
                                                                             : NULL;
}

static void pending_keep(struct elv_coap_server *s, struct pending *p, struct elv_coap_seat *seat)
{
    p->seat = elv_coap_seat_link(&s->seats, seat);
    p->next = seat->pending;
    seat->pending = (uint32_t)(p - s->pending) + 1;
}

static void pending_unlink(struct elv_coap_server *s, struct pending *p)
{
    uint32_t *link = &elv_coap_seat_at(&s->seats, p->seat)->pending;
    const uint32_t self = (uint32_t)(p - s->pending) + 1;
    while (*link != self) {
        ELV_ASSERT(*link != 0);
        link = &s->pending[*link - 1].next;
    }
    *link = p->next;
}

static void vacate(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    while (seat->pending != 0) {
        struct pending *p = &s->pending[seat->pending - 1];
        seat->pending = p->next;
        pending_release(s, p);
    }
    coap_session_set_app_data(seat->session, NULL);
    if (seat->proven) {
        s->stats.sessions--;
        s->stats.sessions_closed++;
    }
    elv_coap_seat_leave(&s->seats, seat);
}

/* ---- who comes in */

static bool identity_ok(struct elv_text identity)
{
    if (identity.len == 0 || identity.len > ELV_COAP_IDENTITY_MAX)
        return false;
    for (size_t i = 0; i < identity.len; i++) {
        const struct elv_text one = {identity.at + i, 1};
        if (identity.at[i] != '#' && !elv_name_ok(one, 1))
            return false;
    }
    return true;
}

static enum elv_err look_up(struct elv_coap_server *s, struct elv_text identity,
                            struct elv_coap_key *key)
{
    enum elv_err err = ELV_ERR_MISSING;
    *key = (struct elv_coap_key){0};
    if (identity_ok(identity))
        err = s->cfg.keys.find(s->cfg.keys.self, identity, key);
    if (err == ELV_OK && key->client == 0)
        err = ELV_ERR_MISSING;
    if (err == ELV_ERR_AUTH)
        s->stats.refused_revoked++;
    else if (err != ELV_OK)
        s->stats.refused_unknown++;
    return err;
}

static void trim_unproven(struct elv_coap_server *s)
{
    if (s->seats.unproven.n <= s->cfg.half_open_max)
        return;
    struct elv_coap_seat *seat = elv_coap_seat_at(&s->seats, s->seats.unproven.oldest);
    while (seat != NULL && seat->doomed)
        seat = elv_coap_seat_at(&s->seats, seat->newer);
    if (seat != NULL)
        elv_coap_seat_doom(&s->seats, seat);
}

static struct elv_coap_seat *sit(struct elv_coap_server *s, coap_session_t *session,
                                 uint32_t client, struct elv_text identity)
{
    struct elv_coap_seat *before = coap_session_get_app_data(session);
    if (before != NULL) /* a new handshake on an old address, maybe by somebody else */
        vacate(s, before);
    struct elv_coap_seat *seat = elv_coap_seat_take(&s->seats, session, client, identity);
    coap_session_set_app_data(session, seat);
    trim_unproven(s);
    return seat;
}

/* A session that will come to nothing gives its memory back soon, not after libcoap's patience. */
static void turn_away(struct elv_coap_server *s, coap_session_t *session)
{
    struct elv_coap_seat *seat = sit(s, session, 0, (struct elv_text){0});
    if (seat != NULL)
        elv_coap_seat_doom(&s->seats, seat);
}

static const coap_bin_const_t *on_identity(coap_bin_const_t *identity, coap_session_t *session,
                                           void *arg)
{
    struct elv_coap_server *s = arg;
    struct elv_coap_key key;
    const struct elv_text text = {(const char *)identity->s, identity->length};
    if (look_up(s, text, &key) != ELV_OK || key.psk.len == 0 || key.psk.len > ELV_COAP_PSK_MAX ||
        sit(s, session, key.client, text) == NULL) {
        turn_away(s, session);
        return NULL;
    }
    s->psk = (coap_bin_const_t){key.psk.len, key.psk.at};
    return &s->psk;
}

static void evict(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    s->stats.sessions_evicted++;
    elv_coap_seat_doom(&s->seats, seat);
}

/* Every device keeps its session as long as there is room: what goes first is the oldest session of
 * a client that has several, then the one longest unused of all. */
static void make_room(struct elv_coap_server *s, const struct elv_coap_seat *seat)
{
    uint32_t n = 0;
    struct elv_coap_seat *last = NULL, *each = elv_coap_seat_first(&s->seats, seat->client);
    for (; each != NULL; each = elv_coap_seat_next(&s->seats, each)) {
        if (!each->proven || each->doomed)
            continue;
        n++;
        last = each; /* siblings are chained newest first */
    }
    if (n > s->cfg.per_client_max && last != seat)
        evict(s, last);
    if (s->seats.proven.n <= s->cfg.sessions_max)
        return;
    each = elv_coap_seat_at(&s->seats, s->seats.proven.oldest);
    while (each != NULL && each->doomed)
        each = elv_coap_seat_at(&s->seats, each->newer);
    if (each != NULL && each != seat)
        evict(s, each);
}

/* Sessions of a generation that the newer one has just retired end with it. */
static void close_retired(struct elv_coap_server *s, const struct elv_coap_seat *seat)
{
    struct elv_coap_seat *each = elv_coap_seat_first(&s->seats, seat->client);
    for (; each != NULL; each = elv_coap_seat_next(&s->seats, each)) {
        struct elv_coap_key key = {0};
        const struct elv_text identity = {each->identity, each->identity_len};
        if (each != seat && !each->doomed &&
            s->cfg.keys.find(s->cfg.keys.self, identity, &key) != ELV_OK)
            elv_coap_seat_doom(&s->seats, each);
    }
}

/* The first request proves that the handshake was completed by the holder of the key. */
static void prove(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    elv_coap_seat_prove(&s->seats, seat);
    s->stats.handshakes++;
    s->stats.sessions++;
    if (s->cfg.keys.used != NULL)
        s->cfg.keys.used(s->cfg.keys.self, (struct elv_text){seat->identity, seat->identity_len},
                         seat->client);
    close_retired(s, seat);
    make_room(s, seat);
}

/* In the clear, "i=IDENTITY" is believed. */
static bool claimed(const coap_pdu_t *request, char out[ELV_COAP_IDENTITY_MAX], size_t *len)
{
    coap_opt_iterator_t at;
    const coap_opt_t *query = coap_check_option(request, COAP_OPTION_URI_QUERY, &at);
    const size_t n = query != NULL ? coap_opt_length(query) : 0;
    if (n < 3 || n - 2 > ELV_COAP_IDENTITY_MAX || memcmp(coap_opt_value(query), "i=", 2) != 0)
        return false;
    memcpy(out, coap_opt_value(query) + 2, n - 2);
    *len = n - 2;
    return true;
}

/* The seat of a session without a key lookup: by certificate, or in the clear by claim. */
static struct elv_coap_seat *seat_by_name(struct elv_coap_server *s, coap_session_t *session,
                                          const coap_pdu_t *request)
{
    char name[ELV_COAP_IDENTITY_MAX];
    size_t len = 0;
    struct elv_coap_key key;
    const bool clear = coap_session_get_proto(session) == COAP_PROTO_UDP;
    const bool named =
        clear ? claimed(request, name, &len) : elv_coap_peer_name(session, name, &len);
    const struct elv_text identity = {name, len};
    if (!named || look_up(s, identity, &key) != ELV_OK) {
        if (!clear)
            turn_away(s, session);
        return NULL;
    }
    return sit(s, session, key.client, identity);
}

static bool same_claim(const struct elv_coap_seat *seat, const coap_pdu_t *request)
{
    char name[ELV_COAP_IDENTITY_MAX];
    size_t len;
    return claimed(request, name, &len) && len == seat->identity_len &&
           memcmp(name, seat->identity, len) == 0;
}

static struct elv_coap_seat *seat_of(struct elv_coap_server *s, coap_session_t *session,
                                     const coap_pdu_t *request)
{
    struct elv_coap_seat *seat = coap_session_get_app_data(session);
    if (seat != NULL && s->cfg.insecure && coap_session_get_proto(session) == COAP_PROTO_UDP &&
        !same_claim(seat, request)) {
        vacate(s, seat);
        seat = NULL;
    }
    if (seat == NULL)
        seat = seat_by_name(s, session, request);
    if (seat == NULL || seat->doomed || seat->client == 0)
        return NULL;
    if (!seat->proven)
        prove(s, seat);
    else
        elv_coap_seat_touch(&s->seats, seat);
    return seat;
}

static int on_event(coap_session_t *session, const coap_event_t event)
{
    struct elv_coap_server *s = coap_context_get_app_data(coap_session_get_context(session));
    struct elv_coap_seat *seat = coap_session_get_app_data(session);
    switch (event) {
    case COAP_EVENT_SERVER_SESSION_NEW:
        coap_session_set_nstart(session, NSTART);
        coap_session_set_ack_timeout(session, elv_coap_seconds(s->cfg.ack_timeout_ms));
        break;
    case COAP_EVENT_DTLS_CLOSED:
    case COAP_EVENT_SERVER_SESSION_DEL:
        if (seat != NULL)
            vacate(s, seat);
        break;
    case COAP_EVENT_DTLS_ERROR:
        if (seat != NULL && !seat->proven)
            s->stats.refused_proof++;
        break;
    default:
        break;
    }
    return 0;
}

/* ---- answers */

static void count_answer(struct elv_coap_server *s, const struct elv_response *r)
{
    s->stats.replies[r->code]++;
    s->stats.bytes_out += r->body.len;
}

static void answer_now(struct elv_coap_server *s, coap_pdu_t *pdu,
                       const struct elv_coap_answer *answer)
{
    if (!elv_coap_answer_write(pdu, answer))
        coap_pdu_set_code(pdu, COAP_RESPONSE_CODE_INTERNAL_ERROR);
    count_answer(s, &answer->response);
}

static void refuse(struct elv_coap_server *s, coap_pdu_t *pdu, uint8_t code,
                   struct elv_refusal refusal)
{
    uint8_t body[32];
    size_t len = 0;
    struct elv_coap_answer a = {.response.code = code, .format = ELV_COAP_FORMAT_CBOR};
    if (refusal.reason != ELV_REASON_NONE &&
        elv_refusal_encode(&refusal, body, sizeof body, &len) == ELV_OK)
        a.response.body = (struct elv_bytes){body, len};
    a.response.max_age_s = refusal.retry_ms / 1000;
    answer_now(s, pdu, &a);
}

/* Notifications are confirmable, for a client that misses one may be what a round waits for; but at
 * most one a second, so that one whose client has gone (RFC 7641, section 4.5) leaves no heap of
 * repetitions behind. */
static coap_pdu_type_t notification_type(struct elv_coap_seat *seat)
{
    coap_tick_t now;
    coap_ticks(&now);
    if (seat->confirmed != 0 && now - seat->confirmed < COAP_TICKS_PER_SECOND)
        return COAP_MESSAGE_NON;
    seat->confirmed = now;
    return COAP_MESSAGE_CON;
}

static void answer_later(struct elv_coap_server *s, struct pending *p,
                         const struct elv_response *response)
{
    struct elv_coap_seat *seat = elv_coap_seat_at(&s->seats, p->seat);
    coap_session_t *session = seat->session;
    struct elv_coap_answer a = {
        .response = *response,
        .format = elv_coap_format_down(p->op),
        .block2 = p->block2,
        .observed = p->observed && seat->observing,
    };
    if (a.observed)
        a.observe = ++seat->observe;
    const coap_pdu_type_t type = p->notification ? notification_type(seat) : p->type;
    coap_pdu_t *pdu =
        coap_pdu_init(type, (coap_pdu_code_t)response->code, coap_new_message_id(session),
                      coap_session_max_pdu_size(session));
    if (pdu == NULL || !coap_add_token(pdu, p->token_len, p->token) ||
        !elv_coap_answer_write(pdu, &a)) {
        coap_delete_pdu(pdu);
        s->stats.dropped++;
        return;
    }
    count_answer(s, response);
    if (p->notification) {
        s->stats.notifications++;
        seat->notified = coap_pdu_get_mid(pdu);
    }
    if (p->observed && !elv_code_is_success(response->code))
        seat->observing = false;
    (void)coap_send(session, pdu);
}

static void reply(struct elv_coap_server *s, uint32_t id, const struct elv_response *response)
{
    struct pending *p = pending_of(s, id);
    if (p == NULL) {
        s->stats.dropped++;
        return;
    }
    if (p == s->current && s->current_answer != NULL) {
        struct elv_coap_seat *seat = elv_coap_seat_at(&s->seats, p->seat);
        const struct elv_coap_answer a = {
            .response = *response,
            .format = elv_coap_format_down(p->op),
            .block2 = p->block2,
            .observed = p->observed,
            .observe = seat->observe,
        };
        if (p->observed && !elv_code_is_success(response->code))
            seat->observing = false;
        answer_now(s, s->current_answer, &a);
    } else {
        answer_later(s, p, response);
    }
    if (p == s->current)
        s->current = NULL; /* its slot is linked nowhere yet */
    else
        pending_unlink(s, p);
    pending_release(s, p);
}

/* ---- requests */

/* Hands a request to the node; what it does not answer at once stays pending. */
static void ask_node(struct elv_coap_server *s, struct elv_coap_seat *seat, struct pending *p,
                     const struct elv_request *request, coap_pdu_t *answer)
{
    struct elv_event ev = {
        .kind = ELV_EV_REQUEST, .peer = seat->client, .id = p->id, .request = *request};
    p->op = request->op;
    p->seat = elv_coap_seat_link(&s->seats, seat);
    s->current = p;
    s->current_answer = answer;
    s->cfg.sink.event(s->cfg.sink.self, &ev);
    if (s->current != NULL)
        pending_keep(s, p, seat);
    s->current = NULL;
    s->current_answer = NULL;
}

/* A confirmable request that is being worked on is acknowledged again, not asked again. */
static bool is_repeated(struct elv_coap_server *s, const struct elv_coap_seat *seat,
                        const coap_pdu_t *request)
{
    if (coap_pdu_get_type(request) != COAP_MESSAGE_CON)
        return false;
    for (uint32_t link = seat->pending; link != 0; link = s->pending[link - 1].next) {
        const struct pending *p = &s->pending[link - 1];
        if (p->type == COAP_MESSAGE_CON && p->mid == coap_pdu_get_mid(request))
            return true;
    }
    return false;
}

static void observe(struct elv_coap_seat *seat, const coap_pdu_t *request, struct pending *p,
                    struct elv_request *r)
{
    uint32_t action;
    if (r->op != ELV_OP_TICKET || !elv_coap_uint(request, COAP_OPTION_OBSERVE, &action))
        return;
    if (action == COAP_OBSERVE_ESTABLISH) {
        seat->observing = true;
        seat->token_len = p->token_len;
        memcpy(seat->token, p->token, p->token_len);
        seat->observe++;
        p->observed = r->observe = true;
    } else if (action == COAP_OBSERVE_CANCEL) {
        seat->observing = false;
    }
}

/* The body in one piece, not too long; else the answer is written and false returned. */
static bool take_body(struct elv_coap_server *s, const coap_pdu_t *request, coap_pdu_t *answer,
                      struct elv_bytes *body)
{
    struct elv_coap_block block1;
    if (!elv_coap_block_read(request, COAP_OPTION_BLOCK1, &block1)) {
        refuse(s, answer, ELV_CODE_BAD_REQUEST, (struct elv_refusal){ELV_REASON_MALFORMED, 0});
        return false;
    }
    if (coap_get_data(request, &body->len, &body->at) == 0)
        *body = (struct elv_bytes){0};
    s->stats.bytes_in += body->len;
    if (block1.more || block1.num != 0 || body->len > ELV_COAP_BODY_MAX) {
        s->stats.too_large++;
        refuse(s, answer, ELV_CODE_TOO_LARGE, (struct elv_refusal){ELV_REASON_MALFORMED, 0});
        return false;
    }
    return true;
}

static void serve(struct elv_coap_server *s, struct elv_coap_seat *seat, const coap_pdu_t *request,
                  struct elv_request *r, coap_pdu_t *answer)
{
    struct elv_coap_block block2;
    const coap_bin_const_t token = coap_pdu_get_token(request);
    if (!elv_coap_block_read(request, COAP_OPTION_BLOCK2, &block2) ||
        token.length > ELV_COAP_TOKEN_MAX) {
        refuse(s, answer, ELV_CODE_BAD_REQUEST, (struct elv_refusal){ELV_REASON_MALFORMED, 0});
        return;
    }
    if (is_repeated(s, seat, request))
        return;
    struct pending *p = pending_take(s);
    if (p == NULL) {
        s->stats.overflowed++;
        refuse(s, answer, ELV_CODE_UNAVAILABLE,
               (struct elv_refusal){ELV_REASON_FULL, BUSY_S * 1000});
        return;
    }
    p->block2 = block2;
    p->type = coap_pdu_get_type(request);
    p->mid = coap_pdu_get_mid(request);
    p->token_len = (uint8_t)token.length;
    if (token.length != 0)
        memcpy(p->token, token.s, token.length);
    observe(seat, request, p, r);
    ask_node(s, seat, p, r, answer);
}

static void send_links(struct elv_coap_server *s, const coap_pdu_t *request, coap_pdu_t *answer)
{
    struct elv_coap_answer a = {
        .response = {.code = ELV_CODE_CONTENT,
                     .max_age_s = 60,
                     .body = {(const uint8_t *)s->links, s->links_len}},
        .format = ELV_COAP_FORMAT_LINK,
    };
    if (coap_pdu_get_code(request) != COAP_REQUEST_CODE_GET)
        refuse(s, answer, ELV_CODE(4, 5), (struct elv_refusal){0});
    else if (!elv_coap_block_read(request, COAP_OPTION_BLOCK2, &a.block2))
        refuse(s, answer, ELV_CODE_BAD_REQUEST, (struct elv_refusal){0});
    else
        answer_now(s, answer, &a);
}

static bool text_is(struct elv_text a, const char *b, size_t len)
{
    return a.len == len && memcmp(a.at, b, len) == 0;
}

static void route(struct elv_coap_server *s, struct elv_coap_seat *seat, const coap_pdu_t *request,
                  coap_pdu_t *answer)
{
    static const char well_known[] = ".well-known/core";
    char path[ELV_PATH_MAX];
    struct elv_text whole = {path, 0}, job = {0};
    struct elv_request r = {0};
    if (!elv_coap_path(request, path, &whole.len)) {
        refuse(s, answer, ELV_CODE_NOT_FOUND, (struct elv_refusal){0});
        return;
    }
    if (text_is(whole, well_known, sizeof well_known - 1)) {
        send_links(s, request, answer);
        return;
    }
    /* The numbers of enum elv_method are CoAP's; those it does not have are no method here. */
    const enum elv_err err =
        elv_path_decode((enum elv_method)coap_pdu_get_code(request), whole, &job, &r);
    if (err == ELV_ERR_UNSUPPORTED)
        refuse(s, answer, ELV_CODE(4, 5), (struct elv_refusal){0});
    else if (err != ELV_OK)
        refuse(s, answer, ELV_CODE_NOT_FOUND, (struct elv_refusal){0});
    else if (!text_is(job, s->job, s->cfg.job.len))
        refuse(s, answer, ELV_CODE_NOT_FOUND, (struct elv_refusal){ELV_REASON_NO_SUCH_JOB, 0});
    else if (take_body(s, request, answer, &r.body))
        serve(s, seat, request, &r, answer);
}

static void on_request(coap_resource_t *resource, coap_session_t *session,
                       const coap_pdu_t *request, const coap_string_t *query, coap_pdu_t *answer)
{
    struct elv_coap_server *s = coap_context_get_app_data(coap_session_get_context(session));
    (void)resource;
    (void)query;
    s->stats.requests++;
    struct elv_coap_seat *seat = seat_of(s, session, request);
    if (seat == NULL)
        refuse(s, answer, ELV_CODE(4, 1), (struct elv_refusal){ELV_REASON_REVOKED, 0});
    else
        route(s, seat, request, answer);
}

/* A client that resets a notification, or does not acknowledge it, observes no longer. */
static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t why,
                    const coap_mid_t mid)
{
    struct elv_coap_seat *seat = coap_session_get_app_data(session);
    (void)sent;
    if (seat != NULL && (why == COAP_NACK_RST || why == COAP_NACK_TOO_MANY_RETRIES) &&
        mid == seat->notified)
        seat->observing = false;
}

static void notify(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    const struct elv_request ticket = {.op = ELV_OP_TICKET, .observe = true};
    struct pending *p = pending_take(s);
    if (p == NULL) {
        s->stats.overflowed++;
        return; /* it will ask by itself when its ticket runs out */
    }
    p->type = COAP_MESSAGE_NON;
    p->mid = COAP_INVALID_MID;
    p->observed = p->notification = true;
    p->token_len = seat->token_len;
    memcpy(p->token, seat->token, seat->token_len);
    ask_node(s, seat, p, &ticket, NULL);
}

static void close_session(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    coap_session_t *session = seat->session;
    coap_session_disconnected(session, COAP_NACK_RST);
    if (coap_session_get_app_data(session) == seat) /* in the clear nothing reports the end */
        vacate(s, seat);
}

static void ready(void *self)
{
    struct elv_coap_server *s = self;
    struct elv_coap_seat *seat;
    elv_coap_pump_run(&s->pump);
    for (uint32_t n = 0; n < s->cfg.pending_max; n++) {
        if ((seat = elv_coap_seat_next_todo(&s->seats)) == NULL)
            return;
        const bool wanted = seat->notify && seat->observing && !seat->doomed;
        seat->notify = false;
        if (seat->doomed)
            close_session(s, seat);
        else if (wanted)
            notify(s, seat);
    }
}

/* Libcoap's own timers wake the descriptor. */
static elv_time_us deadline(const void *self)
{
    const struct elv_coap_server *s = self;
    return s->seats.todo != 0 ? INT64_MIN : ELV_NEVER;
}

static void act(void *self, const struct elv_action *action)
{
    struct elv_coap_server *s = self;
    struct elv_coap_seat *seat;
    switch (action->kind) {
    case ELV_DO_REPLY:
        reply(s, action->id, &action->response);
        break;
    case ELV_DO_NOTIFY:
        seat = elv_coap_seat_first(&s->seats, action->peer);
        for (; seat != NULL; seat = elv_coap_seat_next(&s->seats, seat)) {
            if (seat->observing)
                elv_coap_seat_notify(&s->seats, seat);
        }
        break;
    default:
        break;
    }
}

void elv_coap_server_drop(struct elv_coap_server *s, uint32_t client)
{
    struct elv_coap_seat *seat = elv_coap_seat_first(&s->seats, client);
    for (; seat != NULL; seat = elv_coap_seat_next(&s->seats, seat))
        elv_coap_seat_doom(&s->seats, seat);
}

/* ---- opening */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static enum elv_err configure(struct elv_coap_server *s, const struct elv_coap_server_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    s->cfg = *cfg;
    s->cfg.sessions_max = or_default(cfg->sessions_max, 16384);
    s->cfg.per_client_max = or_default(cfg->per_client_max, 4);
    s->cfg.half_open_max = or_default(cfg->half_open_max, 1024);
    s->cfg.idle_s = or_default(cfg->idle_s, 86400);
    s->cfg.pending_max = or_default(cfg->pending_max, 4096);
    s->cfg.ack_timeout_ms = or_default(cfg->ack_timeout_ms, 2000);
    s->cfg.receive_buffer = or_default(cfg->receive_buffer, 8u << 20);
    const char *text = NULL;
    if (cfg->n_listen == 0 || cfg->n_listen > ELV_COAP_LISTEN_MAX)
        text = "between 1 and 8 addresses to listen on are needed";
    else if (!elv_name_ok(cfg->job, ELV_JOB_NAME_MAX))
        text = "the name of the job is not acceptable";
    else if (s->cfg.pending_max > 1u << SLOT_BITS || s->cfg.sessions_max > 1u << 20 ||
             s->cfg.half_open_max > 1u << 16 || s->cfg.ack_timeout_ms > 60000 ||
             s->cfg.dtls_timer_ms > ELV_COAP_DTLS_TIMER_MAX_MS || s->cfg.idle_s > 4000000)
        text = "a limit is too large";
    if (text != NULL) {
        snprintf(problem->text, sizeof problem->text, "%s", text);
        return ELV_ERR_ARG;
    }
    memcpy(s->job, cfg->job.at, cfg->job.len);
    return ELV_OK;
}

static void write_links(struct elv_coap_server *s)
{
    const int n = (int)s->cfg.job.len;
    const char *j = s->job;
    const int len = snprintf(s->links, sizeof s->links,
                             "</j/%.*s>;rt=\"elver.manifest\";ct=60,"
                             "</j/%.*s/join>;rt=\"elver.join\";ct=60,"
                             "</j/%.*s/t>;rt=\"elver.ticket\";ct=60;obs,"
                             "</j/%.*s/m>;rt=\"elver.model\";ct=42,"
                             "</j/%.*s/d>;rt=\"elver.step\";ct=42,"
                             "</j/%.*s/u>;rt=\"elver.update\";ct=42",
                             n, j, n, j, n, j, n, j, n, j, n, j);
    ELV_ASSERT(len > 0 && (size_t)len < sizeof s->links);
    s->links_len = (size_t)len;
}

static enum elv_err set_credentials(struct elv_coap_server *s, struct elv_coap_problem *problem)
{
    coap_dtls_spsk_t psk = {
        .version = COAP_DTLS_SPSK_SETUP_VERSION,
        .validate_id_call_back = on_identity,
        .id_call_back_arg = s,
    };
    /* Never used: the callback decides. Libcoap wants the fields to be filled. */
    psk.psk_info.hint = (coap_bin_const_t){0, (const uint8_t *)""};
    if (!coap_context_set_psk2(s->context, &psk)) {
        snprintf(problem->text, sizeof problem->text, "DTLS with keys is not available");
        return ELV_ERR_UNSUPPORTED;
    }
    if (s->cfg.cert == NULL)
        return ELV_OK;
    coap_dtls_pki_t pki;
    const enum elv_err err = elv_coap_pem_copy(s->cfg.cert, &s->pem, problem);
    if (err != ELV_OK)
        return err;
    elv_coap_pki_setup(&s->pem, &pki);
    if (!coap_context_set_pki(s->context, &pki)) {
        snprintf(problem->text, sizeof problem->text, "DTLS with certificates is not available");
        return ELV_ERR_UNSUPPORTED;
    }
    return ELV_OK;
}

static enum elv_err add_resource(struct elv_coap_server *s)
{
    /* One handler sees every path, so an unknown one is answered by our rules, not libcoap's. */
    coap_resource_t *all =
        coap_resource_unknown_init2(on_request, COAP_RESOURCE_HANDLE_WELLKNOWN_CORE);
    if (all == NULL)
        return ELV_ERR_MEMORY;
    for (int method = COAP_REQUEST_GET; method <= COAP_REQUEST_IPATCH; method++)
        coap_register_request_handler(all, (coap_request_t)method, on_request);
    coap_add_resource(s->context, all);
    return ELV_OK;
}

static enum elv_err listen_on(struct elv_coap_server *s, const char *text,
                              struct elv_coap_problem *problem)
{
    struct elv_coap_place place;
    coap_address_t address;
    if (elv_coap_place_parse(text, &place) != ELV_OK) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot read the address '%s'; write host, host:port or [IPv6]:port", text);
        return ELV_ERR_ARG;
    }
    if (!place.secure && !s->cfg.insecure) {
        snprintf(problem->text, sizeof problem->text,
                 "'%s' would be in the clear, which has not been allowed", text);
        return ELV_ERR_ARG;
    }
    if (elv_coap_resolve(&place, &address, 1) == 0) {
        snprintf(problem->text, sizeof problem->text, "no such host: '%s'", text);
        return ELV_ERR_IO;
    }
    const int fd = elv_coap_next_socket();
    coap_endpoint_t *endpoint =
        coap_new_endpoint(s->context, &address, place.secure ? COAP_PROTO_DTLS : COAP_PROTO_UDP);
    if (endpoint == NULL) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot listen on '%s': not this machine's address, or in use", text);
        return ELV_ERR_IO;
    }
    elv_coap_own(fd);
    coap_endpoint_set_default_mtu(endpoint, ELV_COAP_MTU);
    struct elv_coap_server_info *info = &s->info;
    const uint32_t got = elv_coap_grow(fd, s->cfg.receive_buffer, &info->port[info->n_listen]);
    if (info->n_listen == 0 || got < info->receive_buffer)
        info->receive_buffer = got;
    info->n_listen++;
    return ELV_OK;
}

static enum elv_err open_context(struct elv_coap_server *s, struct elv_coap_problem *problem)
{
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
    s->context = coap_new_context(NULL);
    if (s->context == NULL)
        return ELV_ERR_MEMORY;
    coap_context_set_app_data(s->context, s);
    coap_context_set_block_mode(s->context, 0); /* bodies are one datagram; see message.h */
    coap_context_set_session_timeout(s->context, s->cfg.idle_s);
    coap_context_set_max_handshake_sessions(s->context, s->cfg.half_open_max);
    /* A backstop only: our own limits close sessions earlier, and by better reasons. */
    coap_context_set_max_idle_sessions(s->context, s->seats.cap);
    coap_register_event_handler(s->context, on_event);
    coap_register_nack_handler(s->context, on_nack);
    if (!elv_coap_set_dtls_timer(s->context, s->cfg.dtls_timer_ms)) {
        snprintf(problem->text, sizeof problem->text, "this libcoap has a fixed DTLS timer");
        return ELV_ERR_UNSUPPORTED;
    }
    enum elv_err err = set_credentials(s, problem);
    if (err == ELV_OK)
        err = add_resource(s);
    for (uint32_t i = 0; err == ELV_OK && i < s->cfg.n_listen; i++)
        err = listen_on(s, s->cfg.listen[i], problem);
    elv_coap_pump_init(&s->pump, s->context);
    return err;
}

static enum elv_err open_parts(struct elv_coap_server *s, const struct elv_coap_server_cfg *cfg,
                               struct elv_coap_problem *problem)
{
    enum elv_err err = configure(s, cfg, problem);
    if (err != ELV_OK)
        return err;
    write_links(s);
    s->pending = calloc(s->cfg.pending_max, sizeof *s->pending);
    if (s->pending == NULL)
        return ELV_ERR_MEMORY;
    err = elv_coap_seats_init(&s->seats, s->cfg.sessions_max + 2 * s->cfg.half_open_max + 64);
    return err == ELV_OK ? open_context(s, problem) : err;
}

enum elv_err elv_coap_server_open(const struct elv_coap_server_cfg *cfg,
                                  struct elv_coap_server **server, struct elv_coap_problem *problem)
{
    ELV_ASSERT(cfg->keys.find != NULL && cfg->sink.event != NULL);
    *server = NULL;
    snprintf(problem->text, sizeof problem->text, "out of memory");
    struct elv_coap_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = open_parts(s, cfg, problem);
    if (err != ELV_OK) {
        elv_coap_server_close(s);
        return err;
    }
    s->cfg.cert = NULL; /* the caller's; copied by now, as are these */
    s->cfg.listen = NULL;
    s->cfg.job.at = s->job;
    *server = s;
    return ELV_OK;
}

void elv_coap_server_close(struct elv_coap_server *s)
{
    if (s == NULL)
        return;
    if (s->context != NULL)
        coap_free_context(s->context);
    elv_coap_seats_free(&s->seats);
    elv_coap_pem_free(&s->pem);
    free(s->pending);
    free(s);
}

struct elv_net elv_coap_server_net(struct elv_coap_server *server)
{
    return (struct elv_net){server, act};
}

struct elv_source elv_coap_server_source(struct elv_coap_server *server)
{
    return (struct elv_source){server, server->pump.epoll, ready, deadline};
}

const struct elv_coap_server_stats *elv_coap_server_stats(const struct elv_coap_server *server)
{
    return &server->stats;
}

const struct elv_coap_server_info *elv_coap_server_info(const struct elv_coap_server *server)
{
    return &server->info;
}
