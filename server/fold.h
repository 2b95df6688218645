/* SPDX-License-Identifier: Apache-2.0 */
/* server/fold.h - adding accepted updates to the sums. Work for any thread.
 *
 * Several updates are folded at a time, a stretch of coordinates after the other, so that the sums
 * pass through the caches once for all of them. After a restart everything accepted is folded again
 * in one pass over the log, in the order it lies there: sums of integers do not care. */
#ifndef ELV_SERVER_FOLD_H
#define ELV_SERVER_FOLD_H

#include "unpack.h"

#define ELV_FOLD_MAX 8u

struct elv_fold {
    struct elv_unpack *unpack;
    const struct elv_kernels *kernels;
    int value_bits;
    int64_t *sum; /* [n_params] */
    size_t n_params;
    size_t zeroed; /* sums made zero so far; n_params: they are ready to be added to */
    struct elv_unpacked bufs[ELV_FOLD_MAX]; /* their views begin at `at` or lie before it */
    uint32_t next[ELV_FOLD_MAX];            /* chunk */
    struct elv_upload *ups[ELV_FOLD_MAX];   /* in state FOLD, verified */
    uint32_t n;
    uint32_t at; /* coordinate where it goes on */
};

void elv_fold_layout(struct elv_fold *f, struct elv_arena *a);
/* `ups[0..n)` are to be folded. */
void elv_fold_start(struct elv_fold *f);
/* What the sums hold is rubbish; the next run starts by making them zero. */
void elv_fold_soil(struct elv_fold *f);
/* One unit is a window of each at most. ELV_ERR_BUSY: call again. Any other failure leaves the sums
 * half done: they must be made again from the log. */
enum elv_err elv_fold_run(struct elv_fold *f, uint32_t budget);

struct elv_refold_item {
    uint32_t client, assignment;
    uint64_t nonce;
    uint64_t from; /* its chunks lie at this offset or behind */
    uint32_t weight;
    uint32_t left; /* chunks not seen yet */
};

struct elv_refold {
    struct elv_fold *fold;         /* lends its buffers */
    struct elv_refold_item *items; /* once started in rising order of client and assignment */
    uint32_t n;
    uint8_t *scan_buf; /* [ELV_LOG_SCAN_BUF] */
    struct elv_log_scan scan;
    const struct elv_refold_item *open; /* whose chunk is being folded; NULL: none */
};

/* Forgets what the sums held. */
void elv_refold_start(struct elv_refold *r, uint64_t log_len);
/* One unit is a window or a record. ELV_ERR_MISMATCH: the log no longer holds everything that was
 * accepted. */
enum elv_err elv_refold_run(struct elv_refold *r, uint32_t budget);

#endif
