/* SPDX-License-Identifier: Apache-2.0 */
/* Backup workers: n clients are asked, a version closes with the first k updates, the others are
 * spares whose late updates are dropped.
 *
 *     policy = backup
 *     k = 6          ; updates to wait for, or
 *     backup = 2     ; spares: k = asked - backup
 *
 *     late = finish  ; what becomes of the others: they finish, and then take part again;
 *                    ; interrupt, unless given: they are told at once
 *
 * In the original they finish. Source: Chen, Pan, Monga, Bengio, Jozefowicz, "Revisiting
 * Distributed Synchronous SGD", arXiv:1604.00981. */
#include "server/first.h"
#include "server/param.h"

static const char *const params[] = {"backup", "k", "late", NULL};
static const char *const lates[] = {"interrupt", "finish", NULL};
enum { INTERRUPT };

static int late_of(const struct elv_sync_cfg *cfg)
{
    return elv_param_word(cfg->params, "late", lates, INTERRUPT);
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    const struct elv_param *k = elv_param_find(cfg->params, "k");
    const struct elv_param *b = elv_param_find(cfg->params, "backup");
    if ((k == NULL) == (b == NULL)) {
        *line = k ? k->line : 0;
        return elv_param_refuse(why, "policy backup takes one of: k = updates to wait for, "
                                     "backup = spare clients");
    }
    const struct elv_param *p = k ? k : b;
    *line = p->line;
    if (!elv_param_is_count(p, k ? 1 : 0, 1000000))
        return elv_param_refuse(why, k ? "k is a whole number from 1 to 1000000"
                                       : "backup is a whole number from 0 to 1000000");
    if (k && k->value < (double)cfg->quorum)
        return elv_param_refuse(why, "k is at least the quorum");
    if (k && cfg->clients_max > 0 && k->value > (double)cfg->clients_max)
        return elv_param_refuse(why, "k is at most the number of clients asked: [select] count, or "
                                     "all there are");
    if (late_of(cfg) < 0) {
        *line = elv_param_find(cfg->params, "late")->line;
        return elv_param_refuse(why, "late is interrupt or finish");
    }
    return ELV_OK;
}

static uint32_t wanted(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r)
{
    (void)state;
    const struct elv_param *k = elv_param_find(cfg->params, "k");
    if (k)
        return (uint32_t)k->value;
    const uint32_t spares = (uint32_t)elv_param_get(cfg->params, "backup", 0.0);
    return r->n_asked > spares ? r->n_asked - spares : 1;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)now;
    return elv_first_worth(cfg, r, u, wanted(state, cfg, r));
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)now;
    return elv_first_when(r, wanted(state, cfg, r));
}

static bool interrupts(const void *state, const struct elv_sync_cfg *cfg, struct elv_sync_client c)
{
    return late_of(cfg) == INTERRUPT && elv_first_interrupts(state, cfg, c);
}

const struct elv_sync elv_sync_backup = {
    .name = "backup",
    .params = params,
    .check = check,
    .on_update = on_update,
    .should_commit = should_commit,
    .wanted = wanted,
    .interrupts = interrupts,
};
