/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous parallel: nobody waits for anybody. Every update counts when it arrives, whatever
 * version it started from, and its client goes on at once.
 *
 *     policy = asp
 *     staleness = constant   ; what old updates are worth; see staleness.h
 *
 * The fastest flow, and the one that learns worst: with n clients alike an update is n - 1 updates
 * late, a client s times slower s times as much. Source: Dean et al., "Large Scale Distributed Deep
 * Networks", NIPS 2012 (Downpour SGD). */
#include "server/stream.h"

static const char *const params[] = {ELV_STALENESS_PARAMS, NULL};

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)r, (void)now;
    return elv_stream_worth(cfg, u->staleness);
}

const struct elv_sync elv_sync_asp = {
    .name = "asp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = elv_stream_check,
    .on_update = on_update,
    .should_commit = elv_stream_may,
    .scale = elv_stream_share,
};
