/* SPDX-License-Identifier: Apache-2.0 */
/* server/first.h - rounds that close with the first so many updates: what the policies that ask
 * more clients than they need have in common. */
#ifndef ELV_SERVER_FIRST_H
#define ELV_SERVER_FIRST_H

#include "sync.h"

/* The first `k` of the round's own version count, and more while the quorum needs them. */
struct elv_sync_worth elv_first_worth(const struct elv_sync_cfg *cfg,
                                      const struct elv_sync_round *r,
                                      const struct elv_sync_update *u, uint32_t k);

/* Fewer than `k` may be left of those asked; then all of them are enough. */
enum elv_sync_commit_when elv_first_when(const struct elv_sync_round *r, uint32_t k);

/* Who is late is told at once, so that it stops paying for airtime. */
bool elv_first_interrupts(const void *state, const struct elv_sync_cfg *cfg,
                          struct elv_sync_client c);

#endif
