/* SPDX-License-Identifier: Apache-2.0 */
/* client/builtin.h - the built-in trainer for a client node: it learns its run from the manifest.
 *
 * A node knows neither model nor batch before it has read a manifest and a ticket. This wraps
 * struct elv_local, keeps the memory it is given and cuts the plan from it, anew when a task asks
 * for another batch size: what fits is decided by the batch, not by the largest one imaginable. */
#ifndef ELV_CLIENT_BUILTIN_H
#define ELV_CLIENT_BUILTIN_H

#include "trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_builtin_cfg {
    const struct elv_feed *train;      /* borrowed; NULL: this device only evaluates */
    const struct elv_feed *test;       /* borrowed; NULL: it does not evaluate */
    const struct elv_kernels *kernels; /* for fast arithmetic; NULL: the best built in */
};

struct elv_builtin { /* the fields belong to builtin.c */
    struct elv_builtin_cfg cfg;
    struct elv_local local;
    struct elv_local_cfg plan; /* model NULL: not prepared */
    struct elv_model model;
    void *mem;
    size_t len;
};

/* Keeps `b`, which must stay where it is. */
struct elv_trainer elv_builtin_trainer(struct elv_builtin *b, const struct elv_builtin_cfg *cfg);

#ifdef __cplusplus
}
#endif
#endif
