/* SPDX-License-Identifier: Apache-2.0 */
/* The table of times: what was seen, what must hold, and the least squares between the two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "common/rng.h"
#include "server/time_table.h"

enum { UPPER_MAX = 256, SIDE_MAX = 4 };

static struct elv_time_table *new_table(uint32_t clients, bool by_k)
{
    struct elv_time_table *t = calloc(1, elv_time_table_len(clients, by_k));
    assert_non_null(t);
    elv_time_table_init(t, clients, by_k);
    return t;
}

static void add(struct elv_time_table *t, uint32_t h, uint32_t k, double time, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        elv_time_table_add(t, h, k, time);
}

static void assert_near(double a, double b, double by)
{
    if (!(fabs(a - b) <= by))
        fail_msg("%.9g is not %.9g", a, b);
}

static void assert_ordered(const struct elv_time_table *t, uint32_t n)
{
    for (uint32_t h = 1; h <= n; h++)
        for (uint32_t k = 1; k <= n; k++) {
            const double here = elv_time_table_at(t, h, k);
            assert_true(k == n || elv_time_table_at(t, h, k + 1) >= here);
            assert_true(h == n || elv_time_table_at(t, h + 1, k) <= here);
        }
}

static void times_in_order_are_their_own_estimate(void **state)
{
    (void)state;
    enum { N = 6 };
    struct elv_time_table *t = new_table(N, false);
    assert_true(elv_time_table_is_empty(t));
    for (uint32_t h = 1; h <= N; h++)
        for (uint32_t k = 1; k <= N; k++)
            add(t, h, k, 10.0 * k - h, h + k);
    assert_false(elv_time_table_is_empty(t));
    elv_time_table_fit(t);
    for (uint32_t h = 1; h <= N; h++)
        for (uint32_t k = 1; k <= N; k++)
            assert_near(elv_time_table_at(t, h, k), 10.0 * k - h, 1e-9);
    free(t);
}

/* Each row is what was seen in three cells of a row, and the estimates. */
static void times_out_of_order_meet_at_their_weighted_mean(void **state)
{
    (void)state;
    static const struct {
        double seen[3];
        uint32_t times[3];
        double fit[3];
    } rows[] = {
        {{1, 2, 3}, {1, 1, 1}, {1, 2, 3}},
        {{3, 1, 5}, {1, 1, 1}, {2, 2, 5}},
        {{3, 1, 5}, {3, 1, 1}, {2.5, 2.5, 5}}, /* three times 3 and once 1 */
        {{4, 4, 1}, {1, 1, 1}, {3, 3, 3}},     /* all of them */
        {{9, 1, 2}, {1, 9, 9}, {1.8, 1.8, 2}},
        {{5, 0, 7}, {2, 0, 2}, {5, 6, 7}}, /* never seen: the mean of all */
        {{5, 0, 4}, {1, 0, 1}, {4.5, 4.5, 4.5}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_time_table *t = new_table(3, true);
        for (uint32_t k = 1; k <= 3; k++)
            add(t, 1, k, rows[i].seen[k - 1], rows[i].times[k - 1]);
        elv_time_table_fit(t);
        for (uint32_t k = 1; k <= 3; k++)
            assert_near(elv_time_table_at(t, 3, k), rows[i].fit[k - 1], 1e-5);
        free(t);
    }
}

/* All cells of a small table, as the bits that are true in a set of them. */
struct small {
    uint32_t rows, cols;
    double value[SIDE_MAX * SIDE_MAX], weight[SIDE_MAX * SIDE_MAX];
    uint32_t upper[UPPER_MAX]; /* sets that hold, with a cell, all that must be no less */
    uint32_t n_upper;
};

/* A cell (h, k) forces (h, k + 1) and (h - 1, k). */
static bool is_upper(const struct small *s, uint32_t set)
{
    for (uint32_t h = 0; h < s->rows; h++)
        for (uint32_t k = 0; k < s->cols; k++) {
            const uint32_t at = h * s->cols + k;
            if ((set >> at & 1) == 0)
                continue;
            if ((k + 1 < s->cols && (set >> (at + 1) & 1) == 0) ||
                (h > 0 && (set >> (at - s->cols) & 1) == 0))
                return false;
        }
    return true;
}

static double mean_of(const struct small *s, uint32_t set)
{
    double sum = 0.0, weight = 0.0;
    for (uint32_t i = 0; i < s->rows * s->cols; i++)
        if (set >> i & 1) {
            sum += s->weight[i] * s->value[i];
            weight += s->weight[i];
        }
    return sum / weight;
}

/* The exact solution, by brute force: the estimate of a cell is the largest over all upper sets it
 * is in, of the smallest over all lower sets it is in, of the mean over what both share.
 * Source: Robertson, Wright, Dykstra, "Order Restricted Statistical Inference", 1988, 1.4. */
static double exact(const struct small *s, uint32_t at)
{
    const uint32_t all = (1u << s->rows * s->cols) - 1;
    double most = -INFINITY;
    for (uint32_t u = 0; u < s->n_upper; u++) {
        double least = INFINITY;
        for (uint32_t l = 0; l < s->n_upper && (s->upper[u] >> at & 1); l++) {
            const uint32_t lower = all & ~s->upper[l];
            if (lower >> at & 1)
                least = fmin(least, mean_of(s, s->upper[u] & lower));
        }
        most = s->upper[u] >> at & 1 ? fmax(most, least) : most;
    }
    return most;
}

static void the_fit_is_the_least_squares_one(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
        struct small s = {.rows = 1 + seed % SIDE_MAX, .cols = 1 + seed % SIDE_MAX};
        struct elv_time_table *t = new_table(s.cols, false);
        double sum = 0.0, weight = 0.0;
        for (uint32_t i = 0; i < s.rows * s.cols; i++) {
            const uint32_t times = elv_rng_below(&r, 5);
            s.value[i] = (double)elv_rng_unit(&r) * 2.0;
            s.weight[i] = times;
            add(t, i / s.cols + 1, i % s.cols + 1, s.value[i], times);
            sum += times * s.value[i];
            weight += times;
        }
        for (uint32_t i = 0; i < s.rows * s.cols; i++)
            if (s.weight[i] <= 0.0) {
                s.value[i] = weight > 0.0 ? sum / weight : 0.0;
                s.weight[i] = 1e-6;
            }
        for (uint32_t set = 0; set < 1u << s.rows * s.cols; set++)
            if (is_upper(&s, set))
                s.upper[s.n_upper++] = set;
        elv_time_table_fit(t);
        for (uint32_t i = 0; i < s.rows * s.cols; i++)
            assert_near(elv_time_table_at(t, i / s.cols + 1, i % s.cols + 1), exact(&s, i), 1e-9);
        assert_ordered(t, s.cols);
        free(t);
    }
}

static void estimates_are_in_order(void **state)
{
    (void)state;
    static const uint32_t clients[] = {1, 2, 3, 16, 63, 64, 65, 100, 150};
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        const uint32_t n = clients[i];
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = n, .purpose = ELV_RNG_TEST});
        struct elv_time_table *t = new_table(n, false);
        for (uint32_t s = 0; s < 20 * n; s++)
            add(t, 1 + elv_rng_below(&r, n), 1 + elv_rng_below(&r, n), (double)elv_rng_unit(&r), 1);
        elv_time_table_fit(t);
        assert_ordered(t, n);
        free(t);
    }
}

static void many_clients_share_cells_but_not_at_the_ends(void **state)
{
    (void)state;
    static const uint32_t clients[] = {65, 96, 97, 256, 1000};
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        const uint32_t n = clients[i];
        struct elv_time_table *t = new_table(n, true);
        for (uint32_t k = 1; k <= n; k++)
            add(t, 1, k, 100.0 + 3.0 * k, 1);
        elv_time_table_fit(t);
        for (uint32_t k = 1; k <= n; k++)
            assert_near(elv_time_table_at(t, 1, k), 100.0 + 3.0 * k, 1e-9);
        free(t);
    }
}

static void a_time_unlike_the_others_shows_where_it_was_seen(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct elv_time_table *t = new_table(N, false);
    for (uint32_t k = 1; k <= N; k++)
        add(t, N, k, k == N ? 9000.0 : k, 1);
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, N, N), 9000.0, 1.0);
    assert_near(elv_time_table_at(t, N, N - 1), N - 1, 0.1);
    assert_near(elv_time_table_at(t, N, 1), 1.0, 0.1);
    assert_true(elv_time_table_at(t, 1, N) >= 9000.0 - 1.0); /* no sooner than after all */
    free(t);
}

static void what_was_seen_fades_and_is_gone_in_the_end(void **state)
{
    (void)state;
    struct elv_time_table *t = new_table(2, true);
    const double keep = 1.0 - 1.0 / 50.0;
    add(t, 1, 1, 4.0, 1);
    elv_time_table_forget(t, 0.5);
    add(t, 1, 1, 1.0, 1);
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, 1, 1), 2.0, 1e-12); /* half of 4 against one of 1 */
    add(t, 1, 2, 9.0, 1);
    for (uint32_t round = 0; round < 99; round++) {
        elv_time_table_forget(t, keep);
        add(t, 1, 1, 2.0, 1);
    }
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, 1, 2), 9.0, 1e-9);
    elv_time_table_forget(t, keep);
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, 1, 2), 2.0, 1e-3); /* no dearer than what is known */
    elv_time_table_forget(t, 0.0);
    assert_true(elv_time_table_is_empty(t));
    free(t);
}

static void clients_that_come_and_go_leave_the_times_in_place(void **state)
{
    (void)state;
    enum { MAX = 40, N = 16 };
    struct elv_time_table *t = new_table(MAX, false);
    elv_time_table_resize(t, N);
    for (uint32_t h = 1; h <= N; h++)
        for (uint32_t k = 1; k <= N; k++)
            add(t, h, k, 100.0 * k - h, 3);
    static const uint32_t visits[] = {17, 18, 17, 40, 17, 16};
    for (size_t i = 0; i < sizeof visits / sizeof visits[0]; i++) {
        const uint32_t n = visits[i];
        elv_time_table_resize(t, n);
        elv_time_table_fit(t);
        assert_ordered(t, n);
        assert_true(n == MAX || elv_time_table_at(t, 1, 1) == 99.0);
        assert_true(n == MAX || elv_time_table_at(t, n, n) == 1584.0);
    }
    for (uint32_t h = 1; h <= N; h++) /* up and down again: the same */
        for (uint32_t k = 1; k <= N; k++)
            assert_near(elv_time_table_at(t, h, k), 100.0 * k - h, 1e-6);
    elv_time_table_resize(t, 8);
    elv_time_table_fit(t);
    for (uint32_t k = 1; k <= 8; k++) /* two became one */
        assert_near(elv_time_table_at(t, 1, k), 200.0 * k - 50.0 - 1.5, 1e-6);
    elv_time_table_resize(t, 1);
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, 1, 1), 850.0 - 8.5, 1e-9);
    free(t);
}

static void the_number_of_cells_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(elv_time_table_len(1000000, false), elv_time_table_len(64, false));
    assert_true(elv_time_table_len(64, false) < 133120);
    assert_true(elv_time_table_len(1000000, true) < 4096);
    assert_true(elv_time_table_len(16, false) < elv_time_table_len(17, false));
    struct elv_time_table *t = new_table(1000000, false);
    add(t, 1000000, 1000000, 5.0, 1);
    add(t, 1, 500000, 2.0, 1);
    elv_time_table_fit(t);
    assert_near(elv_time_table_at(t, 1000000, 1000000), 5.0, 1e-3);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_in_order_are_their_own_estimate),
        cmocka_unit_test(times_out_of_order_meet_at_their_weighted_mean),
        cmocka_unit_test(the_fit_is_the_least_squares_one),
        cmocka_unit_test(estimates_are_in_order),
        cmocka_unit_test(many_clients_share_cells_but_not_at_the_ends),
        cmocka_unit_test(a_time_unlike_the_others_shows_where_it_was_seen),
        cmocka_unit_test(what_was_seen_fades_and_is_gone_in_the_end),
        cmocka_unit_test(clients_that_come_and_go_leave_the_times_in_place),
        cmocka_unit_test(the_number_of_cells_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
