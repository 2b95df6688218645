/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_run.h - part of the program elver-sim: one run, from its first event to its
 * files.
 *
 * A run belongs to one thread and shares nothing with others but what is only read. Its files take
 * their names when it has ended, summary.json last: a run that has one is finished. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_RUN_H
#define ELV_PORTS_SIM_ELVER_SIM_RUN_H

#include <stdatomic.h>

#include "ports/sim/elver_sim_experiment.h"
#include "ports/sim/elver_sim_files.h"

/* For who looks on from another thread. */
struct elv_sim_watch {
    atomic_uint version, ppm; /* versions made; done, in a million */
    atomic_bool *stop;        /* the run gives up as soon as it sees this */
};

/* ELV_OK: it has ended, and `run` is filled in. ELV_ERR_CANCELLED: it was to stop. Anything else:
 * `why` says what went wrong. The folders are there. */
enum elv_err elv_sim_run_do(const struct elv_sim_experiment *x, struct elv_sim_run *run,
                            struct elv_sim_watch *watch, char why[ELV_JOB_ERROR_MAX]);

/* The folder of a run's files; false: the path is too long. */
bool elv_sim_run_folder(const struct elv_sim_experiment *x, const struct elv_sim_run *run,
                        char path[ELV_SIM_PATH_MAX]);

#endif
