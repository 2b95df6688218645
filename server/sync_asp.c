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
#include "server/staleness.h"
#include "server/sync.h"

static const char *const params[] = {ELV_STALENESS_PARAMS, NULL};

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    return elv_staleness_check(cfg->params, ELV_STALENESS_CONSTANT, why, line);
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)r, (void)now;
    const struct elv_staleness s = elv_staleness_of(cfg->params, ELV_STALENESS_CONSTANT);
    return (struct elv_sync_worth){.counts = true, .weight = elv_staleness_factor(s, u->staleness)};
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    return r->n_got >= 1 ? ELV_SYNC_MAY : ELV_SYNC_NO;
}

/* An update by itself moves the model by its client's share of one averaged step. */
static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_FLEET, .step = 1.0};
}

const struct elv_sync elv_sync_asp = {
    .name = "asp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = check,
    .on_update = on_update,
    .should_commit = should_commit,
    .scale = scale,
};
