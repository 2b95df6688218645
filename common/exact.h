/* SPDX-License-Identifier: Apache-2.0 */
/* common/exact.h - elementary functions with the same bits on every machine.
 *
 * The C library's differ from system to system in the last place. These are single IEEE additions,
 * multiplications and divisions in a fixed order; files that use them are compiled without
 * contraction. */
#ifndef ELV_COMMON_EXACT_H
#define ELV_COMMON_EXACT_H

#include <float.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Neither infinite nor a NaN. */
static inline bool elv_finite_f32(float v) { return v >= -FLT_MAX && v <= FLT_MAX; }
static inline bool elv_finite_f64(double v) { return v >= -DBL_MAX && v <= DBL_MAX; }

/* Natural logarithm of a normal positive number; within 3 units in the last place. Other arguments
 * give a meaningless number, but a NaN stays one and infinity gives infinity. */
float elv_ln(float x);

/* e^x for x <= 88; 0 below -87. Within 3 units in the last place. A NaN stays one. */
float elv_exp(float x);

/* To the nearest integer, ties to even, for any number. */
float elv_rint(float x);

#ifdef __cplusplus
}
#endif
#endif
