/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing interrupts a work once the world does it, so one trainer serves all clients. */
#include <stdlib.h>

#include "common/arena.h"
#include "ports/sim/lab/deploy_parts.h"
#include "ports/sim/queue.h"

enum { EVALUATION_BATCH = 32 }; /* when the task names none */

/* As client/builtin.c, but for feeds that differ from client to client. */
static enum elv_err fit(struct elv_deploy *d, uint32_t batch)
{
    struct elv_deploy_school *s = &d->school;
    const struct elv_job *job = &d->job;
    if (batch == s->batch)
        return ELV_OK;
    const bool reference = job->arithmetic == ELV_ARITHMETIC_REFERENCE;
    const struct elv_local_cfg plan = {.model = &job->model,
                                       .train = &s->train,
                                       .test = job->holdout > 0.0f ? &s->test : NULL,
                                       .kernels = reference ? NULL : d->network->kernels,
                                       .arithmetic = job->arithmetic,
                                       .batch = batch,
                                       .examples = d->split->most,
                                       .momentum = job->momentum != 0.0f,
                                       .proximal = job->proximal != 0.0f};
    const size_t len = elv_local_mem(&plan);
    s->batch = 0;
    if (len == 0)
        return ELV_ERR_SPACE;
    if (len > s->len) {
        free(s->mem);
        s->mem = aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
        s->len = s->mem != NULL ? len : 0;
    }
    if (s->mem == NULL)
        return ELV_ERR_SPACE;
    const enum elv_err err = elv_local_init(&s->trainer, &plan, s->mem, s->len);
    s->batch = err == ELV_OK ? batch : 0;
    return err;
}

static void take_turn(struct elv_deploy *d, const struct elv_deploy_client *c)
{
    struct elv_deploy_school *s = &d->school;
    const struct elv_lab_split *split = d->split;
    const uint32_t i = c->number - 1, trains = split->n_train[i];
    const uint32_t *index = split->index + split->first[i];
    const uint32_t all = (uint32_t)(split->first[i + 1] - split->first[i]);
    s->train_part = (struct elv_lab_part){d->network->train, index, trains};
    s->test_part = (struct elv_lab_part){d->network->train, index + trains, all - trains};
}

enum elv_err elv_deploy_open_school(struct elv_deploy *d)
{
    struct elv_deploy_school *s = &d->school;
    s->train_part.data = s->test_part.data = d->network->train;
    s->train = elv_lab_part_feed(&s->train_part);
    s->test = elv_lab_part_feed(&s->test_part);
    return fit(d, d->job.batch_size > 0 ? d->job.batch_size : 1);
}

void elv_deploy_close_school(struct elv_deploy *d)
{
    free(d->school.mem);
    free(d->cohort);
    free(d->cohort_err);
}

/* The trainer of one client. */

static uint32_t samples(const void *self)
{
    const struct elv_deploy_client *c = self;
    return c->deploy->split->n_train[c->number - 1];
}

static enum elv_err begin(void *self, const struct elv_task *task, float *weights)
{
    const struct elv_deploy_client *c = self;
    struct elv_local *t = &c->deploy->school.trainer;
    take_turn(c->deploy, c);
    const enum elv_err err = fit(c->deploy, task->batch);
    return err == ELV_OK ? elv_local_trainer(t).begin(t, task, weights) : err;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *weights)
{
    const struct elv_deploy_client *c = self;
    struct elv_local *t = &c->deploy->school.trainer;
    take_turn(c->deploy, c);
    const enum elv_err err = fit(c->deploy, task->batch > 0 ? task->batch : EVALUATION_BATCH);
    return err == ELV_OK ? elv_local_trainer(t).evaluate(t, task, weights) : err;
}

static enum elv_err run(void *self, uint32_t steps)
{
    struct elv_local *t = &((struct elv_deploy_client *)self)->deploy->school.trainer;
    return elv_local_trainer(t).run(t, steps);
}

static const struct elv_train_result *result(const void *self)
{
    return &((const struct elv_deploy_client *)self)->deploy->school.trainer.result;
}

/* Whatever it did is over already, and by now the trainer may be another client's. */
static void abort_work(void *self) { (void)self; }

struct elv_trainer elv_deploy_trainer(struct elv_deploy_client *c)
{
    return (struct elv_trainer){.self = c,
                                .samples = samples,
                                .begin = begin,
                                .evaluate = evaluate,
                                .run = run,
                                .result = result,
                                .abort = abort_work};
}

/* Cohorts. */

static void reserve(struct elv_deploy *d, uint32_t n)
{
    if (n <= d->cohort_cap)
        return;
    d->cohort_cap = n > 2 * d->cohort_cap ? n : 2 * d->cohort_cap;
    d->cohort = elv_sim_grow(d->cohort, d->cohort_cap, sizeof(struct elv_client_train *));
    d->cohort_err = elv_sim_grow(d->cohort_err, d->cohort_cap, sizeof *d->cohort_err);
}

static void train_together(void *self, struct elv_sim_piece *pieces, uint32_t n)
{
    struct elv_deploy *d = self;
    const struct elv_deploy_cohort *how = &d->cfg.cohort;
    reserve(d, n);
    for (uint32_t i = 0; i < n; i++) {
        d->cohort[i] = pieces[i].work->input;
        d->cohort_err[i] = ELV_ERR_UNSUPPORTED;
    }
    how->train(how->self, d->cohort, d->cohort_err, n);
    for (uint32_t i = 0; i < n; i++)
        pieces[i].err = d->cohort_err[i];
}

struct elv_sim_gather elv_deploy_gather(struct elv_deploy *d)
{
    const struct elv_deploy_cohort *how = &d->cfg.cohort;
    return (struct elv_sim_gather){.kind = how->at_start ? 0 : ELV_CLIENT_TRAIN,
                                   .most = how->most > 0 ? how->most : 1,
                                   .self = d,
                                   .work = how->train != NULL ? train_together : NULL};
}
