/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "server/core.h"

enum {
    VERIFY_PIECES = 4096, /* chunks and windows: a batch ends there, so that its first commits need
                             not wait */
    UNMIXED_MAX = 4,      /* times that a version is tried to be made */
};

static void start(struct elv_server *s, struct elv_lane *lane, enum elv_server_work work,
                  const void *input, struct elv_actions *out)
{
    lane->work = work;
    lane->id = elv_core_compute(s, out, work, input);
}

static void start_verify(struct elv_server *s, struct elv_actions *out)
{
    struct elv_verify *v = &s->verify;
    uint32_t n_pieces = 0;
    v->n = 0;
    while (v->n < ELV_VERIFY_MAX && n_pieces < VERIFY_PIECES) {
        struct elv_upload *up = elv_upload_pop(&s->uploads, &s->uploads.waiting);
        if (up == NULL)
            break;
        up->state = ELV_UPLOAD_VERIFY;
        n_pieces += up->commit.n_chunks + v->n_params / ELV_WINDOW;
        v->items[v->n++] = (struct elv_verify_item){.up = up};
    }
    elv_verify_start(v);
    s->lane.verified_last = true;
    start(s, &s->lane, ELV_WORK_VERIFY, v, out);
}

static void start_fold(struct elv_server *s, struct elv_actions *out)
{
    struct elv_fold *f = &s->fold;
    f->n = 0;
    while (f->n < ELV_FOLD_MAX) {
        struct elv_upload *up = elv_upload_pop(&s->uploads, &s->uploads.counted);
        if (up == NULL)
            break;
        up->state = ELV_UPLOAD_FOLD;
        f->ups[f->n++] = up;
    }
    elv_fold_start(f);
    s->lane.verified_last = false;
    start(s, &s->lane, ELV_WORK_FOLD, f, out);
}

static struct elv_refold_item item_of(uint32_t client, const struct elv_rec_decision *d)
{
    return (struct elv_refold_item){.client = client,
                                    .assignment = d->assignment,
                                    .nonce = d->nonce,
                                    .from = d->from,
                                    .weight = d->weight,
                                    .left = d->n_chunks};
}

static void list_accepted(struct elv_server *s)
{
    struct elv_refold *r = &s->refold;
    r->n = 0;
    for (uint32_t i = 0; i < s->roster.n && !s->round.stream; i++) {
        const struct elv_row *row = &s->roster.rows[s->roster.order[i]];
        if (elv_core_counts(s, row))
            r->items[r->n++] = item_of(row->client, &row->last);
    }
    for (uint32_t i = 0; i < s->round.n_counted; i++) {
        const struct elv_counted *c = &s->counted[i];
        if (c->d.assignment != 0)
            r->items[r->n++] = item_of(s->roster.rows[c->row].client, &c->d);
    }
}

/* Everything accepted so far, also what waits to be folded: one pass covers all. */
static void start_refold(struct elv_server *s, struct elv_actions *out)
{
    struct elv_upload *up;
    while ((up = elv_upload_pop(&s->uploads, &s->uploads.counted)) != NULL)
        elv_upload_free(&s->uploads, up);
    list_accepted(s);
    s->must_refold = false;
    elv_refold_start(&s->refold, s->uploads.log_len);
    start(s, &s->lane, ELV_WORK_REFOLD, &s->refold, out);
}

/* The versions that the updates were made from, and the weight that each has. */
static void list_bases(struct elv_server *s)
{
    struct elv_make *m = &s->make;
    for (uint32_t i = 0; i < s->kept.n; i++) {
        const struct elv_kept *v = &s->kept.at[i];
        uint64_t weight = 0;
        for (uint32_t k = 0; k < s->round.n_counted; k++)
            if (s->counted[k].d.assignment != 0 && s->counted[k].d.version == v->version)
                weight += s->counted[k].d.weight;
        if (weight > 0)
            m->bases[m->n_bases++] = (struct elv_make_base){.kept = *v, .weight = weight};
    }
}

static void start_make(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_scales scales = elv_core_scales(s);
    const struct elv_sync_scale scale = elv_core_scale(s);
    const struct elv_tally tally = elv_core_tally(s);
    s->make = (struct elv_make){
        .job = s->job,
        .rule = s->policies.rule,
        .kernels = s->cfg.kernels,
        .squeeze = s->job->deflate ? s->cfg.squeeze : NULL,
        .cast = &s->cast,
        .disk = &s->disk,
        .value_bits = scales.value_bits,
        .version = s->head.version + 1,
        .gain = elv_tally_gain(&tally, &scales, &scale, elv_core_fleet(s)),
        .mean_gain = elv_mean_gain(&scales, tally.weight),
    };
    if (scale.mixes && s->round.stream)
        list_bases(s);
    elv_make_start(&s->make);
    s->round.state = ELV_ROUND_MAKING;
    start(s, &s->lane, ELV_WORK_MAKE, &s->make, out);
}

/* All that counts is folded and durable, and nobody reads what the next version overwrites. With a
 * target, the version before is judged first: it may be the last. */
static bool may_make(const struct elv_server *s)
{
    const bool judged = s->eval_on == NULL && !s->eval_due;
    return s->round.state == ELV_ROUND_CLOSING && s->round.n_soft == 0 && !s->must_refold &&
           (s->uploads.waiting.n == 0 || s->round.stream) && s->uploads.counted.n == 0 &&
           elv_kept_has_room(&s->kept) &&
           (judged || (s->job->target_accuracy <= 0.0 && s->eval_on != s->cast.next));
}

static void start_evaluation(struct elv_server *s, struct elv_actions *out)
{
    s->eval_due = false;
    s->eval_version = s->head.version;
    s->eval_rec = s->cast.rec;
    s->eval_on = s->cast.b;
    s->cfg.scorer->begin(s->cfg.scorer->self, s->eval_on);
    start(s, &s->eval_lane, ELV_WORK_EVALUATE, s->cfg.scorer, out);
}

/* Commits that nothing can be done for: the set is fixed, or the log lost what they speak of. */
static void turn_away(struct elv_server *s, enum elv_reason reason, struct elv_actions *out)
{
    for (uint32_t i = 0; i < ELV_ANSWERS_PER_STEP; i++) {
        struct elv_upload *up = elv_upload_pop(&s->uploads, &s->uploads.waiting);
        if (up == NULL)
            return;
        elv_core_drop_upload(s, up, reason, out);
    }
}

static void schedule_work(struct elv_server *s, struct elv_actions *out)
{
    const bool counting = s->round.state == ELV_ROUND_OPEN || s->round.state == ELV_ROUND_CLOSING;
    const bool verify = s->uploads.waiting.n > 0 && s->round.state == ELV_ROUND_OPEN &&
                        !s->log_lost && elv_core_has_place(s) &&
                        elv_answers_room(&s->answers) >= ELV_ANSWERS_RESERVED;
    if (counting && s->must_refold)
        start_refold(s, out);
    else if (verify && (s->uploads.counted.n == 0 || !s->lane.verified_last))
        start_verify(s, out);
    else if (counting && s->uploads.counted.n > 0)
        start_fold(s, out);
    else if (may_make(s))
        start_make(s, out);
}

enum elv_reason elv_core_turns_away(const struct elv_server *s)
{
    if (elv_core_streams(s)) /* they can wait until the next round is open */
        return elv_core_is_finished(s) ? ELV_REASON_ROUND_CLOSED
               : s->log_lost           ? ELV_REASON_STORAGE
                                       : ELV_REASON_NONE;
    if (s->round.state > ELV_ROUND_OPEN)
        return elv_core_gives_up(s) ? ELV_REASON_STORAGE : ELV_REASON_ROUND_CLOSED;
    return s->log_lost ? ELV_REASON_STORAGE : ELV_REASON_NONE;
}

void elv_core_schedule(struct elv_server *s, struct elv_actions *out)
{
    const enum elv_reason reason = elv_core_turns_away(s);
    if (reason != ELV_REASON_NONE)
        turn_away(s, reason, out);
    if (s->eval_due && s->eval_lane.id == 0)
        start_evaluation(s, out);
    if (s->lane.id == 0 && !elv_core_is_survey(s))
        schedule_work(s, out);
}

static void folded(struct elv_server *s, enum elv_err err)
{
    for (uint32_t i = 0; i < s->fold.n; i++)
        elv_upload_free(&s->uploads, s->fold.ups[i]);
    if (err == ELV_OK)
        return;
    s->must_refold = true; /* the sums are half done */
    s->stats.log_losses++;
}

static void refolded(struct elv_server *s, enum elv_err err)
{
    if (err == ELV_OK)
        return;
    /* What was accepted cannot be read back: the round cannot be saved. */
    s->stats.log_losses++;
    elv_note_add(&s->notes, ELV_NOTE_LOG_LOST, s->now)->round = s->round.seq;
    elv_core_fail_round(s);
}

static void made(struct elv_server *s, enum elv_err err, struct elv_actions *out)
{
    if (err == ELV_OK) {
        s->n_unmixed = 0;
        elv_core_adopt_version(s, out);
        return;
    }
    if (s->make.phase == ELV_MAKE_MIX && err != ELV_ERR_RANGE && ++s->n_unmixed < UNMIXED_MAX) {
        s->must_refold = true; /* the sums are half done; perhaps the file can be read again */
        s->round.state = ELV_ROUND_CLOSING;
        return;
    }
    s->n_unmixed = 0;
    if (s->make.phase == ELV_MAKE_MIX) {
        elv_core_fail_round(s);
        return;
    }
    /* The master model is no longer what it was; the published one is. */
    memcpy(s->cast.w, s->cast.b, (size_t)s->cast.n * sizeof *s->cast.w);
    elv_core_fail_round(s);
}

void elv_core_computed(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    if (ev->id == s->eval_lane.id && ev->id != 0) {
        elv_core_evaluated(s, ev->err, out);
        return;
    }
    if (ev->id != s->lane.id || ev->id == 0)
        return;
    s->lane.id = 0;
    switch (s->lane.work) {
    case ELV_WORK_VERIFY:
        for (uint32_t i = 0; ev->err != ELV_OK && i < s->verify.n; i++)
            s->verify.items[i].lost = true;
        elv_core_verified(s, out);
        break;
    case ELV_WORK_FOLD:
        folded(s, ev->err);
        break;
    case ELV_WORK_REFOLD:
        refolded(s, ev->err);
        break;
    case ELV_WORK_MAKE:
        made(s, ev->err, out);
        break;
    case ELV_WORK_EVALUATE:
        break;
    }
}

enum elv_err elv_core_run(struct elv_server *s, const struct elv_compute *work, uint32_t budget)
{
    switch ((enum elv_server_work)work->kind) {
    case ELV_WORK_VERIFY:
        return elv_verify_run(&s->verify, budget);
    case ELV_WORK_FOLD:
        return elv_fold_run(&s->fold, budget);
    case ELV_WORK_REFOLD:
        return elv_refold_run(&s->refold, budget);
    case ELV_WORK_MAKE:
        return elv_make_run(&s->make, budget);
    case ELV_WORK_EVALUATE:
        return s->cfg.scorer->run(s->cfg.scorer->self, budget);
    }
    return ELV_ERR_ARG;
}
