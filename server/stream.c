/* SPDX-License-Identifier: Apache-2.0 */
#include "server/stream.h"

#include <stddef.h>

#include "server/param.h"

enum elv_err elv_stream_check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                              uint32_t *line)
{
    return elv_staleness_check(cfg->params, ELV_STALENESS_CONSTANT, why, line);
}

struct elv_sync_worth elv_stream_worth(const struct elv_sync_cfg *cfg, uint32_t staleness)
{
    const struct elv_staleness s = elv_staleness_of(cfg->params, ELV_STALENESS_CONSTANT);
    return (struct elv_sync_worth){.counts = true, .weight = elv_staleness_factor(s, staleness)};
}

enum elv_sync_commit_when elv_stream_may(const void *state, const struct elv_sync_cfg *cfg,
                                         const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)cfg, (void)now;
    return r->n_got >= 1 ? ELV_SYNC_MAY : ELV_SYNC_NO;
}

struct elv_sync_scale elv_stream_share(const void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_FLEET, .step = 1.0};
}

uint32_t elv_stream_room(const void *state, const struct elv_sync_cfg *cfg,
                         const struct elv_sync_round *r)
{
    (void)state;
    const uint32_t most = (uint32_t)elv_param_get(cfg->params, "concurrency", 0.0);
    if (most == 0)
        return UINT32_MAX;
    return most > r->n_waiting ? most - r->n_waiting : 0;
}

enum elv_err elv_stream_count(const struct elv_sync_cfg *cfg, const char *name, double least,
                              double most, const char *sentence, char why[ELV_JOB_ERROR_MAX],
                              uint32_t *line)
{
    const struct elv_param *p = elv_param_find(cfg->params, name);
    if (p == NULL || elv_param_is_count(p, least, most))
        return ELV_OK;
    *line = p->line;
    return elv_param_refuse(why, sentence);
}

enum elv_err elv_stream_switch(const struct elv_sync_cfg *cfg, const char *name,
                               const char *sentence, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    static const char *const words[] = {"off", "on", NULL};
    if (elv_param_word(cfg->params, name, words, 0) >= 0)
        return ELV_OK;
    *line = elv_param_find(cfg->params, name)->line;
    return elv_param_refuse(why, sentence);
}

elv_time_us elv_stream_patience(const struct elv_sync_cfg *cfg)
{
    return cfg->deadline_us > 0 ? cfg->deadline_us : ELV_NEVER;
}
