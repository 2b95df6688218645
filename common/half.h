/* SPDX-License-Identifier: Apache-2.0 */
/* common/half.h - IEEE 754 binary16: the same bits on every machine.
 *
 * The conversion is done here, so no compiler or processor has to know the format. */
#ifndef ELV_COMMON_HALF_H
#define ELV_COMMON_HALF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_HALF_MAX 65504.0f

/* The nearest, ties to even; what is beyond ELV_HALF_MAX becomes that, with its sign. A NaN becomes
 * some number. */
uint16_t elv_half_of(float v);

/* Exact. `h` is finite. */
float elv_half_value(uint16_t h);

/* The same for [n] of them, in vectors. */
void elv_halves_of(uint16_t *h, const float *v, uint32_t n);
void elv_halves_value(float *v, const uint16_t *h, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
