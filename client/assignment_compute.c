/* SPDX-License-Identifier: Apache-2.0 */
/* client/assignment_compute.c - the heavy work of an assignment: what each piece is given, and what
 * its end means. */
#include "client/assignment_internal.h"

#include <float.h>
#include <string.h>

#include "client/session_internal.h"
#include "common/assert.h"

static void fail(struct elv_client *c, enum elv_reason reason)
{
    elv_assignment_give_up(c, ELV_STATUS_FAILED, reason);
}

static struct elv_task task_of(const struct elv_client *c)
{
    return (struct elv_task){.seed = c->manifest.seed,
                             .client = c->number,
                             .assignment = c->ticket.assignment,
                             .round = c->ticket.round,
                             .base_version = c->ticket.version,
                             .local_epochs = c->ticket.local_epochs,
                             .local_steps = c->ticket.local_steps,
                             .batch = c->ticket.batch,
                             .rate = c->ticket.learning_rate,
                             .momentum = c->manifest.momentum,
                             .decay = c->manifest.weight_decay,
                             .prox_mu = c->manifest.proximal,
                             .arithmetic = c->manifest.arithmetic};
}

static void prepare_train(struct elv_client *c, bool evaluate)
{
    const bool resumed = !evaluate && c->train.resumed;
    c->outcome.finished = false;
    c->train = (struct elv_client_train){
        .trainer = &c->cfg.trainer,
        .task = task_of(c),
        .weights = c->memory.fresh,
        .steps_max = evaluate || c->cfg.duty == 100 ? 0 : ELV_DUTY_STEPS,
        .resumed = resumed,
        .outcome = &c->outcome,
    };
    c->train_begun = false;
    c->train_left = c->train.steps_max;
}

/* Whether this update takes up what earlier ones left over, and leaves something itself. */
static bool feeds_back(const struct elv_client *c)
{
    return c->residual.cfg.kind != ELV_FEEDBACK_NONE && elv_residual_helps(&c->ticket.up);
}

static void prepare_delta(struct elv_client *c)
{
    const struct elv_codec *codec = elv_codec_by_id(c->ticket.up.id);
    c->residual.saved.sparse = elv_codec_is_sparse(codec);
    const struct elv_delta_cfg cfg = {
        .model = &c->model,
        .pack = &c->pack,
        .trained = c->memory.fresh,
        .base = c->memory.base,
        .first = c->memory.first,
        .first_cap = c->memory.first_cap,
        .codec = c->ticket.up.id,
        .arg = {.seed = elv_delta_seed(c->manifest.seed, c->number, c->ticket.assignment),
                .param = c->ticket.up.param},
        .plan = codec->plan != NULL ? c->memory.plan : NULL,
        .residual = feeds_back(c) ? &c->residual : NULL,
        .bound = c->manifest.bound,
        .clip = c->manifest.clip,
        .nonce = c->commit.nonce,
    };
    if (c->resuming)
        elv_delta_resume(&c->delta, &cfg);
    else
        elv_delta_begin(&c->delta, &cfg);
}

void elv_assignment_start(struct elv_client *c, struct elv_actions *out, uint32_t kind)
{
    if (kind == ELV_CLIENT_EVALUATE || kind == ELV_CLIENT_TRAIN)
        prepare_train(c, kind == ELV_CLIENT_EVALUATE);
    if (kind == ELV_CLIENT_ENCODE)
        prepare_delta(c);
    if (kind == ELV_CLIENT_SETTLE)
        elv_settle_begin(&c->settling, &c->residual, &c->delta);
    const uint32_t id = c->last_id = elv_session_next_id(c);
    elv_work_begin(&c->work, id, kind, c->now);
    ELV_ASSERT(out->n < out->cap);
    out->at[out->n++] = (struct elv_action){
        .kind = ELV_DO_COMPUTE, .id = id, .compute = {.kind = kind, .input = &c->train}};
}

enum elv_err elv_assignment_restore_run(struct elv_client *c, uint32_t budget)
{
    const struct elv_residual *r = &c->residual;
    const bool has_vector = r->saved.vector != ELV_VECTOR_NONE;
    const bool wanted = r->cfg.kind != ELV_FEEDBACK_NONE && !r->saved.held && !has_vector;
    const struct elv_restore_into into = {.model = &c->model,
                                          .base = c->memory.base,
                                          .fresh = has_vector ? NULL : c->memory.fresh,
                                          .manifest = c->manifest_digest,
                                          .residual = wanted ? r : NULL};
    return elv_persist_restore(&c->persist, &into, budget);
}

/* An update of an earlier life is in `fresh`. Whether its chunks are still those that its commit
 * speaks of is seen by making them. */
static void take_up(struct elv_client *c)
{
    const struct elv_persist_work *w = &c->persist.found_work;
    if (!elv_assignment_can_encode(c, &w->up))
        return;
    c->ticket = (struct elv_ticket){.what = ELV_WHAT_TRAIN,
                                    .assignment = w->assignment,
                                    .round = w->round,
                                    .version = w->version,
                                    .up = w->up};
    c->commit = w->commit;
    c->begun_us = c->now;
    c->due_us = ELV_NEVER;
    c->resuming = true;
    c->phase = ELV_CLIENT_ENCODING;
}

static void after_restore(struct elv_client *c)
{
    const struct elv_persist *p = &c->persist;
    if (p->has_base) {
        elv_base_restore(&c->base, p->found_base.version, p->found_base.digest);
        c->stats.restored++;
    }
    if (p->has_left) {
        c->residual.saved.held = p->found_left.held;
        c->residual.saved.sent = p->found_left.sent;
    }
    if (p->has_work && c->phase == ELV_CLIENT_IDLE)
        take_up(c);
}

/* The commit is sent before any chunk: the answer is the decision, or what is missing. */
static void after_resume(struct elv_client *c)
{
    c->resuming = false;
    c->phase = ELV_CLIENT_IDLE;
    if (c->delta.n_chunks != c->commit.n_chunks ||
        memcmp(c->delta.digest, c->commit.digest, sizeof c->commit.digest) != 0)
        return; /* encoded by other software, or damaged: it never was */
    const struct elv_persist_work *w = &c->persist.found_work;
    if (w->feeds_back && feeds_back(c)) {
        elv_residual_made(&c->residual, w->assignment, w->version, w->learnt);
        c->residual.saved.sparse = w->sparse;
    }
    elv_persist_taken_up(&c->persist);
    c->stats.resumed++;
    elv_transfer_begin(&c->transfer, c->memory.bitmap, c->delta.n_chunks);
    c->phase = ELV_CLIENT_COMMITTING;
}

static void after_replay(struct elv_client *c)
{
    c->transfer.have = c->persist.have;
    c->stats.replayed += c->persist.n_replayed;
}

static void keep_base(struct elv_client *c)
{
    struct elv_persist_base b = {.version = c->base.version, .n_params = c->model.n_params};
    memcpy(b.digest, c->base.digest, sizeof b.digest);
    elv_persist_base(&c->persist, &b, c->memory.base);
}

static void keep_work(struct elv_client *c)
{
    struct elv_persist_work w = {.assignment = c->ticket.assignment,
                                 .round = c->ticket.round,
                                 .version = c->ticket.version,
                                 .n_shared = c->model.n_shared,
                                 .up = c->ticket.up,
                                 .feeds_back = feeds_back(c),
                                 .sparse = c->residual.saved.sparse,
                                 .learnt = c->delta.learnt,
                                 .commit = c->commit};
    memcpy(w.manifest, c->manifest_digest, sizeof w.manifest);
    elv_persist_work(&c->persist, &w, c->memory.fresh);
}

static void after_load(struct elv_client *c)
{
    if (c->base.way != ELV_BASE_HELD)
        keep_base(c);
    const bool evaluate = c->ticket.what == ELV_WHAT_EVALUATE || c->manifest.holdout > 0.0f;
    c->phase = evaluate ? ELV_CLIENT_EVALUATING : ELV_CLIENT_TRAINING;
    c->train.resumed = false;
}

static void take_user_sums(struct elv_client *c)
{
    const struct elv_train_result *r = &c->outcome.result;
    c->commit.n_user = r->n_user < ELV_USER_SUMS_MAX ? r->n_user : ELV_USER_SUMS_MAX;
    for (uint32_t i = 0; i < c->commit.n_user; i++)
        c->commit.user[i] = r->user[i];
}

static void after_evaluate(struct elv_client *c)
{
    c->stats.evaluations++;
    c->commit.eval = c->outcome.result.eval;
    if (c->ticket.what == ELV_WHAT_EVALUATE) {
        take_user_sums(c);
        c->phase = ELV_CLIENT_COMMITTING;
        return;
    }
    c->phase = ELV_CLIENT_TRAINING;
    c->train.resumed = false;
}

static void after_train(struct elv_client *c)
{
    const struct elv_train_result *r = &c->outcome.result;
    if (!c->outcome.finished) {
        c->train.resumed = true;
        return;
    }
    if (!(r->loss_sum >= -DBL_MAX && r->loss_sum <= DBL_MAX) || r->samples == 0) {
        fail(c, ELV_REASON_TRAINER);
        return;
    }
    c->stats.trainings++;
    c->commit.samples = r->samples;
    c->commit.seen = r->seen;
    c->commit.steps = r->steps;
    c->commit.loss_sum = r->loss_sum;
    const elv_time_us ms = c->train_us / 1000;
    c->commit.compute_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    take_user_sums(c);
    c->phase = ELV_CLIENT_ENCODING;
}

static void after_encode(struct elv_client *c)
{
    c->commit.n_chunks = c->delta.n_chunks;
    for (uint32_t i = 0; i < ELV_BODY_DIGEST_LEN; i++)
        c->commit.digest[i] = c->delta.digest[i];
    if (feeds_back(c))
        elv_residual_made(&c->residual, c->ticket.assignment, c->ticket.version, c->delta.learnt);
    if (c->model.n_shared < c->model.n_params)
        keep_base(c); /* what stays on the device has learnt */
    keep_work(c);
    elv_transfer_begin(&c->transfer, c->memory.bitmap, c->delta.n_chunks);
    c->phase = ELV_CLIENT_UPLOADING;
}

static void work_done(struct elv_client *c)
{
    switch (c->phase) {
    case ELV_CLIENT_FETCHING:
        after_replay(c);
        break;
    case ELV_CLIENT_LOADING:
        after_load(c);
        break;
    case ELV_CLIENT_EVALUATING:
        after_evaluate(c);
        break;
    case ELV_CLIENT_TRAINING:
        after_train(c);
        break;
    default:
        if (c->resuming)
            after_resume(c);
        else
            after_encode(c);
    }
}

static void evaluation_failed(struct elv_client *c, enum elv_err err)
{
    const bool nothing = err == ELV_ERR_MISSING || err == ELV_ERR_UNSUPPORTED;
    if (!nothing)
        fail(c, ELV_REASON_TRAINER);
    else if (c->ticket.what == ELV_WHAT_EVALUATE)
        elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA);
    else
        c->phase = ELV_CLIENT_TRAINING; /* evaluating before training is a courtesy */
}

static void training_failed(struct elv_client *c, enum elv_err err)
{
    if (err == ELV_ERR_MISSING)
        elv_assignment_give_up(c, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA);
    else
        fail(c, err == ELV_ERR_SPACE ? ELV_REASON_MODEL_TOO_BIG : ELV_REASON_TRAINER);
}

static void encoding_failed(struct elv_client *c, enum elv_err err)
{
    if (err == ELV_ERR_RANGE)
        fail(c, ELV_REASON_OUT_OF_RANGE);
    else /* weights that are not finite are the trainer's doing */
        fail(c, err == ELV_ERR_FORMAT ? ELV_REASON_TRAINER : ELV_REASON_CODEC);
}

static void give_up_resuming(struct elv_client *c)
{
    c->resuming = false;
    c->phase = ELV_CLIENT_IDLE;
}

static void work_failed(struct elv_client *c, enum elv_err err)
{
    switch (c->phase) {
    case ELV_CLIENT_FETCHING: /* what could not be read back is fetched */
        after_replay(c);
        break;
    case ELV_CLIENT_LOADING:
        elv_persist_spoilt(&c->persist);
        elv_assignment_fetch_again(c, 0);
        break;
    case ELV_CLIENT_EVALUATING:
        evaluation_failed(c, err);
        break;
    case ELV_CLIENT_TRAINING:
        training_failed(c, err);
        break;
    default:
        if (c->resuming)
            give_up_resuming(c);
        else
            encoding_failed(c, err);
    }
}

/* The work's memory is the node's again. */
static void clean_up(struct elv_client *c, uint32_t kind)
{
    if (kind == ELV_CLIENT_LOAD)
        elv_base_abort(&c->base);
    if (kind == ELV_CLIENT_TRAIN || kind == ELV_CLIENT_EVALUATE)
        c->cfg.trainer.abort(c->cfg.trainer.self);
}

void elv_assignment_computed(struct elv_client *c, enum elv_err err)
{
    const uint32_t kind = c->work.kind;
    const elv_time_us took = elv_work_end(&c->work, c->now);
    if (kind == ELV_CLIENT_TRAIN)
        c->train_us += took;
    if (kind == ELV_CLIENT_RESTORE)
        c->persist.restore_due = false;
    if (kind == ELV_CLIENT_SETTLE) {
        c->left_due = true; /* it has left everything in order, whatever became of it */
        return;
    }
    if (c->work.cancel) {
        c->resuming = false;
        c->stats.cancelled++;
        clean_up(c, kind);
    } else if (err != ELV_OK) {
        clean_up(c, kind);
        work_failed(c, err);
    } else if (kind == ELV_CLIENT_RESTORE) {
        after_restore(c);
    } else {
        work_done(c);
    }
}
