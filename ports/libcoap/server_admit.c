/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ports/libcoap/server_internal.h"

enum { NSTART = 16 }; /* separate responses on their way to one client */

void elv_coap_vacate(struct elv_coap_server *s, struct elv_coap_seat *seat)
{
    while (seat->pending != 0) {
        struct elv_coap_pending *p = &s->pending[seat->pending - 1];
        seat->pending = p->next;
        elv_coap_pending_release(s, p);
    }
    coap_session_set_app_data(seat->session, NULL);
    if (seat->proven) {
        s->stats.sessions--;
        s->stats.sessions_closed++;
    }
    elv_coap_seat_leave(&s->seats, seat);
}

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
        elv_coap_vacate(s, before);
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

const coap_bin_const_t *elv_coap_server_on_identity(coap_bin_const_t *identity,
                                                    coap_session_t *session, void *arg)
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

struct elv_coap_seat *elv_coap_seat_of(struct elv_coap_server *s, coap_session_t *session,
                                       const coap_pdu_t *request)
{
    struct elv_coap_seat *seat = coap_session_get_app_data(session);
    if (seat != NULL && s->cfg.insecure && coap_session_get_proto(session) == COAP_PROTO_UDP &&
        !same_claim(seat, request)) {
        elv_coap_vacate(s, seat);
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

int elv_coap_server_on_event(coap_session_t *session, const coap_event_t event)
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
            elv_coap_vacate(s, seat);
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
