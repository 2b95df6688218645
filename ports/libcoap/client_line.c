/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/libcoap/client_internal.h"

enum {
    ADDRESSES_MAX = 8,
    NSTART = 64, /* confirmable requests under way at once; the node paces itself */
};

static struct elv_coap_line *line_of(struct elv_coap_client *c, const coap_session_t *session)
{
    if (session == c->next.session)
        return &c->next;
    return session == c->current.session ? &c->current : NULL;
}

void elv_coap_client_on_nack(coap_session_t *session, const coap_pdu_t *sent,
                             const coap_nack_reason_t why, const coap_mid_t mid)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct elv_coap_line *line = line_of(c, session);
    (void)mid;
    switch (why) {
    case COAP_NACK_ICMP_ISSUE: /* perhaps it is only starting: libcoap goes on trying */
        if (line != NULL && !line->up)
            c->status.link = ELV_COAP_LINK_UNREACHABLE;
        break;
    case COAP_NACK_TOO_MANY_RETRIES:
    case COAP_NACK_RST:
    case COAP_NACK_BAD_RESPONSE: {
        struct elv_coap_asked *a =
            sent != NULL ? elv_coap_asked_by_token(c, session, coap_pdu_get_token(sent)) : NULL;
        if (a != NULL) /* told later: the node must not act while libcoap walks its queue */
            elv_coap_asked_lose(c, a);
        break;
    }
    default: /* The association has ended, and with it all that was asked on it. What libcoap hands
                over as `sent` here may have a token that it has freed. */
        if (line != NULL)
            line->failed = true;
        break;
    }
}

int elv_coap_client_on_event(coap_session_t *session, const coap_event_t event)
{
    struct elv_coap_client *c = coap_context_get_app_data(coap_session_get_context(session));
    struct elv_coap_line *line = line_of(c, session);
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
    struct elv_coap_line *line = line_of(c, session);
    if (line != NULL)
        line->untrusted = true;
    return 0;
}

/* Never called while libcoap is at work with the session. `moved`: another stands already. */
static void end_line(struct elv_coap_client *c, struct elv_coap_line *line, bool moved)
{
    coap_session_t *session = line->session;
    if (session == NULL)
        return;
    elv_coap_asked_lose_all(c, session, moved);
    line->session = NULL;
    line->up = false;
    coap_session_disconnected(session, COAP_NACK_NOT_DELIVERABLE);
    coap_session_release(session);
}

void elv_coap_line_close(struct elv_coap_client *c, struct elv_coap_line *line)
{
    end_line(c, line, false);
}

static void judge_failure(struct elv_coap_client *c, const struct elv_coap_line *line)
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

static void look_after(struct elv_coap_client *c, struct elv_coap_line *line)
{
    if (line->session == NULL)
        return;
    if (line->failed) {
        judge_failure(c, line);
        elv_coap_line_close(c, line);
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

void elv_coap_line_open(struct elv_coap_client *c, struct elv_coap_line *line)
{
    coap_address_t at[ADDRESSES_MAX];
    *line = (struct elv_coap_line){0};
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

void elv_coap_lines_look_after(struct elv_coap_client *c)
{
    look_after(c, &c->current);
    look_after(c, &c->next);
    if (c->next.up) {
        end_line(c, &c->current, true);
        c->current = c->next;
        c->next = (struct elv_coap_line){0};
    }
    if (!c->relink)
        return;
    c->relink = false;
    if (c->current.up) {
        elv_coap_line_close(c, &c->next); /* an attempt that has not got anywhere */
        elv_coap_line_open(c, &c->next);
    } else {
        elv_coap_line_close(c, &c->current);
        elv_coap_line_open(c, &c->current);
    }
}
