/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's notes and the clients' doings amount to. A round's record waits for the score
 * of its version, as an operator's line does (server/follow.h). */
#include <math.h>
#include <string.h>

#include "ports/sim/lab/deploy_parts.h"

void elv_deploy_pass_time(struct elv_deploy *d)
{
    const elv_time_us now = elv_sim_now(d->w);
    const double us = (double)(now - d->at);
    d->sum.working_us += us * d->n_working;
    d->sum.waiting_us += us * d->n_waiting;
    d->rec.working_us += us * d->n_working;
    d->rec.waiting_us += us * d->n_waiting;
    d->at = now;
}

static void tell(struct elv_deploy *d, const struct elv_lab_event *e)
{
    elv_lab_count(&d->sum, &d->rec, e->kind);
    if (d->cfg.run.sink.event)
        d->cfg.run.sink.event(d->cfg.run.sink.self, e);
}

void elv_deploy_tell(struct elv_deploy_client *c, enum elv_lab_event_kind kind, uint32_t staleness,
                     uint32_t weight)
{
    struct elv_deploy *d = c->deploy;
    tell(d, &(struct elv_lab_event){.at = elv_sim_now(d->w),
                                    .kind = kind,
                                    .client = c->number,
                                    .round = c->round,
                                    .version = c->version,
                                    .assignment = c->assignment,
                                    .staleness = staleness,
                                    .weight = weight});
}

/* Clients. */

static struct elv_deploy_client *client_of(struct elv_deploy *d, const struct elv_note *n)
{
    return &d->clients[n->client - 1];
}

static void came_or_went(struct elv_deploy *d, const struct elv_note *n,
                         enum elv_lab_event_kind kind)
{
    struct elv_deploy_client *c = client_of(d, n);
    if (kind == ELV_LAB_JOINED && !c->ever) {
        c->ever = true;
        d->n_ever++;
    }
    if (kind == ELV_LAB_LEFT)
        elv_deploy_set_waits(c, false);
    tell(d, &(struct elv_lab_event){.at = n->at,
                                    .kind = kind,
                                    .client = n->client,
                                    .round = d->rec.seq,
                                    .version = elv_server_stats(d->server)->version});
}

static const struct elv_rec_decision *decision_of(const struct elv_deploy *d, uint32_t client)
{
    const struct elv_roster *r = &d->server->roster;
    return &r->rows[elv_roster_find(r, client)].last;
}

static void count_used(struct elv_deploy *d, struct elv_deploy_client *c,
                       const struct elv_rec_decision *last)
{
    const uint32_t bin =
        last->staleness < ELV_LAB_STALE_BINS ? last->staleness : ELV_LAB_STALE_BINS - 1;
    const double used = c->used++;
    c->used_last = last->assignment;
    d->used_squares += 2.0 * used + 1.0;
    d->rec.stale[bin]++;
    d->sum.stale[bin]++;
    d->sum.stale_mean += last->staleness; /* a sum until the summary is taken */
}

/* A server that crashed before a decision was durable makes it again: it counts once. */
static void decided(struct elv_deploy *d, const struct elv_note *n)
{
    struct elv_deploy_client *c = client_of(d, n);
    const struct elv_rec_decision *last = decision_of(d, n->client);
    const bool used = n->kind == ELV_NOTE_UPDATE_ACCEPTED, again = c->used_last == last->assignment;
    const struct elv_lab_event e = {
        .at = n->at,
        .kind = used                                  ? ELV_LAB_USED
                : n->kind == ELV_NOTE_UPDATE_DECLINED ? ELV_LAB_DROPPED
                                                      : ELV_LAB_DISCARDED,
        .client = n->client,
        .round = n->round,
        .version = n->version,
        .assignment = last->assignment,
        .staleness = used ? last->staleness : 0,
        .weight = used ? (uint32_t)n->value : 0,
    };
    if (c->assignment == last->assignment)
        elv_deploy_decided(c);
    if (used && again)
        return;
    if (used)
        count_used(d, c, last);
    tell(d, &e);
}

/* Rounds. */

static void emit(struct elv_deploy *d, const struct elv_lab_round *r)
{
    d->sum.rounds++;
    if (d->cfg.run.sink.round)
        d->cfg.run.sink.round(d->cfg.run.sink.self, r);
}

static void release(struct elv_deploy *d, const struct elv_lab_score *score)
{
    if (!d->closed_waits)
        return;
    d->closed_waits = false;
    if (score != NULL)
        d->closed.score = *score;
    emit(d, &d->closed);
}

void elv_deploy_flush(struct elv_deploy *d)
{
    elv_deploy_pass_time(d);
    release(d, NULL);
}

/* What those do who were not asked this time is not waiting. */
static void stop_waiting(struct elv_deploy *d)
{
    for (uint32_t i = 0; i < d->cfg.run.n_clients && d->n_waiting > 0; i++)
        elv_deploy_set_waits(&d->clients[i], false);
}

static void open_round(struct elv_deploy *d, uint32_t seq, elv_time_us opened, uint32_t n_asked)
{
    elv_deploy_pass_time(d);
    d->round_open = true;
    d->rec.seq = seq;
    d->rec.opened = opened;
    d->rec.deadline = opened + d->job.deadline_us;
    d->rec.n_asked = n_asked;
    if (!d->streams)
        stop_waiting(d);
}

/* Whose round a poll or a handshake belongs to nobody can say: all since the round before count. */
static void count_wire(struct elv_deploy *d)
{
    const struct elv_sim_stats s = elv_sim_stats(d->w);
    d->rec.wire_up = s.wire_up - d->wire_up;
    d->rec.wire_down = s.wire_down - d->wire_down;
    d->wire_up = s.wire_up;
    d->wire_down = s.wire_down;
}

/* A round that was open goes on; one that ended unseen with the server's last life is made up for
 * from what is known of its version. */
static void resume(struct elv_deploy *d, const struct elv_note *n)
{
    const struct elv_server *s = d->server;
    if (n->version > d->sum.version && n->version > 0) {
        const struct elv_rec_version *v = &s->cast.rec;
        release(d, NULL);
        count_wire(d);
        d->rec.seq = v->seq;
        d->rec.version = n->version;
        d->rec.closed = n->at;
        d->rec.n_used = v->n_used;
        d->rec.train_loss = (double)NAN;
        d->rec.score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
        memcpy(d->rec.model, v->model, sizeof d->rec.model);
        memcpy(d->sum.model, v->model, sizeof d->sum.model);
        emit(d, &d->rec);
        d->sum.version = n->version;
        d->rec = (struct elv_lab_round){.version = 0};
        d->round_open = false;
        elv_deploy_wake(d);
    }
    if (n->round != 0 && !(d->round_open && d->rec.seq == n->round))
        open_round(d, n->round, s->round.opened, s->round.n_asked);
}

/* Clients that are down, of those asked: who never took the work up was asked where all were. */
static uint32_t count_silent(const struct elv_deploy *d)
{
    const bool all = d->rec.n_asked >= elv_server_stats(d->server)->n_joined;
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->cfg.run.n_clients; i++) {
        const struct elv_deploy_client *c = &d->clients[i];
        n += c->node == NULL && c->ever && (all || c->round == d->rec.seq);
    }
    return n;
}

/* The silent are not late; see rounds_csv.h. */
static void count_asked(struct elv_deploy *d, uint32_t n_late)
{
    struct elv_lab_round *rec = &d->rec;
    const uint32_t silent = n_late > 0 ? count_silent(d) : 0;
    rec->n_late = n_late > silent ? n_late - silent : 0;
    const uint32_t known = rec->n_used + rec->n_discarded + rec->n_late;
    rec->n_dropped = rec->n_asked > known ? rec->n_asked - known : 0;
}

static void fill_record(struct elv_deploy *d, const struct elv_note *n, bool abandoned)
{
    const struct elv_round_report *r = &n->report;
    struct elv_lab_round *rec = &d->rec;
    rec->seq = n->round;
    rec->version = n->version;
    rec->abandoned = abandoned;
    rec->closed = n->at;
    rec->wanted = r->wanted;
    rec->n_asked = r->n_asked;
    rec->n_used = r->n_used;
    if (!d->streams)
        count_asked(d, r->n_late);
    rec->bytes_up = r->bytes_up;
    rec->bytes_down = r->bytes_down;
    count_wire(d);
    rec->train_loss = r->loss;
    rec->stale_mean = r->staleness;
    rec->score = (struct elv_lab_score){.loss = (double)NAN, .accuracy = -1.0};
    memcpy(rec->model, elv_server_stats(d->server)->model, sizeof rec->model);
    if (r->overrun > d->sum.worst_overrun)
        d->sum.worst_overrun = r->overrun;
}

static void end_round(struct elv_deploy *d, const struct elv_note *n)
{
    const bool abandoned = n->kind == ELV_NOTE_ROUND_ABANDONED;
    elv_deploy_pass_time(d);
    fill_record(d, n, abandoned);
    release(d, NULL);
    if (abandoned) {
        d->sum.abandoned++;
        emit(d, &d->rec);
    } else {
        d->closed = d->rec;
        d->closed_waits = true;
        d->sum.version = n->version;
        memcpy(d->sum.model, d->rec.model, sizeof d->sum.model);
    }
    d->rec = (struct elv_lab_round){.version = 0};
    d->round_open = false;
    if (!d->streams)
        elv_deploy_wake(d);
}

/* Scores. */

static bool by_server(const struct elv_deploy *d)
{
    return d->server_cfg.scorer != NULL && d->job.eval_on != ELV_EVAL_CLIENTS;
}

static struct elv_lab_score score_of(const struct elv_deploy *d, const struct elv_score *s)
{
    struct elv_lab_score score = {.loss = s->loss, .accuracy = -1.0};
    if (by_server(d))
        score.sums = d->exam.score.sums;
    if (s->accuracy >= 0.0) /* not a NaN */
        score.accuracy = s->accuracy;
    return score;
}

static void evaluated(struct elv_deploy *d, const struct elv_note *n)
{
    const struct elv_swarm_cfg *run = &d->cfg.run;
    const struct elv_lab_score score = score_of(d, &n->score);
    d->sum.score = score;
    if (score.accuracy > d->sum.best_accuracy)
        d->sum.best_accuracy = score.accuracy;
    const bool accurate = run->target_accuracy > 0.0 && score.accuracy >= run->target_accuracy;
    const bool fits = run->target_loss > 0.0 && score.loss <= run->target_loss;
    if ((!accurate && !fits) || d->sum.reached)
        return;
    d->sum.reached = true;
    d->sum.reached_at = n->at;
    d->ended = true; /* what the server still does about it changes nothing */
}

/* Notes. */

static void follow(struct elv_deploy *d, const struct elv_note *n)
{
    struct elv_round_line lines[2];
    const uint32_t told = elv_follow_take(&d->follow, n, lines);
    for (uint32_t i = 0; i < told; i++)
        if (d->closed_waits && lines[i].report.version == d->closed.version) {
            const struct elv_lab_score score = score_of(d, &lines[i].score);
            release(d, lines[i].scored ? &score : NULL);
        }
}

static void take(struct elv_deploy *d, const struct elv_note *n)
{
    switch (n->kind) {
    case ELV_NOTE_JOINED:
        came_or_went(d, n, ELV_LAB_JOINED);
        break;
    case ELV_NOTE_LEFT:
    case ELV_NOTE_REVOKED:
        came_or_went(d, n, ELV_LAB_LEFT);
        break;
    case ELV_NOTE_LAPSED:
        came_or_went(d, n, ELV_LAB_LAPSED);
        break;
    case ELV_NOTE_RESTORED:
        resume(d, n);
        break;
    case ELV_NOTE_ROUND_OPENED:
        open_round(d, n->round, n->at, (uint32_t)n->value);
        break;
    case ELV_NOTE_UPDATE_ACCEPTED:
    case ELV_NOTE_UPDATE_REFUSED:
    case ELV_NOTE_UPDATE_DECLINED:
    case ELV_NOTE_UPDATE_FAILED:
        decided(d, n);
        break;
    case ELV_NOTE_ROUND_CLOSED:
    case ELV_NOTE_ROUND_ABANDONED:
        end_round(d, n);
        break;
    case ELV_NOTE_EVALUATED:
        if (by_server(d))
            evaluated(d, n);
        break;
    case ELV_NOTE_CLIENTS_EVALUATED:
        if (!by_server(d))
            evaluated(d, n);
        break;
    case ELV_NOTE_OVER:
        d->ended = true;
        break;
    default:
        break;
    }
    follow(d, n);
}

void elv_deploy_take_notes(struct elv_deploy *d)
{
    const struct elv_note *n;
    while (!d->ended && (n = elv_note_next(&d->server->notes, &d->seen_notes)) != NULL)
        take(d, n);
}

void elv_deploy_summary(const struct elv_deploy *d, struct elv_lab_summary *out)
{
    const struct elv_server_stats *s = d->server != NULL ? elv_server_stats(d->server) : NULL;
    *out = d->sum;
    out->ended = elv_sim_now(d->w);
    out->bytes_up = d->bytes_up + (s != NULL ? s->bytes_up : 0);
    out->bytes_down = d->bytes_down + (s != NULL ? s->bytes_down : 0);
    out->wire_up = elv_sim_stats(d->w).wire_up;
    out->wire_down = elv_sim_stats(d->w).wire_down;
    out->fairness = elv_lab_fairness((double)d->sum.used, d->n_ever, d->used_squares);
    out->stale_mean = d->sum.used > 0 ? d->sum.stale_mean / (double)d->sum.used : 0.0;
    out->hash = elv_sim_hash(d->w);
}
