/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/assert.h"
#include "server/core.h"

enum { FIXED_ACTIONS = 1024, EXIT_DONE = 0, EXIT_TARGET_MISSED = 3 };

/* The first event brings the time. */
static void settle(struct elv_server *s, struct elv_actions *out)
{
    struct elv_note *note =
        elv_note_add(&s->notes, s->fresh ? ELV_NOTE_STARTED : ELV_NOTE_RESTORED, s->now);
    note->version = s->head.version;
    note->round = s->round.state == ELV_ROUND_OPEN ? s->round.seq : 0;
    note->value = s->round.n_got;
    s->settled = true;
    s->round.not_before = s->round.ended = s->now;
    s->run_began = s->now - (elv_time_us)s->run_us;
    s->clock_at = s->now + ELV_SECOND;
    if (s->round.n_waiting > 0)
        s->lapse_at = s->now; /* find out when */
    if (s->log_left != 0)
        elv_core_store(s, out,
                       &(struct elv_store_op){.kind = ELV_STORE_DROP, .number = s->log_left});
    for (uint32_t i = 0; i < s->roster.n; i++)
        if (s->roster.rows[s->roster.order[i]].joined)
            elv_core_tell_joined(s, s->roster.order[i]);
    if (s->round.state != ELV_ROUND_OPEN)
        return;
    s->round.opened = s->now - (elv_time_us)s->elapsed;
    s->round.deadline = s->round.opened + s->sync_cfg.deadline_us;
    s->sync_cfg.deadline_us = s->job->deadline_us;
    if (!elv_core_is_survey(s))
        elv_core_tell_open(s);
    elv_core_end_other_flow(s);
}

static void on_request(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    s->stats.requests++;
    switch (ev->request.op) {
    case ELV_OP_MANIFEST:
        elv_core_manifest(s, ev, out);
        return;
    case ELV_OP_JOIN:
        elv_core_join(s, ev, out);
        return;
    case ELV_OP_LEAVE:
        elv_core_leave(s, ev, out);
        return;
    case ELV_OP_TICKET:
        elv_core_ticket(s, ev, out);
        return;
    case ELV_OP_MODEL_CHUNK:
        elv_core_model_chunk(s, ev, out);
        return;
    case ELV_OP_STEP_CHUNK:
        elv_core_step_chunk(s, ev, out);
        return;
    case ELV_OP_UPDATE_CHUNK:
        elv_core_update_chunk(s, ev, out);
        return;
    case ELV_OP_COMMIT:
        elv_core_commit(s, ev, out);
        return;
    case ELV_OP_NONE:
        break;
    }
    s->stats.malformed++;
    elv_core_refuse(s, out, ev->id, ELV_REASON_MALFORMED, 0);
}

static void end(struct elv_server *s, uint32_t code, struct elv_actions *out)
{
    s->ended = true;
    ELV_ASSERT(out->n < out->cap);
    out->at[out->n++] = (struct elv_action){.kind = ELV_DO_END, .id = code};
}

static void end_now(struct elv_server *s, struct elv_actions *out)
{
    s->stop_store = 0;
    elv_note_add(&s->notes, ELV_NOTE_STOPPED, s->now);
    end(s, EXIT_DONE, out);
}

static void on_stored(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    const bool ok = ev->err == ELV_OK;
    if (!ok) {
        s->stats.store_failures++;
        elv_note_add(&s->notes, ELV_NOTE_STORE_FAILED, s->now)->value = (uint64_t)-ev->err;
        if (elv_core_streams(s) && s->head.log != 0)
            s->log_lost =
                true; /* perhaps that is why, and then nothing is stored before it is mended */
    }
    elv_answers_stored(&s->answers, ev->id, ok);
    if (!ok && s->round.state == ELV_ROUND_OPENING) /* blocks written so far may be lost with it */
        elv_core_round_stored(s, false);
    if (ev->id == s->first_store) {
        s->first_store = 0;
        s->fresh = !ok;
        s->retry_at = ok ? s->retry_at : s->now + ELV_SECOND;
    }
    if (ev->id == s->over_store)
        elv_core_over_stored(s, ok);
    if (ev->id == s->log_store)
        elv_core_log_stored(s, ok, out);
    if (ev->id == s->stop_store)
        end_now(s, out);
    if (ev->id == s->version_store)
        elv_core_version_stored(s, ok);
    if (ev->id != s->round.store)
        return;
    if (s->round.state == ELV_ROUND_PROMISED)
        elv_core_round_stored(s, ok);
    else if (s->round.state == ELV_ROUND_DROPPING)
        elv_core_round_dropped(s, ok, out);
}

static void on_stop(struct elv_server *s, struct elv_actions *out)
{
    if (s->stopping)
        return;
    s->stopping = true;
    if (s->round.state >= ELV_ROUND_OPEN) /* a head may be on its way with the next version */
        elv_core_put_clock(s, out);
    else
        elv_core_put_head(s, out);
    s->stop_store = elv_core_token(s);
}

static void on_event(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out)
{
    switch (ev->kind) {
    case ELV_EV_REQUEST:
        on_request(s, ev, out);
        break;
    case ELV_EV_STORED:
        if (ev->id != 0)
            on_stored(s, ev, out);
        break;
    case ELV_EV_COMPUTED:
        elv_core_computed(s, ev, out);
        break;
    case ELV_EV_GONE:
        elv_core_gone(s, ev->peer, out);
        break;
    case ELV_EV_STOP:
        on_stop(s, out);
        break;
    case ELV_EV_TICK:
    case ELV_EV_RESPONSE:
    case ELV_EV_NO_ANSWER:
        break;
    }
}

/* Something was refused by the disk and is due to be tried again. */
static bool must_store_again(const struct elv_server *s)
{
    const bool stuck = s->round.store == 0 && s->round.state == ELV_ROUND_DROPPING;
    return stuck || s->version_failed || (s->fresh && s->first_store == 0);
}

static void store_again(struct elv_server *s, struct elv_actions *out)
{
    if (!must_store_again(s) || s->now < s->retry_at)
        return;
    if (s->fresh)
        elv_core_store_first(s, out);
    else if (s->version_failed)
        elv_core_store_version(s, out);
    else
        elv_core_drop_round(s, out);
}

static bool may_finish(const struct elv_server *s)
{
    return s->round.state == ELV_ROUND_NONE && elv_core_is_finished(s) && !s->head.over &&
           !elv_core_survey_is_due(s) && !s->fresh && !s->eval_due && s->eval_lane.id == 0 &&
           s->version_store == 0 && !s->version_failed && s->uploads.waiting.n == 0;
}

/* The job is over, from now on or, after a restart, still. Requests go on being answered. */
static void announce_end(struct elv_server *s, struct elv_actions *out)
{
    if (!s->over || s->ended)
        return;
    const bool missed = s->job->target_accuracy > 0.0 && !s->head.reached;
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_OVER, s->now);
    note->version = s->head.version;
    note->value = s->head.reached;
    end(s, missed ? EXIT_TARGET_MISSED : EXIT_DONE, out);
}

/* The clocks are stored with whatever else is, and by themselves each second. */
static bool clock_is_kept(const struct elv_server *s)
{
    return s->round.state == ELV_ROUND_OPEN ||
           (elv_core_streams(s) && s->round.n_waiting > 0 && !s->head.over);
}

/* Before a failing round is dropped, the commits that came are answered; in a stream they wait. */
static bool may_drop(const struct elv_server *s)
{
    return s->round.state == ELV_ROUND_FAILING && s->lane.id == 0 &&
           (s->uploads.waiting.n == 0 || s->round.stream);
}

/* What follows from where things stand, a bounded amount per step. */
static void progress(struct elv_server *s, struct elv_actions *out)
{
    store_again(s, out);
    elv_core_answer(s, out);
    elv_core_save_again(s, out);
    elv_core_lapse(s, out);
    elv_core_check_round(s);
    elv_core_hand_out(s, out);
    elv_core_heal_log(s, out);
    elv_core_schedule(s, out);
    if (may_drop(s) || elv_core_survey_is_done(s))
        elv_core_drop_round(s, out);
    if (may_finish(s) && s->now >= s->retry_at)
        elv_core_finish(s, out);
    announce_end(s, out);
    if (s->now >= elv_core_opens_at(s))
        elv_core_begin_round(s, out);
    if (s->round.state == ELV_ROUND_OPENING)
        elv_core_write_round(s, out);
    elv_core_notify(s, out);
    if (s->head_due)
        elv_core_put_head(s, out);
    if (clock_is_kept(s) && (s->step_puts || s->now >= s->clock_at))
        elv_core_put_clock(s, out);
}

static void count(struct elv_server *s)
{
    struct elv_server_stats *st = &s->stats;
    st->n_clients = s->roster.n;
    st->n_joined = s->roster.n_joined;
    st->n_uploads = s->uploads.n_used;
    st->log_bytes = s->uploads.log_len;
    st->version = elv_core_durable_version(s);
    st->round = s->round.seq;
    st->round_open = s->round.state == ELV_ROUND_OPEN;
    st->wanted = st->round_open ? s->round.wanted : 0;
    st->over = s->over;
    st->target_reached = s->head.reached;
    st->best_version = s->head.best_version;
    st->best_accuracy = s->head.best_accuracy;
    st->value_bits = s->scales.value_bits;
    st->weight_bits = s->scales.weight_bits;
    st->weight_cap = s->scales.weight_cap;
    if (st->version == s->cast.version)
        memcpy(st->model, s->cast.rec.model, sizeof st->model);
}

static uint32_t actions_max(const struct elv_server *s)
{
    /* Closing a round erases one record per block of clients it asked; a stream's log that is too
     * long goes with all commits that wait. */
    const uint32_t waiting = elv_core_streams(s) ? ELV_UPLOAD_ASKERS * s->uploads.n : 0;
    return FIXED_ACTIONS + s->roster.cap / ELV_ASSIGN_BLOCK + waiting;
}

static void node_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct elv_server *s = self;
    ELV_ASSERT(out->cap >= actions_max(s));
    ELV_ASSERT(!s->settled || ev->now >= s->now);
    s->now = ev->now;
    s->text_used = 0;
    s->step_store = 0;
    s->step_puts = false;
    out->n = 0;
    if (!s->settled)
        settle(s, out);
    on_event(s, ev, out);
    progress(s, out);
    elv_core_seal(s, out);
    count(s);
}

static elv_time_us sooner(elv_time_us a, elv_time_us b) { return a < b ? a : b; }

static elv_time_us node_deadline(const void *self)
{
    const struct elv_server *s = self;
    const struct elv_sync *sync = s->policies.sync;
    elv_time_us at = ELV_NEVER;
    const bool busy = s->answers.n > 0 && s->answers.at[s->answers.head].state != ELV_ANSWER_WAITS;
    const bool turning = s->uploads.waiting.n > 0 && elv_core_turns_away(s) != ELV_REASON_NONE;
    if (!s->settled || busy || turning || s->hand_again || s->round.state == ELV_ROUND_OPENING)
        return s->now;
    if (s->round.state == ELV_ROUND_OPEN) {
        at = s->round.deadline;
        if (s->round.stream)
            at = sooner(at, s->round.may_at);
        if (sync->timer && !elv_core_is_survey(s))
            at = sooner(at, sync->timer(s->sync_state, &s->sync_cfg));
    }
    if (clock_is_kept(s))
        at = sooner(at, s->clock_at);
    at = sooner(at, s->lapse_at);
    at = sooner(at, elv_core_opens_at(s));
    if (s->n_to_notify > 0)
        at = sooner(at, s->notify_at);
    if (must_store_again(s) || s->n_unsaved > 0 || may_finish(s) || elv_core_must_heal_log(s))
        at = sooner(at, s->retry_at);
    return at > s->now ? at : s->now;
}

static enum elv_err node_run(void *self, const struct elv_compute *work, uint32_t budget)
{
    return elv_core_run(self, work, budget > 0 ? budget : 1);
}

struct elv_node elv_server_node(struct elv_server *s)
{
    return (struct elv_node){
        .self = s,
        .actions_max = actions_max(s),
        .step = node_step,
        .deadline = node_deadline,
        .run = node_run,
    };
}
