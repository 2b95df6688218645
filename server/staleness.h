/* SPDX-License-Identifier: Apache-2.0 */
/* server/staleness.h - what an update is still worth when the model has moved on since.
 *
 *     staleness = polynomial   ; constant, polynomial, hinge or exponential
 *     staleness_a = 0.5        ; how fast the worth falls
 *     staleness_b = 4          ; hinge: versions that cost nothing
 *
 * With tau the staleness: constant 1; polynomial (1 + tau)^-a; hinge 1 up to b, then
 * 1 / (a (tau - b) + 1); exponential e^(-a tau). Always in (0, 1], and the same bits on every
 * machine. Source of the first three: Xie, Koyejo, Gupta, "Asynchronous Federated Optimization",
 * arXiv:1903.03934. */
#ifndef ELV_SERVER_STALENESS_H
#define ELV_SERVER_STALENESS_H

#include "job.h"

/* For the list of names a policy accepts. */
#define ELV_STALENESS_PARAMS "staleness", "staleness_a", "staleness_b"

enum elv_staleness_kind {
    ELV_STALENESS_CONSTANT,
    ELV_STALENESS_POLYNOMIAL,
    ELV_STALENESS_HINGE,
    ELV_STALENESS_EXPONENTIAL
};

struct elv_staleness {
    enum elv_staleness_kind kind;
    double a, b;
};

/* Kind `otherwise` when the job names none; a is 0.5 for polynomial, 10 for hinge and 0.1 for
 * exponential, and b is 4, unless given. The parameters have passed the check. */
struct elv_staleness elv_staleness_of(const struct elv_params *params,
                                      enum elv_staleness_kind otherwise);

/* ELV_ERR_RANGE: `why` says what would be accepted, `*line` where. */
enum elv_err elv_staleness_check(const struct elv_params *params, enum elv_staleness_kind otherwise,
                                 char why[ELV_JOB_ERROR_MAX], uint32_t *line);

double elv_staleness_factor(struct elv_staleness s, uint32_t tau);

#endif
