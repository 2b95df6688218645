/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "server/core.h"
#include "server/model_file.h"

/* The head stays in place until the file is stored; one is stored at a time. */
static void write_head(struct elv_server *s, uint32_t version)
{
    s->model_head_len = elv_model_file_head(s->job, s->run.run, version, s->model_head);
}

/* Model files are the vectors as they lie in memory: little-endian machines only, as all servers
 * are. */
static void store_vector(struct elv_server *s, struct elv_actions *out, enum elv_file file,
                         uint32_t version, const float *v)
{
    elv_core_store(s, out,
                   &(struct elv_store_op){
                       .kind = ELV_STORE_FILE,
                       .table = file,
                       .number = version,
                       .head = {s->model_head, s->model_head_len},
                       .bytes = {(const uint8_t *)v, (size_t)s->cast.n * sizeof *v},
                   });
}

static void store_bytes(struct elv_server *s, struct elv_actions *out, enum elv_file file,
                        uint32_t version, const void *at, size_t len)
{
    elv_core_store(
        s, out,
        &(struct elv_store_op){
            .kind = ELV_STORE_FILE, .table = file, .number = version, .bytes = {at, len}});
}

static void unlink_file(struct elv_server *s, struct elv_actions *out, enum elv_file file,
                        uint32_t version)
{
    elv_core_store(
        s, out, &(struct elv_store_op){.kind = ELV_STORE_UNLINK, .table = file, .number = version});
}

static void put_version(struct elv_server *s, struct elv_actions *out, uint32_t version,
                        const struct elv_rec_version *rec)
{
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_version_encode(rec, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_VERSION, version, at, len);
}

void elv_core_store_first(struct elv_server *s, struct elv_actions *out)
{
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_run_encode(&s->run, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_META, ELV_META_RUN, at, len);
    elv_core_put_head(s, out);
    write_head(s, 0);
    store_vector(s, out, ELV_FILE_MODEL, 0, s->cast.b);
    put_version(s, out, 0, &s->cast.rec);
    s->first_store = elv_core_token(s);
}

static uint32_t versions_kept(const struct elv_server *s)
{
    return s->job->keep < 2 ? 2 : s->job->keep; /* the one before may yet turn out the best */
}

static bool is_old(const struct elv_server *s, uint32_t version)
{
    const bool best = s->head.best_accuracy >= 0.0 && version == s->head.best_version;
    return version + versions_kept(s) <= s->head.version && !best;
}

/* Somebody still trains from it. */
static bool is_in_use(struct elv_server *s, uint32_t version)
{
    const struct elv_kept *v = elv_kept_find(&s->kept, version);
    return v != NULL && !elv_kept_is_idle(&s->kept, v);
}

void elv_core_release(struct elv_server *s, struct elv_kept *v, struct elv_actions *out)
{
    if (!elv_kept_is_idle(&s->kept, v))
        return;
    if (is_old(s, v->version))
        unlink_file(s, out, ELV_FILE_MODEL, v->version);
    elv_kept_remove(&s->kept, v);
}

void elv_core_keep_newest(struct elv_server *s, uint64_t counted)
{
    struct elv_kept v = {.version = s->cast.version,
                         .counted = counted,
                         .rate = s->learning_rate,
                         .full = s->cast.rec.full};
    memcpy(v.model, s->cast.rec.model, sizeof v.model);
    elv_kept_add(&s->kept, &v);
}

static void unlink_old(struct elv_server *s, struct elv_actions *out, uint32_t version)
{
    const uint32_t keep = versions_kept(s);
    if (version >= keep && is_old(s, version - keep) && !is_in_use(s, version - keep))
        unlink_file(s, out, ELV_FILE_MODEL, version - keep);
    if (version > 0)
        unlink_file(s, out, ELV_FILE_MASTER, version - 1);
    if (version > 0 && s->cast.rule)
        unlink_file(s, out, ELV_FILE_RULE, version - 1);
    if (s->cast.n_steps > 0 && version > s->cast.n_steps)
        unlink_file(s, out, ELV_FILE_STEP, version - s->cast.n_steps);
}

/* The clients' sums are about the version the round started from. Without a test set here they
 * decide whether the target is reached. */
bool elv_core_target_is_met(const struct elv_server *s, const struct elv_eval_sums *clients)
{
    const bool decide = s->cfg.scorer == NULL || s->job->eval_on == ELV_EVAL_CLIENTS;
    struct elv_score score;
    if (!decide || s->job->target_accuracy <= 0.0 || clients->n == 0)
        return false;
    elv_score_of(clients, &score);
    return score.accuracy >= s->job->target_accuracy;
}

/* The one before goes, unless somebody trains from it. */
static void keep_versions(struct elv_server *s, struct elv_actions *out)
{
    const uint32_t before = elv_kept_newest(&s->kept)->version;
    elv_core_keep_newest(s, elv_kept_newest(&s->kept)->counted + s->closed.n_used);
    elv_core_release(s, elv_kept_find(&s->kept, before), out);
    if (s->kept.at[0].expired)
        s->lapse_at = s->now;
}

/* The next version takes its place in memory at once; no ticket names it before it is durable. The
 * next round may be written down with it, in the same transaction. */
void elv_core_adopt_version(struct elv_server *s, struct elv_actions *out)
{
    struct elv_sync_commit commit = {
        .round = elv_core_view(s),
        .version = s->make.version,
        .mean_norm2 = s->make.mean_norm2,
    };
    elv_core_end_round(s, out);
    elv_make_publish(&s->make);
    s->cast.rec.seq = s->closed.seq;
    s->cast.rec.n_used = s->closed.n_used;
    s->cast.rec.weight_sum = s->closed.tally.weight;
    elv_tally_commit(&s->closed.tally, &commit);
    if (s->policies.sync->on_commit)
        s->policies.sync->on_commit(s->sync_state, &s->sync_cfg, &commit, s->now);
    s->head.version = s->cast.version;
    s->head.n_abandoned = 0;
    s->head.reached = s->head.reached || elv_core_target_is_met(s, &s->closed.sums.eval);
    s->learning_rate *= (double)s->job->learning_rate_decay;
    keep_versions(s, out);
    if (s->closed.stream)
        elv_core_turn_log(s, out);
    elv_core_store_version(s, out);
}

void elv_core_store_version(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_broadcast *c = &s->cast;
    const struct elv_step *step = c->n_steps > 0 ? &c->steps[c->version % c->n_steps] : NULL;
    s->version_failed = s->log_stands = false;
    s->version_store = elv_core_token(s);
    write_head(s, c->version);
    store_vector(s, out, ELV_FILE_MODEL, c->version, c->b);
    if (c->rec.master)
        store_vector(s, out, ELV_FILE_MASTER, c->version, c->w);
    if (step)
        store_bytes(s, out, ELV_FILE_STEP, c->version, step->bytes, step->len);
    if (c->rule)
        store_bytes(s, out, ELV_FILE_RULE, c->version, c->rule,
                    (size_t)c->n * s->policies.rule->state_per_param * sizeof(float));
    put_version(s, out, c->version, &c->rec);
    elv_core_put_head(s, out);
    elv_core_erase_round(s, s->closed.seq, s->closed.n_blocks, s->closed.stream, out);
    unlink_old(s, out, c->version);
}

bool elv_core_eval_is_due(const struct elv_server *s, uint32_t version)
{
    const struct elv_job *job = s->job;
    if (s->cfg.scorer == NULL || job->eval_every == 0 || job->eval_on == ELV_EVAL_CLIENTS ||
        version == 0)
        return false;
    return version % job->eval_every == 0 || version == job->rounds;
}

void elv_core_set_rate(struct elv_server *s)
{
    s->learning_rate = (double)s->job->learning_rate;
    for (uint32_t i = 0; i < s->head.version; i++)
        s->learning_rate *= (double)s->job->learning_rate_decay;
}

void elv_core_note_clients_score(struct elv_server *s)
{
    const struct elv_sums *sums = &s->closed.sums;
    if (sums->eval.n == 0)
        return;
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_CLIENTS_EVALUATED, s->now);
    note->round = s->closed.seq;
    note->version = s->closed.version;
    elv_score_of(&sums->eval, &note->score);
    note->report.user = sums->user;
}

void elv_core_version_stored(struct elv_server *s, bool ok)
{
    s->version_store = 0;
    s->version_failed = !ok;
    elv_core_log_dropped(s, ok);
    if (!ok) {
        s->retry_at = s->now + ELV_SECOND; /* the same bytes again */
        return;
    }
    s->round_took = s->now - s->closed.opened;
    s->stats.rounds_closed++;
    elv_core_note_clients_score(s);
    elv_core_report(s, s->head.version, ELV_NOTE_ROUND_CLOSED);
    s->eval_due = elv_core_eval_is_due(s, s->head.version);
}

static void note_score(struct elv_server *s, const struct elv_score *score)
{
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_EVALUATED, s->now);
    note->version = s->eval_version;
    note->score = *score;
}

/* The best version's file outlives its turn; the one that was best no longer does. */
static void crown(struct elv_server *s, double accuracy, struct elv_actions *out)
{
    const uint32_t before = s->head.best_version;
    const bool had = s->head.best_accuracy >= 0.0;
    if (had && accuracy <= s->head.best_accuracy)
        return;
    s->head.best_accuracy = accuracy;
    s->head.best_version = s->eval_version;
    if (had && is_old(s, before) && !is_in_use(s, before))
        unlink_file(s, out, ELV_FILE_MODEL, before);
}

static void end_evaluation(struct elv_server *s)
{
    s->eval_lane.id = 0;
    s->eval_on = NULL;
}

void elv_core_evaluated(struct elv_server *s, enum elv_err err, struct elv_actions *out)
{
    struct elv_score score;
    end_evaluation(s);
    if (err != ELV_OK) {
        elv_note_add(&s->notes, ELV_NOTE_EVALUATION_FAILED, s->now)->version = s->eval_version;
        return;
    }
    s->cfg.scorer->sums(s->cfg.scorer->self, &s->eval_rec.eval);
    elv_score_of(&s->eval_rec.eval, &score);
    note_score(s, &score);
    if (s->eval_version == s->cast.version)
        s->cast.rec.eval = s->eval_rec.eval;
    put_version(s, out, s->eval_version, &s->eval_rec);
    crown(s, score.accuracy, out);
    const double target = s->job->target_accuracy;
    if (target > 0.0 && score.accuracy >= target && s->eval_version == s->head.version) {
        s->head.reached = true;
        const bool open = s->round.state == ELV_ROUND_OPEN || s->round.state == ELV_ROUND_CLOSING;
        if (open && !elv_core_is_survey(s))
            elv_core_fail_round(s); /* the version that reached it is the last */
    }
    elv_core_put_head(s, out);
}

bool elv_core_is_finished(const struct elv_server *s)
{
    return s->head.reached || (s->job->rounds > 0 && s->head.version >= s->job->rounds);
}

void elv_core_finish(struct elv_server *s, struct elv_actions *out)
{
    s->head.over = true;
    s->log_stands = false;
    elv_core_void_all(s, out);
    elv_core_close_log(s, out);
    elv_core_drop_log(s, out);
    elv_core_put_head(s, out);
    s->over_store = elv_core_token(s);
}

void elv_core_over_stored(struct elv_server *s, bool ok)
{
    s->over_store = 0;
    s->over = ok;
    elv_core_log_dropped(s, ok);
    if (!ok) {
        s->head.over = false;
        s->retry_at = s->now + ELV_SECOND;
        return;
    }
    for (uint32_t i = 0; i < s->roster.n; i++)
        elv_core_mark(s, i);
}
