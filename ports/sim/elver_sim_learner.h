/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_learner.h - part of the program elver-sim: what the clients of a run learn.
 */
#ifndef ELV_PORTS_SIM_ELVER_SIM_LEARNER_H
#define ELV_PORTS_SIM_ELVER_SIM_LEARNER_H

#include "common/port.h"
#include "ports/sim/elver_sim_experiment.h"
#include "ports/sim/lab/learn.h"

struct elv_zlib;

struct elv_sim_learner { /* starts as zeros */
    struct elv_lab_learner learner;
    struct elv_zlib *zlib;
    struct elv_squeeze squeeze;
};

/* As the world of the run's variant says. On failure `why` is a sentence; nothing is to be freed.
 */
enum elv_err elv_sim_learner_make(struct elv_sim_learner *l, const struct elv_sim_experiment *x,
                                  const struct elv_sim_run *run, char why[ELV_JOB_ERROR_MAX]);
void elv_sim_learner_free(struct elv_sim_learner *l);

#endif
