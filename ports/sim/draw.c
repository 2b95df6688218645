/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/draw.h"

#include "common/assert.h"
#include "common/exact.h"

/* Uniform in (0, 1]: a logarithm of it is always finite. */
static float unit(struct elv_rng *r) { return elv_rng_unit(r) + 0x1p-24f; }

/* No function of the C library: the same seed gives the same world on every machine. */
static elv_time_us on_top(const struct elv_sim_delay *d, struct elv_rng *r)
{
    const double spread = (double)d->spread_us;
    double extra = 0;
    float x;
    switch (d->shape) {
    case ELV_SIM_UNIFORM:
        return elv_sim_between(r, 0, d->spread_us);
    case ELV_SIM_EXPONENTIAL:
        extra = -spread * (double)elv_ln(unit(r));
        break;
    case ELV_SIM_LOGNORMAL:
        x = (float)d->sigma * elv_rng_normal(r);
        extra = spread * (double)elv_exp(x < 88.0f ? x : 88.0f);
        break;
    }
    const double year = 3.2e13; /* microseconds; keeps the conversion below defined */
    return (elv_time_us)(extra < year ? extra : year);
}

elv_time_us elv_sim_delay_draw(const struct elv_sim_delay *d, struct elv_rng *r)
{
    ELV_ASSERT(d->min_us >= 0 && d->spread_us >= 0);
    const elv_time_us t = d->min_us + on_top(d, r);
    return d->max_us > 0 && t > d->max_us ? d->max_us : t;
}

bool elv_sim_chance(struct elv_rng *r, uint32_t ppm) { return elv_rng_below(r, ELV_SIM_PPM) < ppm; }

elv_time_us elv_sim_between(struct elv_rng *r, elv_time_us low, elv_time_us high)
{
    ELV_ASSERT(0 <= low && low <= high);
    const uint64_t width = (uint64_t)(high - low) + 1;
    /* The bias of a 64-bit remainder over a span of hours is below 2^-27. */
    return low + (elv_time_us)(elv_rng_u64(r) % width);
}
