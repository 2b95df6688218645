/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/draw.h - what the simulated world leaves to chance, drawn from seeded streams. */
#ifndef ELV_PORTS_SIM_DRAW_H
#define ELV_PORTS_SIM_DRAW_H

#include <stdbool.h>

#include "common/node.h"
#include "common/rng.h"

#define ELV_SIM_PPM 1000000u /* chances are given in a million */

enum elv_sim_shape {
    ELV_SIM_UNIFORM,     /* min .. min + spread, both included */
    ELV_SIM_EXPONENTIAL, /* min + exponential of mean `spread`: the usual model of stragglers */
    ELV_SIM_LOGNORMAL,   /* min + log-normal of median `spread` and shape `sigma` */
};

/* A random duration. All zero: no time at all. */
struct elv_sim_delay {
    enum elv_sim_shape shape;
    elv_time_us min_us;
    elv_time_us spread_us;
    double sigma;
    elv_time_us max_us; /* never longer than this; 0: no limit */
};

elv_time_us elv_sim_delay_draw(const struct elv_sim_delay *d, struct elv_rng *r);

/* True `ppm` times in a million. Draws one word, whatever `ppm` is, so that changing one chance
 * does not shift what follows. */
bool elv_sim_chance(struct elv_rng *r, uint32_t ppm);

/* Uniform in [low, high]; 0 <= low <= high. */
elv_time_us elv_sim_between(struct elv_rng *r, elv_time_us low, elv_time_us high);

#endif
