/* SPDX-License-Identifier: Apache-2.0 */
/* server/verify.h - is a committed update whole, sane and what its sender says? Work for any
 * thread.
 *
 * Everything is computed here from the chunks; the client's own figures are only compared. The
 * squared norm is the sum, in index order, of each chunk's, which is what the kernel `norm2` makes
 * of the chunk's values: it does not depend on the windows they are decoded in. */
#ifndef ELV_SERVER_VERIFY_H
#define ELV_SERVER_VERIFY_H

#include "unpack.h"

#define ELV_VERIFY_MAX 64u

struct elv_verify_item {
    struct elv_upload *up;
    enum elv_reason reason; /* NONE: fine */
    bool lost;              /* the log does not hold what it should: no fault of the client */
    double norm2;
};

struct elv_verify {
    struct elv_unpack *unpack;
    const struct elv_kernels *kernels;
    uint32_t n_params;
    float bound; /* of a value */
    float clip;  /* of the L2 norm; 0: none */
    struct elv_unpacked buf;
    struct elv_verify_item items[ELV_VERIFY_MAX];
    uint32_t n;
    uint32_t item, index, first; /* where it goes on */
    bool open;                   /* within chunk `index` */
    double lane[16];             /* sums of squares of its values so far, as `norm2` has them */
    double chunk_norm2;          /* and together */
    struct elv_body_digest digest;
};

void elv_verify_layout(struct elv_verify *v, struct elv_arena *a);
/* `items[0..n)` name uploads in state VERIFY, complete up to their commit's n_chunks. */
void elv_verify_start(struct elv_verify *v);
/* One unit is a window of a chunk. ELV_ERR_BUSY: call again; ELV_OK: every item has its answer. */
enum elv_err elv_verify_run(struct elv_verify *v, uint32_t budget);

#endif
