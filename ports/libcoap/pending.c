/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"
#include "ports/libcoap/server_internal.h"

enum { SLOT_MASK = (1 << ELV_COAP_SLOT_BITS) - 1 };

struct elv_coap_pending *elv_coap_pending_take(struct elv_coap_server *s)
{
    struct elv_coap_pending *p;
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
    const uint32_t generation = (p->generation + 1) & (UINT32_MAX >> ELV_COAP_SLOT_BITS);
    *p = (struct elv_coap_pending){.generation = generation != 0 ? generation : 1};
    p->id = p->generation << ELV_COAP_SLOT_BITS | slot;
    s->stats.pending++;
    return p;
}

void elv_coap_pending_release(struct elv_coap_server *s, struct elv_coap_pending *p)
{
    p->id = 0;
    p->next = s->pending_vacant;
    s->pending_vacant = (uint32_t)(p - s->pending) + 1;
    s->stats.pending--;
}

struct elv_coap_pending *elv_coap_pending_of(struct elv_coap_server *s, uint32_t id)
{
    const uint32_t slot = id & SLOT_MASK;
    return id != 0 && slot < s->pending_touched && s->pending[slot].id == id ? &s->pending[slot]
                                                                             : NULL;
}

void elv_coap_pending_keep(struct elv_coap_server *s, struct elv_coap_pending *p,
                           struct elv_coap_seat *seat)
{
    p->seat = elv_coap_seat_link(&s->seats, seat);
    p->next = seat->pending;
    seat->pending = (uint32_t)(p - s->pending) + 1;
}

void elv_coap_pending_unlink(struct elv_coap_server *s, struct elv_coap_pending *p)
{
    uint32_t *link = &elv_coap_seat_at(&s->seats, p->seat)->pending;
    const uint32_t self = (uint32_t)(p - s->pending) + 1;
    while (*link != self) {
        ELV_ASSERT(*link != 0);
        link = &s->pending[*link - 1].next;
    }
    *link = p->next;
}
