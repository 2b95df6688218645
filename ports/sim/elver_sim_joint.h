/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_joint.h - part of the program elver-sim: the files about all runs together.
 * What each is for is told in elver_sim_folder.h. All return 0 or the exit code. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_JOINT_H
#define ELV_PORTS_SIM_ELVER_SIM_JOINT_H

#include "ports/sim/elver_sim_experiment.h"

int elv_sim_write_manifest(const struct elv_sim_experiment *x);
/* The runs are finished. */
int elv_sim_write_summary(const struct elv_sim_experiment *x);
int elv_sim_write_report(const struct elv_sim_experiment *x);
int elv_sim_write_host(const struct elv_sim_experiment *x, uint32_t threads, double wall_s);

/* Values in force whatever the sweep changes. */
void elv_sim_common_setup(const struct elv_sim_experiment *x, struct elv_lab_setup *out);

/* The runs of variant `v` together; `outcomes` [n_seeds] keeps what the result views. */
struct elv_lab_spread;
void elv_sim_spread(const struct elv_sim_experiment *x, uint32_t v,
                    struct elv_lab_outcome *outcomes, struct elv_lab_spread *out);

#endif
