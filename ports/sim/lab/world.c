/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/world.h"

#include <math.h>

#include "common/exact.h"

/* Uniform in (0, 1]: a logarithm of it is always finite. */
static float unit(struct elv_rng *r) { return elv_rng_unit(r) + 0x1p-24f; }

static double pick(const struct elv_lab_draw *d, struct elv_rng *r)
{
    double left = (double)elv_rng_unit(r);
    uint32_t i = 0;
    while (i + 1 < d->n_classes && left >= d->share[i])
        left -= d->share[i++];
    return d->value[i];
}

bool elv_lab_draw_is_set(const struct elv_lab_draw *d)
{
    return d->shape != ELV_LAB_CONSTANT || d->a > 0.0;
}

/* No function of the C library: the same seed gives the same world on every machine. */
double elv_lab_draw(const struct elv_lab_draw *d, struct elv_rng *r)
{
    double v = d->a;
    switch (d->shape) {
    case ELV_LAB_CONSTANT:
        break;
    case ELV_LAB_UNIFORM:
        v = d->a + (d->b - d->a) * (double)elv_rng_unit(r);
        break;
    case ELV_LAB_EXPONENTIAL:
        v = d->a - d->b * (double)elv_ln(unit(r));
        break;
    case ELV_LAB_LOGNORMAL: {
        const float x = (float)d->b * elv_rng_normal(r);
        v = d->a * (double)elv_exp(x < 88.0f ? x : 88.0f);
        break;
    }
    case ELV_LAB_HALF_NORMAL:
        v = d->a + d->b * fabs((double)elv_rng_normal(r));
        break;
    case ELV_LAB_CLASSES:
        v = pick(d, r);
        break;
    }
    return v > 0.0 ? v : 0.0;
}
