/* SPDX-License-Identifier: Apache-2.0 */
/* common/bits.h - single bits in bytes, lowest bit first.
 *
 * Like common/cursor.h, for fields that are not whole bytes. Failure is sticky: after the first
 * one, reads yield zero, writes do nothing, and `err` keeps the cause. Nothing here owns memory,
 * and nothing is read or written outside the buffer given. */
#ifndef ELV_COMMON_BITS_H
#define ELV_COMMON_BITS_H

#include <stdbool.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_bit_wr {
    uint8_t *at;
    size_t left;
    size_t len; /* whole bytes written */
    uint64_t held;
    unsigned n_held; /* bits in `held` that are not written yet: below 8 between calls */
    enum elv_err err;
};

struct elv_bit_rd {
    struct elv_bytes in;
    size_t at; /* the next bit; set it to continue at a place remembered */
    enum elv_err err;
};

/* The number of the lowest bit set; `x` is not 0. */
unsigned elv_lowest_bit(uint32_t x);

struct elv_bit_wr elv_bit_wr_of(uint8_t *out, size_t cap);
/* The lowest `n` bits of `v`, whose others are 0; 0 to 32. ELV_ERR_SPACE sticks. */
void elv_bit_wr_put(struct elv_bit_wr *w, uint32_t v, unsigned n);
/* `n_zeros` zeros, then a one. */
void elv_bit_wr_zeros(struct elv_bit_wr *w, uint32_t n_zeros);
/* Fills the last byte up with zeros. Returns the bytes written in all; check `w->err`. */
size_t elv_bit_wr_end(struct elv_bit_wr *w);

/* `in.len` is at most SIZE_MAX / 8. */
struct elv_bit_rd elv_bit_rd_of(struct elv_bytes in);
/* The next `n` bits, 0 to 32. ELV_ERR_SHORT sticks. */
uint32_t elv_bit_rd_get(struct elv_bit_rd *r, unsigned n);
/* Zeros up to a one, which is taken too; how many. ELV_ERR_SHORT: no one follows;
 * ELV_ERR_RANGE: more than `max`, 2^31 or less. No more bits are looked at than that takes. */
uint32_t elv_bit_rd_zeros(struct elv_bit_rd *r, uint32_t max);
/* Whether only what `elv_bit_wr_end` fills up with is left: fewer than 8 bits, all of them 0. */
bool elv_bit_rd_ended(const struct elv_bit_rd *r);

#ifdef __cplusplus
}
#endif
#endif
