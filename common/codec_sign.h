/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_sign.h - one bit per coordinate and one magnitude per chunk; 7968 in a full chunk.
 *
 * The magnitude is the mean of those of the chunk, which of all single magnitudes leaves the least
 * squared error. The lowest bit of a byte comes first; set: the value is below zero (or -0). Bits
 * after the last value are 0. The mean is computed in binary64: value i of the chunk is added in
 * lane i mod 8, then the lanes are in order, and the mean is rounded to binary32. Magnitudes below
 * 2^-100 count as 0 in it, and a mean below that is written as 0, and then all bits, so that
 * machines that flush subnormal values to zero give the same bytes.
 *
 * A sign alone is biased: without error feedback it may not converge at all. Source: Karimireddy,
 * Rebjock, Stich, Jaggi, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes",
 * ICML 2019. */
#ifndef ELV_COMMON_CODEC_SIGN_H
#define ELV_COMMON_CODEC_SIGN_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_sign;

#ifdef __cplusplus
}
#endif
#endif
