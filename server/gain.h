/* SPDX-License-Identifier: Apache-2.0 */
/* server/gain.h - by how much does a step made of k updates lower the loss?
 *
 * For a smooth loss F and a step of rate eta along the mean of k gradients, each with variance V,
 *
 *     E[F(w) - F(w')] >= (eta - L eta^2 / 2) N  -  L eta^2 / 2 * V / k        N = ||grad F(w)||^2
 *
 * N, V and the smoothness L are means of what the last versions showed of them. A version says sums
 * and scalars only, so all of this also works where single updates are hidden in sums:
 *
 *     V = (mean ||g_i||^2 - ||mean g_i||^2) / (1 - 1 / m)    m: effective number of updates
 *     N = ||mean g_i||^2 - V / m
 *     L = 2 (F - F_before + eta N_before) / (eta^2 ||mean g_i before||^2)
 *
 * each not below 0: where noise hides the gradient, N is then too large rather than none, and the
 * choice does not jump to all clients at the first unlucky version. Until L is seen, which takes
 * two versions with losses, it is taken as 1 / eta: a step of that rate is the best there is.
 *
 * Two things are different where a client takes many local steps. What it reports is the mean loss
 * along its own way, which falls within the first steps however far off the version was: L cannot
 * be had from it and stays at 1 / eta. And a client that has gone through all of its examples would
 * do the same again: updates then differ because clients do, not by chance, and k of n different
 * clients leave a noise of V (1/k - 1/n), none if all are there. In between 1/n counts by the share
 * c of its examples that a client goes through, so that V / k stands for V (1/k - c/n) everywhere.
 *
 * A value without pointers. Sources: Xu, Neglia, Sebastianelli, "Dynamic Backup Workers for
 * Parallel Machine Learning", IFIP Networking 2020, arXiv:2004.14696, the formulas derived anew;
 * for clients drawn from few, Li, Huang, Yang, Wang, Zhang, "On the Convergence of FedAvg on
 * Non-IID Data", ICLR 2020, arXiv:1907.02189. */
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
    uint32_t depth; /* values that a mean is of, at most */
    struct elv_recent variance, norm, smoothness, loss;
    struct elv_recent uneven;      /* updates per effective update, 1 for equal weights */
    double loss_first;             /* ever reported; the others are NAN while unknown */
    double loss_last, loss_before; /* of the last two versions */
    double norm_last, step_last;   /* of the last version: N, and the squared norm of the mean */
    double rate;                   /* of the last version; 0: there was none */
    double settled;                /* c / n as of the last version */
};

/* The work behind a version. */
struct elv_gain_work {
    uint32_t steps; /* local steps, the most that one client took; 0 is like 1 */
    double covered; /* share of its examples that a client went through, 0 to 1, in the mean */
};

/* `depth` from 1 to ELV_GAIN_DEPTH_MAX. */
void elv_gain_init(struct elv_gain *g, uint32_t depth);
void elv_gain_add(struct elv_gain *g, const struct elv_sync_commit *c, struct elv_gain_work work);

/* Enough was seen for elv_gain_of: a version made of two updates or more. */
bool elv_gain_is_known(const struct elv_gain *g);

/* Of a step with k updates, k >= 1; may be negative. */
double elv_gain_of(const struct elv_gain *g, uint32_t k);

/* The loss rose by more than the factor from the version before to the last. */
bool elv_gain_rose(const struct elv_gain *g, double factor);

/* The first loss over the mean of the last ones; 1 while none was reported. */
double elv_gain_fall(const struct elv_gain *g);

/* 0 without values. */
double elv_recent_mean(const struct elv_recent *r);

#endif
