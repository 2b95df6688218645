/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_network.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ports/sim/lab/learn_local.h"
#include "ports/sim/lab/learn_score.h"
#include "ports/sim/lab/learn_steps.h"

/* Pieces of work in a call. The kernels take cohorts; the trainer trains its members one by one, so
 * a call gathers no more than what is worth keeping in a cache. */
enum { GATHER = 16 };

struct network {
    struct elv_lab_network_cfg cfg;
    struct elv_lab_split split;
    struct elv_lab_part train_part, test_part; /* of the client whose turn it is */
    struct elv_feed train_feed, test_feed;
    struct elv_lab_local *local;
    struct elv_lab_exam exam;
};

static void init(void *self, float *w)
{
    struct network *n = self;
    if (n->cfg.start != NULL)
        memcpy(w, n->cfg.start, n->cfg.job->model.n_shared * sizeof *w);
    else
        elv_lab_local_init(n->local, w);
}

static uint32_t samples(void *self, uint32_t client)
{
    return ((const struct network *)self)->split.n_train[client - 1];
}

static void effort(void *self, uint32_t client, struct elv_size size, uint32_t *steps,
                   uint32_t *seen)
{
    const struct elv_lab_steps s = elv_lab_steps_of(samples(self, client), size);
    *steps = s.steps;
    *seen = s.seen;
}

/* The feeds give this client's examples from now on. */
static void take_turn(struct network *n, uint32_t client)
{
    const struct elv_lab_split *s = &n->split;
    const uint32_t *index = s->index + s->first[client - 1];
    const uint32_t all = (uint32_t)(s->first[client] - s->first[client - 1]);
    const uint32_t trains = s->n_train[client - 1];
    n->train_part.index = index;
    n->train_part.n = trains;
    n->test_part.index = index + trains;
    n->test_part.n = all - trains;
}

static enum elv_err train(void *self, struct elv_lab_task *tasks, uint32_t n_tasks)
{
    struct network *n = self;
    for (uint32_t i = 0; i < n_tasks; i++) {
        take_turn(n, tasks[i].client);
        const enum elv_err err = elv_lab_local_work(n->local, &tasks[i]);
        if (err != ELV_OK)
            return err;
    }
    return ELV_OK;
}

static void decided(void *self, uint32_t client, enum elv_lab_fate fate, uint32_t version)
{
    elv_lab_local_decided(((struct network *)self)->local, client, fate, version);
}

static enum elv_err evaluate(void *self, const float *w, struct elv_lab_score *out)
{
    struct network *n = self;
    return elv_lab_exam_score(&n->exam, w, out);
}

static void free_all(void *self)
{
    struct network *n = self;
    elv_lab_local_free(n->local);
    elv_lab_split_free(&n->split);
    elv_lab_exam_close(&n->exam);
    free(n);
}

/* Making one. */

static enum elv_err fail(enum elv_err err, char why[ELV_JOB_ERROR_MAX], const char *text)
{
    struct elv_line line = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&line, text);
    return err;
}

static enum elv_err fits(const struct elv_model *m, const char *which, uint32_t n_values,
                         uint32_t n_classes, char *why)
{
    const bool values = n_values != elv_shape_len(m->input);
    if (!values && n_classes <= m->n_classes)
        return ELV_OK;
    struct elv_line line = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&line, which);
    elv_line_add(&line, " have ");
    elv_line_uint(&line, values ? n_values : n_classes);
    elv_line_add(&line, values ? " values, [model] input has " : " classes, the last layer has ");
    elv_line_uint(&line, values ? elv_shape_len(m->input) : m->n_classes);
    elv_line_add(&line, values ? "" : " outputs");
    return ELV_ERR_MISMATCH;
}

enum elv_err elv_lab_network_check(const struct elv_lab_network_cfg *cfg,
                                   char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_model *m = &cfg->job->model;
    uint32_t n_values, n_classes;
    const enum elv_err err =
        fits(m, "the training examples", cfg->train->n_values, cfg->train->n_classes, why);
    if (err != ELV_OK || cfg->test == NULL)
        return err;
    cfg->test->shape(cfg->test->self, &n_values, &n_classes);
    return fits(m, "the examples of the test set", n_values, n_classes, why);
}

static enum elv_err open_exam(struct network *n, char *why)
{
    const struct elv_lab_exam_cfg cfg = {.model = &n->cfg.job->model,
                                         .feed = n->cfg.test,
                                         .job = n->cfg.job,
                                         .kernels = n->cfg.kernels,
                                         .seed = n->cfg.seed};
    const enum elv_err err = elv_lab_exam_open(&n->exam, &cfg);
    if (err == ELV_ERR_MEMORY)
        return fail(err, why, "there is not enough memory for the test set");
    return err == ELV_OK ? ELV_OK : fail(err, why, "the test set is not what the model reads");
}

static enum elv_err open_local(struct network *n, char *why)
{
    n->train_part.data = n->test_part.data = n->cfg.train;
    n->train_feed = elv_lab_part_feed(&n->train_part);
    n->test_feed = elv_lab_part_feed(&n->test_part);
    const struct elv_lab_local_cfg cfg = {
        .model = &n->cfg.job->model,
        .job = n->cfg.job,
        .seed = n->cfg.seed,
        .n_clients = n->cfg.n_clients,
        .examples = n->split.most,
        .train = &n->train_feed,
        .test = n->cfg.job->holdout > 0.0f ? &n->test_feed : NULL,
        .squeeze = n->cfg.squeeze,
        .kernels = n->cfg.kernels,
    };
    const enum elv_err err = elv_lab_local_new(&n->local, &cfg);
    if (err == ELV_ERR_MEMORY)
        return fail(err, why, "there is not enough memory to train the model");
    return err == ELV_OK ? ELV_OK : fail(err, why, "the job's codec is not built in");
}

static enum elv_err open_all(struct network *n, char *why)
{
    const struct elv_lab_network_cfg *cfg = &n->cfg;
    enum elv_err err = elv_lab_network_check(cfg, why);
    if (err != ELV_OK)
        return err;
    const struct elv_lab_split_cfg split = {.data = cfg->train,
                                            .seed = cfg->seed,
                                            .n_clients = cfg->n_clients,
                                            .partition = cfg->job->partition,
                                            .owner = cfg->owner,
                                            .holdout = cfg->job->holdout};
    err = elv_lab_split_new(&n->split, &split, why);
    if (err == ELV_OK)
        err = open_local(n, why);
    if (err == ELV_OK)
        err = open_exam(n, why);
    return err;
}

enum elv_err elv_lab_network(struct elv_lab_learner *out, const struct elv_lab_network_cfg *cfg,
                             char why[ELV_JOB_ERROR_MAX])
{
    struct network *n = calloc(1, sizeof *n);
    if (n == NULL)
        return fail(ELV_ERR_MEMORY, why, "there is not enough memory to train the model");
    n->cfg = *cfg;
    const enum elv_err err = open_all(n, why);
    if (err != ELV_OK) {
        free_all(n);
        return err;
    }
    *out = (struct elv_lab_learner){.self = n,
                                    .n_params = cfg->job->model.n_shared,
                                    .bytes_down = elv_lab_local_bytes_down(n->local),
                                    .bytes_full = elv_lab_local_bytes_full(n->local),
                                    .gather_max = GATHER,
                                    .clients_evaluate = cfg->job->holdout > 0.0f,
                                    .init = init,
                                    .samples = samples,
                                    .effort = effort,
                                    .train = train,
                                    .decided = elv_lab_local_feeds_back(n->local) ? decided : NULL,
                                    .evaluate = evaluate,
                                    .free = free_all};
    return ELV_OK;
}

const struct elv_lab_split *elv_lab_network_split(const struct elv_lab_learner *l)
{
    return &((const struct network *)l->self)->split;
}

const struct elv_lab_network_cfg *elv_lab_network_of(const struct elv_lab_learner *l)
{
    return &((const struct network *)l->self)->cfg;
}
