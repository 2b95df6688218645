/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/draw_text.h - random numbers as a world file writes them.
 *
 *     constant 1.2
 *     uniform 1 1.5               between the two
 *     exponential SHIFT MEAN      SHIFT and an exponential part of that mean
 *     lognormal MEDIAN SIGMA
 *     half-normal MIN SPREAD      MIN and the magnitude of a normal number times SPREAD
 *     classes 0.5:1 0.5:5         SHARE:VALUE, up to eight; the shares add up to 1
 *
 * Where seconds are meant, a time such as 50ms may stand for a number. Pure. */
#ifndef ELV_PORTS_SIM_LAB_DRAW_TEXT_H
#define ELV_PORTS_SIM_LAB_DRAW_TEXT_H

#include "common/text.h"
#include "ports/sim/lab/world.h"
#include "server/value.h"

#define ELV_LAB_DRAW_FORMS                                                                         \
    "constant C, uniform LOW HIGH, exponential SHIFT MEAN, lognormal MEDIAN SIGMA, half-normal "   \
    "MIN SPREAD or classes SHARE:VALUE ..., shares adding up to 1"

/* ELV_ERR_FORMAT: none of the forms; ELV_ERR_RANGE: a number is not in [least, most], the ends of
 * uniform are in the wrong order, or shares do not add up to 1. `d` is then as it was. */
enum elv_err elv_lab_draw_read(struct elv_lab_draw *d, struct elv_text text, bool seconds,
                               double least, double most);

/* As elv_lab_draw_read reads it; times as numbers. */
void elv_lab_draw_print(const struct elv_lab_draw *d, struct elv_line *out);

#endif
