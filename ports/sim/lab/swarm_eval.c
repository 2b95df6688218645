/* SPDX-License-Identifier: Apache-2.0 */
/* How good versions are: by the learner's test set when they are made, or, where the job leaves it
 * to the clients, by what they find about the version they train from, as the server does it.
 *
 * Then a version is known with the updates of the round that started from it, and its record waits
 * for that. About the last version nobody would say anything: everybody there is asked, in no time.
 */
#include <math.h>
#include <stdlib.h>

#include "ports/sim/lab/swarm_parts.h"
#include "ports/sim/queue.h"

static const struct elv_lab_score unknown = {.loss = (double)NAN, .accuracy = -1.0};

bool elv_swarm_clients_evaluate(const struct elv_swarm *s)
{
    return elv_swarm_n_params(s) > 0 && s->learner->clients_evaluate &&
           s->job->eval_on == ELV_EVAL_CLIENTS;
}

/* With a target a version is evaluated whenever it can be. */
static bool is_due(const struct elv_swarm *s, uint32_t version)
{
    const bool target = s->cfg.target_accuracy > 0.0 || s->cfg.target_loss > 0.0;
    const uint32_t every = s->job->eval_every == 0 && target ? 1 : s->job->eval_every;
    return every != 0 && (version % every == 0 || version == s->cfg.rounds);
}

static void take_score(struct elv_swarm *s, const struct elv_lab_score *score)
{
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

void elv_swarm_evaluate(struct elv_swarm *s)
{
    const struct elv_swarm_version *v = &s->versions.at[s->versions.newest];
    struct elv_lab_score *score = &s->round.rec.score;
    *score = unknown;
    if (elv_swarm_n_params(s) == 0 || s->learner->evaluate == NULL || s->err != ELV_OK ||
        elv_swarm_clients_evaluate(s) || !is_due(s, v->version))
        return;
    s->err = s->learner->evaluate(s->learner->self, v->w, score);
    take_score(s, score);
}

/* Records. */

void elv_swarm_release_record(struct elv_swarm *s)
{
    if (s->held_back)
        elv_swarm_tell_round(s, &s->held);
    s->held_back = false;
}

void elv_swarm_record(struct elv_swarm *s, const struct elv_lab_round *r)
{
    elv_swarm_release_record(s);
    s->held_back =
        elv_swarm_clients_evaluate(s) && !r->abandoned && is_due(s, r->version) && !s->sum.reached;
    if (s->held_back)
        s->held = *r;
    else
        elv_swarm_tell_round(s, r);
}

/* What clients find. */

void elv_swarm_keep_eval(const struct elv_swarm *s, struct elv_swarm_work *w,
                         const struct elv_eval_sums *eval)
{
    if (eval->n == 0 || !elv_swarm_clients_evaluate(s))
        return;
    w->eval = elv_sim_alloc(sizeof *w->eval);
    *w->eval = *eval;
}

/* Nobody decides alone, as server/decide.c has it. */
static void add_eval(struct elv_swarm *s, const struct elv_eval_sums *eval)
{
    if (eval->n > s->job->max_weight)
        return;
    if (s->round.eval == NULL)
        s->round.eval = elv_sim_alloc(sizeof *s->round.eval);
    elv_eval_add(s->round.eval, eval);
}

void elv_swarm_add_eval(struct elv_swarm *s, const struct elv_swarm_work *w)
{
    if (w->eval != NULL)
        add_eval(s, w->eval);
}

void elv_swarm_forget_eval(struct elv_swarm *s)
{
    if (s->round.eval != NULL)
        *s->round.eval = (struct elv_eval_sums){0};
}

void elv_swarm_hear_clients(struct elv_swarm *s)
{
    struct elv_score score;
    if (s->round.eval == NULL || s->round.eval->n == 0)
        return;
    elv_score_of(s->round.eval, &score);
    struct elv_lab_score told = {.loss = score.loss, .accuracy = -1.0, .sums = *s->round.eval};
    if (score.accuracy >= 0.0) /* not a NaN */
        told.accuracy = score.accuracy;
    take_score(s, &told);
    if (!s->held_back)
        return;
    s->held.score = told;
    elv_swarm_release_record(s);
}

/* The least work that makes a client look at a version; what it learns is thrown away. */
static void ask_for_eval(struct elv_swarm *s, uint32_t c, struct elv_lab_task *t)
{
    const struct elv_swarm_version *v = &s->versions.at[s->versions.newest];
    const struct elv_candidate who = elv_swarm_candidate(s, c);
    const struct elv_size size = s->policies.sizing->size(s->job, &who);
    *t = (struct elv_lab_task){.client = c + 1,
                               .assignment = s->next_assignment,
                               .version = v->version,
                               .base = v->w,
                               .size = {.local_steps = 1, .batch = size.batch},
                               .learning_rate = (float)v->rate,
                               .update = elv_swarm_vector(s)};
}

static void hear(struct elv_swarm *s, uint32_t n)
{
    s->err = s->learner->train(s->learner->self, s->tasks, n);
    for (uint32_t i = 0; i < n; i++) {
        if (s->err == ELV_OK && s->tasks[i].err == ELV_OK)
            add_eval(s, &s->tasks[i].eval);
        elv_swarm_give_vector(s, s->tasks[i].update);
    }
}

void elv_swarm_survey(struct elv_swarm *s)
{
    const uint32_t most = s->learner && s->learner->gather_max > 0 ? s->learner->gather_max : 1;
    uint32_t n = 0;
    if (!elv_swarm_clients_evaluate(s) || s->job->eval_every == 0)
        return;
    elv_swarm_forget_eval(s);
    for (uint32_t i = 0; i < s->there.n && s->err == ELV_OK; i++) {
        ask_for_eval(s, elv_swarm_set_at(&s->there, i), &s->tasks[n++]);
        if (n == most || i + 1 == s->there.n) {
            hear(s, n);
            n = 0;
        }
    }
    elv_swarm_hear_clients(s);
}
