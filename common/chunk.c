/* SPDX-License-Identifier: Apache-2.0 */
#include "common/chunk.h"

#include <string.h>

#include "common/assert.h"

enum { TAG_AT = 16 }; /* the header's only part the hash leaves out comes last */

/* Bounds that hold in any body: each chunk before this one covers a coordinate at least, and only
 * the first one starts at 0. */
static bool sound(const struct elv_chunk *c)
{
    return c->kind >= ELV_BODY_MODEL && c->kind <= ELV_BODY_UPDATE && c->codec != 0 &&
           (c->flags & ~ELV_CHUNK_DEFLATED) == 0 && c->count > 0 &&
           c->count <= UINT32_MAX - c->first && c->first >= c->index &&
           (c->index == 0) == (c->first == 0) && c->payload.len > 0 &&
           c->payload.len <= ELV_CHUNK_PAYLOAD_MAX;
}

enum elv_err elv_chunk_encode(const struct elv_chunk *c, uint8_t *out, size_t cap, size_t *len)
{
    if (c->payload.len > ELV_CHUNK_PAYLOAD_MAX)
        return ELV_ERR_SPACE;
    ELV_ASSERT(sound(c));
    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_u8(&w, (uint8_t)c->kind);
    elv_wr_u8(&w, c->codec);
    elv_wr_u16(&w, c->flags);
    elv_wr_u32(&w, c->index);
    elv_wr_u32(&w, c->first);
    elv_wr_u32(&w, c->count);
    elv_wr_bytes(&w, (struct elv_bytes){.at = c->tag, .len = sizeof c->tag});
    elv_wr_bytes(&w, c->payload);
    *len = w.need;
    return w.err;
}

enum elv_err elv_chunk_decode(struct elv_bytes in, struct elv_chunk *c)
{
    struct elv_rd r = elv_rd_of(in);
    struct elv_chunk got = {0};
    got.kind = (enum elv_body_kind)elv_rd_u8(&r);
    got.codec = elv_rd_u8(&r);
    got.flags = elv_rd_u16(&r);
    got.index = elv_rd_u32(&r);
    got.first = elv_rd_u32(&r);
    got.count = elv_rd_u32(&r);
    const struct elv_bytes tag = elv_rd_bytes(&r, sizeof got.tag);
    if (tag.at != NULL)
        memcpy(got.tag, tag.at, sizeof got.tag);
    got.payload = elv_rd_bytes(&r, r.left);
    if (r.err != ELV_OK)
        return r.err;
    if (got.payload.len == 0)
        return ELV_ERR_SHORT;
    if (!sound(&got))
        return ELV_ERR_FORMAT;
    *c = got;
    return ELV_OK;
}

void elv_chunk_hash(struct elv_bytes in, uint8_t hash[ELV_CHUNK_HASH_LEN])
{
    ELV_ASSERT(in.len > ELV_CHUNK_HEAD_LEN && in.len <= ELV_CHUNK_MAX);
    struct elv_sha256 sha;
    uint8_t whole[ELV_SHA256_LEN];
    elv_sha256_init(&sha);
    elv_sha256_update(&sha, in.at, TAG_AT);
    elv_sha256_update(&sha, in.at + ELV_CHUNK_HEAD_LEN, in.len - ELV_CHUNK_HEAD_LEN);
    elv_sha256_final(&sha, whole);
    memcpy(hash, whole, ELV_CHUNK_HASH_LEN);
}

void elv_body_digest_init(struct elv_body_digest *d) { elv_sha256_init(&d->sha); }

void elv_body_digest_add(struct elv_body_digest *d, const uint8_t hash[ELV_CHUNK_HASH_LEN])
{
    elv_sha256_update(&d->sha, hash, ELV_CHUNK_HASH_LEN);
}

void elv_body_digest_final(struct elv_body_digest *d, uint8_t out[ELV_BODY_DIGEST_LEN])
{
    elv_sha256_final(&d->sha, out);
}

uint64_t elv_digest_key(const uint8_t digest[ELV_BODY_DIGEST_LEN])
{
    uint64_t key = 0;
    for (unsigned i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return key;
}

void elv_bitmap_init(struct elv_bitmap *b, uint64_t *words, uint32_t n)
{
    *b = (struct elv_bitmap){.words = words, .n = n};
    if (n > 0)
        memset(words, 0, ELV_BITMAP_WORDS(n) * sizeof *words);
}

bool elv_bitmap_get(const struct elv_bitmap *b, uint32_t i)
{
    ELV_ASSERT(i < b->n);
    return b->words[i / 64] >> (i % 64) & 1;
}

bool elv_bitmap_set(struct elv_bitmap *b, uint32_t i)
{
    if (elv_bitmap_get(b, i))
        return false;
    b->words[i / 64] |= (uint64_t)1 << (i % 64);
    b->n_set++;
    while (b->first_clear < b->n && elv_bitmap_get(b, b->first_clear))
        b->first_clear++; /* over the life of a bitmap: n steps in all */
    return true;
}

bool elv_bitmap_clear(struct elv_bitmap *b, uint32_t i)
{
    if (!elv_bitmap_get(b, i))
        return false;
    b->words[i / 64] &= ~((uint64_t)1 << (i % 64));
    b->n_set--;
    if (i < b->first_clear)
        b->first_clear = i;
    return true;
}

/* Bits i to i+63; those past the end are 0. */
static uint64_t bits_from(const struct elv_bitmap *b, uint32_t i)
{
    if (i >= b->n)
        return 0;
    uint64_t bits = b->words[i / 64] >> (i % 64);
    if (i % 64 != 0 && i / 64 + 1 < ELV_BITMAP_WORDS(b->n))
        bits |= b->words[i / 64 + 1] << (64 - i % 64);
    return b->n - i < 64 ? bits & (((uint64_t)1 << (b->n - i)) - 1) : bits;
}

void elv_missing_of(const struct elv_bitmap *b, struct elv_missing *m)
{
    *m = (struct elv_missing){.first = b->first_clear};
    for (uint32_t i = 0; i < ELV_MISSING_BITS && i < b->n - b->first_clear; i += 64) {
        const uint64_t bits = bits_from(b, b->first_clear + i);
        for (unsigned k = 0; k < 8; k++)
            m->have[i / 8 + k] = (uint8_t)(bits >> (8 * k));
    }
}
