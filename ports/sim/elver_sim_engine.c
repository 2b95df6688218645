/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_engine.h"

#include "server/param.h"

static enum elv_err swarm_run(void *self, elv_time_us until) { return elv_swarm_run(self, until); }

static elv_time_us swarm_now(const void *self) { return elv_swarm_now(self); }

static void swarm_summary(const void *self, struct elv_lab_summary *out)
{
    elv_swarm_summary(self, out);
}

static void swarm_free(void *self) { elv_swarm_free(self); }

enum elv_err elv_sim_engine_fits(const struct elv_lab_world *world, char why[ELV_JOB_ERROR_MAX])
{
    if (world->detail == ELV_LAB_TIMING)
        return ELV_OK;
    elv_param_refuse(why, "this version simulates times, not messages; give detail = timing");
    return ELV_ERR_UNSUPPORTED;
}

enum elv_err elv_sim_engine_make(struct elv_sim_engine *e, const struct elv_swarm_cfg *cfg,
                                 char why[ELV_JOB_ERROR_MAX])
{
    struct elv_swarm *s;
    const enum elv_err err = elv_swarm_new(&s, cfg, why);
    if (err == ELV_OK)
        *e = (struct elv_sim_engine){.self = s,
                                     .run = swarm_run,
                                     .now = swarm_now,
                                     .summary = swarm_summary,
                                     .free = swarm_free};
    return err;
}
