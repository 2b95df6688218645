/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_f16.h - binary16, little-endian; 500 in a full chunk.
 *
 * Rounded to the nearest, ties to even, subnormal values included; the conversion is done here, so
 * no compiler or processor has to know the format. A magnitude beyond 65504 becomes 65504, never
 * infinite: an encoder cannot refuse a vector, and error feedback carries on what was cut off.
 * Decoding is exact; an infinity or NaN is refused.
 *
 * Source: IEEE 754-2019, 3.6. */
#ifndef ELV_COMMON_CODEC_F16_H
#define ELV_COMMON_CODEC_F16_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_f16;

#ifdef __cplusplus
}
#endif
#endif
