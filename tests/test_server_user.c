/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that clients give names of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/server_world.h"

static void start(struct world *w, const char *rounds)
{
    world_init(w);
    world_set(w, "job", "rounds", rounds);
    world_set(w, "select", "min_clients", "3");
    world_start(w);
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(w, peer);
}

/* A whole contribution whose commit names sums. */
static enum elv_decision contribute(struct world *w, uint32_t peer, const struct elv_user_sum *sums,
                                    uint32_t n)
{
    struct elv_ticket t;
    static float v[1020];
    static struct upload u;
    assert_true(world_ticket(w, peer, &t));
    world_update(w, peer, &t, v);
    world_encode(w, &u, peer, &t, v, t.assignment);
    for (uint32_t i = 0; i < n; i++)
        u.commit.user[i] = sums[i];
    u.commit.n_user = n;
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(w, &u, i);
    return world_verdict(world_commit(w, &u), NULL);
}

static struct elv_user_sum sum(const char *name, double value)
{
    return (struct elv_user_sum){.name = {name, strlen(name)}, .value = value};
}

static const struct elv_user_totals *totals(const struct world *w, enum elv_note_kind kind)
{
    static struct elv_note found;
    const struct elv_note *n;
    uint64_t seen = 0;
    found.number = 0;
    while ((n = elv_note_next(&w->s->notes, &seen)) != NULL)
        if (n->kind == kind)
            found = *n;
    assert_true(found.number > 0);
    return &found.report.user;
}

static void a_rounds_report_holds_them_added_up_by_name(void **state)
{
    (void)state;
    struct world w;
    start(&w, "2");
    const struct elv_user_sum first[] = {sum("tokens", 10), sum("skipped", 1)};
    const struct elv_user_sum second[] = {sum("tokens", 2.5)};
    const struct elv_user_sum third[] = {sum("token", 7)};
    assert_int_equal(contribute(&w, 1, first, 2), ELV_ACCEPTED);
    assert_int_equal(contribute(&w, 2, second, 1), ELV_ACCEPTED);
    assert_int_equal(contribute(&w, 3, third, 1), ELV_ACCEPTED);
    const struct elv_user_totals *u = totals(&w, ELV_NOTE_ROUND_CLOSED);
    assert_int_equal(u->n, 3);
    assert_string_equal(u->at[0].name, "tokens");
    assert_true(u->at[0].value == 12.5);
    assert_string_equal(u->at[1].name, "skipped");
    assert_true(u->at[1].value == 1);
    assert_string_equal(u->at[2].name, "token");
    assert_true(u->at[2].value == 7);

    for (uint32_t peer = 1; peer <= 3; peer++) /* the next round starts from nothing */
        assert_int_equal(contribute(&w, peer, second, peer == 2), ELV_ACCEPTED);
    u = totals(&w, ELV_NOTE_ROUND_CLOSED);
    assert_int_equal(u->n, 1);
    assert_true(u->at[0].value == 2.5);
    world_free(&w);
}

static void a_round_has_places_for_eight_names_and_counts_the_others(void **state)
{
    (void)state;
    struct world w;
    struct elv_user_sum sums[3][ELV_USER_SUMS_MAX];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                        "i", "j", "k", "l", "m", "n", "o", "p"};
    start(&w, "1");
    for (uint32_t i = 0; i < ELV_USER_SUMS_MAX; i++) {
        sums[0][i] = sum(names[i], 1);
        sums[1][i] = sum(names[i + 6], 10); /* two known ones among them */
        sums[2][i] = sum("sixteen_letters_", 1);
    }
    for (uint32_t peer = 1; peer <= 3; peer++)
        assert_int_equal(contribute(&w, peer, sums[peer - 1], ELV_USER_SUMS_MAX), ELV_ACCEPTED);
    const struct elv_user_totals *u = totals(&w, ELV_NOTE_ROUND_CLOSED);
    assert_int_equal(u->n, ELV_USER_SUMS_MAX);
    for (uint32_t i = 0; i < ELV_USER_SUMS_MAX; i++) {
        assert_string_equal(u->at[i].name, names[i]);
        assert_true(u->at[i].value == (i < 6 ? 1 : 11));
    }
    assert_int_equal(u->n_left_out, 7); /* i to n, and the long one, once in its commit */
    world_free(&w);
}

static void a_name_that_is_none_refuses_the_commit(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    start(&w, "1");
    assert_true(world_ticket(&w, 1, &t));
    struct elv_commit commit = {.status = ELV_STATUS_FAILED, .reason = ELV_REASON_TRAINER};
    commit.user[0] = sum("qqqq", 1);
    commit.n_user = 1;
    assert_int_equal(elv_commit_encode(&commit, body, sizeof body, &len), ELV_OK);
    for (size_t i = 0; i < len; i++)
        if (body[i] == 'q')
            body[i] = '"';
    const struct world_reply *r =
        world_ask(&w, 1,
                  &(struct elv_request){
                      .op = ELV_OP_COMMIT, .assignment = t.assignment, .body = {body, len}});
    assert_true(world_refused(r, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED));
    world_free(&w);
}

static void they_come_back_after_a_restart_and_only_accepted_ones_count(void **state)
{
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct world w;
        start(&w, "1");
        const struct elv_user_sum sums[] = {sum("tokens", 10), sum("skipped", 1)};
        assert_int_equal(contribute(&w, 2, sums, 2), ELV_ACCEPTED);
        world_crash(&w, power != 0);
        world_start(&w);
        assert_int_equal(contribute(&w, 3, sums, 1), ELV_ACCEPTED);
        struct elv_event gone = {.kind = ELV_EV_GONE, .peer = 1};
        world_event(&w, &gone);
        world_settle(&w);
        const struct elv_user_totals *u = totals(&w, ELV_NOTE_ROUND_CLOSED);
        assert_int_equal(u->n, 2);
        assert_true(u->at[0].value == 20);
        assert_true(u->at[1].value == 1);
        world_free(&w);
    }
}

static void those_of_an_evaluation_are_told_with_its_score(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    world_init(&w);
    world_set(&w, "job", "rounds", "1");
    world_set(&w, "eval", "on", "clients");
    world_set(&w, "eval", "every", "1");
    world_start(&w);
    world_join(&w, 1);
    assert_true(world_contribute(&w, 1));
    assert_true(world_ticket(&w, 1, &t));
    assert_int_equal(t.what, ELV_WHAT_EVALUATE);
    struct elv_commit commit = {.status = ELV_STATUS_DONE, .n_user = 1};
    commit.user[0] = sum("confusing", 3);
    world_sums(&commit.eval, 10, 5);
    assert_int_equal(elv_commit_encode(&commit, body, sizeof body, &len), ELV_OK);
    world_ask(&w, 1,
              &(struct elv_request){
                  .op = ELV_OP_COMMIT, .assignment = t.assignment, .body = {body, len}});
    assert_true(w.ended);
    assert_int_equal(totals(&w, ELV_NOTE_ROUND_CLOSED)->n, 0);
    assert_string_equal(totals(&w, ELV_NOTE_CLIENTS_EVALUATED)->at[0].name, "confusing");
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rounds_report_holds_them_added_up_by_name),
        cmocka_unit_test(a_round_has_places_for_eight_names_and_counts_the_others),
        cmocka_unit_test(a_name_that_is_none_refuses_the_commit),
        cmocka_unit_test(they_come_back_after_a_restart_and_only_accepted_ones_count),
        cmocka_unit_test(those_of_an_evaluation_are_told_with_its_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
