/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_shrink.h - the few of many faults that a failure takes.
 *
 * Delta debugging: larger and then smaller parts of what is left are taken away, and stay away
 * while the failure stays the same, down to single faults. What remains fails, and no fault of it
 * can be taken away by itself. Source: Zeller, Hildebrandt, "Simplifying and Isolating
 * Failure-Inducing Input", IEEE Transactions on Software Engineering 28(2), 2002. */
#ifndef ELV_TESTS_SIM_SHRINK_H
#define ELV_TESTS_SIM_SHRINK_H

#include <stdbool.h>
#include <stdint.h>

struct shrink {
    void *self;
    /* Whether it fails in the same way with just those faults that are `on`. */
    bool (*fails)(void *self, const bool *on, uint32_t n);
    uint32_t tries_max; /* calls of `fails`; then what is left is good enough */
    uint32_t tries;     /* out */
};

/* `on`: `n` faults with which it fails; those that it takes stay. True: down to the last one;
 * false: there were no more tries. */
bool shrink(struct shrink *s, bool *on, uint32_t n);

/* Numbers and ranges with commas between, "3,17-20", or "none"; sets those in `on`. False: it is no
 * such list, or names one that is not below `n`. */
bool shrink_read(const char *list, bool *on, uint32_t n);
/* As shrink_read takes it; `text` has room for `len` bytes, and a list that does not fit ends with
 * dots. */
void shrink_write(const bool *on, uint32_t n, char *text, uint32_t len);

#endif
