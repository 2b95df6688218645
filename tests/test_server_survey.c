/* SPDX-License-Identifier: Apache-2.0 */
/* The clients evaluate the last version, and then the job is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/server_world.h"

static const elv_time_us second = 1000000;

/* `n` clients; the last version is the first. */
static void prepare(struct world *w, uint32_t n, const char *on, const char *target)
{
    const char count[2] = {(char)('0' + n), '\0'};
    world_init(w);
    world_set(w, "job", "rounds", "1");
    world_set(w, "select", "min_clients", count);
    world_set(w, "eval", "every", "1");
    world_set(w, "eval", "on", on);
    if (target)
        world_set(w, "job", "target_accuracy", target);
    if (*on != 'c') {
        world_set(w, "data", "test", "idx /nowhere");
        world_add_scorer(w);
    }
    world_start(w);
    for (uint32_t peer = 1; peer <= n; peer++)
        world_join(w, peer);
}

/* And all have trained. */
static void start(struct world *w, uint32_t n, const char *on, const char *target)
{
    prepare(w, n, on, target);
    world_leave(w, n); /* who comes back afterwards is asked, too */
    for (uint32_t peer = 1; peer < n; peer++)
        assert_true(world_contribute(w, peer));
    assert_int_equal(elv_server_stats(w->s)->version, 1);
}

static const struct elv_note *last_note(const struct world *w, enum elv_note_kind kind)
{
    static struct elv_note found;
    const struct elv_note *n;
    uint64_t seen = 0;
    found.number = 0;
    while ((n = elv_note_next(&w->s->notes, &seen)) != NULL)
        if (n->kind == kind)
            found = *n;
    return found.number > 0 ? &found : NULL;
}

static void the_last_version_is_evaluated_by_all_who_are_there(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t, again;
    start(&w, 4, "clients", NULL);
    assert_false(w.ended);
    assert_true(world_ticket(&w, 1, &t));
    assert_int_equal(t.what, ELV_WHAT_EVALUATE);
    assert_int_equal(t.version, 1);
    assert_memory_equal(t.model, elv_server_stats(w.s)->model, sizeof t.model);
    assert_int_equal(t.full.n_chunks, 5);
    assert_true(t.deadline_ms > 29000 && t.deadline_ms <= 30001);
    assert_true(world_ticket(&w, 1, &again));
    assert_int_equal(t.assignment, again.assignment);
    world_join(&w, 4); /* too late for this one */
    assert_true(world_ticket(&w, 4, &again));
    assert_int_equal(again.what, ELV_WHAT_WAIT);

    assert_true(world_evaluate(&w, 1, 10, 5));
    assert_true(world_evaluate(&w, 2, 20, 20));
    assert_false(w.ended);
    assert_true(world_evaluate(&w, 3, 10, 5));
    assert_true(w.ended);
    assert_int_equal(w.exit_code, 0);

    const struct elv_note *note = last_note(&w, ELV_NOTE_CLIENTS_EVALUATED);
    assert_non_null(note);
    assert_int_equal(note->version, 1);
    assert_int_equal(note->score.n, 40);
    assert_true(note->score.accuracy == 0.75);
    assert_true(note->number < last_note(&w, ELV_NOTE_OVER)->number);
    const struct elv_server_stats *stats = elv_server_stats(w.s);
    assert_int_equal(stats->evaluations, 3);
    assert_int_equal(stats->updates_used, 3);
    assert_int_equal(stats->rounds_opened, 1);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.what, ELV_WHAT_STOP);
    world_free(&w);
}

static void only_those_who_can_answer_are_waited_for(void **state)
{
    (void)state;
    struct world w;
    start(&w, 6, "clients", NULL);
    assert_true(world_decline(&w, 1, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA));
    assert_true(world_decline(&w, 2, ELV_STATUS_FAILED, ELV_REASON_TRAINER));
    world_leave(&w, 3);
    struct elv_event gone = {.kind = ELV_EV_GONE, .peer = 4};
    world_event(&w, &gone);
    world_settle(&w);
    assert_false(w.ended);
    assert_true(world_evaluate(&w, 5, 10, 9));
    assert_true(w.ended);
    assert_true(last_note(&w, ELV_NOTE_CLIENTS_EVALUATED)->score.accuracy == 0.9);
    assert_int_equal(elv_server_stats(w.s)->updates_declined, 0); /* they were no updates */
    assert_int_equal(elv_server_stats(w.s)->updates_failed, 0);
    world_free(&w);
}

static void the_deadline_ends_it_with_whatever_is_there(void **state)
{
    (void)state;
    for (uint32_t answers = 0; answers < 2; answers++) {
        struct world w;
        struct elv_ticket t;
        start(&w, 3, "clients", NULL);
        assert_true(world_ticket(&w, 2, &t));
        if (answers > 0)
            assert_true(world_evaluate(&w, 1, 10, 9));
        world_advance(&w, 29 * second);
        assert_false(w.ended);
        world_advance(&w, second);
        assert_true(w.ended);
        assert_int_equal(last_note(&w, ELV_NOTE_CLIENTS_EVALUATED) != NULL, answers > 0);
        assert_false(world_decline(&w, 2, ELV_STATUS_DECLINED, ELV_REASON_BUSY));
        assert_int_equal(elv_server_stats(w.s)->updates_late, 0);
        world_free(&w);
    }
}

static void with_nobody_there_nobody_is_asked(void **state)
{
    (void)state;
    struct world w;
    prepare(&w, 1, "clients", NULL);
    w.halt_storing = true;
    assert_false(world_contribute(&w, 1) && w.ended);
    w.halt_storing = false;
    struct elv_event gone = {.kind = ELV_EV_GONE, .peer = 1};
    world_event(&w, &gone);
    world_settle(&w);
    assert_true(w.ended);
    assert_int_equal(world_notes(&w, ELV_NOTE_EVALUATION_OPENED), 0);
    world_free(&w);
}

static void a_restart_goes_on_where_it_was_and_ends_the_same(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct world w;
        struct elv_ticket t, again;
        start(&w, 4, "clients", "0.7");
        assert_true(world_ticket(&w, 2, &t));
        assert_true(world_evaluate(&w, 1, 10, 5));
        world_advance(&w, 20 * second);
        world_crash(&w, power != 0);
        world_start(&w);
        assert_true(world_ticket(&w, 1, &again));
        assert_int_equal(again.what, ELV_WHAT_WAIT);
        assert_true(world_ticket(&w, 2, &again));
        assert_int_equal(again.what, ELV_WHAT_EVALUATE);
        assert_int_equal(again.assignment, t.assignment);
        assert_true(again.deadline_ms > 9000 && again.deadline_ms <= 11001);
        assert_true(world_evaluate(&w, 2, 20, 20));
        world_advance(&w, 8 * second);
        assert_false(w.ended);
        world_advance(&w, 3 * second); /* client 3 never comes */
        assert_true(w.ended);
        assert_int_equal(w.exit_code, 0);
        const struct elv_note *note = last_note(&w, ELV_NOTE_CLIENTS_EVALUATED);
        assert_int_equal(note->score.n, 30);
        assert_true(note->score.accuracy == 25.0 / 30.0);
        world_crash(&w, true);
        world_start(&w); /* once is enough */
        assert_true(w.ended);
        assert_int_equal(world_notes(&w, ELV_NOTE_EVALUATION_OPENED), 0);
        world_free(&w);
    }
}

static void a_crash_at_any_request_changes_nothing(void **state)
{
    (void)state;
    for (uint32_t at = 1; at <= 12; at++) {
        struct world w;
        start(&w, 4, "clients", NULL);
        w.requests_left = at;
        for (uint32_t peer = 1; peer < 4; peer++) {
            const bool accepted = !w.disk.dead && world_evaluate(&w, peer, 10 * peer, peer);
            if (!w.disk.dead)
                assert_true(accepted);
            if (!w.disk.dead)
                continue;
            world_crash(&w, at % 2 == 0);
            w.requests_left = 0;
            world_start(&w);
            peer = 0;
            while (peer < 3 && !w.ended) {
                struct elv_ticket t;
                peer++;
                world_ticket(&w, peer, &t);
                if (t.what == ELV_WHAT_EVALUATE)
                    assert_true(world_evaluate(&w, peer, 10 * peer, peer));
            }
        }
        assert_true(w.ended);
        const struct elv_note *note = last_note(&w, ELV_NOTE_CLIENTS_EVALUATED);
        assert_int_equal(note->score.n, 60);
        assert_true(note->score.accuracy == 0.1);
        world_free(&w);
    }
}

static void a_target_is_theirs_to_decide_without_a_test_set(void **state)
{
    (void)state;
    static const struct {
        const char *on;
        uint32_t right;  /* of 100, say the clients */
        double accuracy; /* says the server's test set */
        uint32_t exit_code;
    } cases[] = {
        {"clients", 80, 0.0, 0},
        {"clients", 79, 0.0, 3},
        {"both", 100, 0.79, 3},
        {"both", 0, 0.8, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        prepare(&w, 1, cases[i].on, "0.8");
        w.accuracy[1] = cases[i].accuracy;
        assert_true(world_contribute(&w, 1));
        assert_true(world_evaluate(&w, 1, 100, cases[i].right));
        assert_true(w.ended);
        assert_int_equal(w.exit_code, cases[i].exit_code);
        world_crash(&w, true);
        world_start(&w);
        assert_int_equal(w.exit_code, cases[i].exit_code);
        world_free(&w);
    }
}

static void the_servers_own_evaluation_runs_beside_it(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct world w;
        prepare(&w, 1, "both", "0.8");
        w.accuracy[1] = 0.9;
        w.hold_work = ELV_WORK_EVALUATE;
        assert_true(world_contribute(&w, 1));
        if (first)
            assert_true(world_evaluate(&w, 1, 10, 1));
        assert_false(w.ended);
        w.hold_work = (enum elv_server_work)0;
        world_settle(&w); /* reaches the target, which ends no survey */
        assert_int_equal(w.ended, first);
        if (!first)
            assert_true(world_evaluate(&w, 1, 10, 1));
        assert_true(w.ended);
        assert_true(elv_server_stats(w.s)->target_reached);
        assert_non_null(last_note(&w, ELV_NOTE_CLIENTS_EVALUATED));
        assert_int_equal(world_notes(&w, ELV_NOTE_ROUND_ABANDONED), 0);
        world_free(&w);
    }
}

static void chunks_and_commits_that_name_chunks_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float v[1020];
    static struct upload u;
    start(&w, 2, "clients", NULL);
    assert_true(world_ticket(&w, 1, &t));
    world_update(&w, 1, &t, v);
    t.up.id = ELV_CODEC_F32;
    world_encode(&w, &u, 1, &t, v, 9);
    assert_true(world_refused(world_put(&w, &u, 0), ELV_CODE_BAD_REQUEST, ELV_REASON_WRONG_SHAPE));
    assert_true(world_refused(world_commit(&w, &u), ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED));
    assert_int_equal(elv_server_stats(w.s)->log_bytes, 0);
    assert_true(world_evaluate(&w, 1, 10, 10));
    assert_true(w.ended);
    world_free(&w);
}

static void what_the_disk_refuses_is_stored_later(void **state)
{
    (void)state;
    struct world w;
    start(&w, 3, "clients", NULL);
    assert_true(world_evaluate(&w, 1, 10, 5));
    w.disk.fail = 2; /* the answer, and the end */
    assert_false(world_evaluate(&w, 2, 10, 10));
    world_advance(&w, 10 * second);
    assert_true(w.ended);
    assert_true(last_note(&w, ELV_NOTE_CLIENTS_EVALUATED)->score.accuracy == 0.75);
    world_free(&w);
}

static void more_rounds_may_follow_and_the_new_last_version_is_evaluated(void **state)
{
    (void)state;
    struct world w;
    start(&w, 2, "clients", NULL);
    world_crash(&w, true);
    world_set(&w, "job", "rounds", "2"); /* while version 1 is being evaluated */
    world_start(&w);
    assert_true(world_evaluate(&w, 1, 10, 1));
    assert_false(w.ended);
    assert_true(world_contribute(&w, 1));
    assert_true(world_evaluate(&w, 1, 10, 2));
    assert_true(w.ended);
    assert_int_equal(last_note(&w, ELV_NOTE_CLIENTS_EVALUATED)->version, 2);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_version_is_evaluated_by_all_who_are_there),
        cmocka_unit_test(only_those_who_can_answer_are_waited_for),
        cmocka_unit_test(the_deadline_ends_it_with_whatever_is_there),
        cmocka_unit_test(with_nobody_there_nobody_is_asked),
        cmocka_unit_test(a_restart_goes_on_where_it_was_and_ends_the_same),
        cmocka_unit_test(a_crash_at_any_request_changes_nothing),
        cmocka_unit_test(a_target_is_theirs_to_decide_without_a_test_set),
        cmocka_unit_test(the_servers_own_evaluation_runs_beside_it),
        cmocka_unit_test(chunks_and_commits_that_name_chunks_are_refused),
        cmocka_unit_test(what_the_disk_refuses_is_stored_later),
        cmocka_unit_test(more_rounds_may_follow_and_the_new_last_version_is_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
