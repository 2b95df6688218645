/* SPDX-License-Identifier: Apache-2.0 */
#include "server/first.h"

struct elv_sync_worth elv_first_worth(const struct elv_sync_cfg *cfg,
                                      const struct elv_sync_round *r,
                                      const struct elv_sync_update *u, uint32_t k)
{
    const bool full = r->n_got >= k && r->n_got >= cfg->quorum;
    return (struct elv_sync_worth){.counts = u->version == r->version && !full, .weight = 1.0};
}

enum elv_sync_commit_when elv_first_when(const struct elv_sync_round *r, uint32_t k)
{
    return r->n_got >= k || r->n_waiting == 0 ? ELV_SYNC_MUST : ELV_SYNC_NO;
}

bool elv_first_interrupts(const void *state, const struct elv_sync_cfg *cfg,
                          struct elv_sync_client c)
{
    (void)state, (void)cfg, (void)c;
    return true;
}
