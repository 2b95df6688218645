/* SPDX-License-Identifier: Apache-2.0 */
/* common/feed.h - where examples come from: memory, a file, a sensor's ring buffer.
 *
 * A feed numbers its examples 0..count-1 and gives any of them at any time, always the same. It
 * allocates nothing when asked. A trainer calls it from the thread that runs the training. */
#ifndef ELV_COMMON_FEED_H
#define ELV_COMMON_FEED_H

#include <stdint.h>

#include "err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_manifest;

struct elv_feed {
    void *self;

    /* Called before all else and again when a run changes: from now on scale and choose examples as
     * the manifest says (scale, mean, std, partition, holdout). NULL: nothing depends on it. */
    enum elv_err (*prepare)(void *self, const struct elv_manifest *manifest);

    /* Examples at hand; stays the same between a training's begin and its end. */
    uint32_t (*count)(void *self);

    /* Values per example, and a number that every label is below. */
    void (*shape)(void *self, uint32_t *n_values, uint32_t *n_classes);

    /* Example index[i] for i < n: its values, scaled as the job says, to x + i * n_values, in
     * channel, row, column order; its label to y[i]. Indices are below `count`. ELV_ERR_IO: they
     * cannot be had; the training fails with the error given. */
    enum elv_err (*get)(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y);
};

#ifdef __cplusplus
}
#endif
#endif
