/* SPDX-License-Identifier: Apache-2.0 */
/* server/sample.h - a few of many, drawn without remembering whom.
 *
 * A keyed shuffle of the numbers below n that is read one by one: its first k are a sample of k
 * different numbers, the same each time. A Feistel network of four rounds over the next power of
 * four is walked until it comes back below n. Source: Black, Rogaway, "Ciphers with Arbitrary
 * Finite Domains", CT-RSA 2002; the rounds here mix well, but keep no secrets. */
#ifndef ELV_SERVER_SAMPLE_H
#define ELV_SERVER_SAMPLE_H

#include "../common/rng.h"

#define ELV_SAMPLE_WORDS 4u /* drawn from the stream */

struct elv_sample {
    uint32_t n;
    uint32_t half; /* bits of either half */
    uint32_t key[ELV_SAMPLE_WORDS];
};

/* n is 1 or more. */
struct elv_sample elv_sample_of(uint32_t n, struct elv_rng *rng);
/* The i-th of the shuffled numbers; i below n. */
uint32_t elv_sample_at(const struct elv_sample *s, uint32_t i);

#endif
