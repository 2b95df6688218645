/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic stale synchronous parallel: like ssp, but when the fastest client gets too far ahead, the
 * server foresees how its next updates and the slowest's will line up, and lets it run on to where
 * the wait will be shortest.
 *
 *     policy = dssp
 *     low = 3                ; a client so far ahead of the slowest goes on in any case
 *     high = 15              ; nobody gets further ahead than this
 *     strict = on            ; off: as printed, where `high` bounds a single grant only
 *     early = off            ; on: only coming before the slowest counts as a wait
 *     staleness = constant   ; what old updates are worth; see staleness.h
 *
 * As printed, a grant of r lets r + 1 updates pass and may follow the one before at once, so the
 * fastest client never waits for long and its lead has no bound. That is what the paper's table of
 * times shows, though not what its theorem assumes; `strict` counts a grant's updates exactly, cuts
 * it to what `high` leaves, and so keeps the bound. Source: Zhao, An, Liu, Chen, "Dynamic Stale
 * Synchronous Parallel Distributed Training for Deep Learning", ICDCS 2019. */
#include "server/clocks.h"
#include "server/param.h"
#include "server/stream.h"

static const char *const params[] = {"low", "high", "strict", "early", ELV_STALENESS_PARAMS, NULL};

enum { GRANT_MAX = 1000 };
static const elv_time_us interval_max = (elv_time_us)1 << 45; /* a year; sums of them fit */

/* Behind the clocks lies one of these per client. */
struct pace {
    elv_time_us last, before; /* when its latest updates came */
    uint32_t n_pushes;        /* 2: that or more */
    uint32_t granted;         /* updates it may still run on */
    bool goes;                /* what its latest update decided */
};

struct dssp {
    struct elv_clocks *clocks;
    struct pace *paces;
    uint32_t low, high;
    bool strict, early;
};

static bool is_on(const struct elv_sync_cfg *cfg, const char *name, bool otherwise)
{
    return elv_param_get(cfg->params, name, otherwise ? 1.0 : 0.0) != 0.0;
}

static struct dssp dssp_of(void *state, const struct elv_sync_cfg *cfg)
{
    const uint32_t low = (uint32_t)elv_param_get(cfg->params, "low", 3.0);
    const double high = elv_param_get(cfg->params, "high", 15.0);
    return (struct dssp){
        .clocks = elv_clocks_of(state, low),
        .paces = (struct pace *)(void *)((char *)state + elv_clocks_len(cfg->clients_max)),
        .low = low,
        .high = (uint32_t)high,
        .strict = is_on(cfg, "strict", true),
        .early = is_on(cfg, "early", false),
    };
}

static enum elv_err check_range(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                uint32_t *line)
{
    const double low = elv_param_get(cfg->params, "low", 3.0);
    const double high = elv_param_get(cfg->params, "high", 15.0);
    if (high >= low && high - low <= GRANT_MAX)
        return ELV_OK;
    const struct elv_param *p = elv_param_find(cfg->params, "high");
    *line = p ? p->line : elv_param_find(cfg->params, "low")->line;
    return elv_param_refuse(why, "high (15 unless given) is low (3 unless given) or up to 1000 "
                                 "more");
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    static const char low[] = "low is a whole number of updates from 0 to 1000000";
    static const char high[] = "high is a whole number of updates from 0 to 1001000";
    enum elv_err err = elv_stream_count(cfg, "low", 0, 1e6, low, why, line);
    if (err == ELV_OK)
        err = elv_stream_count(cfg, "high", 0, 1e6 + GRANT_MAX, high, why, line);
    if (err == ELV_OK)
        err = check_range(cfg, why, line);
    if (err == ELV_OK)
        err = elv_stream_switch(cfg, "strict", "strict is on or off", why, line);
    if (err == ELV_OK)
        err = elv_stream_switch(cfg, "early", "early is on or off", why, line);
    return err != ELV_OK ? err : elv_stream_check(cfg, why, line);
}

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    return elv_clocks_len(cfg->clients_max) + (size_t)cfg->clients_max * sizeof(struct pace);
}

static void forget(void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client who,
                   elv_time_us now)
{
    (void)now;
    const struct dssp d = dssp_of(state, cfg);
    elv_clocks_leave(d.clocks, who.row);
    d.paces[who.row] = (struct pace){0};
}

static void on_timer(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                     elv_time_us now)
{
    (void)r;
    const struct dssp d = dssp_of(state, cfg);
    uint32_t row;
    while (elv_clocks_drop_silent(d.clocks, elv_stream_patience(cfg), now, &row))
        d.paces[row] = (struct pace){0};
}

static elv_time_us timer(const void *state, const struct elv_sync_cfg *cfg)
{
    return elv_clocks_silent_at(state, elv_stream_patience(cfg));
}

static elv_time_us interval(const struct pace *p)
{
    const elv_time_us gap = p->last - p->before;
    return gap < interval_max ? gap : interval_max;
}

static elv_time_us wait_of(const struct dssp *d, elv_time_us x, elv_time_us y)
{
    return y >= x ? y - x : d->early ? 0 : x - y;
}

/* Of r = 0 ... high - low, the one after which the fast client's update comes closest to one of
 * the slow one's; the least of equals. Both series rise, so the closest one only moves up. */
static uint32_t foresee(const struct dssp *d, const struct pace *fast, const struct pace *slow)
{
    const uint32_t most = d->high - d->low;
    elv_time_us x = fast->last, y = slow->last + interval(slow);
    uint32_t best = 0, j = 0;
    elv_time_us least = ELV_NEVER;
    for (uint32_t r = 0; r <= most; r++, x += interval(fast)) {
        while (j < most && wait_of(d, x, y + interval(slow)) < wait_of(d, x, y)) {
            y += interval(slow);
            j++;
        }
        if (wait_of(d, x, y) < least) {
            least = wait_of(d, x, y);
            best = r;
        }
    }
    return best;
}

static uint32_t grant(const struct dssp *d, uint32_t row, uint32_t ahead)
{
    uint32_t slow;
    if (!elv_clocks_leads(d->clocks, row) || !elv_clocks_slowest(d->clocks, &slow) ||
        d->paces[row].n_pushes < 2 || d->paces[slow].n_pushes < 2)
        return 0;
    const uint32_t r = foresee(d, &d->paces[row], &d->paces[slow]);
    if (!d->strict)
        return r;
    const uint32_t left = ahead < d->high ? d->high - ahead : 0;
    return r < left ? r : left;
}

/* Whether the client goes on after this update. */
static bool decide(const struct dssp *d, uint32_t row)
{
    struct pace *p = &d->paces[row];
    const uint32_t ahead = elv_clocks_ahead(d->clocks, row);
    if (p->granted > 0) {
        p->granted--;
        return true;
    }
    if (ahead <= d->low)
        return true;
    const uint32_t r = grant(d, row, ahead);
    p->granted = d->strict && r > 0 ? r - 1 : r;
    return r > 0;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)r;
    const struct dssp d = dssp_of(state, cfg);
    struct pace *p = &d.paces[u->from.row];
    p->before = p->last;
    p->last = now;
    p->n_pushes += p->n_pushes < 2;
    elv_clocks_tick(d.clocks, u->from, now);
    p->goes = decide(&d, u->from.row);
    return elv_stream_worth(cfg, u->staleness);
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client who,
                                     elv_time_us now)
{
    (void)r;
    const struct dssp d = dssp_of(state, cfg);
    if (!elv_clocks_enter(d.clocks, who, now))
        return (struct elv_sync_grant){.start = ELV_SYNC_START};
    if (!d.paces[who.row].goes && elv_clocks_ahead(d.clocks, who.row) > d.low) {
        elv_clocks_park(d.clocks, who.row);
        return (struct elv_sync_grant){.start = ELV_SYNC_HOLD};
    }
    elv_clocks_resume(d.clocks, who.row, now);
    return (struct elv_sync_grant){.start = ELV_SYNC_START};
}

static bool next(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                 struct elv_sync_client *who, elv_time_us now)
{
    (void)r;
    return elv_clocks_next(dssp_of(state, cfg).clocks, who, now);
}

const struct elv_sync elv_sync_dssp = {
    .name = "dssp",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = check,
    .state_len = state_len,
    .on_join = forget,
    .on_leave = forget,
    .on_timer = on_timer,
    .on_pull = on_pull,
    .next = next,
    .on_update = on_update,
    .should_commit = elv_stream_may,
    .scale = elv_stream_share,
    .timer = timer,
};
