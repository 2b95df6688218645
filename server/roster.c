/* SPDX-License-Identifier: Apache-2.0 */
#include "server/roster.h"

#include <string.h>

#include "common/assert.h"

void elv_roster_layout(struct elv_roster *r, struct elv_arena *a, uint32_t cap)
{
    uint32_t n_slots = 4;
    while (n_slots < cap && n_slots < 1u << 30)
        n_slots *= 2;
    n_slots *= 2; /* at most half full */
    *r = (struct elv_roster){.cap = cap, .n_slots = n_slots};
    r->rows = elv_arena_take(a, cap, sizeof *r->rows);
    r->order = elv_arena_take(a, cap, sizeof *r->order);
    r->slots = elv_arena_take(a, n_slots, sizeof *r->slots);
}

/* The place of `client`, or the free one where it would go. Client numbers are given out one after
 * the other, so a multiplicative hash spreads them perfectly (Knuth, volume 3, section 6.4). */
static uint32_t place_of(const struct elv_roster *r, uint32_t client)
{
    uint32_t at = client * 2654435769u & (r->n_slots - 1);
    while (r->slots[at] != 0 && r->rows[r->slots[at] - 1].client != client)
        at = (at + 1) & (r->n_slots - 1);
    return at;
}

uint32_t elv_roster_find(const struct elv_roster *r, uint32_t client)
{
    return r->slots[place_of(r, client)] - 1; /* 0 - 1 is ELV_ROW_NONE */
}

/* The first place in `order` whose client number is above `client`. */
static uint32_t rank_of(const struct elv_roster *r, uint32_t client)
{
    uint32_t low = 0, high = r->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (r->rows[r->order[mid]].client < client)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

uint32_t elv_roster_add(struct elv_roster *r, uint32_t client)
{
    const uint32_t at = place_of(r, client);
    if (r->slots[at] != 0)
        return r->slots[at] - 1;
    if (r->n == r->cap)
        return ELV_ROW_NONE;
    const uint32_t rank = rank_of(r, client);
    memmove(r->order + rank + 1, r->order + rank, (r->n - rank) * sizeof *r->order);
    r->order[rank] = r->n;
    r->slots[at] = r->n + 1;
    r->rows[r->n] =
        (struct elv_row){.client = client, .upload = ELV_ROW_NONE, .joined_at = ELV_NEVER};
    return r->n++;
}

void elv_roster_set_joined(struct elv_roster *r, uint32_t row, bool joined)
{
    ELV_ASSERT(row < r->n);
    elv_roster_set_lapsed(r, row, false);
    r->n_joined = r->n_joined + joined - r->rows[row].joined;
    r->rows[row].joined = joined;
}

void elv_roster_set_lapsed(struct elv_roster *r, uint32_t row, bool lapsed)
{
    r->n_lapsed = r->n_lapsed + lapsed - r->rows[row].lapsed;
    r->rows[row].lapsed = lapsed;
}

void elv_row_queue_layout(struct elv_row_queue *q, struct elv_arena *a, uint32_t cap)
{
    *q = (struct elv_row_queue){.cap = cap};
    q->at = elv_arena_take_raw(a, cap, sizeof *q->at);
}

void elv_row_queue_push(struct elv_row_queue *q, struct elv_roster *r, uint32_t row)
{
    if (r->rows[row].wants)
        return;
    r->rows[row].wants = true;
    q->at[(q->head + q->n++) % q->cap] = row;
}

uint32_t elv_row_queue_pop(struct elv_row_queue *q, struct elv_roster *r)
{
    const uint32_t row = q->at[q->head];
    q->head = (q->head + 1) % q->cap;
    q->n--;
    r->rows[row].wants = false;
    return row;
}

void elv_roster_offer(struct elv_row *row, const struct elv_offer *offer)
{
    const struct elv_offer *before = &row->offer;
    const bool busy =
        row->missed.finishes && !row->missed.told; /* it never heard of the one after */
    if (before->assignment != 0 && before->assignment != row->last.assignment && !busy)
        row->missed = *before;
    row->offer = *offer;
}
