/* SPDX-License-Identifier: Apache-2.0 */
/* The gain of a step: what is concluded from sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "server/gain.h"
#include "tests/commit_case.h"

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * (1.0 + fabs(b))))
        fail_msg("%.17g is not %.17g", a, b);
}

static const struct elv_gain_work step = {.steps = 1};

static void sums_tell_variance_and_norm(void **state)
{
    (void)state;
    /* The gradients (1, 0), (3, 0) and (2, 3): their mean is (2, 1), their variance 4. */
    const double rate = 0.5, unit = rate * rate;
    const struct elv_sync_commit c = {.round.n_got = 3,
                                      .loss = 3.0,
                                      .norm2 = unit * (1 + 9 + 13) / 3,
                                      .mean_norm2 = unit * 5,
                                      .n_effective = 3,
                                      .rate = rate};
    struct elv_gain g;
    elv_gain_init(&g, 10);
    assert_false(elv_gain_is_known(&g));
    elv_gain_add(&g, &c, step);
    assert_true(elv_gain_is_known(&g));
    assert_near(elv_recent_mean(&g.variance), 4.0);
    assert_near(elv_recent_mean(&g.norm), 5.0 - 4.0 / 3.0);
    /* The smoothness is not seen yet, so 2: G = N / 4 - V / 4k. */
    assert_near(elv_gain_of(&g, 1), 11.0 / 12.0 - 1.0);
    assert_near(elv_gain_of(&g, 2), 11.0 / 12.0 - 0.5);
    assert_near(elv_gain_of(&g, 4), 11.0 / 12.0 - 0.25);
}

static void the_fall_of_the_loss_tells_the_smoothness(void **state)
{
    (void)state;
    static const struct {
        double loss, smoothness;
    } rows[] = {
        {2.0, 2.0 * (2.0 - 3.0 + 0.5 * 4.0) / (0.25 * 5.0)}, /* N = 4, V / n = 1 before */
        {1.5, 0.8},
        {1.0, 0.0}, /* as a plane */
        {0.5, 0.0}, /* faster than the gradient says: not below 0 */
        {3.0, 3.2}, /* the step gained nothing */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_gain g;
        elv_gain_init(&g, 10);
        const struct elv_sync_commit first = commit_of(4.0, 3.0, 3, 3.0, 0.5);
        const struct elv_sync_commit second = commit_of(2.0, 3.0, 4, rows[i].loss, 0.5);
        elv_gain_add(&g, &first, step);
        elv_gain_add(&g, &second, step);
        assert_near(elv_recent_mean(&g.smoothness), rows[i].smoothness);
        const double bend = rows[i].smoothness * 0.125; /* and N is 3, V 3 */
        assert_near(elv_gain_of(&g, 3), (0.5 - bend) * 3.0 - bend);
        assert_int_equal(elv_gain_rose(&g, 1.01), 0);
        assert_int_equal(elv_gain_rose(&g, 0.99), rows[i].loss >= 3.0);
    }
}

static void estimates_are_means_over_the_last_versions(void **state)
{
    (void)state;
    struct elv_gain g;
    elv_gain_init(&g, 3);
    for (uint32_t i = 1; i <= 7; i++) {
        const struct elv_sync_commit c = commit_of(100.0, i, 4, NAN, 0.1);
        elv_gain_add(&g, &c, step);
    }
    assert_near(elv_recent_mean(&g.variance), 6.0);
    assert_int_equal(g.smoothness.n, 0);
}

static void what_cannot_be_concluded_is_kept_as_it_was(void **state)
{
    (void)state;
    struct elv_gain g;
    elv_gain_init(&g, 10);
    struct elv_sync_commit c = commit_of(4.0, 3.0, 3, 3.0, 0.5);
    elv_gain_add(&g, &c, step);
    c = (struct elv_sync_commit){
        .round.n_got = 1, .loss = NAN, .norm2 = 2, .mean_norm2 = 2, .n_effective = 1, .rate = 0.5};
    elv_gain_add(&g, &c, step); /* one update says nothing of the variance */
    assert_near(elv_recent_mean(&g.variance), 3.0);
    assert_near(elv_recent_mean(&g.norm), (4.0 + 8.0 - 3.0) / 2.0);
    assert_int_equal(g.smoothness.n, 0);
    assert_false(elv_gain_rose(&g, 1.01));
    c = commit_of(9.0, 0.0, 3, 2.0, 0.5);
    c.norm2 = c.mean_norm2 * 0.9; /* as rounding might have it */
    elv_gain_add(&g, &c, step);
    assert_near(elv_recent_mean(&g.variance), 1.5);
    c.rate = 0.0; /* a version of no steps */
    elv_gain_add(&g, &c, step);
    assert_false(elv_gain_is_known(&g));
    assert_near(elv_gain_of(&g, 2), 0.0);
}

static void uneven_weights_count_as_fewer_updates(void **state)
{
    (void)state;
    struct elv_gain g;
    elv_gain_init(&g, 10);
    struct elv_sync_commit c = commit_of(4.0, 3.0, 2, NAN, 1.0);
    c.round.n_got = 6; /* six clients that weigh like two */
    elv_gain_add(&g, &c, step);
    assert_near(elv_gain_of(&g, 3), 0.5 * 4.0 - 0.5 * 3.0);
}

static void losses_along_many_steps_do_not_tell_the_smoothness(void **state)
{
    (void)state;
    static const struct elv_gain_work steps = {.steps = 2};
    const struct elv_sync_commit first = commit_of(4.0, 3.0, 3, 3.0, 0.5);
    const struct elv_sync_commit second = commit_of(2.0, 3.0, 4, 1.0, 0.5);
    struct elv_gain g;
    elv_gain_init(&g, 10);
    elv_gain_add(&g, &first, steps);
    elv_gain_add(&g, &second, steps);
    assert_int_equal(g.smoothness.n, 0);
    assert_near(elv_gain_of(&g, 2), 0.25 * 3.0 - 0.25 * 3.0 / 2); /* as 1 / eta */
    assert_near(elv_gain_fall(&g), 1.5); /* what they are told is not forgotten */
}

/* As above, of k out of n clients that would each do the same again. */
static struct elv_sync_commit of_few(double norm, double variance, uint32_t k, uint32_t n)
{
    struct elv_sync_commit c = commit_of(norm, variance, k, NAN, 0.5);
    const double less = variance / n * 0.25;
    c.mean_norm2 -= less;
    c.norm2 -= less;
    c.round.n_joined = n;
    return c;
}

static void clients_that_go_through_all_they_have_differ_but_are_not_noise(void **state)
{
    (void)state;
    static const struct elv_gain_work all = {.steps = 9, .covered = 1.0};
    struct elv_gain g;
    elv_gain_init(&g, 1);
    for (uint32_t k = 2; k <= 8; k++) {
        const struct elv_sync_commit c = of_few(4.0, 3.0, k, 8);
        elv_gain_add(&g, &c, all);
        assert_near(elv_recent_mean(&g.variance), 3.0);
        assert_near(g.norm_last, 4.0); /* whoever came */
        assert_near(elv_gain_of(&g, 2), 1.0 - 0.25 * 3.0 * (1.0 / 2 - 1.0 / 8));
        assert_near(elv_gain_of(&g, 8), 1.0);
    }
    const struct elv_gain_work half = {.steps = 9, .covered = 0.5};
    struct elv_sync_commit c = of_few(4.0, 3.0, 4, 8);
    elv_gain_add(&g, &c, half);
    assert_near(g.norm_last, 4.0 - 3.0 / 8 + 0.5 * 3.0 / 8);
    c.round.n_got = 8; /* eight of twelve that weigh like four of six */
    c.round.n_joined = 12;
    elv_gain_add(&g, &c, all);
    assert_near(elv_gain_of(&g, 12), 0.25 * g.norm_last);
    assert_near(g.norm_last, 4.0 + 3.0 / 4 - 3.0 / 8 - 3.0 * (1.0 / 4 - 1.0 / 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_tell_variance_and_norm),
        cmocka_unit_test(the_fall_of_the_loss_tells_the_smoothness),
        cmocka_unit_test(estimates_are_means_over_the_last_versions),
        cmocka_unit_test(what_cannot_be_concluded_is_kept_as_it_was),
        cmocka_unit_test(uneven_weights_count_as_fewer_updates),
        cmocka_unit_test(losses_along_many_steps_do_not_tell_the_smoothness),
        cmocka_unit_test(clients_that_go_through_all_they_have_differ_but_are_not_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
