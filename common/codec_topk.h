/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_topk.h - the largest coordinates as eight-bit numbers, with one scale per chunk.
 *
 * The fraction of largest magnitude is coded, everything else is zero. A chunk's scale is that of
 * q8 over those it codes. What is left out is lost unless the sender keeps it for the next time
 * (error feedback).
 *
 * Source: Lin, Han, Mao, Wang, Dally, "Deep Gradient Compression: Reducing the Communication
 * Bandwidth for Distributed Training", ICLR 2018 (arXiv:1712.01887). */
#ifndef ELV_COMMON_CODEC_TOPK_H
#define ELV_COMMON_CODEC_TOPK_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_topk;

#ifdef __cplusplus
}
#endif
#endif
