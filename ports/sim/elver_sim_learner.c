/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_learner.h"

#include "common/text.h"
#include "ports/sim/lab/learn_logistic.h"
#include "ports/sim/lab/learn_network.h"
#include "ports/sim/lab/learn_quadratic.h"
#include "ports/zlib/squeeze.h"

static enum elv_err network(struct elv_sim_learner *l, const struct elv_sim_experiment *x,
                            const struct elv_sim_run *run, const struct elv_squeeze *squeeze,
                            char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_sim_variant *v = run->variant;
    const struct elv_lab_network_cfg cfg = {.job = &v->setup.job,
                                            .seed = run->outcome.seed,
                                            .n_clients = v->setup.world.world.clients,
                                            .train = v->inputs.train,
                                            .test = v->inputs.test != NULL ? &v->inputs.test->feed
                                                                           : NULL,
                                            .owner = v->inputs.owner,
                                            .start = v->inputs.start,
                                            .squeeze = squeeze,
                                            .kernels = x->kernels};
    return elv_lab_network(&l->learner, &cfg, why);
}

static enum elv_err quadratic(struct elv_sim_learner *l, const struct elv_sim_run *run)
{
    const struct elv_lab_setup *s = &run->variant->setup;
    const struct elv_lab_world *w = &s->world.world;
    const struct elv_lab_quadratic_cfg cfg = {.seed = run->outcome.seed,
                                              .dimensions = w->dimensions,
                                              .n_clients = w->clients,
                                              .samples = w->samples,
                                              .more_share = w->more_share,
                                              .more_factor = w->more_factor,
                                              .noise = w->noise,
                                              .loss_noise = w->loss_noise,
                                              .spread = w->spread,
                                              .momentum = (double)s->job.momentum,
                                              .weight_decay = (double)s->job.weight_decay,
                                              .proximal = (double)s->job.proximal};
    return elv_lab_quadratic(&l->learner, &cfg);
}

static enum elv_err logistic(struct elv_sim_learner *l, const struct elv_sim_experiment *x,
                             const struct elv_sim_run *run, const struct elv_squeeze *squeeze)
{
    const struct elv_lab_setup *s = &run->variant->setup;
    const struct elv_lab_world *w = &s->world.world;
    const struct elv_lab_logistic_cfg cfg = {.job = &s->job,
                                             .seed = run->outcome.seed,
                                             .n_clients = w->clients,
                                             .dimensions = w->dimensions,
                                             .samples = w->samples,
                                             .alpha = w->spread,
                                             .squeeze = squeeze,
                                             .kernels = x->kernels};
    return elv_lab_logistic(&l->learner, &cfg);
}

static enum elv_err make(struct elv_sim_learner *l, const struct elv_sim_experiment *x,
                         const struct elv_sim_run *run, char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_squeeze *squeeze = l->zlib != NULL ? &l->squeeze : NULL;
    switch (run->variant->setup.world.world.learning) {
    case ELV_LAB_NETWORK:
        return network(l, x, run, squeeze, why);
    case ELV_LAB_QUADRATIC:
        return quadratic(l, run);
    case ELV_LAB_LOGISTIC:
        return logistic(l, x, run, squeeze);
    case ELV_LAB_NOTHING:
        break;
    }
    return ELV_OK; /* no learner: the swarm knows what that means */
}

enum elv_err elv_sim_learner_make(struct elv_sim_learner *l, const struct elv_sim_experiment *x,
                                  const struct elv_sim_run *run, char why[ELV_JOB_ERROR_MAX])
{
    *l = (struct elv_sim_learner){0};
    why[0] = '\0';
    enum elv_err err = ELV_OK;
    if (run->variant->setup.job.deflate)
        err = elv_zlib_open(&l->zlib);
    if (err == ELV_OK && l->zlib != NULL)
        l->squeeze = elv_zlib_squeeze(l->zlib);
    if (err == ELV_OK)
        err = make(l, x, run, why);
    if (err == ELV_OK)
        return ELV_OK;
    elv_zlib_close(l->zlib);
    if (why[0] == '\0') {
        struct elv_line out = elv_line_of(why, ELV_JOB_ERROR_MAX);
        elv_line_add(&out, "what clients learn cannot be set up: ");
        elv_line_add(&out, elv_err_text(err));
    }
    return err;
}

void elv_sim_learner_free(struct elv_sim_learner *l)
{
    if (l->learner.free != NULL)
        l->learner.free(l->learner.self);
    elv_zlib_close(l->zlib);
}
