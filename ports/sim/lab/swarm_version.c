/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/exact.h"
#include "common/sha256.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

static uint32_t n_params(const struct elv_swarm *s)
{
    return s->learner ? s->learner->n_params : 0;
}

float *elv_swarm_vector(struct elv_swarm *s)
{
    struct elv_swarm_vectors *v = &s->vectors;
    return v->n > 0 ? v->at[--v->n] : elv_sim_alloc((size_t)n_params(s) * sizeof(float));
}

void elv_swarm_give_vector(struct elv_swarm *s, float *at)
{
    struct elv_swarm_vectors *v = &s->vectors;
    if (v->n == v->cap) {
        v->cap = v->cap == 0 ? 16 : v->cap * 2;
        v->at = elv_sim_grow(v->at, v->cap, sizeof *v->at);
    }
    v->at[v->n++] = at;
}

static uint32_t take(struct elv_swarm_versions *v)
{
    if (v->free != ELV_SWARM_NONE) {
        const uint32_t i = v->free;
        v->free = v->at[i].next;
        return i;
    }
    if (v->n == v->cap) {
        v->cap = v->cap == 0 ? 16 : v->cap * 2;
        v->at = elv_sim_grow(v->at, v->cap, sizeof *v->at);
    }
    return v->n++;
}

void elv_swarm_release(struct elv_swarm *s, uint32_t version)
{
    struct elv_swarm_version *v = &s->versions.at[version];
    ELV_ASSERT(v->refs > 0);
    if (--v->refs > 0)
        return;
    if (v->w)
        elv_swarm_give_vector(s, v->w);
    v->w = NULL;
    v->next = s->versions.free;
    s->versions.free = version;
}

static void digest(const struct elv_swarm *s, const float *w, uint8_t out[32])
{
    struct elv_sha256 sha;
    if (w == NULL)
        return;
    elv_sha256_init(&sha); /* little-endian machines only, as all servers are */
    elv_sha256_update(&sha, (const uint8_t *)w, (size_t)n_params(s) * sizeof *w);
    elv_sha256_final(&sha, out);
}

void elv_swarm_first_version(struct elv_swarm *s)
{
    const uint32_t i = s->versions.newest = take(&s->versions);
    s->rate = (double)s->job->learning_rate;
    s->versions.at[i] = (struct elv_swarm_version){.refs = 1, .rate = s->rate};
    if (n_params(s) == 0)
        return;
    s->versions.at[i].w = elv_swarm_vector(s);
    s->learner->init(s->learner->self, s->versions.at[i].w);
    digest(s, s->versions.at[i].w, s->sum.model);
}

static void publish(struct elv_swarm *s, float *w)
{
    const uint32_t before = s->versions.newest, i = take(&s->versions);
    s->rate *= (double)s->job->learning_rate_decay;
    s->versions.at[i] = (struct elv_swarm_version){.version = s->versions.at[before].version + 1,
                                                   .refs = 1,
                                                   .counted = s->counted,
                                                   .rate = s->rate,
                                                   .w = w};
    s->versions.newest = i;
    elv_swarm_release(s, before);
    digest(s, w, s->sum.model);
}

static bool all_finite(const float *v, uint32_t n)
{
    bool fine = true;
    for (uint32_t i = 0; i < n; i++)
        fine = fine && elv_finite_f32(v[i]);
    return fine;
}

/* The factor that turns the sum into the step. */
static double gain_of(const struct elv_swarm *s, const struct elv_sync_scale *scale)
{
    const struct elv_swarm_sums *sums = &s->round.sums;
    const uint64_t by = scale->by == ELV_SYNC_BY_FLEET     ? s->fleet
                        : scale->by == ELV_SYNC_BY_CLAIMED ? sums->claims
                                                           : sums->weight;
    const double effort = sums->effort / (double)sums->claims;
    return elv_mean_gain(&s->scales, by > 0 ? by : 1) * scale->step * effort;
}

struct elv_sync_scale elv_swarm_scale(const struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_swarm_view(s);
    if (sync->scale)
        return sync->scale(s->sync_state, &s->sync_cfg, &view);
    return (struct elv_sync_scale){.by = ELV_SYNC_BY_USED, .step = 1.0};
}

/* Squared norm of the weighted mean. */
static double mean_norm2(struct elv_swarm *s)
{
    double norm2 = 0.0;
    if (n_params(s) == 0)
        return 0.0;
    const struct elv_kernels *k = s->cfg.kernels;
    k->unfold(s->mean, s->round.sums.vector, elv_mean_gain(&s->scales, s->round.sums.weight),
              n_params(s));
    k->norm2(&norm2, s->mean, n_params(s));
    return norm2;
}

/* NULL: it would not be finite. */
static float *apply_rule(struct elv_swarm *s)
{
    const struct elv_sync_scale scale = elv_swarm_scale(s);
    const uint32_t n = n_params(s);
    float *w = elv_swarm_vector(s);
    memcpy(w, s->versions.at[s->versions.newest].w, n * sizeof *w);
    const struct elv_rule_step step = {
        .params = &s->job->rule_params,
        .kernels = s->cfg.kernels,
        .version = s->versions.at[s->versions.newest].version + 1,
        .sum = s->round.sums.vector,
        .gain = gain_of(s, &scale),
        .w = w,
        .mean = s->mean,
        .state = s->state,
        .n = n,
    };
    s->policies.rule->apply(&step);
    if (all_finite(w, n))
        return w;
    elv_swarm_give_vector(s, w);
    return NULL;
}

static bool eval_is_due(const struct elv_swarm *s, uint32_t version)
{
    const bool target = s->cfg.target_accuracy > 0.0 || s->cfg.target_loss > 0.0;
    const uint32_t every = s->job->eval_every == 0 && target ? 1 : s->job->eval_every;
    if (n_params(s) == 0 || s->learner->evaluate == NULL || every == 0)
        return false;
    return version % every == 0 || version == s->cfg.rounds;
}

static void evaluate(struct elv_swarm *s)
{
    const struct elv_swarm_version *v = &s->versions.at[s->versions.newest];
    struct elv_lab_score *score = &s->round.rec.score;
    *score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    if (!eval_is_due(s, v->version) || s->err != ELV_OK)
        return;
    s->err = s->learner->evaluate(s->learner->self, v->w, score);
    s->sum.score = *score;
    if (score->accuracy > s->sum.best_accuracy)
        s->sum.best_accuracy = score->accuracy;
    const bool accurate = s->cfg.target_accuracy > 0.0 && score->accuracy >= s->cfg.target_accuracy;
    if ((accurate || (s->cfg.target_loss > 0.0 && score->loss <= s->cfg.target_loss)) &&
        !s->sum.reached) {
        s->sum.reached = true;
        s->sum.reached_at = s->now;
    }
}

static struct elv_sync_commit commit_of(struct elv_swarm *s)
{
    const struct elv_swarm_sums *sums = &s->round.sums;
    const double weight = (double)sums->weight;
    return (struct elv_sync_commit){
        .round = elv_swarm_view(s),
        .version = s->round.version + 1,
        .loss = sums->seen > 0 ? sums->loss_sum / (double)sums->seen : (double)NAN,
        .norm2 = sums->norm2 / weight,
        .mean_norm2 = s->policies.sync->on_commit ? mean_norm2(s) : 0.0,
        .n_effective = weight * weight / sums->weight2,
        .rate = sums->rate / s->round.n_got,
    };
}

/* What both ways to end a round have in common. */
static void end_round(struct elv_swarm *s, bool abandoned, uint32_t left)
{
    struct elv_swarm_round *r = &s->round;
    struct elv_swarm_sums *sums = &r->sums;
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
    rec->n_late = left;
    rec->train_loss = sums->seen > 0 ? sums->loss_sum / (double)sums->seen : (double)NAN;
    rec->stale_mean = r->n_got > 0 ? sums->stale / r->n_got : 0.0;
    memcpy(rec->model, s->sum.model, sizeof rec->model);
    if (overrun > s->sum.worst_overrun)
        s->sum.worst_overrun = overrun;
    elv_swarm_tell_round(s);
    if (sums->vector)
        memset(sums->vector, 0, n_params(s) * sizeof *sums->vector);
    *sums = (struct elv_swarm_sums){.vector = sums->vector};
    *rec = (struct elv_lab_round){.version = 0};
    r->open = false;
    r->ended = s->now;
}

/* One second after the first failure in a row, doubling to a minute. */
static elv_time_us back_off(uint32_t n_abandoned)
{
    const elv_time_us second = 1000000;
    const uint32_t doublings = n_abandoned > 6 ? 6 : n_abandoned > 0 ? n_abandoned - 1 : 0;
    const elv_time_us wait = second << doublings;
    return wait < 60 * second ? wait : 60 * second;
}

static uint32_t wanted(const struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_swarm_view(s);
    if (sync->wanted)
        return sync->wanted(s->sync_state, &s->sync_cfg, &view);
    return sync->flow == ELV_SYNC_ROUNDS ? view.n_asked : 0;
}

void elv_swarm_abandon(struct elv_swarm *s, uint32_t left)
{
    s->round.rec.wanted = wanted(s);
    s->round.rec.score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    s->sum.abandoned++;
    s->round.n_abandoned++;
    end_round(s, true, left);
    s->round.not_before = s->now + back_off(s->round.n_abandoned);
}

void elv_swarm_close(struct elv_swarm *s, uint32_t left)
{
    float *w = NULL;
    const struct elv_sync_commit commit = commit_of(s);
    s->round.rec.wanted = wanted(s);
    if (n_params(s) > 0 && (w = apply_rule(s)) == NULL) {
        elv_swarm_abandon(s, left);
        return;
    }
    publish(s, w);
    evaluate(s);
    s->round.n_abandoned = 0;
    end_round(s, false, left);
    s->round.not_before = s->now;
    if (s->policies.sync->on_commit)
        s->policies.sync->on_commit(s->sync_state, &s->sync_cfg, &commit, s->now);
    if (s->sum.reached || (s->cfg.rounds > 0 && commit.version >= s->cfg.rounds))
        s->ended = true;
}
