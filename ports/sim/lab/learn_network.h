/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_network.h - the job's own network on real examples.
 *
 * One data set, in memory once, is split over the clients as the job says and trained by the
 * client's own trainer and encoder (lab/learn_local.h): a piece of work ends in the bits a client
 * node would send. Versions are scored on the server's test set. A learner costs one trainer's
 * memory and four bytes per example, whatever the number of clients; learners on several threads
 * share the data. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_NETWORK_H
#define ELV_PORTS_SIM_LAB_LEARN_NETWORK_H

#include "common/port.h"
#include "ports/sim/lab/learn.h"
#include "ports/sim/lab/learn_data.h"

struct elv_lab_network_cfg {   /* all pointers are borrowed for the life of the learner */
    const struct elv_job *job; /* checked */
    uint64_t seed;             /* of the run; the job's is not used */
    uint32_t n_clients;
    const struct elv_lab_data *train;
    const struct elv_feed *test;       /* the server's, prepared; NULL: versions are not scored */
    const uint32_t *owner;             /* read here only; see elv_lab_split_cfg */
    const float *start;                /* [n_shared] the first version; NULL: from the seed */
    const struct elv_squeeze *squeeze; /* NULL: nothing is deflated */
    const struct elv_kernels *kernels; /* for fast arithmetic; NULL: the best built in */
};

/* On failure `why` is a sentence. ELV_ERR_MISMATCH: the examples are not what the model reads; the
 * codes of elv_lab_split_new and elv_lab_local_new. */
enum elv_err elv_lab_network(struct elv_lab_learner *out, const struct elv_lab_network_cfg *cfg,
                             char why[ELV_JOB_ERROR_MAX]);

/* Whether the examples are what the model reads, known before anything is made. */
enum elv_err elv_lab_network_check(const struct elv_lab_network_cfg *cfg,
                                   char why[ELV_JOB_ERROR_MAX]);

/* Of a learner made here: how the examples were split, and what it was made from. */
const struct elv_lab_split *elv_lab_network_split(const struct elv_lab_learner *l);
const struct elv_lab_network_cfg *elv_lab_network_of(const struct elv_lab_learner *l);

#endif
