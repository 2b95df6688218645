/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_rotate.h - 1 to 4 bits per coordinate, after a random rotation.
 *
 * Blocks of coordinates get random signs and go through a Hadamard transform. What comes out is
 * close to normally distributed whatever went in, so one table of levels fits every block: those of
 * Lloyd and Max for the standard normal distribution. Nothing has to be remembered from one update
 * to the next, which is why this is the codec for devices without memory for a residual.
 *
 * The number after the name is the bits per coordinate, its whole part. The scale of a block is the
 * one of least error; with the option `unbiased` it is the one whose error is zero on average over
 * the seeds: larger by a factor of 1 / (1 - error), and so is the error. That holds exactly for
 * a rotation of all directions alike; with this one a vector of few large coordinates keeps a bias,
 * small beside its error.
 *
 * Sources: Suresh, Yu, Kumar, McMahan, "Distributed Mean Estimation with Limited Communication",
 * ICML 2017, for the rotation; Vargaftik et al., "DRIVE: One-bit Distributed Mean Estimation",
 * NeurIPS 2021, and "EDEN: Communication-Efficient and Robust Distributed Mean Estimation for
 * Federated Learning", ICML 2022, for levels and scales; Max, "Quantizing for Minimum Distortion",
 * IRE Transactions on Information Theory 1960, and Lloyd, "Least Squares Quantization in PCM", IEEE
 * Transactions on Information Theory 1982, for the levels. */
#ifndef ELV_COMMON_CODEC_ROTATE_H
#define ELV_COMMON_CODEC_ROTATE_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_rotate;

/* The positive levels for `bits` in 1..4, ascending, [2^(bits - 1)], and the 2^(bits - 1) - 1
 * thresholds between them. For tests: the tables are constants. */
const float *elv_rotate_levels(uint32_t bits);
const float *elv_rotate_thresholds(uint32_t bits);

#ifdef __cplusplus
}
#endif
#endif
