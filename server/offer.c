/* SPDX-License-Identifier: Apache-2.0 */
/* Work of its own: in a stream each client has a piece of work that stands by itself.
 *
 * It is made from the version that was published when it was handed out, and stands until it is
 * decided, whatever is published meanwhile; or until its time is over: the job's deadline, counted
 * on a clock that runs while the server does, over all its lives, so a restart gives the rest of
 * the time and never more. A client whose time is over has lapsed: to the policy it has left, and
 * it joins again when it next asks for a ticket. So has one that could do nothing with its work: it
 * holds nobody up, and does not fail again as fast as the network goes. */

#include "common/assert.h"
#include "server/core.h"

enum { LAPSES_PER_STEP = 32 };

bool elv_core_streams(const struct elv_server *s)
{
    return s->policies.sync->flow == ELV_SYNC_STREAM;
}

elv_time_us elv_core_run_clock(const struct elv_server *s) { return s->now - s->run_began; }

elv_time_us elv_core_offer_ends(const struct elv_server *s, const struct elv_offer *offer)
{
    return s->run_began + offer->granted + s->sync_cfg.deadline_us;
}

/* Somebody's time is over then. */
static void due(struct elv_server *s, const struct elv_offer *offer)
{
    const elv_time_us ends = elv_core_offer_ends(s, offer);
    if (ends < s->lapse_at)
        s->lapse_at = ends;
}

static void put_offer(struct elv_server *s, const struct elv_row *row, struct elv_actions *out)
{
    const struct elv_offer *o = &row->offer;
    const struct elv_rec_offer rec = {.assignment = o->assignment,
                                      .seq = o->seq,
                                      .version = o->version,
                                      .granted_us = (uint64_t)o->granted,
                                      .size = o->size};
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_offer_encode(&rec, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_OFFER, row->client, at, len);
    s->head_due = true; /* the number is taken */
}

void elv_core_drop_out(struct elv_server *s, uint32_t i)
{
    const struct elv_sync_client c = {i, s->roster.rows[i].client};
    if (!s->roster.rows[i].joined || s->roster.rows[i].lapsed)
        return;
    elv_roster_set_lapsed(&s->roster, i, true);
    if (s->policies.sync->on_leave)
        s->policies.sync->on_leave(s->sync_state, &s->sync_cfg, c, s->now);
}

void elv_core_give(struct elv_server *s, uint32_t i, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[i];
    const struct elv_candidate c = {
        .client = row->client, .row = i, .samples = row->samples, .speed = row->speed};
    if (row->last_failed) { /* what it did last must be durable first */
        elv_core_drop_out(s, i);
        return;
    }
    row->offer = (struct elv_offer){
        .assignment = s->head.next_assignment++,
        .seq = s->round.seq,
        .version = s->round.version,
        .own = true,
        .granted = elv_core_run_clock(s),
        .promised = true,
        .size = s->policies.sizing->size(s->job, &c),
    };
    row->waiting = true;
    row->held = false;
    row->log_bytes = 0;
    s->round.n_waiting++;
    s->round.n_given++;
    elv_kept_find(&s->kept, row->offer.version)->n_offers++;
    due(s, &row->offer);
    put_offer(s, row, out);
    elv_answers_push(&s->answers, &(struct elv_answer){.store = elv_core_token(s),
                                                       .kind = ELV_ANSWER_GRANT,
                                                       .row = i,
                                                       .assignment = row->offer.assignment});
}

void elv_core_end_offer(struct elv_server *s, struct elv_row *row, struct elv_actions *out)
{
    struct elv_kept *v = elv_kept_find(&s->kept, row->offer.version);
    ELV_ASSERT(row->waiting && row->offer.own && v != NULL && v->n_offers > 0);
    row->waiting = false;
    s->round.n_waiting--;
    v->n_offers--;
    elv_core_release(s, v, out);
}

void elv_core_void_offer(struct elv_server *s, struct elv_row *row, struct elv_actions *out)
{
    elv_core_end_offer(s, row, out);
    elv_core_erase(s, out, ELV_TABLE_OFFER, row->client);
}

void elv_core_given(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[a->row];
    if (row->offer.assignment != a->assignment || !row->waiting)
        return;
    if (a->state == ELV_ANSWER_FAILED) {
        elv_core_end_offer(s, row, out);
        elv_core_drop_out(s, a->row); /* the policy takes it for started */
        return;
    }
    row->offer.promised = false;
    due(s, &row->offer); /* if it was looked at before, it could not lapse */
    elv_core_mark(s, a->row);
}

void elv_core_undelivered(struct elv_server *s, struct elv_row *row)
{
    row->upload = ELV_ROW_NONE;
    if (row->waiting && row->offer.own)
        s->lapse_at = s->now;
}

/* A commit that is being decided is decided. One that only waits is not, when its version goes. */
static bool may_lapse(struct elv_server *s, const struct elv_row *row, bool expired)
{
    const struct elv_upload *up = row->upload != ELV_ROW_NONE ? &s->uploads.at[row->upload] : NULL;
    if (!row->waiting || !row->offer.own || row->offer.promised)
        return false;
    return up == NULL || up->state == ELV_UPLOAD_STAGED ||
           (expired && up->state == ELV_UPLOAD_WAITING);
}

static void drop_what_came(struct elv_server *s, const struct elv_row *row, struct elv_actions *out)
{
    if (row->upload == ELV_ROW_NONE)
        return;
    struct elv_upload *up = &s->uploads.at[row->upload];
    if (up->state == ELV_UPLOAD_WAITING)
        elv_upload_remove(&s->uploads, &s->uploads.waiting, up);
    elv_core_discard(s, up, ELV_REASON_ROUND_CLOSED, out);
}

static void lapse(struct elv_server *s, uint32_t i, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[i];
    drop_what_came(s, row, out);
    elv_core_void_offer(s, row, out);
    s->round.n_lapsed++;
    s->stats.lapsed++;
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_LAPSED, s->now);
    note->client = row->client;
    note->round = row->offer.seq;
    note->version = row->offer.version;
    elv_core_drop_out(s, i);
    elv_core_mark(s, i);
}

void elv_core_lapse(struct elv_server *s, struct elv_actions *out)
{
    uint32_t n = 0;
    if (s->now < s->lapse_at)
        return;
    s->lapse_at = ELV_NEVER;
    for (uint32_t i = 0; i < s->roster.n; i++) {
        const struct elv_row *row = &s->roster.rows[i];
        const struct elv_kept *v =
            row->waiting && row->offer.own ? elv_kept_find(&s->kept, row->offer.version) : NULL;
        if (v == NULL || !may_lapse(s, row, v->expired))
            continue;
        const elv_time_us ends = v->expired ? s->now : elv_core_offer_ends(s, &row->offer);
        if (ends <= s->now && n < LAPSES_PER_STEP) {
            lapse(s, i, out);
            n++;
        } else if (ends < s->lapse_at) {
            s->lapse_at = ends;
        }
    }
}

void elv_core_back_again(struct elv_server *s, uint32_t row)
{
    if (!s->roster.rows[row].lapsed)
        return;
    elv_roster_set_lapsed(&s->roster, row, false);
    elv_core_tell_joined(s, row);
}

void elv_core_void_all(struct elv_server *s, struct elv_actions *out)
{
    for (uint32_t i = 0; i < s->roster.n; i++) {
        struct elv_row *row = &s->roster.rows[i];
        if (row->waiting && row->offer.own)
            elv_core_end_offer(s, row, out);
    }
    s->lapse_at = ELV_NEVER;
}
