/* SPDX-License-Identifier: Apache-2.0 */
/* server/sizing.h - how much work one client gets. Pure. */
#ifndef ELV_SERVER_SIZING_H
#define ELV_SERVER_SIZING_H

#include "job.h"
#include "select.h"

struct elv_size {
    uint32_t local_epochs; /* one of the two is 0 */
    uint32_t local_steps;
    uint32_t batch;
};

struct elv_sizing {
    const char *name;
    const char *const *params;
    enum elv_err (*check)(const struct elv_params *params, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line); /* may be NULL */
    struct elv_size (*size)(const struct elv_job *job, const struct elv_candidate *c);
};

/* NULL when there is no such policy. */
const struct elv_sizing *elv_sizing_by_name(const char *name);

#endif
