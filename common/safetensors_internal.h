/* SPDX-License-Identifier: Apache-2.0 */
/* common/safetensors_internal.h - what writing and reading model files share. */
#ifndef ELV_COMMON_SAFETENSORS_INTERNAL_H
#define ELV_COMMON_SAFETENSORS_INTERNAL_H

#include "safetensors.h"

/* A tensor's sides: out x in, out x in x height x width, or out alone for a bias. Returns how many.
 */
uint32_t elv_tensor_sides(const struct elv_layer *l, bool bias, uint32_t side[4]);

#endif
