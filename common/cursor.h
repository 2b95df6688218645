/* SPDX-License-Identifier: Apache-2.0 */
/* common/cursor.h - bounds-checked little-endian reading and writing.
 *
 * Failure is sticky: after the first one, reads yield zero, writes do nothing, and `err` keeps the
 * cause. A codec is therefore a straight list of calls and one check at the end. Nothing here owns
 * memory; a view returned by a reader lives as long as the buffer it was read from. */
#ifndef ELV_COMMON_CURSOR_H
#define ELV_COMMON_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_bytes { /* a borrowed view; `at` may be NULL when `len` is 0 */
    const uint8_t *at;
    size_t len;
};

struct elv_rd {
    const uint8_t *at;
    size_t left;
    enum elv_err err;
};

struct elv_wr {
    uint8_t *at;
    size_t left;
    size_t need; /* bytes asked for so far, even past the end: the exact size to retry with */
    enum elv_err err;
};

struct elv_rd elv_rd_of(struct elv_bytes in);
uint8_t elv_rd_u8(struct elv_rd *r);
uint16_t elv_rd_u16(struct elv_rd *r);
uint32_t elv_rd_u32(struct elv_rd *r);
uint64_t elv_rd_u64(struct elv_rd *r);
float elv_rd_f32(struct elv_rd *r); /* any bit pattern; the caller checks that it is finite */
void elv_rd_f32s(struct elv_rd *r, float *v, size_t n); /* [n] of them; 0 when there are fewer */
struct elv_bytes elv_rd_bytes(struct elv_rd *r, size_t len);
void elv_rd_fail(struct elv_rd *r,
                 enum elv_err err); /* a caller's own check failed; the first stays */

struct elv_wr elv_wr_of(uint8_t *out, size_t cap);
void elv_wr_u8(struct elv_wr *w, uint8_t v);
void elv_wr_u16(struct elv_wr *w, uint16_t v);
void elv_wr_u32(struct elv_wr *w, uint32_t v);
void elv_wr_u64(struct elv_wr *w, uint64_t v);
void elv_wr_f32(struct elv_wr *w, float v);
void elv_wr_f32s(struct elv_wr *w, const float *v, size_t n);
void elv_wr_bytes(struct elv_wr *w, struct elv_bytes v);

#ifdef __cplusplus
}
#endif
#endif
