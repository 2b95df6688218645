/* SPDX-License-Identifier: Apache-2.0 */
/* Stale synchronous parallel: nobody starts who is more than `threshold` updates ahead of the
 * slowest.
 *
 *     policy = ssp
 *     threshold = 3          ; 0: in step, as with bsp
 *     staleness = constant   ; what old updates are worth; see staleness.h
 *
 * The others run on undisturbed; who is too far ahead waits until the slowest has delivered, or has
 * gone. In the long run everybody is as slow as the slowest, whatever the threshold. Source: Ho et
 * al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS
 * 2013. */
#include "server/clocks.h"
#include "server/param.h"
#include "server/stream.h"

static const char *const params[] = {"threshold", ELV_STALENESS_PARAMS, NULL};

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    const enum elv_err err =
        elv_stream_count(cfg, "threshold", 0, 1e6,
                         "threshold is a whole number of updates from 0 to 1000000", why, line);
    return err != ELV_OK ? err : elv_stream_check(cfg, why, line);
}

static size_t state_len(const struct elv_sync_cfg *cfg) { return elv_clocks_len(cfg->clients_max); }

static struct elv_clocks *clocks_of(void *state, const struct elv_sync_cfg *cfg)
{
    return elv_clocks_of(state, (uint32_t)elv_param_get(cfg->params, "threshold", 3.0));
}

static void on_leave(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client who,
                     elv_time_us now)
{
    (void)now;
    elv_clocks_leave(clocks_of(state, cfg), who.row);
}

static void on_timer(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now)
{
    (void)r;
    uint32_t row;
    while (elv_clocks_drop_silent(clocks_of(state, cfg), elv_stream_patience(cfg), now, &row))
        ;
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    return elv_clocks_silent_at(state, elv_stream_patience(cfg));
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client who,
                                     elv_time_us now)
{
    (void)r;
    struct elv_clocks *c = clocks_of(state, cfg);
    if (!elv_clocks_enter(c, who, now))
        return (struct elv_sync_grant){.start = ELV_SYNC_START};
    if (elv_clocks_ahead(c, who.row) > c->bound) {
        elv_clocks_park(c, who.row);
        return (struct elv_sync_grant){.start = ELV_SYNC_HOLD};
    }
    elv_clocks_resume(c, who.row, now);
    return (struct elv_sync_grant){.start = ELV_SYNC_START};
}

static bool next(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *who, elv_time_us now)
{
    (void)r;
    return elv_clocks_next(clocks_of(state, cfg), who, now);
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)r;
    elv_clocks_tick(clocks_of(state, cfg), u->from, now);
    return elv_stream_worth(cfg, u->staleness);
}

const struct elv_sync elv_sync_ssp = {
    .name = "ssp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = check,
    .state_len = state_len,
    .on_join = on_leave, /* forgets what the row was before */
    .on_leave = on_leave,
    .on_timer = on_timer,
    .on_pull = on_pull,
    .next = next,
    .on_update = on_update,
    .should_commit = elv_stream_may,
    .scale = elv_stream_share,
    .timer = timer,
};
