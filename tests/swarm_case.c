/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/swarm_case.h"

#include <string.h>

#include "common/assert.h"

static void keep_round(void *self, const struct elv_lab_round *r)
{
    struct swarm_case *c = self;
    if (c->n_rounds < SWARM_KEPT)
        c->rounds[c->n_rounds] = *r;
    c->n_rounds++;
}

static void keep_event(void *self, const struct elv_lab_event *e)
{
    struct swarm_case *c = self;
    if (c->n_events < SWARM_KEPT)
        c->events[c->n_events] = *e;
    c->n_events++;
}

static void init(void *self, float *w)
{
    (void)self;
    memset(w, 0, SWARM_PARAMS * sizeof *w);
}

static uint32_t samples(void *self, uint32_t client)
{
    (void)self;
    return client;
}

static struct elv_eval_sums eval_of(float w)
{
    const uint32_t right = w > 0.0f ? (uint32_t)w : 0;
    return (struct elv_eval_sums){.n = 10,
                                  .loss = 10.0 * (10.0 - (double)w),
                                  .n_classes = 1,
                                  .support = {10},
                                  .predicted = {10},
                                  .correct = {right < 10 ? right : 10}};
}

static enum elv_err train(void *self, struct elv_lab_task *tasks, uint32_t n)
{
    struct swarm_case *c = self;
    c->n_trained += n;
    c->largest_batch = n > c->largest_batch ? n : c->largest_batch;
    for (uint32_t i = 0; i < n; i++) {
        struct elv_lab_task *t = &tasks[i];
        for (uint32_t k = 0; k < SWARM_PARAMS; k++)
            t->update[k] = (float)t->client - t->base[k];
        t->samples = t->seen = t->client;
        t->steps = 1;
        t->loss_sum = t->client;
        t->eval = c->holds_out ? eval_of(t->base[0]) : (struct elv_eval_sums){0};
    }
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const float *w, struct elv_lab_score *out)
{
    (void)self;
    *out = (struct elv_lab_score){.loss = 10.0 - (double)w[0], .accuracy = (double)w[0] / 10.0};
    return ELV_OK;
}

void swarm_case_init(struct swarm_case *c, const struct swarm_key *keys, uint32_t n_clients)
{
    *c = (struct swarm_case){.n_rounds = 0};
    elv_job_init(&c->job);
    for (; keys && keys->section; keys++) {
        const enum elv_err err =
            elv_job_set(&c->job, keys->section, keys->key, keys->value, 1, c->why);
        ELV_ASSERT(err == ELV_OK);
    }
    c->learner = (struct elv_lab_learner){.self = c, .gather_max = 1};
    c->cfg = (struct elv_swarm_cfg){
        .job = &c->job,
        .seed = 1,
        .world = &c->world,
        .n_clients = n_clients,
        .learner = &c->learner,
        .sink = {c, keep_round, keep_event},
    };
}

void swarm_case_learns(struct swarm_case *c, uint32_t gather_max)
{
    c->learner = (struct elv_lab_learner){
        .self = c,
        .n_params = SWARM_PARAMS,
        .bytes_down = 4 * SWARM_PARAMS,
        .gather_max = gather_max,
        .init = init,
        .samples = samples,
        .train = train,
        .evaluate = evaluate,
    };
    c->job.bound = 1024.0f;
}

struct elv_lab_summary swarm_case_run(struct swarm_case *c)
{
    struct elv_lab_summary sum;
    enum elv_err err = elv_swarm_new(&c->s, &c->cfg, c->why);
    ELV_ASSERT(err == ELV_OK);
    err = elv_swarm_run(c->s, ELV_NEVER);
    ELV_ASSERT(err == ELV_OK);
    elv_swarm_summary(c->s, &sum);
    return sum;
}

uint32_t swarm_case_count(const struct swarm_case *c, enum elv_lab_event_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_events && i < SWARM_KEPT; i++)
        n += c->events[i].kind == kind;
    return n;
}

void swarm_case_free(struct swarm_case *c)
{
    elv_swarm_free(c->s);
    c->s = NULL;
}
