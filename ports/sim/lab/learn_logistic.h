/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_logistic.h - model L: logistic regression on made-up examples.
 *
 * Each class is a Gaussian cloud around a centre of its own. A client draws its examples from a mix
 * of classes that is its own too: a symmetric Dirichlet draw, the more uneven the smaller alpha is
 * (Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
 * Classification", arXiv:1909.06335). The model is one dense layer with softmax, trained by the
 * client's own trainer and encoder (lab/learn_local.h).
 *
 * Examples are drawn when they are asked for, from a stream named by seed, client and place: a
 * hundred thousand clients cost nothing until they train, and then only the memory of one. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_LOGISTIC_H
#define ELV_PORTS_SIM_LAB_LEARN_LOGISTIC_H

#include "common/port.h"
#include "ports/sim/lab/learn.h"

#define ELV_LAB_LOGISTIC_DIMENSIONS 20u
#define ELV_LAB_LOGISTIC_DIMENSIONS_MAX 4096u
#define ELV_LAB_LOGISTIC_CLASSES 10u
#define ELV_LAB_LOGISTIC_SAMPLES 100u
#define ELV_LAB_LOGISTIC_SAMPLES_MAX 1000000u
#define ELV_LAB_LOGISTIC_VALUES_MAX (1u << 26) /* samples times dimensions */
#define ELV_LAB_LOGISTIC_ALPHA_MIN 0.001       /* or 0 */
#define ELV_LAB_LOGISTIC_ALPHA_MAX 1000
#define ELV_LAB_LOGISTIC_TEST 2000u /* examples versions are scored on, all classes alike */

struct elv_lab_logistic_cfg {
    const struct elv_job *job; /* borrowed: optimizer, arithmetic, codec and limits of updates; its
                                  model and data do not matter */
    uint64_t seed;
    uint32_t n_clients;
    uint32_t dimensions; /* 0: 20 */
    uint32_t samples;    /* per client; 0: 100 */
    double alpha;        /* of the label skew; 0: every client has all classes alike */
    const struct elv_squeeze *squeeze; /* NULL: nothing is deflated */
    const struct elv_kernels *kernels; /* for fast arithmetic; NULL: the best built in */
};

/* ELV_ERR_ARG: a number is out of range; ELV_ERR_MEMORY; ELV_ERR_UNSUPPORTED: the job's codec. */
enum elv_err elv_lab_logistic(struct elv_lab_learner *out, const struct elv_lab_logistic_cfg *cfg);

#endif
