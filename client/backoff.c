/* SPDX-License-Identifier: Apache-2.0 */
#include "client/backoff.h"

#include "common/assert.h"

elv_time_us elv_jitter(struct elv_rng *rng, elv_time_us max)
{
    ELV_ASSERT(max >= 0);
    return (elv_time_us)(elv_rng_u64(rng) % ((uint64_t)max + 1)); /* the bias is below 2^-20 */
}

elv_time_us elv_doubled(elv_time_us first, uint32_t n)
{
    elv_time_us d = first < ELV_BACKOFF_CAP_US ? first : ELV_BACKOFF_CAP_US;
    for (uint32_t i = 0; i < n && d < ELV_BACKOFF_CAP_US;
         i++) /* 26 turns at most: d is 1 or more */
        d = d < ELV_BACKOFF_CAP_US / 2 ? 2 * d : ELV_BACKOFF_CAP_US;
    return d;
}

elv_time_us elv_backoff(struct elv_rng *rng, uint32_t n)
{
    const elv_time_us most = elv_doubled(ELV_BACKOFF_FIRST_US, n);
    return most / 2 + elv_jitter(rng, most - most / 2);
}
