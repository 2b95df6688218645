/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/deploy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/queue.h"
#include "server/param.h"

/* What a checked job and a checked world may still be that cannot be deployed. */
static enum elv_err check(struct elv_deploy *d, char *why)
{
    const struct elv_swarm_cfg *run = &d->cfg.run;
    const struct elv_lab_world *w = run->world;
    struct elv_policies policies;
    uint32_t line = 0;
    if (w->learning != ELV_LAB_NETWORK || run->learner == NULL)
        return elv_param_refuse(why, "with detail = messages clients train the job's network; give "
                                     "learning = network, or detail = timing");
    if (run->n_clients == 0 || run->n_clients > ELV_DEPLOY_CLIENTS_MAX)
        return elv_param_refuse(why, "with detail = messages there are 1 to 1000000 clients");
    if (!(w->link.loss >= 0.0 && w->link.loss < 1.0))
        return elv_param_refuse(why, "loss is from 0 to below 1");
    const enum elv_err err = elv_policies_of(run->job, &policies, why, &line);
    if (err != ELV_OK)
        return err;
    d->streams = policies.sync->flow == ELV_SYNC_STREAM;
    d->capacity =
        d->streams ? elv_swarm_counted_max(run->job, &policies, run->n_clients) : run->n_clients;
    return ELV_OK;
}

/* The run's seed, and when it ends. */
static void set_job(struct elv_deploy *d)
{
    const struct elv_swarm_cfg *run = &d->cfg.run;
    const bool target = run->target_accuracy > 0.0 || run->target_loss > 0.0;
    d->job = *run->job;
    d->job.seed = run->seed;
    d->job.rounds = run->rounds;
    d->job.target_accuracy = run->target_accuracy;
    if (target && d->job.eval_every == 0)
        d->job.eval_every = 1;
}

static void stepped(void *self, uint32_t node, const struct elv_event *ev,
                    const struct elv_actions *did)
{
    struct elv_deploy *d = self;
    (void)ev, (void)did;
    if (node == d->server_node)
        elv_deploy_take_notes(d);
    else
        elv_deploy_client_stepped(d, node);
}

static enum elv_err build(struct elv_deploy *d, char *why)
{
    static const struct elv_eval_sums none;
    const struct elv_text name = {d->job.name, strlen(d->job.name)};
    const struct elv_sim_cfg world = {.seed = d->cfg.run.seed,
                                      .way = elv_wire_usual(name),
                                      .watch = {.self = d, .stepped = stepped},
                                      .gather = elv_deploy_gather(d)};
    enum elv_err err = elv_deploy_open_school(d);
    if (err != ELV_OK)
        return err;
    d->w = elv_sim_new(&world);
    err = elv_deploy_add_server(d, why);
    if (err == ELV_OK)
        err = elv_deploy_add_clients(d);
    if (err != ELV_OK)
        return err;
    const bool scorer = d->server_cfg.scorer != NULL && d->job.eval_on != ELV_EVAL_CLIENTS;
    elv_follow_init(&d->follow, &d->job, scorer, &none);
    elv_deploy_populate(d);
    return ELV_OK;
}

enum elv_err elv_deploy_new(struct elv_deploy **out, const struct elv_deploy_cfg *cfg, char *why)
{
    struct elv_deploy *d = elv_sim_alloc(sizeof *d);
    d->cfg = *cfg;
    d->world = cfg->run.world;
    d->learner = cfg->run.learner;
    d->sum.best_accuracy = -1.0;
    d->sum.score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    enum elv_err err = check(d, why);
    if (err != ELV_OK) {
        free(d);
        return ELV_ERR_ARG;
    }
    d->network = elv_lab_network_of(d->learner);
    d->split = elv_lab_network_split(d->learner);
    set_job(d);
    why[0] = '\0';
    err = build(d, why);
    if (err == ELV_OK) {
        *out = d;
        return ELV_OK;
    }
    if (why[0] == '\0')
        elv_param_refuse(why, elv_err_text(err));
    elv_deploy_free(d);
    return ELV_ERR_ARG;
}

void elv_deploy_free(struct elv_deploy *d)
{
    if (d == NULL)
        return;
    elv_sim_free(d->w);
    elv_sim_faults_free(d->faults);
    elv_deploy_free_server(d);
    elv_deploy_close_school(d);
    free(d->churn.gone);
    free(d->clients);
    free(d);
}

static elv_time_us horizon(const struct elv_deploy *d)
{
    const double us = d->world->horizon_s * 1e6;
    return us > 0.0 && us < 9e18 ? (elv_time_us)us : ELV_NEVER;
}

static enum elv_err end(struct elv_deploy *d)
{
    d->ended = true;
    elv_deploy_flush(d);
    if (d->err != ELV_OK)
        return d->err;
    return elv_sim_broken(d->w) != NULL ? ELV_ERR_ARG : ELV_OK;
}

void elv_deploy_stop(struct elv_deploy *d) { (void)end(d); }

enum elv_err elv_deploy_run(struct elv_deploy *d, elv_time_us until)
{
    const elv_time_us last = horizon(d);
    while (!d->ended && d->err == ELV_OK) {
        const elv_time_us at = elv_sim_next(d->w);
        const elv_time_us stop = until < last ? until : last;
        if (at > stop && at != ELV_NEVER) {
            elv_sim_run(d->w, stop); /* nothing happens but that time passes */
            if (stop == last)
                break;
            return ELV_ERR_BUSY;
        }
        if (!elv_sim_step(d->w))
            break;
    }
    return end(d);
}

elv_time_us elv_deploy_now(const struct elv_deploy *d) { return elv_sim_now(d->w); }

const float *elv_deploy_model(const struct elv_deploy *d)
{
    return d->server != NULL ? elv_server_model(d->server) : NULL;
}

struct elv_sim *elv_deploy_world(struct elv_deploy *d) { return d->w; }

void elv_deploy_client_bytes(const struct elv_deploy *d, size_t *up, size_t *down)
{
    *down = sizeof(struct elv_deploy_client) + elv_sim_node_bytes();
    *up = *down + d->client_len;
}
