/* SPDX-License-Identifier: Apache-2.0 */
/* Versions that somebody works on, the queue of those that want work, and what a version's updates
 * add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "server/kept.h"
#include "server/roster.h"
#include "server/tally.h"

static void add(struct elv_kepts *k, uint32_t version, uint32_t n_offers)
{
    const struct elv_kept v = {.version = version, .full.digest = {(uint8_t)version, 7}};
    elv_kept_add(k, &v);
    elv_kept_find(k, version)->n_offers = n_offers;
}

static void versions_are_found_by_number_and_by_body(void **state)
{
    (void)state;
    static struct elv_kepts k;
    k.n = 0;
    for (uint32_t v = 3; v < 9; v++)
        add(&k, v, 1);
    assert_int_equal(elv_kept_newest(&k)->version, 8);
    assert_null(elv_kept_find(&k, 2));
    const struct elv_kept *v = elv_kept_find(&k, 5);
    assert_ptr_equal(elv_kept_find_body(&k, elv_digest_key(v->full.digest)), v);
    elv_kept_remove(&k, elv_kept_find(&k, 5));
    assert_null(elv_kept_find(&k, 5));
    assert_int_equal(elv_kept_find(&k, 6)->version, 6);
    assert_int_equal(k.n, 5);
}

static void only_an_older_version_that_nobody_works_on_is_idle(void **state)
{
    (void)state;
    static struct elv_kepts k;
    k.n = 0;
    add(&k, 1, 0);
    assert_false(elv_kept_is_idle(&k, elv_kept_find(&k, 1)));
    add(&k, 2, 0);
    assert_true(elv_kept_is_idle(&k, elv_kept_find(&k, 1)));
    elv_kept_find(&k, 1)->n_used = 1;
    assert_false(elv_kept_is_idle(&k, elv_kept_find(&k, 1)));
}

static void beyond_64_in_use_the_oldest_expire(void **state)
{
    (void)state;
    static struct elv_kepts k;
    k.n = 0;
    for (uint32_t v = 1; v <= ELV_KEPT_MAX; v++)
        add(&k, v, 1);
    add(&k, 100, 1);
    assert_false(elv_kept_find(&k, 1)->expired);
    add(&k, 101, 0); /* 65 of those before it are in use */
    assert_true(elv_kept_find(&k, 1)->expired);
    assert_false(elv_kept_find(&k, 2)->expired);
    assert_true(elv_kept_has_room(&k));
    while (elv_kept_has_room(&k)) {
        const uint32_t next = elv_kept_newest(&k)->version + 1;
        elv_kept_find(&k, next - 1)->n_offers = 1;
        add(&k, next, 0);
    }
    assert_true(k.n <= ELV_KEPT_CAP);
}

static void who_wants_work_is_served_in_turn_and_once(void **state)
{
    (void)state;
    static _Alignas(ELV_ARENA_ALIGN) uint8_t mem[1 << 16];
    struct elv_arena a = elv_arena_of(mem, sizeof mem);
    struct elv_roster r;
    struct elv_row_queue q;
    elv_roster_layout(&r, &a, 4);
    elv_row_queue_layout(&q, &a, 4);
    assert_int_equal(a.err, ELV_OK);
    for (uint32_t client = 10; client < 14; client++)
        elv_roster_add(&r, client);
    for (uint32_t turn = 0; turn < 3; turn++) {
        elv_row_queue_push(&q, &r, 2);
        elv_row_queue_push(&q, &r, 0);
        elv_row_queue_push(&q, &r, 2);
        elv_row_queue_push(&q, &r, 3);
        assert_int_equal(q.n, 3);
        assert_int_equal(elv_row_queue_pop(&q, &r), 2);
        assert_int_equal(elv_row_queue_pop(&q, &r), 0);
        elv_row_queue_push(&q, &r, 2);
        assert_int_equal(elv_row_queue_pop(&q, &r), 3);
        assert_int_equal(elv_row_queue_pop(&q, &r), 2);
        assert_int_equal(q.n, 0);
    }
}

static void who_lapsed_is_joined_but_not_there(void **state)
{
    (void)state;
    static _Alignas(ELV_ARENA_ALIGN) uint8_t mem[1 << 16];
    struct elv_arena a = elv_arena_of(mem, sizeof mem);
    struct elv_roster r;
    elv_roster_layout(&r, &a, 2);
    const uint32_t row = elv_roster_add(&r, 5);
    elv_roster_set_joined(&r, row, true);
    elv_roster_set_lapsed(&r, row, true);
    elv_roster_set_lapsed(&r, row, true);
    assert_int_equal(r.n_joined, 1);
    assert_int_equal(elv_roster_there(&r), 0);
    elv_roster_set_joined(&r, row, false);
    assert_int_equal(r.n_joined, 0);
    assert_int_equal(elv_roster_there(&r), 0);
    elv_roster_set_joined(&r, row, true);
    assert_int_equal(elv_roster_there(&r), 1);
}

static void a_tally_divides_by_what_is_asked(void **state)
{
    (void)state;
    const struct elv_scales scales = {.value_bits = 20, .weight_bits = 4, .weight_cap = 100};
    struct elv_tally t = {0};
    const struct elv_tally_item items[] = {
        {.weight = 160,
         .claim = 10,
         .factor = 1.0,
         .effort = 1.0,
         .norm2 = 4.0,
         .rate = 0.5,
         .steps = 4,
         .seen = 10,
         .loss_sum = 5.0},
        {.weight = 40,
         .claim = 20,
         .factor = 0.5,
         .effort = 4.0,
         .norm2 = 8.0,
         .rate = 0.25,
         .steps = 4,
         .seen = 30,
         .staleness = 3,
         .loss_sum = 3.0},
        {.weight = 16, .claim = 5, .effort = 1.0, .rate = 0.5, .steps = 1}, /* of schema 1 */
    };
    for (size_t i = 0; i < 3; i++)
        elv_tally_add(&t, &scales, &items[i]);
    assert_int_equal(t.weight, 216);
    assert_int_equal(t.share, 160 + 160 + 16);
    assert_int_equal(t.claim, 160 + 320 + 16);
    const double effort = (160 + 4 * 320 + 16) / 496.0;
    struct elv_sync_scale by = {.by = ELV_SYNC_BY_USED, .step = 1.0};
    assert_true(elv_tally_gain(&t, &scales, &by, 0) == ldexp(effort / 336, -20));
    by.by = ELV_SYNC_BY_CLAIMED;
    assert_true(elv_tally_gain(&t, &scales, &by, 0) == ldexp(effort / 496, -20));
    by = (struct elv_sync_scale){.by = ELV_SYNC_BY_FLEET, .step = 0.5};
    assert_true(elv_tally_gain(&t, &scales, &by, 1000) == ldexp(0.5 * effort / 1000, -20));
    by = (struct elv_sync_scale){.step = 0.5, .mixes = true};
    assert_true(elv_tally_gain(&t, &scales, &by, 0) == 0.5 * elv_mean_gain(&scales, 216));
    struct elv_sync_commit c = {0};
    elv_tally_commit(&t, &c);
    assert_true(c.loss == 8.0 / 40);
    assert_true(c.norm2 == (160 * 4.0 + 40 * 8.0) / 200); /* where it is known */
    assert_true(c.rate == (2.0 + 1.0 + 0.5) / 3);
    assert_true(c.n_effective == 216.0 * 216.0 / (160 * 160 + 40 * 40 + 16 * 16));
    assert_true(elv_tally_staleness(&t) == 1.0);
}

static void without_updates_there_is_nothing_to_divide(void **state)
{
    (void)state;
    const struct elv_tally t = {0};
    struct elv_sync_commit c = {0};
    elv_tally_commit(&t, &c);
    assert_true(isnan(c.loss) && c.norm2 == 0 && c.rate == 0 && c.n_effective == 0);
    assert_true(elv_tally_staleness(&t) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_found_by_number_and_by_body),
        cmocka_unit_test(only_an_older_version_that_nobody_works_on_is_idle),
        cmocka_unit_test(beyond_64_in_use_the_oldest_expire),
        cmocka_unit_test(who_wants_work_is_served_in_turn_and_once),
        cmocka_unit_test(who_lapsed_is_joined_but_not_there),
        cmocka_unit_test(a_tally_divides_by_what_is_asked),
        cmocka_unit_test(without_updates_there_is_nothing_to_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
