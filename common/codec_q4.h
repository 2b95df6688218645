/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_q4.h - four bits per coordinate and one scale per chunk; 1992 in a full chunk.
 *
 * Like q8 (common/codec_q8.h), option `stochastic` included, but with scale = a / 7 and q from -7
 * to 7 in two's complement, two to a byte, the first in the lower half. After an odd count the
 * upper half of the last byte is 0. The error is at most half a scale; below one when stochastic.
 */
#ifndef ELV_COMMON_CODEC_Q4_H
#define ELV_COMMON_CODEC_Q4_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_q4;

#ifdef __cplusplus
}
#endif
#endif
