/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trainer.h"

#include <float.h>
#include <string.h>

#include "common/arena.h"
#include "common/assert.h"
#include "common/exact.h"

static struct elv_local_cfg with_defaults(const struct elv_local_cfg *cfg)
{
    struct elv_local_cfg full = *cfg;
    if (full.arithmetic != ELV_ARITHMETIC_REFERENCE)
        full.arithmetic = ELV_ARITHMETIC_FAST;
    if (full.kernels == NULL)
        full.kernels = full.arithmetic == ELV_ARITHMETIC_REFERENCE ? elv_kernels_by_name("ref")
                                                                   : elv_kernels_best();
    if (full.examples == 0 && full.train != NULL)
        full.examples = full.train->count(full.train->self);
    return full;
}

static struct elv_nn_cfg plan_of(const struct elv_local_cfg *cfg)
{
    return (struct elv_nn_cfg){.model = cfg->model,
                               .kernels = cfg->kernels,
                               .batch = cfg->batch,
                               .momentum = cfg->momentum,
                               .inference = cfg->train == NULL};
}

/* A copy of its own: what `weights` came from need not be there any more. */
static bool keeps_home(const struct elv_local_cfg *cfg)
{
    return cfg->proximal && cfg->train != NULL;
}

static void *lay_out(struct elv_local *t, struct elv_arena *a, size_t plan_len)
{
    t->order = elv_arena_take(a, t->cfg.examples, sizeof *t->order);
    t->wanted = elv_arena_take(a, t->cfg.batch, sizeof *t->wanted);
    if (keeps_home(&t->cfg))
        t->home = elv_arena_take(a, t->cfg.model->n_params, sizeof *t->home);
    return elv_arena_take(a, plan_len, 1);
}

size_t elv_local_mem(const struct elv_local_cfg *cfg)
{
    struct elv_local t = {.cfg = with_defaults(cfg)};
    const struct elv_nn_cfg plan = plan_of(&t.cfg);
    const size_t plan_len = elv_nn_mem(&plan);
    struct elv_arena a = elv_arena_of(NULL, 0);
    lay_out(&t, &a, plan_len);
    return a.err == ELV_OK && plan_len > 0 ? a.used : 0;
}

static bool fits(const struct elv_model *m, const struct elv_feed *feed)
{
    if (feed == NULL)
        return true;
    uint32_t n_values = 0, n_classes = 0;
    feed->shape(feed->self, &n_values, &n_classes);
    return n_values == elv_shape_len(m->input) && n_classes <= m->n_classes;
}

enum elv_err elv_local_init(struct elv_local *t, const struct elv_local_cfg *cfg, void *mem,
                            size_t len)
{
    if (cfg->model == NULL || cfg->batch == 0 || (cfg->train == NULL && cfg->test == NULL))
        return ELV_ERR_ARG;
    if (!fits(cfg->model, cfg->train) || !fits(cfg->model, cfg->test))
        return ELV_ERR_MISMATCH;
    const size_t need = elv_local_mem(cfg);
    if (need == 0 || len < need)
        return ELV_ERR_SPACE;
    *t = (struct elv_local){.cfg = with_defaults(cfg)};
    const struct elv_nn_cfg plan = plan_of(&t->cfg);
    struct elv_arena a = elv_arena_of(mem, len);
    void *plan_mem = lay_out(t, &a, elv_nn_mem(&plan));
    ELV_ASSERT(a.err == ELV_OK && a.used == need);
    return elv_nn_init(&t->nn, &plan, plan_mem, elv_nn_mem(&plan));
}

/* What training and evaluation refuse alike. */
static enum elv_err refused(const struct elv_local *t, const struct elv_task *task, uint32_t n)
{
    if (task->arithmetic == ELV_ARITHMETIC_REFERENCE &&
        t->cfg.arithmetic != ELV_ARITHMETIC_REFERENCE)
        return ELV_ERR_UNSUPPORTED; /* the fast kernels end in other bits */
    return n == 0 ? ELV_ERR_MISSING : ELV_OK;
}

static void start(struct elv_local *t, const struct elv_task *task, uint32_t n, float *weights)
{
    t->task = *task;
    t->n = n;
    t->at = 0;
    t->epochs = 0;
    t->result = (struct elv_train_result){0};
    elv_nn_bind(&t->nn, weights, t->cfg.model->n_params);
}

static void shuffle(struct elv_local *t)
{
    elv_rng_shuffle(&t->rng, t->order, t->n);
    t->at = 0;
}

static enum elv_err begin(void *self, const struct elv_task *task, float *weights)
{
    struct elv_local *t = self;
    if (t->cfg.train == NULL)
        return ELV_ERR_UNSUPPORTED;
    const uint32_t n = t->cfg.train->count(t->cfg.train->self);
    const enum elv_err err = refused(t, task, n);
    if (err != ELV_OK)
        return err;
    if ((task->prox_mu != 0.0f && t->home == NULL) || (task->momentum != 0.0f && !t->cfg.momentum))
        return ELV_ERR_UNSUPPORTED;
    if (n > t->cfg.examples || task->batch == 0 || task->batch > t->cfg.batch ||
        (task->local_epochs == 0) == (task->local_steps == 0))
        return ELV_ERR_RANGE;
    if (!elv_finite_f32(task->rate) || !elv_finite_f32(task->momentum) ||
        !elv_finite_f32(task->decay) || !elv_finite_f32(task->prox_mu))
        return ELV_ERR_RANGE;

    start(t, task, n, weights);
    t->result.samples = n;
    t->rng = elv_rng_of((struct elv_rng_key){.seed = task->seed,
                                             .client = task->client,
                                             .round = task->assignment,
                                             .purpose = ELV_RNG_SHUFFLE});
    for (uint32_t i = 0; i < n; i++)
        t->order[i] = i;
    shuffle(t);
    elv_nn_rest(&t->nn);
    if (task->prox_mu != 0.0f)
        memcpy(t->home, weights, t->cfg.model->n_params * sizeof *t->home);
    t->doing = ELV_LOCAL_TRAINING;
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const struct elv_task *task, const float *weights)
{
    struct elv_local *t = self;
    if (t->cfg.test == NULL)
        return ELV_ERR_UNSUPPORTED;
    const uint32_t n = t->cfg.test->count(t->cfg.test->self);
    const enum elv_err err = refused(t, task, n);
    if (err != ELV_OK)
        return err;
    start(t, task, n, (float *)(uintptr_t)weights); /* a forward pass only reads them */
    const uint32_t n_classes = t->cfg.model->n_classes;
    t->result.eval.n_classes = n_classes <= ELV_CLASSES_MAX ? n_classes : 1;
    t->doing = ELV_LOCAL_EVALUATING;
    return ELV_OK;
}

/* One batch from a feed into the plan, labels checked. */
static enum elv_err fill(struct elv_local *t, const struct elv_feed *feed, const uint32_t *index,
                         uint32_t n)
{
    uint32_t *labels = elv_nn_labels(&t->nn, 0);
    const enum elv_err err = feed->get(feed->self, index, n, elv_nn_x(&t->nn, 0), labels);
    if (err != ELV_OK)
        return err;
    for (uint32_t i = 0; i < n; i++)
        if (labels[i] >= t->cfg.model->n_classes)
            return ELV_ERR_RANGE;
    elv_nn_set_rows(&t->nn, 0, n);
    return ELV_OK;
}

static enum elv_err forward(struct elv_local *t, double *loss)
{
    elv_nn_forward(&t->nn);
    elv_nn_loss(&t->nn);
    const enum elv_err err = t->cfg.kernels->sync();
    if (err != ELV_OK)
        return err;
    *loss = t->nn.loss[0];
    return *loss >= -DBL_MAX && *loss <= DBL_MAX ? ELV_OK : ELV_ERR_RANGE;
}

static bool trained_enough(const struct elv_local *t)
{
    return t->task.local_steps > 0 ? t->result.steps == t->task.local_steps
                                   : t->epochs == t->task.local_epochs;
}

/* The last step can spoil what every loss before it called healthy. */
static enum elv_err weights_are_finite(const struct elv_local *t)
{
    double norm2 = 0;
    t->cfg.kernels->norm2(&norm2, t->nn.params, t->cfg.model->n_params);
    const enum elv_err err = t->cfg.kernels->sync();
    if (err != ELV_OK)
        return err;
    return norm2 <= DBL_MAX ? ELV_OK : ELV_ERR_RANGE;
}

static enum elv_err train_batch(struct elv_local *t)
{
    const uint32_t left = t->n - t->at;
    const uint32_t rows = left < t->task.batch ? left : t->task.batch;
    enum elv_err err = fill(t, t->cfg.train, t->order + t->at, rows);
    if (err != ELV_OK)
        return err;
    double loss = 0;
    err = forward(t, &loss);
    if (err != ELV_OK)
        return err;
    const struct elv_nn_rates rates = {.rate = t->task.rate,
                                       .momentum = t->task.momentum,
                                       .decay = t->task.decay,
                                       .home = t->task.prox_mu != 0.0f ? t->home : NULL,
                                       .pull = t->task.prox_mu};
    elv_nn_backward(&t->nn, &rates);
    err = t->cfg.kernels->sync();
    if (err != ELV_OK)
        return err;

    t->result.loss_sum += loss;
    t->result.seen += rows;
    t->result.steps++;
    t->at += rows;
    if (t->at == t->n)
        t->epochs++;
    if (trained_enough(t))
        return weights_are_finite(t);
    if (t->at == t->n)
        shuffle(t);
    return ELV_ERR_BUSY;
}

/* Per class; more classes than the sums have room for are counted as one. */
static void count_guesses(struct elv_local *t, uint32_t rows)
{
    struct elv_eval_sums *e = &t->result.eval;
    const uint32_t *label = elv_nn_labels(&t->nn, 0), *guess = t->nn.guess;
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t truth = e->n_classes > 1 ? label[i] : 0;
        e->support[truth]++;
        e->predicted[e->n_classes > 1 ? guess[i] : 0]++;
        e->correct[truth] += guess[i] == label[i];
    }
}

static enum elv_err evaluate_batch(struct elv_local *t)
{
    const uint32_t left = t->n - t->at;
    const uint32_t rows = left < t->cfg.batch ? left : t->cfg.batch;
    for (uint32_t i = 0; i < rows; i++)
        t->wanted[i] = t->at + i;
    enum elv_err err = fill(t, t->cfg.test, t->wanted, rows);
    if (err != ELV_OK)
        return err;
    double loss = 0;
    err = forward(t, &loss);
    if (err != ELV_OK)
        return err;
    t->result.eval.loss += loss;
    t->result.eval.n += rows;
    count_guesses(t, rows);
    t->at += rows;
    return t->at == t->n ? ELV_OK : ELV_ERR_BUSY;
}

static enum elv_err run(void *self, uint32_t steps)
{
    struct elv_local *t = self;
    if (t->doing == ELV_LOCAL_IDLE)
        return ELV_ERR_ARG;
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i == 0 || (i < steps && err == ELV_ERR_BUSY); i++)
        err = t->doing == ELV_LOCAL_TRAINING ? train_batch(t) : evaluate_batch(t);
    if (err != ELV_ERR_BUSY)
        t->doing = ELV_LOCAL_IDLE;
    return err;
}

static const struct elv_train_result *result(const void *self)
{
    const struct elv_local *t = self;
    return &t->result;
}

static void abort_work(void *self)
{
    struct elv_local *t = self;
    t->doing = ELV_LOCAL_IDLE;
}

struct elv_trainer elv_local_trainer(struct elv_local *t)
{
    return (struct elv_trainer){.self = t,
                                .begin = begin,
                                .evaluate = evaluate,
                                .run = run,
                                .result = result,
                                .abort = abort_work};
}
