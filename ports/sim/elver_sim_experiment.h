/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_experiment.h - part of the program elver-sim: all runs that were asked for,
 * checked before the first of them starts. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_EXPERIMENT_H
#define ELV_PORTS_SIM_ELVER_SIM_EXPERIMENT_H

#include "ports/sim/elver_sim_data.h"
#include "ports/sim/elver_sim_options.h"
#include "ports/sim/lab/outcome.h"

struct elv_kernels;

struct elv_sim_variant {
    char label[ELV_LAB_LABEL_MAX];
    struct elv_lab_setup setup; /* checked; its seed is that of the first run */
    struct elv_sim_inputs inputs;
};

struct elv_sim_run {
    const struct elv_sim_variant *variant;
    char name[ELV_LAB_LABEL_MAX + 32]; /* its folder in DIR/runs; empty: DIR itself */
    bool finished;                     /* now or earlier; then */
    struct elv_lab_outcome outcome; /* holds what was read back; label, seed and configuration are
                                       right from the start */
    double wall_s;                  /* 0: it was not run now */
};

struct elv_sim_experiment {
    const struct elv_sim_options *asked;
    const struct elv_kernels *kernels;
    struct elv_sim_data data;
    struct elv_sim_variant *variants;
    struct elv_sim_run *runs; /* [n_variants * n_seeds], the seeds of a variant side by side */
    uint32_t n_variants, n_seeds, n_runs;
    uint8_t configuration[ELV_SHA256_LEN]; /* of all of them */
};

/* Both return 0 or the program's exit code; to be freed either way. The first looks at the variants
 * alone, not at the files they name but for traces. */
int elv_sim_experiment_check(struct elv_sim_experiment *x, const struct elv_sim_options *asked);
int elv_sim_experiment_make(struct elv_sim_experiment *x, const struct elv_sim_options *asked);
void elv_sim_experiment_free(struct elv_sim_experiment *x);

#endif
