/* SPDX-License-Identifier: Apache-2.0 */
/* The planner against the definition: of all choices of one moment per row the narrowest, and of
 * equally narrow ones that which ends first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "common/rng.h"
#include "server/zipline.h"

enum { BIG = 300 };

static uint64_t scratch[BIG * 24];

static bool plan(const struct elv_zip_row *rows, uint32_t n, elv_time_us after, uint32_t *at,
                 struct elv_zip_window *w)
{
    assert_true(elv_zip_scratch_len(n) <= sizeof scratch);
    return elv_zip_plan(rows, n, after, scratch, at, w);
}

static elv_time_us time_of(const struct elv_zip_row *r, uint32_t i)
{
    return r->next + (elv_time_us)i * r->interval;
}

static bool is_allowed(const struct elv_zip_row *r, uint32_t i, elv_time_us after)
{
    return i >= r->first && i < r->n && time_of(r, i) > after;
}

/* Every choice, one after the other, like the digits of a number. False: there is none. */
static bool by_trying(const struct elv_zip_row *rows, uint32_t n, elv_time_us after,
                      struct elv_zip_window *best)
{
    uint32_t i[8] = {0};
    bool found = false;
    for (uint32_t digit = 0; digit < n;) {
        struct elv_zip_window w = {INT64_MAX, INT64_MIN};
        bool fine = true;
        for (uint32_t k = 0; k < n; k++) {
            const elv_time_us t = time_of(&rows[k], i[k]);
            fine = fine && is_allowed(&rows[k], i[k], after);
            w.earliest = t < w.earliest ? t : w.earliest;
            w.latest = t > w.latest ? t : w.latest;
        }
        const elv_time_us width = w.latest - w.earliest, least = best->latest - best->earliest;
        if (fine && (!found || width < least || (width == least && w.latest < best->latest))) {
            *best = w;
            found = true;
        }
        for (digit = 0; digit < n && ++i[digit] >= rows[digit].n; digit++)
            i[digit] = 0;
    }
    return found;
}

static void assert_is_window(const struct elv_zip_row *rows, uint32_t n, elv_time_us after,
                             const uint32_t *at, struct elv_zip_window w)
{
    struct elv_zip_window of = {INT64_MAX, INT64_MIN};
    for (uint32_t k = 0; k < n; k++) {
        const elv_time_us t = time_of(&rows[k], at[k]);
        assert_true(is_allowed(&rows[k], at[k], after));
        of.earliest = t < of.earliest ? t : of.earliest;
        of.latest = t > of.latest ? t : of.latest;
    }
    assert_int_equal(of.earliest, w.earliest);
    assert_int_equal(of.latest, w.latest);
}

static void two_worked_examples_come_out_as_by_hand(void **state)
{
    (void)state;
    static const struct elv_zip_row a[] = {{0, 100, 0, 6}, {20, 150, 0, 4}, {10, 80, 0, 6}};
    static const struct elv_zip_row b[] = {{10, 40, 0, 8}, {25, 50, 0, 8}, {5, 30, 0, 8}};
    uint32_t at[3];
    struct elv_zip_window w;
    assert_true(plan(a, 3, -1, at, &w));
    assert_true(at[0] == 0 && at[1] == 0 && at[2] == 0);
    assert_true(w.latest == 20 && w.earliest == 0);
    assert_true(plan(b, 3, -1, at, &w));
    assert_true(at[0] == 3 && at[1] == 2 && at[2] == 4);
    assert_true(w.latest == 130 && w.earliest == 125);
}

static struct elv_zip_row random_row(struct elv_rng *r, uint32_t interval_max)
{
    const uint32_t n = 1 + elv_rng_below(r, 6);
    return (struct elv_zip_row){.next = (elv_time_us)elv_rng_below(r, 40) - 10,
                                .interval = 1 + (elv_time_us)elv_rng_below(r, interval_max),
                                .first = elv_rng_below(r, 3),
                                .n = n};
}

static void ten_thousand_small_instances_are_as_good_as_trying_everything(void **state)
{
    (void)state;
    uint32_t n_possible = 0;
    for (uint32_t seed = 1; seed <= 10000; seed++) {
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
        const uint32_t n = 1 + elv_rng_below(&r, 4), interval_max = 1 + elv_rng_below(&r, 60);
        struct elv_zip_row rows[4];
        for (uint32_t w = 0; w < n; w++)
            rows[w] = random_row(&r, interval_max);
        const elv_time_us after = (elv_time_us)elv_rng_below(&r, 40) - 20;
        uint32_t at[4];
        struct elv_zip_window ours, best = {0, 0};
        const bool possible = by_trying(rows, n, after, &best);
        assert_int_equal(plan(rows, n, after, at, &ours), possible);
        if (!possible)
            continue;
        n_possible++;
        assert_is_window(rows, n, after, at, ours);
        assert_int_equal(ours.latest, best.latest);
        assert_int_equal(ours.earliest, best.earliest);
    }
    assert_true(n_possible > 5000);
}

/* The same sweep without lists and digits: at each moment, in order, everybody's last. */
static elv_time_us by_looking_at_each_moment(const struct elv_zip_row *rows, uint32_t n,
                                             elv_time_us *latest)
{
    elv_time_us best = INT64_MAX;
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = rows[v].first; i < rows[v].n; i++) {
            const elv_time_us t = time_of(&rows[v], i);
            elv_time_us from = t;
            bool all = true;
            for (uint32_t w = 0; w < n; w++) {
                const elv_time_us past = t - rows[w].next;
                const elv_time_us k = past < 0 ? -1 : past / rows[w].interval;
                all = all && k >= (elv_time_us)rows[w].first;
                const uint32_t last = k < (elv_time_us)rows[w].n ? (uint32_t)k : rows[w].n - 1;
                from = all && time_of(&rows[w], last) < from ? time_of(&rows[w], last) : from;
            }
            if (all && (t - from < best || (t - from == best && t < *latest))) {
                best = t - from;
                *latest = t;
            }
        }
    return best;
}

/* Wide enough for many stretches and several digits; with all intervals equal, with intervals that
 * differ ten-thousandfold, and with whole groups at the same moment. */
static void large_instances_are_as_good_as_looking_at_every_moment(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, moments, interval_least, interval_most, starts;
    } rows[] = {
        {BIG, 20, 1000000, 1500000, 300000}, {BIG, 20, 1000, 1000, 1},
        {BIG, 10, 1000, 10000000, 1000},     {60, 100, 7, 7000, 50},
        {13, 200, 1000, 1500, 100},          {BIG, 20, 1000000, 1000000, 1000000},
    };
    static struct elv_zip_row at[BIG];
    uint32_t chosen[BIG];
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = k, .purpose = ELV_RNG_TEST});
        for (uint32_t w = 0; w < rows[k].n; w++)
            at[w] = (struct elv_zip_row){
                .next = elv_rng_below(&r, rows[k].starts),
                .interval = rows[k].interval_least +
                            elv_rng_below(&r, rows[k].interval_most - rows[k].interval_least + 1),
                .first = 1,
                .n = rows[k].moments};
        struct elv_zip_window w;
        elv_time_us latest = 0;
        const elv_time_us best = by_looking_at_each_moment(at, rows[k].n, &latest);
        assert_true(plan(at, rows[k].n, -1, chosen, &w));
        assert_is_window(at, rows[k].n, -1, chosen, w);
        assert_int_equal(w.latest - w.earliest, best);
        assert_int_equal(w.latest, latest);
    }
}

static void a_first_index_keeps_early_moments_out(void **state)
{
    (void)state;
    struct elv_zip_row rows[] = {{0, 100, 0, 9}, {0, 150, 0, 9}};
    uint32_t at[2];
    struct elv_zip_window w;
    assert_true(plan(rows, 2, -1, at, &w));
    assert_true(at[0] == 0 && at[1] == 0 && w.latest == 0);
    rows[0].first = rows[1].first = 1;
    assert_true(plan(rows, 2, -1, at, &w));
    assert_true(at[0] == 3 && at[1] == 2 && w.latest == 300);
}

static void the_past_cannot_be_chosen(void **state)
{
    (void)state;
    static const struct elv_zip_row rows[] = {{0, 100, 0, 9}, {0, 150, 0, 9}};
    uint32_t at[2] = {77, 77};
    struct elv_zip_window w = {5, 5};
    assert_true(plan(rows, 2, 299, at, &w));
    assert_int_equal(w.latest, 300);
    assert_true(plan(rows, 2, 300, at, &w)); /* 300 itself is past */
    assert_int_equal(w.latest, 600);
    assert_false(plan(rows, 2, 800, at, &w)); /* nothing of the first row is left */
    assert_int_equal(w.latest, 600);          /* and nothing was written */
    assert_false(plan(rows, 0, 0, at, &w));
}

static void one_row_takes_its_first_moment(void **state)
{
    (void)state;
    static const struct elv_zip_row row = {.next = 40, .interval = 7, .first = 2, .n = 5};
    uint32_t at;
    struct elv_zip_window w;
    assert_true(plan(&row, 1, 0, &at, &w));
    assert_int_equal(at, 2);
    assert_int_equal(w.latest, 54);
    assert_true(plan(&row, 1, 60, &at, &w));
    assert_int_equal(at, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_worked_examples_come_out_as_by_hand),
        cmocka_unit_test(ten_thousand_small_instances_are_as_good_as_trying_everything),
        cmocka_unit_test(large_instances_are_as_good_as_looking_at_every_moment),
        cmocka_unit_test(a_first_index_keeps_early_moments_out),
        cmocka_unit_test(the_past_cannot_be_chosen),
        cmocka_unit_test(one_row_takes_its_first_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
