/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "server/core.h"
#include "server/drive.h"

static void put_item(struct elv_server *s, const struct elv_row *row, struct elv_actions *out)
{
    const size_t len = ELV_ASSIGN_HEAD_LEN + ELV_ASSIGN_ITEM_LEN;
    uint8_t *at = elv_core_text(s, len);
    elv_core_text_used(s, len);
    elv_rec_assign_head(at, row->offer.assignment, 1);
    elv_rec_assign_item(at + ELV_ASSIGN_HEAD_LEN,
                        &(struct elv_rec_assign){row->client, row->offer.size});
    elv_core_put(s, out, ELV_TABLE_ASSIGN, elv_assign_key(s->round.seq, s->round.n_blocks++), at,
                 len);
}

static void grant(struct elv_server *s, uint32_t i, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[i];
    const struct elv_candidate c = {
        .client = row->client, .row = i, .samples = row->samples, .speed = row->speed};
    const struct elv_offer offer = {
        .assignment = s->head.next_assignment++,
        .seq = s->round.seq,
        .version = s->round.version,
        .promised = true,
        .size = s->policies.sizing->size(s->job, &c),
    };
    elv_roster_offer(row, &offer);
    s->round.asked[s->round.n_asked++] = c;
    s->round.written++;
    s->round.n_grants++;
    put_item(s, row, out);
    elv_core_put_round(s, out);
    elv_answers_push(&s->answers, &(struct elv_answer){.store = elv_core_token(s),
                                                       .kind = ELV_ANSWER_GRANT,
                                                       .row = i,
                                                       .assignment = row->offer.assignment});
}

static bool is_full(const struct elv_server *s)
{
    const struct elv_round *r = &s->round;
    return r->n_grants == ELV_GRANTS_MAX || r->n_asked == s->roster.cap ||
           elv_answers_room(&s->answers) <= ELV_ANSWERS_RESERVED;
}

struct elv_sync_grant elv_core_pull(struct elv_server *s, uint32_t row, struct elv_actions *out)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_core_view(s);
    struct elv_row *r = &s->roster.rows[row];
    const struct elv_sync_client c = {row, r->client};
    struct elv_sync_grant g = {ELV_SYNC_HOLD, 0};
    if (elv_core_is_survey(s) || (!s->round.stream && (is_full(s) || sync->on_pull == NULL)))
        return g;
    g = elv_drive_pull(sync, s->sync_state, &s->sync_cfg, &view, c, s->now);
    r->held = g.start == ELV_SYNC_HOLD;
    if (g.start == ELV_SYNC_START && s->round.stream)
        elv_core_give(s, row, out);
    else if (g.start == ELV_SYNC_START)
        grant(s, row, out);
    return g;
}

/* It was among the last. */
static void forget(struct elv_server *s, uint32_t row)
{
    struct elv_round *r = &s->round;
    uint32_t i = r->n_asked;
    while (i > 0 && r->asked[i - 1].row != row)
        i--;
    if (i == 0)
        return;
    memmove(&r->asked[i - 1], &r->asked[i], (r->n_asked - i) * sizeof *r->asked);
    r->n_asked--;
    r->written--;
}

void elv_core_granted(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out)
{
    struct elv_row *row = &s->roster.rows[a->row];
    if (row->offer.own) {
        elv_core_given(s, a, out);
        return;
    }
    if (row->offer.assignment != a->assignment || row->offer.seq != s->round.seq)
        return;
    if (a->state == ELV_ANSWER_FAILED) {
        row->offer.seq = 0; /* it may ask again */
        forget(s, a->row);
        return;
    }
    row->offer.promised = false;
    if (s->round.state != ELV_ROUND_OPEN)
        return;
    row->waiting = row->joined;
    s->round.n_waiting += row->waiting;
    elv_core_mark(s, a->row);
}
