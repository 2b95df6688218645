/* SPDX-License-Identifier: Apache-2.0 */
#include "server/follow.h"

void elv_follow_init(struct elv_follow *p, const struct elv_job *job, bool scorer,
                     const struct elv_eval_sums *restored)
{
    *p = (struct elv_follow){.job = job, .scorer = scorer};
    p->line.scored = restored->n > 0;
    if (p->line.scored)
        elv_score_of(restored, &p->line.score);
}

/* The newest line, if it still waits. */
static uint32_t release(struct elv_follow *p, struct elv_round_line *out)
{
    if (!p->waiting)
        return 0;
    p->waiting = false;
    *out = p->line;
    return 1;
}

static bool will_be_scored(const struct elv_follow *p, uint32_t version)
{
    const uint32_t every = p->job->eval_every;
    return every != 0 && (version % every == 0 || version == p->job->rounds) &&
           (p->scorer || p->job->eval_on != ELV_EVAL_SERVER);
}

static bool is_its_score(const struct elv_follow *p, const struct elv_note *n)
{
    const enum elv_note_kind kind = p->scorer ? ELV_NOTE_EVALUATED : ELV_NOTE_CLIENTS_EVALUATED;
    return n->kind == kind && n->version == p->line.report.version;
}

static uint32_t close_round(struct elv_follow *p, const struct elv_note *n,
                            struct elv_round_line lines[2])
{
    const uint32_t told = release(p, &lines[0]);
    if (p->began == 0) /* it was opened in an earlier life */
        p->began = n->at - n->report.took;
    p->ended = n->at;
    p->line = (struct elv_round_line){.report = n->report};
    p->waiting = true;
    return will_be_scored(p, n->report.version) ? told : told + release(p, &lines[told]);
}

uint32_t elv_follow_take(struct elv_follow *p, const struct elv_note *n,
                         struct elv_round_line lines[2])
{
    if (n->kind == ELV_NOTE_ROUND_OPENED && p->began == 0)
        p->began = p->ended = n->at;
    if (n->kind == ELV_NOTE_OVER) {
        p->over = true;
        return release(p, &lines[0]); /* no score comes any more */
    }
    if (n->kind == ELV_NOTE_ROUND_CLOSED)
        return close_round(p, n, lines);
    if (n->kind == ELV_NOTE_EVALUATION_FAILED)
        return release(p, &lines[0]);
    if (!is_its_score(p, n))
        return 0;
    p->line.scored = true;
    p->line.score = n->score;
    return release(p, &lines[0]);
}

bool elv_follow_result(struct elv_follow *p)
{
    if (!p->over || p->told || p->waiting)
        return false;
    p->told = true;
    return true;
}

double elv_follow_seconds(const struct elv_follow *p)
{
    return (double)(p->ended - p->began) / 1e6;
}
