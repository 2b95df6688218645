/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds always end, whoever comes, goes, fails or keeps silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server_world.h"

static const elv_time_us second = 1000000;

static void start(struct world *w, uint32_t peers, const char *quorum)
{
    char n[2] = {(char)('0' + peers), '\0'};
    world_init(w);
    world_set(w, "job", "rounds", "5");
    world_set(w, "select", "min_clients", n);
    world_set(w, "sync", "quorum", quorum);
    world_start(w);
    for (uint32_t peer = 1; peer <= peers; peer++)
        world_join(w, peer);
}

static const struct elv_server_stats *stats(const struct world *w)
{
    return elv_server_stats(w->s);
}

static void a_round_closes_at_its_deadline_with_the_quorum(void **state)
{
    (void)state;
    struct world w;
    start(&w, 3, "2");
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    world_advance(&w, 30 * second - 1);
    assert_int_equal(stats(&w)->version, 0);
    world_advance(&w, 1);
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_late, 1);
    assert_int_equal(stats(&w)->worst_overrun, 0);
    world_free(&w);
}

static void below_the_quorum_it_is_abandoned_and_opens_again_after_a_pause(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t, again;
    start(&w, 3, "2");
    world_ticket(&w, 1, &t);
    assert_true(world_contribute(&w, 1));
    world_advance(&w, 30 * second);
    assert_int_equal(stats(&w)->version, 0);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    assert_false(stats(&w)->round_open);
    assert_null(fake_disk_log(&w.disk, 1));
    world_advance(&w, second);
    assert_true(stats(&w)->round_open);
    assert_true(world_ticket(&w, 1, &again));
    assert_int_equal(again.what, ELV_WHAT_TRAIN);
    assert_int_equal(again.version, 0);
    assert_true(again.assignment > t.assignment && again.round > t.round);
    assert_memory_equal(again.model, t.model, 32);
    world_advance(&w, 30 * second); /* nobody: twice as long a pause */
    assert_int_equal(stats(&w)->rounds_abandoned, 2);
    world_advance(&w, 2 * second - 1);
    assert_false(stats(&w)->round_open);
    world_advance(&w, 1);
    assert_true(stats(&w)->round_open);
    for (uint32_t peer = 1; peer <= 3; peer++)
        assert_true(world_contribute(&w, peer));
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void an_abandoned_rounds_updates_are_not_in_the_next_version(void **state)
{
    (void)state;
    struct world w, plain;
    start(&w, 2, "2");
    assert_true(world_contribute(&w, 2));
    world_advance(&w, 31 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    start(&plain, 2, "2");
    for (uint32_t peer = 1; peer <= 2; peer++) {
        assert_true(world_contribute(&w, peer));
        assert_true(world_contribute(&plain, peer));
    }
    assert_int_equal(stats(&w)->version, 1);
    assert_memory_equal(stats(&w)->model, stats(&plain)->model, 32);
    world_free(&w);
    world_free(&plain);
}

static void who_leaves_is_not_waited_for(void **state)
{
    (void)state;
    struct world w;
    start(&w, 3, "1");
    assert_true(world_contribute(&w, 1));
    world_leave(&w, 2);
    assert_int_equal(stats(&w)->version, 0);
    world_leave(&w, 3);
    assert_int_equal(stats(&w)->version, 1);
    world_leave(&w, 3); /* again: the same answer */
    assert_int_equal(stats(&w)->n_joined, 1);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(stats(&w)->version, 2);
    world_free(&w);
}

static void who_comes_back_is_asked_again(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    start(&w, 2, "1");
    world_leave(&w, 2);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(stats(&w)->version, 1);
    world_join(&w, 2);
    world_ticket(&w, 2, &t);
    assert_int_equal(t.what, ELV_WHAT_WAIT); /* version 1's round was opened without it */
    assert_true(world_contribute(&w, 1));
    world_ticket(&w, 2, &t);
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    world_free(&w);
}

static void everybody_leaving_abandons_at_once_and_the_next_waits_for_somebody(void **state)
{
    (void)state;
    struct world w;
    start(&w, 2, "1");
    world_leave(&w, 1);
    world_leave(&w, 2);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    world_advance(&w, 100 * second);
    assert_int_equal(stats(&w)->rounds_opened, 1);
    world_join(&w, 1);
    assert_int_equal(stats(&w)->rounds_opened, 2);
    assert_true(world_contribute(&w, 1));
    world_free(&w);
}

static void revoked_clients_lose_what_they_sent_by_half(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "1");
    assert_true(world_make(&w, &u, 2, 5));
    world_put(&w, &u, 0);
    assert_int_equal(stats(&w)->n_uploads, 1);
    struct elv_event ev = {.kind = ELV_EV_GONE, .peer = 2};
    world_event(&w, &ev);
    world_settle(&w);
    assert_int_equal(stats(&w)->n_uploads, 0);
    assert_int_equal(stats(&w)->n_joined, 1);
    assert_int_equal(world_notes(&w, ELV_NOTE_REVOKED), 1);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(stats(&w)->version, 1);
    ev.peer = 77; /* nobody we know */
    world_event(&w, &ev);
    world_free(&w);
}

/* What is appended to a log whose end is being made durable would bring it back. */
static void nothing_is_added_to_the_log_of_a_round_that_is_being_dropped(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "2");
    assert_true(world_make(&w, &u, 2, 5));
    world_put(&w, &u, 0);
    w.hold_stores = true;
    world_advance(&w, 30 * second); /* below the quorum */
    assert_int_equal(w.s->round.state, ELV_ROUND_DROPPING);
    struct elv_event ev = {.kind = ELV_EV_GONE, .peer = 2};
    world_event(&w, &ev);
    for (uint32_t i = 0; i < w.out.n; i++)
        assert_false(w.out.at[i].kind == ELV_DO_STORE &&
                     w.out.at[i].store.kind == ELV_STORE_APPEND);
    assert_int_equal(stats(&w)->n_uploads, 0);
    w.hold_stores = false;
    world_settle(&w);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    world_free(&w);
}

static void a_commit_under_verification_of_a_revoked_client_does_not_count(void **state)
{
    (void)state;
    struct world w;
    enum elv_reason reason = ELV_REASON_NONE;
    start(&w, 2, "1");
    struct upload u;
    assert_true(world_make(&w, &u, 2, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    const struct world_reply *r = world_commit(&w, &u);
    assert_false(r->there);
    struct elv_event ev = {.kind = ELV_EV_GONE, .peer = 2};
    world_event(&w, &ev);
    w.hold_computes = false;
    world_settle(&w);
    assert_int_equal(world_verdict(r, &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_REVOKED);
    world_free(&w);
}

static void a_commit_still_under_verification_when_the_round_closes_is_too_late(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "1");
    assert_true(world_contribute(&w, 1));
    assert_true(world_make(&w, &u, 2, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    const struct world_reply *r = world_commit(&w, &u);
    world_advance(&w, 30 * second); /* the deadline, with the quorum */
    assert_false(r->there);
    w.hold_computes = false;
    world_settle(&w);
    assert_true(world_refused(r, ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED));
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_used, 1);
    world_free(&w);
}

static struct elv_commit give_up(enum elv_status status, enum elv_reason reason)
{
    return (struct elv_commit){.status = status, .reason = reason, .nonce = 9};
}

static void declines_and_failures_free_the_barrier(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    struct upload u = {0};
    start(&w, 3, "1");
    world_ticket(&w, 2, &t);
    u.assignment = t.assignment;
    u.peer = 2;
    u.commit = give_up(ELV_STATUS_DECLINED, ELV_REASON_BUSY);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    world_ticket(&w, 2, &t);
    assert_int_equal(t.what, ELV_WHAT_WAIT);
    u.peer = 3;
    u.commit = give_up(ELV_STATUS_FAILED, ELV_REASON_TRAINER);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_used, 1);
    assert_int_equal(stats(&w)->updates_declined, 1);
    assert_int_equal(stats(&w)->updates_failed, 1);
    world_free(&w);
}

static void when_everybody_declines_the_round_is_given_up_at_once(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    struct upload u = {0};
    start(&w, 1, "1");
    world_ticket(&w, 1, &t);
    u.assignment = t.assignment;
    u.peer = 1;
    u.commit = give_up(ELV_STATUS_DECLINED, ELV_REASON_NO_DATA);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    world_advance(&w, second);
    assert_true(world_contribute(&w, 1));
    world_free(&w);
}

static void an_older_process_on_the_same_identity_is_kept_out(void **state)
{
    (void)state;
    struct world w;
    start(&w, 1, "1");
    struct elv_join join = world_join_of(&w, 1);
    const uint64_t first = join.boot;
    join.boot = 5555; /* it was restarted */
    assert_int_equal(world_join_as(&w, 1, &join)->code, ELV_CODE_CHANGED);
    join.boot = first; /* and yet the old one is still there */
    assert_true(
        world_refused(world_join_as(&w, 1, &join), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    assert_int_equal(stats(&w)->twins, 1);
    assert_int_equal(world_notes(&w, ELV_NOTE_TWIN), 1);
    world_advance(&w, 61 * second);
    assert_int_equal(world_join_as(&w, 1, &join)->code, ELV_CODE_CHANGED);
    world_free(&w);
}

static void two_requests_for_one_decision_get_the_same_answer(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 1, "1");
    assert_true(world_make(&w, &u, 1, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_computes = true;
    const struct world_reply *a = world_commit(&w, &u);
    const struct world_reply *b = world_commit(&w, &u);
    const struct world_reply *c = world_commit(&w, &u);
    assert_true(world_refused(a, ELV_CODE_UNAVAILABLE, ELV_REASON_FULL)); /* two can wait */
    assert_false(b->there);
    w.hold_computes = false;
    world_settle(&w);
    assert_int_equal(world_verdict(b, NULL), ELV_ACCEPTED);
    assert_int_equal(world_verdict(c, NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->updates_used, 1);
    world_free(&w);
}

static void a_client_that_joins_over_and_over_leaves_room_for_the_others(void **state)
{
    (void)state;
    struct world w;
    start(&w, 1, "1");
    w.hold_stores = true;
    const struct elv_join join = world_join_of(&w, 9);
    const struct world_reply *reply[6];
    for (int i = 0; i < 6; i++)
        reply[i] = world_join_as(&w, 9, &join);
    assert_false(reply[3]->there);
    assert_true(world_refused(reply[4], ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    assert_true(world_refused(reply[5], ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    const struct elv_join other = world_join_of(&w, 8);
    const struct world_reply *r = world_join_as(&w, 8, &other);
    assert_false(r->there);
    w.hold_stores = false;
    world_settle(&w);
    assert_int_equal(reply[3]->code, ELV_CODE_CHANGED);
    assert_int_equal(r->code, ELV_CODE_CHANGED);
    for (int i = 0; i < 20; i++) { /* who waits for the answer may ask as often as it likes */
        assert_int_equal(world_join_as(&w, 9, &join)->code, ELV_CODE_CHANGED);
        world_leave(&w, 9);
    }
    world_free(&w);
}

static void nothing_is_acknowledged_before_it_is_durable(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 1, "1");
    w.hold_stores = true;
    const struct elv_join join = world_join_of(&w, 9);
    const struct world_reply *joined = world_join_as(&w, 9, &join);
    assert_false(joined->there);
    assert_true(world_refused(world_ask(&w, 9, &(struct elv_request){.op = ELV_OP_TICKET}),
                              ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED));
    assert_true(world_make(&w, &u, 1, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    const struct world_reply *r = world_commit(&w, &u);
    assert_false(r->there);
    assert_int_equal(stats(&w)->version, 0);
    w.hold_stores = false;
    world_settle(&w);
    assert_true(joined->there);
    assert_int_equal(world_verdict(r, NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void a_decision_that_cannot_be_stored_is_not_acknowledged_until_it_is(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "1");
    assert_true(world_make(&w, &u, 1, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.disk.fail = 1;
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    assert_int_equal(stats(&w)->store_failures, 1);
    world_advance(&w, second); /* tried again */
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_int_equal(stats(&w)->updates_used, 1);
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void a_version_that_cannot_be_stored_is_stored_later(void **state)
{
    (void)state;
    struct world w;
    start(&w, 1, "1");
    for (uint32_t fail = 1; fail <= 3; fail++) {
        const uint32_t version = stats(&w)->version;
        struct upload u;
        assert_true(world_make(&w, &u, 1, 5));
        for (uint32_t i = 0; i < u.n_chunks; i++)
            world_put(&w, &u, i);
        w.hold_stores = true;
        const struct world_reply *r = world_commit(&w, &u);
        fake_disk_flush(&w.disk); /* the decision is durable, what comes next is not */
        w.disk.fail = fail;
        w.hold_stores = false;
        world_settle(&w);
        assert_int_equal(world_verdict(r, NULL), ELV_ACCEPTED);
        assert_int_equal(stats(&w)->version, version);
        world_advance(&w, (elv_time_us)fail * second);
        assert_int_equal(stats(&w)->version, version + 1);
        world_advance(&w, 2 * second);
    }
    world_free(&w);
}

static void a_join_or_leave_that_cannot_be_stored_has_not_happened(void **state)
{
    (void)state;
    struct world w;
    start(&w, 2, "1");
    w.disk.fail = 1;
    const struct elv_join join = world_join_of(&w, 3);
    assert_true(
        world_refused(world_join_as(&w, 3, &join), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    assert_int_equal(stats(&w)->n_joined, 2);
    w.disk.fail = 1;
    assert_true(world_refused(world_ask(&w, 2, &(struct elv_request){.op = ELV_OP_LEAVE}),
                              ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    assert_int_equal(stats(&w)->n_joined, 2);
    world_join(&w, 3);
    world_leave(&w, 2);
    world_free(&w);
}

static void a_full_disk_costs_what_was_on_its_way_and_nothing_acknowledged(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "1");
    assert_true(world_contribute(&w, 1));
    assert_true(world_make(&w, &u, 2, 5));
    world_put(&w, &u, 0);
    w.disk.drop_appends = true;
    for (uint32_t i = 1; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    w.disk.drop_appends = false;
    world_advance(&w, 10 * second);
    assert_int_equal(stats(&w)->version, 1); /* with the update that was acknowledged */
    assert_int_equal(stats(&w)->updates_used, 1);
    assert_true(stats(&w)->store_failures > 0);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 2);
    world_free(&w);
}

/* Peer 1 is acknowledged, and a round needs both. */
static void acknowledge_one_of_two(struct world *w)
{
    start(w, 2, "2");
    assert_true(world_contribute(w, 1));
}

static void a_disk_full_for_long_costs_no_round_in_which_somebody_was_acknowledged(void **state)
{
    (void)state;
    struct world w;
    acknowledge_one_of_two(&w);
    w.disk.drop_appends = true;
    assert_false(world_contribute(&w, 2));
    world_advance(&w, 20 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 0);
    assert_false(world_contribute(&w, 2));
    w.disk.drop_appends = false;
    world_advance(&w, 2 * second);
    assert_true(world_attempt(&w, 2, 2));
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_used, 2);

    assert_true(world_contribute(&w, 1)); /* but the deadline ends it */
    w.disk.drop_appends = true;
    assert_false(world_contribute(&w, 2));
    world_advance(&w, 31 * second);
    w.disk.drop_appends = false;
    world_advance(&w, 5 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 1);
    world_free(&w);
}

static void a_ledger_full_for_long_costs_no_round_in_which_somebody_was_acknowledged(void **state)
{
    (void)state;
    struct world w;
    acknowledge_one_of_two(&w);
    w.disk.fail = 1000000;
    assert_false(world_contribute(&w, 2));
    world_advance(&w, 20 * second);
    w.disk.fail = 0;
    world_advance(&w, 2 * second);
    assert_int_equal(stats(&w)->rounds_abandoned, 0);
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_used, 2);
    world_free(&w);
}

static void nobody_relies_on_the_end_of_a_round_given_up_until_it_is_durable(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "2");
    assert_true(world_make(&w, &u, 1, 5));
    w.disk.fail = 1000000;
    w.disk.drop_appends = true;
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    world_commit(&w, &u);
    world_advance(&w, 5 * second); /* nobody was acknowledged: the round is given up */
    assert_true(w.s->round.state > ELV_ROUND_OPEN);
    assert_true(world_refused(world_put(&w, &u, 0), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    world_crash(&w, false);
    w.disk.fail = 0;
    w.disk.drop_appends = false;
    world_start(&w);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void a_log_with_holes_is_measured_again_and_clients_send_again(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 2, "1");
    assert_true(world_contribute(&w, 1));
    assert_true(world_make(&w, &u, 2, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    fake_disk_log(&w.disk, 1)->len -= 700; /* bytes nobody had synced */
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    world_advance(&w, second);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_MISSING);
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 1);
    assert_int_equal(stats(&w)->updates_used, 2);
    world_free(&w);
}

static void after_a_hole_in_the_log_everybodys_staged_chunks_are_missing(void **state)
{
    (void)state;
    struct world w;
    struct upload u[2];
    start(&w, 2, "1");
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(world_make(&w, &u[i], i + 1, 5));
        for (uint32_t k = 0; k < u[i].n_chunks; k++)
            world_put(&w, &u[i], k);
    }
    fake_disk_log(&w.disk, 1)->len -= 700;
    assert_true(world_refused(world_commit(&w, &u[1]), ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE));
    world_advance(&w, second);
    assert_int_equal(stats(&w)->n_uploads, 0);
    assert_int_equal(world_verdict(world_commit(&w, &u[0]), NULL), ELV_MISSING);
    world_crash(&w, true); /* the log says so, too */
    world_start(&w);
    assert_int_equal(world_verdict(world_commit(&w, &u[0]), NULL), ELV_MISSING);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void no_round_opens_on_a_version_that_could_not_be_stored(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    start(&w, 1, "1");
    assert_true(world_make(&w, &u, 1, 5));
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    w.hold_work = ELV_WORK_MAKE;
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    world_leave(&w, 1); /* so the next round is not written down with the version */
    w.disk.fail = 1;
    w.hold_work = (enum elv_server_work)0;
    world_settle(&w);
    assert_int_equal(stats(&w)->version, 0);
    world_join(&w, 2);
    assert_int_equal(w.s->round.state, ELV_ROUND_NONE);
    world_crash(&w, true);
    world_start(&w); /* the round it closed is still there, and closes again */
    assert_int_equal(stats(&w)->version, 1);
    assert_true(world_contribute(&w, 2));
    assert_int_equal(stats(&w)->version, 2);
    world_free(&w);
}

static void a_round_written_down_in_part_is_written_again(void **state)
{
    (void)state;
    enum { N = 2500 }; /* ten records, four per step */
    struct world w;
    world_init(&w);
    w.cfg.limits.clients_max = N + 1;
    world_set(&w, "select", "min_clients", "2500");
    world_start(&w);
    for (uint32_t peer = 1; peer <= N; peer++)
        world_join(&w, peer);
    world_advance(&w, 30 * second); /* abandoned: the next opens in a second */
    w.hold_stores = true;
    w.now += second;
    struct elv_event tick = {.kind = ELV_EV_TICK};
    world_event(&w, &tick);
    assert_int_equal(w.s->round.state, ELV_ROUND_OPENING);
    assert_int_equal(w.s->round.n_blocks, 4);
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    const struct elv_join join = world_join_of(&w, N + 1);
    assert_int_equal(elv_join_encode(&join, body, sizeof body, &len), ELV_OK);
    w.disk.fail = 1; /* the first four records, and with them the join that asks to be told */
    struct elv_event ev = {.kind = ELV_EV_REQUEST,
                           .peer = N + 1,
                           .id = 500,
                           .request = {.op = ELV_OP_JOIN, .body = {body, len}}};
    w.replies[500].there = false;
    world_event(&w, &ev);
    fake_disk_flush(&w.disk);
    w.hold_stores = false;
    world_advance(&w, 2 * second);
    assert_true(stats(&w)->round_open);
    world_crash(&w, true);
    world_start(&w);
    assert_true(stats(&w)->round_open);
    assert_int_equal(w.s->round.n_asked, N);
    world_free(&w);
}

static void an_orderly_stop_stores_how_much_of_the_deadline_is_used(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    start(&w, 1, "1");
    world_advance(&w, 20400000);
    struct elv_event ev = {.kind = ELV_EV_STOP};
    world_event(&w, &ev);
    world_settle(&w);
    assert_true(w.ended);
    assert_int_equal(w.exit_code, 0);
    world_crash(&w, false);
    world_start(&w);
    world_ticket(&w, 1, &t);
    assert_in_range(t.deadline_ms, 9590, 9601);
    world_free(&w);
}

static void thousands_are_asked_a_few_hundred_per_step(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    w.cfg.limits.clients_max = N;
    world_set(&w, "select", "min_clients", "3000");
    world_start(&w);
    for (uint32_t peer = N; peer >= 1; peer--)
        world_join(&w, peer);
    assert_int_equal(stats(&w)->rounds_opened, 1);
    assert_int_equal(w.s->round.n_asked, N);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(w.s->round.asked[i].client, i + 1);
    world_crash(&w, true);
    world_start(&w);
    assert_int_equal(w.s->round.n_waiting, N);
    assert_true(world_ticket(&w, 1234, &t));
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    assert_int_equal(t.window, 1); /* all of them share what the server can take at once */
    assert_true(world_contribute(&w, 2999));
    world_advance(&w, 31 * second);
    assert_int_equal(stats(&w)->version, 1);
    world_free(&w);
}

static void selection_asks_as_many_as_the_job_says(void **state)
{
    (void)state;
    struct world w;
    uint32_t n = 0;
    world_init(&w);
    world_set(&w, "select", "min_clients", "8");
    world_set(&w, "select", "count", "3");
    world_start(&w);
    for (uint32_t peer = 1; peer <= 8; peer++)
        world_join(&w, peer);
    for (uint32_t peer = 1; peer <= 8; peer++) {
        struct elv_ticket t;
        world_ticket(&w, peer, &t);
        n += t.what == ELV_WHAT_TRAIN;
    }
    assert_int_equal(n, 3);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_closes_at_its_deadline_with_the_quorum),
        cmocka_unit_test(below_the_quorum_it_is_abandoned_and_opens_again_after_a_pause),
        cmocka_unit_test(an_abandoned_rounds_updates_are_not_in_the_next_version),
        cmocka_unit_test(who_leaves_is_not_waited_for),
        cmocka_unit_test(who_comes_back_is_asked_again),
        cmocka_unit_test(everybody_leaving_abandons_at_once_and_the_next_waits_for_somebody),
        cmocka_unit_test(revoked_clients_lose_what_they_sent_by_half),
        cmocka_unit_test(nothing_is_added_to_the_log_of_a_round_that_is_being_dropped),
        cmocka_unit_test(a_commit_under_verification_of_a_revoked_client_does_not_count),
        cmocka_unit_test(a_commit_still_under_verification_when_the_round_closes_is_too_late),
        cmocka_unit_test(declines_and_failures_free_the_barrier),
        cmocka_unit_test(when_everybody_declines_the_round_is_given_up_at_once),
        cmocka_unit_test(an_older_process_on_the_same_identity_is_kept_out),
        cmocka_unit_test(two_requests_for_one_decision_get_the_same_answer),
        cmocka_unit_test(a_client_that_joins_over_and_over_leaves_room_for_the_others),
        cmocka_unit_test(nothing_is_acknowledged_before_it_is_durable),
        cmocka_unit_test(a_decision_that_cannot_be_stored_is_not_acknowledged_until_it_is),
        cmocka_unit_test(a_version_that_cannot_be_stored_is_stored_later),
        cmocka_unit_test(a_join_or_leave_that_cannot_be_stored_has_not_happened),
        cmocka_unit_test(a_full_disk_costs_what_was_on_its_way_and_nothing_acknowledged),
        cmocka_unit_test(a_disk_full_for_long_costs_no_round_in_which_somebody_was_acknowledged),
        cmocka_unit_test(a_ledger_full_for_long_costs_no_round_in_which_somebody_was_acknowledged),
        cmocka_unit_test(nobody_relies_on_the_end_of_a_round_given_up_until_it_is_durable),
        cmocka_unit_test(a_log_with_holes_is_measured_again_and_clients_send_again),
        cmocka_unit_test(after_a_hole_in_the_log_everybodys_staged_chunks_are_missing),
        cmocka_unit_test(no_round_opens_on_a_version_that_could_not_be_stored),
        cmocka_unit_test(a_round_written_down_in_part_is_written_again),
        cmocka_unit_test(an_orderly_stop_stores_how_much_of_the_deadline_is_used),
        cmocka_unit_test(thousands_are_asked_a_few_hundred_per_step),
        cmocka_unit_test(selection_asks_as_many_as_the_job_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
