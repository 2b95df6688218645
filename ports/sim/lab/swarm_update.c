/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/chunk.h"
#include "ports/sim/lab/swarm_parts.h"

/* Nothing is trained ahead that nobody will count: what is dropped, and in ROUNDS what is late. */
static bool will_be_needed(const struct elv_swarm *s, const struct elv_swarm_work *w)
{
    const bool late = s->flow == &elv_swarm_rounds && w->seq != s->round.seq;
    return w->client != ELV_SWARM_NONE && !w->trained && !w->dropped && !late;
}

static bool sooner(const struct elv_swarm_work *a, const struct elv_swarm_work *b)
{
    return a->ends != b->ends ? a->ends < b->ends : a->client < b->client;
}

/* Pieces to train at once: in ROUNDS no more than the policy still waits for. */
static uint32_t most_of(const struct elv_swarm *s)
{
    const uint32_t most = s->learner->gather_max > 0 ? s->learner->gather_max : 1;
    const uint32_t wanted = elv_swarm_wanted(s), got = s->round.n_got;
    if (s->flow != &elv_swarm_rounds || wanted == 0)
        return most;
    const uint32_t left = wanted > got ? wanted - got : 1;
    return left < most ? left : most;
}

/* `first` and those that will be needed soonest, up to gather_max, in that order. */
static uint32_t gather(struct elv_swarm *s, struct elv_swarm_work *first)
{
    struct elv_swarm_work **due = s->due;
    const uint32_t most = most_of(s);
    uint32_t n = 1;
    due[0] = first;
    for (uint32_t i = 0; most > 1 && i < s->works.n; i++) {
        struct elv_swarm_work *w = &s->works.at[i];
        if (w == first || !will_be_needed(s, w) || (n == most && !sooner(w, due[n - 1])))
            continue;
        n += n < most;
        uint32_t at = n - 1;
        for (; at > 1 && sooner(w, due[at - 1]); at--)
            due[at] = due[at - 1];
        due[at] = w;
    }
    return n;
}

static void prepare(struct elv_swarm *s, struct elv_swarm_work *w, struct elv_lab_task *t)
{
    const struct elv_swarm_version *v = &s->versions.at[w->base];
    const struct elv_candidate who = elv_swarm_candidate(s, w->client);
    w->update = elv_swarm_vector(s);
    *t = (struct elv_lab_task){.client = w->client + 1,
                               .assignment = w->assignment,
                               .version = v->version,
                               .base = v->w,
                               .size = s->policies.sizing->size(s->job, &who),
                               .learning_rate = (float)v->rate,
                               .update = w->update};
}

static void keep(const struct elv_swarm *s, struct elv_swarm_work *w, const struct elv_lab_task *t)
{
    w->trained = true;
    w->err = t->err;
    w->samples = t->samples;
    w->seen = t->seen;
    w->steps = t->steps;
    w->loss_sum = t->loss_sum;
    elv_swarm_keep_eval(s, w, &t->eval);
    w->bytes_up = t->bytes_up > 0 ? t->bytes_up : 4 * (uint64_t)s->learner->n_params;
}

void elv_swarm_train(struct elv_swarm *s, struct elv_swarm_work *w)
{
    if (s->learner == NULL || s->learner->n_params == 0 || w->trained || s->err != ELV_OK)
        return;
    const uint32_t n = gather(s, w);
    for (uint32_t i = 0; i < n; i++)
        prepare(s, s->due[i], &s->tasks[i]);
    s->err = s->learner->train(s->learner->self, s->tasks, n);
    for (uint32_t i = 0; i < n; i++)
        keep(s, s->due[i], &s->tasks[i]);
}

static struct elv_view view_of(const struct elv_swarm *s, const struct elv_swarm_work *w,
                               uint32_t weight)
{
    return (struct elv_view){
        .kind = ELV_VIEW_F32, .values = w->update, .n = s->learner->n_params, .weight = weight};
}

/* Chunk by chunk as the server computes it, so that the last bits agree. */
static double norm2_of(const struct elv_swarm *s, const float *v)
{
    const uint32_t n = s->learner->n_params, full = ELV_CHUNK_PAYLOAD_MAX / 4;
    double sum = 0.0;
    for (uint32_t at = 0; at < n; at += full) {
        double part = 0.0;
        s->cfg.kernels->norm2(&part, v + at, n - at < full ? n - at : full);
        sum += part;
    }
    return sum;
}

/* What the server refuses whatever the policy says. */
static bool is_sound(const struct elv_swarm *s, const struct elv_swarm_work *w, double norm2)
{
    const struct elv_view view = view_of(s, w, 0);
    const double most = (double)s->job->clip * 1.001;
    uint32_t bad = 0;
    s->cfg.kernels->check(&bad, &view, s->job->bound);
    return bad == 0 && (s->job->clip <= 0.0f || norm2 <= most * most);
}

static struct elv_sync_worth ask_policy(struct elv_swarm *s, const struct elv_swarm_work *w,
                                        uint32_t staleness, double norm2)
{
    const bool rounds = s->flow == &elv_swarm_rounds;
    const struct elv_sync_round view = elv_swarm_view(s);
    const struct elv_sync_update u = {
        .from = elv_swarm_id(w->client),
        .version = s->versions.at[w->base].version,
        .staleness = staleness,
        .samples = w->samples,
        .seen = w->seen,
        .steps = w->steps,
        .loss_sum = w->loss_sum,
        .norm2 = norm2,
        .bytes = w->bytes_up,
        .compute_ms = w->compute_ms,
        .started = rounds ? s->round.opened : w->started,
    };
    return s->policies.sync->on_update(s->sync_state, &s->sync_cfg, &view, &u, s->now);
}

static void add_up(struct elv_swarm *s, const struct elv_swarm_work *w,
                   const struct elv_tally_item *item)
{
    elv_tally_add(&s->round.tally, &s->scales, item);
    if (w->update == NULL)
        return;
    const struct elv_view view = view_of(s, w, item->weight);
    s->cfg.kernels->fold(s->round.sum, &view, 1, s->scales.value_bits);
}

static void count(struct elv_swarm *s, uint32_t c, uint32_t staleness)
{
    const uint32_t bin = staleness < ELV_LAB_STALE_BINS ? staleness : ELV_LAB_STALE_BINS - 1;
    const double used = s->clients[c].used++;
    s->used_squares += 2.0 * used + 1.0;
    s->counted++;
    s->round.n_got++;
    s->round.rec.stale[bin]++;
    s->sum.stale[bin]++;
    s->sum.stale_mean += staleness; /* a sum until the summary is taken */
}

static double effort_of(const struct elv_swarm *s, uint32_t steps)
{
    const struct elv_rule *rule = s->policies.rule;
    const double effort = rule->effort ? rule->effort(s->job, steps) : 1.0;
    return effort > 1.0 ? effort : 1.0;
}

/* It counts, by this factor. */
static void use(struct elv_swarm *s, struct elv_swarm_work *w, uint32_t staleness, double norm2,
                double factor)
{
    w->fate = ELV_LAB_FATE_ACCEPTED;
    struct elv_tally_item item = {
        .claim = elv_weight_claim(s->job->weight, w->samples, w->seen),
        .factor = factor < 1.0 ? factor : 1.0,
        .effort = effort_of(s, w->steps),
        .norm2 = norm2,
        .rate = s->versions.at[w->base].rate,
        .steps = w->steps,
        .seen = w->update ? w->seen : 0, /* where nothing is learnt there is no loss */
        .staleness = staleness,
        .loss_sum = w->loss_sum,
    };
    item.weight = elv_weight_of(&s->scales, item.claim, item.factor / item.effort);
    if (w->update && elv_swarm_scale(s).mixes)
        elv_swarm_mix(s, w->base, item.weight);
    add_up(s, w, &item);
    elv_swarm_add_eval(s, w);
    count(s, w->client, staleness);
    elv_swarm_tell(s, ELV_LAB_USED, w->client, w, staleness, item.weight);
}

void elv_swarm_miss(struct elv_swarm *s, struct elv_swarm_work *w)
{
    if (s->learner != NULL && s->learner->decided != NULL)
        elv_swarm_train(s, w);
    w->fate = ELV_LAB_FATE_LATE;
}

void elv_swarm_judge(struct elv_swarm *s, struct elv_swarm_work *w)
{
    double norm2 = 0.0;
    w->fate = ELV_LAB_FATE_LATE;
    elv_swarm_train(s, w);
    const uint64_t since = s->counted - s->versions.at[w->base].counted;
    const uint32_t staleness = s->flow == &elv_swarm_rounds ? 0 : (uint32_t)since;
    struct elv_sync_worth worth = {.counts = s->err == ELV_OK && w->err == ELV_OK};
    if (w->update && worth.counts) {
        norm2 = norm2_of(s, w->update);
        worth.counts = is_sound(s, w, norm2);
        if (!worth.counts)
            w->fate = ELV_LAB_FATE_SPOILT;
    }
    if (worth.counts)
        worth = ask_policy(s, w, staleness, norm2);
    elv_swarm_count_up(s, w);
    if (worth.counts && worth.weight > 0.0)
        use(s, w, staleness, norm2, worth.weight);
    else
        elv_swarm_tell(s, ELV_LAB_DISCARDED, w->client, w, staleness, 0);
}
