/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous federated optimisation: each update mixes its client's model into the global one,
 * less when it is stale.
 *
 *     policy = fedasync
 *     alpha = 0.6               ; share of a fresh client's model
 *     staleness = polynomial    ; how the share falls; see staleness.h
 *     max_staleness = 0         ; an update from longer ago does not count; 0: no limit
 *     concurrency = 0           ; clients at work at once; 0: all
 *
 * Every update counts as a version here, so with n clients at work an update is about n - 1 late,
 * and a limit below that, or a steep fall, leaves little of most; `concurrency` keeps it low. The
 * updates of one published version are mixed in at once: together the models replace
 * 1 - prod (1 - alpha_i) of the global one, as they would one by one, and share that in proportion
 * to their weights, so their order does not matter. Source: Xie, Koyejo, Gupta, "Asynchronous
 * Federated Optimization", arXiv:1903.03934. */
#include "server/param.h"
#include "server/stream.h"

static const char *const params[] = {"alpha", "max_staleness", "concurrency", ELV_STALENESS_PARAMS,
                                     NULL};

struct mixed {
    uint32_t n;   /* updates of the open round */
    double share; /* of the global model that they replace */
};

static double alpha_of(const struct elv_sync_cfg *cfg)
{
    return elv_param_get(cfg->params, "alpha", 0.6);
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    const struct elv_param *alpha = elv_param_find(cfg->params, "alpha");
    if (alpha && !(elv_param_is_number(alpha, 0, 1) && alpha->value > 0)) {
        *line = alpha->line;
        return elv_param_refuse(why, "alpha is a number above 0, up to 1");
    }
    enum elv_err err =
        elv_stream_count(cfg, "max_staleness", 0, 1e9,
                         "max_staleness is a whole number of updates; 0: no limit", why, line);
    if (err == ELV_OK)
        err = elv_stream_count(cfg, "concurrency", 0, 1e9,
                               "concurrency is a whole number of clients; 0: all", why, line);
    if (err == ELV_OK)
        err = elv_staleness_check(cfg->params, ELV_STALENESS_POLYNOMIAL, why, line);
    return err;
}

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    (void)cfg;
    return sizeof(struct mixed);
}

static void on_open(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_round *r)
{
    (void)cfg, (void)r;
    struct mixed *m = state;
    *m = (struct mixed){0};
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)r, (void)now;
    struct mixed *m = state;
    const struct elv_staleness s = elv_staleness_of(cfg->params, ELV_STALENESS_POLYNOMIAL);
    const double most = elv_param_get(cfg->params, "max_staleness", 0.0);
    const double alpha = alpha_of(cfg) * elv_staleness_factor(s, u->staleness);
    if (most > 0 && u->staleness > most)
        return (struct elv_sync_worth){.counts = false, .weight = alpha};
    m->n++;
    m->share += (1.0 - m->share) * alpha;
    return (struct elv_sync_worth){.counts = true, .weight = alpha};
}

/* Updates that a restart brought back are taken for fresh ones. */
static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    const struct mixed *m = state;
    double left = 1.0 - m->share;
    for (uint32_t i = m->n; i < r->n_got && left > 0x1p-60; i++)
        left *= 1.0 - alpha_of(cfg);
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_USED, .step = 1.0 - left, .mixes = true};
}

const struct elv_sync elv_sync_fedasync = {
    .name = "fedasync",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .single = true,
    .check = check,
    .state_len = state_len,
    .on_open = on_open,
    .room = elv_stream_room,
    .on_update = on_update,
    .should_commit = elv_stream_may,
    .scale = scale,
};
