/* SPDX-License-Identifier: Apache-2.0 */
#include "server/test_set.h"

#include <string.h>

#include "common/arena.h"
#include "common/assert.h"
#include "common/model.h"

#define BATCH 256u

static struct elv_nn_cfg plan_of(const struct elv_test_set_cfg *cfg)
{
    return (struct elv_nn_cfg){.model = cfg->model,
                               .kernels = cfg->kernels,
                               .batch = cfg->batch == 0 ? BATCH : cfg->batch,
                               .inference = true};
}

static size_t lay_out(struct elv_test_set *t, const struct elv_test_set_cfg *cfg,
                      struct elv_arena *a, void **plan, size_t *plan_len)
{
    const struct elv_nn_cfg nn = plan_of(cfg);
    *plan_len = elv_nn_mem(&nn);
    if (*plan_len == 0)
        return 0;
    *plan = elv_arena_take(a, 1, *plan_len);
    t->index = elv_arena_take(a, nn.batch, sizeof *t->index);
    if (cfg->model->n_shared != cfg->model->n_params)
        t->flat = elv_arena_take(a, cfg->model->n_params, sizeof *t->flat);
    return a->err == ELV_OK ? a->used : 0;
}

size_t elv_test_set_mem(const struct elv_test_set_cfg *cfg)
{
    struct elv_test_set unused;
    struct elv_arena counting = elv_arena_of(NULL, 0);
    void *plan;
    size_t plan_len;
    return lay_out(&unused, cfg, &counting, &plan, &plan_len);
}

enum elv_err elv_test_set_init(struct elv_test_set *t, const struct elv_test_set_cfg *cfg,
                               void *mem, size_t len)
{
    uint32_t n_values, n_classes;
    cfg->feed->shape(cfg->feed->self, &n_values, &n_classes);
    if (n_values != elv_shape_len(cfg->model->input) || n_classes > cfg->model->n_classes)
        return ELV_ERR_MISMATCH;
    if (cfg->feed->count(cfg->feed->self) == 0)
        return ELV_ERR_MISSING;
    struct elv_arena a = elv_arena_of(mem, len);
    void *plan;
    size_t plan_len;
    memset(t, 0, sizeof *t);
    t->cfg = *cfg;
    if (lay_out(t, cfg, &a, &plan, &plan_len) == 0)
        return ELV_ERR_SPACE;
    if (t->flat != NULL)
        elv_model_init_params(cfg->model, cfg->seed, t->flat);
    const struct elv_nn_cfg nn = plan_of(cfg);
    return elv_nn_init(&t->nn, &nn, plan, plan_len);
}

static void begin(void *self, const float *w)
{
    struct elv_test_set *t = self;
    if (t->flat != NULL)
        elv_model_scatter(t->cfg.model, t->flat, 0, t->cfg.model->n_shared, w);
    /* Only going backward writes to parameters, and this plan cannot. */
    elv_nn_bind(&t->nn, t->flat != NULL ? t->flat : (float *)w, t->cfg.model->n_params);
    t->at = 0;
    t->n = t->cfg.feed->count(t->cfg.feed->self);
    memset(&t->sums, 0, sizeof t->sums);
    /* One row for all where the sums have no room for each. */
    t->sums.n_classes = t->cfg.model->n_classes <= ELV_CLASSES_MAX ? t->cfg.model->n_classes : 1;
}

static enum elv_err score_batch(struct elv_test_set *t)
{
    const uint32_t left = t->n - t->at;
    const uint32_t rows = left < t->nn.cfg.batch ? left : t->nn.cfg.batch;
    uint32_t *labels = elv_nn_labels(&t->nn, 0);
    for (uint32_t i = 0; i < rows; i++)
        t->index[i] = t->at + i;
    const enum elv_err err =
        t->cfg.feed->get(t->cfg.feed->self, t->index, rows, elv_nn_x(&t->nn, 0), labels);
    if (err != ELV_OK)
        return err;
    for (uint32_t i = 0; i < rows; i++)
        if (labels[i] >= t->cfg.model->n_classes)
            return ELV_ERR_RANGE;
    elv_nn_set_rows(&t->nn, 0, rows);
    elv_nn_forward(&t->nn);
    elv_nn_loss(&t->nn);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t truth = t->sums.n_classes > 1 ? labels[i] : 0;
        t->sums.support[truth]++;
        t->sums.predicted[t->sums.n_classes > 1 ? t->nn.guess[i] : 0]++;
        t->sums.correct[truth] += labels[i] == t->nn.guess[i];
    }
    t->sums.n += rows;
    t->sums.loss += t->nn.loss[0];
    t->at += rows;
    return ELV_OK;
}

static enum elv_err run(void *self, uint32_t budget)
{
    struct elv_test_set *t = self;
    ELV_ASSERT(budget > 0);
    for (uint32_t i = 0; i < budget && t->at < t->n; i++) {
        const enum elv_err err = score_batch(t);
        if (err != ELV_OK)
            return err;
    }
    return t->at < t->n ? ELV_ERR_BUSY : ELV_OK;
}

static void sums(void *self, struct elv_eval_sums *out)
{
    const struct elv_test_set *t = self;
    *out = t->sums;
}

struct elv_scorer elv_test_set_scorer(struct elv_test_set *t)
{
    return (struct elv_scorer){.self = t, .begin = begin, .run = run, .sums = sums};
}
