/* SPDX-License-Identifier: Apache-2.0 */
/* Who in a stream may start: the policy is asked for those that want work, and asked for more.
 *
 * Clients without work come to the queue when their update has been decided, when they ask for a
 * ticket, and, if the policy leaves it to them to ask again, when a version was published. A
 * bounded number per step is served, and only while a round is open: so whoever delivered the last
 * update of a version starts from the next. */
#include "common/rng.h"
#include "server/core.h"

enum { GIVEN_PER_STEP = 32, TRIES = 16 };

void elv_core_want(struct elv_server *s, uint32_t row)
{
    if (elv_core_streams(s))
        elv_row_queue_push(&s->wants, &s->roster, row);
}

bool elv_core_is_idle(const struct elv_server *s, uint32_t row)
{
    const struct elv_row *r = &s->roster.rows[row];
    return r->joined && !r->lapsed && !r->waiting;
}

bool elv_core_hands_out(const struct elv_server *s)
{
    return s->round.stream && s->round.state == ELV_ROUND_OPEN && !s->stopping &&
           !elv_core_is_finished(s) && elv_answers_room(&s->answers) > ELV_ANSWERS_RESERVED;
}

static bool is_free(const struct elv_server *s, uint32_t row)
{
    return elv_core_is_idle(s, row) && !s->roster.rows[row].last_failed;
}

/* True: there was one. */
static bool serve_queue(struct elv_server *s, struct elv_actions *out)
{
    if (s->wants.n == 0)
        return false;
    const uint32_t row = elv_row_queue_pop(&s->wants, &s->roster);
    if (is_free(s, row))
        elv_core_pull(s, row, out);
    return true;
}

/* Any of those without work, each with the same chance; named by the number of the work. In a large
 * fleet most are, and a few tries find one; where few are, all are looked through. */
static uint32_t pick(const struct elv_server *s)
{
    const uint32_t all = s->roster.n;
    uint32_t n = 0;
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){
        .seed = s->job->seed, .round = s->head.next_assignment, .purpose = ELV_RNG_SELECT});
    for (uint32_t i = 0; i < TRIES && all > 0; i++) {
        const uint32_t row = s->roster.order[elv_rng_below(&rng, all)];
        if (is_free(s, row))
            return row;
    }
    for (uint32_t row = 0; row < all; row++)
        n += is_free(s, row);
    uint32_t left = n > 0 ? elv_rng_below(&rng, n) : 0;
    for (uint32_t i = 0; i < all && n > 0; i++) {
        const uint32_t row = s->roster.order[i];
        if (is_free(s, row) && left-- == 0)
            return row;
    }
    return ELV_ROW_NONE;
}

static bool fill_room(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_core_view(s);
    if (sync->room == NULL || view.n_waiting >= view.n_joined || /* nobody is without work */
        sync->room(s->sync_state, &s->sync_cfg, &view) == 0)
        return false;
    const uint32_t row = pick(s);
    if (row != ELV_ROW_NONE)
        elv_core_give(s, row, out);
    return row != ELV_ROW_NONE;
}

static bool release_held(struct elv_server *s, struct elv_actions *out)
{
    const struct elv_sync *sync = s->policies.sync;
    const struct elv_sync_round view = elv_core_view(s);
    struct elv_sync_client c;
    if (sync->next == NULL || !sync->next(s->sync_state, &s->sync_cfg, &view, &c, s->now))
        return false;
    if (c.row < s->roster.n && elv_core_is_idle(s, c.row))
        elv_core_give(s, c.row, out);
    return true;
}

void elv_core_hand_out(struct elv_server *s, struct elv_actions *out)
{
    uint32_t left = GIVEN_PER_STEP;
    while (left > 0 && elv_core_hands_out(s) && serve_queue(s, out))
        left--;
    while (left > 0 && elv_core_hands_out(s) && fill_room(s, out))
        left--;
    while (left > 0 && elv_core_hands_out(s) && release_held(s, out))
        left--;
    s->hand_again = left == 0 && elv_core_hands_out(s);
}

/* Those the policy held may ask again; without it being asked, only who asks by itself would. */
void elv_core_want_again(struct elv_server *s)
{
    const struct elv_sync *sync = s->policies.sync;
    if (sync->next || sync->room)
        return;
    for (uint32_t i = 0; i < s->roster.n; i++)
        if (elv_core_is_idle(s, s->roster.order[i]) && s->roster.rows[s->roster.order[i]].held)
            elv_core_want(s, s->roster.order[i]);
}
