/* SPDX-License-Identifier: Apache-2.0 */
/* server/test_set.h - the server's own test set as a scorer: examples of a feed through a network.
 *
 * The memory is the caller's. One evaluation at a time; `run` may be called on any thread. Layers
 * marked `local` never reach the server: they keep their initial values here. */
#ifndef ELV_SERVER_TEST_SET_H
#define ELV_SERVER_TEST_SET_H

#include "../common/feed.h"
#include "../kernels/nn.h"
#include "score.h"

struct elv_test_set_cfg {
    const struct elv_model *model;     /* borrowed */
    const struct elv_feed *feed;       /* borrowed; prepared */
    const struct elv_kernels *kernels; /* NULL: the best built in */
    uint64_t seed;                     /* of initial values */
    uint32_t batch;                    /* examples at once; 0: 256 */
};

struct elv_test_set { /* the fields belong to test_set.c */
    struct elv_test_set_cfg cfg;
    struct elv_nn nn;
    float *flat;     /* [n_params] when some layers are local; else NULL */
    uint32_t *index; /* [batch] */
    uint32_t at, n;
    struct elv_eval_sums sums;
};

/* Bytes `elv_test_set_init` needs and uses. 0: more than this machine can address. */
size_t elv_test_set_mem(const struct elv_test_set_cfg *cfg);

/* Keeps `mem`, aligned to ELV_ARENA_ALIGN. ELV_ERR_SPACE: `len` is too small. ELV_ERR_MISSING: no
 * examples. ELV_ERR_MISMATCH: the feed does not fit the model. */
enum elv_err elv_test_set_init(struct elv_test_set *t, const struct elv_test_set_cfg *cfg,
                               void *mem, size_t len);

struct elv_scorer elv_test_set_scorer(struct elv_test_set *t);

#endif
