/* SPDX-License-Identifier: Apache-2.0 */
/* Over-selection with a deadline: a round needs `goal` updates and asks more clients than that, so
 * that those which drop out are not missed. It closes with the first `goal`; at its deadline it
 * closes with the minimum or is given up.
 *
 *     policy = overselect
 *     goal = 300                ; updates that make a version
 *     factor = 1.3              ; so many times as many clients are asked
 *     minimum = 0.8             ; share of the goal that will do at the deadline, and to open a
 *                               ; round at the selection timeout; else what the quorum says
 *     selection_timeout = 30s   ; until then a round waits for all the clients it wants to ask
 *
 * These are backup workers with a share of spares (sync_backup.c); new is that clients come and go.
 * Those that a round did not ask are sent away: in a small population until about the round's end,
 * so that they are back together to fill the next one; in a large one for as many rounds, at
 * random, as it takes to ask everybody, so that about as many come by in a round as it asks.
 *
 * Source: Bonawitz et al., "Towards Federated Learning at Scale: System Design", MLSys 2019,
 * arXiv:1902.01046. */
#include "common/rng.h"
#include "common/text.h"
#include "server/first.h"
#include "server/param.h"

enum { SMALL = 2, RETRY_MAX_MS = 86400000 };
static const double average_share = 0.2; /* of the newest round in how long rounds take */

struct overselect {
    elv_time_us takes; /* a round that closes, on average; 0: not known */
};

static const char *const params[] = {"goal", "factor", "minimum", "selection_timeout", NULL};

static uint32_t goal_of(const struct elv_sync_cfg *cfg)
{
    return (uint32_t)elv_param_get(cfg->params, "goal", 1.0);
}

/* Rounded up, but not for the last bits of the product. */
static uint32_t times(uint32_t n, double factor)
{
    const double product = (double)n * factor - 1e-6;
    const uint32_t below = (uint32_t)product;
    return below + (product > (double)below);
}

static uint32_t least_of(const struct elv_sync_cfg *cfg)
{
    const uint32_t n = times(goal_of(cfg), elv_param_get(cfg->params, "minimum", 0.0));
    return n > cfg->quorum ? n : cfg->quorum;
}

static uint32_t asked_of(const struct elv_sync_cfg *cfg)
{
    return times(goal_of(cfg), elv_param_get(cfg->params, "factor", 1.3));
}

static enum elv_err check_goal(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                               uint32_t *line)
{
    const struct elv_param *goal = elv_param_find(cfg->params, "goal");
    *line = goal ? goal->line : 0;
    if (goal == NULL)
        return elv_param_refuse(why, "policy overselect takes goal = updates that make a version");
    if (!elv_param_is_count(goal, 1, 1000000))
        return elv_param_refuse(why, "goal is a whole number from 1 to 1000000");
    if (goal->value < (double)cfg->quorum)
        return elv_param_refuse(why, "goal is at least the quorum");
    if (cfg->clients_max > 0 && goal->value > (double)cfg->clients_max)
        return elv_param_refuse(why, "goal is at most the number of clients there can be");
    return ELV_OK;
}

static enum elv_err check_ranges(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                 uint32_t *line)
{
    const struct elv_param *factor = elv_param_find(cfg->params, "factor");
    const struct elv_param *minimum = elv_param_find(cfg->params, "minimum");
    const struct elv_param *wait = elv_param_find(cfg->params, "selection_timeout");
    if (factor && !elv_param_is_number(factor, 1, 100)) {
        *line = factor->line;
        return elv_param_refuse(why, "factor is a number from 1 to 100");
    }
    if (minimum && (!elv_param_is_number(minimum, 0, 1) || minimum->value <= 0.0)) {
        *line = minimum->line;
        return elv_param_refuse(why, "minimum is a share of the goal, above 0 and at most 1");
    }
    if (wait && !elv_param_is_duration(wait, 0, 86400e6)) {
        *line = wait->line;
        return elv_param_refuse(why, "selection_timeout is a time up to 24h, such as 30s");
    }
    return ELV_OK;
}

/* Whoever drives the policy closes a round at its deadline with the quorum, whatever is said here,
 * so the quorum has to be the minimum. */
static enum elv_err check_minimum(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                                  uint32_t *line)
{
    const struct elv_param *minimum = elv_param_find(cfg->params, "minimum");
    if (minimum == NULL || least_of(cfg) == cfg->quorum)
        return ELV_OK;
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, "this minimum needs quorum = ");
    elv_line_uint(&l, least_of(cfg));
    elv_line_add(&l, ": a round with fewer updates than the quorum is given up at its deadline, "
                     "any other closes");
    *line = minimum->line;
    return ELV_ERR_RANGE;
}

static enum elv_err check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                          uint32_t *line)
{
    enum elv_err err = check_goal(cfg, why, line);
    if (err == ELV_OK)
        err = check_ranges(cfg, why, line);
    return err != ELV_OK ? err : check_minimum(cfg, why, line);
}

static size_t state_len(const struct elv_sync_cfg *cfg)
{
    (void)cfg;
    return sizeof(struct overselect);
}

static struct elv_sync_call call(const struct elv_sync_cfg *cfg)
{
    return (struct elv_sync_call){
        .ask = asked_of(cfg),
        .least = least_of(cfg),
        .wait_us = (elv_time_us)elv_param_get(cfg->params, "selection_timeout", 30e6),
    };
}

static void on_commit(void *state, const struct elv_sync_cfg *cfg, const struct elv_sync_commit *c,
                      elv_time_us now)
{
    struct overselect *s = state;
    const double took = (double)(now - c->round.opened), before = (double)s->takes;
    (void)cfg;
    s->takes = (elv_time_us)(s->takes == 0 ? took : before + average_share * (took - before));
}

static elv_time_us takes(const struct overselect *s, const struct elv_sync_cfg *cfg)
{
    return s->takes > 0 ? s->takes : cfg->deadline_us;
}

/* In [0, 1), a client's own in each round. */
static double chance_of(const struct elv_sync_cfg *cfg, const struct elv_sync_round *r,
                        struct elv_sync_client c)
{
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){
        .seed = cfg->seed, .client = c.client, .round = r->seq, .purpose = ELV_RNG_JITTER});
    return (double)elv_rng_unit(&rng);
}

/* The round's end as foreseen, and a little; a round that takes longer is looked at again soon. */
static double until_end(const struct elv_sync_round *r, double round, double chance,
                        elv_time_us now)
{
    const double left = (double)(r->opened - now) + round;
    return (left > round / 4 ? left : round / 4) + chance * round / 8;
}

static struct elv_sync_grant on_pull(void *state, const struct elv_sync_cfg *cfg,
                                     const struct elv_sync_round *r, struct elv_sync_client c,
                                     elv_time_us now)
{
    const double round = (double)takes(state, cfg), chance = chance_of(cfg, r, c);
    const uint32_t ask = asked_of(cfg);
    if (r->opened == ELV_NEVER)
        return (struct elv_sync_grant){ELV_SYNC_HOLD, 0};
    const double us = r->n_joined / SMALL <= ask
                          ? until_end(r, round, chance, now)
                          : (0.5 + chance) * round * (double)r->n_joined / (double)ask;
    const double ms = us * 1e-3;
    return (struct elv_sync_grant){ELV_SYNC_REJECT, ms < 1.0            ? 1
                                                    : ms < RETRY_MAX_MS ? (uint32_t)ms
                                                                        : RETRY_MAX_MS};
}

static uint32_t wanted(const void *state, const struct elv_sync_cfg *cfg,
                       const struct elv_sync_round *r)
{
    (void)state;
    const uint32_t goal = goal_of(cfg);
    return r->n_asked < goal ? r->n_asked : goal;
}

static struct elv_sync_worth on_update(void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r,
                                       const struct elv_sync_update *u, elv_time_us now)
{
    (void)state, (void)now;
    return elv_first_worth(cfg, r, u, goal_of(cfg));
}

static enum elv_sync_commit_when should_commit(const void *state, const struct elv_sync_cfg *cfg,
                                               const struct elv_sync_round *r, elv_time_us now)
{
    (void)state, (void)now;
    return elv_first_when(r, goal_of(cfg));
}

const struct elv_sync elv_sync_overselect = {
    .name = "overselect",
    .params = params,
    .check = check,
    .state_len = state_len,
    .call = call,
    .on_commit = on_commit,
    .on_pull = on_pull,
    .on_update = on_update,
    .should_commit = should_commit,
    .wanted = wanted,
    .interrupts = elv_first_interrupts,
};
