/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core.h"

enum { CARRY_SHARE = 4 }; /* of its bound a log may have, that goes on from round to round */

static void forget(struct elv_server *s, struct elv_row *row)
{
    if (row->upload == ELV_ROW_NONE)
        return;
    elv_upload_free(&s->uploads, &s->uploads.at[row->upload]);
    row->upload = ELV_ROW_NONE;
}

static void forget_all(struct elv_server *s)
{
    for (uint32_t i = 0; i < s->uploads.n; i++) {
        struct elv_upload *up = &s->uploads.at[i];
        if (up->state != ELV_UPLOAD_STAGED)
            continue;
        elv_core_undelivered(s, &s->roster.rows[up->row]);
        elv_upload_free(&s->uploads, up);
    }
}

/* The slot a logged chunk belongs to, started over where the client did. NULL: it is of no use. */
static struct elv_upload *slot_for(struct elv_server *s, uint32_t row, const struct elv_chunk *c)
{
    struct elv_row *r = &s->roster.rows[row];
    const uint64_t nonce = elv_nonce_of(c->tag);
    struct elv_upload *up;
    if (r->upload == ELV_ROW_NONE) {
        up = elv_upload_take(&s->uploads, row, r->client, r->offer.assignment, r->codec,
                             elv_core_bound(s, r->codec));
        if (up == NULL)
            return NULL; /* fewer slots than before: the client starts over */
        r->upload = elv_upload_index(&s->uploads, up);
    }
    up = &s->uploads.at[r->upload];
    if (up->has_nonce && up->nonce == nonce)
        return up;
    if (elv_upload_is_old(up, nonce))
        return NULL;
    elv_upload_restart(up, nonce);
    return up;
}

static void replay_chunk(struct elv_server *s, const struct elv_log_record *rec)
{
    const uint32_t row = elv_roster_find(&s->roster, rec->client);
    if (row == ELV_ROW_NONE)
        return;
    struct elv_row *r = &s->roster.rows[row];
    r->log_of = s->unpack.log;
    if (!r->offer.own || rec->assignment == r->offer.assignment) /* what it may take, see quotas */
        r->log_bytes += ELV_LOG_HEAD_LEN + rec->chunk.len;
    struct elv_chunk c;
    if (elv_core_assignment(s, r, rec->assignment) != ELV_REASON_NONE)
        return; /* decided: folding reads the log itself */
    if (rec->chunk.len == 0) {
        forget(s, r);
        return;
    }
    const struct elv_chunk_rules rules = elv_core_chunk_rules(s, r);
    if (elv_chunk_decode(rec->chunk, &c) != ELV_OK ||
        elv_admit_chunk(&rules, &c, c.index) != ELV_REASON_NONE)
        return;
    struct elv_upload *up = slot_for(s, row, &c);
    if (up && !elv_bitmap_get(&up->have, c.index))
        elv_upload_note(up, &c, rec->at, rec->chunk.len);
}

enum elv_err elv_core_replay_log(struct elv_server *s)
{
    struct elv_log_scan scan = elv_log_scan_of(&s->disk, s->unpack.log, s->refold.scan_buf);
    struct elv_log_record rec;
    enum elv_err err;
    while ((err = elv_log_scan_next(&scan, &rec)) == ELV_OK) {
        if (rec.client == 0)
            forget_all(s);
        else
            replay_chunk(s, &rec);
    }
    s->uploads.log_len = scan.base + scan.at;
    return err == ELV_ERR_MISSING ? ELV_OK : err;
}

static bool is_staged(const struct elv_upload *up)
{
    return up->state == ELV_UPLOAD_STAGED || up->state == ELV_UPLOAD_WAITING;
}

/* Uploads that the log is still needed for; of those that are `alive`, or of all. */
static uint32_t count_staged(const struct elv_server *s, bool alive)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->uploads.n; i++) {
        const struct elv_upload *up = &s->uploads.at[i];
        const bool idle = up->state == ELV_UPLOAD_STAGED && s->now - up->touched >= ELV_IDLE_US;
        n += is_staged(up) && !(alive && idle);
    }
    return n;
}

/* The log has outlived the round it began with. It is another as soon as those who are half through
 * are through; others would keep it from that for ever. */
bool elv_core_holds_off(const struct elv_server *s)
{
    const bool carried = s->head.log != 0 && s->head.log != s->round.seq;
    return elv_core_streams(s) && carried &&
           s->uploads.log_len > s->cfg.limits.log_bytes_max / CARRY_SHARE &&
           count_staged(s, true) > 0;
}

/* One that was to go before does so at once. */
static void leave_log(struct elv_server *s, struct elv_actions *out)
{
    elv_core_drop_log(s, out);
    s->log_drop = s->log_before = s->head.log;
    s->void_before = s->head.void_below;
}

void elv_core_log_dropped(struct elv_server *s, bool ok)
{
    s->log_stands = !ok && s->log_before != 0;
    if (ok)
        s->log_drop = s->log_before = 0;
}

void elv_core_close_log(struct elv_server *s, struct elv_actions *out)
{
    if (s->head.log == 0)
        return;
    forget_all(s);
    leave_log(s, out);
    s->head.log = 0;
    s->head.void_below = s->head.next_assignment;
}

/* What the log holds of those is no longer there: they send it again. */
static void forget_staged(struct elv_server *s, struct elv_actions *out)
{
    struct elv_upload *up;
    forget_all(s);
    while ((up = elv_upload_pop(&s->uploads, &s->uploads.waiting)) != NULL)
        elv_core_drop_upload(s, up, ELV_REASON_STORAGE, out);
}

void elv_core_turn_log(struct elv_server *s, struct elv_actions *out)
{
    const uint64_t most = s->cfg.limits.log_bytes_max, len = s->uploads.log_len;
    const bool long_enough = len > most / CARRY_SHARE && count_staged(s, true) == 0;
    if (!elv_core_streams(s) || elv_core_is_finished(s)) {
        elv_core_close_log(s, out);
        return;
    }
    if (!s->log_lost && !long_enough && len <= most / 2 && count_staged(s, false) > 0)
        return;
    forget_staged(s, out);
    leave_log(s, out);
    s->head.log = s->head.next_seq;
    s->unpack.log = s->head.log;
    s->uploads.log_len = 0;
    s->log_lost = false;
}

/* The log of a stream takes chunks whatever round is open. */
static bool log_is_used(const struct elv_server *s)
{
    return s->round.state == ELV_ROUND_OPEN || (elv_core_streams(s) && s->head.log != 0);
}

bool elv_core_must_heal_log(const struct elv_server *s)
{
    return s->log_lost && s->log_store == 0 && log_is_used(s) && !elv_core_is_survey(s) &&
           s->lane.id == 0 && s->uploads.waiting.n == 0;
}

void elv_core_heal_log(struct elv_server *s, struct elv_actions *out)
{
    if (!elv_core_must_heal_log(s) || s->now < s->retry_at)
        return;
    elv_core_mend_log(s, out);
    elv_core_put_clock(s, out);
    s->log_store = elv_core_token(s);
}

/* From here on the length is unknown, so it must be measured before anything is appended. */
void elv_core_mend_log(struct elv_server *s, struct elv_actions *out)
{
    s->log_lost = true;
    elv_core_store(s, out, &(struct elv_store_op){.kind = ELV_STORE_MEND, .number = s->unpack.log});
}

/* Every append before that STORE has been tried, so the length is final. Whatever was staged may
 * have holes: the clients are told that it is missing, and send it again. */
void elv_core_log_stored(struct elv_server *s, bool ok, struct elv_actions *out)
{
    uint64_t len = 0;
    s->log_store = 0;
    if (!s->log_lost || !log_is_used(s))
        return;
    if (ok && elv_log_len(&s->disk, s->unpack.log, &len) != ELV_OK)
        ok = false;
    if (!ok && (elv_core_streams(s) || elv_core_worth_waiting(s))) {
        s->retry_at = s->now + ELV_SECOND; /* a stream has time until its round's deadline */
        return;
    }
    if (!ok) {
        elv_core_cut_losses(s); /* this log will take nothing more */
        return;
    }
    s->uploads.log_len = len;
    forget_all(s);
    elv_core_append_mark(s, 0, 0, out);
    s->log_lost = false;
}
