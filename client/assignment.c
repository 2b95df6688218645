/* SPDX-License-Identifier: Apache-2.0 */
#include "client/assignment_internal.h"

#include "client/session_internal.h"
#include "common/assert.h"

enum {
    FETCHES_MAX = 3,   /* by steps, in full, and in full once more */
    BAD_PER_CHUNK = 4, /* this many useless ones for each that is needed, and for some more, end a
                          fetch: a server that has no others would hold us for ever */
    BAD_MORE = 4,
};

/* The attempt: another one after each restart, so that what an earlier one left behind is not taken
 * for part of this one. */
static uint64_t nonce_of(uint64_t boot, uint32_t assignment)
{
    uint8_t bytes[12], sum[ELV_SHA256_LEN];
    struct elv_wr w = elv_wr_of(bytes, sizeof bytes);
    elv_wr_u64(&w, boot);
    elv_wr_u32(&w, assignment);
    elv_sha256(bytes, sizeof bytes, sum);
    struct elv_rd r = elv_rd_of((struct elv_bytes){sum, sizeof sum});
    return elv_rd_u64(&r);
}

bool elv_assignment_open(const struct elv_client *c)
{
    return c->phase >= ELV_CLIENT_FETCHING && c->phase <= ELV_CLIENT_COMMITTING;
}

static void fetch(struct elv_client *c, elv_time_us from)
{
    c->phase = ELV_CLIENT_FETCHING;
    c->fetching = false;
    c->fetch_us = from;
}

/* The memory was planned for the codecs the manifest lists. */
bool elv_assignment_can_encode(const struct elv_client *c, const struct elv_codec_choice *up)
{
    const uint32_t first_cap = elv_delta_first_cap(&c->model, up);
    return first_cap > 0 && first_cap <= c->memory.first_cap;
}

/* By this clock it is a little later than by the server's: what is not there by then is late. */
void elv_assignment_renew(struct elv_client *c, const struct elv_ticket *t)
{
    c->due_us = t->deadline_ms == 0 ? ELV_NEVER : c->now + (elv_time_us)t->deadline_ms * 1000;
}

void elv_assignment_begin(struct elv_client *c, const struct elv_ticket *t)
{
    ELV_ASSERT(c->phase == ELV_CLIENT_IDLE);
    c->ticket = *t;
    c->begun_us = c->now;
    elv_assignment_renew(c, t);
    c->commit = (struct elv_commit){.status = ELV_STATUS_DONE,
                                    .nonce = nonce_of(c->cfg.boot, t->assignment)};
    c->n_fetches = 0;
    c->train_us = 0;
    c->stats.assignments++;
    elv_residual_begins(&c->residual, t->assignment, t->version);
    fetch(c, c->now);
    if (t->what != ELV_WHAT_TRAIN)
        return;
    if (elv_session_samples(c) == 0)
        elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA);
    else if (!elv_assignment_can_encode(c, &t->up))
        elv_assignment_give_up(c, ELV_STATUS_FAILED, ELV_REASON_CODEC);
}

static void let_go(struct elv_client *c)
{
    elv_transfer_end(&c->transfer);
    elv_residual_late(&c->residual); /* unless the decision is known by now */
    if (c->work.id != 0)
        c->work.cancel = c->work.kind != ELV_CLIENT_SETTLE;
    else if (c->phase == ELV_CLIENT_TRAINING && c->train.resumed) /* it rests between two pieces */
        c->cfg.trainer.abort(c->cfg.trainer.self);
}

void elv_assignment_drop(struct elv_client *c)
{
    let_go(c);
    elv_persist_over(&c->persist);
    if (elv_assignment_open(c)) {
        c->stats.superseded++;
        c->phase = ELV_CLIENT_IDLE;
    }
}

void elv_assignment_decided(struct elv_client *c, bool done)
{
    let_go(c);
    elv_persist_over(&c->persist);
    c->decided = c->ticket.assignment;
    c->phase = ELV_CLIENT_IDLE;
    if (c->stopping)
        elv_session_leave(c);
    else
        elv_session_poll(c,
                         done); /* one that fails at once must not ask at once, round after round */
}

void elv_assignment_give_up(struct elv_client *c, enum elv_status status, enum elv_reason reason)
{
    let_go(c);
    elv_persist_over(&c->persist);
    c->commit = (struct elv_commit){.status = status, .reason = reason, .nonce = c->commit.nonce};
    c->phase = ELV_CLIENT_COMMITTING;
}

static void fail(struct elv_client *c, enum elv_reason reason)
{
    elv_assignment_give_up(c, ELV_STATUS_FAILED, reason);
}

/* Getting the model. */

static bool may_plan(const struct elv_client *c)
{
    return c->now >= c->fetch_us && !elv_persist_waits(&c->persist);
}

static void plan_fetch(struct elv_client *c, struct elv_actions *out)
{
    uint32_t n;
    if (elv_base_plan(&c->base, &c->ticket, &n) != ELV_OK) {
        fail(c, ELV_REASON_MALFORMED);
        return;
    }
    if (n == 0) {
        c->phase = ELV_CLIENT_LOADING;
        return;
    }
    elv_transfer_begin(&c->transfer, c->memory.bitmap, n);
    c->fetching = true;
    c->n_bad = 0;
    if (elv_persist_replays(&c->persist, &c->transfer.have))
        elv_assignment_start(c, out, ELV_CLIENT_REPLAY);
}

void elv_assignment_fetch_again(struct elv_client *c, elv_time_us wait)
{
    elv_transfer_end(&c->transfer);
    if (++c->n_fetches < FETCHES_MAX)
        fetch(c, c->now + wait);
    else
        fail(c, ELV_REASON_DIGEST);
}

static void on_fetched(struct elv_client *c, uint32_t chunk, const struct elv_response *r)
{
    if (elv_base_take(&c->base, chunk, r->body) != ELV_OK) {
        c->stats.bad_chunks++; /* asked for again when its time is up */
        if (c->n_bad++ / BAD_PER_CHUNK > c->transfer.have.n + BAD_MORE)
            elv_assignment_fetch_again(c, elv_backoff(&c->rng, c->n_fetches));
        return;
    }
    c->stats.bytes_down += r->body.len;
    elv_persist_chunk(&c->persist, r->body);
    elv_transfer_have(&c->transfer, chunk);
}

/* Sending the update. */

static void on_uploaded(struct elv_client *c, uint32_t chunk, const struct elv_response *r)
{
    struct elv_progress p;
    if (elv_progress_decode(r->body, &p) != ELV_OK) {
        c->stats.malformed++;
        return;
    }
    elv_transfer_grant(&c->transfer, p.window);
    elv_transfer_have(&c->transfer, chunk); /* the list may end before it */
    elv_transfer_progress(&c->transfer, &p.missing);
}

static void on_upload_refused(struct elv_client *c, enum elv_reason reason)
{
    switch (reason) {
    case ELV_REASON_UNKNOWN_ASSIGNMENT:
    case ELV_REASON_SUPERSEDED:
    case ELV_REASON_ROUND_CLOSED:
    case ELV_REASON_DUPLICATE:
    case ELV_REASON_POLICY:
        c->stats.superseded++;
        elv_assignment_decided(c, false); /* stop paying for airtime at once */
        break;
    case ELV_REASON_FULL:
    case ELV_REASON_QUOTA:
    case ELV_REASON_NONE:
        elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_QUOTA);
        break;
    default:
        fail(c, reason);
    }
}

/* It may have been replaced; the next ticket tells. A step may be gone that the whole model
 * outlives: with policies that stream a client may start from an older version. */
static void fetch_whole(struct elv_client *c, const struct elv_response *r, elv_time_us wait)
{
    if (r->code == ELV_CODE_NOT_FOUND)
        c->ticket.n_steps = 0;
    elv_assignment_fetch_again(c, wait);
}

static void on_chunk_refused(struct elv_client *c, const struct elv_response *r)
{
    elv_time_us wait;
    const enum elv_reason reason = elv_session_refusal(c, r, &wait);
    const elv_time_us patience = wait > 0 ? wait : elv_backoff(&c->rng, 0);
    if (elv_session_heed(c, reason)) {
        if (elv_assignment_open(c))
            elv_transfer_pause(&c->transfer, c->now + patience); /* until it has joined again */
        return;
    }
    if (r->code >> 5 == 5 || wait > 0)
        elv_transfer_pause(&c->transfer, c->now + patience);
    else if (c->phase == ELV_CLIENT_UPLOADING)
        on_upload_refused(c, reason);
    else
        fetch_whole(c, r, patience);
}

void elv_assignment_chunk(struct elv_client *c, uint32_t id, const struct elv_response *r)
{
    uint32_t chunk;
    if (!elv_transfer_answered(&c->transfer, c->now, id, &chunk))
        return;
    if (!elv_code_is_success(r->code))
        on_chunk_refused(c, r);
    else if (c->phase == ELV_CLIENT_UPLOADING)
        on_uploaded(c, chunk, r);
    else
        on_fetched(c, chunk, r);
}

static bool is_spoilt(enum elv_reason reason)
{
    return reason == ELV_REASON_OUT_OF_RANGE || reason == ELV_REASON_NOT_FINITE ||
           reason == ELV_REASON_OVER_NORM;
}

bool elv_assignment_verdict(struct elv_client *c, const struct elv_verdict *v)
{
    if (v->decision == ELV_MISSING) {
        if (!c->transfer.have.n || c->commit.n_chunks == 0)
            return false;
        if (c->stopping) {
            elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_STOPPING);
            return true;
        }
        elv_transfer_missing(&c->transfer, &v->missing);
        if (elv_transfer_complete(&c->transfer))
            return false; /* it names nothing that could be missing */
        c->phase = ELV_CLIENT_UPLOADING;
        return true;
    }
    const enum elv_status status = c->commit.status;
    const bool trained = status == ELV_STATUS_DONE && c->ticket.what == ELV_WHAT_TRAIN;
    if (v->decision == ELV_REFUSED) {
        c->stats.refused[v->reason < ELV_CLIENT_REASONS ? v->reason : 0]++;
    } else {
        c->stats.accepted += status == ELV_STATUS_DONE;
        c->stats.failed += status == ELV_STATUS_FAILED;
        c->stats.declined += status == ELV_STATUS_DECLINED;
    }
    if (v->decision == ELV_REFUSED && is_spoilt(v->reason)) {
        c->left_due = c->residual.saved.vector == ELV_VECTOR_UNDECIDED;
        elv_residual_spoilt(&c->residual);
    }
    if (v->decision == ELV_ACCEPTED && status == ELV_STATUS_DONE)
        elv_residual_accepted(&c->residual);
    elv_assignment_decided(c, v->decision == ELV_ACCEPTED && status == ELV_STATUS_DONE);
    if (v->decision == ELV_REFUSED)
        elv_session_heed(c, v->reason);
    else if (trained && c->cfg.once)
        elv_session_leave(c);
    return true;
}

/* Moving on. */

/* The disk reads the base, which encoding may change, or the update, which may not leave before. */
static bool held_up(const struct elv_client *c)
{
    return (c->phase == ELV_CLIENT_ENCODING || c->phase == ELV_CLIENT_UPLOADING) &&
           elv_persist_waits(&c->persist);
}

/* One phase further when what it waits for is there; false: wait. */
static bool advance_phase(struct elv_client *c, struct elv_actions *out)
{
    static const uint32_t kinds[] = {
        [ELV_CLIENT_LOADING] = ELV_CLIENT_LOAD,
        [ELV_CLIENT_EVALUATING] = ELV_CLIENT_EVALUATE,
        [ELV_CLIENT_TRAINING] = ELV_CLIENT_TRAIN,
        [ELV_CLIENT_ENCODING] = ELV_CLIENT_ENCODE,
    };
    switch (c->phase) {
    case ELV_CLIENT_FETCHING:
        if (c->fetching ? !elv_transfer_complete(&c->transfer) : !may_plan(c))
            return false;
        if (!c->fetching)
            plan_fetch(c, out);
        else
            c->phase = ELV_CLIENT_LOADING;
        return true;
    case ELV_CLIENT_LOADING:
    case ELV_CLIENT_EVALUATING:
    case ELV_CLIENT_TRAINING:
    case ELV_CLIENT_ENCODING:
        if (c->now >= c->work.rest_until && !held_up(c))
            elv_assignment_start(c, out, kinds[c->phase]);
        return false;
    case ELV_CLIENT_UPLOADING:
        if (elv_transfer_complete(&c->transfer))
            c->phase = ELV_CLIENT_COMMITTING;
        return false;
    default:
        return false;
    }
}

static void forget(struct elv_actions *out, uint32_t id)
{
    if (id == 0)
        return;
    ELV_ASSERT(out->n < out->cap);
    out->at[out->n++] = (struct elv_action){.kind = ELV_DO_FORGET, .id = id};
}

static struct elv_request chunk_request(struct elv_client *c, uint32_t chunk, uint8_t *bytes)
{
    if (c->phase == ELV_CLIENT_FETCHING)
        return elv_base_request(&c->base, chunk);
    size_t len;
    elv_delta_chunk(&c->delta, chunk, bytes, &len);
    c->stats.bytes_up += len;
    return (struct elv_request){.op = ELV_OP_UPDATE_CHUNK,
                                .assignment = c->ticket.assignment,
                                .chunk = chunk,
                                .body = {bytes, len}};
}

static bool transferring(const struct elv_client *c)
{
    return (c->phase == ELV_CLIENT_FETCHING && c->fetching) ||
           (c->phase == ELV_CLIENT_UPLOADING && !held_up(c));
}

void elv_assignment_send(struct elv_client *c, struct elv_actions *out)
{
    if (c->work.id != 0 || !transferring(c))
        return;
    elv_transfer_expire(&c->transfer, c->now);
    for (uint32_t i = 0; i < c->cfg.burst; i++) {
        struct elv_transmission t;
        if (!elv_transfer_next(&c->transfer, c->now, elv_session_next_id(c), &t))
            return;
        forget(out, t.forget[0]);
        forget(out, t.forget[1]);
        elv_session_send(c, out, chunk_request(c, t.chunk, c->memory.chunks + i * ELV_CHUNK_MAX),
                         false);
        c->stats.chunks_sent++;
        c->stats.chunks_repeated += t.repeated;
    }
}

/* What is being sent may still count, by the server's clock; it says so itself. */
static bool has_a_deadline(const struct elv_client *c)
{
    return c->phase >= ELV_CLIENT_FETCHING && c->phase <= ELV_CLIENT_ENCODING;
}

/* Nothing needs the vector of the latest update any more, or there is none. */
static void keep_what_is_left(struct elv_client *c)
{
    if (c->left_due)
        elv_persist_left(&c->persist, &c->residual);
    c->left_due = false;
    elv_persist_forget(&c->persist);
}

void elv_assignment_work(struct elv_client *c, struct elv_actions *out)
{
    struct elv_work *w = &c->work;
    if (has_a_deadline(c) && c->now >= c->due_us) {
        c->stats.expired++;
        elv_assignment_decided(c, false); /* the server may still offer it for a moment */
    }
    if (w->id != 0 && w->cancel && !w->cancel_told) {
        ELV_ASSERT(out->n < out->cap);
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_CANCEL, .id = w->id};
        w->cancel_told = true;
    }
    if (c->residual.saved.vector == ELV_VECTOR_NONE && !elv_persist_waits(&c->persist))
        keep_what_is_left(c);
    if (w->id == 0 && elv_residual_unsettled(&c->residual) && !elv_persist_waits(&c->persist))
        elv_assignment_start(c, out, ELV_CLIENT_SETTLE); /* before its memory is used again */
    if (w->id == 0 && c->phase == ELV_CLIENT_IDLE && c->prepared && c->persist.restore_due)
        elv_assignment_start(c, out, ELV_CLIENT_RESTORE);
    while (w->id == 0 && advance_phase(c, out)) /* three phases without work in between at most */
        ;
}

/* The next thing to do for its own sake. */
static elv_time_us next_move(const struct elv_client *c)
{
    if (c->work.id != 0 || held_up(c))
        return ELV_NEVER;
    switch (c->phase) {
    case ELV_CLIENT_FETCHING:
        if (!c->fetching)
            return elv_persist_waits(&c->persist) ? ELV_NEVER : c->fetch_us;
        return elv_transfer_deadline(&c->transfer);
    case ELV_CLIENT_UPLOADING:
        return elv_transfer_deadline(&c->transfer);
    case ELV_CLIENT_LOADING:
    case ELV_CLIENT_EVALUATING:
    case ELV_CLIENT_TRAINING:
    case ELV_CLIENT_ENCODING:
        return c->work.rest_until;
    default:
        return ELV_NEVER;
    }
}

elv_time_us elv_assignment_deadline(const struct elv_client *c)
{
    const elv_time_us at = next_move(c);
    return has_a_deadline(c) && c->due_us < at ? c->due_us : at;
}
