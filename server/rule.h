/* SPDX-License-Identifier: Apache-2.0 */
/* server/rule.h - how the updates of a version become the next model.
 *
 * Pure arithmetic over what was folded; every function may run on any thread, for disjoint ranges
 * at a time. A rule with memory of its own (momentum, second moments) declares it. */
#ifndef ELV_SERVER_RULE_H
#define ELV_SERVER_RULE_H

#include "../kernels/kernels.h"
#include "job.h"

struct elv_rule_step {
    const struct elv_params *params;
    const struct elv_kernels *kernels;
    uint32_t version;   /* that is being made */
    const int64_t *sum; /* [n] weighted sum of the updates, in fixed point */
    double gain;        /* sum * gain is the step that the updates ask for: their weighted mean,
                           unless the synchronisation policy divides by something else */
    float *w;           /* [n] in: the model so far; out: the next */
    float *mean;        /* [n] scratch; out: sum * gain */
    float *state;       /* [n * state_per_param] the rule's own, kept over versions */
    size_t n;           /* coordinates in this range */
};

struct elv_rule {
    const char *name;
    const char *const *params; /* names it accepts, then NULL */
    enum elv_err (*check)(const struct elv_params *params, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line); /* may be NULL */
    uint32_t state_per_param;              /* floats */
    void (*apply)(const struct elv_rule_step *s);

    /* How much local work an update stands for, 1 or more: its weight is divided by it, and the
     * step multiplied by the mean of it over the claims, so that more steps do not mean more say.
     * NULL: 1. Depends on the job and the update's steps alone. */
    double (*effort)(const struct elv_job *job, uint32_t steps);
};

/* NULL when there is no such rule. */
const struct elv_rule *elv_rule_by_name(const char *name);

#endif
