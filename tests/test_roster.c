/* SPDX-License-Identifier: Apache-2.0 */
/* The small tables: clients, answers, notes, scores, and what a join may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/admit.h"
#include "server/answer.h"
#include "server/note.h"
#include "server/roster.h"

static void clients_are_found_by_number_and_walked_in_order(void **state)
{
    (void)state;
    enum { CAP = 1000 };
    struct elv_roster r;
    struct elv_arena a = elv_arena_of(NULL, 0);
    elv_roster_layout(&r, &a, CAP);
    void *block = aligned_alloc(ELV_ARENA_ALIGN, a.used);
    a = elv_arena_of(block, a.used);
    elv_roster_layout(&r, &a, CAP);
    for (uint32_t i = 0; i < CAP; i++) {
        const uint32_t client = i * 2654435761u | 1; /* in no order, also very large */
        assert_int_equal(elv_roster_find(&r, client), ELV_ROW_NONE);
        assert_int_equal(elv_roster_add(&r, client), i);
        assert_int_equal(elv_roster_add(&r, client), i);
    }
    assert_int_equal(elv_roster_add(&r, 2), ELV_ROW_NONE);
    for (uint32_t i = 0; i < CAP; i++)
        assert_int_equal(elv_roster_find(&r, r.rows[i].client), i);
    for (uint32_t i = 1; i < CAP; i++)
        assert_true(r.rows[r.order[i - 1]].client < r.rows[r.order[i]].client);
    elv_roster_set_joined(&r, 5, true);
    elv_roster_set_joined(&r, 5, true);
    elv_roster_set_joined(&r, 6, true);
    assert_int_equal(r.n_joined, 2);
    elv_roster_set_joined(&r, 5, false);
    assert_int_equal(r.n_joined, 1);
    free(block);
}

static void answers_leave_in_order_once_their_store_is_through(void **state)
{
    (void)state;
    struct elv_answer room[4], a;
    struct elv_answers q = {.at = room, .cap = 4};
    for (int turn = 0; turn < 5; turn++) { /* around the ring */
        for (uint32_t i = 0; i < 3; i++)
            elv_answers_push(&q, &(struct elv_answer){.store = 10 + i / 2, .request = i});
        assert_int_equal(elv_answers_room(&q), 1);
        assert_false(elv_answers_pop(&q, &a));
        elv_answers_stored(&q, 10, turn % 2 == 0);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(elv_answers_pop(&q, &a));
            assert_int_equal(a.request, i);
            assert_int_equal(a.state, turn % 2 == 0 ? ELV_ANSWER_STORED : ELV_ANSWER_FAILED);
        }
        assert_false(elv_answers_pop(&q, &a));
        elv_answers_stored(&q, 11, true);
        assert_true(elv_answers_pop(&q, &a));
        assert_int_equal(q.n, 0);
        assert_int_equal(q.n_done, 0);
    }
}

static void notes_that_nobody_read_in_time_leave_a_gap_in_the_numbers(void **state)
{
    (void)state;
    static struct elv_notes n;
    uint64_t seen = 0, want = 1;
    const struct elv_note *note;
    for (uint32_t i = 0; i < 10; i++)
        elv_note_add(&n, ELV_NOTE_JOINED, i)->client = i;
    while ((note = elv_note_next(&n, &seen)) != NULL)
        assert_int_equal(note->number, want++);
    assert_int_equal(want, 11);
    for (uint32_t i = 0; i < ELV_NOTES_KEPT + 5; i++)
        elv_note_add(&n, ELV_NOTE_LEFT, i);
    note = elv_note_next(&n, &seen);
    assert_int_equal(note->number, 16);
    assert_int_equal(note->kind, ELV_NOTE_LEFT);
    assert_string_equal(elv_note_name(ELV_NOTE_ROUND_CLOSED), "round_closed");
}

static void scores_are_means_of_sums(void **state)
{
    (void)state;
    struct elv_score s;
    const struct elv_eval_sums sums = {.n = 10,
                                       .loss = 5.0,
                                       .n_classes = 3, /* the third occurs nowhere */
                                       .support = {8, 2, 0},
                                       .predicted = {6, 4, 0},
                                       .correct = {6, 2, 0}};
    elv_score_of(&sums, &s);
    assert_true(fabs(s.loss - 0.5) < 1e-12);
    assert_true(fabs(s.accuracy - 0.8) < 1e-12);
    assert_true(fabs(s.balanced_accuracy - (0.75 + 1.0) / 2) < 1e-12);
    assert_true(fabs(s.macro_f1 - (12.0 / 14 + 4.0 / 6) / 2) < 1e-12);
    const struct elv_eval_sums none = {0};
    elv_score_of(&none, &s);
    assert_true(isnan(s.loss) && isnan(s.accuracy) && isnan(s.macro_f1));
    const struct elv_eval_sums no_classes = {.n = 4, .loss = 2.0};
    elv_score_of(&no_classes, &s);
    assert_true(s.loss == 0.5 && isnan(s.accuracy));
}

static void evaluation_sums_add_up_and_do_not_wrap(void **state)
{
    (void)state;
    struct elv_eval_sums a = {.n = UINT32_MAX - 1, .loss = 1.0, .n_classes = 1, .support = {5}};
    const struct elv_eval_sums b = {.n = 3, .loss = 2.0, .n_classes = 2, .support = {1, 7}};
    elv_eval_add(&a, &b);
    assert_int_equal(a.n, UINT32_MAX);
    assert_true(a.loss == 3.0);
    assert_int_equal(a.n_classes, 2);
    assert_int_equal(a.support[0], 6);
    assert_int_equal(a.support[1], 7);
}

static void software_is_compared_by_its_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *software, *least;
        bool old;
    } rows[] = {
        {"elver/0.1.0", "", false},
        {"elver/0.1.0", "elver/0.1.0", false},
        {"elver/0.1.10", "elver/0.1.9", false},
        {"elver/0.1.9", "elver/0.1.10", true},
        {"elver/0.0.99", "elver/0.1.0", true},
        {"elver/1", "elver/0.9.9", false},
        {"elver/0.1.0-rc1", "elver/0.1.0", false},
        {"elver", "elver/0.1.0", true},
        {"other/9.9.9", "elver/0.1.0", true},
        {"", "elver/0.1.0", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            elv_software_is_old((struct elv_text){rows[i].software, strlen(rows[i].software)},
                                (struct elv_text){rows[i].least, strlen(rows[i].least)}),
            rows[i].old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_found_by_number_and_walked_in_order),
        cmocka_unit_test(answers_leave_in_order_once_their_store_is_through),
        cmocka_unit_test(notes_that_nobody_read_in_time_leave_a_gap_in_the_numbers),
        cmocka_unit_test(scores_are_means_of_sums),
        cmocka_unit_test(evaluation_sums_add_up_and_do_not_wrap),
        cmocka_unit_test(software_is_compared_by_its_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
