/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec_f32.h - coordinates as they are: little-endian binary32, 250 in a full chunk. */
#ifndef ELV_COMMON_CODEC_F32_H
#define ELV_COMMON_CODEC_F32_H

#include "codec.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct elv_codec elv_codec_f32;

#ifdef __cplusplus
}
#endif
#endif
