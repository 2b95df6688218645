/* SPDX-License-Identifier: Apache-2.0 */
#include "server/weigh.h"

#include <math.h>

#include "server/param.h"

static int32_t log2_up(double x)
{
    int e;
    const double m = frexp(x, &e); /* x = m * 2^e, m in [0.5, 1) */
    return (int32_t)(m == 0.5 ? e - 1 : e);
}

enum elv_err elv_scales_of(const struct elv_job *job, uint32_t n_counted, struct elv_scales *s,
                           char why[ELV_JOB_ERROR_MAX])
{
    const uint32_t cap = job->weight == ELV_WEIGHT_UNIFORM ? 1 : job->max_weight;
    if (!(job->bound >= 0x1p-60f && job->bound <= 0x1p60f))
        return elv_param_refuse(why, "bound is from 2^-60 to 2^60");
    if (cap == 0 || n_counted == 0)
        return elv_param_refuse(why, "max_weight and the number of clients are 1 or more");
    const int32_t value_bits = 30 - log2_up((double)job->bound);
    const int32_t weight_bits = 30 - log2_up((double)cap * (double)n_counted);
    if (weight_bits < -20)
        return elv_param_refuse(why, "max_weight times the number of clients is at most 2^50");
    *s = (struct elv_scales){
        .value_bits = value_bits, .weight_bits = weight_bits, .weight_cap = cap};
    return ELV_OK;
}

uint32_t elv_weight_claim(enum elv_weight kind, uint32_t samples, uint32_t seen)
{
    switch (kind) {
    case ELV_WEIGHT_UNIFORM:
        return 1;
    case ELV_WEIGHT_SEEN:
        return seen;
    case ELV_WEIGHT_SAMPLES:
        break;
    }
    return samples;
}

uint32_t elv_weight_of(const struct elv_scales *s, uint32_t claim, double factor)
{
    const double cut = claim < s->weight_cap ? (double)claim : (double)s->weight_cap;
    const double scaled = rint(ldexp(cut * factor, s->weight_bits));
    return scaled < 1.0 ? 1 : (uint32_t)scaled;
}

double elv_mean_gain(const struct elv_scales *s, uint64_t weight_sum)
{
    return ldexp(1.0 / (double)weight_sum, -s->value_bits);
}
