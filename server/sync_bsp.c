/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk synchronous parallel: a version closes when everybody who was asked has answered or gone.
 *
 *     policy = bsp
 *
 * Clients that join meanwhile wait for the next round. The accuracy reference for every other
 * policy. Source: Valiant, "A Bridging Model for Parallel Computation", Communications of the ACM
 * 33, 1990. */
#include "server/sync.h"

static const char *const no_params[] = {NULL};

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    return (struct elv_sync_worth){.counts = u->version == r->version, .weight = 1.0};
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    return r->n_waiting == 0 ? ELV_SYNC_MUST : ELV_SYNC_NO;
}

const struct elv_sync elv_sync_bsp = {
    .name = "bsp",
    .params = no_params,
    .on_update = on_update,
    .should_commit = should_commit,
};
