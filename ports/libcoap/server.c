/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ports/libcoap/server_internal.h"

enum {
    BUSY_S = 2,       /* a full table says to come back after so long */
    ANSWERS_S = 10,   /* in so many seconds, */
    ANSWERS_MAX = 32, /* at most so many confirmable answers to one client */
};

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

/* Libcoap keeps a confirmable answer until it is acknowledged, or for a minute; for a client that
 * never acknowledges it would keep ever more. Beyond a few in a while they go out once. */
static coap_pdu_type_t answer_type(struct elv_coap_seat *seat, coap_pdu_type_t asked)
{
    coap_tick_t now;
    if (asked != COAP_MESSAGE_CON)
        return asked;
    coap_ticks(&now);
    if (now - seat->counted >= (coap_tick_t)ANSWERS_S * COAP_TICKS_PER_SECOND) {
        seat->counted = now;
        seat->n_confirmable = 0;
    }
    return seat->n_confirmable++ < ANSWERS_MAX ? COAP_MESSAGE_CON : COAP_MESSAGE_NON;
}

static void answer_later(struct elv_coap_server *s, struct elv_coap_pending *p,
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
    const coap_pdu_type_t type =
        p->notification ? notification_type(seat) : answer_type(seat, p->type);
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
    struct elv_coap_pending *p = elv_coap_pending_of(s, id);
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
        elv_coap_pending_unlink(s, p);
    elv_coap_pending_release(s, p);
}

/* Hands a request to the node; what it does not answer at once stays pending. */
static void ask_node(struct elv_coap_server *s, struct elv_coap_seat *seat,
                     struct elv_coap_pending *p, const struct elv_request *request,
                     coap_pdu_t *answer)
{
    struct elv_event ev = {
        .kind = ELV_EV_REQUEST, .peer = seat->client, .id = p->id, .request = *request};
    p->op = request->op;
    p->seat = elv_coap_seat_link(&s->seats, seat);
    s->current = p;
    s->current_answer = answer;
    s->cfg.sink.event(s->cfg.sink.self, &ev);
    if (s->current != NULL)
        elv_coap_pending_keep(s, p, seat);
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
        const struct elv_coap_pending *p = &s->pending[link - 1];
        if (p->type == COAP_MESSAGE_CON && p->mid == coap_pdu_get_mid(request))
            return true;
    }
    return false;
}

static void observe(struct elv_coap_seat *seat, const coap_pdu_t *request,
                    struct elv_coap_pending *p, struct elv_request *r)
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
    struct elv_coap_pending *p = elv_coap_pending_take(s);
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

void elv_coap_server_on_request(coap_resource_t *resource, coap_session_t *session,
                                const coap_pdu_t *request, const coap_string_t *query,
                                coap_pdu_t *answer)
{
    struct elv_coap_server *s = coap_context_get_app_data(coap_session_get_context(session));
    (void)resource;
    (void)query;
    s->stats.requests++;
    struct elv_coap_seat *seat = elv_coap_seat_of(s, session, request);
    if (seat == NULL)
        refuse(s, answer, ELV_CODE(4, 1), (struct elv_refusal){ELV_REASON_REVOKED, 0});
    else
        route(s, seat, request, answer);
}

/* A client that resets a notification, or does not acknowledge it, observes no longer. */
void elv_coap_server_on_nack(coap_session_t *session, const coap_pdu_t *sent,
                             const coap_nack_reason_t why, const coap_mid_t mid)
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
    struct elv_coap_pending *p = elv_coap_pending_take(s);
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
        elv_coap_vacate(s, seat);
}

static void serve_due(struct elv_coap_server *s)
{
    struct elv_coap_seat *seat;
    for (uint32_t n = 0; n < s->cfg.pending_max; n++) {
        if ((seat = elv_coap_seat_next_due(&s->seats)) == NULL)
            return;
        const bool wanted = seat->notify && seat->observing && !seat->doomed;
        seat->notify = false;
        if (seat->doomed)
            close_session(s, seat);
        else if (wanted)
            notify(s, seat);
    }
}

static void ready(void *self)
{
    struct elv_coap_server *s = self;
    struct elv_coap_traffic *before = elv_coap_traffic_begin(&s->stats.traffic);
    elv_coap_pump_run(&s->pump);
    serve_due(s);
    elv_coap_traffic_end(before);
}

/* Libcoap's own timers wake the descriptor. */
static elv_time_us deadline(const void *self)
{
    const struct elv_coap_server *s = self;
    return s->seats.due != 0 ? INT64_MIN : ELV_NEVER;
}

static void act(void *self, const struct elv_action *action)
{
    struct elv_coap_server *s = self;
    struct elv_coap_seat *seat;
    struct elv_coap_traffic *before = elv_coap_traffic_begin(&s->stats.traffic);
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
    elv_coap_traffic_end(before);
}

void elv_coap_server_drop(struct elv_coap_server *s, uint32_t client)
{
    struct elv_coap_seat *seat = elv_coap_seat_first(&s->seats, client);
    for (; seat != NULL; seat = elv_coap_seat_next(&s->seats, seat))
        elv_coap_seat_doom(&s->seats, seat);
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
