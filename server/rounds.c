/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"
#include "server/core.h"
#include "server/drive.h"

static const elv_time_us notify_pace = 1000;

/* Clients without which it makes no sense to start. */
static uint32_t clients_needed(const struct elv_server *s)
{
    const uint32_t first = s->head.next_seq == 1 ? s->job->min_clients : 1;
    const uint32_t quorum = s->sync_cfg.quorum;
    return first > quorum ? first : quorum;
}

struct elv_sync_call elv_core_call(const struct elv_policies *p, const struct elv_sync_cfg *cfg,
                                   const struct elv_job *job)
{
    struct elv_sync_call call = {0};
    if (p->sync->call)
        call = p->sync->call(cfg);
    if (call.ask == 0)
        return (struct elv_sync_call){.ask = job->select_count};
    return call;
}

static elv_time_us later(elv_time_us a, elv_time_us b) { return a > b ? a : b; }

/* When a round may open with those who are there. */
static elv_time_us enough_at(const struct elv_server *s)
{
    const uint32_t n = elv_roster_there(&s->roster);
    const struct elv_sync *sync = s->policies.sync;
    const elv_time_us soon = s->round.not_before;
    if (n < clients_needed(s))
        return ELV_NEVER;
    if (sync->call == NULL)
        return soon;
    const struct elv_sync_call call = elv_core_call(&s->policies, &s->sync_cfg, s->job);
    if (n >= call.ask || sync->call(&s->sync_cfg).ask == 0)
        return soon;
    return call.least > 0 && n >= call.least ? later(soon, s->round.ended + call.wait_us)
                                             : ELV_NEVER;
}

elv_time_us elv_core_opens_at(const struct elv_server *s)
{
    if (s->round.state != ELV_ROUND_NONE || s->fresh || s->head.over || s->stopping ||
        s->version_failed || s->lane.id != 0)
        return ELV_NEVER;
    if (!elv_core_is_finished(s))
        return enough_at(s);
    const bool quiet = s->version_store == 0 && s->uploads.waiting.n == 0;
    return quiet && elv_core_survey_is_due(s) ? s->round.not_before : ELV_NEVER;
}

/* Whom the policy wants to train; a survey asks everybody. */
static uint32_t choose(struct elv_server *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->roster.n; i++) {
        const struct elv_row *row = &s->roster.rows[s->roster.order[i]];
        if (row->joined)
            s->round.asked[n++] = (struct elv_candidate){.client = row->client,
                                                         .row = s->roster.order[i],
                                                         .samples = row->samples,
                                                         .speed = row->speed};
    }
    if (s->round.what == ELV_WHAT_EVALUATE)
        return n;
    const struct elv_select_ask ask = {
        .params = &s->job->select_params,
        .seed = s->job->seed,
        .round = s->round.seq,
        .count = elv_core_call(&s->policies, &s->sync_cfg, s->job).ask,
    };
    return s->policies.select->choose(&ask, s->round.asked, n);
}

/* Nobody is asked, and what is under way goes on, in the log it goes to. */
static void begin_stream(struct elv_server *s, const struct elv_round *before)
{
    s->round.stream = true;
    s->round.may_at = ELV_NEVER;
    s->round.n_waiting = before->n_waiting;
    if (s->head.log != 0)
        return;
    s->head.log = s->round.seq;
    s->unpack.log = s->head.log;
    s->uploads.log_len = 0;
    s->log_lost = false;
}

static void begin_asking(struct elv_server *s, struct elv_actions *out)
{
    elv_core_void_all(s, out);
    elv_core_close_log(s, out);
    s->round.n_asked = choose(s);
    s->uploads.log_len = 0;
    s->log_lost = false;
    s->unpack.log = s->round.seq;
}

void elv_core_begin_round(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_round before = s->round;
    s->round = (struct elv_round){
        .state = ELV_ROUND_OPENING,
        .what = elv_core_is_finished(s) ? ELV_WHAT_EVALUATE : ELV_WHAT_TRAIN,
        .seq = s->head.next_seq++,
        .assignment = s->head.next_assignment++,
        .version = s->head.version,
        .asked = before.asked,
        .n_waiting = before.n_waiting,
        .ended = before.ended,
        .weight_bits = s->scales.weight_bits,
    };
    if (elv_core_streams(s) && s->round.what == ELV_WHAT_TRAIN)
        begin_stream(s, &before);
    else
        begin_asking(s, out);
}

static void write_block(struct elv_server *s, struct elv_actions *out)
{
    struct elv_round *r = &s->round;
    const uint32_t left = r->n_asked - r->written;
    const uint32_t n = left < ELV_ASSIGN_BLOCK ? left : ELV_ASSIGN_BLOCK;
    const size_t len = ELV_ASSIGN_HEAD_LEN + (size_t)n * ELV_ASSIGN_ITEM_LEN;
    uint8_t *at = elv_core_text(s, len);
    elv_core_text_used(s, len);
    elv_rec_assign_head(at, r->assignment, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct elv_candidate *c = &r->asked[r->written++];
        struct elv_row *row = &s->roster.rows[c->row];
        const struct elv_offer offer = {.assignment = r->assignment,
                                        .seq = r->seq,
                                        .version = r->version,
                                        .told = r->what == ELV_WHAT_EVALUATE,
                                        .size = s->policies.sizing->size(s->job, c)};
        elv_roster_offer(row, &offer);
        row->waiting = row->joined;
        elv_rec_assign_item(at + ELV_ASSIGN_HEAD_LEN + (size_t)i * ELV_ASSIGN_ITEM_LEN,
                            &(struct elv_rec_assign){c->client, row->offer.size});
    }
    elv_core_put(s, out, ELV_TABLE_ASSIGN, elv_assign_key(r->seq, r->n_blocks++), at, len);
}

void elv_core_put_round(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_round *r = &s->round;
    const struct elv_rec_round rec = {
        .what = r->what,
        .version = r->version,
        .assignment = r->assignment,
        .n_asked = r->n_asked,
        .n_blocks = r->n_blocks,
        .weight_bits = r->weight_bits,
        .deadline_us = (uint64_t)s->sync_cfg.deadline_us,
        .stream = r->stream,
    };
    uint8_t *at = elv_core_text(s, ELV_REC_MAX);
    const size_t len = elv_rec_round_encode(&rec, at);
    elv_core_text_used(s, len);
    elv_core_put(s, out, ELV_TABLE_ROUND, r->seq, at, len);
    elv_core_drop_log(s, out);
    elv_core_put_head(s, out);
}

void elv_core_write_round(struct elv_server *s, struct elv_actions *out)
{
    struct elv_round *r = &s->round;
    for (uint32_t i = 0; i < ELV_BLOCKS_PER_STEP && r->written < r->n_asked; i++)
        write_block(s, out);
    if (r->written < r->n_asked)
        return;
    elv_core_put_round(s, out);
    r->store = elv_core_token(s);
    r->state = ELV_ROUND_PROMISED;
}

void elv_core_mark(struct elv_server *s, uint32_t row)
{
    struct elv_row *r = &s->roster.rows[row];
    if (!r->observes || r->to_notify)
        return;
    r->to_notify = true;
    if (s->n_to_notify++ == 0)
        s->notify_at = s->now;
}

/* A crowd of observers is told a few at a time. */
void elv_core_notify(struct elv_server *s, struct elv_actions *out)
{
    uint32_t told = 0;
    if (s->n_to_notify == 0 || s->now < s->notify_at)
        return;
    for (uint32_t i = 0; i < s->roster.n && told < ELV_NOTIFY_PER_STEP && s->n_to_notify > 0; i++) {
        struct elv_row *row = &s->roster.rows[s->notify_from % s->roster.n];
        s->notify_from = (s->notify_from + 1) % s->roster.n;
        if (!row->to_notify)
            continue;
        row->to_notify = false;
        s->n_to_notify--;
        told++;
        ELV_ASSERT(out->n < out->cap);
        out->at[out->n++] = (struct elv_action){.kind = ELV_DO_NOTIFY, .peer = row->client};
    }
    s->notify_at = s->now + notify_pace;
}

static void ask_wanted(struct elv_server *s)
{
    const struct elv_sync_round view = elv_core_view(s);
    s->round.wanted = elv_drive_wanted(s->policies.sync, s->sync_state, &s->sync_cfg, &view);
}

void elv_core_tell_open(struct elv_server *s)
{
    const struct elv_sync_round view = elv_core_view(s);
    if (s->policies.sync->on_open)
        s->policies.sync->on_open(s->sync_state, &s->sync_cfg, &view);
    ask_wanted(s);
}

static void open_training(struct elv_server *s)
{
    const struct elv_round *r = &s->round;
    s->stats.rounds_opened++;
    elv_core_tell_open(s);
    struct elv_note *note = elv_note_add(&s->notes, ELV_NOTE_ROUND_OPENED, s->now);
    note->round = r->seq;
    note->version = r->version;
    note->value = r->n_asked;
    note->report.wanted = r->wanted;
    if (r->stream)
        elv_core_want_again(s);
}

static void open_round(struct elv_server *s)
{
    struct elv_round *r = &s->round;
    r->state = ELV_ROUND_OPEN;
    r->opened = s->now;
    r->deadline = s->now + s->sync_cfg.deadline_us;
    if (!r->stream)
        r->n_waiting = 0;
    for (uint32_t i = 0; i < r->n_asked; i++) {
        r->n_waiting += s->roster.rows[r->asked[i].row].waiting;
        elv_core_mark(s, r->asked[i].row);
    }
    s->clock_at = s->now + ELV_SECOND;
    if (r->what == ELV_WHAT_EVALUATE)
        elv_core_open_survey(s);
    else
        open_training(s);
}

void elv_core_round_stored(struct elv_server *s, bool ok)
{
    s->round.store = 0;
    if (ok) {
        elv_core_log_dropped(s, true);
        open_round(s);
        return;
    }
    s->round.state = ELV_ROUND_NONE; /* nobody has seen it */
    s->round.not_before = s->now + ELV_SECOND;
}

/* The round closes without it: it hears so at once, or not before it has finished. */
static void interrupt(struct elv_server *s, uint32_t i)
{
    struct elv_row *row = &s->roster.rows[i];
    const struct elv_sync_client c = {i, row->client};
    row->offer.finishes = !s->policies.sync->interrupts(s->sync_state, &s->sync_cfg, c);
    row->offer.ends = s->round.deadline;
    if (!row->offer.finishes)
        elv_core_mark(s, i);
}

void elv_core_close_round(struct elv_server *s)
{
    struct elv_round *r = &s->round;
    r->state = ELV_ROUND_CLOSING;
    for (uint32_t i = 0; i < r->n_asked; i++)
        if (s->roster.rows[r->asked[i].row].waiting && s->policies.sync->interrupts)
            interrupt(s, r->asked[i].row);
}

void elv_core_fail_round(struct elv_server *s)
{
    ELV_ASSERT(s->round.state >= ELV_ROUND_OPEN);
    s->round.state = ELV_ROUND_FAILING;
}

/* The next version is published when the policy says so and there is enough of a pause, or when no
 * more fits in it. Whoever is at work goes on. */
static void check_stream(struct elv_server *s, const struct elv_sync_round *view)
{
    struct elv_round *r = &s->round;
    const bool late = s->now >= r->deadline, full = !elv_core_has_place(s);
    r->may_at = ELV_NEVER;
    if (view->n_got < s->sync_cfg.quorum) {
        if (late || full)
            elv_core_fail_round(s);
        return;
    }
    const enum elv_sync_commit_when when =
        s->policies.sync->should_commit(s->sync_state, &s->sync_cfg, view, s->now);
    if (when == ELV_SYNC_MAY)
        r->may_at = r->opened + s->sync_cfg.publish_us;
    if (late || full || when == ELV_SYNC_MUST || s->now >= r->may_at)
        elv_core_close_round(s);
}

static void check_asked(struct elv_server *s, const struct elv_sync_round *view)
{
    const struct elv_sync *sync = s->policies.sync;
    const bool quorum = view->n_got >= s->sync_cfg.quorum;
    const bool late = s->now >= s->round.deadline;
    if (quorum &&
        (late || sync->should_commit(s->sync_state, &s->sync_cfg, view, s->now) != ELV_SYNC_NO))
        elv_core_close_round(s);
    else if (!quorum && (late || view->n_waiting == 0))
        elv_core_fail_round(s);
}

/* Whatever the policy wants, a round ends at its deadline, and when nobody is left to wait for. */
void elv_core_check_round(struct elv_server *s)
{
    if (s->round.state != ELV_ROUND_OPEN)
        return;
    if (elv_core_is_survey(s)) {
        elv_core_check_survey(s);
        return;
    }
    if (s->head.reached) { /* evaluated while this round was being opened */
        elv_core_fail_round(s);
        return;
    }
    const struct elv_sync *sync = s->policies.sync;
    struct elv_sync_round view = elv_core_view(s);
    if (sync->timer && s->now >= sync->timer(s->sync_state, &s->sync_cfg) && sync->on_timer)
        sync->on_timer(s->sync_state, &s->sync_cfg, &view, s->now);
    ask_wanted(s);
    if (s->round.stream)
        check_stream(s, &view);
    else
        check_asked(s, &view);
}

/* The policy of the process before asked, this one's streams, or the other way round. */
void elv_core_end_other_flow(struct elv_server *s)
{
    if (elv_core_is_survey(s) || s->round.stream == elv_core_streams(s))
        return;
    if (s->round.n_got >= s->sync_cfg.quorum)
        elv_core_close_round(s);
    else
        elv_core_fail_round(s);
}

void elv_core_erase_round(struct elv_server *s, uint32_t seq, uint32_t n_blocks, bool stream,
                          struct elv_actions *out)
{
    elv_core_erase(s, out, ELV_TABLE_ROUND, seq);
    for (uint32_t i = 0; i < n_blocks; i++)
        elv_core_erase(s, out, ELV_TABLE_ASSIGN, elv_assign_key(seq, i));
    if (!stream)
        elv_core_store(s, out, &(struct elv_store_op){.kind = ELV_STORE_DROP, .number = seq});
    elv_core_drop_log(s, out);
}

void elv_core_drop_round(struct elv_server *s, struct elv_actions *out)
{
    const bool first = s->round.state != ELV_ROUND_DROPPING;
    s->log_stands = false;
    s->head.n_abandoned += s->round.state == ELV_ROUND_FAILING;
    if (elv_core_is_survey(s))
        elv_core_settle_survey(s);
    else if (s->round.stream && first)
        elv_core_turn_log(s, out);
    elv_core_erase_round(s, s->round.seq, s->round.n_blocks, s->round.stream, out);
    elv_core_put_head(s, out);
    s->round.store = elv_core_token(s);
    s->round.state = ELV_ROUND_DROPPING;
}

void elv_core_round_dropped(struct elv_server *s, bool ok, struct elv_actions *out)
{
    s->round.store = 0;
    elv_core_log_dropped(s, ok);
    if (!ok) {
        s->retry_at = s->now + ELV_SECOND;
        return;
    }
    if (elv_core_is_survey(s)) {
        elv_core_survey_stored(s, out);
        return;
    }
    /* In a stream the deadline alone sets the pace: clients are at work meanwhile. */
    const bool at_once = s->head.reached || s->round.stream;
    const elv_time_us wait = at_once ? 0 : elv_drive_back_off(s->head.n_abandoned);
    elv_fold_soil(&s->fold);
    s->must_refold = false;
    s->stats.rounds_abandoned++;
    elv_core_end_round(s, out);
    elv_core_report(s, s->closed.version, ELV_NOTE_ROUND_ABANDONED)->value = (uint64_t)wait;
    s->round.not_before = s->now + wait;
}

struct elv_note *elv_core_report(struct elv_server *s, uint32_t version, enum elv_note_kind kind)
{
    const struct elv_closed *c = &s->closed;
    struct elv_note *note = elv_note_add(&s->notes, kind, s->now);
    note->round = c->seq;
    note->version = version;
    note->report = (struct elv_round_report){
        .round = c->seq,
        .version = version,
        .n_asked = c->n_asked,
        .n_used = c->n_used,
        .n_late = c->n_late,
        .n_refused = c->n_refused,
        .n_declined = c->n_declined,
        .n_discarded = c->n_discarded,
        .wanted = c->wanted,
        .weight_sum = c->tally.weight,
        .bytes_up = c->bytes_up,
        .bytes_down = c->bytes_down,
        .took = s->now - c->opened,
        .overrun = s->now > c->deadline ? s->now - c->deadline : 0,
        .loss = elv_tally_loss(&c->tally),
        .user = c->sums.user,
        .staleness = elv_tally_staleness(&c->tally),
    };
    if (note->report.overrun > s->stats.worst_overrun)
        s->stats.worst_overrun = note->report.overrun;
    s->stats.updates_late += c->n_late;
    return note;
}

/* Accepted, and no longer to be folded: the round is given up. */
static void free_counted(struct elv_server *s)
{
    struct elv_upload *up;
    while ((up = elv_upload_pop(&s->uploads, &s->uploads.counted)) != NULL)
        elv_upload_free(&s->uploads, up);
}

static void dismiss(struct elv_server *s)
{
    for (uint32_t i = 0; i < s->round.n_asked; i++) {
        struct elv_row *row = &s->roster.rows[s->round.asked[i].row];
        row->waiting = false;
        row->upload = ELV_ROW_NONE;
    }
    elv_uploads_clear(&s->uploads);
}

void elv_core_end_round(struct elv_server *s, struct elv_actions *out)
{
    struct elv_round *r = &s->round;
    s->closed = (struct elv_closed){
        .seq = r->seq,
        .n_blocks = r->n_blocks,
        .stream = r->stream,
        .version = r->version,
        .n_asked = r->stream ? r->n_given : r->n_asked,
        .n_used = r->n_got,
        .n_late = r->stream ? r->n_lapsed : r->n_waiting,
        .n_refused = r->n_refused,
        .n_declined = r->n_declined,
        .n_discarded = r->n_discarded,
        .wanted = r->wanted,
        .bytes_up = r->bytes_up,
        .bytes_down = r->bytes_down,
        .opened = r->opened,
        .deadline = r->deadline,
        .tally = elv_core_tally(s),
        .sums = r->sums,
    };
    if (r->stream) {
        free_counted(s);
        elv_core_clear_counted(s, out);
    } else {
        dismiss(s);
        r->n_waiting = 0;
    }
    r->n_got = r->n_given = r->n_lapsed = 0;
    r->state = ELV_ROUND_NONE;
    r->store = 0;
    r->not_before = r->ended = s->now;
}
