/* SPDX-License-Identifier: Apache-2.0 */
#include "server/gain.h"

#include <math.h>

#include "common/assert.h"

static void add(struct elv_gain *g, struct elv_recent *r, double value)
{
    r->at[r->next] = value;
    r->next = (r->next + 1) % g->depth;
    r->n = r->n < g->depth ? r->n + 1 : g->depth;
}

double elv_recent_mean(const struct elv_recent *r)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += r->at[i];
    return r->n > 0 ? sum / r->n : 0.0;
}

static double not_below_0(double x) { return x > 0.0 ? x : 0.0; }

void elv_gain_init(struct elv_gain *g, uint32_t depth)
{
    ELV_ASSERT(depth >= 1 && depth <= ELV_GAIN_DEPTH_MAX);
    *g = (struct elv_gain){.depth = depth, .loss_first = NAN, .loss_last = NAN, .loss_before = NAN};
}

/* Equates the fall of the loss that the last step brought with what the bound says of it, where
 * ||mean g||^2 stands for N + V / k. */
static void learn_smoothness(struct elv_gain *g, double loss)
{
    const double square = g->rate * g->rate * g->step_last;
    const double rise = loss - g->loss_last;
    if (square > 0.0 && !isnan(rise))
        add(g, &g->smoothness, not_below_0(2.0 * (rise + g->rate * g->norm_last) / square));
}

static void learn_loss(struct elv_gain *g, double loss)
{
    g->loss_before = g->loss_last;
    g->loss_last = loss;
    if (isnan(loss))
        return;
    if (isnan(g->loss_first))
        g->loss_first = loss;
    add(g, &g->loss, loss);
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

void elv_gain_add(struct elv_gain *g, const struct elv_sync_commit *c, struct elv_gain_work work)
{
    const double unit = c->rate * c->rate; /* an update is about -rate * gradient */
    const double m = c->n_effective;
    if (work.steps <= 1)
        learn_smoothness(g, c->loss);
    learn_loss(g, c->loss);
    g->rate = 0.0;
    if (!(unit > 0.0) || !(m >= 1.0) || !isfinite(c->norm2 / unit))
        return;
    const double step = c->mean_norm2 / unit;
    if (m > 1.01) /* one weight among many says nothing of how they differ */
        add(g, &g->variance, not_below_0((c->norm2 / unit - step) / (1.0 - 1.0 / m)));
    const struct elv_sync_round *r = &c->round;
    const double uneven = r->n_got > m ? r->n_got / m : 1.0;
    const uint32_t n = larger(larger(r->n_joined, r->n_asked), larger(r->n_got, 1));
    g->settled = work.covered / n;
    g->norm_last =
        not_below_0(step - elv_recent_mean(&g->variance) * (1.0 / m - uneven * g->settled));
    g->step_last = step;
    g->rate = c->rate;
    add(g, &g->norm, g->norm_last);
    add(g, &g->uneven, uneven);
}

bool elv_gain_is_known(const struct elv_gain *g) { return g->variance.n > 0 && g->rate > 0.0; }

double elv_gain_of(const struct elv_gain *g, uint32_t k)
{
    const double l = g->smoothness.n > 0 ? elv_recent_mean(&g->smoothness)
                     : g->rate > 0.0     ? 1.0 / g->rate
                                         : 0.0;
    const double bend = l * g->rate * g->rate / 2.0;
    const double left = not_below_0(1.0 / k - g->settled); /* there may be more clients by now */
    const double noise = elv_recent_mean(&g->variance) * elv_recent_mean(&g->uneven) * left;
    return (g->rate - bend) * elv_recent_mean(&g->norm) - bend * noise;
}

bool elv_gain_rose(const struct elv_gain *g, double factor)
{
    return g->loss_last > factor * g->loss_before;
}

double elv_gain_fall(const struct elv_gain *g)
{
    const double now = elv_recent_mean(&g->loss);
    return now > 0.0 && g->loss_first > 0.0 ? g->loss_first / now : 1.0;
}
