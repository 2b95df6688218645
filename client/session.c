/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session_internal.h"

#include <string.h>

#include "client/assignment_internal.h"
#include "common/assert.h"

enum {
    MS = 1000,
    POLL_MIN_US = 10 * MS,          /* whatever the server says */
    OBSERVE_REFRESH_US = 3000 * MS, /* an observation may be lost without a sign */
    STOP_GRACE_US = 5000 * MS,      /* how long stopping may wait for the server */
    TELL_MAX = 5,                   /* tries to say that the model does not fit */
    AUTH_MAX = 3,                   /* links refused in a row before the identity is given up */
};

static elv_time_us us(uint32_t ms) { return (elv_time_us)ms * MS; }

uint32_t elv_session_next_id(const struct elv_client *c)
{
    return c->last_id == UINT32_MAX ? 1 : c->last_id + 1;
}

static void emit(struct elv_actions *out, struct elv_action a)
{
    ELV_ASSERT(out->n < out->cap);
    out->at[out->n++] = a;
}

uint32_t elv_session_send(struct elv_client *c, struct elv_actions *out, struct elv_request request,
                          bool reliable)
{
    c->last_id = elv_session_next_id(c);
    emit(out, (struct elv_action){
                  .kind = ELV_DO_SEND, .id = c->last_id, .reliable = reliable, .request = request});
    c->stats.requests++;
    elv_link_asked(&c->link, c->now, elv_rto(&c->transfer.flow.rtt), &c->rng);
    return c->last_id;
}

/* Ending. */

static void forget_all(struct elv_client *c)
{
    elv_control_drop(&c->control);
    elv_control_forget(&c->control, c->control.observation);
    c->control.observation = 0;
}

static void end(struct elv_client *c, uint32_t code, enum elv_reason reason)
{
    if (c->phase == ELV_CLIENT_ENDED)
        return;
    if (c->stopping)
        elv_persist_park(&c->persist);
    elv_assignment_drop(c);
    forget_all(c);
    c->phase = ELV_CLIENT_ENDED;
    c->exit_code = code;
    c->exit_reason = reason;
}

static void leave_with(struct elv_client *c, uint32_t code, enum elv_reason reason)
{
    c->exit_code = code;
    c->exit_reason = reason;
    c->phase = ELV_CLIENT_LEAVING;
    c->control.retry_us = 0;
}

void elv_session_leave(struct elv_client *c)
{
    if (c->phase >= ELV_CLIENT_LEAVING)
        return;
    if ((c->cfg.leave_on_stop || c->cfg.once) && c->joined)
        leave_with(c, ELV_CLIENT_OVER, ELV_REASON_NONE);
    else
        end(c, ELV_CLIENT_OVER, ELV_REASON_NONE);
}

/* Work that waits on the disk for the next start, if this device comes back. */
static bool is_kept(const struct elv_client *c)
{
    return (elv_persist_parks(&c->persist) || c->resuming) && !c->cfg.leave_on_stop;
}

void elv_session_stop(struct elv_client *c)
{
    c->stop_us = c->stopping ? c->now : c->now + STOP_GRACE_US;
    if (c->stopping)
        return;
    c->stopping = true;
    if (!elv_assignment_open(c))
        elv_session_leave(c);
    else if (is_kept(c)) /* the next start takes it up */
        end(c, ELV_CLIENT_OVER, ELV_REASON_NONE);
    else if (c->phase != ELV_CLIENT_COMMITTING) /* what is done may still be decided */
        elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_STOPPING);
}

void elv_session_tick(struct elv_client *c)
{
    if (c->stopping && c->now >= c->stop_us)
        end(c, c->phase == ELV_CLIENT_LEAVING ? c->exit_code : ELV_CLIENT_OVER, c->exit_reason);
}

/* The manifest. */

/* Its digest did not fit a ticket or the server's own: read it, and join by it. Waits if that did
 * not help the last time. */
static void read_again(struct elv_client *c)
{
    elv_assignment_drop(c);
    c->prepared = c->joined = false;
    forget_all(c);
    if (c->n_rereads > 0)
        c->control.retry_us = c->now + elv_backoff(&c->rng, c->n_rereads - 1);
    c->n_rereads += c->n_rereads < 32;
}

static bool wire_fits(uint32_t min, uint32_t max)
{
    return min <= ELV_WIRE_MAX && max >= ELV_WIRE_MIN;
}

static enum elv_err parse_model(const struct elv_manifest *m, struct elv_model *model)
{
    const struct elv_model_text text = {
        .input = {(const uint8_t *)m->input.at, m->input.len},
        .layers = {(const uint8_t *)m->layers.at, m->layers.len},
    };
    const enum elv_err err = elv_model_parse(model, text, NULL);
    if (err != ELV_OK)
        return err;
    const bool same = model->n_shared == m->n_params &&
                      memcmp(model->fingerprint, m->fingerprint, sizeof m->fingerprint) == 0;
    return same ? ELV_OK : ELV_ERR_MISMATCH;
}

static enum elv_err plan_with(struct elv_client *c, const struct elv_manifest *m, bool feedback)
{
    struct elv_arena a = c->fixed;
    const enum elv_err err = elv_memory_run(&a, m, &c->model, feedback, &c->memory);
    if (err != ELV_OK)
        return err;
    const struct elv_trainer *t = &c->cfg.trainer;
    if (t->prepare != NULL)
        return t->prepare(t->self, m, &c->model, a.base + a.used, a.cap - a.used);
    return ELV_OK;
}

/* Whether this device takes part with that codec: without room for a residual it leaves those that
 * need one to others. */
static bool offers(const struct elv_client *c, const struct elv_manifest *m,
                   const struct elv_codec_choice *up)
{
    const bool wants = m->feedback != ELV_FEEDBACK_NONE && elv_residual_helps(up);
    return elv_codec_by_id(up->id) != NULL && (!wants || c->memory.residual != NULL);
}

static bool offers_any(const struct elv_client *c, const struct elv_manifest *m)
{
    for (uint32_t i = 0; i < m->n_up; i++)
        if (offers(c, m, &m->up[i]))
            return true;
    return false;
}

/* Cuts the memory for this run and makes the trainer ready, with a residual if that fits. */
static enum elv_err plan(struct elv_client *c, const struct elv_manifest *m)
{
    const enum elv_err err = plan_with(c, m, true);
    if (err != ELV_ERR_SPACE || !elv_memory_feeds_back(m))
        return err;
    const enum elv_err without = plan_with(c, m, false);
    return without == ELV_OK && !offers_any(c, m) ? ELV_ERR_SPACE : without;
}

static bool same_residual(const struct elv_residual_cfg *a, const struct elv_residual_cfg *b)
{
    return a->kind == b->kind && a->n == b->n && a->values == b->values &&
           a->velocity == b->velocity;
}

/* A run read again goes on with what was left over, if it lies where it lay. */
static void set_up_residual(struct elv_client *c, const struct elv_manifest *m)
{
    const struct elv_residual_saved saved = c->residual.saved;
    const bool same_run = memcmp(c->manifest.run, m->run, sizeof m->run) == 0;
    const struct elv_residual_cfg cfg = {
        .kind = c->memory.residual != NULL ? m->feedback : ELV_FEEDBACK_NONE,
        .n = c->model.n_shared,
        .values = c->memory.residual,
        .velocity = c->memory.velocity,
        .momentum = m->momentum_correction,
        .age_max = m->feedback_age,
    };
    const bool kept = same_run && same_residual(&c->residual.cfg, &cfg) &&
                      c->delta.cfg.trained == c->memory.fresh;
    elv_residual_init(&c->residual, &cfg);
    if (kept)
        c->residual.saved = saved;
}

static void set_up(struct elv_client *c, const struct elv_manifest *m)
{
    const struct elv_text none = {0};
    if (memcmp(c->manifest.run, m->run, sizeof m->run) != 0)
        c->decided = 0; /* another run counts its assignments from the start */
    set_up_residual(c, m);
    c->manifest = *m;
    c->manifest.job = c->manifest.input = c->manifest.layers = c->manifest.partition = none;
    c->pack = (struct elv_pack){.squeeze = c->cfg.squeeze,
                                .deflate = m->deflate,
                                .values = c->memory.values,
                                .bytes = c->memory.bytes};
    const struct elv_base_cfg base = {
        .model = &c->model,
        .pack = &c->pack,
        .seed = m->seed,
        .base = c->memory.base,
        .fresh = c->memory.fresh,
        .hash = c->memory.hash,
        .hash_cap = c->memory.hash_cap,
        .codecs = c->cfg.codecs,
        .n_codecs = c->cfg.n_codecs,
    };
    elv_base_init(&c->base, &base);
    elv_persist_begin(&c->persist, m);
    c->prepared = true;
}

/* A manifest unlike the one before. False: try again later. */
static bool take_manifest(struct elv_client *c, const struct elv_manifest *m)
{
    if (!wire_fits(m->wire_min, m->wire_max)) {
        end(c, ELV_CLIENT_REFUSED, ELV_REASON_WIRE_VERSION);
        return true;
    }
    if (parse_model(m, &c->model) != ELV_OK) { /* made by software that knows more than this */
        end(c, ELV_CLIENT_REFUSED, ELV_REASON_WRONG_SHAPE);
        return true;
    }
    switch (plan(c, m)) {
    case ELV_OK:
        set_up(c, m);
        return true;
    case ELV_ERR_SPACE:
        c->prepared = c->unfit = true;
        return true;
    case ELV_ERR_IO:
    case ELV_ERR_BUSY:
        return false;
    default:
        end(c, ELV_CLIENT_REFUSED, ELV_REASON_TRAINER);
        return true;
    }
}

static bool on_manifest(struct elv_client *c, struct elv_bytes body)
{
    struct elv_manifest m;
    uint8_t sum[ELV_SHA256_LEN];
    if (elv_manifest_decode(body, &m) != ELV_OK) {
        c->stats.malformed++;
        return false;
    }
    elv_sha256(body.at, body.len, sum);
    const bool known =
        c->planned && memcmp(sum, c->manifest_digest, sizeof c->manifest_digest) == 0;
    if (known) { /* nothing changed; keep what is held */
        c->prepared = true;
        return true;
    }
    c->planned = false;
    const bool taken = take_manifest(c, &m);
    c->planned = taken && c->prepared && !c->unfit;
    memcpy(c->manifest_digest, sum, sizeof c->manifest_digest);
    return taken;
}

/* Joining. */

uint32_t elv_session_samples(struct elv_client *c)
{
    const struct elv_trainer *t = &c->cfg.trainer;
    if (t->samples == NULL)
        c->samples = UINT32_MAX;
    else if (c->work.id == 0) /* the trainer is the work's while that is out */
        c->samples = t->samples(t->self);
    return c->samples;
}

/* Codecs the job does not list do no harm. */
static bool offers_id(const struct elv_client *c, uint8_t codec)
{
    for (uint32_t i = 0; i < c->manifest.n_up; i++)
        if (c->manifest.up[i].id == codec)
            return offers(c, &c->manifest, &c->manifest.up[i]);
    return true;
}

static enum elv_err encode_join(struct elv_client *c, size_t *len)
{
    const uint32_t samples = c->unfit ? 0 : elv_session_samples(c);
    struct elv_join j = {
        .wire_min = ELV_WIRE_MIN,
        .wire_max = ELV_WIRE_MAX,
        .software = c->cfg.software,
        .boot = c->cfg.boot,
        .memory = c->mem_len,
        .speed = c->cfg.speed,
        .samples = samples == UINT32_MAX ? 0 : samples,
    };
    const struct elv_client_cfg *cfg = &c->cfg;
    const size_t n = cfg->n_codecs > 0 ? cfg->n_codecs : elv_codec_count();
    for (size_t i = 0; i < n && j.n_codecs < ELV_CODECS_MAX; i++) {
        const uint8_t id = cfg->n_codecs > 0 ? cfg->codecs[i] : elv_codec_at(i)->id;
        if (elv_codec_by_id(id) != NULL && (c->unfit || offers_id(c, id)))
            j.codecs[j.n_codecs++] = id;
    }
    memcpy(j.manifest, c->manifest_digest, sizeof j.manifest);
    return elv_join_encode(&j, c->memory.message, ELV_MSG_MAX, len);
}

static bool on_joined(struct elv_client *c, struct elv_bytes body)
{
    struct elv_joined j;
    if (elv_joined_decode(body, &j) != ELV_OK || !wire_fits(j.wire, j.wire)) {
        c->stats.malformed++;
        return false;
    }
    if (c->unfit) { /* it was meant as a farewell */
        leave_with(c, ELV_CLIENT_REFUSED, ELV_REASON_MODEL_TOO_BIG);
        return true;
    }
    c->joined = true;
    c->stats.joins++;
    c->n_auth = 0;
    c->number = j.client;
    elv_transfer_grant(&c->transfer, j.window);
    elv_transfer_pause(&c->transfer, c->now); /* chunks that waited for this go on */
    c->poll_us = c->now + elv_jitter(&c->rng, us(j.jitter_ms));
    return true;
}

static bool join_refused_for_good(enum elv_reason reason)
{
    return reason == ELV_REASON_WIRE_VERSION || reason == ELV_REASON_SOFTWARE_OLD ||
           reason == ELV_REASON_NO_CODEC || reason == ELV_REASON_MODEL_TOO_BIG;
}

/* Tickets. */

void elv_session_poll(struct elv_client *c, bool at_once)
{
    c->poll_us = at_once || c->now > c->poll_min_us ? c->now : c->poll_min_us;
}

/* When to ask next: not before the server said, and not all devices at once. */
static void pace(struct elv_client *c, uint32_t poll_ms)
{
    const elv_time_us least = us(poll_ms) > POLL_MIN_US ? us(poll_ms) : POLL_MIN_US;
    c->poll_min_us = c->now + least + elv_jitter(&c->rng, least / 4);
    c->poll_us = c->poll_min_us;
    if (c->control.observation != 0 && c->notified && c->poll_us < c->now + OBSERVE_REFRESH_US)
        c->poll_us = c->now + OBSERVE_REFRESH_US + elv_jitter(&c->rng, OBSERVE_REFRESH_US / 4);
}

static void on_work_offered(struct elv_client *c, const struct elv_ticket *t)
{
    const bool open = elv_assignment_open(c);
    if (open && t->assignment < c->ticket.assignment)
        return; /* this ticket was overtaken by a newer one */
    if (open && t->assignment == c->ticket.assignment) {
        elv_assignment_renew(c, t);
        return;
    }
    if (c->phase == ELV_CLIENT_COMMITTING || c->stopping)
        return; /* one after the other */
    if (open)
        elv_assignment_drop(c);
    if (t->assignment > c->decided && c->phase == ELV_CLIENT_IDLE)
        elv_assignment_begin(c, t);
}

/* Nothing to do any more. A ticket asked for before this work was offered may be older than that
 * offer, which came as a notification; then the next one tells. */
static void on_wait(struct elv_client *c, elv_time_us asked)
{
    if (elv_assignment_open(c) && c->phase != ELV_CLIENT_COMMITTING && asked > c->begun_us)
        elv_assignment_drop(c);
}

/* `asked`: when the server was asked for it; ELV_NEVER: it told by itself. */
static bool on_ticket(struct elv_client *c, struct elv_bytes body, elv_time_us asked)
{
    struct elv_ticket t;
    if (elv_ticket_decode(body, &t) != ELV_OK) {
        c->stats.malformed++;
        return false;
    }
    pace(c, t.poll_ms);
    if (t.what == ELV_WHAT_STOP) {
        end(c, ELV_CLIENT_OVER, ELV_REASON_NONE);
        return true;
    }
    if (memcmp(t.manifest, c->manifest_digest, sizeof t.manifest) != 0) {
        read_again(c);
        return true;
    }
    c->n_rereads = 0;
    elv_transfer_grant(&c->transfer, t.window);
    if (t.what != ELV_WHAT_WAIT)
        on_work_offered(c, &t);
    else
        on_wait(c, asked);
    if (t.newest != 0 && c->decided >= c->residual.saved.assignment) /* else it may come again */
        elv_residual_heard(&c->residual, t.newest);
    return true;
}

static bool on_ticket_answer(struct elv_client *c, uint32_t id, struct elv_bytes body)
{
    const elv_time_us asked = c->control.sent_us;
    if (c->cfg.observe) {
        if (c->control.observation != id)
            elv_control_forget(&c->control, c->control.observation);
        c->control.observation = id;
    }
    return on_ticket(c, body, asked);
}

/* Answers. */

static bool on_verdict(struct elv_client *c, struct elv_bytes body)
{
    struct elv_verdict v;
    if (elv_verdict_decode(body, &v) == ELV_OK && elv_assignment_verdict(c, &v))
        return true;
    c->stats.malformed++;
    return false;
}

static bool on_success(struct elv_client *c, enum elv_op op, uint32_t id, struct elv_bytes body)
{
    switch (op) {
    case ELV_OP_MANIFEST:
        return on_manifest(c, body);
    case ELV_OP_JOIN:
        return on_joined(c, body);
    case ELV_OP_TICKET:
        return on_ticket_answer(c, id, body);
    case ELV_OP_COMMIT:
        return on_verdict(c, body);
    default:
        end(c, c->exit_code, c->exit_reason); /* it has left */
        return true;
    }
}

enum elv_reason elv_session_refusal(struct elv_client *c, const struct elv_response *r,
                                    elv_time_us *wait)
{
    struct elv_refusal f = {0};
    if (elv_refusal_decode(r->body, &f) != ELV_OK)
        f = (struct elv_refusal){0};
    c->stats.refused[(uint32_t)f.reason < ELV_CLIENT_REASONS ? f.reason : 0]++;
    *wait = us(f.retry_ms);
    if (*wait == 0 && r->code == ELV_CODE_UNAVAILABLE)
        *wait = (elv_time_us)r->max_age_s * 1000 * MS;
    return f.reason;
}

bool elv_session_heed(struct elv_client *c, enum elv_reason reason)
{
    switch (reason) {
    case ELV_REASON_REVOKED:
        end(c, ELV_CLIENT_REFUSED, reason);
        return true;
    case ELV_REASON_JOB_OVER:
        end(c, ELV_CLIENT_OVER, reason);
        return true;
    case ELV_REASON_NOT_JOINED:
        c->joined = false;
        return true;
    case ELV_REASON_MANIFEST_OLD:
        read_again(c);
        return true;
    default:
        return false;
    }
}

static void on_refused(struct elv_client *c, enum elv_op op, const struct elv_response *r)
{
    elv_time_us wait;
    const enum elv_reason reason = elv_session_refusal(c, r, &wait);
    elv_control_failed(&c->control, c->now, wait, &c->rng);
    if (op == ELV_OP_LEAVE) {
        end(c, c->exit_code, c->exit_reason);
    } else if (op == ELV_OP_JOIN && (c->unfit || join_refused_for_good(reason))) {
        end(c, ELV_CLIENT_REFUSED, c->unfit ? ELV_REASON_MODEL_TOO_BIG : reason);
    } else if (!elv_session_heed(c, reason) && op == ELV_OP_COMMIT && r->code >> 5 == 4 &&
               wait == 0) {
        c->stats.superseded++;
        elv_control_succeeded(&c->control); /* a decision, too */
        elv_assignment_decided(c, false);
    }
}

static void on_control(struct elv_client *c, const struct elv_response *r)
{
    const enum elv_op op = c->control.op;
    const uint32_t id = c->control.id, n_failures = c->control.n_failures;
    if (op == ELV_OP_TICKET &&
        !c->transfer.flow.rtt.measured) /* a repeat can only make it longer */
        elv_rtt_sample(&c->transfer.flow.rtt, c->now - c->control.sent_us);
    if (!elv_code_is_success(r->code)) {
        on_refused(c, op, r);
        return;
    }
    elv_control_succeeded(&c->control);
    if (on_success(c, op, id, r->body))
        return;
    c->control.n_failures = n_failures;
    elv_control_failed(&c->control, c->now, 0, &c->rng);
}

void elv_session_answer(struct elv_client *c, uint32_t id, const struct elv_response *r)
{
    if (id != 0 && id == c->control.id)
        on_control(c, r);
    else if (id == 0 || id != c->control.observation)
        return; /* of a request given up: nothing to learn */
    else if (elv_code_is_success(r->code)) {
        c->notified = true;
        on_ticket(c, r->body, ELV_NEVER);
    } else {
        c->control.observation = 0; /* a refusal ends it: RFC 7641, section 3.2 */
        elv_session_poll(c, false);
    }
}

/* The server does not know this device's key: for good, unless it was known before. */
static bool stranger(struct elv_client *c, enum elv_err err)
{
    c->n_auth = err == ELV_ERR_AUTH && c->stats.joins == 0 ? c->n_auth + 1 : 0;
    return c->n_auth >= AUTH_MAX;
}

void elv_session_unanswered(struct elv_client *c, uint32_t id, enum elv_err err)
{
    if (id != 0 && id == c->control.observation) {
        c->control.observation = 0;
        elv_session_poll(c, false);
    }
    if (err == ELV_ERR_CANCELLED && elv_transfer_knows(&c->transfer, id))
        elv_transfer_pause(&c->transfer, c->now); /* what was in flight goes over the new link */
    if (id == 0 || id != c->control.id)
        return;                     /* else chunks have timers of their own */
    if (err == ELV_ERR_CANCELLED) { /* nobody failed */
        elv_control_moved(&c->control, c->now);
        return;
    }
    elv_control_failed(&c->control, c->now, 0, &c->rng);
    c->renew = true;
    if (stranger(c, err))
        end(c, ELV_CLIENT_REFUSED, ELV_REASON_REVOKED);
    else if (c->unfit && c->control.n_failures >= TELL_MAX)
        end(c, ELV_CLIENT_REFUSED, ELV_REASON_MODEL_TOO_BIG);
    else if (c->phase == ELV_CLIENT_LEAVING)
        end(c, c->exit_code, c->exit_reason);
    else if (c->stopping)
        end(c, ELV_CLIENT_OVER, ELV_REASON_NONE);
}

/* Asking. */

static enum elv_op wanted(const struct elv_client *c)
{
    if (c->phase == ELV_CLIENT_ENDED)
        return ELV_OP_NONE;
    if (c->phase == ELV_CLIENT_LEAVING)
        return ELV_OP_LEAVE;
    if (!c->prepared) /* planning takes the memory that work still holds */
        return c->work.id == 0 ? ELV_OP_MANIFEST : ELV_OP_NONE;
    if (c->persist.restore_due || c->resuming)
        return ELV_OP_NONE;
    if (c->unfit || !c->joined)
        return ELV_OP_JOIN;
    if (c->phase == ELV_CLIENT_COMMITTING)
        return ELV_OP_COMMIT;
    return c->stopping ? ELV_OP_NONE : ELV_OP_TICKET;
}

static elv_time_us due(const struct elv_client *c, enum elv_op op)
{
    const elv_time_us retry = c->control.retry_us;
    return op == ELV_OP_TICKET && c->poll_us > retry ? c->poll_us : retry;
}

/* What the trainer counted may be nonsense; then that is what is told. */
static enum elv_err encode_commit(struct elv_client *c, size_t *len)
{
    if (elv_commit_encode(&c->commit, c->memory.message, ELV_MSG_MAX, len) == ELV_OK)
        return ELV_OK;
    elv_assignment_give_up(c, ELV_STATUS_FAILED, ELV_REASON_TRAINER);
    return elv_commit_encode(&c->commit, c->memory.message, ELV_MSG_MAX, len);
}

static void ask(struct elv_client *c, struct elv_actions *out, enum elv_op op)
{
    struct elv_request r = {.op = op};
    size_t len = 0;
    enum elv_err err = ELV_OK;
    if (op == ELV_OP_JOIN)
        err = encode_join(c, &len);
    if (op == ELV_OP_COMMIT) {
        r.assignment = c->ticket.assignment;
        err = encode_commit(c, &len);
    }
    ELV_ASSERT(err == ELV_OK);
    r.observe = op == ELV_OP_TICKET && c->cfg.observe;
    if (len > 0)
        r.body = (struct elv_bytes){c->memory.message, len};
    elv_control_sent(&c->control, op, elv_session_send(c, out, r, true), c->now);
}

static void relink(struct elv_client *c, struct elv_actions *out)
{
    emit(out, (struct elv_action){.kind = ELV_DO_RELINK});
    c->stats.relinks++;
    c->renew = false;
    elv_link_renewed(&c->link, c->now, elv_rto(&c->transfer.flow.rtt), &c->rng);
    elv_transfer_relink(&c->transfer);
    elv_control_drop(&c->control); /* and it is asked again at once */
}

static void emit_forgets(struct elv_client *c, struct elv_actions *out)
{
    for (uint32_t i = 0; i < c->control.n_forget; i++)
        emit(out, (struct elv_action){.kind = ELV_DO_FORGET, .id = c->control.forget[i]});
    c->control.n_forget = 0;
}

void elv_session_advance(struct elv_client *c, struct elv_actions *out)
{
    const enum elv_op op = wanted(c);
    if (c->control.op != op)
        elv_control_drop(&c->control);
    if (c->phase != ELV_CLIENT_ENDED && c->now >= elv_link_deadline(&c->link))
        relink(c, out);
    if (c->control.op == ELV_OP_NONE && op != ELV_OP_NONE && c->now >= due(c, op)) {
        if (c->renew)
            relink(c, out);
        ask(c, out, op);
    }
    emit_forgets(c, out);
}

elv_time_us elv_session_deadline(const struct elv_client *c)
{
    elv_time_us at = elv_link_deadline(&c->link);
    const enum elv_op op = wanted(c);
    if (c->control.op == ELV_OP_NONE && op != ELV_OP_NONE && due(c, op) < at)
        at = due(c, op);
    if (c->stopping && c->stop_us < at)
        at = c->stop_us;
    return at;
}
