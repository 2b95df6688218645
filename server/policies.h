/* SPDX-License-Identifier: Apache-2.0 */
/* server/policies.h - the four policies a job names, found and checked. */
#ifndef ELV_SERVER_POLICIES_H
#define ELV_SERVER_POLICIES_H

#include "rule.h"
#include "select.h"
#include "sizing.h"
#include "sync.h"

struct elv_policies {
    const struct elv_sync *sync;
    const struct elv_rule *rule;
    const struct elv_select *select;
    const struct elv_sizing *sizing;
};

/* Finds what the job names and checks the parameters. On failure `why` is a sentence that says what
 * would be accepted, `*line` the job file's line or 0, and `*p` is not to be used. */
enum elv_err elv_policies_of(const struct elv_job *job, struct elv_policies *p,
                             char why[ELV_JOB_ERROR_MAX], uint32_t *line);

/* The same for what can never come together where there are at most `n` clients. */
enum elv_err elv_policies_fit(const struct elv_job *job, const struct elv_policies *p, uint32_t n,
                              char why[ELV_JOB_ERROR_MAX], uint32_t *line);

#endif
