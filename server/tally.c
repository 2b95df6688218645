/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tally.h"

#include <math.h>

void elv_tally_add(struct elv_tally *t, const struct elv_scales *scales,
                   const struct elv_tally_item *item)
{
    const bool known = item->factor > 0.0;
    const double u = (double)item->weight;
    const uint32_t claim =
        known ? elv_weight_of(scales, item->claim, 1.0) : item->weight; /* of schema 1 */
    t->n++;
    t->weight += item->weight;
    t->weight2 += u * u;
    t->share += known ? elv_weight_of(scales, item->claim, item->factor) : item->weight;
    t->claim += claim;
    t->effort += (double)claim * item->effort;
    if (known) {
        t->normed += item->weight;
        t->norm2 += u * item->norm2;
    }
    t->rate += item->rate * (double)item->steps;
    t->staleness += item->staleness;
    t->seen += item->seen;
    t->loss_sum += item->loss_sum;
}

double elv_tally_gain(const struct elv_tally *t, const struct elv_scales *scales,
                      const struct elv_sync_scale *scale, uint64_t fleet)
{
    uint64_t by = t->share;
    if (scale->mixes) /* models have no effort */
        return scale->step * elv_mean_gain(scales, t->weight);
    if (scale->by == ELV_SYNC_BY_CLAIMED)
        by = t->claim;
    else if (scale->by == ELV_SYNC_BY_FLEET)
        by = fleet > t->claim ? fleet : t->claim;
    const double effort = t->effort / (double)t->claim; /* exactly 1 where the rule knows none */
    return ldexp(scale->step * effort / (double)by, -scales->value_bits);
}

double elv_tally_loss(const struct elv_tally *t)
{
    return t->seen > 0 ? t->loss_sum / (double)t->seen : (double)NAN;
}

double elv_tally_staleness(const struct elv_tally *t)
{
    return t->n > 0 ? (double)t->staleness / (double)t->n : 0.0;
}

void elv_tally_commit(const struct elv_tally *t, struct elv_sync_commit *c)
{
    const double weight = (double)t->weight;
    c->loss = elv_tally_loss(t);
    c->norm2 = t->normed > 0 ? t->norm2 / (double)t->normed : 0.0;
    c->n_effective = t->n > 0 ? weight * weight / t->weight2 : 0.0;
    c->rate = t->n > 0 ? t->rate / (double)t->n : 0.0;
}
