/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of clients against the plainest model of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "common/rng.h"
#include "server/clocks.h"
#include "server/sample.h"

static struct elv_clocks *fresh(uint32_t clients_max, uint32_t bound)
{
    void *state = calloc(1, elv_clocks_len(clients_max));
    assert_non_null(state);
    return elv_clocks_of(state, bound);
}

static struct elv_sync_client who(uint32_t row)
{
    return (struct elv_sync_client){.row = row, .client = 100 + row};
}

static void a_newcomer_starts_with_the_slowest(void **state)
{
    (void)state;
    struct elv_clocks *c = fresh(3, 3);
    elv_clocks_tick(c, who(0), 1);
    elv_clocks_tick(c, who(0), 2);
    assert_int_equal(elv_clocks_value(c, 0), 2);
    elv_clocks_enter(c, who(1), 3);
    assert_int_equal(elv_clocks_value(c, 1), 2);
    assert_true(elv_clocks_leads(c, 0) && elv_clocks_leads(c, 1));
    elv_clocks_tick(c, who(0), 4);
    assert_int_equal(elv_clocks_ahead(c, 0), 1);
    assert_false(elv_clocks_leads(c, 1));
    elv_clocks_leave(c, 0);
    elv_clocks_leave(c, 1);
    assert_false(elv_clocks_has(c, 0));
    elv_clocks_enter(c, who(2), 5); /* nobody is left: where they were */
    assert_int_equal(elv_clocks_value(c, 2), 2);
    assert_int_equal(elv_clocks_ahead(c, 2), 0);
    free(c);
}

static void the_parked_are_freed_as_the_slowest_moves_on_or_goes(void **state)
{
    (void)state;
    for (int goes = 0; goes < 2; goes++) {
        struct elv_clocks *c = fresh(3, 1);
        struct elv_sync_client next;
        elv_clocks_enter(c, who(2), 0);
        for (uint32_t i = 0; i < 4; i++)
            elv_clocks_tick(c, who(i % 2), 0);
        elv_clocks_park(c, 0);
        elv_clocks_park(c, 1);
        elv_clocks_park(c, 0);
        assert_false(elv_clocks_next(c, &next, 0));
        if (goes)
            elv_clocks_leave(c, 2);
        else
            elv_clocks_tick(c, who(2), 0);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(elv_clocks_next(c, &next, 0));
            assert_int_equal(next.row, i);
            assert_int_equal(next.client, 100 + i);
        }
        assert_false(elv_clocks_next(c, &next, 0));
        free(c);
    }
}

static void whoever_runs_and_does_not_deliver_counts_no_more(void **state)
{
    (void)state;
    struct elv_clocks *c = fresh(3, 0);
    struct elv_sync_client next;
    uint32_t row;
    assert_int_equal(elv_clocks_silent_at(c, 100), ELV_NEVER);
    elv_clocks_enter(c, who(0), 10);
    elv_clocks_enter(c, who(1), 20);
    elv_clocks_tick(c, who(1), 30);
    elv_clocks_park(c, 1);
    assert_int_equal(elv_clocks_silent_at(c, 100), 110);
    assert_int_equal(elv_clocks_silent_at(c, ELV_NEVER), ELV_NEVER);
    assert_true(elv_clocks_enter(c, who(0), 40)); /* it asks again: that is no work done */
    elv_clocks_resume(c, 0, 40);
    assert_int_equal(elv_clocks_silent_at(c, 100), 110);
    assert_false(elv_clocks_drop_silent(c, 100, 109, &row));
    assert_true(elv_clocks_drop_silent(c, 100, 110, &row));
    assert_int_equal(row, 0);
    assert_false(
        elv_clocks_drop_silent(c, 100, 1000, &row)); /* the parked are waited for by none */
    assert_true(elv_clocks_next(c, &next, 150));
    assert_int_equal(next.row, 1);
    assert_int_equal(elv_clocks_silent_at(c, 100), 250);
    free(c);
}

static void whoever_delivered_nothing_counts_again_once_it_does(void **state)
{
    (void)state;
    struct elv_clocks *c = fresh(2, 0);
    uint32_t row;
    for (int leaves = 0; leaves < 2; leaves++) {
        assert_true(elv_clocks_enter(c, who(0), 10));
        if (leaves)
            elv_clocks_leave(c, 0);
        else
            assert_true(elv_clocks_drop_silent(c, 100, 110, &row));
        for (int i = 0; i < 3; i++)
            assert_false(elv_clocks_enter(c, who(0), 120));
        assert_false(elv_clocks_has(c, 0));
        elv_clocks_tick(c, who(0), 130);
        assert_true(elv_clocks_has(c, 0));
        elv_clocks_leave(c, 0); /* it may come back by asking: once */
    }
    free(c);
}

static void a_newcomer_holds_up_nobody_who_waits_already(void **state)
{
    (void)state;
    struct elv_clocks *c = fresh(3, 0);
    struct elv_sync_client next;
    assert_true(elv_clocks_enter(c, who(0), 1));
    assert_true(elv_clocks_enter(c, who(1), 1));
    elv_clocks_tick(c, who(0), 2);
    elv_clocks_park(c, 0);
    assert_false(elv_clocks_enter(c, who(2), 3));
    elv_clocks_tick(c, who(1), 4);
    assert_true(elv_clocks_next(c, &next, 4));
    assert_int_equal(next.row, 0);
    assert_true(elv_clocks_enter(c, who(2), 5));
    assert_int_equal(elv_clocks_value(c, 2), 1);
    free(c);
}

/* The same by counting: nothing is linked, everything is looked for. */
struct plain {
    bool has, parked, owes;
    uint32_t value;
    elv_time_us heard;
};

enum { N = 12 };

static uint32_t least_of(const struct plain *p, uint32_t otherwise)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < N; i++)
        if (p[i].has && p[i].value < least)
            least = p[i].value;
    return least == UINT32_MAX ? otherwise : least;
}

static void compare(struct elv_clocks *c, const struct plain *p, uint32_t min, uint32_t bound)
{
    uint32_t most = 0, row;
    elv_time_us oldest = ELV_NEVER;
    bool slow_runs = false;
    for (uint32_t i = 0; i < N; i++) {
        most = p[i].has && p[i].value > most ? p[i].value : most;
        if (p[i].has && !p[i].parked && p[i].heard < oldest)
            oldest = p[i].heard;
        slow_runs = slow_runs || (p[i].has && !p[i].parked && p[i].value == min);
    }
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(elv_clocks_has(c, i), p[i].has);
        if (!p[i].has)
            continue;
        assert_int_equal(elv_clocks_value(c, i), p[i].value);
        assert_int_equal(elv_clocks_ahead(c, i), p[i].value - min);
        assert_int_equal(elv_clocks_leads(c, i), p[i].value == most);
        assert_int_equal(elv_clocks_is_parked(c, i), p[i].parked);
        assert_true(!p[i].parked || p[i].value - min > bound);
    }
    assert_int_equal(elv_clocks_silent_at(c, 0), oldest);
    assert_int_equal(elv_clocks_slowest(c, &row), slow_runs);
    assert_true(!slow_runs || (p[row].value == min && !p[row].parked));
}

static bool any_parked(const struct plain *p)
{
    bool any = false;
    for (uint32_t i = 0; i < N; i++)
        any = any || p[i].parked;
    return any;
}

static void disturb(struct elv_clocks *c, struct plain *p, uint32_t row, uint32_t what,
                    elv_time_us now, uint32_t min, uint32_t bound)
{
    struct plain *one = &p[row];
    if (what < 5) { /* delivers */
        if (one->parked)
            return;
        one->value = (one->has ? one->value : min) + 1;
        one->has = true;
        one->owes = false;
        one->heard = now;
        elv_clocks_tick(c, who(row), now);
    } else if (what < 8) { /* asks */
        if (!one->has && !one->owes && !any_parked(p)) {
            one->value = min;
            one->has = one->owes = true;
            one->heard = now;
        }
        assert_int_equal(elv_clocks_enter(c, who(row), now), one->has);
        if (one->has && one->value - min > bound) {
            elv_clocks_park(c, row);
            one->parked = true;
        }
    } else if (what < 9 || !one->parked) {
        elv_clocks_leave(c, row);
        *one = (struct plain){.owes = one->owes};
    } else {
        elv_clocks_resume(c, row, now);
        one->parked = false;
        one->heard = now;
    }
}

static void clocks_agree_with_counting_them(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 300; seed++) {
        const uint32_t bound = seed % 5;
        struct elv_rng rng =
            elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
        struct elv_clocks *c = fresh(N, bound);
        struct plain p[N] = {{0}};
        uint32_t min = 0;
        for (elv_time_us now = 1; now < 400; now++) {
            struct elv_sync_client next;
            /* Some deliver more often than others, so that the clocks spread. */
            uint32_t row = elv_rng_below(&rng, N);
            row = row < elv_rng_below(&rng, N) ? 0 : row;
            disturb(c, p, row, elv_rng_below(&rng, 10), now, min, bound);
            min = least_of(p, min);
            while (elv_clocks_next(c, &next, now)) {
                assert_true(p[next.row].parked && p[next.row].value - min <= bound);
                p[next.row].parked = false;
                p[next.row].heard = now;
            }
            compare(c, p, min, bound);
        }
        free(c);
    }
}

static void a_sample_holds_different_ones_and_everybody_alike(void **state)
{
    (void)state;
    enum { MOST = 70, DRAWS = 3000 };
    for (uint32_t n = 1; n <= MOST; n++) {
        bool seen[MOST] = {false};
        struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = n, .purpose = ELV_RNG_TEST});
        const struct elv_sample s = elv_sample_of(n, &rng);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t at = elv_sample_at(&s, i);
            assert_true(at < n && !seen[at]);
            seen[at] = true;
        }
    }
    uint32_t times[50] = {0}, together[50] = {0};
    for (uint32_t k = 0; k < DRAWS; k++) {
        struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = 1, .client = k});
        const struct elv_sample s = elv_sample_of(50, &rng);
        bool has_first = false;
        for (uint32_t i = 0; i < 5; i++)
            has_first = has_first || elv_sample_at(&s, i) == 0;
        for (uint32_t i = 0; i < 5; i++) {
            times[elv_sample_at(&s, i)]++;
            together[elv_sample_at(&s, i)] += has_first;
        }
    }
    for (uint32_t i = 0; i < 50; i++) {
        assert_in_range(times[i], 220, 380); /* 300 expected, standard deviation 16 */
        if (i > 0)
            assert_in_range(together[i], 5, 50); /* 24.5, 5 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_starts_with_the_slowest),
        cmocka_unit_test(the_parked_are_freed_as_the_slowest_moves_on_or_goes),
        cmocka_unit_test(whoever_runs_and_does_not_deliver_counts_no_more),
        cmocka_unit_test(whoever_delivered_nothing_counts_again_once_it_does),
        cmocka_unit_test(a_newcomer_holds_up_nobody_who_waits_already),
        cmocka_unit_test(clocks_agree_with_counting_them),
        cmocka_unit_test(a_sample_holds_different_ones_and_everybody_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
