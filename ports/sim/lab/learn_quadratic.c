/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_quadratic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/exact.h"
#include "ports/sim/lab/learn_noise.h"
#include "ports/sim/lab/learn_steps.h"

enum { GATHER = 64, NUMBER_MAX = 1000000 };

struct quadratic {
    struct elv_lab_quadratic_cfg cfg;
    uint32_t d;
    uint64_t bytes; /* of a vector that travels */
    /* [d] each */
    float *curvature;
    float *best;     /* the mean of the clients' optima */
    float *optimum;  /* the client's at work */
    float *w;        /* its weights */
    float *velocity; /* and their velocity */
    float *noise;
};

/* What one gradient is made of. */
struct local {
    const float *base;
    float rate, momentum, decay, mu;
    float sigma; /* of the noise in one coordinate */
};

static void draw_optimum(struct quadratic *q, uint32_t client, float *out)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = q->cfg.seed, .client = client, .purpose = ELV_RNG_PARTITION});
    elv_lab_normals(&r, out, q->d);
    for (uint32_t i = 0; i < q->d; i++)
        out[i] *= (float)q->cfg.spread;
}

static void init(void *self, float *w)
{
    const struct quadratic *q = self;
    for (uint32_t i = 0; i < q->d; i++)
        w[i] = 1.0f;
}

static uint32_t samples_of(const struct quadratic *q, uint32_t client)
{
    const struct elv_lab_quadratic_cfg *c = &q->cfg;
    if (c->more_factor == 0 || (double)client > c->more_share * (double)c->n_clients)
        return c->samples;
    const double n = (double)c->samples * c->more_factor;
    return n < 4e9 ? (uint32_t)n : UINT32_MAX;
}

static uint32_t samples(void *self, uint32_t client) { return samples_of(self, client); }

/* Every step draws a whole batch: there is no data that could run out. */
static struct elv_lab_steps steps_of(const struct quadratic *q, uint32_t client,
                                     struct elv_size size)
{
    struct elv_lab_steps s = elv_lab_steps_of(samples_of(q, client), size);
    const uint64_t seen = (uint64_t)s.steps * size.batch;
    s.seen = seen < UINT32_MAX ? (uint32_t)seen : UINT32_MAX;
    return s;
}

static void effort(void *self, uint32_t client, struct elv_size size, uint32_t *steps,
                   uint32_t *seen)
{
    const struct elv_lab_steps s = steps_of(self, client, size);
    *steps = s.steps;
    *seen = s.seen;
}

/* F at `w` for an optimum: half the weighted sum of squares. */
static double loss_at(const struct quadratic *q, const float *w, const float *optimum)
{
    double sum = 0;
    for (uint32_t i = 0; i < q->d; i++) {
        const double away = (double)w[i] - (double)optimum[i];
        sum += (double)q->curvature[i] * away * away;
    }
    return sum / 2;
}

static void step(struct quadratic *q, const struct local *l)
{
    for (uint32_t i = 0; i < q->d; i++) {
        const float away = q->w[i] - q->optimum[i];
        const float gradient = q->curvature[i] * away + l->sigma * q->noise[i];
        const float pull = l->mu * (q->w[i] - l->base[i]) + l->decay * q->w[i];
        q->velocity[i] = l->momentum * q->velocity[i] + (gradient + pull);
        q->w[i] -= l->rate * q->velocity[i];
    }
}

static double reported(const struct quadratic *q, struct elv_rng *r, double loss)
{
    float error = 0;
    if (q->cfg.loss_noise > 0)
        elv_lab_normals(r, &error, 1);
    return loss * (1 + q->cfg.loss_noise * (double)error);
}

static struct local local_of(const struct quadratic *q, const struct elv_lab_task *t)
{
    return (struct local){
        .base = t->base,
        .rate = t->learning_rate,
        .momentum = (float)q->cfg.momentum,
        .decay = (float)q->cfg.weight_decay,
        .mu = (float)q->cfg.proximal,
        .sigma = (float)(q->cfg.noise / sqrt((double)t->size.batch * (double)q->d)),
    };
}

/* The work itself, from base to `q->w`; returns the sum of the losses reported per step. */
static double descend(struct quadratic *q, const struct elv_lab_task *t, uint32_t steps)
{
    const struct local l = local_of(q, t);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = q->cfg.seed,
                                                       .client = t->client,
                                                       .round = t->assignment,
                                                       .purpose = ELV_RNG_NOISE});
    if (q->cfg.spread > 0)
        draw_optimum(q, t->client, q->optimum);
    memcpy(q->w, t->base, q->d * sizeof *q->w);
    memset(q->velocity, 0, q->d * sizeof *q->velocity);
    double losses = 0;
    for (uint32_t i = 0; i < steps; i++) {
        losses += reported(q, &r, loss_at(q, q->w, q->optimum));
        if (q->cfg.noise > 0)
            elv_lab_normals(&r, q->noise, q->d);
        step(q, &l);
    }
    return losses;
}

static void train_one(struct quadratic *q, struct elv_lab_task *t)
{
    const struct elv_lab_steps work = steps_of(q, t->client, t->size);
    t->samples = samples_of(q, t->client);
    t->seen = work.seen;
    t->steps = work.steps;
    t->bytes_up = q->bytes;
    t->eval = (struct elv_eval_sums){0};
    t->loss_sum = descend(q, t, work.steps) * (double)t->size.batch;
    double norm2 = 0;
    for (uint32_t i = 0; i < q->d; i++) {
        t->update[i] = q->w[i] - t->base[i];
        norm2 += (double)t->update[i] * (double)t->update[i];
    }
    const bool healthy = elv_finite_f64(t->loss_sum) && elv_finite_f64(norm2);
    t->err = work.steps > 0 && healthy ? ELV_OK : ELV_ERR_RANGE;
}

static enum elv_err train(void *self, struct elv_lab_task *tasks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        train_one(self, &tasks[i]);
    return ELV_OK;
}

static enum elv_err evaluate(void *self, const float *w, struct elv_lab_score *out)
{
    const struct quadratic *q = self;
    *out = (struct elv_lab_score){.loss = loss_at(q, w, q->best), .accuracy = -1};
    return ELV_OK;
}

static void free_all(void *self)
{
    struct quadratic *q = self;
    free(q->curvature);
    free(q);
}

static enum elv_err find_best(struct quadratic *q)
{
    double *sum = calloc(q->d, sizeof *sum);
    if (sum == NULL)
        return ELV_ERR_MEMORY;
    for (uint32_t c = 1; c <= q->cfg.n_clients; c++) {
        draw_optimum(q, c, q->optimum);
        for (uint32_t i = 0; i < q->d; i++)
            sum[i] += (double)q->optimum[i];
    }
    for (uint32_t i = 0; i < q->d; i++)
        q->best[i] = (float)(sum[i] / (double)q->cfg.n_clients);
    free(sum);
    return ELV_OK;
}

static void set_curvature(struct quadratic *q)
{
    double power = 1;
    for (uint32_t i = 0; i < q->d; i++) {
        q->curvature[i] = (float)(power + 0.05);
        power *= 0.9;
    }
}

static bool sane(const struct elv_lab_quadratic_cfg *c)
{
    const double at[] = {c->noise,        c->loss_noise, c->spread,     c->momentum,
                         c->weight_decay, c->proximal,   c->more_share, c->more_factor};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        if (!(at[i] >= 0 && at[i] <= NUMBER_MAX))
            return false;
    return c->dimensions <= ELV_LAB_QUADRATIC_DIMENSIONS_MAX &&
           (c->spread == 0 || c->n_clients > 0);
}

/* One block for all vectors, zeros: the optima where there is no spread. */
static enum elv_err lay_out(struct quadratic *q)
{
    float *at = calloc((size_t)q->d * 6, sizeof *at);
    if (at == NULL)
        return ELV_ERR_MEMORY;
    float **const parts[] = {&q->curvature, &q->best, &q->optimum, &q->w, &q->velocity, &q->noise};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        *parts[i] = at + i * q->d;
    set_curvature(q);
    return q->cfg.spread > 0 ? find_best(q) : ELV_OK;
}

enum elv_err elv_lab_quadratic(struct elv_lab_learner *out, const struct elv_lab_quadratic_cfg *cfg)
{
    if (!sane(cfg))
        return ELV_ERR_ARG;
    struct quadratic *q = calloc(1, sizeof *q);
    if (q == NULL)
        return ELV_ERR_MEMORY;
    q->cfg = *cfg;
    q->cfg.samples = cfg->samples > 0 ? cfg->samples : 1;
    q->d = cfg->dimensions > 0 ? cfg->dimensions : ELV_LAB_QUADRATIC_DIMENSIONS;
    q->bytes = elv_lab_bytes_f32(q->d);
    const enum elv_err err = lay_out(q);
    if (err != ELV_OK) {
        free_all(q);
        return err;
    }
    *out = (struct elv_lab_learner){.self = q,
                                    .n_params = q->d,
                                    .bytes_down = q->bytes,
                                    .gather_max = GATHER,
                                    .init = init,
                                    .samples = samples,
                                    .effort = effort,
                                    .train = train,
                                    .evaluate = evaluate,
                                    .free = free_all};
    return ELV_OK;
}

const float *elv_lab_quadratic_optimum(const struct elv_lab_learner *l)
{
    return ((const struct quadratic *)l->self)->best;
}
