/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/libcoap/client_internal.h"

struct elv_coap_asked *elv_coap_asked_take(struct elv_coap_client *c, uint32_t id, enum elv_op op)
{
    if (c->status.in_flight >= c->cfg.in_flight_max)
        return NULL;
    struct elv_coap_asked *a;
    do { /* ends: fewer are taken than there are */
        c->sequence++;
        a = &c->asked[c->sequence & c->mask];
    } while (a->sequence != 0 || c->sequence == 0);
    *a = (struct elv_coap_asked){.sequence = c->sequence, .id = id, .op = op};
    c->status.in_flight++;
    return a;
}

void elv_coap_asked_release(struct elv_coap_client *c, struct elv_coap_asked *a)
{
    if (a->lost)
        c->n_lost--;
    a->sequence = 0;
    c->status.in_flight--;
}

void elv_coap_asked_lose(struct elv_coap_client *c, struct elv_coap_asked *a)
{
    if (!a->lost)
        c->n_lost++;
    a->lost = true;
}

void elv_coap_asked_lose_all(struct elv_coap_client *c, const coap_session_t *session, bool moved)
{
    for (uint32_t i = 0; i <= c->mask; i++) {
        struct elv_coap_asked *a = &c->asked[i];
        if (a->sequence == 0 || a->on != session)
            continue;
        a->moved = moved && !a->lost;
        elv_coap_asked_lose(c, a);
    }
}

struct elv_coap_asked *elv_coap_asked_by_token(struct elv_coap_client *c,
                                               const coap_session_t *session,
                                               coap_bin_const_t token)
{
    uint32_t sequence = 0;
    if (token.length != ELV_COAP_TOKEN_LEN)
        return NULL;
    for (unsigned i = 0; i < ELV_COAP_TOKEN_LEN; i++)
        sequence |= (uint32_t)token.s[i] << (8 * i);
    struct elv_coap_asked *a = &c->asked[sequence & c->mask];
    return sequence != 0 && a->sequence == sequence && a->on == session ? a : NULL;
}

void elv_coap_asked_report_lost(struct elv_coap_client *c)
{
    for (uint32_t i = 0; i <= c->mask && c->n_lost != 0; i++) {
        struct elv_coap_asked *a = &c->asked[i];
        if (a->sequence == 0 || !a->lost)
            continue;
        struct elv_event ev = {
            .kind = ELV_EV_NO_ANSWER, .id = a->id, .err = a->moved ? ELV_ERR_CANCELLED : ELV_OK};
        elv_coap_asked_release(c, a);
        c->status.unanswered++;
        c->cfg.sink.event(c->cfg.sink.self, &ev);
    }
}
