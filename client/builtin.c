/* SPDX-License-Identifier: Apache-2.0 */
#include "client/builtin.h"

enum { EVALUATION_BATCH = 32 }; /* when the task names none and memory allows */

static struct elv_local_cfg plan_for(const struct elv_builtin *b, const struct elv_manifest *m,
                                     const struct elv_model *model, uint32_t batch)
{
    const bool reference = m->arithmetic == ELV_ARITHMETIC_REFERENCE;
    return (struct elv_local_cfg){.model = model,
                                  .train = b->cfg.train,
                                  .test = b->cfg.test,
                                  .kernels = reference ? NULL : b->cfg.kernels,
                                  .arithmetic = m->arithmetic,
                                  .batch = batch,
                                  .momentum = m->momentum != 0.0f,
                                  .proximal = m->proximal != 0.0f};
}

static enum elv_err prepare_feed(const struct elv_feed *feed, const struct elv_manifest *m)
{
    return feed == NULL || feed->prepare == NULL ? ELV_OK : feed->prepare(feed->self, m);
}

static enum elv_err prepare_feeds(const struct elv_builtin *b, const struct elv_manifest *m)
{
    const enum elv_err err = prepare_feed(b->cfg.train, m);
    return err == ELV_OK ? prepare_feed(b->cfg.test, m) : err;
}

/* How many examples there are decides the size of the batch order, and the manifest decides how
 * many there are; so the feeds are prepared here too. */
static size_t mem(void *self, const struct elv_manifest *m, const struct elv_model *model,
                  uint32_t batch)
{
    const struct elv_builtin *b = self;
    if (prepare_feeds(b, m) != ELV_OK)
        return 0;
    const struct elv_local_cfg plan = plan_for(b, m, model, batch);
    return elv_local_mem(&plan);
}

/* Cuts the memory for this batch size, unless it is cut so already. */
static enum elv_err fit(struct elv_builtin *b, uint32_t batch)
{
    if (b->plan.model == NULL)
        return ELV_ERR_ARG;
    if (batch == 0)
        return ELV_ERR_RANGE;
    if (batch == b->plan.batch)
        return ELV_OK;
    struct elv_local_cfg plan = b->plan;
    plan.batch = batch;
    const enum elv_err err = elv_local_init(&b->local, &plan, b->mem, b->len);
    b->plan.batch = err == ELV_OK ? batch : 0;
    return err;
}

static enum elv_err prepare(void *self, const struct elv_manifest *m, const struct elv_model *model,
                            void *memory, size_t len)
{
    struct elv_builtin *b = self;
    b->plan.model = NULL;
    const enum elv_err err = prepare_feeds(b, m);
    if (err != ELV_OK)
        return err;
    b->model = *model;
    b->mem = memory;
    b->len = len;
    b->plan = plan_for(b, m, &b->model, 0);
    return fit(b, 1);
}

static uint32_t samples(const void *self)
{
    const struct elv_builtin *b = self;
    return b->cfg.train == NULL ? 0 : b->cfg.train->count(b->cfg.train->self);
}

static enum elv_err begin(void *self, const struct elv_task *task, float *weights)
{
    struct elv_builtin *b = self;
    const enum elv_err err = fit(b, task->batch);
    return err == ELV_OK ? elv_local_trainer(&b->local).begin(&b->local, task, weights) : err;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *weights)
{
    struct elv_builtin *b = self;
    enum elv_err err = fit(b, task->batch > 0 ? task->batch : EVALUATION_BATCH);
    if (err == ELV_ERR_SPACE && task->batch == 0)
        err = fit(b, 1);
    return err == ELV_OK ? elv_local_trainer(&b->local).evaluate(&b->local, task, weights) : err;
}

static enum elv_err run(void *self, uint32_t steps)
{
    struct elv_builtin *b = self;
    return elv_local_trainer(&b->local).run(&b->local, steps);
}

static const struct elv_train_result *result(const void *self)
{
    const struct elv_builtin *b = self;
    return &b->local.result;
}

static void abort_work(void *self)
{
    struct elv_builtin *b = self;
    elv_local_trainer(&b->local).abort(&b->local);
}

struct elv_trainer elv_builtin_trainer(struct elv_builtin *b, const struct elv_builtin_cfg *cfg)
{
    *b = (struct elv_builtin){.cfg = *cfg};
    return (struct elv_trainer){.self = b,
                                .mem = mem,
                                .prepare = prepare,
                                .samples = samples,
                                .begin = begin,
                                .evaluate = evaluate,
                                .run = run,
                                .result = result,
                                .abort = abort_work};
}
