/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upload.h"

#include <string.h>

#include "common/assert.h"

static const struct elv_upload_queue empty = {ELV_UPLOAD_NONE, ELV_UPLOAD_NONE, 0};

size_t elv_upload_slot_len(uint32_t chunks_max)
{
    return sizeof(struct elv_upload) + chunks_max * sizeof(struct elv_chunk_ref) +
           ELV_BITMAP_WORDS(chunks_max) * sizeof(uint64_t) + 2 * (size_t)ELV_ARENA_ALIGN;
}

void elv_uploads_layout(struct elv_uploads *u, struct elv_arena *a, uint32_t n, uint32_t chunks_max)
{
    *u = (struct elv_uploads){.n = n, .chunks_max = chunks_max};
    u->at = elv_arena_take(a, n, sizeof *u->at);
    for (uint32_t i = 0; i < n; i++) {
        struct elv_chunk_ref *refs = elv_arena_take_raw(a, chunks_max, sizeof *refs);
        uint64_t *words = elv_arena_take_raw(a, ELV_BITMAP_WORDS(chunks_max), sizeof *words);
        if (u->at == NULL || words == NULL)
            continue;
        u->at[i].refs = refs;
        u->at[i].words = words;
    }
}

void elv_uploads_clear(struct elv_uploads *u)
{
    u->waiting = u->counted = empty;
    u->n_used = 0;
    u->log_len = 0;
    u->free = ELV_UPLOAD_NONE;
    for (uint32_t i = u->n; i-- > 0;) {
        u->at[i].state = ELV_UPLOAD_FREE;
        u->at[i].next = u->free;
        u->free = i;
    }
}

uint32_t elv_upload_index(const struct elv_uploads *u, const struct elv_upload *up)
{
    return (uint32_t)(up - u->at);
}

struct elv_upload *elv_upload_take(struct elv_uploads *u, uint32_t row, uint32_t client,
                                   uint32_t assignment, uint8_t codec, uint32_t bound)
{
    ELV_ASSERT(bound <= u->chunks_max);
    if (u->free == ELV_UPLOAD_NONE)
        return NULL;
    struct elv_upload *up = &u->at[u->free];
    u->free = up->next;
    u->n_used++;
    *up = (struct elv_upload){
        .state = ELV_UPLOAD_STAGED,
        .row = row,
        .client = client,
        .assignment = assignment,
        .codec = codec,
        .bound = bound,
        .refs = up->refs,
        .words = up->words,
        .next = ELV_UPLOAD_NONE,
    };
    elv_bitmap_init(&up->have, up->words, bound);
    return up;
}

void elv_upload_free(struct elv_uploads *u, struct elv_upload *up)
{
    ELV_ASSERT(up->state != ELV_UPLOAD_FREE);
    up->state = ELV_UPLOAD_FREE;
    up->next = u->free;
    u->free = elv_upload_index(u, up);
    u->n_used--;
}

struct elv_upload *elv_upload_idlest(struct elv_uploads *u, elv_time_us now, elv_time_us idle)
{
    struct elv_upload *found = NULL;
    for (uint32_t i = 0; i < u->n; i++) {
        struct elv_upload *up = &u->at[i];
        if (up->state == ELV_UPLOAD_STAGED && now - up->touched >= idle &&
            (found == NULL || up->touched < found->touched))
            found = up;
    }
    return found;
}

bool elv_upload_is_old(const struct elv_upload *up, uint64_t nonce)
{
    for (uint32_t i = 0; i < up->n_old; i++)
        if (up->old[i] == nonce)
            return true;
    return false;
}

void elv_upload_restart(struct elv_upload *up, uint64_t nonce)
{
    if (up->has_nonce) {
        memmove(up->old + 1, up->old, (ELV_UPLOAD_OLD - 1) * sizeof *up->old);
        up->old[0] = up->nonce;
        up->n_old += up->n_old < ELV_UPLOAD_OLD;
    }
    up->has_nonce = true;
    up->nonce = nonce;
    up->bytes = 0;
    elv_bitmap_init(&up->have, up->words, up->bound);
}

void elv_upload_note(struct elv_upload *up, const struct elv_chunk *c, uint64_t offset, size_t len)
{
    ELV_ASSERT(c->index < up->bound && len <= UINT16_MAX && offset < UINT64_C(1) << 48);
    const bool added = elv_bitmap_set(&up->have, c->index);
    ELV_ASSERT(added);
    if (up->have.n_set == 1)
        up->from = offset;
    up->refs[c->index] =
        (struct elv_chunk_ref){.place = offset << 16 | len, .first = c->first, .count = c->count};
    up->bytes += len;
}

void elv_upload_missing(const struct elv_upload *up, uint32_t n_chunks, struct elv_missing *m)
{
    struct elv_bitmap b = up->have; /* the same words, seen as n_chunks long */
    b.n = n_chunks;
    if (b.first_clear > n_chunks)
        b.first_clear = n_chunks;
    elv_missing_of(&b, m);
}

uint64_t elv_chunk_ref_offset(const struct elv_chunk_ref *r) { return r->place >> 16; }

size_t elv_chunk_ref_len(const struct elv_chunk_ref *r) { return (size_t)(r->place & 0xFFFF); }

void elv_upload_push(struct elv_uploads *u, struct elv_upload_queue *q, struct elv_upload *up)
{
    const uint32_t i = elv_upload_index(u, up);
    up->next = ELV_UPLOAD_NONE;
    if (q->tail == ELV_UPLOAD_NONE)
        q->head = i;
    else
        u->at[q->tail].next = i;
    q->tail = i;
    q->n++;
}

struct elv_upload *elv_upload_pop(struct elv_uploads *u, struct elv_upload_queue *q)
{
    if (q->head == ELV_UPLOAD_NONE)
        return NULL;
    struct elv_upload *up = &u->at[q->head];
    q->head = up->next;
    if (q->head == ELV_UPLOAD_NONE)
        q->tail = ELV_UPLOAD_NONE;
    q->n--;
    up->next = ELV_UPLOAD_NONE;
    return up;
}

void elv_upload_remove(struct elv_uploads *u, struct elv_upload_queue *q, struct elv_upload *up)
{
    for (uint32_t left = q->n; left > 0; left--) {
        struct elv_upload *first = elv_upload_pop(u, q);
        if (first != up)
            elv_upload_push(u, q, first);
    }
}

uint64_t elv_nonce_of(const uint8_t tag[ELV_CHUNK_TAG_LEN])
{
    uint64_t nonce = 0;
    for (unsigned i = 0; i < ELV_CHUNK_TAG_LEN; i++)
        nonce |= (uint64_t)tag[i] << (8 * i);
    return nonce;
}
