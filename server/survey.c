/* SPDX-License-Identifier: Apache-2.0 */
/* A survey: the round after the last, in which clients evaluate and train nothing.
 *
 * What clients find about a version comes with their next updates, so about the last version nobody
 * would hear. Once that is durable every client that is there is asked to evaluate it. A survey is
 * written down, resumed and timed like any round, but no policy has a say in it: it ends when
 * nobody is left to wait for, at the latest at the job's deadline, with whatever is there. Its end
 * is stored with what it decides, and only then the job is over. */
#include "server/core.h"

bool elv_core_is_survey(const struct elv_server *s)
{
    return s->round.state != ELV_ROUND_NONE && s->round.what == ELV_WHAT_EVALUATE;
}

bool elv_core_survey_is_due(const struct elv_server *s)
{
    const bool wanted = s->job->eval_every > 0 && s->job->eval_on != ELV_EVAL_SERVER;
    return wanted && elv_core_is_finished(s) && s->head.surveyed != s->head.version &&
           s->roster.n_joined > 0;
}

void elv_core_open_survey(struct elv_server *s)
{
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_EVALUATION_OPENED, s->now);
    note->round = s->round.seq;
    note->version = s->round.version;
    note->value = s->round.n_asked;
}

void elv_core_check_survey(struct elv_server *s)
{
    if (s->round.n_waiting == 0 || s->now >= s->round.deadline)
        s->round.state = ELV_ROUND_CLOSING; /* whoever is late hears that the job is over */
}

bool elv_core_survey_is_done(const struct elv_server *s)
{
    return elv_core_is_survey(s) && s->round.state == ELV_ROUND_CLOSING && s->round.n_soft == 0;
}

void elv_core_settle_survey(struct elv_server *s)
{
    s->head.surveyed = s->round.version;
    s->head.reached = s->head.reached || elv_core_target_is_met(s, &s->round.sums.eval);
}

void elv_core_survey_stored(struct elv_server *s, struct elv_actions *out)
{
    elv_core_end_round(s, out);
    elv_core_note_clients_score(s);
}
