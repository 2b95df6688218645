/* SPDX-License-Identifier: Apache-2.0 */
/* server/upload.h - updates on their way in: where each chunk lies in the round's log.
 *
 * Until its commit an update is bytes in the log; memory holds, per uploading client, a slot with a
 * bitmap and 16 bytes per chunk. Slots come from a pool of fixed size, so what a transfer costs is
 * bounded by the configuration, never by what a peer claims. */
#ifndef ELV_SERVER_UPLOAD_H
#define ELV_SERVER_UPLOAD_H

#include "../common/arena.h"
#include "../common/msg.h"
#include "sums.h"

enum elv_upload_state {
    ELV_UPLOAD_FREE,
    ELV_UPLOAD_STAGED,  /* chunks arrive */
    ELV_UPLOAD_WAITING, /* complete and committed; to be verified */
    ELV_UPLOAD_VERIFY,  /* a worker reads it */
    ELV_UPLOAD_COUNTED, /* accepted; to be folded */
    ELV_UPLOAD_FOLD,    /* a worker reads it */
};

struct elv_chunk_ref {
    uint64_t place; /* offset in the log << 16 | length of the chunk */
    uint32_t first, count;
};

#define ELV_UPLOAD_OLD 3u
#define ELV_UPLOAD_ASKERS 2u /* requests that wait for one decision */

struct elv_upload {
    enum elv_upload_state state;
    uint32_t row; /* in the roster */
    uint32_t client, assignment;
    uint8_t codec;
    uint32_t bound; /* chunks at most */
    uint64_t nonce; /* of the attempt that is staged */
    bool has_nonce;
    uint64_t old[ELV_UPLOAD_OLD]; /* nonces of attempts before it, the newest first */
    uint32_t n_old;
    struct elv_bitmap have;
    struct elv_chunk_ref *refs; /* [chunks_max] */
    uint64_t *words;            /* of the bitmap */
    uint64_t from;              /* offset of the first chunk that came, so of none before it */
    uint64_t bytes;             /* of the chunks there */
    elv_time_us touched;
    struct elv_commit commit; /* without the user's sums: n_user is 0 */
    struct elv_user_totals user;
    uint32_t weight; /* COUNTED, FOLD */
    uint32_t askers[ELV_UPLOAD_ASKERS], n_askers;
    uint32_t next; /* in the queue its state belongs to */
};

struct elv_upload_queue {
    uint32_t head, tail; /* ELV_UPLOAD_NONE: empty */
    uint32_t n;
};
#define ELV_UPLOAD_NONE UINT32_MAX

struct elv_uploads {
    struct elv_upload *at;
    uint32_t n, n_used;
    uint32_t chunks_max;
    uint32_t free; /* first of a list through `next` */
    struct elv_upload_queue waiting, counted;
    uint64_t log_len;
};

/* Bytes of one slot. */
size_t elv_upload_slot_len(uint32_t chunks_max);
void elv_uploads_layout(struct elv_uploads *u, struct elv_arena *a, uint32_t n,
                        uint32_t chunks_max);
/* Makes every slot free, first of all after the layout. No worker reads one. */
void elv_uploads_clear(struct elv_uploads *u);

/* NULL: all slots are taken. The new one is STAGED and empty, without a nonce. */
struct elv_upload *elv_upload_take(struct elv_uploads *u, uint32_t row, uint32_t client,
                                   uint32_t assignment, uint8_t codec, uint32_t bound);
/* It must be in no queue. */
void elv_upload_free(struct elv_uploads *u, struct elv_upload *up);
uint32_t elv_upload_index(const struct elv_uploads *u, const struct elv_upload *up);

/* The STAGED slot that was left alone longest, if for at least `idle`; else NULL. */
struct elv_upload *elv_upload_idlest(struct elv_uploads *u, elv_time_us now, elv_time_us idle);

/* `nonce` is of an attempt that another has replaced. */
bool elv_upload_is_old(const struct elv_upload *up, uint64_t nonce);
/* Discards what was staged and takes chunks of attempt `nonce` from now on. */
void elv_upload_restart(struct elv_upload *up, uint64_t nonce);
/* Notes a chunk, which must be new, at `offset` of the log. */
void elv_upload_note(struct elv_upload *up, const struct elv_chunk *c, uint64_t offset, size_t len);

/* What is missing of the first `n_chunks`. */
void elv_upload_missing(const struct elv_upload *up, uint32_t n_chunks, struct elv_missing *m);

uint64_t elv_chunk_ref_offset(const struct elv_chunk_ref *r);
size_t elv_chunk_ref_len(const struct elv_chunk_ref *r); /* of the chunk */

void elv_upload_push(struct elv_uploads *u, struct elv_upload_queue *q, struct elv_upload *up);
struct elv_upload *elv_upload_pop(struct elv_uploads *u, struct elv_upload_queue *q);
/* Takes out one that is in it, wherever. */
void elv_upload_remove(struct elv_uploads *u, struct elv_upload_queue *q, struct elv_upload *up);

/* The nonce as a chunk's tag carries it. */
uint64_t elv_nonce_of(const uint8_t tag[ELV_CHUNK_TAG_LEN]);

#endif
