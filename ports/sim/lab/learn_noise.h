/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_noise.h - many normal numbers at once, for models that cost next to nothing.
 *
 * The cheap models of learning spend most of their time on noise. Marsaglia's polar method gives
 * two normal numbers for each point it finds in the unit disc; here both are used, so a number
 * takes half of what elv_rng_normal takes. The same bits come out on every machine.
 *
 * Source: Marsaglia, Bray, "A Convenient Method for Generating Normal Variables", SIAM Review 1964.
 */
#ifndef ELV_PORTS_SIM_LAB_LEARN_NOISE_H
#define ELV_PORTS_SIM_LAB_LEARN_NOISE_H

#include "common/rng.h"

/* The next `n` standard normal numbers of the stream into `out`. */
void elv_lab_normals(struct elv_rng *r, float *out, uint32_t n);

#endif
