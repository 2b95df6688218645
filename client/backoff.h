/* SPDX-License-Identifier: Apache-2.0 */
/* client/backoff.h - how long to wait, so that a fleet never asks in step.
 *
 * Delays come from a stream of random numbers that is the client's own: many clients that lost the
 * same server spread out, and a simulated run repeats from its seed. */
#ifndef ELV_CLIENT_BACKOFF_H
#define ELV_CLIENT_BACKOFF_H

#include "../common/node.h"
#include "../common/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_BACKOFF_FIRST_US 1000000
#define ELV_BACKOFF_CAP_US 60000000

/* Uniform in [0, max]; `max` is not negative. */
elv_time_us elv_jitter(struct elv_rng *rng, elv_time_us max);

/* `first` doubled `n` times, at most ELV_BACKOFF_CAP_US. */
elv_time_us elv_doubled(elv_time_us first, uint32_t n);

/* The wait before try `n` + 1 (n from 0): between half of 1, 2, 4 ... 60 s and all of it. */
elv_time_us elv_backoff(struct elv_rng *rng, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
