/* SPDX-License-Identifier: Apache-2.0 */
/* server/unpack.h - from a chunk in the upload log to values a kernel can take. For workers.
 *
 * Chunks were checked when they arrived; here their payload is inflated, to no more than a
 * chunk may carry, and turned into a view. f32 and q8 are viewed as they are, everything else
 * is decoded first. */
#ifndef ELV_SERVER_UNPACK_H
#define ELV_SERVER_UNPACK_H

#include "../common/arena.h"
#include "../common/codec.h"
#include "../kernels/kernels.h"
#include "upload.h"
#include "upload_log.h"

/* The widest chunk accepted. It bounds the buffers, whatever a codec could squeeze into 1 KiB. */
#define ELV_CHUNK_COORDS_MAX 65536u

struct elv_unpack { /* shared by all works of one lane */
    const struct elv_disk *disk;
    const struct elv_squeeze *squeeze; /* NULL: deflated chunks are refused */
    uint64_t log;
    uint32_t coords_max;
};

struct elv_unpacked {       /* one chunk; the caller's buffers */
    uint8_t *record;        /* [ELV_LOG_RECORD_MAX] */
    uint8_t *inflated;      /* [ELV_CHUNK_PAYLOAD_MAX] */
    float *values;          /* [coords_max] */
    struct elv_bytes bytes; /* the chunk as it travelled */
    struct elv_chunk chunk;
    struct elv_bytes payload; /* inflated */
    struct elv_view view;     /* its weight is 1 */
};

void elv_unpacked_layout(struct elv_unpacked *p, struct elv_arena *a, uint32_t coords_max);

/* Reads chunk `index` of `up`. ELV_ERR_MISMATCH, ELV_ERR_IO, ELV_ERR_MISSING: the log lost it. */
enum elv_err elv_unpack_read(struct elv_unpack *u, const struct elv_upload *up, uint32_t index,
                             struct elv_unpacked *out);

/* Fills in payload and view of `out->chunk`. ELV_ERR_FORMAT: the payload is not what the codec
 * writes; ELV_ERR_RANGE: it holds numbers that are not finite; ELV_ERR_UNSUPPORTED: deflated, and
 * nothing here can inflate. */
enum elv_err elv_unpack_view(struct elv_unpack *u, struct elv_unpacked *out);

#endif
