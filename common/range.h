/* SPDX-License-Identifier: Apache-2.0 */
/* common/range.h - an adaptive binary range coder: bits in less than a bit each, where they are
 * mostly the same.
 *
 * A model is a 16-bit word that estimates how probable a 0 is, from the bits coded with it so far;
 * encoder and decoder keep the same models. Failure is sticky as in common/cursor.h. Nothing here
 * owns memory, and no byte outside the buffer is read or written.
 *
 * Integers only, so the bytes are the same on every machine. Sources: Martin, "Range encoding: an
 * algorithm for removing redundancy from a digitised message", Video and Data Recording Conference,
 * 1979; Howard, Vitter, "Practical Implementations of Arithmetic Coding", 1992, for models that
 * learn fast first and slowly later. */
#ifndef ELV_COMMON_RANGE_H
#define ELV_COMMON_RANGE_H

#include <stdbool.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The upper 12 bits: the probability of a 0 in 4096ths; the lower 4: bits seen, up to 15. */
#define ELV_RANGE_MODEL_NEW 0x8000u

struct elv_range_wr {
    uint8_t *at; /* NULL: only `len` is kept, which does not depend on the bits without a model */
    size_t cap, len;
    uint32_t low, range;
    enum elv_err err;
};

struct elv_range_rd { /* copy the three numbers to continue later */
    struct elv_bytes in;
    size_t at;
    uint32_t range, code;
    enum elv_err err;
};

struct elv_range_wr elv_range_wr_of(uint8_t *out, size_t cap);
void elv_range_wr_bit(struct elv_range_wr *w, uint16_t *model, unsigned bit);
/* The lowest `n` bits of `v`, whose others are 0, each as probable as not; 0 to 32. */
void elv_range_wr_bits(struct elv_range_wr *w, uint32_t v, unsigned n);
/* A number below 2^32 - 1: how many bits number + 1 has, with `model` [32], then all but the first.
 */
void elv_range_wr_number(struct elv_range_wr *w, uint16_t *model, uint32_t number);
/* Writes the last byte. Returns the length; one more than `w->len` was. Check `w->err`. */
size_t elv_range_wr_end(struct elv_range_wr *w);

/* ELV_ERR_FORMAT sticks when what is read was not written so; ELV_ERR_SHORT when it ended. */
struct elv_range_rd elv_range_rd_of(struct elv_bytes in);
unsigned elv_range_rd_bit(struct elv_range_rd *r, uint16_t *model);
uint32_t elv_range_rd_bits(struct elv_range_rd *r, unsigned n);
uint32_t elv_range_rd_number(struct elv_range_rd *r, uint16_t *model);
/* Whether the input is what the encoder writes when this was all. */
bool elv_range_rd_ended(const struct elv_range_rd *r);

#ifdef __cplusplus
}
#endif
#endif
