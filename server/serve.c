/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/assert.h"
#include "server/admit.h"
#include "server/core.h"

enum {
    TWIN_MS = 60000, /* how long an older process on the same identity is kept out */
    JOIN_RETRY_MS = 1000,
    ASKING_MAX = 4, /* joins and leaves of one client on their way to the disk */
    FULL_RETRY_MS = 60000,
    MODEL_MAX_AGE_S = 86400, /* a digest names its bytes for ever */
    STOP_POLL_MS = 5000,
    STORAGE_RETRY_MS = 2000, /* the disk is in trouble */
};

uint32_t elv_core_window(const struct elv_server *s)
{
    const struct elv_server_limits *l = &s->cfg.limits;
    uint32_t busy = s->uploads.n_used;
    if ((s->round.state == ELV_ROUND_OPEN || elv_core_streams(s)) && s->round.n_waiting > busy)
        busy = s->round.n_waiting;
    const uint32_t share = busy > 0 ? l->window_total / busy : l->window_total;
    return share < 1 ? 1 : share < l->window ? share : l->window;
}

void elv_core_manifest(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    elv_core_reply(out, ev->id, ELV_CODE_CONTENT, 0,
                   (struct elv_bytes){s->manifest, s->manifest_len});
}

void elv_core_tell_joined(struct elv_server *s, uint32_t row)
{
    const struct elv_sync_client c = {row, s->roster.rows[row].client};
    if (s->policies.sync->on_join)
        s->policies.sync->on_join(s->sync_state, &s->sync_cfg, c, s->now);
}

/* Each start of a client draws a boot id. One that returns after a newer one has joined means two
 * processes on one identity: the newest wins, the other is kept out for a while. */
static bool is_twin(struct elv_server *s, struct elv_row *row, uint64_t boot)
{
    if (row->boot == boot || row->boot_before == 0 || row->boot_before != boot)
        return false;
    s->stats.twins++;
    elv_note_add(&s->notes, ELV_NOTE_TWIN, s->now)->client = row->client;
    return row->joined_at != ELV_NEVER && s->now - row->joined_at < TWIN_MS * (elv_time_us)1000;
}

static void take_join(struct elv_server *s, uint32_t row, const struct elv_join *join,
                      uint8_t codec)
{
    struct elv_row *r = &s->roster.rows[row];
    if (r->boot != join->boot) {
        r->boot_before = r->boot;
        r->boot = join->boot;
        r->offer.finishes = r->missed.finishes = false; /* it has lost what it did */
    }
    r->joined_at = s->now;
    r->memory = join->memory;
    r->speed = join->speed;
    r->samples = join->samples;
    r->codec = codec;
    r->gone = false;
}

static void refuse_join(struct elv_server *s, const struct elv_event *ev, enum elv_reason reason,
                        uint32_t retry_ms, struct elv_actions *out)
{
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_JOIN_REFUSED, s->now);
    note->client = ev->peer;
    note->reason = reason;
    elv_core_refuse(s, out, ev->id, reason, retry_ms);
}

/* Room for one more that waits for the disk? Some is kept for decisions, and nobody gets all the
 * rest: a client that asks over and over would keep the others out. */
static bool may_ask(const struct elv_server *s, uint32_t row)
{
    return elv_answers_room(&s->answers) >= s->answers.cap / 4 &&
           (row == ELV_ROW_NONE || s->roster.rows[row].n_asking < ASKING_MAX);
}

static void push_asking(struct elv_server *s, const struct elv_answer *a)
{
    s->roster.rows[a->row].n_asking++;
    elv_answers_push(&s->answers, a);
}

void elv_core_join(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const struct elv_join_rules rules = {
        .job = s->job,
        .manifest = s->manifest_digest,
        .software_min = {s->cfg.software_min, strlen(s->cfg.software_min)},
    };
    struct elv_answer a = {.kind = ELV_ANSWER_JOIN, .asked = true, .request = ev->id};
    struct elv_join join;
    if (elv_join_decode(ev->request.body, &join) != ELV_OK) {
        s->stats.malformed++;
        elv_core_refuse(s, out, ev->id, ELV_REASON_MALFORMED, 0);
        return;
    }
    const enum elv_reason reason = elv_admit_join(&rules, &join, &a.joined);
    if (reason != ELV_REASON_NONE) {
        refuse_join(s, ev, reason, 0, out);
        return;
    }
    if (!may_ask(s, elv_roster_find(&s->roster, ev->peer))) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_FULL, JOIN_RETRY_MS);
        return;
    }
    a.row = elv_roster_add(&s->roster, ev->peer);
    if (a.row == ELV_ROW_NONE) {
        refuse_join(s, ev, ELV_REASON_FULL, FULL_RETRY_MS, out);
        return;
    }
    if (is_twin(s, &s->roster.rows[a.row], join.boot)) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_SUPERSEDED, TWIN_MS);
        return;
    }
    take_join(s, a.row, &join, a.joined.codec);
    elv_core_put_client(s, out, a.row, true);
    a.store = elv_core_token(s);
    push_asking(s, &a);
}

void elv_core_leave(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const uint32_t row = elv_roster_find(&s->roster, ev->peer);
    if (row == ELV_ROW_NONE || !s->roster.rows[row].joined) {
        elv_core_reply(out, ev->id, ELV_CODE_DELETED, 0, (struct elv_bytes){0});
        return;
    }
    if (!may_ask(s, row)) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_FULL, JOIN_RETRY_MS);
        return;
    }
    const struct elv_answer a = {.kind = ELV_ANSWER_LEAVE,
                                 .asked = true,
                                 .request = ev->id,
                                 .row = row,
                                 .store = elv_core_token(s)};
    elv_core_put_client(s, out, row, false);
    push_asking(s, &a);
}

void elv_core_part(struct elv_server *s, uint32_t row, struct elv_actions *out)
{
    struct elv_row *r = &s->roster.rows[row];
    if (!r->joined)
        return;
    const bool known = !r->lapsed; /* to the policy */
    elv_roster_set_joined(&s->roster, row, false);
    s->stats.leaves++;
    r->observes = r->held = r->offer.finishes = r->missed.finishes = false;
    struct elv_upload *up = r->upload != ELV_ROW_NONE ? &s->uploads.at[r->upload] : NULL;
    if (up && up->state == ELV_UPLOAD_STAGED)
        elv_core_discard(s, up, ELV_REASON_NOT_JOINED, out);
    const bool undecided = r->upload != ELV_ROW_NONE;
    if (r->waiting && !undecided && r->offer.own) {
        elv_core_void_offer(s, r, out);
    } else if (r->waiting && !undecided) { /* a commit under way is still decided */
        r->waiting = false;
        if (s->round.state == ELV_ROUND_OPEN)
            s->round.n_waiting--;
    }
    if (known && s->policies.sync->on_leave)
        s->policies.sync->on_leave(s->sync_state, &s->sync_cfg,
                                   (struct elv_sync_client){row, r->client}, s->now);
}

void elv_core_gone(struct elv_server *s, uint32_t client, struct elv_actions *out)
{
    const uint32_t row = elv_roster_find(&s->roster, client);
    if (row == ELV_ROW_NONE)
        return;
    s->roster.rows[row].gone = true;
    elv_core_part(s, row, out);
    elv_core_put_client(s, out, row, false);
    elv_note_add(&s->notes, ELV_NOTE_REVOKED, s->now)->client = client;
}

static bool has_work(const struct elv_server *s, const struct elv_row *row)
{
    return row->offer.assignment != 0 &&
           elv_core_assignment(s, row, row->offer.assignment) == ELV_REASON_NONE;
}

static uint32_t least_poll_ms(const struct elv_server *s)
{
    const uint32_t crowd = 2 * s->roster.n_joined;
    return crowd > 20 ? crowd : 20;
}

/* When the next ticket is worth asking for. With many clients the server spreads them out; when
 * rounds are short, those that are done ask about when the round should be over. */
static uint32_t poll_ms(const struct elv_server *s)
{
    const uint32_t crowd = 2 * s->roster.n_joined;
    const uint32_t least = least_poll_ms(s);
    if (s->round.state == ELV_ROUND_NONE || s->round_took == 0)
        return crowd > 100 ? crowd : 100;
    if (s->round.state < ELV_ROUND_OPEN)
        return least; /* any moment now */
    const elv_time_us gone = s->now - s->round.opened;
    const elv_time_us left = s->round_took > gone ? s->round_took - gone : gone / 8;
    const uint32_t most = crowd > 1000 ? crowd : 1000;
    const uint32_t ms = left / 1000 < most ? (uint32_t)(left / 1000) : most;
    return ms > least ? ms : least;
}

static uint32_t working_poll_ms(const struct elv_server *s)
{
    const uint32_t crowd = 2 * s->roster.n_joined;
    return crowd > 1000 ? crowd : 1000;
}

static uint32_t remaining_ms(const struct elv_server *s, const struct elv_offer *offer)
{
    const elv_time_us ends = offer->own ? elv_core_offer_ends(s, offer) : s->round.deadline;
    const elv_time_us left = ends - s->now;
    if (left <= 0)
        return 1;
    return left / 1000 < UINT32_MAX ? (uint32_t)(left / 1000) + 1 : UINT32_MAX;
}

static void offer_work(struct elv_server *s, const struct elv_row *row, struct elv_ticket *t)
{
    const struct elv_offer *offer = &row->offer;
    const struct elv_kept *v = elv_kept_find(&s->kept, offer->version);
    ELV_ASSERT(v != NULL);
    t->what = offer->own ? ELV_WHAT_TRAIN : s->round.what;
    t->poll_ms = working_poll_ms(s);
    t->assignment = offer->assignment;
    t->round =
        offer->own ? offer->assignment : offer->seq; /* what is drawn for it is its own, too */
    t->deadline_ms = remaining_ms(s, offer);
    memcpy(t->model, v->model, sizeof t->model);
    t->full = v->full;
    elv_broadcast_offer(&s->cast, v->version, t);
    if (t->what == ELV_WHAT_EVALUATE)
        return;
    t->local_epochs = offer->size.local_epochs;
    t->local_steps = offer->size.local_steps;
    t->batch = offer->size.batch;
    t->learning_rate = (float)v->rate;
    t->up = elv_job_up(s->job, row->codec, v->version);
}

/* It has no work, and may get some that shows up in a later ticket. */
static struct elv_sync_grant ask_for_work(struct elv_server *s, uint32_t i, struct elv_actions *out)
{
    const struct elv_row *row = &s->roster.rows[i];
    const struct elv_sync_grant none = {ELV_SYNC_HOLD, 0};
    if (!elv_core_streams(s))
        return s->round.state == ELV_ROUND_OPEN && row->offer.seq != s->round.seq
                   ? elv_core_pull(s, i, out)
                   : none;
    elv_core_back_again(s, i);
    if (!elv_core_is_idle(s, i))
        return none;
    if (elv_core_hands_out(s) && !row->wants && !row->last_failed)
        return elv_core_pull(s, i, out);
    elv_core_want(s, i);
    return none;
}

/* Any moment now. */
static bool is_promised(const struct elv_row *row)
{
    return row->offer.own && row->waiting && row->offer.promised;
}

static bool is_unfinished(const struct elv_server *s, const struct elv_row *row,
                          struct elv_offer *offer)
{
    if (s->now >= offer->ends || offer->assignment == row->last.assignment)
        offer->finishes = false;
    return offer->finishes && !offer->told;
}

/* At work for a round that closed without it, which it is to finish: a ticket would stop it. */
static bool must_not_know(const struct elv_server *s, struct elv_row *row)
{
    const bool missed = is_unfinished(s, row, &row->missed);
    return (is_unfinished(s, row, &row->offer) || missed) && !elv_core_is_finished(s);
}

void elv_core_ticket(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const uint32_t i = elv_roster_find(&s->roster, ev->peer);
    struct elv_row *row = i != ELV_ROW_NONE ? &s->roster.rows[i] : NULL;
    if (row == NULL || !row->joined) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_NOT_JOINED, 0);
        return;
    }
    if (must_not_know(s, row)) {
        elv_core_refuse_as(s, out, ev->id, ELV_CODE_UNAVAILABLE, ELV_REASON_POLICY,
                           working_poll_ms(s));
        return;
    }
    row->observes = ev->request.observe;
    struct elv_ticket t = {
        .what = ELV_WHAT_WAIT, .window = elv_core_window(s), .newest = s->cast.version};
    memcpy(t.manifest, s->manifest_digest, sizeof t.manifest);
    const struct elv_sync_grant grant = ask_for_work(s, i, out);
    if (grant.start == ELV_SYNC_REJECT) {
        elv_core_refuse_as(s, out, ev->id, ELV_CODE_UNAVAILABLE, ELV_REASON_POLICY, grant.retry_ms);
        return;
    }
    t.poll_ms = is_promised(row) ? least_poll_ms(s) : poll_ms(s);
    if (s->over) {
        t.what = ELV_WHAT_STOP;
        t.poll_ms = STOP_POLL_MS;
    } else if (has_work(s, row)) {
        offer_work(s, row, &t);
    }
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_ticket_encode(&t, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    elv_core_reply(out, ev->id, ELV_CODE_CONTENT, t.poll_ms / 1000, (struct elv_bytes){at, len});
}

static void send_chunk(struct elv_server *s, const struct elv_event *ev, struct elv_bytes body,
                       struct elv_actions *out)
{
    s->stats.chunks_down++;
    s->stats.bytes_down += body.len;
    s->round.bytes_down += body.len;
    elv_core_reply(out, ev->id, ELV_CODE_CONTENT, MODEL_MAX_AGE_S, body);
}

/* A chunk of a version that is no longer in memory, the same bytes as when it was. */
static enum elv_err read_chunk(struct elv_server *s, struct elv_kept *v, uint32_t index,
                               uint8_t out[ELV_CHUNK_MAX], size_t *len)
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    const struct elv_codec *codec = s->cast.full;
    const uint32_t first = codec->first_of(index), next = codec->first_of(index + 1);
    const uint32_t count = (next < s->cast.n ? next : s->cast.n) - first;
    struct elv_chunk chunk = {.kind = ELV_BODY_MODEL,
                              .codec = codec->id,
                              .index = index,
                              .first = first,
                              .count = count,
                              .payload = {payload, 4 * (size_t)count}};
    memcpy(chunk.tag, v->full.digest, sizeof chunk.tag);
    ELV_ASSERT(4 * (size_t)count <= sizeof payload);
    enum elv_err err = elv_kept_read(v, &s->disk, first, count, payload);
    if (err == ELV_OK)
        err = elv_chunk_encode(&chunk, out, ELV_CHUNK_MAX, len);
    return err;
}

void elv_core_model_chunk(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const struct elv_request *r = &ev->request;
    struct elv_kept *v = elv_kept_find_body(&s->kept, r->digest);
    if (v == NULL || r->chunk >= v->full.n_chunks) {
        elv_core_refuse_as(s, out, ev->id, ELV_CODE_NOT_FOUND, ELV_REASON_SUPERSEDED, 0);
        return;
    }
    uint8_t *at = elv_core_text(s, ELV_CHUNK_MAX);
    size_t len = 0;
    if (v->version == s->cast.version)
        len = elv_broadcast_chunk(&s->cast, s->cast.b, v->full.digest, r->chunk, at);
    else if (read_chunk(s, v, r->chunk, at, &len) != ELV_OK) {
        elv_core_refuse(s, out, ev->id, ELV_REASON_STORAGE, STORAGE_RETRY_MS);
        return;
    }
    elv_core_text_used(s, len);
    send_chunk(s, ev, (struct elv_bytes){at, len}, out);
}

void elv_core_step_chunk(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const struct elv_request *r = &ev->request;
    const struct elv_step *step = elv_broadcast_step(&s->cast, r->digest);
    if (step == NULL || r->chunk >= step->ref.n_chunks)
        elv_core_refuse_as(s, out, ev->id, ELV_CODE_NOT_FOUND, ELV_REASON_SUPERSEDED, 0);
    else
        send_chunk(s, ev, elv_step_chunk(step, r->chunk), out);
}
