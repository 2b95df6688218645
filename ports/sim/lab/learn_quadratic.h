/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_quadratic.h - model Q: a noisy quadratic, learnt in a microsecond.
 *
 * Client c minimises F_c(w) = 1/2 sum_i a_i (w_i - o_ci)^2 with a_i = 0.9^i + 0.05 for i = 0, 1,
 * ..., starting from all ones. A gradient carries Gaussian noise of variance noise^2 / batch, as a
 * total over the coordinates, and the loss a client reports is off by a relative error. With
 * `spread` the clients' optima o_c lie apart: normal, so far in each coordinate; without, all are
 * at zero. All of it is single IEEE operations: the same seed gives the same bits everywhere.
 *
 * The model is the usual bench for choosing how many gradients to wait for, as in Xu, Neglia,
 * Sebastianelli, "Dynamic backup workers for parallel machine learning", Computer Networks 2021. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_QUADRATIC_H
#define ELV_PORTS_SIM_LAB_LEARN_QUADRATIC_H

#include "ports/sim/lab/learn.h"

#define ELV_LAB_QUADRATIC_DIMENSIONS 40u
#define ELV_LAB_QUADRATIC_DIMENSIONS_MAX 4096u

struct elv_lab_quadratic_cfg {
    uint64_t seed;
    uint32_t dimensions; /* 0: 40 */
    uint32_t n_clients;  /* whose mean optimum is the model's; not read without `spread` */
    uint32_t samples;    /* that each client claims; 0: 1 */
    double more_share;   /* so many of the clients, those with the lowest numbers, ... */
    double more_factor;  /* ... claim so many times as many; 0: none do */
    double noise;        /* of a gradient with a batch of 1 */
    double loss_noise;   /* relative, of reported losses */
    double spread;       /* of the clients' optima, in each coordinate */
    double momentum, weight_decay, proximal; /* of local training */
};

/* `train` does the steps a piece of work says, or as many as its epochs take over the samples that
 * are claimed. `evaluate` gives the exact mean of F_c over all clients, less the least it can be:
 * 0 at the best model. ELV_ERR_ARG: a number is negative, not finite, or too large; ELV_ERR_MEMORY:
 * no memory. */
enum elv_err elv_lab_quadratic(struct elv_lab_learner *out,
                               const struct elv_lab_quadratic_cfg *cfg);

/* f32 [dimensions] The best model. */
const float *elv_lab_quadratic_optimum(const struct elv_lab_learner *l);

#endif
