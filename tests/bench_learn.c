/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench_learn.c - what a piece of work costs in the cheap models of learning. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/codec.h"
#include "ports/sim/lab/learn_logistic.h"
#include "ports/sim/lab/learn_quadratic.h"

enum { TASKS = 16, PARAMS_MAX = 256 };

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

int main(void)
{
    struct elv_job job;
    struct elv_lab_learner q, l;
    elv_job_init(&job);
    job.up[0] = (struct elv_codec_choice){.id = ELV_CODEC_F32};
    job.n_up = 1;
    job.down = job.up[0];
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
    return 0;
}
