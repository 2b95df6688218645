/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_engine.h"

#include "ports/sim/elver_sim_pages.h"

static enum elv_err swarm_run(void *self, elv_time_us until) { return elv_swarm_run(self, until); }

static void swarm_stop(void *self) { elv_swarm_stop(self); }

static elv_time_us swarm_now(const void *self) { return elv_swarm_now(self); }

static void swarm_summary(const void *self, struct elv_lab_summary *out)
{
    elv_swarm_summary(self, out);
}

static void swarm_free(void *self) { elv_swarm_free(self); }

static enum elv_err deploy_run(void *self, elv_time_us until)
{
    return elv_deploy_run(self, until);
}

static void deploy_stop(void *self) { elv_deploy_stop(self); }

static elv_time_us deploy_now(const void *self) { return elv_deploy_now(self); }

static void deploy_summary(const void *self, struct elv_lab_summary *out)
{
    elv_deploy_summary(self, out);
}

static void deploy_free(void *self) { elv_deploy_free(self); }

static enum elv_err make_deploy(struct elv_sim_engine *e, const struct elv_swarm_cfg *run,
                                char why[ELV_JOB_ERROR_MAX])
{
    struct elv_deploy *d;
    const struct elv_deploy_cfg cfg = {.run = *run, .pages = elv_sim_pages()};
    const enum elv_err err = elv_deploy_new(&d, &cfg, why);
    if (err == ELV_OK)
        *e = (struct elv_sim_engine){.self = d,
                                     .run = deploy_run,
                                     .stop = deploy_stop,
                                     .now = deploy_now,
                                     .summary = deploy_summary,
                                     .free = deploy_free};
    return err;
}

enum elv_err elv_sim_engine_make(struct elv_sim_engine *e, const struct elv_swarm_cfg *cfg,
                                 char why[ELV_JOB_ERROR_MAX])
{
    struct elv_swarm *s;
    if (cfg->world->detail == ELV_LAB_MESSAGES)
        return make_deploy(e, cfg, why);
    const enum elv_err err = elv_swarm_new(&s, cfg, why);
    if (err == ELV_OK)
        *e = (struct elv_sim_engine){.self = s,
                                     .run = swarm_run,
                                     .stop = swarm_stop,
                                     .now = swarm_now,
                                     .summary = swarm_summary,
                                     .free = swarm_free};
    return err;
}
