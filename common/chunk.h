/* SPDX-License-Identifier: Apache-2.0 */
/* common/chunk.h - the transport unit of both directions.
 *
 * A model (down) and an update (up) travel as numbered, self-contained chunks. A chunk names its
 * body, its index, its codec and the coordinates it covers, and decodes on its own. Chunk i starts
 * where chunk i-1 ends; a body is complete when the ranges tile [0, n_params) exactly once. The
 * layout is fixed in common/WIRE.md and pinned by golden files. Nothing here owns memory. */
#ifndef ELV_COMMON_CHUNK_H
#define ELV_COMMON_CHUNK_H

#include <stdbool.h>

#include "cursor.h"
#include "sha256.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_CHUNK_MAX 1024u /* bytes, header included: a DTLS record then fits an MTU of 1280 */
#define ELV_CHUNK_HEAD_LEN 24u
#define ELV_CHUNK_PAYLOAD_MAX (ELV_CHUNK_MAX - ELV_CHUNK_HEAD_LEN)
#define ELV_CHUNK_TAG_LEN 8u /* down: the body digest's first bytes; up: the attempt nonce */
#define ELV_CHUNK_HASH_LEN 16u
#define ELV_BODY_DIGEST_LEN 32u

enum elv_body_kind {
    ELV_BODY_MODEL = 1,  /* all shared parameters of one version, absolute values */
    ELV_BODY_STEP = 2,   /* what to add to the version before */
    ELV_BODY_UPDATE = 3, /* what one client learnt */
};

#define ELV_CHUNK_DEFLATED 1u /* flag: the payload is raw deflate of the codec's bytes */

struct elv_chunk {
    enum elv_body_kind kind;
    uint8_t codec;  /* enum elv_codec_id */
    uint16_t flags; /* unknown bits refuse the chunk */
    uint32_t index; /* from 0 */
    uint32_t first; /* first coordinate */
    uint32_t count; /* coordinates covered, 1 or more */
    uint8_t tag[ELV_CHUNK_TAG_LEN];
    struct elv_bytes payload; /* borrowed */
};

/* Writes header and payload. ELV_ERR_SPACE: `cap` or ELV_CHUNK_MAX is too small. */
enum elv_err elv_chunk_encode(const struct elv_chunk *c, uint8_t *out, size_t cap, size_t *len);

/* Checks everything that does not need the body's shape. `c->payload` views `in`. `c` is written
 * only on ELV_OK. */
enum elv_err elv_chunk_decode(struct elv_bytes in, struct elv_chunk *c);

/* SHA-256 over the chunk as it travels but for its tag, cut to 16 bytes. `in` is a valid chunk. */
void elv_chunk_hash(struct elv_bytes in, uint8_t hash[ELV_CHUNK_HASH_LEN]);

/* The body digest: SHA-256 over the chunk hashes in index order. */
struct elv_body_digest {
    struct elv_sha256 sha;
};
void elv_body_digest_init(struct elv_body_digest *d);
void elv_body_digest_add(struct elv_body_digest *d, const uint8_t hash[ELV_CHUNK_HASH_LEN]);
void elv_body_digest_final(struct elv_body_digest *d, uint8_t out[ELV_BODY_DIGEST_LEN]);

/* How a request names a body: the digest's first 8 bytes, the first one highest. */
uint64_t elv_digest_key(const uint8_t digest[ELV_BODY_DIGEST_LEN]);

/* Which chunks of a body are there. `words` is the caller's, ELV_BITMAP_WORDS(n) of them. */
#define ELV_BITMAP_WORDS(n) (((size_t)(n) + 63) / 64)
struct elv_bitmap {
    uint64_t *words;
    uint32_t n; /* chunks in all; 0 while unknown */
    uint32_t n_set;
    uint32_t first_clear; /* == n when complete */
};
void elv_bitmap_init(struct elv_bitmap *b, uint64_t *words, uint32_t n); /* clears */
bool elv_bitmap_get(const struct elv_bitmap *b, uint32_t i);
/* Returns false when it was set already. */
bool elv_bitmap_set(struct elv_bitmap *b, uint32_t i);
/* The receiver lost it after all. Returns false when it was not set. */
bool elv_bitmap_clear(struct elv_bitmap *b, uint32_t i);

/* "Missing": the first index the receiver lacks, and 512 chunks from there. */
#define ELV_MISSING_BITS 512u
struct elv_missing {
    uint32_t first;                     /* == number of chunks when nothing is missing */
    uint8_t have[ELV_MISSING_BITS / 8]; /* bit i (lowest first): chunk first + i is there */
};
void elv_missing_of(const struct elv_bitmap *b, struct elv_missing *m);

#ifdef __cplusplus
}
#endif
#endif
