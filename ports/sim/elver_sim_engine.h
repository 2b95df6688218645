/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_engine.h - part of the program elver-sim: what makes a run happen, in the
 * detail that its world asks for. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_ENGINE_H
#define ELV_PORTS_SIM_ELVER_SIM_ENGINE_H

#include "ports/sim/lab/swarm.h"

struct elv_sim_engine { /* the functions are those of lab/swarm.h */
    void *self;
    enum elv_err (*run)(void *self, elv_time_us until);
    void (*stop)(void *self);
    elv_time_us (*now)(const void *self);
    void (*summary)(const void *self, struct elv_lab_summary *out);
    void (*free)(void *self);
};

/* ELV_ERR_ARG: `why` says what does not go together. */
enum elv_err elv_sim_engine_make(struct elv_sim_engine *e, const struct elv_swarm_cfg *cfg,
                                 char why[ELV_JOB_ERROR_MAX]);

#endif
