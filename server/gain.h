/* SPDX-License-Identifier: Apache-2.0 */
/* server/gain.h - by how much does a step made of k updates lower the loss?
 *
 * For a smooth loss F and a step of rate eta along the mean of k gradients with total variance V
 *
 *     E[F(w) - F(w')] >= (eta - L eta^2 / 2) N  -  L eta^2 / 2 * V / k        N = ||grad F(w)||^2
 *
 * N, V and the smoothness L are estimated from what each version says of itself, which is sums and
 * scalars only, so it also works where single updates are hidden in sums.
 *
 * A value without pointers. Source: Xu, Neglia, Sebastianelli, "Dynamic Backup Workers for Parallel
 * Machine Learning", IFIP Networking 2020, arXiv:2004.14696; the formulas are derived anew. */
#ifndef ELV_SERVER_GAIN_H
#define ELV_SERVER_GAIN_H

#include "sync.h"

#define ELV_GAIN_DEPTH_MAX 64u

/* The last values of a quantity. */
struct elv_recent {
    double at[ELV_GAIN_DEPTH_MAX];
    uint32_t n, next;
};

struct elv_gain {
    uint32_t depth; /* values that a mean is of */
    struct elv_recent variance, norm, smoothness, loss;
    double rate;                   /* of the last version */
    double loss_last, loss_before; /* NAN: none */
    double loss_first;
    double norm_last, step_last; /* of the last version: N, ||mean gradient||^2 */
};

void elv_gain_init(struct elv_gain *g, uint32_t depth);
void elv_gain_add(struct elv_gain *g, const struct elv_sync_commit *c);

/* Enough was seen for elv_gain_of. */
bool elv_gain_is_known(const struct elv_gain *g);

/* Of a step with k updates; may be negative. */
double elv_gain_of(const struct elv_gain *g, double k);

/* The loss rose by more than the factor from the version before to the last. */
bool elv_gain_rose(const struct elv_gain *g, double factor);

double elv_recent_mean(const struct elv_recent *r);

#endif
