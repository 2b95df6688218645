/* SPDX-License-Identifier: Apache-2.0 */
/* server/sums.h - what clients report besides their updates, added up over a round.
 *
 * Sums the clients give names of their own share a fixed number of places per round; a name that
 * comes when all are taken is counted and left out. Floating-point sums depend on their order in
 * the last places: it is that of arrival, after a restart that of client numbers. */
#ifndef ELV_SERVER_SUMS_H
#define ELV_SERVER_SUMS_H

#include "score.h"

struct elv_user_total {
    char name[ELV_USER_SUM_NAME_MAX + 1]; /* zero-terminated */
    double value;
};

struct elv_user_totals {
    struct elv_user_total at[ELV_USER_SUMS_MAX];
    uint32_t n;
    uint32_t n_left_out; /* sums whose names found no place */
};

struct elv_sums {
    struct elv_eval_sums eval;
    struct elv_user_totals user;
};

/* `len` is 1 to ELV_USER_SUM_NAME_MAX. */
void elv_user_add(struct elv_user_totals *into, const char *name, size_t len, double value);
/* Copies what lies in the commit's datagram. */
void elv_user_of(const struct elv_commit *c, struct elv_user_totals *out);
void elv_sums_add(struct elv_sums *into, const struct elv_sums *more);

#endif
