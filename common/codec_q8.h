/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_q8.h - eight bits per coordinate and one scale per chunk; 996 in a full chunk.
 *
 * With `a` the largest magnitude of the chunk, scale = a / 127 rounded once to binary32, and
 * q = value / scale rounded once to binary32 and then to the nearest integer, ties to even. A scale
 * below 2^-100 is written as 0 and so are its coordinates: no value involved is subnormal then, and
 * machines that flush those to zero give the same bytes. The error is at most half a scale.
 *
 * Option `stochastic`: q is rounded at random instead, so that its expected value is the value (to
 * 2^-24 of a scale), from the seed and the coordinate's number; the error is below one scale.
 * Decoders need not know. Source: Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD: Communication-
 * Efficient SGD via Gradient Quantization and Encoding", NIPS 2017; there the scale is a norm. */
#ifndef ELV_COMMON_CODEC_Q8_H
#define ELV_COMMON_CODEC_Q8_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_q8;

#ifdef __cplusplus
}
#endif
#endif
