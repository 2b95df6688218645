/* SPDX-License-Identifier: Apache-2.0 */
/* tests/commit_case.h - what a version says when its gradients are just so. */
#ifndef ELV_TESTS_COMMIT_CASE_H
#define ELV_TESTS_COMMIT_CASE_H

#include "server/sync.h"

/* `n` updates of one step each, whose gradients have exactly this squared norm of their mean and
 * this variance. */
static inline struct elv_sync_commit commit_of(double norm, double variance, uint32_t n,
                                               double loss, double rate)
{
    const double mean_norm2 = (norm + variance / n) * rate * rate;
    return (struct elv_sync_commit){
        .round.n_got = n,
        .loss = loss,
        .mean_norm2 = mean_norm2,
        .norm2 = mean_norm2 + variance * (1.0 - 1.0 / n) * rate * rate,
        .n_effective = n,
        .rate = rate,
    };
}

#endif
