/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/swarm.h"

#include <math.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/codec.h"
#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"
#include "server/param.h"

struct elv_sync_round elv_swarm_view(const struct elv_swarm *s)
{
    const struct elv_swarm_round *r = &s->round;
    return (struct elv_sync_round){
        .seq = r->seq,
        .version = r->version,
        .n_asked = r->n_asked,
        .n_got = r->n_got,
        .n_waiting = r->n_waiting,
        .n_joined = s->n_joined,
        .opened = r->open ? r->opened : ELV_NEVER,
        .deadline = r->open ? r->deadline : ELV_NEVER,
    };
}

/* A policy that asks for the moment it was just called at gets the next one. */
elv_time_us elv_swarm_timer(const struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    if (!s->round.open || sync->timer == NULL || sync->on_timer == NULL)
        return ELV_NEVER;
    const elv_time_us at = sync->timer(s->sync_state, &s->sync_cfg);
    return at > s->round.timer_done ? at : s->round.timer_done + 1;
}

void elv_swarm_run_timer(struct elv_swarm *s)
{
    if (s->now < elv_swarm_timer(s))
        return;
    const struct elv_sync_round view = elv_swarm_view(s);
    s->round.timer_done = s->now;
    s->policies.sync->on_timer(s->sync_state, &s->sync_cfg, &view, s->now);
}

void elv_swarm_later(struct elv_swarm *s, elv_time_us at, uint32_t c, uint32_t what)
{
    if (at != ELV_NEVER)
        elv_swarm_queue_push(&s->queue, (struct elv_swarm_due){.at = at, .who = c, .what = what});
}

static enum elv_err check_world(const struct elv_lab_world *w, char *why)
{
    if (w->link.loss < 0.0 || w->link.loss >= 1.0)
        return elv_param_refuse(why, "loss is from 0 to below 1");
    if (w->device.n_regimes > ELV_LAB_REGIMES_MAX)
        return elv_param_refuse(why, "there are too many regimes");
    if (w->trace && w->trace->n_clients == 0)
        return elv_param_refuse(why, "the trace has no clients");
    return ELV_OK;
}

static struct elv_sync_cfg sync_cfg_of(const struct elv_job *job, uint32_t n, uint64_t seed)
{
    return (struct elv_sync_cfg){.clients_max = n,
                                 .quorum = job->quorum,
                                 .deadline_us = job->deadline_us,
                                 .publish_us = job->publish_us,
                                 .seed = seed,
                                 .params = &job->sync_params};
}

/* The most updates one version counts. In ROUNDS as the server has it: those asked, or, where a
 * policy lets others in, everybody. In STREAM a client may deliver more than one between two
 * versions, and the version comes before there are too many. */
uint32_t elv_swarm_counted_max(const struct elv_job *job, const struct elv_policies *p, uint32_t n)
{
    enum { STREAM_LEAST = 1024 };
    const struct elv_sync *sync = p->sync;
    const struct elv_sync_cfg cfg = sync_cfg_of(job, n, job->seed);
    if (sync->flow == ELV_SYNC_STREAM)
        return n > STREAM_LEAST ? n : STREAM_LEAST;
    const uint32_t called = sync->call ? sync->call(&cfg).ask : 0;
    const uint32_t asked = called > 0 ? called : job->select_count;
    return sync->on_pull || asked == 0 || asked > n ? n : asked;
}

/* Only here can a version be pushed, as the papers have it: a live server's clients fetch. */
static bool pushes(const struct elv_params *params)
{
    static const char *const variants[] = {"psw", "psi", NULL};
    return elv_param_word(params, "variant", variants, -1) >= 0;
}

static void set_policy(struct elv_swarm *s)
{
    const struct elv_sync *sync = s->policies.sync;
    s->flow = sync->flow == ELV_SYNC_STREAM ? &elv_swarm_stream : &elv_swarm_rounds;
    s->sync_cfg = sync_cfg_of(s->job, s->cfg.n_clients, s->cfg.seed);
    s->pushes = pushes(&s->job->sync_params);
    s->counted_max = elv_swarm_counted_max(s->job, &s->policies, s->cfg.n_clients);
}

static enum elv_err check(struct elv_swarm *s, char *why)
{
    const struct elv_swarm_cfg *cfg = &s->cfg;
    uint32_t line = 0;
    if (cfg->n_clients == 0 || cfg->n_clients > 1u << 24)
        return elv_param_refuse(why, "the number of clients is from 1 to 16777216");
    enum elv_err err = check_world(cfg->world, why);
    if (err == ELV_OK)
        err = elv_policies_of(s->job, &s->policies, why, &line);
    if (err != ELV_OK)
        return err;
    set_policy(s);
    if (s->job->quorum > cfg->n_clients || s->job->min_clients > cfg->n_clients)
        return elv_param_refuse(why, "quorum and min_clients are at most the number of clients");
    if (s->policies.sync->check)
        err = s->policies.sync->check(&s->sync_cfg, why, &line); /* knowing how many there are */
    if (err == ELV_OK)
        err = elv_scales_of(s->job, s->counted_max, &s->scales, why);
    if (err == ELV_OK && elv_codec_by_id(s->job->down.id) == NULL)
        err = elv_param_refuse(why, "the codec of [transfer] down is not built in");
    if (err == ELV_OK && s->job->deadline_us <= 0)
        err = elv_param_refuse(why, "the deadline is longer than no time");
    return err;
}

static void *zeros(size_t n, size_t size) { return n > 0 ? elv_sim_alloc(n * size) : NULL; }

static void set_learning(struct elv_swarm *s)
{
    const uint32_t n = s->learner ? s->learner->n_params : 0;
    const uint32_t gather = s->learner && s->learner->gather_max > 0 ? s->learner->gather_max : 1;
    if (s->cfg.kernels == NULL)
        s->cfg.kernels = elv_kernels_best();
    s->round.sum = zeros(n, sizeof *s->round.sum);
    s->mean = zeros(n, sizeof *s->mean);
    s->state = zeros((size_t)n * s->policies.rule->state_per_param, sizeof *s->state);
    s->tasks = zeros(n > 0 ? gather : 0, sizeof *s->tasks);
    s->due = zeros(n > 0 ? gather : 0, sizeof *s->due);
}

static void set_clients(struct elv_swarm *s)
{
    const uint32_t n = s->cfg.n_clients;
    struct elv_lab_facts *facts = zeros(n, sizeof *facts);
    s->clients = zeros(n, sizeof *s->clients);
    elv_lab_facts(s->world, s->cfg.seed, facts, n);
    for (uint32_t c = 0; c < n; c++) {
        s->clients[c].work = ELV_SWARM_NONE;
        s->clients[c].facts = facts[c];
    }
    free(facts);
    elv_swarm_set_init(&s->there, n);
}

enum elv_err elv_swarm_new(struct elv_swarm **out, const struct elv_swarm_cfg *cfg, char *why)
{
    struct elv_swarm *s = elv_sim_alloc(sizeof *s);
    s->cfg = *cfg;
    s->job = cfg->job;
    s->world = cfg->world;
    s->learner = cfg->learner;
    s->works.free = s->versions.free = s->freed = ELV_SWARM_NONE;
    s->next_assignment = 1;
    s->sum.best_accuracy = -1.0;
    s->sum.score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    if (check(s, why) != ELV_OK) {
        free(s);
        return ELV_ERR_ARG;
    }
    const struct elv_sync *sync = s->policies.sync;
    s->sync_state = zeros(sync->state_len ? sync->state_len(&s->sync_cfg) : 0, 1);
    set_learning(s);
    set_clients(s);
    elv_swarm_first_version(s);
    elv_swarm_populate(s);
    *out = s;
    return ELV_OK;
}

static void free_work(struct elv_swarm_work *w)
{
    free(w->update);
    free(w->eval);
}

static void free_vectors(struct elv_swarm *s)
{
    for (uint32_t i = 0; i < s->works.n; i++)
        free_work(&s->works.at[i]);
    for (uint32_t i = 0; i < s->versions.n; i++)
        free(s->versions.at[i].w);
    while (s->vectors.n > 0)
        free(s->vectors.at[--s->vectors.n]);
}

void elv_swarm_free(struct elv_swarm *s)
{
    if (s == NULL)
        return;
    free_vectors(s);
    free(s->works.at);
    free(s->versions.at);
    free(s->versions.steps);
    free(s->vectors.at);
    free(s->round.asked);
    free(s->round.before);
    free(s->round.sum);
    free(s->round.eval);
    free(s->mean);
    free(s->master);
    free(s->state);
    free(s->tasks);
    free(s->due);
    free(s->gone);
    free(s->idle);
    free(s->parked.at);
    free(s->clients);
    free(s->sync_state);
    elv_swarm_set_free(&s->there);
    elv_swarm_queue_free(&s->queue);
    free(s);
}

static void pass_time(struct elv_swarm *s, elv_time_us to)
{
    const double us = (double)(to - s->now);
    ELV_ASSERT(to >= s->now);
    s->sum.working_us += us * s->n_working;
    s->sum.waiting_us += us * s->n_waiting;
    s->round.rec.working_us += us * s->n_working;
    s->round.rec.waiting_us += us * s->n_waiting;
    s->now = to;
}

static void happen(struct elv_swarm *s, struct elv_swarm_due e)
{
    const enum elv_swarm_due_kind kind =
        (enum elv_swarm_due_kind)(e.what & ((1u << ELV_SWARM_KIND_BITS) - 1));
    const uint32_t number = e.what >> ELV_SWARM_KIND_BITS;
    switch (kind) {
    case ELV_SWARM_WORK:
        elv_swarm_work_due(s, e.who, number);
        break;
    case ELV_SWARM_ABORT:
    case ELV_SWARM_LAPSE:
    case ELV_SWARM_RETRY:
        s->flow->due(s, e.who, kind, number);
        break;
    case ELV_SWARM_TURN:
    case ELV_SWARM_LEAVE:
    case ELV_SWARM_JOIN:
    case ELV_SWARM_COME:
        elv_swarm_client_due(s, e.who, kind, number);
        break;
    }
}

static elv_time_us horizon(const struct elv_swarm *s)
{
    const double us = s->world->horizon_s * 1e6;
    return us > 0.0 && us < 9e18 ? (elv_time_us)us : ELV_NEVER;
}

static elv_time_us next_moment(const struct elv_swarm *s)
{
    const elv_time_us first = elv_swarm_queue_first(&s->queue), by_itself = s->flow->next(s);
    const elv_time_us at = first < by_itself ? first : by_itself;
    return at > s->now ? at : s->now;
}

static enum elv_err end(struct elv_swarm *s)
{
    s->ended = true;
    elv_swarm_release_record(s);
    return s->err;
}

void elv_swarm_stop(struct elv_swarm *s) { (void)end(s); }

enum elv_err elv_swarm_run(struct elv_swarm *s, elv_time_us until)
{
    const elv_time_us last = horizon(s);
    while (!s->ended) {
        s->flow->settle(s);
        if (s->ended || s->err != ELV_OK)
            break;
        const elv_time_us at = next_moment(s);
        if (at == ELV_NEVER || at > last) {
            pass_time(s, at == ELV_NEVER ? s->now : last);
            break;
        }
        if (at > until) {
            pass_time(s, until > s->now ? until : s->now);
            return ELV_ERR_BUSY;
        }
        pass_time(s, at);
        if (elv_swarm_queue_first(&s->queue) == at)
            happen(s, elv_swarm_queue_pop(&s->queue));
    }
    return end(s);
}

elv_time_us elv_swarm_now(const struct elv_swarm *s) { return s->now; }

const float *elv_swarm_model(const struct elv_swarm *s)
{
    return s->versions.at[s->versions.newest].w;
}
