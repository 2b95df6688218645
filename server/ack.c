/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered once its STORE is through, or has failed. */
#include "common/assert.h"
#include "server/core.h"

enum { STORAGE_RETRY_MS = 2000 };

static void answer_join(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[a->row];
    if (a->state == ELV_ANSWER_FAILED || row->gone) {
        elv_core_refuse(s, out, a->request, row->gone ? ELV_REASON_REVOKED : ELV_REASON_STORAGE,
                        STORAGE_RETRY_MS);
        return;
    }
    struct elv_joined joined = a->joined;
    joined.client = row->client;
    joined.window = elv_core_window(s);
    if (!row->joined) {
        elv_roster_set_joined(&s->roster, a->row, true);
        s->stats.joins++;
        elv_note_add(&s->notes, ELV_NOTE_JOINED, s->now)->client = row->client;
        elv_core_tell_joined(s, a->row);
    }
    const uint32_t jitter = 2 * s->roster.n_joined;
    joined.jitter_ms = jitter < 2000 ? jitter : 2000;
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_joined_encode(&joined, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    elv_core_reply(out, a->request, ELV_CODE_CHANGED, 0, (struct elv_bytes){at, len});
}

static void answer_leave(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out)
{
    if (a->state == ELV_ANSWER_FAILED) {
        elv_core_refuse(s, out, a->request, ELV_REASON_STORAGE, STORAGE_RETRY_MS);
        return;
    }
    if (s->roster.rows[a->row].joined)
        elv_note_add(&s->notes, ELV_NOTE_LEFT, s->now)->client = s->roster.rows[a->row].client;
    elv_core_part(s, a->row, out);
    elv_core_reply(out, a->request, ELV_CODE_DELETED, 0, (struct elv_bytes){0});
}

static void settle_decision(struct elv_server *s, const struct elv_answer *a)
{
    struct elv_row *row = &s->roster.rows[a->row];
    if (row->last.assignment != a->assignment || row->last_durable || row->last_failed)
        return;
    row->last_durable = a->state == ELV_ANSWER_STORED;
    row->last_failed = !row->last_durable;
    if (row->last_failed) {
        s->n_unsaved++;
        s->retry_at = s->now + ELV_SECOND;
        return;
    }
    s->n_retries = 0;
    if (s->n_unsaved == 0)
        s->retry_at = s->now; /* the disk is well again */
    if (row->last.seq == s->round.seq)
        s->round.n_soft--;
}

static void answer_decision(struct elv_server *s, const struct elv_answer *a,
                            struct elv_actions *out)
{
    settle_decision(s, a);
    if (!a->asked)
        return;
    if (a->state == ELV_ANSWER_FAILED) {
        elv_core_refuse(s, out, a->request, ELV_REASON_STORAGE, STORAGE_RETRY_MS);
        return;
    }
    const struct elv_verdict v = {.decision = a->decision, .reason = a->reason};
    uint8_t *at = elv_core_text(s, ELV_MSG_MAX);
    size_t len = 0;
    const enum elv_err err = elv_verdict_encode(&v, at, ELV_MSG_MAX, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_core_text_used(s, len);
    elv_core_reply(out, a->request, ELV_CODE_CHANGED, 0, (struct elv_bytes){at, len});
}

void elv_core_answer(struct elv_server *s, struct elv_actions *out)
{
    struct elv_answer a;
    for (uint32_t i = 0; i < ELV_ANSWERS_PER_STEP && elv_answers_pop(&s->answers, &a); i++) {
        if (a.kind == ELV_ANSWER_JOIN || a.kind == ELV_ANSWER_LEAVE)
            s->roster.rows[a.row].n_asking--;
        if (a.kind == ELV_ANSWER_JOIN)
            answer_join(s, &a, out);
        else if (a.kind == ELV_ANSWER_LEAVE)
            answer_leave(s, &a, out);
        else if (a.kind == ELV_ANSWER_GRANT)
            elv_core_granted(s, &a, out);
        else
            answer_decision(s, &a, out);
    }
}
