/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/assert.h"
#include "ports/libcoap/client_internal.h"

enum {
    RESTARTS_MAX = 3,    /* of a manifest that changes while it is fetched */
    RESTART_PAUSE_S = 1, /* between associations opened without being told to */
};

static bool fill(const struct elv_coap_client *c, coap_pdu_t *pdu, const struct elv_coap_asked *a,
                 const struct elv_request *r, struct elv_text path, uint32_t block)
{
    uint8_t token[ELV_COAP_TOKEN_LEN];
    for (unsigned i = 0; i < ELV_COAP_TOKEN_LEN; i++)
        token[i] = (uint8_t)(a->sequence >> (8 * i));
    bool ok = coap_add_token(pdu, sizeof token, token) != 0;
    if (ok && a->observe)
        ok = elv_coap_add_uint(pdu, COAP_OPTION_OBSERVE, COAP_OBSERVE_ESTABLISH);
    ok = ok && elv_coap_add_path(pdu, path);
    if (ok && r->body.len != 0)
        ok = elv_coap_add_uint(pdu, COAP_OPTION_CONTENT_FORMAT, elv_coap_format_up(r->op));
    if (ok && !c->place.secure) {
        uint8_t claim[2 + ELV_COAP_IDENTITY_MAX] = "i=";
        memcpy(claim + 2, c->identity, c->cfg.identity.len);
        ok = coap_add_option(pdu, COAP_OPTION_URI_QUERY, 2 + c->cfg.identity.len, claim) != 0;
    }
    if (ok && block != 0) {
        const struct elv_coap_block b = {.present = true, .num = block, .size = ELV_COAP_BODY_MAX};
        ok = elv_coap_block_add(pdu, COAP_OPTION_BLOCK2, &b);
    }
    if (ok && r->body.len != 0)
        ok = coap_add_data(pdu, r->body.len, r->body.at) != 0;
    return ok;
}

/* False when it could not be sent. */
static bool send_on(struct elv_coap_client *c, coap_session_t *session, struct elv_coap_asked *a,
                    const struct elv_request *r, bool reliable, uint32_t block)
{
    char text[ELV_PATH_MAX];
    struct elv_text path = {text, 0};
    enum elv_method method;
    if (elv_path_encode(r, c->cfg.job, text, &path.len, &method) != ELV_OK)
        return false;
    coap_pdu_t *pdu = coap_new_pdu(reliable ? COAP_MESSAGE_CON : COAP_MESSAGE_NON,
                                   (coap_pdu_code_t)method, session);
    if (pdu == NULL)
        return false;
    if (!fill(c, pdu, a, r, path, block)) {
        coap_delete_pdu(pdu);
        return false;
    }
    a->on = session;
    c->status.sent++;
    c->status.bytes_out += r->body.len;
    return coap_send(session, pdu) != COAP_INVALID_MID;
}

static void want_line(struct elv_coap_client *c)
{
    coap_tick_t now;
    coap_ticks(&now);
    if (c->current.since == 0 ||
        now - c->current.since >= (coap_tick_t)RESTART_PAUSE_S * COAP_TICKS_PER_SECOND)
        c->relink = true;
}

static void send_request(struct elv_coap_client *c, const struct elv_action *action)
{
    const struct elv_coap_line *line = c->current.session != NULL ? &c->current : &c->next;
    const bool usable = line->session != NULL && !line->failed;
    const bool moved = !usable && c->relink; /* one is about to be opened: ask again then */
    if (!usable)
        want_line(c);
    if (!action->reliable && !(usable && line->up))
        return; /* lost: what is sent once is not worth keeping until a handshake is over */
    struct elv_coap_asked *a = elv_coap_asked_take(c, action->id, action->request.op);
    if (a == NULL)
        return;
    a->observe = action->request.observe && action->request.op == ELV_OP_TICKET;
    if (a->op == ELV_OP_MANIFEST) {
        c->fetch.id = a->id;
        c->fetch.restarts = 0;
        c->fetch.len = 0;
    }
    a->moved = moved;
    if (!usable || !send_on(c, line->session, a, &action->request, action->reliable, 0))
        elv_coap_asked_lose(c, a);
}

static void forget(struct elv_coap_client *c, uint32_t id)
{
    for (uint32_t i = 0; i <= c->mask; i++) {
        if (c->asked[i].sequence != 0 && c->asked[i].id == id)
            elv_coap_asked_release(c, &c->asked[i]);
    }
}

static void act(void *self, const struct elv_action *action)
{
    struct elv_coap_client *c = self;
    struct elv_coap_traffic *before = elv_coap_traffic_begin(&c->status.traffic);
    switch (action->kind) {
    case ELV_DO_SEND:
        send_request(c, action);
        break;
    case ELV_DO_FORGET:
        forget(c, action->id);
        break;
    case ELV_DO_RELINK:
        c->relink = true;
        break;
    default:
        break;
    }
    elv_coap_traffic_end(before);
}

static void deliver(struct elv_coap_client *c, struct elv_coap_asked *a,
                    const struct elv_response *r)
{
    struct elv_event ev = {.kind = ELV_EV_RESPONSE, .id = a->id, .response = *r};
    if (!a->observed)
        elv_coap_asked_release(c, a);
    c->status.answered++;
    c->cfg.sink.event(c->cfg.sink.self, &ev);
}

/* Asks for block `num` of the manifest in the place of `a`. */
static void next_block(struct elv_coap_client *c, struct elv_coap_asked *a, uint32_t num)
{
    const struct elv_request request = {.op = ELV_OP_MANIFEST};
    const uint32_t id = a->id;
    coap_session_t *session = a->on;
    elv_coap_asked_release(c, a);
    a = elv_coap_asked_take(c, id, ELV_OP_MANIFEST); /* one has just been released */
    ELV_ASSERT(a != NULL);
    if (!send_on(c, session, a, &request, true, num))
        elv_coap_asked_lose(c, a);
}

static void restart_fetch(struct elv_coap_client *c, struct elv_coap_asked *a)
{
    c->fetch.len = 0;
    if (c->fetch.restarts++ < RESTARTS_MAX)
        next_block(c, a, 0);
    else
        elv_coap_asked_lose(c, a);
}

static bool same_tag(struct elv_coap_fetch *f, const coap_pdu_t *pdu)
{
    coap_opt_iterator_t at;
    const coap_opt_t *tag = coap_check_option(pdu, COAP_OPTION_ETAG, &at);
    const size_t len = tag != NULL ? coap_opt_length(tag) : 0;
    if (len > sizeof f->tag)
        return false;
    if (f->len != 0)
        return len == f->tag_len && (len == 0 || memcmp(f->tag, coap_opt_value(tag), len) == 0);
    f->tag_len = len;
    if (len != 0)
        memcpy(f->tag, coap_opt_value(tag), len);
    return true;
}

/* One block of the manifest. */
static void on_block(struct elv_coap_client *c, struct elv_coap_asked *a, const coap_pdu_t *pdu,
                     const struct elv_coap_block *block, struct elv_response *r)
{
    struct elv_coap_fetch *f = &c->fetch;
    if (a->id != f->id) { /* another fetch has taken its place */
        elv_coap_asked_lose(c, a);
        return;
    }
    const bool whole = r->body.len == block->size || !block->more;
    if (block->size != ELV_COAP_BODY_MAX || f->len != (size_t)block->num * block->size || !whole ||
        !same_tag(f, pdu)) {
        restart_fetch(c, a);
        return;
    }
    if (r->body.len > sizeof f->body - f->len) {
        elv_coap_asked_lose(c, a);
        return;
    }
    if (r->body.len != 0)
        memcpy(f->body + f->len, r->body.at, r->body.len);
    f->len += r->body.len;
    if (block->more) {
        next_block(c, a, block->num + 1);
        return;
    }
    r->body = (struct elv_bytes){f->body, f->len};
    deliver(c, a, r);
}

/* RFC 7641, section 3.4: what is older than the newest seen is dropped. */
static bool is_newer(struct elv_coap_asked *a, const coap_pdu_t *pdu)
{
    uint32_t number;
    if (!a->observe || !elv_coap_uint(pdu, COAP_OPTION_OBSERVE, &number)) {
        a->observed = false;
        return true;
    }
    if (a->observed && ((number - a->seen) & 0xffffffu) >= 0x800000u)
        return false;
    a->observed = true;
    a->seen = number;
    return true;
}

coap_response_t elv_coap_client_on_response(coap_session_t *session, const coap_pdu_t *sent,
                                            const coap_pdu_t *pdu, const coap_mid_t mid)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct elv_coap_asked *a = elv_coap_asked_by_token(c, session, coap_pdu_get_token(pdu));
    struct elv_coap_block block;
    coap_opt_iterator_t at;
    (void)sent;
    (void)mid;
    if (a == NULL || a->lost) /* a reset ends an observation nobody wants; else there is no harm */
        return coap_check_option(pdu, COAP_OPTION_OBSERVE, &at) != NULL ? COAP_RESPONSE_FAIL
                                                                        : COAP_RESPONSE_OK;
    struct elv_response r = {.code = (uint8_t)coap_pdu_get_code(pdu), .max_age_s = 60};
    if (coap_get_data(pdu, &r.body.len, &r.body.at) == 0)
        r.body = (struct elv_bytes){0};
    (void)elv_coap_uint(pdu, COAP_OPTION_MAXAGE, &r.max_age_s);
    c->status.bytes_in += r.body.len;
    if (!elv_coap_block_read(pdu, COAP_OPTION_BLOCK2, &block))
        elv_coap_asked_lose(c, a);
    else if (block.present && a->op == ELV_OP_MANIFEST && elv_code_is_success(r.code))
        on_block(c, a, pdu, &block, &r);
    else if (is_newer(a, pdu))
        deliver(c, a, &r);
    return COAP_RESPONSE_OK;
}

static void ready(void *self)
{
    struct elv_coap_client *c = self;
    struct elv_coap_traffic *before = elv_coap_traffic_begin(&c->status.traffic);
    elv_coap_pump_run(&c->pump);
    elv_coap_lines_look_after(c);
    if (c->n_lost != 0)
        elv_coap_asked_report_lost(c);
    elv_coap_traffic_end(before);
}

/* Libcoap's own timers wake the descriptor. */
static elv_time_us deadline(const void *self)
{
    const struct elv_coap_client *c = self;
    return c->relink || c->n_lost != 0 ? INT64_MIN : ELV_NEVER;
}

struct elv_net elv_coap_client_net(struct elv_coap_client *client)
{
    return (struct elv_net){client, act};
}

struct elv_source elv_coap_client_source(struct elv_coap_client *client)
{
    return (struct elv_source){client, client->pump.epoll, ready, deadline};
}

const struct elv_coap_client_status *elv_coap_client_status(const struct elv_coap_client *client)
{
    return &client->status;
}
