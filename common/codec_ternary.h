/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_ternary.h - the largest coordinates as signs, all of one magnitude per chunk.
 *
 * The fraction of largest magnitude is coded, everything else is zero. A chunk's magnitude is the
 * mean of those it codes. What is left out is lost unless the sender keeps it for the next time
 * (error feedback).
 *
 * Source: Sattler, Wiedemann, Mueller, Samek, "Robust and Communication-Efficient Federated
 * Learning from Non-IID Data", IEEE TNNLS 2020 (arXiv:1903.02891): sparse ternary compression. */
#ifndef ELV_COMMON_CODEC_TERNARY_H
#define ELV_COMMON_CODEC_TERNARY_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_ternary;

#ifdef __cplusplus
}
#endif
#endif
