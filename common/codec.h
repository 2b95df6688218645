/* SPDX-License-Identifier: Apache-2.0 */
/* common/codec.h - how coordinates become a chunk's payload.
 *
 * Encoders are pure functions of (vector, seed, index), so any chunk can be made again, in any
 * order, on any machine, with the same bytes. A codec is a file of its own and a line in codec.c's
 * list. Codec numbers are part of the wire: add, never reuse. */
#ifndef ELV_COMMON_CODEC_H
#define ELV_COMMON_CODEC_H

#include "chunk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum elv_codec_id {
    ELV_CODEC_F32 = 1, /* little-endian binary32, as it is */
    ELV_CODEC_Q8 = 2,  /* f32 scale, then one int8 per coordinate: value = scale * q */
};

struct elv_codec_arg { /* what the encoder may depend on besides the vector */
    uint64_t seed;     /* per body; only for codecs that round at random */
    float param;       /* the job's word after the codec's name, else 0 */
};

struct elv_codec {
    uint8_t id;
    const char *name;           /* in job files */
    float param_min, param_max; /* of the word after the name; both 0: there is none */

    /* An upper bound on the number of chunks of `n` coordinates; 0 when it passes UINT32_MAX. */
    uint32_t (*chunks_max)(uint32_t n, const struct elv_codec_arg *arg);

    /* Encodes v[first..] into at most `cap` bytes, as many coordinates as fit but none past `n`;
     * at least one. `v` f32 [n], finite. `*count` coordinates were taken, `*len` bytes written. */
    enum elv_err (*encode)(const float *v, uint32_t n, uint32_t first, uint32_t index,
                           const struct elv_codec_arg *arg, uint8_t *out, size_t cap, size_t *len,
                           uint32_t *count);

    /* Where chunk `index` starts, for codecs whose ranges do not depend on the values; NULL for the
     * others, whose chunks are made in order. */
    uint32_t (*first_of)(uint32_t index);

    /* `out` f32 [count]. ELV_ERR_FORMAT: length and count disagree; ELV_ERR_RANGE: not finite. */
    enum elv_err (*decode)(struct elv_bytes payload, uint32_t count, float *out);
};

/* NULL when there is no such codec. */
const struct elv_codec *elv_codec_by_id(uint8_t id);
const struct elv_codec *elv_codec_by_name(const char *name, size_t len);
size_t elv_codec_count(void);
const struct elv_codec *elv_codec_at(size_t i); /* tests walk this list */

#ifdef __cplusplus
}
#endif
#endif
