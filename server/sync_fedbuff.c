/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered asynchrony: clients never wait, a version is made of every `buffer` updates.
 *
 *     policy = fedbuff
 *     buffer = 10               ; K: updates per version
 *     concurrency = 0           ; M: clients at work at once; 0: all
 *     staleness = polynomial    ; what old updates are worth; see staleness.h
 *     max_staleness = 0         ; versions; an update from longer ago does not count; 0: no limit
 *     normalise = count         ; a version's sum is divided by K; weights: by its own weights
 *
 * Staleness is told in versions of K updates, and about M / K on average. When versions follow each
 * other faster than they are published, several are taken in one step as long. Source: Nguyen et
 * al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022,
 * arXiv:2106.06639. */
#include "server/param.h"
#include "server/stream.h"

static const char *const params[] = {"buffer",    "concurrency",        "max_staleness",
                                     "normalise", ELV_STALENESS_PARAMS, NULL};
static const char *const divisors[] = {"count", "weights", NULL};

static enum elv_err check_counts(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                 uint32_t *line)
{
    const struct elv_param *buffer = elv_param_find(cfg->params, "buffer");
    enum elv_err err = elv_stream_count(
        cfg, "buffer", 1, 1e6, "buffer is a whole number of updates from 1 to 1000000", why, line);
    if (err == ELV_OK && buffer && buffer->value < (double)cfg->quorum) {
        *line = buffer->line;
        return elv_param_refuse(why, "buffer is at least the quorum");
    }
    if (err == ELV_OK)
        err = elv_stream_count(cfg, "concurrency", 0, 1e9,
                               "concurrency is a whole number of clients; 0: all", why, line);
    if (err == ELV_OK)
        err =
            elv_stream_count(cfg, "max_staleness", 0, 1e9,
                             "max_staleness is a whole number of versions; 0: no limit", why, line);
    return err;
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    const enum elv_err err = check_counts(cfg, why, line);
    if (err != ELV_OK)
        return err;
    if (elv_param_word(cfg->params, "normalise", divisors, 0) < 0) {
        *line = elv_param_find(cfg->params, "normalise")->line;
        return elv_param_refuse(why, "normalise is count or weights");
    }
    return elv_staleness_check(cfg->params, ELV_STALENESS_POLYNOMIAL, why, line);
}

static uint32_t buffer_of(const struct elv_sync_cfg *cfg)
{
    return (uint32_t)elv_param_get(cfg->params, "buffer", 10.0);
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)r, (void)now;
    const struct elv_staleness s = elv_staleness_of(cfg->params, ELV_STALENESS_POLYNOMIAL);
    const double most = elv_param_get(cfg->params, "max_staleness", 0.0);
    const uint32_t tau = u->staleness / buffer_of(cfg);
    return (struct elv_sync_worth){.counts = !(most > 0 && tau > most),
                                   .weight = elv_staleness_factor(s, tau)};
}

/* Between two fillings nothing is published: a version is a whole number of buffers. */
static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)now;
    return r->n_got > 0 && r->n_got % buffer_of(cfg) == 0 ? ELV_SYNC_MAY : ELV_SYNC_NO;
}

/* One step per buffer; what the deadline cuts off is a part of one. But in a version of several
 * buffers no more steps than updates from all who are there would fill: clients that deliver over
 * and over from the same version would go further each time in the direction they went before. */
static struct elv_sync_scale scale(const void *state, const struct elv_sync_cfg *cfg,
                                   const struct elv_sync_round *r)
{
    (void)state;
    const bool by_weights = elv_param_word(cfg->params, "normalise", divisors, 0) == 1;
    const uint32_t buffer = buffer_of(cfg);
    const uint32_t most = r->n_joined > buffer ? r->n_joined : buffer;
    return (struct elv_sync_scale){.by = by_weights ? ELV_SYNC_BY_USED : ELV_SYNC_BY_CLAIMED,
                                   .step = (double)(r->n_got < most ? r->n_got : most) /
                                           (double)buffer};
}

static uint32_t wanted(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r)
{
    (void)state, (void)r;
    return buffer_of(cfg);
}

const struct elv_sync elv_sync_fedbuff = {
    .name = "fedbuff",
    .params = params,
    .flow = ELV_SYNC_STREAM,
    .check = check,
    .room = elv_stream_room,
    .on_update = on_update,
    .should_commit = should_commit,
    .scale = scale,
    .wanted = wanted,
};
