/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_learn.c - what a piece of work costs in the models of learning. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/codec.h"
#include "ports/sim/lab/learn_logistic.h"
#include "ports/sim/lab/learn_network.h"
#include "ports/sim/lab/learn_quadratic.h"

enum { TASKS = 16, PARAMS_MAX = 256, CLIENTS = 10, EXAMPLES = 6000, VALUES = 784 };

/* Of this process: a learner is one thread and waits for nothing. */
static double now(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Microseconds per piece of work, over a second or so; clients take turns. */
static double cost(struct elv_lab_learner *l, struct elv_size size)
{
    static float base[PARAMS_MAX], update[TASKS][PARAMS_MAX];
    struct elv_lab_task tasks[TASKS];
    uint32_t n = 0;
    l->init(l->self, base);
    const double began = now();
    double took = 0;
    for (; took < 0.5; took = now() - began) {
        for (uint32_t call = 0; call < 16; call++) {
            for (uint32_t i = 0; i < TASKS; i++, n++)
                tasks[i] = (struct elv_lab_task){.client = 1 + n % 1000,
                                                 .assignment = 1 + n / 1000,
                                                 .base = base,
                                                 .size = size,
                                                 .learning_rate = 0.1f,
                                                 .update = update[i]};
            if (l->train(l->self, tasks, TASKS) != ELV_OK || tasks[0].err != ELV_OK)
                exit(1);
        }
    }
    return took / n * 1e6;
}

static void report(const char *name, double figure, double budget)
{
    printf("bench %s %.3f us/task ref budget %g ratio %.2f\n", name, figure, budget,
           budget / figure);
}

/* Examples as large as images of clothes, made up. */
static uint32_t count(void *self) { return *(uint32_t *)self; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = 10;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    (void)self;
    for (uint32_t i = 0; i < n; i++) {
        y[i] = index[i] * 7 % 10;
        for (uint32_t k = 0; k < VALUES; k++)
            x[(size_t)i * VALUES + k] = (float)((index[i] * 31 + k * (y[i] + 1)) % 64) / 64;
    }
    return ELV_OK;
}

static void make_mlp(struct elv_job *job)
{
    const struct elv_model_text text = {
        .input = {(const uint8_t *)"784x1x1", 7},
        .layers = {(const uint8_t *)"dense 200 relu, dense 10", 24},
    };
    job->up[0] = (struct elv_codec_choice){.id = ELV_CODEC_Q8};
    if (elv_model_parse(&job->model, text, NULL) != ELV_OK)
        exit(1);
}

/* Training, encoding and decoding, against an epoch of the same kernels and nothing around it. */
static double bare_epoch(const struct elv_job *job, struct elv_feed *feed)
{
    struct elv_local local;
    const struct elv_local_cfg cfg = {
        .model = &job->model, .train = feed, .batch = 32, .arithmetic = ELV_ARITHMETIC_FAST};
    const size_t len = elv_local_mem(&cfg);
    void *mem = aligned_alloc(64, (len + 63) / 64 * 64);
    float *w = calloc(job->model.n_params, sizeof *w);
    if (mem == NULL || w == NULL || elv_local_init(&local, &cfg, mem, len) != ELV_OK)
        exit(1);
    elv_model_init_params(&job->model, 1, w);
    const struct elv_trainer t = elv_local_trainer(&local);
    const struct elv_task task = {.seed = 1, .local_epochs = 1, .batch = 32, .rate = 0.05f};
    const double began = now();
    if (t.begin(t.self, &task, w) != ELV_OK || t.run(t.self, UINT32_MAX) != ELV_OK)
        exit(1);
    const double took = now() - began;
    free(mem);
    free(w);
    return took / EXAMPLES * 1e6;
}

static void bench_network(struct elv_job job)
{
    uint32_t n = EXAMPLES;
    struct elv_feed feed = {.self = &n, .count = count, .shape = shape, .get = get};
    struct elv_lab_data data;
    struct elv_lab_learner l;
    char why[ELV_JOB_ERROR_MAX];
    make_mlp(&job);
    if (elv_lab_data_open(&data, &feed) != ELV_OK)
        exit(1);
    const struct elv_lab_network_cfg cfg = {
        .job = &job, .seed = 1, .n_clients = CLIENTS, .train = &data};
    if (elv_lab_network(&l, &cfg, why) != ELV_OK)
        exit(1);
    float *base = calloc(l.n_params, sizeof *base), *update = calloc(l.n_params, sizeof *update);
    if (base == NULL || update == NULL)
        exit(1);
    l.init(l.self, base);
    const double began = now();
    for (uint32_t c = 1; c <= CLIENTS; c++) {
        struct elv_lab_task t = {.client = c,
                                 .assignment = 1,
                                 .base = base,
                                 .size = {.local_epochs = 1, .batch = 32},
                                 .learning_rate = 0.05f,
                                 .update = update};
        if (l.train(l.self, &t, 1) != ELV_OK || t.err != ELV_OK)
            exit(1);
    }
    const double each = (now() - began) / EXAMPLES * 1e6, bare = bare_epoch(&job, &feed);
    printf("bench learn_network %.2f us/example ref trainer %.2f ratio %.2f\n", each, bare,
           bare / each);
    free(base);
    free(update);
    l.free(l.self);
    elv_lab_data_close(&data);
}

int main(void)
{
    struct elv_job job;
    struct elv_lab_learner q, l;
    elv_job_init(&job);
    job.up[0] = (struct elv_codec_choice){.id = ELV_CODEC_F32};
    job.n_up = 1;
    job.down = job.up[0];
    job.arithmetic = ELV_ARITHMETIC_FAST;
    job.bound = 8;
    const struct elv_lab_quadratic_cfg quadratic = {
        .seed = 1, .n_clients = 1000, .noise = 12, .loss_noise = 0.002};
    const struct elv_lab_logistic_cfg logistic = {
        .job = &job, .seed = 1, .n_clients = 1000, .alpha = 0.5};
    if (elv_lab_quadratic(&q, &quadratic) != ELV_OK || elv_lab_logistic(&l, &logistic) != ELV_OK)
        return 1;
    report("learn_quadratic", cost(&q, (struct elv_size){.local_steps = 1, .batch = 64}), 2);
    report("learn_logistic_step", cost(&l, (struct elv_size){.local_steps = 1, .batch = 16}), 50);
    report("learn_logistic_epoch", cost(&l, (struct elv_size){.local_epochs = 1, .batch = 16}),
           250);
    q.free(q.self);
    l.free(l.self);
    bench_network(job);
    return 0;
}
