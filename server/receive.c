/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"
#include "server/admit.h"
#include "server/core.h"

enum {
    SHARE = 4,               /* a client may write this many whole uploads into one log, */
    SHARE_MORE = 16,         /* and this many chunks, for small models */
    FULL_RETRY_MS = 1000,    /* all slots are taken */
    BUSY_RETRY_MS = 200,     /* a decision is under way */
    STORAGE_RETRY_MS = 2000, /* the disk is in trouble */
    QUOTA_RETRY_MS = 10000,  /* until the round ends */
};

/* If the server dies now, such a round goes on: nobody may rely on its end. */
bool elv_core_gives_up(const struct elv_server *s)
{
    const enum elv_round_state state = s->round.state;
    return (state == ELV_ROUND_FAILING || state == ELV_ROUND_DROPPING) &&
           s->now < s->round.deadline;
}

static uint32_t patience_of(enum elv_reason reason)
{
    return reason == ELV_REASON_STORAGE ? STORAGE_RETRY_MS : 0;
}

/* Its own stands whatever round is open. */
static enum elv_reason own_assignment(const struct elv_server *s, const struct elv_row *row,
                                      uint32_t assignment)
{
    const bool open = row->waiting && !row->offer.promised && !elv_core_is_finished(s);
    if (assignment > row->offer.assignment)
        return ELV_REASON_UNKNOWN_ASSIGNMENT;
    if (assignment < row->offer.assignment)
        return open ? ELV_REASON_SUPERSEDED : ELV_REASON_ROUND_CLOSED;
    return open ? ELV_REASON_NONE : ELV_REASON_ROUND_CLOSED;
}

enum elv_reason elv_core_assignment(const struct elv_server *s, const struct elv_row *row,
                                    uint32_t assignment)
{
    const struct elv_offer *offer = &row->offer;
    if (assignment == 0 || assignment >= s->head.next_assignment)
        return ELV_REASON_UNKNOWN_ASSIGNMENT;
    if (assignment == row->last.assignment)
        return ELV_REASON_DUPLICATE;
    if (offer->own)
        return own_assignment(s, row, assignment);
    const bool open =
        s->round.state == ELV_ROUND_OPEN && offer->seq == s->round.seq && !offer->promised;
    if (assignment == offer->assignment && offer->seq == s->round.seq && elv_core_gives_up(s))
        return ELV_REASON_STORAGE;
    if (assignment == offer->assignment)
        return open ? ELV_REASON_NONE : ELV_REASON_ROUND_CLOSED;
    if (assignment < offer->assignment)
        return open ? ELV_REASON_SUPERSEDED : ELV_REASON_ROUND_CLOSED;
    /* Whom earlier rounds asked is not remembered over a restart. */
    return offer->assignment == 0 ? ELV_REASON_ROUND_CLOSED : ELV_REASON_UNKNOWN_ASSIGNMENT;
}

/* Work of an earlier round comes in, to be turned away: the policy hears of it once. */
static void note_late(struct elv_server *s, uint32_t i, uint32_t assignment)
{
    struct elv_row *row = &s->roster.rows[i];
    struct elv_offer *offer = &row->offer;
    const struct elv_sync *sync = s->policies.sync;
    if (offer->assignment != assignment)
        offer = &row->missed;
    if (offer->assignment != assignment || offer->told || offer->own || !row->joined ||
        sync->on_late == NULL)
        return;
    if (offer->seq == s->round.seq && s->round.state == ELV_ROUND_OPEN)
        return; /* of this round, but replaced */
    offer->told = true;
    const struct elv_sync_round view = elv_core_view(s);
    sync->on_late(s->sync_state, &s->sync_cfg, &view, (struct elv_sync_client){i, row->client},
                  offer->version, s->now);
}

/* What the client sent is not taken. */
static void turn_down(struct elv_server *s, const struct elv_event *ev, uint32_t row,
                      enum elv_reason reason, struct elv_actions *out)
{
    if (reason == ELV_REASON_ROUND_CLOSED || reason == ELV_REASON_SUPERSEDED)
        note_late(s, row, ev->request.assignment);
    elv_core_refuse(s, out, ev->id, reason, patience_of(reason));
}

uint32_t elv_core_bound(const struct elv_server *s, uint8_t codec)
{
    return elv_job_chunks_max(s->job, codec);
}

static void send_progress(struct elv_server *s, const struct elv_event *ev,
                          const struct elv_upload *up, struct elv_actions *out)
{
    struct elv_progress p = {.window = elv_core_window(s)};
    elv_upload_missing(up, up->bound, &p.missing);
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_progress_encode(&p, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    elv_core_reply(out, ev->id, ELV_CODE_CHANGED, 0, (struct elv_bytes){at, len});
}

static void append(struct elv_server *s, const struct elv_log_record *r, struct elv_actions *out)
{
    uint8_t *at = elv_core_text(s, ELV_LOG_RECORD_MAX);
    const size_t len = elv_log_record_encode(r, at);
    elv_core_text_used(s, len);
    s->uploads.log_len += len;
    elv_core_store(s, out,
                   &(struct elv_store_op){
                       .kind = ELV_STORE_APPEND, .number = s->unpack.log, .bytes = {at, len}});
}

void elv_core_append_mark(struct elv_server *s, uint32_t client, uint32_t assignment,
                          struct elv_actions *out)
{
    append(s, &(struct elv_log_record){.client = client, .assignment = assignment}, out);
}

/* Its end is being made durable: what is added now would bring it back. */
static bool log_ends(const struct elv_server *s)
{
    return s->round.state == ELV_ROUND_DROPPING && !s->round.stream;
}

void elv_core_discard(struct elv_server *s, struct elv_upload *up, enum elv_reason reason,
                      struct elv_actions *out)
{
    const bool logged = up->bytes > 0 || up->n_old > 0;
    if (logged && !log_ends(s))
        elv_core_append_mark(s, up->client, up->assignment, out);
    elv_core_drop_upload(s, up, reason, out);
}

static struct elv_upload *slot_of(struct elv_server *s, uint32_t row, struct elv_actions *out)
{
    struct elv_row *r = &s->roster.rows[row];
    if (r->upload != ELV_ROW_NONE)
        return &s->uploads.at[r->upload];
    const uint32_t bound = elv_core_bound(s, r->codec);
    const uint32_t assignment = r->offer.assignment;
    struct elv_upload *up =
        elv_upload_take(&s->uploads, row, r->client, assignment, r->codec, bound);
    if (up == NULL) {
        struct elv_upload *idle = elv_upload_idlest(&s->uploads, s->now, ELV_IDLE_US);
        if (idle == NULL)
            return NULL;
        elv_core_discard(s, idle, ELV_REASON_FULL, out);
        up = elv_upload_take(&s->uploads, row, r->client, assignment, r->codec, bound);
    }
    r->upload = elv_upload_index(&s->uploads, up);
    return up;
}

/* Bytes in the log are spent for good, so a client that starts over and over has a limit. */
static enum elv_reason check_quota(struct elv_server *s, struct elv_row *row,
                                   const struct elv_upload *up)
{
    if (row->log_of != s->unpack.log) {
        row->log_of = s->unpack.log;
        row->log_bytes = 0;
    }
    const uint64_t share = (SHARE * (uint64_t)up->bound + SHARE_MORE) * ELV_LOG_RECORD_MAX;
    if (row->log_bytes + ELV_LOG_RECORD_MAX > share)
        return ELV_REASON_QUOTA;
    /* There is room left to say of each upload that it is forgotten, and once of all. */
    const uint64_t marks = (s->uploads.n_used + 1) * (uint64_t)ELV_LOG_HEAD_LEN;
    if (s->uploads.log_len + ELV_LOG_RECORD_MAX + marks > s->cfg.limits.log_bytes_max)
        return ELV_REASON_FULL;
    return ELV_REASON_NONE;
}

static void keep_chunk(struct elv_server *s, const struct elv_event *ev, struct elv_upload *up,
                       const struct elv_chunk *c, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[up->row];
    const struct elv_bytes body = ev->request.body;
    s->round.bytes_up += body.len;
    s->stats.bytes_up += body.len;
    s->stats.chunks_up++;
    if (elv_bitmap_get(&up->have, c->index)) {
        s->stats.chunks_repeated++;
        send_progress(s, ev, up, out);
        return;
    }
    const enum elv_reason reason = check_quota(s, row, up);
    if (reason != ELV_REASON_NONE) {
        elv_core_refuse(s, out, ev->id, reason, reason == ELV_REASON_FULL ? QUOTA_RETRY_MS : 0);
        return;
    }
    elv_upload_note(up, c, s->uploads.log_len, body.len);
    row->log_bytes += body.len + ELV_LOG_HEAD_LEN;
    append(
        s,
        &(struct elv_log_record){.client = up->client, .assignment = up->assignment, .chunk = body},
        out);
    send_progress(s, ev, up, out);
}

/* Which attempt of the client does the chunk belong to? */
static enum elv_reason admit_nonce(struct elv_upload *up, uint64_t nonce)
{
    if (up->has_nonce && up->nonce == nonce)
        return ELV_REASON_NONE;
    if (elv_upload_is_old(up, nonce))
        return ELV_REASON_SUPERSEDED; /* a late datagram of an attempt that was given up */
    if (up->state != ELV_UPLOAD_STAGED)
        return ELV_REASON_FULL; /* the attempt before is being decided */
    elv_upload_restart(up, nonce);
    return ELV_REASON_NONE;
}

struct elv_chunk_rules elv_core_chunk_rules(const struct elv_server *s, const struct elv_row *row)
{
    return (struct elv_chunk_rules){
        .codec = row->codec,
        .bound = elv_core_bound(s, row->codec),
        .n_params = s->job->model.n_shared,
        .inflates = s->unpack.squeeze != NULL,
    };
}

static enum elv_reason admit(struct elv_server *s, const struct elv_event *ev, uint32_t row,
                             struct elv_chunk *c)
{
    if (row == ELV_ROW_NONE || !s->roster.rows[row].joined)
        return ELV_REASON_NOT_JOINED;
    const struct elv_row *r = &s->roster.rows[row];
    const enum elv_reason reason = elv_core_assignment(s, r, ev->request.assignment);
    if (reason != ELV_REASON_NONE)
        return reason;
    if (elv_core_is_survey(s)) /* it is answered with a commit alone */
        return ELV_REASON_WRONG_SHAPE;
    if (elv_chunk_decode(ev->request.body, c) != ELV_OK)
        return ELV_REASON_MALFORMED;
    const struct elv_chunk_rules rules = elv_core_chunk_rules(s, r);
    return elv_admit_chunk(&rules, c, ev->request.chunk);
}

void elv_core_update_chunk(struct elv_server *s, const struct elv_event *ev,
                           struct elv_actions *out)
{
    const uint32_t row = elv_roster_find(&s->roster, ev->peer);
    struct elv_chunk c;
    enum elv_reason reason = admit(s, ev, row, &c);
    if (reason != ELV_REASON_NONE) {
        s->stats.malformed += reason == ELV_REASON_MALFORMED;
        turn_down(s, ev, row, reason, out);
        return;
    }
    if (s->log_lost) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_STORAGE, STORAGE_RETRY_MS);
        return;
    }
    if (s->roster.rows[row].upload == ELV_ROW_NONE && elv_core_holds_off(s)) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_FULL, FULL_RETRY_MS);
        return;
    }
    struct elv_upload *up = slot_of(s, row, out);
    if (up == NULL) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_FULL, FULL_RETRY_MS);
        return;
    }
    up->touched = s->now;
    reason = admit_nonce(up, elv_nonce_of(c.tag));
    if (reason != ELV_REASON_NONE)
        elv_core_refuse(s, out, ev->id, reason, reason == ELV_REASON_FULL ? BUSY_RETRY_MS : 0);
    else
        keep_chunk(s, ev, up, &c, out);
}

static void send_verdict(struct elv_server *s, uint32_t request, const struct elv_verdict *v,
                         struct elv_actions *out)
{
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_verdict_encode(v, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    elv_core_reply(out, request, ELV_CODE_CHANGED, 0, (struct elv_bytes){at, len});
}

static void send_missing(struct elv_server *s, uint32_t request, const struct elv_upload *up,
                         uint32_t n_chunks, struct elv_actions *out)
{
    struct elv_verdict v = {.decision = ELV_MISSING};
    if (up)
        elv_upload_missing(up, n_chunks, &v.missing);
    send_verdict(s, request, &v, out);
}

/* A commit of something decided gets the same answer for ever. */
static void repeat_decision(struct elv_server *s, const struct elv_event *ev,
                            const struct elv_row *row, struct elv_actions *out)
{
    if (!row->last_durable) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_STORAGE, BUSY_RETRY_MS);
        return;
    }
    const struct elv_verdict v = {
        .decision = row->last.decision,
        .reason = row->last.decision == ELV_REFUSED ? row->last.reason : ELV_REASON_NONE,
    };
    send_verdict(s, ev->id, &v, out);
}

/* What needs no look at the chunks: the client was asked to evaluate only, gave up, or claims what
 * cannot be. */
static void decide_now(struct elv_server *s, const struct elv_event *ev, uint32_t row,
                       const struct elv_commit *commit, enum elv_decision decision,
                       enum elv_reason reason, struct elv_actions *out)
{
    struct elv_row *r = &s->roster.rows[row];
    struct elv_upload *up = r->upload != ELV_ROW_NONE ? &s->uploads.at[r->upload] : NULL;
    const bool busy = up && up->state != ELV_UPLOAD_STAGED; /* another commit is being decided */
    const bool between = r->offer.own && s->round.state != ELV_ROUND_OPEN; /* rounds of a stream */
    if (busy || between || elv_answers_room(&s->answers) <= ELV_ANSWERS_RESERVED) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_FULL, BUSY_RETRY_MS);
        return;
    }
    const struct elv_rec_decision d = {
        .assignment = r->offer.assignment,
        .seq = s->round.seq,
        .status = commit->status,
        .decision = decision,
        .reason = reason,
        .nonce = commit->nonce,
        .samples = commit->samples,
        .seen = commit->seen,
        .steps = commit->steps,
        .loss_sum = commit->loss_sum,
    };
    if (up)
        elv_core_drop_upload(s, up, reason, out);
    struct elv_sums sums = {.eval = commit->eval};
    elv_user_of(commit, &sums.user);
    elv_core_decide(s, row, &d, &sums, out);
    elv_core_await(s, row, &ev->id, 1);
}

/* Another request waits for the same decision; the oldest makes room. */
static void ask_too(struct elv_server *s, const struct elv_event *ev, struct elv_upload *up,
                    struct elv_actions *out)
{
    for (uint32_t i = 0; i < up->n_askers; i++)
        if (up->askers[i] == ev->id)
            return;
    if (up->n_askers == ELV_UPLOAD_ASKERS) {
        elv_core_refuse(s, out, up->askers[0], ELV_REASON_FULL, BUSY_RETRY_MS);
        up->askers[0] = up->askers[1];
        up->n_askers--;
    }
    up->askers[up->n_askers++] = ev->id;
}

static void take_commit(struct elv_server *s, const struct elv_event *ev, uint32_t row,
                        const struct elv_commit *commit, struct elv_actions *out)
{
    const struct elv_row *r = &s->roster.rows[row];
    struct elv_upload *up = r->upload != ELV_ROW_NONE ? &s->uploads.at[r->upload] : NULL;
    if (commit->n_chunks > elv_core_bound(s, r->codec)) {
        decide_now(s, ev, row, commit, ELV_REFUSED, ELV_REASON_WRONG_SHAPE, out);
        return;
    }
    if (up && elv_upload_is_old(up, commit->nonce)) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_SUPERSEDED, 0);
        return;
    }
    if (up == NULL || !up->has_nonce || up->nonce != commit->nonce) {
        send_missing(s, ev->id, NULL, 0, out); /* nothing of that attempt is here */
        return;
    }
    if (up->state != ELV_UPLOAD_STAGED) {
        ask_too(s, ev, up, out);
        return;
    }
    if (up->have.first_clear < commit->n_chunks) {
        send_missing(s, ev->id, up, commit->n_chunks, out);
        return;
    }
    up->commit = *commit;
    elv_user_of(commit, &up->user);
    up->commit.n_user = 0; /* its names lie in the datagram */
    up->state = ELV_UPLOAD_WAITING;
    up->touched = s->now;
    ask_too(s, ev, up, out);
    elv_upload_push(&s->uploads, &s->uploads.waiting, up);
}

void elv_core_commit(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const uint32_t row = elv_roster_find(&s->roster, ev->peer);
    struct elv_commit commit;
    if (row == ELV_ROW_NONE) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_NOT_JOINED, 0);
        return;
    }
    const struct elv_row *r = &s->roster.rows[row];
    const enum elv_reason reason = elv_core_assignment(s, r, ev->request.assignment);
    if (reason == ELV_REASON_DUPLICATE) {
        repeat_decision(s, ev, r, out);
    } else if (reason != ELV_REASON_NONE) {
        turn_down(s, ev, row, reason, out);
    } else if (elv_commit_decode(ev->request.body, &commit) != ELV_OK ||
               (commit.status == ELV_STATUS_DONE &&
                (commit.n_chunks == 0) != elv_core_is_survey(s))) {
        s->stats.malformed++;
        elv_core_refuse(s, out, ev->id, ELV_REASON_MALFORMED, 0);
    } else if (commit.status != ELV_STATUS_DONE || elv_core_is_survey(s)) {
        decide_now(s, ev, row, &commit, ELV_ACCEPTED, commit.reason, out);
    } else if (s->log_lost) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_STORAGE, STORAGE_RETRY_MS);
    } else {
        take_commit(s, ev, row, &commit, out);
    }
}
