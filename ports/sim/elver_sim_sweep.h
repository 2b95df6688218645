/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_sweep.h - part of the program elver-sim: runs on threads, and their progress.
 *
 * One world per thread, and nothing shared that changes: what a run comes to does not depend on how
 * many run beside it. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_SWEEP_H
#define ELV_PORTS_SIM_ELVER_SIM_SWEEP_H

#include <stdatomic.h>

#include "ports/sim/elver_sim_experiment.h"

/* Runs what is not finished. `stop` may be set by a signal: the runs under way are given up then.
 * Returns 0, also when stopped, or the exit code, and has told why. */
int elv_sim_sweep_run(struct elv_sim_experiment *x, uint32_t threads, atomic_bool *stop);

/* As many as there are processors, unless asked otherwise. */
uint32_t elv_sim_threads(const struct elv_sim_options *o);

#endif
