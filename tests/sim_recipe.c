/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_recipe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/param.h"

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static double param(const struct elv_params *p, const char *name, double otherwise)
{
    return elv_param_get(p, name, otherwise);
}

static bool is_word(const struct elv_params *p, const char *name, const char *word)
{
    const char *const words[] = {word, NULL};
    return elv_param_find(p, name) != NULL && elv_param_word(p, name, words, -1) == 0;
}

void recipe_of(struct recipe *r, const struct elv_job *job)
{
    const struct elv_params *sync = &job->sync_params, *rule = &job->rule_params;
    *r = (struct recipe){.job = job, .alpha = 1.0, .unit = 1};
    if (is(job->sync, "asp") || is(job->sync, "ssp") || is(job->sync, "dssp") ||
        is(job->sync, "psp") || is(job->sync, "ebsp"))
        r->by = RECIPE_FLEET;
    if (is(job->sync, "fedasync")) {
        r->by = RECIPE_MIXES;
        r->alpha = param(sync, "alpha", 0.6);
    }
    if (is(job->sync, "fedbuff")) {
        r->by = is_word(sync, "normalise", "weights") ? RECIPE_USED : RECIPE_CLAIMED;
        r->buffer = r->unit = (uint32_t)param(sync, "buffer", 10.0);
    }
    r->stream =
        r->by == RECIPE_FLEET || r->by == RECIPE_MIXES || r->buffer > 0 || is(job->sync, "ebsp");
    r->staleness_max = (uint32_t)param(sync, "max_staleness", 0.0);
    r->by_effort = is(job->rule, "fednova");
    r->rate = (float)param(rule, "server_learning_rate", 1.0);
    r->beta = is(job->rule, "fedavgm") ? (float)param(rule, "server_momentum", 0.9) : 0.0f;
}

/* What is left of an update's worth after so many others. */
static double freshness(const struct recipe *r, uint32_t staleness)
{
    const struct elv_params *p = &r->job->sync_params;
    const double tau = staleness / r->unit;
    const bool falls = is(r->job->sync, "fedasync") || is(r->job->sync, "fedbuff");
    if (is_word(p, "staleness", "polynomial") || (falls && !elv_param_find(p, "staleness")))
        return pow(1.0 + tau, -param(p, "staleness_a", 0.5));
    if (is_word(p, "staleness", "exponential"))
        return exp(-param(p, "staleness_a", 0.1) * tau);
    if (is_word(p, "staleness", "hinge")) {
        const double over = tau - param(p, "staleness_b", 4.0);
        return over <= 0.0 ? 1.0 : 1.0 / (param(p, "staleness_a", 10.0) * over + 1.0);
    }
    return 1.0;
}

/* How far so many local steps go where the gradient is 1 all the way. */
static double effort(const struct recipe *r, uint32_t steps)
{
    const double rho = (double)r->job->momentum;
    const double mu = (double)r->job->learning_rate * (double)r->job->proximal;
    double v = 0.0, d = 0.0;
    if (!r->by_effort)
        return 1.0;
    for (uint32_t i = 0; i < steps; i++) {
        v = rho * v + 1.0 - mu * d;
        d += v;
    }
    return d >= 1.0 ? d : 1.0;
}

static double claim(const struct recipe *r, const struct elv_rec_decision *d)
{
    const double cap = (double)r->scales.weight_cap;
    const double c = r->job->weight == ELV_WEIGHT_UNIFORM ? 1.0
                     : r->job->weight == ELV_WEIGHT_SEEN  ? (double)d->seen
                                                          : (double)d->samples;
    return c < cap ? c : cap;
}

static double whole(const struct recipe *r, double weight)
{
    const double w = rint(ldexp(weight, r->scales.weight_bits));
    return w < 1.0 ? 1.0 : w;
}

bool recipe_worth(const struct recipe *r, const struct elv_rec_decision *d,
                  char why[RECIPE_WHY_MAX])
{
    const double factor = fmin(r->alpha * freshness(r, d->staleness), 1.0);
    const double weight = whole(r, claim(r, d) * d->factor / effort(r, d->steps));
    const bool fresh = r->staleness_max == 0 || d->staleness / r->unit <= r->staleness_max;
    if (!fresh || fabs(d->factor - factor) > 1e-5)
        snprintf(why, RECIPE_WHY_MAX, "I7: an update %u updates stale is worth %g, not %g",
                 d->staleness, d->factor, fresh ? factor : 0.0);
    else if (fabs((double)d->weight - weight) > 1e-9 * weight + 1.0)
        snprintf(why, RECIPE_WHY_MAX, "I4: an update of %u steps weighs %u, not %.0f", d->steps,
                 d->weight, weight);
    else
        return true;
    return false;
}

struct recipe_mix recipe_begin(const struct recipe *r, uint32_t n_params, bool stream)
{
    struct recipe_mix m = {.n_params = n_params, .left_least = 1.0, .left_most = 1.0};
    m.sum = calloc(n_params, sizeof *m.sum);
    const bool mixes = r->by == RECIPE_MIXES && stream;
    m.bases = mixes ? calloc(n_params, sizeof *m.bases) : NULL;
    if (m.sum == NULL || (m.bases == NULL && mixes))
        abort();
    return m;
}

void recipe_add(const struct recipe *r, struct recipe_mix *m, const struct elv_rec_decision *d,
                const float *update, const float *base)
{
    const double scale = ldexp(1.0, r->scales.value_bits), c = whole(r, claim(r, d));
    m->n++;
    m->weight += d->weight;
    m->share += (uint64_t)whole(r, claim(r, d) * d->factor);
    m->claims += (uint64_t)c;
    m->effort += c * effort(r, d->steps);
    m->left_most *= 1.0 - fmin(d->factor, r->alpha);
    m->left_least *= 1.0 - r->alpha; /* a restart takes for fresh what it finds */
    for (uint32_t i = 0; i < m->n_params; i++)
        m->sum[i] += d->weight * (int64_t)rint((double)update[i] * scale);
    for (uint32_t i = 0; i < m->n_params && m->bases != NULL; i++)
        m->bases[i] += d->weight * (double)base[i];
}

void recipe_end(struct recipe_mix *m)
{
    free(m->sum);
    free(m->bases);
}

/* The step that the contributors ask for; where the divisor is not on record, but for a factor. */
static double step(const struct recipe *r, const struct recipe_mix *m, const float *w, uint32_t i)
{
    const double sum = ldexp((double)m->sum[i], -r->scales.value_bits);
    if (m->bases != NULL)
        return (m->bases[i] + sum) / (double)m->weight - (double)w[i];
    if (r->by == RECIPE_MIXES)
        return sum / (double)m->weight;
    const double by = r->by == RECIPE_CLAIMED ? (double)m->claims : (double)m->share;
    const double fill = r->buffer > 0 ? (double)m->n / (double)r->buffer : 1.0;
    return fill * sum * (m->effort / (double)m->claims) / by;
}

/* Between what the factor may lie; read off the model where it is not certain. */
static void bounds(const struct recipe *r, const struct recipe_mix *m, bool certain, double *least,
                   double *most)
{
    *least = *most = 1.0;
    if (r->buffer > 0 && m->n > r->buffer)
        *least = (double)r->buffer / m->n; /* no more than all who were there, whoever they were */
    if (r->by == RECIPE_FLEET) {
        *least = 0.0;
        *most = (double)m->share / (double)m->claims; /* no less is divided by than was used */
    } else if (r->buffer > 0 && m->n > r->buffer) {
        *least = (double)r->buffer / m->n; /* one step, or as many as clients there fill buffers */
    } else if (r->by == RECIPE_MIXES) {
        *least = certain ? 1.0 - m->left_most : 0.0;
        *most = certain ? 1.0 - m->left_least : 1.0;
    }
}

/* It is read off the coordinate that should move most. `*error`: what rounding the model to single
 * precision may have added. Nothing is read where nothing should move. */
static void read_factor(const struct recipe *r, const struct recipe_mix *m, const float *w,
                        const float *v, const float *stored, double *factor, double *error)
{
    uint32_t far = 0;
    double most = 0.0;
    for (uint32_t i = 0; i < m->n_params; i++) {
        const double way = fabs(step(r, m, w, i));
        if (way > most) {
            most = way;
            far = i;
        }
    }
    if (most == 0.0)
        return;
    const double moved = ((double)stored[far] - (double)w[far]) / (double)r->rate;
    *factor = (moved - (double)r->beta * (double)v[far]) / step(r, m, w, far);
    *error = 1e-3 + 1e-6 * (1.0 + fabs((double)w[far])) / (double)r->rate / most;
}

bool recipe_check(const struct recipe *r, const struct recipe_mix *m, const float *w,
                  const float *v, const float *stored, float *v_next, bool certain,
                  char why[RECIPE_WHY_MAX])
{
    double least, most, error = 0.0;
    bounds(r, m, certain, &least, &most);
    double factor = least;
    if (least < most || r->by == RECIPE_MIXES)
        read_factor(r, m, w, v, stored, &factor, &error);
    if (!(factor >= least - error && factor <= most + error)) {
        snprintf(why, RECIPE_WHY_MAX, "%g times the step, not %g to %g", factor, least, most);
        return false;
    }
    for (uint32_t i = 0; i < m->n_params; i++) {
        const double way = factor * step(r, m, w, i);
        const double next = (double)r->beta * (double)v[i] + way;
        const double want = (double)w[i] + (double)r->rate * next;
        v_next[i] = (stored[i] - w[i]) / r->rate; /* so that rounding does not add up */
        if (fabs((double)stored[i] - want) > 1e-5 * (1.0 + fabs(want) + fabs(way))) {
            snprintf(why, RECIPE_WHY_MAX, "coordinate %u is %g, not %g", i, (double)stored[i],
                     want);
            return false;
        }
    }
    return true;
}
