/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_data.h - part of the program elver-sim: the files that experiments name.
 *
 * Data sets, traces, first models and partitions are read once, however many runs use them, and
 * only read from then on: runs on any thread share them. What is wrong is told on standard error.
 */
#ifndef ELV_PORTS_SIM_ELVER_SIM_DATA_H
#define ELV_PORTS_SIM_ELVER_SIM_DATA_H

#include "ports/sim/lab/learn_data.h"
#include "ports/sim/lab/setup.h"

struct elv_sim_set; /* a data set, scaled as some job says */
struct elv_sim_trace;

struct elv_sim_data { /* starts as zeros */
    struct elv_sim_set *sets;
    struct elv_sim_trace *traces;
};

/* What a variant uses; NULL: it has none. */
struct elv_sim_inputs {
    const struct elv_lab_data *train, *test;
    const struct elv_lab_trace *trace;
    float *start;    /* [n_shared] owned by the inputs */
    uint32_t *owner; /* [train->n] likewise */
    uint8_t trace_digest[ELV_SHA256_LEN], start_digest[ELV_SHA256_LEN];
};

/* The trace that the world names, before the world is checked: it may say how many clients there
 * are. Returns 0 or the program's exit code. */
int elv_sim_data_trace(struct elv_sim_data *d, struct elv_lab_setup *s, struct elv_sim_inputs *in);

/* The rest, of a checked setup. */
int elv_sim_data_take(struct elv_sim_data *d, const struct elv_lab_setup *s,
                      struct elv_sim_inputs *in);

void elv_sim_inputs_free(struct elv_sim_inputs *in);
void elv_sim_data_free(struct elv_sim_data *d);

#endif
