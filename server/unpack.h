/* SPDX-License-Identifier: Apache-2.0 */
/* server/unpack.h - from a chunk in the upload log to values a kernel can take. For workers.
 *
 * Chunks were checked when they arrived; here their payload is inflated, to no more than a
 * chunk may carry, and read from front to back. f32 and q8 are viewed as they are, everything else
 * is decoded a window at a time: a kilobyte may cover any number of coordinates, and costs neither
 * memory for them nor, as chunks lie end to end, more work than the model has coordinates. */
#ifndef ELV_SERVER_UNPACK_H
#define ELV_SERVER_UNPACK_H

#include "../common/arena.h"
#include "../common/codec.h"
#include "../kernels/kernels.h"
#include "upload.h"
#include "upload_log.h"

#define ELV_WINDOW 4096u /* values decoded at a time: updates and their sums fit a cache */

struct elv_unpack { /* shared by all works of one lane */
    const struct elv_disk *disk;
    const struct elv_squeeze *squeeze; /* NULL: deflated chunks are refused */
    uint64_t log;
};

struct elv_unpacked {       /* one chunk; the caller's buffers */
    uint8_t *record;        /* [ELV_LOG_RECORD_MAX] */
    uint8_t *inflated;      /* [ELV_CHUNK_PAYLOAD_MAX] */
    float *values;          /* [ELV_WINDOW] */
    struct elv_bytes bytes; /* the chunk as it travelled */
    struct elv_chunk chunk;
    struct elv_decoder decoder; /* its `left` values are still to be seen */
    struct elv_view view;       /* those seen last; its weight is 1 */
};

void elv_unpacked_layout(struct elv_unpacked *p, struct elv_arena *a);

/* Reads chunk `index` of `up`. ELV_ERR_MISMATCH, ELV_ERR_IO, ELV_ERR_MISSING: the log lost it. */
enum elv_err elv_unpack_read(struct elv_unpack *u, const struct elv_upload *up, uint32_t index,
                             struct elv_unpacked *out);

/* Begins with the values of `out->chunk`. ELV_ERR_FORMAT: the payload is not what the codec writes;
 * ELV_ERR_RANGE: it holds numbers that are not finite; ELV_ERR_UNSUPPORTED: deflated, and nothing
 * here can inflate. */
enum elv_err elv_unpack_open(struct elv_unpack *u, struct elv_unpacked *out);
/* Decodes the next values, at most `cap`, into `out->view`; at least one is left. `cap` is
 * ELV_DECODE_MIN to ELV_WINDOW. Errors: as above, found on the way. */
enum elv_err elv_unpack_decode(struct elv_unpacked *out, uint32_t cap);
/* The same, without a copy where the values can be viewed as they lie, which is then all of them:
 * f32, whether finite or not, and q8. */
enum elv_err elv_unpack_view(struct elv_unpacked *out, uint32_t cap);

#endif
