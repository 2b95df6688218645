/* SPDX-License-Identifier: Apache-2.0 */
/* common/rice.h - Rice codes: short words for numbers that fall off geometrically.
 *
 * With parameter k a number is written as (number >> k) zeros, a one, and its lowest k bits. The
 * gaps between coordinates chosen independently are geometric, and for those a Rice code with the
 * right parameter is within a few percent of the entropy.
 *
 * Sources: Golomb, "Run-Length Encodings", IEEE Transactions on Information Theory 1966; Rice,
 * Plaunt, "Adaptive Variable-Length Coding for Efficient Compression of Spacecraft Television
 * Data", IEEE Transactions on Communication Technology 1971. */
#ifndef ELV_COMMON_RICE_H
#define ELV_COMMON_RICE_H

#include "bits.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_RICE_MAX 30u /* the largest parameter */

void elv_rice_put(struct elv_bit_wr *w, uint32_t v, unsigned k); /* v below 2^31 */

/* The next number, which is `max` or less, itself below 2^31. Errors stick: ELV_ERR_SHORT,
 * ELV_ERR_RANGE. Reads no more of a run of zeros than `max` allows. */
uint32_t elv_rice_get(struct elv_bit_rd *r, unsigned k, uint32_t max);

/* What the numbers seen so far would take with each parameter. All zero: none yet. The numbers add
 * up to less than 2^31, and there are less than 2^26 of them. */
struct elv_rice_sums {
    uint32_t n;
    uint32_t of[ELV_RICE_MAX + 1]; /* of (number >> k) */
};
void elv_rice_add(struct elv_rice_sums *s, uint32_t v);
void elv_rice_drop(struct elv_rice_sums *s, uint32_t v); /* one that was added */
uint32_t elv_rice_bits(const struct elv_rice_sums *s, unsigned k);
unsigned elv_rice_best(const struct elv_rice_sums *s); /* fewest bits; the smallest such k */

#ifdef __cplusplus
}
#endif
#endif
