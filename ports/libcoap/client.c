/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/client.c - requests out, responses in. */
#include "ports/libcoap/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/libcoap/message.h"
#include "ports/libcoap/socket.h"
#include "ports/libcoap/timer.h"
#include "ports/libcoap/tls.h"

enum {
    ADDRESSES_MAX = 8,
    NSTART = 64,         /* confirmable requests under way at once; the node paces itself */
    RESTARTS_MAX = 3,    /* of a manifest that changes while it is fetched */
    RESTART_PAUSE_S = 1, /* between associations opened without being told to */
    TOKEN_LEN = 4,
};

/* A request that has been sent and not answered. Its token is its sequence number, which is not
 * used twice, so a late response cannot be taken for another's (RFC 9175, section 4.2). */
struct asked {
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
struct line {
    coap_session_t *session; /* NULL: none */
    bool up;
    bool failed;
    bool untrusted;
    coap_tick_t since;
};

/* The manifest arrives in blocks; one at a time. */
struct fetch {
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
    struct line current, next;
    uint32_t attempts; /* picks the address */
    bool relink;
    struct asked *asked;
    uint32_t mask; /* of `asked`; at least twice as many as may be in flight */
    uint32_t sequence, n_lost;
    struct fetch fetch;
    struct elv_coap_client_status status;
};

/* ---- what is in flight */

static struct asked *take(struct elv_coap_client *c, uint32_t id, enum elv_op op)
{
    if (c->status.in_flight >= c->cfg.in_flight_max)
        return NULL;
    struct asked *a;
    do { /* ends: fewer are taken than there are */
        c->sequence++;
        a = &c->asked[c->sequence & c->mask];
    } while (a->sequence != 0 || c->sequence == 0);
    *a = (struct asked){.sequence = c->sequence, .id = id, .op = op};
    c->status.in_flight++;
    return a;
}

static void release(struct elv_coap_client *c, struct asked *a)
{
    if (a->lost)
        c->n_lost--;
    a->sequence = 0;
    c->status.in_flight--;
}

static void lose(struct elv_coap_client *c, struct asked *a)
{
    if (!a->lost)
        c->n_lost++;
    a->lost = true;
}

static void lose_all_on(struct elv_coap_client *c, const coap_session_t *session, bool moved)
{
    for (uint32_t i = 0; i <= c->mask; i++) {
        struct asked *a = &c->asked[i];
        if (a->sequence == 0 || a->on != session)
            continue;
        a->moved = moved && !a->lost;
        lose(c, a);
    }
}

static struct asked *by_token(struct elv_coap_client *c, const coap_session_t *session,
                              coap_bin_const_t token)
{
    uint32_t sequence = 0;
    if (token.length != TOKEN_LEN)
        return NULL;
    for (unsigned i = 0; i < TOKEN_LEN; i++)
        sequence |= (uint32_t)token.s[i] << (8 * i);
    struct asked *a = &c->asked[sequence & c->mask];
    return sequence != 0 && a->sequence == sequence && a->on == session ? a : NULL;
}

static void report_lost(struct elv_coap_client *c)
{
    for (uint32_t i = 0; i <= c->mask && c->n_lost != 0; i++) {
        struct asked *a = &c->asked[i];
        if (a->sequence == 0 || !a->lost)
            continue;
        struct elv_event ev = {
            .kind = ELV_EV_NO_ANSWER, .id = a->id, .err = a->moved ? ELV_ERR_CANCELLED : ELV_OK};
        release(c, a);
        c->status.unanswered++;
        c->cfg.sink.event(c->cfg.sink.self, &ev);
    }
}

/* ---- requests */

static bool fill(const struct elv_coap_client *c, coap_pdu_t *pdu, const struct asked *a,
                 const struct elv_request *r, struct elv_text path, uint32_t block)
{
    uint8_t token[TOKEN_LEN];
    for (unsigned i = 0; i < TOKEN_LEN; i++)
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
static bool send_on(struct elv_coap_client *c, coap_session_t *session, struct asked *a,
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
    const struct line *line = c->current.session != NULL ? &c->current : &c->next;
    const bool usable = line->session != NULL && !line->failed;
    const bool moved = !usable && c->relink; /* one is about to be opened: ask again then */
    if (!usable)
        want_line(c);
    if (!action->reliable && !(usable && line->up))
        return; /* lost: what is sent once is not worth keeping until a handshake is over */
    struct asked *a = take(c, action->id, action->request.op);
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
        lose(c, a);
}

static void forget(struct elv_coap_client *c, uint32_t id)
{
    for (uint32_t i = 0; i <= c->mask; i++) {
        if (c->asked[i].sequence != 0 && c->asked[i].id == id)
            release(c, &c->asked[i]);
    }
}

static void act(void *self, const struct elv_action *action)
{
    struct elv_coap_client *c = self;
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
}

/* ---- responses */

static void deliver(struct elv_coap_client *c, struct asked *a, const struct elv_response *r)
{
    struct elv_event ev = {.kind = ELV_EV_RESPONSE, .id = a->id, .response = *r};
    if (!a->observed)
        release(c, a);
    c->status.answered++;
    c->cfg.sink.event(c->cfg.sink.self, &ev);
}

/* Asks for block `num` of the manifest in the place of `a`. */
static void next_block(struct elv_coap_client *c, struct asked *a, uint32_t num)
{
    const struct elv_request request = {.op = ELV_OP_MANIFEST};
    const uint32_t id = a->id;
    coap_session_t *session = a->on;
    release(c, a);
    a = take(c, id, ELV_OP_MANIFEST); /* one has just been released */
    ELV_ASSERT(a != NULL);
    if (!send_on(c, session, a, &request, true, num))
        lose(c, a);
}

static void restart_fetch(struct elv_coap_client *c, struct asked *a)
{
    c->fetch.len = 0;
    if (c->fetch.restarts++ < RESTARTS_MAX)
        next_block(c, a, 0);
    else
        lose(c, a);
}

static bool same_tag(struct fetch *f, const coap_pdu_t *pdu)
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
static void on_block(struct elv_coap_client *c, struct asked *a, const coap_pdu_t *pdu,
                     const struct elv_coap_block *block, struct elv_response *r)
{
    struct fetch *f = &c->fetch;
    if (a->id != f->id) { /* another fetch has taken its place */
        lose(c, a);
        return;
    }
    const bool whole = r->body.len == block->size || !block->more;
    if (block->size != ELV_COAP_BODY_MAX || f->len != (size_t)block->num * block->size || !whole ||
        !same_tag(f, pdu)) {
        restart_fetch(c, a);
        return;
    }
    if (r->body.len > sizeof f->body - f->len) {
        lose(c, a);
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
static bool is_newer(struct asked *a, const coap_pdu_t *pdu)
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

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent,
                                   const coap_pdu_t *pdu, const coap_mid_t mid)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct asked *a = by_token(c, session, coap_pdu_get_token(pdu));
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
        lose(c, a);
    else if (block.present && a->op == ELV_OP_MANIFEST && elv_code_is_success(r.code))
        on_block(c, a, pdu, &block, &r);
    else if (is_newer(a, pdu))
        deliver(c, a, &r);
    return COAP_RESPONSE_OK;
}

/* ---- associations */

static struct line *line_of(struct elv_coap_client *c, const coap_session_t *session)
{
    if (session == c->next.session)
        return &c->next;
    return session == c->current.session ? &c->current : NULL;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t why,
                    const coap_mid_t mid)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct line *line = line_of(c, session);
    (void)mid;
    switch (why) {
    case COAP_NACK_ICMP_ISSUE: /* perhaps it is only starting: libcoap goes on trying */
        if (line != NULL && !line->up)
            c->status.link = ELV_COAP_LINK_UNREACHABLE;
        break;
    case COAP_NACK_TOO_MANY_RETRIES:
    case COAP_NACK_RST:
    case COAP_NACK_BAD_RESPONSE: {
        struct asked *a = sent != NULL ? by_token(c, session, coap_pdu_get_token(sent)) : NULL;
        if (a != NULL) /* told later: the node must not act while libcoap walks its queue */
            lose(c, a);
        break;
    }
    default: /* The association has ended, and with it all that was asked on it. What libcoap hands
                over as `sent` here may have a token that it has freed. */
        if (line != NULL)
            line->failed = true;
        break;
    }
}

static int on_event(coap_session_t *session, const coap_event_t event)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct line *line = line_of(c, session);
    if (line != NULL && event == COAP_EVENT_DTLS_ERROR && !line->up)
        line->untrusted = true;
    return 0;
}

/* Called for a name that does not match, and for a certificate that does not verify. */
static int on_wrong_name(const char *name, const uint8_t *cert, size_t cert_len,
                         coap_session_t *session, unsigned depth, int validated, void *arg)
{
    struct elv_coap_client *c = arg;
    (void)name;
    (void)cert;
    (void)cert_len;
    (void)validated;
    (void)depth;
    struct line *line = line_of(c, session);
    if (line != NULL)
        line->untrusted = true;
    return 0;
}

/* Never called while libcoap is at work with the session. `moved`: another stands already. */
static void end_line(struct elv_coap_client *c, struct line *line, bool moved)
{
    coap_session_t *session = line->session;
    if (session == NULL)
        return;
    lose_all_on(c, session, moved);
    line->session = NULL;
    line->up = false;
    coap_session_disconnected(session, COAP_NACK_NOT_DELIVERABLE);
    coap_session_release(session);
}

static void close_line(struct elv_coap_client *c, struct line *line) { end_line(c, line, false); }

static void judge_failure(struct elv_coap_client *c, const struct line *line)
{
    coap_tick_t now;
    coap_ticks(&now);
    /* A silent server is given up after 2^(retries + 1) - 1 times the first timer. */
    const uint64_t patience_ms = (uint64_t)c->cfg.dtls_timer_ms << c->cfg.retries;
    const bool timed_out = (now - line->since) * 1000 / COAP_TICKS_PER_SECOND >= patience_ms;
    if (line->up)
        c->status.link = ELV_COAP_LINK_CLOSED;
    else if (line->untrusted)
        c->status.link = c->pem.cert != NULL ? ELV_COAP_LINK_DISTRUSTED : ELV_COAP_LINK_REFUSED;
    else
        c->status.link = timed_out ? ELV_COAP_LINK_SILENT : ELV_COAP_LINK_REFUSED;
    if (c->status.link == ELV_COAP_LINK_REFUSED || c->status.link == ELV_COAP_LINK_DISTRUSTED)
        c->status.refused_in_row++;
}

static void look_after(struct elv_coap_client *c, struct line *line)
{
    if (line->session == NULL)
        return;
    if (line->failed) {
        judge_failure(c, line);
        close_line(c, line);
    } else if (!line->up &&
               coap_session_get_state(line->session) == COAP_SESSION_STATE_ESTABLISHED) {
        line->up = true;
        c->status.link = ELV_COAP_LINK_UP;
        c->status.refused_in_row = 0;
        c->status.handshakes++;
    }
}

static coap_session_t *new_session(struct elv_coap_client *c, const coap_address_t *server)
{
    if (!c->place.secure)
        return coap_new_client_session(c->context, NULL, server, COAP_PROTO_UDP);
    if (c->pem.cert != NULL) {
        coap_dtls_pki_t pki;
        elv_coap_pki_setup(&c->pem, &pki);
        pki.client_sni = c->server_name;
        pki.validate_cn_call_back = on_wrong_name;
        pki.cn_call_back_arg = c;
        return coap_new_client_session_pki(c->context, NULL, server, COAP_PROTO_DTLS, &pki);
    }
    coap_dtls_cpsk_t psk = {.version = COAP_DTLS_CPSK_SETUP_VERSION, .use_cid = 1};
    psk.psk_info.identity = (coap_bin_const_t){c->cfg.identity.len, (const uint8_t *)c->identity};
    psk.psk_info.key = (coap_bin_const_t){c->cfg.psk.len, c->psk};
    return coap_new_client_session_psk2(c->context, NULL, server, COAP_PROTO_DTLS, &psk);
}

static void open_line(struct elv_coap_client *c, struct line *line)
{
    coap_address_t at[ADDRESSES_MAX];
    *line = (struct line){0};
    coap_ticks(&line->since);
    c->status.link = ELV_COAP_LINK_UNREACHABLE;
    const uint32_t n = elv_coap_resolve(&c->place, at, ADDRESSES_MAX);
    if (n == 0)
        return;
    const int fd = elv_coap_next_socket();
    coap_session_t *session = new_session(c, &at[c->attempts++ % n]);
    if (session == NULL)
        return;
    line->session = session;
    c->status.link = ELV_COAP_LINK_OPENING;
    c->status.receive_buffer = elv_coap_grow(fd, c->cfg.receive_buffer, NULL);
    coap_session_set_mtu(session, ELV_COAP_MTU);
    elv_coap_tls_mtu(session, ELV_COAP_MTU);
    coap_session_set_nstart(session, NSTART);
    coap_session_set_ack_timeout(session, elv_coap_seconds(c->cfg.ack_timeout_ms));
    coap_session_set_max_retransmit(session, (uint16_t)c->cfg.retries);
    coap_tick_t now;
    coap_ticks(&now);
    coap_io_prepare_epoll(c->context, now); /* arms the handshake's timer */
    look_after(c, line);                    /* in the clear it stands at once */
}

static void look_after_lines(struct elv_coap_client *c)
{
    look_after(c, &c->current);
    look_after(c, &c->next);
    if (c->next.up) {
        end_line(c, &c->current, true);
        c->current = c->next;
        c->next = (struct line){0};
    }
    if (!c->relink)
        return;
    c->relink = false;
    if (c->current.up) {
        close_line(c, &c->next); /* an attempt that has not got anywhere */
        open_line(c, &c->next);
    } else {
        close_line(c, &c->current);
        open_line(c, &c->current);
    }
}

static void ready(void *self)
{
    struct elv_coap_client *c = self;
    elv_coap_pump_run(&c->pump);
    look_after_lines(c);
    if (c->n_lost != 0)
        report_lost(c);
}

/* Libcoap's own timers wake the descriptor. */
static elv_time_us deadline(const void *self)
{
    const struct elv_coap_client *c = self;
    return c->relink || c->n_lost != 0 ? INT64_MIN : ELV_NEVER;
}

/* ---- opening */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static const char *objection(const struct elv_coap_client_cfg *cfg, const struct elv_coap_client *c)
{
    if (!c->place.secure && !cfg->insecure)
        return "coap:// is in the clear, which has not been allowed";
    if (!elv_name_ok(cfg->job, ELV_JOB_NAME_MAX))
        return "the name of the job is not acceptable";
    if (cfg->cert == NULL && (cfg->identity.len == 0 || cfg->identity.len > sizeof c->identity))
        return "the identity must have 1 to 75 characters";
    if (cfg->cert == NULL && c->place.secure && (cfg->psk.len == 0 || cfg->psk.len > sizeof c->psk))
        return "the key must have 1 to 32 bytes";
    if (cfg->cert != NULL && (cfg->server_name == NULL || cfg->server_name[0] == '\0'))
        return "a certificate needs the name that the server's certificate must say";
    if (cfg->in_flight_max > 65535 || cfg->retries > 20 || cfg->ack_timeout_ms > 60000 ||
        cfg->dtls_timer_ms > ELV_COAP_DTLS_TIMER_MAX_MS)
        return "a limit is too large";
    return NULL;
}

static enum elv_err configure(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    if (elv_coap_place_parse(cfg->server, &c->place) != ELV_OK) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot read the server's address '%s'; write coaps://host[:port]", cfg->server);
        return ELV_ERR_ARG;
    }
    const char *text = objection(cfg, c);
    if (text != NULL) {
        snprintf(problem->text, sizeof problem->text, "%s", text);
        return ELV_ERR_ARG;
    }
    c->cfg = *cfg;
    c->cfg.ack_timeout_ms = or_default(cfg->ack_timeout_ms, 1000);
    c->cfg.retries = or_default(cfg->retries, 4);
    c->cfg.dtls_timer_ms = or_default(cfg->dtls_timer_ms, 1000);
    c->cfg.in_flight_max = or_default(cfg->in_flight_max, 256);
    c->cfg.receive_buffer = or_default(cfg->receive_buffer, 1u << 20);
    memcpy(c->job, cfg->job.at, cfg->job.len);
    c->cfg.job.at = c->job;
    if (cfg->identity.len != 0 && cfg->identity.len <= sizeof c->identity)
        memcpy(c->identity, cfg->identity.at, cfg->identity.len);
    if (cfg->psk.len != 0 && cfg->psk.len <= sizeof c->psk)
        memcpy(c->psk, cfg->psk.at, cfg->psk.len);
    return ELV_OK;
}

static enum elv_err copy_cert(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    if (cfg->cert == NULL)
        return ELV_OK;
    const size_t len = strlen(cfg->server_name) + 1;
    c->server_name = malloc(len);
    if (c->server_name == NULL)
        return ELV_ERR_MEMORY;
    memcpy(c->server_name, cfg->server_name, len);
    return elv_coap_pem_copy(cfg->cert, &c->pem, problem);
}

static enum elv_err open_parts(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                               struct elv_coap_problem *problem)
{
    enum elv_err err = configure(c, cfg, problem);
    if (err == ELV_OK)
        err = copy_cert(c, cfg, problem);
    if (err != ELV_OK)
        return err;
    uint32_t n = 16;
    while (n < 2 * c->cfg.in_flight_max)
        n *= 2;
    c->mask = n - 1;
    c->asked = calloc(n, sizeof *c->asked);
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
    c->context = coap_new_context(NULL);
    if (c->asked == NULL || c->context == NULL)
        return ELV_ERR_MEMORY;
    if (!elv_coap_set_dtls_timer(c->context, cfg->dtls_timer_ms)) {
        snprintf(problem->text, sizeof problem->text, "this libcoap has a fixed DTLS timer");
        return ELV_ERR_UNSUPPORTED;
    }
    coap_context_set_app_data(c->context, c);
    coap_context_set_block_mode(c->context, 0); /* bodies are one datagram; the manifest is ours */
    coap_register_response_handler(c->context, on_response);
    coap_register_nack_handler(c->context, on_nack);
    coap_register_event_handler(c->context, on_event);
    elv_coap_pump_init(&c->pump, c->context);
    open_line(c, &c->current);
    return ELV_OK;
}

enum elv_err elv_coap_client_open(const struct elv_coap_client_cfg *cfg,
                                  struct elv_coap_client **client, struct elv_coap_problem *problem)
{
    ELV_ASSERT(cfg->server != NULL && cfg->sink.event != NULL);
    *client = NULL;
    snprintf(problem->text, sizeof problem->text, "out of memory");
    struct elv_coap_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = open_parts(c, cfg, problem);
    if (err != ELV_OK) {
        elv_coap_client_close(c);
        return err;
    }
    *client = c;
    return ELV_OK;
}

void elv_coap_client_close(struct elv_coap_client *c)
{
    if (c == NULL)
        return;
    if (c->context != NULL) {
        close_line(c, &c->next);
        close_line(c, &c->current);
        coap_free_context(c->context);
    }
    free(c->asked);
    free(c->server_name);
    elv_coap_pem_free(&c->pem);
    free(c);
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
