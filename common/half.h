/* SPDX-License-Identifier: Apache-2.0 */
/* common/half.h - IEEE 754 binary16, in integers: the same bits on every machine. */
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

#ifdef __cplusplus
}
#endif
#endif
