/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core.h"

enum { STORAGE_RETRY_MS = 2000, RETRIES_MAX = 3 };

struct elv_sync_round elv_core_view(const struct elv_server *s)
{
    const struct elv_round *r = &s->round;
    const bool open = r->state >= ELV_ROUND_OPEN;
    return (struct elv_sync_round){
        .seq = r->seq,
        .version = r->version,
        .n_asked = r->stream ? r->n_given : r->n_asked,
        .n_got = r->n_got,
        .n_waiting = r->n_waiting,
        .n_joined = elv_roster_there(&s->roster),
        .opened = open ? r->opened : ELV_NEVER,
        .deadline = open ? r->deadline : ELV_NEVER,
    };
}

static void put_counted(struct elv_server *s, const struct elv_counted *c,
                        const struct elv_sums *sums, struct elv_actions *out)
{
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_counted_encode(s->roster.rows[c->row].client, &c->d, sums, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_COUNTED, (uint64_t)(c - s->counted), at, len);
}

/* In a stream the sums of an update that counts lie with it: of a client's decisions only the last
 * is kept. */
static void put_decision(struct elv_server *s, const struct elv_row *row,
                         const struct elv_sums *sums, struct elv_actions *out)
{
    static const struct elv_sums none;
    const struct elv_counted *c =
        row->last.weight > 0 ? elv_core_find_counted(s, row->last.assignment) : NULL;
    if (c) {
        put_counted(s, c, sums, out);
        sums = &none;
    }
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_decision_encode(&row->last, sums, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_DECISION, row->client, at, len);
}

static enum elv_note_kind kind_of(const struct elv_server *s, const struct elv_rec_decision *d)
{
    const bool survey = elv_core_is_survey(s);
    if (d->decision == ELV_REFUSED)
        return ELV_NOTE_UPDATE_REFUSED;
    if (d->status == ELV_STATUS_DONE)
        return survey ? ELV_NOTE_EVALUATION_TAKEN : ELV_NOTE_UPDATE_ACCEPTED;
    if (survey)
        return ELV_NOTE_EVALUATION_DECLINED;
    return d->status == ELV_STATUS_DECLINED ? ELV_NOTE_UPDATE_DECLINED : ELV_NOTE_UPDATE_FAILED;
}

static void note_decision(struct elv_server *s, const struct elv_row *row)
{
    const struct elv_rec_decision *d = &row->last;
    struct elv_note *note = elv_note_add(&s->notes, kind_of(s, d), s->now);
    note->client = row->client;
    note->round = d->seq;
    note->version = row->offer.version;
    note->reason = d->reason;
    note->value = d->weight;
}

/* Of a survey, where nothing is refused. */
static void count_answer(struct elv_server *s, const struct elv_rec_decision *d)
{
    const bool done = d->status == ELV_STATUS_DONE;
    s->round.n_got += done;
    s->round.n_declined += !done;
    s->stats.evaluations += done;
}

static void count_decision(struct elv_server *s, const struct elv_rec_decision *d)
{
    if (elv_core_is_survey(s)) {
        count_answer(s, d);
    } else if (d->decision == ELV_REFUSED) {
        const bool discarded = d->reason == ELV_REASON_POLICY;
        s->round.n_refused++;
        s->round.n_discarded += discarded;
        s->stats.updates_refused++;
        s->stats.updates_discarded += discarded;
        s->stats.refused[d->reason]++;
    } else if (d->status == ELV_STATUS_DONE) {
        s->round.n_got++;
        s->stats.updates_used++;
    } else {
        s->round.n_declined++;
        s->stats.updates_declined += d->status == ELV_STATUS_DECLINED;
        s->stats.updates_failed += d->status == ELV_STATUS_FAILED;
    }
}

/* Counted each time, reported once per client. */
static void note_capped(struct elv_server *s, uint32_t index, uint32_t claim,
                        struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[index];
    s->stats.capped++;
    if (row->capped)
        return;
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_CAPPED, s->now);
    note->client = row->client;
    note->value = claim;
    row->capped = true;
    elv_core_put_client(s, out, index, row->joined);
}

/* Who evaluates more examples than may weigh, or knows classes that the model lacks, would decide
 * alone what all of them say, and with it when the target is reached. */
static bool is_believable(const struct elv_job *job, const struct elv_eval_sums *eval)
{
    return eval->n <= job->max_weight && eval->n_classes <= job->model.n_classes;
}

/* Neither an update nor one too old to be of use. */
static bool nothing_came(const struct elv_rec_decision *d)
{
    return d->status != ELV_STATUS_DONE ||
           (d->decision == ELV_REFUSED && d->reason != ELV_REASON_POLICY);
}

void elv_core_decide(struct elv_server *s, uint32_t row, const struct elv_rec_decision *d,
                     const struct elv_sums *sums, struct elv_actions *out)
{
    struct elv_row *r = &s->roster.rows[row];
    struct elv_sums believed = {.user = sums->user};
    if (is_believable(s->job, &sums->eval))
        believed.eval = sums->eval;
    else
        note_capped(s, row, sums->eval.n, out);
    if (r->last_durable)
        r->before = r->last;
    r->last = *d;
    r->last_durable = r->last_failed = false;
    r->upload = ELV_ROW_NONE;
    s->round.n_soft++;
    if (s->round.stream && d->weight > 0)
        elv_core_add_counted(s, row, d);
    const bool own = r->waiting && r->offer.own;
    if (own) {
        elv_core_end_offer(s, r, out);
    } else if (r->waiting) {
        r->waiting = false;
        s->round.n_waiting--;
    }
    if (own && nothing_came(d))
        elv_core_drop_out(s, row);
    else
        elv_core_want(s, row);
    count_decision(s, d);
    if (d->decision == ELV_ACCEPTED)
        elv_sums_add(&s->round.sums, &believed);
    note_decision(s, r);
    if (!r->lapsed) /* a notification would ask in its name */
        elv_core_mark(s, row);
    put_decision(s, r, &believed, out);
}

void elv_core_await(struct elv_server *s, uint32_t row, const uint32_t *requests, uint32_t n)
{
    const struct elv_rec_decision *d = &s->roster.rows[row].last;
    struct elv_answer a = {
        .store = elv_core_token(s),
        .kind = ELV_ANSWER_DECISION,
        .row = row,
        .assignment = d->assignment,
        .decision = d->decision,
        .reason = d->decision == ELV_REFUSED ? d->reason : ELV_REASON_NONE,
    };
    for (uint32_t i = 0; i < n || i == 0; i++) {
        a.asked = i < n;
        a.request = i < n ? requests[i] : 0;
        elv_answers_push(&s->answers, &a);
    }
}

void elv_core_drop_upload(struct elv_server *s, struct elv_upload *up, enum elv_reason reason,
                          struct elv_actions *out)
{
    const uint32_t retry_ms = reason == ELV_REASON_STORAGE ? STORAGE_RETRY_MS : 0;
    struct elv_row *row = &s->roster.rows[up->row];
    for (uint32_t i = 0; i < up->n_askers; i++)
        elv_core_refuse(s, out, up->askers[i], reason, retry_ms);
    if (row->upload == elv_upload_index(&s->uploads, up))
        elv_core_undelivered(s, row);
    elv_upload_free(&s->uploads, up);
}

/* The integer weight; a claim beyond the cap is cut. */
static uint32_t weigh(struct elv_server *s, uint32_t row, const struct elv_commit *c, double factor,
                      struct elv_actions *out)
{
    const uint32_t claim = elv_weight_claim(s->job->weight, c->samples, c->seen);
    if (claim > s->scales.weight_cap)
        note_capped(s, row, claim, out);
    const struct elv_scales scales = elv_core_scales(s);
    return elv_weight_of(&scales, claim, factor / elv_core_effort(s, c->steps));
}

/* That it counts: what is remembered of it. */
static void value(struct elv_server *s, struct elv_rec_decision *d, const struct elv_upload *up,
                  const struct elv_sync_update *u, double factor, struct elv_actions *out)
{
    d->factor = factor < 1.0 ? factor : 1.0;
    d->weight = weigh(s, up->row, &up->commit, d->factor, out);
    d->norm2 = u->norm2;
    d->version = u->version;
    d->staleness = u->staleness;
}

/* Updates that have counted since the version they were made from was published. */
static uint32_t staleness_of(struct elv_server *s, const struct elv_offer *offer)
{
    const struct elv_kept *v = elv_kept_find(&s->kept, offer->version);
    if (!offer->own || v == NULL)
        return 0;
    const uint64_t since = elv_kept_newest(&s->kept)->counted + s->round.n_got - v->counted;
    return since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

static struct elv_sync_update update_of(struct elv_server *s, const struct elv_upload *up,
                                        double norm2)
{
    const struct elv_commit *c = &up->commit;
    const struct elv_offer *offer = &s->roster.rows[up->row].offer;
    return (struct elv_sync_update){
        .from = {up->row, up->client},
        .version = offer->version,
        .staleness = staleness_of(s, offer),
        .samples = c->samples,
        .seen = c->seen,
        .steps = c->steps,
        .loss_sum = c->loss_sum,
        .norm2 = norm2,
        .bytes = up->bytes,
        .compute_ms = c->compute_ms,
        .started = offer->own ? s->run_began + offer->granted : s->round.opened,
    };
}

static struct elv_sync_worth ask_policy(struct elv_server *s, const struct elv_sync_update *u)
{
    const struct elv_sync_round view = elv_core_view(s);
    return s->policies.sync->on_update(s->sync_state, &s->sync_cfg, &view, u, s->now);
}

static struct elv_rec_decision decision_of(const struct elv_server *s, const struct elv_upload *up)
{
    const struct elv_commit *c = &up->commit;
    return (struct elv_rec_decision){
        .assignment = up->assignment,
        .seq = s->round.seq,
        .status = c->status,
        .decision = ELV_ACCEPTED,
        .n_chunks = c->n_chunks,
        .nonce = up->nonce,
        .from = up->from,
        .bytes = up->bytes,
        .samples = c->samples,
        .seen = c->seen,
        .steps = c->steps,
        .loss_sum = c->loss_sum,
    };
}

/* Who has left counts no more in a stream, where the policy knows each client. */
static enum elv_reason why_not(const struct elv_server *s, const struct elv_row *row,
                               const struct elv_verify_item *item)
{
    if (row->gone)
        return ELV_REASON_REVOKED;
    return s->round.stream && !row->joined ? ELV_REASON_NOT_JOINED : item->reason;
}

static void judge(struct elv_server *s, const struct elv_verify_item *item, struct elv_actions *out)
{
    struct elv_upload *up = item->up;
    struct elv_row *row = &s->roster.rows[up->row];
    struct elv_rec_decision d = decision_of(s, up);
    d.reason = why_not(s, row, item);
    if (d.reason == ELV_REASON_NONE) {
        const struct elv_sync_update u = update_of(s, up, item->norm2);
        const struct elv_sync_worth worth = ask_policy(s, &u);
        if (worth.counts && worth.weight > 0.0)
            value(s, &d, up, &u, worth.weight, out);
        else
            d.reason = ELV_REASON_POLICY;
    }
    d.decision = d.reason == ELV_REASON_NONE ? ELV_ACCEPTED : ELV_REFUSED;
    const struct elv_sums sums = {.eval = up->commit.eval, .user = up->user};
    elv_core_decide(s, up->row, &d, &sums, out);
    elv_core_await(s, up->row, up->askers, up->n_askers);
    if (d.decision == ELV_REFUSED) {
        elv_upload_free(&s->uploads, up);
        return;
    }
    up->weight = d.weight;
    up->state = ELV_UPLOAD_COUNTED;
    elv_upload_push(&s->uploads, &s->uploads.counted, up);
}

/* It waits for the next round of the stream; else it is too late. */
static void put_back(struct elv_server *s, struct elv_upload *up, struct elv_actions *out)
{
    if (!s->round.stream || elv_core_is_finished(s)) {
        elv_core_drop_upload(s, up, ELV_REASON_ROUND_CLOSED, out);
        return;
    }
    up->state = ELV_UPLOAD_WAITING;
    elv_upload_push(&s->uploads, &s->uploads.waiting, up);
}

void elv_core_verified(struct elv_server *s, struct elv_actions *out)
{
    for (uint32_t i = 0; i < s->verify.n; i++) {
        const struct elv_verify_item *item = &s->verify.items[i];
        if (item->lost) {
            s->log_lost = true;
            s->stats.log_losses++;
            elv_note_add(&s->notes, ELV_NOTE_LOG_LOST, s->now)->round = s->round.seq;
            elv_core_drop_upload(s, item->up, ELV_REASON_STORAGE, out);
        } else if (s->round.state != ELV_ROUND_OPEN || !elv_core_has_place(s)) {
            put_back(s, item->up, out);
        } else {
            judge(s, item, out);
        }
    }
}

static void undo(struct elv_server *s, struct elv_row *row)
{
    const struct elv_rec_decision *d = &row->last;
    struct elv_round *r = &s->round;
    struct elv_counted *c = r->stream ? elv_core_find_counted(s, d->assignment) : NULL;
    if (c)
        c->d = (struct elv_rec_decision){.version = d->version};
    const bool survey = elv_core_is_survey(s);
    if (d->decision == ELV_REFUSED) {
        r->n_refused--;
        r->n_discarded -= d->reason == ELV_REASON_POLICY;
    } else if (d->status == ELV_STATUS_DONE) {
        r->n_got--;
        s->stats.updates_used -= !survey;
        s->stats.evaluations -= survey;
        s->must_refold = !survey;
    } else {
        r->n_declined--;
    }
    r->n_soft--;
    s->n_unsaved--;
    row->last = row->before;
    row->last_durable = row->last.assignment != 0;
    row->last_failed = false;
}

bool elv_core_worth_waiting(const struct elv_server *s)
{
    const struct elv_round *r = &s->round;
    uint32_t n = 0;
    if (s->now >= r->deadline || elv_core_is_survey(s))
        return false;
    for (uint32_t i = 0; i < r->n_asked; i++) {
        const struct elv_row *row = &s->roster.rows[r->asked[i].row];
        n += elv_core_counts(s, row) && row->last_durable;
    }
    for (uint32_t i = 0; i < r->n_counted; i++) {
        const struct elv_counted *c = &s->counted[i];
        const struct elv_row *row = &s->roster.rows[c->row];
        n += c->d.assignment != 0 && (row->last.assignment != c->d.assignment || row->last_durable);
    }
    return n > 0 && n < s->sync_cfg.quorum;
}

/* The store takes no more decisions, perhaps because it lost bytes of this round's log. Nobody was
 * told of them, so they are taken back; with what is durable the round ends. */
void elv_core_cut_losses(struct elv_server *s)
{
    for (uint32_t i = 0; i < s->roster.n; i++) {
        struct elv_row *row = &s->roster.rows[i];
        if (row->last_failed && row->last.seq == s->round.seq)
            undo(s, row);
    }
    if (s->round.n_got < s->sync_cfg.quorum && !elv_core_is_survey(s))
        elv_core_fail_round(s);
    else if (s->round.state == ELV_ROUND_OPEN)
        elv_core_close_round(s);
}

/* What could not be stored is in force all the same, but acknowledged to nobody: it is stored again
 * until it is durable, and no version closes before. The client's sums are in the round's already
 * and not kept: a restart from then on counts this client without them. */
void elv_core_save_again(struct elv_server *s, struct elv_actions *out)
{
    static const struct elv_sums none;
    uint32_t saved = 0;
    if (s->n_unsaved == 0 || s->now < s->retry_at)
        return;
    const bool counting = s->round.state == ELV_ROUND_OPEN || s->round.state == ELV_ROUND_CLOSING;
    if (++s->n_retries > RETRIES_MAX && counting && !elv_core_worth_waiting(s)) {
        s->n_retries = 0;
        elv_core_cut_losses(s);
        return;
    }
    if (counting && !elv_core_is_survey(s))
        elv_core_mend_log(s, out); /* perhaps that is why */
    for (uint32_t i = 0; i < s->roster.n && saved < ELV_ANSWERS_PER_STEP; i++) {
        struct elv_row *row = &s->roster.rows[i];
        if (!row->last_failed || elv_answers_room(&s->answers) == 0)
            continue;
        row->last_failed = false;
        s->n_unsaved--;
        saved++;
        put_decision(s, row, &none, out);
        elv_core_await(s, i, NULL, 0);
    }
    s->retry_at = s->now + ELV_SECOND;
}
