/* SPDX-License-Identifier: Apache-2.0 */
#include "server/gain.h"

#include <math.h>

#include "common/assert.h"

static void recent_add(struct elv_recent *r, uint32_t depth, double value)
{
    r->at[r->next] = value;
    r->next = (r->next + 1) % depth;
    r->n = r->n < depth ? r->n + 1 : depth;
}

double elv_recent_mean(const struct elv_recent *r)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < r->n; i++)
        sum += r->at[i];
    return r->n > 0 ? sum / r->n : 0.0;
}

void elv_gain_init(struct elv_gain *g, uint32_t depth)
{
    ELV_ASSERT(depth >= 1 && depth <= ELV_GAIN_DEPTH_MAX);
    *g = (struct elv_gain){.depth = depth, .loss_last = NAN, .loss_before = NAN, .loss_first = NAN};
}

void elv_gain_add(struct elv_gain *g, const struct elv_sync_commit *c)
{
    const double unit = c->rate * c->rate; /* an update is -rate * gradient */
    if (!(unit > 0.0))
        return;
    const double m = c->n_effective, step = c->mean_norm2 / unit;
    if (m > 1.0)
        recent_add(&g->variance, g->depth, (c->norm2 / unit - step) / (1.0 - 1.0 / m));
    const double v = elv_recent_mean(&g->variance);
    const double norm = step > v / m ? step - v / m : 0.0;
    const double drop = c->loss - g->loss_last;
    if (drop == drop && g->rate > 0.0 && g->step_last > 0.0) {
        const double l = 2.0 * (drop + g->rate * g->norm_last) / (g->rate * g->rate * g->step_last);
        recent_add(&g->smoothness, g->depth, l > 0.0 ? l : 0.0);
    }
    recent_add(&g->norm, g->depth, norm);
    if (c->loss == c->loss) {
        g->loss_first = g->loss.n > 0 ? g->loss_first : c->loss;
        recent_add(&g->loss, g->depth, c->loss);
    }
    g->rate = c->rate;
    g->norm_last = norm;
    g->step_last = step;
    g->loss_before = g->loss_last;
    g->loss_last = c->loss;
}

bool elv_gain_is_known(const struct elv_gain *g)
{
    return g->variance.n > 0 && g->norm.n > 0 && g->smoothness.n > 0;
}

double elv_gain_of(const struct elv_gain *g, double k)
{
    const double bend = elv_recent_mean(&g->smoothness) * g->rate * g->rate / 2.0;
    return (g->rate - bend) * elv_recent_mean(&g->norm) - bend * elv_recent_mean(&g->variance) / k;
}

bool elv_gain_rose(const struct elv_gain *g, double factor)
{
    return g->loss_last > factor * g->loss_before;
}
