/* SPDX-License-Identifier: Apache-2.0 */
/* How rounds end: with a version made of what counts, or abandoned. */
#include <math.h>
#include <string.h>

#include "ports/sim/lab/swarm_parts.h"
#include "server/drive.h"

enum { STRIDE = 4096 }; /* coordinates that the server makes at a time */

struct elv_sync_scale elv_swarm_scale(const struct elv_swarm *s)
{
    const struct elv_sync_round view = elv_swarm_view(s);
    return elv_drive_scale(s->policies.sync, s->sync_state, &s->sync_cfg, &view);
}

/* Coordinates [at, at + n) of the next model, as server/make.c makes them; adds the squared norm of
 * the step. */
static void apply_to(struct elv_swarm *s, float *w, uint32_t at, uint32_t n, double gain,
                     double *norm2)
{
    const struct elv_rule *rule = s->policies.rule;
    const struct elv_rule_step step = {
        .params = &s->job->rule_params,
        .kernels = s->cfg.kernels,
        .version = s->round.version + 1,
        .sum = s->round.sum + at,
        .gain = gain,
        .w = w + at,
        .mean = s->mean + at,
        .state = s->state ? s->state + (size_t)at * rule->state_per_param : NULL,
        .n = n,
    };
    double more = 0.0;
    rule->apply(&step);
    s->cfg.kernels->norm2(&more, step.mean, n);
    *norm2 += more;
}

/* NULL: it cannot be, or would not be finite. `mean_norm2`: of the weighted mean of the updates. */
static float *apply_rule(struct elv_swarm *s, double *mean_norm2)
{
    const struct elv_tally *t = &s->round.tally;
    const struct elv_sync_scale scale = elv_swarm_scale(s);
    const double gain = elv_tally_gain(t, &s->scales, &scale, s->fleet > 0 ? s->fleet : t->claim);
    const uint32_t n = elv_swarm_n_params(s);
    double norm2 = 0.0;
    if (scale.mixes && elv_swarm_mix_all(s) != ELV_OK)
        return NULL;
    float *w = elv_swarm_vector(s);
    memcpy(w, elv_swarm_master(s), n * sizeof *w);
    for (uint32_t at = 0; at < n; at += STRIDE)
        apply_to(s, w, at, n - at < STRIDE ? n - at : STRIDE, gain, &norm2);
    const double ratio = gain > 0.0 ? elv_mean_gain(&s->scales, t->weight) / gain : 0.0;
    *mean_norm2 = norm2 * ratio * ratio;
    if (elv_swarm_all_finite(w, n))
        return w;
    elv_swarm_give_vector(s, w);
    return NULL;
}

/* What both ways to end a round have in common. */
static void end_round(struct elv_swarm *s, bool abandoned, uint32_t left)
{
    struct elv_swarm_round *r = &s->round;
    struct elv_lab_round *rec = &r->rec;
    const elv_time_us overrun = s->now > r->deadline ? s->now - r->deadline : 0;
    rec->seq = r->seq;
    rec->version = s->versions.at[s->versions.newest].version;
    rec->abandoned = abandoned;
    rec->opened = r->opened;
    rec->closed = s->now;
    rec->deadline = r->deadline;
    rec->n_asked = r->n_asked;
    rec->n_used = r->n_got;
    if (s->flow == &elv_swarm_rounds) { /* of those asked; the others are in the summary */
        rec->n_late = left;
        rec->n_dropped = r->n_asked - r->n_got - rec->n_discarded - left;
    }
    rec->train_loss = elv_tally_loss(&r->tally);
    rec->stale_mean = elv_tally_staleness(&r->tally);
    memcpy(rec->model, s->sum.model, sizeof rec->model);
    if (overrun > s->sum.worst_overrun)
        s->sum.worst_overrun = overrun;
    elv_swarm_record(s, rec);
    elv_swarm_forget_eval(s);
    if (r->sum)
        memset(r->sum, 0, elv_swarm_n_params(s) * sizeof *r->sum);
    elv_swarm_mix_nothing(s);
    r->tally = (struct elv_tally){0};
    *rec = (struct elv_lab_round){.version = 0};
    r->open = false;
    r->ended = s->now;
}

uint32_t elv_swarm_wanted(const struct elv_swarm *s)
{
    const struct elv_sync_round view = elv_swarm_view(s);
    return elv_drive_wanted(s->policies.sync, s->sync_state, &s->sync_cfg, &view);
}

void elv_swarm_abandon(struct elv_swarm *s, uint32_t left)
{
    s->round.rec.wanted = elv_swarm_wanted(s);
    s->round.rec.score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    s->sum.abandoned++;
    s->round.n_abandoned++;
    end_round(s, true, left);
    s->round.not_before = s->now + elv_drive_back_off(s->round.n_abandoned);
}

void elv_swarm_close(struct elv_swarm *s, uint32_t left)
{
    const struct elv_sync *sync = s->policies.sync;
    struct elv_sync_commit commit = {.round = elv_swarm_view(s), .version = s->round.version + 1};
    float *w = NULL;
    elv_swarm_hear_clients(s);
    if (s->sum.reached) { /* by the version the round started from */
        s->ended = true;
        return;
    }
    elv_tally_commit(&s->round.tally, &commit);
    s->round.rec.wanted = elv_swarm_wanted(s);
    const bool learns = elv_swarm_n_params(s) > 0;
    if ((learns && (w = apply_rule(s, &commit.mean_norm2)) == NULL) ||
        elv_swarm_publish(s, w) != ELV_OK) {
        elv_swarm_forget_master(s);
        elv_swarm_abandon(s, left);
        return;
    }
    elv_swarm_evaluate(s);
    s->round.n_abandoned = 0;
    end_round(s, false, left);
    s->round.not_before = s->now;
    if (sync->on_commit)
        sync->on_commit(s->sync_state, &s->sync_cfg, &commit, s->now);
    const bool last = s->cfg.rounds > 0 && commit.version >= s->cfg.rounds;
    s->ended = s->sum.reached || last;
    if (last)
        elv_swarm_survey(s);
}
