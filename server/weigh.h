/* SPDX-License-Identifier: Apache-2.0 */
/* server/weigh.h - the fixed-point scales of a job's sums.
 *
 * A value v becomes rint(v * 2^value_bits), a weight x becomes max(1, rint(x * 2^weight_bits)).
 * With |v| at most the job's bound and every weight at most its cap, values stay within 2^30 and
 * the weights of one version add up to at most 2^30 plus one per client, so a sum of products stays
 * below 2^61 and no order of additions can change it. */
#ifndef ELV_SERVER_WEIGH_H
#define ELV_SERVER_WEIGH_H

#include "job.h"

struct elv_scales {
    int32_t value_bits;  /* 30 - ceil(log2(bound)) */
    int32_t weight_bits; /* 30 - ceil(log2(weight cap * clients counted in one version)) */
    uint32_t weight_cap; /* claims are cut to this */
};

/* `n_counted`: the most clients one version can count. ELV_ERR_RANGE: `why` says what cannot fit.
 */
enum elv_err elv_scales_of(const struct elv_job *job, uint32_t n_counted, struct elv_scales *s,
                           char why[ELV_JOB_ERROR_MAX]);

/* What an update claims as its weight, uncut. */
uint32_t elv_weight_claim(enum elv_weight kind, uint32_t samples, uint32_t seen);

/* The integer weight; `factor` in (0, 1] is the synchronisation policy's. */
uint32_t elv_weight_of(const struct elv_scales *s, uint32_t claim, double factor);

/* The factor that turns a sum into a mean. */
double elv_mean_gain(const struct elv_scales *s, uint64_t weight_sum);

#endif
