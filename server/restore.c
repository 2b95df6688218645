/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/safetensors.h"
#include "server/core.h"
#include "server/model_file.h"

struct found { /* what the scans collect */
    struct elv_server *s;
    bool run, round, version;
    struct elv_rec_run run_rec;
    struct elv_rec_clock clock;
    struct elv_rec_round round_rec;
    uint32_t seq;
    uint32_t n_blocks; /* of those whom the open round asked */
    uint64_t counted;  /* updates in the versions so far */
};

static enum elv_err take_meta(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    if (number == ELV_META_RUN) {
        f->run = true;
        return elv_rec_run_decode(value, &f->run_rec);
    }
    if (number == ELV_META_HEAD)
        return elv_rec_head_decode(value, &f->s->head);
    if (number == ELV_META_CLOCK)
        return elv_rec_clock_decode(value, &f->clock);
    return ELV_OK;
}

static uint32_t row_of(struct elv_server *s, uint64_t client)
{
    return client == 0 || client > UINT32_MAX ? ELV_ROW_NONE
                                              : elv_roster_add(&s->roster, (uint32_t)client);
}

static enum elv_err take_client(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct elv_server *s = ((struct found *)ctx)->s;
    struct elv_rec_client rec;
    const enum elv_err err = elv_rec_client_decode(value, &rec);
    const uint32_t i = err == ELV_OK ? row_of(s, number) : ELV_ROW_NONE;
    if (i == ELV_ROW_NONE)
        return err == ELV_OK ? ELV_ERR_FULL : err;
    struct elv_row *row = &s->roster.rows[i];
    row->capped = rec.capped;
    row->boot = rec.boot;
    row->memory = rec.memory;
    row->speed = rec.speed;
    row->samples = rec.samples;
    row->codec = rec.codec;
    elv_roster_set_joined(&s->roster, i, rec.joined);
    return ELV_OK;
}

static enum elv_err take_round(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    f->round = true;
    f->seq = (uint32_t)number;
    const enum elv_err err = elv_rec_round_decode(value, &f->round_rec);
    f->s->round.what = f->round_rec.what;
    f->s->round.stream = f->round_rec.stream;
    return err;
}

/* As a ticket must have it. */
static bool is_a_size(const struct elv_size *size)
{
    return size->batch > 0 && (size->local_epochs == 0) != (size->local_steps == 0);
}

static enum elv_err take_assign(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    struct elv_server *s = f->s;
    uint32_t assignment, n;
    if (!f->round || number >> 24 != f->seq || (number & 0xFFFFFF) >= f->round_rec.n_blocks)
        return ELV_OK; /* of a round that was never opened */
    const enum elv_err err = elv_rec_assign_open(value, &assignment, &n);
    if (err != ELV_OK)
        return err;
    f->n_blocks++;
    for (uint32_t i = 0; i < n; i++) {
        struct elv_rec_assign item;
        elv_rec_assign_at(value, i, &item);
        const uint32_t row = row_of(s, item.client);
        if (row == ELV_ROW_NONE || s->round.n_asked == s->roster.cap)
            return ELV_ERR_FULL;
        if (!is_a_size(&item.size))
            return ELV_ERR_FORMAT;
        s->roster.rows[row].offer =
            (struct elv_offer){.assignment = assignment,
                               .seq = f->seq,
                               .version = f->round_rec.version,
                               .told = f->round_rec.what == ELV_WHAT_EVALUATE,
                               .size = item.size};
        s->round.asked[s->round.n_asked++] =
            (struct elv_candidate){.client = item.client, .row = row};
    }
    return ELV_OK;
}

static void tally(struct elv_server *s, const struct elv_rec_decision *d,
                  const struct elv_sums *sums)
{
    struct elv_round *r = &s->round;
    if (d->decision == ELV_REFUSED) {
        r->n_refused++;
        r->n_discarded += d->reason == ELV_REASON_POLICY;
        return;
    }
    elv_sums_add(&r->sums, sums);
    if (d->status != ELV_STATUS_DONE) {
        r->n_declined++;
        return;
    }
    s->stats.updates_before += r->what == ELV_WHAT_TRAIN;
    r->n_got++;
}

static enum elv_err take_decision(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    struct elv_rec_decision d;
    struct elv_sums sums;
    const enum elv_err err = elv_rec_decision_decode(value, &d, &sums);
    const uint32_t i = err == ELV_OK ? row_of(f->s, number) : ELV_ROW_NONE;
    if (i == ELV_ROW_NONE)
        return err == ELV_OK ? ELV_ERR_FULL : err;
    f->s->roster.rows[i].last = d;
    f->s->roster.rows[i].last_durable = true;
    /* What counts in a stream is in a table of its own: the last decision is not all. */
    if (f->round && d.seq == f->seq && !(f->round_rec.stream && d.weight > 0))
        tally(f->s, &d, &sums);
    return ELV_OK;
}

/* A version that somebody trains or trained from; what it is, its own record says later. */
static struct elv_kept *kept_for(struct elv_server *s, uint32_t version)
{
    struct elv_kepts *k = &s->kept;
    struct elv_kept *v = elv_kept_find(k, version);
    const bool full = k->n + 1 >= ELV_KEPT_CAP && version != s->head.version;
    if (v != NULL || full || version > s->head.version)
        return v;
    uint32_t i = k->n++;
    for (; i > 0 && k->at[i - 1].version > version; i--)
        k->at[i] = k->at[i - 1];
    k->at[i] = (struct elv_kept){.version = version};
    return &k->at[i];
}

static enum elv_err take_counted(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    struct elv_server *s = f->s;
    struct elv_rec_decision d;
    struct elv_sums sums;
    uint32_t client = 0;
    if (!f->round || !f->round_rec.stream)
        return ELV_OK;
    const enum elv_err err = elv_rec_counted_decode(value, &client, &d, &sums);
    if (err != ELV_OK || d.seq != f->seq)
        return err;
    const uint32_t row = row_of(s, client);
    if (row == ELV_ROW_NONE || number >= s->roster.cap)
        return ELV_ERR_FULL;
    while (s->round.n_counted < number)
        s->counted[s->round.n_counted++] = (struct elv_counted){.row = row};
    s->counted[s->round.n_counted++] = (struct elv_counted){.row = row, .d = d};
    struct elv_kept *v = kept_for(s, d.version);
    if (v)
        v->n_used++;
    tally(s, &d, &sums);
    return ELV_OK;
}

/* It stands unless it was decided, or its client has left. */
static enum elv_err take_offer(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    struct elv_server *s = f->s;
    struct elv_rec_offer rec;
    const enum elv_err err = elv_rec_offer_decode(value, &rec);
    const uint32_t i = err == ELV_OK ? row_of(s, number) : ELV_ROW_NONE;
    if (i == ELV_ROW_NONE)
        return err == ELV_OK ? ELV_ERR_FULL : err;
    if (!is_a_size(&rec.size))
        return ELV_ERR_FORMAT;
    struct elv_row *row = &s->roster.rows[i];
    const bool decided = row->last.assignment >= rec.assignment;
    if (!elv_core_streams(s) || s->head.log == 0 || rec.assignment < s->head.void_below ||
        decided || !row->joined)
        return ELV_OK;
    struct elv_kept *v = kept_for(s, rec.version);
    if (v == NULL)
        return ELV_OK;
    row->offer = (struct elv_offer){.assignment = rec.assignment,
                                    .seq = rec.seq,
                                    .version = rec.version,
                                    .own = true,
                                    .granted = (elv_time_us)rec.granted_us,
                                    .size = rec.size};
    row->waiting = true;
    s->round.n_waiting++;
    v->n_offers++;
    return ELV_OK;
}

static double rate_of(const struct elv_server *s, uint32_t version)
{
    double rate = (double)s->job->learning_rate;
    for (uint32_t i = 0; i < version; i++)
        rate *= (double)s->job->learning_rate_decay;
    return rate;
}

/* What clients are told of a version that is kept; of the newest always. */
static void describe(struct elv_server *s, uint32_t version, const struct elv_rec_version *rec,
                     uint64_t counted)
{
    struct elv_kept *v =
        version == s->head.version ? kept_for(s, version) : elv_kept_find(&s->kept, version);
    if (v == NULL)
        return;
    v->counted = counted;
    v->rate = rate_of(s, version);
    memcpy(v->model, rec->model, sizeof v->model);
    v->full = rec->full;
}

static enum elv_err take_version(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    struct elv_broadcast *c = &f->s->cast;
    struct elv_rec_version rec;
    if (number > f->s->head.version)
        return ELV_OK;
    const enum elv_err err = elv_rec_version_decode(value, &rec);
    if (err != ELV_OK)
        return err;
    f->s->stats.updates_before += rec.n_used;
    f->counted += rec.n_used;
    describe(f->s, (uint32_t)number, &rec, f->counted);
    if (number + ELV_STEPS_MAX <= f->s->head.version)
        return ELV_OK;
    if (number == f->s->head.version) {
        c->rec = rec;
        f->version = true;
    }
    struct elv_step *step = number > 0 ? elv_broadcast_step_slot(c, (uint32_t)number) : NULL;
    if (step) { /* newer ones replace those that no longer fit */
        step->ref = rec.step;
        step->version = (uint32_t)number;
    }
    return ELV_OK;
}

static enum elv_err read_all(struct elv_server *s, enum elv_file file, uint32_t version,
                             uint64_t offset, void *out, size_t len)
{
    size_t got = 0;
    const enum elv_err err = s->disk.read_file(s->disk.self, file, version, offset, out, len, &got);
    if (err != ELV_OK)
        return err;
    return got == len ? ELV_OK : ELV_ERR_FORMAT;
}

static enum elv_err read_vector(struct elv_server *s, enum elv_file file, uint32_t version,
                                float *v)
{
    struct elv_safetensors st;
    size_t len = 0;
    enum elv_err err = read_all(s, file, version, 0, s->model_head, 8);
    if (err == ELV_OK)
        err = elv_safetensors_head_len((struct elv_bytes){s->model_head, 8}, &len);
    if (err == ELV_OK && len > ELV_MODEL_HEAD_CAP)
        err = ELV_ERR_FORMAT;
    if (err == ELV_OK)
        err = read_all(s, file, version, 0, s->model_head, len);
    if (err == ELV_OK)
        err = elv_safetensors_read(&s->job->model, (struct elv_bytes){s->model_head, len}, &st);
    if (err == ELV_OK && st.file_len != len + (uint64_t)s->cast.n * sizeof *v)
        err = ELV_ERR_FORMAT; /* not one of ours: those hold the shared coordinates in order */
    if (err == ELV_OK)
        err = read_all(s, file, version, len, v, (size_t)s->cast.n * sizeof *v);
    return err;
}

static void read_step(struct elv_server *s, struct elv_step *step)
{
    if (step->version == 0)
        return;
    const enum elv_err err = s->disk.read_file(s->disk.self, ELV_FILE_STEP, step->version, 0,
                                               step->bytes, s->cast.step_cap, &step->len);
    if (err != ELV_OK || elv_step_index(step, s->cast.step_chunks_max) != ELV_OK)
        step->version = 0; /* clients take the full model instead */
}

/* What clients are told about the model is what they will find, to the last bit. */
static bool is_the_version(const struct elv_broadcast *c)
{
    uint8_t model[32];
    struct elv_body_ref full;
    elv_broadcast_digest(c, c->b, model, &full);
    return memcmp(model, c->rec.model, sizeof model) == 0 &&
           full.n_chunks == c->rec.full.n_chunks && full.codec == c->rec.full.codec &&
           memcmp(full.digest, c->rec.full.digest, sizeof full.digest) == 0;
}

static enum elv_err read_model(struct elv_server *s)
{
    struct elv_broadcast *c = &s->cast;
    c->version = s->head.version;
    enum elv_err err = read_vector(s, ELV_FILE_MODEL, c->version, c->b);
    if (err == ELV_OK && !is_the_version(c))
        err = ELV_ERR_FORMAT;
    if (err != ELV_OK)
        return err;
    if (c->rec.master)
        err = read_vector(s, ELV_FILE_MASTER, c->version, c->w);
    else
        memcpy(c->w, c->b, (size_t)c->n * sizeof *c->w);
    if (err == ELV_OK && c->rule && c->version > 0)
        err = read_all(s, ELV_FILE_RULE, c->version, 0, c->rule,
                       (size_t)c->n * s->policies.rule->state_per_param * sizeof *c->rule);
    for (uint32_t i = 0; i < c->n_steps; i++)
        read_step(s, &c->steps[i]);
    return err;
}

static bool same_job(const struct elv_server *s, const struct elv_rec_run *rec)
{
    return rec->seed == s->run.seed && rec->n_params == s->run.n_params &&
           rec->bound == s->run.bound && rec->down == s->run.down &&
           memcmp(rec->fingerprint, s->run.fingerprint, sizeof rec->fingerprint) == 0;
}

static enum elv_err scan_all(struct found *f)
{
    static const struct {
        enum elv_table table;
        enum elv_err (*take)(void *ctx, uint64_t number, struct elv_bytes value);
    } order[] = {
        {ELV_TABLE_CLIENT, take_client},   {ELV_TABLE_ROUND, take_round},
        {ELV_TABLE_ASSIGN, take_assign},   {ELV_TABLE_DECISION, take_decision},
        {ELV_TABLE_COUNTED, take_counted}, {ELV_TABLE_OFFER, take_offer},
        {ELV_TABLE_VERSION, take_version},
    };
    const struct elv_disk *disk = &f->s->disk;
    enum elv_err err = ELV_OK;
    for (size_t i = 0; err == ELV_OK && i < sizeof order / sizeof order[0]; i++)
        err = disk->scan(disk->self, order[i].table, f, order[i].take);
    return err;
}

static void resume_asked(struct elv_server *s)
{
    struct elv_round *r = &s->round;
    r->written = r->n_asked;
    for (uint32_t i = 0; i < r->n_asked; i++) {
        struct elv_row *row = &s->roster.rows[r->asked[i].row];
        row->waiting = row->joined && row->last.assignment != row->offer.assignment;
        r->n_waiting += row->waiting;
    }
}

/* The round goes on where it was; its clocks are set by the first step. */
static enum elv_err resume_round(struct elv_server *s, const struct found *f)
{
    struct elv_round *r = &s->round;
    if ((r->n_asked == 0) != r->stream || f->round_rec.version != s->head.version ||
        f->n_blocks != f->round_rec.n_blocks)
        return ELV_ERR_FORMAT;
    r->state = ELV_ROUND_OPEN;
    r->seq = f->seq;
    r->assignment = f->round_rec.assignment;
    r->version = f->round_rec.version;
    r->n_blocks = f->round_rec.n_blocks;
    r->weight_bits = f->round_rec.weight_bits;
    r->may_at = ELV_NEVER;
    if (!r->stream)
        resume_asked(s);
    for (uint32_t i = 0; i < r->n_counted; i++)
        s->counted[i].rate = rate_of(s, s->counted[i].d.version);
    s->elapsed = f->clock.seq == f->seq ? f->clock.elapsed_us : 0;
    s->must_refold = r->n_got > 0 && r->what == ELV_WHAT_TRAIN;
    if ((elv_time_us)f->round_rec.deadline_us < s->sync_cfg.deadline_us)
        s->sync_cfg.deadline_us = (elv_time_us)f->round_rec.deadline_us;
    return ELV_OK;
}

/* A stream that died when it was about to take another log may have begun to fill it, or have made
 * no more than an empty file. */
static enum elv_err skip_left_log(struct elv_server *s)
{
    uint64_t len = 0;
    const enum elv_err err = elv_log_len(&s->disk, s->head.next_seq, &len);
    if (err == ELV_OK && len > 0)
        s->log_left = s->head.next_seq++;
    else if (err == ELV_OK && s->head.log != 0)
        s->log_drop = s->head.next_seq;
    return err;
}

static void forget_version(struct elv_server *s, struct elv_kept *v)
{
    for (uint32_t i = 0; i < s->roster.n; i++) {
        struct elv_row *row = &s->roster.rows[i];
        if (!row->waiting || !row->offer.own || row->offer.version != v->version)
            continue;
        row->waiting = false;
        s->round.n_waiting--;
    }
    elv_kept_remove(&s->kept, v);
}

/* Work on a version whose file is gone is over. */
static enum elv_err check_kept(struct elv_server *s)
{
    uint8_t first[4];
    for (uint32_t i = s->kept.n; i > 0; i--) {
        struct elv_kept *v = &s->kept.at[i - 1];
        if (v->version == s->head.version)
            continue;
        const enum elv_err err = elv_kept_read(v, &s->disk, 0, 1, first);
        if (err == ELV_ERR_IO)
            return err;
        if (err != ELV_OK || v->full.n_chunks == 0)
            forget_version(s, v);
    }
    return ELV_OK;
}

static enum elv_err resume(struct elv_server *s, const struct found *f)
{
    const bool stream = elv_core_streams(s) && s->head.log != 0;
    enum elv_err err = skip_left_log(s);
    s->run_us = f->clock.run_us;
    if (!f->round)
        s->round.stream = stream; /* between two of its rounds */
    else if (err == ELV_OK)
        err = resume_round(s, f);
    if (err == ELV_OK)
        err = check_kept(s);
    s->unpack.log = stream || s->round.stream ? s->head.log : s->round.seq;
    if (err == ELV_OK && (stream || f->round))
        err = elv_core_replay_log(s);
    return err;
}

enum elv_err elv_core_restore(struct elv_server *s, bool *found)
{
    struct found f = {.s = s};
    enum elv_err err = s->disk.scan(s->disk.self, ELV_TABLE_META, &f, take_meta);
    *found = f.run;
    if (err != ELV_OK || !f.run)
        return err;
    if (!same_job(s, &f.run_rec))
        return ELV_ERR_MISMATCH;
    s->run = f.run_rec;
    err = scan_all(&f);
    if (err == ELV_OK && !f.version)
        err = ELV_ERR_FORMAT;
    if (err == ELV_OK)
        err = read_model(s);
    if (err == ELV_OK)
        err = resume(s, &f);
    if (err != ELV_OK)
        return err;
    /* The job may have been given more rounds, or a higher target, since. */
    if (s->head.best_accuracy >= 0.0 && s->head.best_accuracy < s->job->target_accuracy)
        s->head.reached = false;
    s->over = s->head.over = s->head.over && elv_core_is_finished(s);
    s->eval_due = elv_core_eval_is_due(s, s->head.version) && s->cast.rec.eval.n == 0;
    elv_core_set_rate(s);
    return ELV_OK;
}
