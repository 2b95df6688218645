/* SPDX-License-Identifier: Apache-2.0 */
/* client/pack.h - between coordinates and chunks as they travel, deflated or not.
 *
 * A chunk of a sparse codec covers a hundred times the coordinates of a dense one, so what arrives
 * is read a window of values at a time. Works in scratch memory of the caller, one block for both
 * directions. Not for two threads. */
#ifndef ELV_CLIENT_PACK_H
#define ELV_CLIENT_PACK_H

#include "../common/codec.h"
#include "../common/port.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_PACK_VALUES ELV_DECODE_MIN /* a window; a payload fits, too */

struct elv_pack {
    const struct elv_squeeze *squeeze; /* borrowed; NULL: chunks neither are nor may be deflated */
    bool deflate;                      /* senders may */
    float *values;                     /* f32 [ELV_PACK_VALUES] */
    uint8_t *bytes;                    /* [ELV_CHUNK_PAYLOAD_MAX] */
};

/* Which chunk of which body is expected. */
struct elv_chunk_want {
    enum elv_body_kind kind;
    uint8_t codec;
    uint32_t index;
    const uint8_t *tag; /* [ELV_CHUNK_TAG_LEN] */
};

/* Checks that `in` is the chunk expected, and no more; `c` views `in`. ELV_ERR_MISMATCH: it is one
 * of another body or place; else what `elv_chunk_decode` says. */
enum elv_err elv_chunk_expect(struct elv_bytes in, const struct elv_chunk_want *want,
                              struct elv_chunk *c);

/* A chunk being read. Nothing else may use the scratch memory until it is read to its end or given
 * up. */
struct elv_unpacking {
    const struct elv_pack *pack;
    struct elv_decoder decoder;
    uint32_t at; /* the coordinate after the window */
};

/* Begins to read `c`, whose payload is borrowed. ELV_ERR_UNSUPPORTED: deflated, and there is
 * nothing to inflate with, or a codec of another build; ELV_ERR_FORMAT, ELV_ERR_RANGE,
 * ELV_ERR_SPACE: no payload of that codec, or it inflates to more than a payload. */
enum elv_err elv_unpack_begin(struct elv_unpacking *u, const struct elv_pack *p,
                              const struct elv_chunk *c);
/* The next `*n` coordinates from `*first` on into `pack->values`. ELV_ERR_BUSY: more follow;
 * ELV_OK: these are the last; ELV_ERR_FORMAT, ELV_ERR_RANGE: as the codec says. */
enum elv_err elv_unpack_next(struct elv_unpacking *u, uint32_t *first, uint32_t *n);

/* One chunk of `v` [n] from coordinate `first` on, as it travels: `c` gives kind, codec, index,
 * first and tag, and is completed. It is deflated when that is allowed and makes it smaller. */
enum elv_err elv_pack(const struct elv_pack *p, const float *v, uint32_t n,
                      const struct elv_codec_arg *arg, struct elv_chunk *c,
                      uint8_t out[ELV_CHUNK_MAX], size_t *len);

#ifdef __cplusplus
}
#endif
#endif
