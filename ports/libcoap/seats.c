/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/seats.c - bounded bookkeeping of sessions and clients. */
#include "ports/libcoap/seats.h"

#include <stdlib.h>
#include <string.h>

#include "common/assert.h"

enum elv_err elv_coap_seats_init(struct elv_coap_seats *s, uint32_t cap)
{
    uint32_t buckets = 64;
    while (buckets < cap && buckets < 1u << 30)
        buckets *= 2;
    *s = (struct elv_coap_seats){.cap = cap, .bucket_mask = buckets - 1};
    /* Zeroed pages cost nothing until a seat on them is taken for the first time. */
    s->at = calloc(cap, sizeof *s->at);
    s->bucket = calloc(buckets, sizeof *s->bucket);
    if (s->at == NULL || s->bucket == NULL) {
        elv_coap_seats_free(s);
        return ELV_ERR_MEMORY;
    }
    return ELV_OK;
}

void elv_coap_seats_free(struct elv_coap_seats *s)
{
    free(s->at);
    free(s->bucket);
    *s = (struct elv_coap_seats){0};
}

static void append(struct elv_coap_seats *s, struct elv_coap_seat_list *list,
                   struct elv_coap_seat *seat)
{
    const uint32_t link = elv_coap_seat_link(s, seat);
    seat->older = list->newest;
    seat->newer = 0;
    if (list->newest != 0)
        elv_coap_seat_at(s, list->newest)->newer = link;
    else
        list->oldest = link;
    list->newest = link;
    list->n++;
}

static void remove_from(struct elv_coap_seats *s, struct elv_coap_seat_list *list,
                        struct elv_coap_seat *seat)
{
    if (seat->older != 0)
        elv_coap_seat_at(s, seat->older)->newer = seat->newer;
    else
        list->oldest = seat->newer;
    if (seat->newer != 0)
        elv_coap_seat_at(s, seat->newer)->older = seat->older;
    else
        list->newest = seat->older;
    ELV_ASSERT(list->n > 0);
    list->n--;
}

static struct elv_coap_seat_list *list_of(struct elv_coap_seats *s,
                                          const struct elv_coap_seat *seat)
{
    return seat->proven ? &s->proven : &s->unproven;
}

static uint32_t *bucket_of(struct elv_coap_seats *s, uint32_t client)
{
    /* Client numbers are handed out in order, so the low bits spread by themselves. */
    return &s->bucket[client & s->bucket_mask];
}

struct elv_coap_seat *elv_coap_seat_take(struct elv_coap_seats *s, coap_session_t *session,
                                         uint32_t client, struct elv_text identity)
{
    struct elv_coap_seat *seat = elv_coap_seat_at(s, s->vacant);
    ELV_ASSERT(identity.len <= ELV_COAP_IDENTITY_MAX);
    if (seat != NULL)
        s->vacant = seat->older;
    else if (s->touched < s->cap)
        seat = &s->at[s->touched++];
    else
        return NULL;
    *seat = (struct elv_coap_seat){
        .session = session,
        .client = client,
        .identity_len = (uint8_t)identity.len,
        .notified = COAP_INVALID_MID,
    };
    if (identity.len != 0)
        memcpy(seat->identity, identity.at, identity.len);
    uint32_t *bucket = bucket_of(s, client);
    seat->sibling = *bucket;
    *bucket = elv_coap_seat_link(s, seat);
    append(s, &s->unproven, seat);
    return seat;
}

void elv_coap_seat_prove(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    remove_from(s, list_of(s, seat), seat);
    seat->proven = true;
    append(s, &s->proven, seat);
}

void elv_coap_seat_touch(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    if (seat->newer == 0)
        return;
    remove_from(s, list_of(s, seat), seat);
    append(s, list_of(s, seat), seat);
}

static void make_vacant(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    seat->older = s->vacant;
    s->vacant = elv_coap_seat_link(s, seat);
}

void elv_coap_seat_leave(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    uint32_t *link = bucket_of(s, seat->client);
    while (*link != elv_coap_seat_link(s, seat)) {
        ELV_ASSERT(*link != 0);
        link = &elv_coap_seat_at(s, *link)->sibling;
    }
    *link = seat->sibling;
    remove_from(s, list_of(s, seat), seat);
    seat->session = NULL;
    if (!seat->listed) /* else once it leaves the list of things to do */
        make_vacant(s, seat);
}

static void list_due(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    if (seat->listed)
        return;
    seat->listed = true;
    seat->due = s->due;
    s->due = elv_coap_seat_link(s, seat);
}

void elv_coap_seat_doom(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    seat->doomed = true;
    list_due(s, seat);
}

void elv_coap_seat_notify(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    seat->notify = true;
    list_due(s, seat);
}

struct elv_coap_seat *elv_coap_seat_next_due(struct elv_coap_seats *s)
{
    while (s->due != 0) {
        struct elv_coap_seat *seat = elv_coap_seat_at(s, s->due);
        s->due = seat->due;
        seat->listed = false;
        if (seat->session != NULL)
            return seat;
        make_vacant(s, seat);
    }
    return NULL;
}

struct elv_coap_seat *elv_coap_seat_first(struct elv_coap_seats *s, uint32_t client)
{
    struct elv_coap_seat *seat = elv_coap_seat_at(s, *bucket_of(s, client));
    while (seat != NULL && seat->client != client)
        seat = elv_coap_seat_at(s, seat->sibling);
    return seat;
}

struct elv_coap_seat *elv_coap_seat_next(struct elv_coap_seats *s, struct elv_coap_seat *seat)
{
    const uint32_t client = seat->client;
    do
        seat = elv_coap_seat_at(s, seat->sibling);
    while (seat != NULL && seat->client != client);
    return seat;
}
