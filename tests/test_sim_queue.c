/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_sim_queue.c - the two heaps and the draws against the plainest way to do the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <math.h>

#include "ports/sim/draw.h"
#include "ports/sim/queue.h"

#define N 300u

static struct elv_rng stream(uint32_t round)
{
    return elv_rng_of((struct elv_rng_key){.seed = 7, .round = round, .purpose = ELV_RNG_TEST});
}

static void things_come_out_by_time_and_then_by_order_of_pushing(void **state)
{
    (void)state;
    struct elv_rng r = stream(1);
    struct elv_sim_queue q = {0};
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N; i++)
            elv_sim_queue_push(&q, (elv_time_us)elv_rng_below(&r, 40), 0, i, NULL);
        struct elv_sim_entry last = {.at = -1};
        const uint32_t kept = round == 19 ? 0 : round;
        while (q.n > kept) {
            assert_ptr_equal(elv_sim_queue_first(&q), &q.heap[0]);
            const struct elv_sim_entry e = elv_sim_queue_pop(&q);
            assert_true(e.at > last.at || (e.at == last.at && e.seq > last.seq));
            last = e;
        }
    }
    assert_null(elv_sim_queue_first(&q));
    elv_sim_queue_free(&q);
}

static void the_earliest_deadline_is_found_whatever_was_changed_before(void **state)
{
    (void)state;
    struct elv_rng r = stream(2);
    struct elv_sim_timers t = {0};
    elv_time_us plain[N];
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(elv_sim_timers_add(&t), i);
        plain[i] = ELV_NEVER;
    }
    for (uint32_t turn = 0; turn < 20000; turn++) {
        const uint32_t i = elv_rng_below(&r, N);
        plain[i] = elv_rng_below(&r, 3) == 0 ? ELV_NEVER : (elv_time_us)elv_rng_below(&r, 1000);
        elv_sim_timers_set(&t, i, plain[i]);
        uint32_t want = 0, got = 0;
        for (uint32_t k = 1; k < N; k++)
            if (plain[k] < plain[want])
                want = k;
        assert_true(elv_sim_timers_first(&t, &got) == plain[want]);
        if (plain[want] != ELV_NEVER)
            assert_int_equal(got, want);
    }
    elv_sim_timers_free(&t);
}

static void delays_have_the_moments_of_their_distribution(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct elv_sim_delay delay;
        double mean, low, high;
    } rows[] = {
        {"nothing", {0}, 0, 0, 0},
        {"constant", {.min_us = 70}, 70, 70, 70},
        {"uniform", {.min_us = 1000, .spread_us = 2000}, 2000, 1000, 3000},
        {"exponential",
         {.shape = ELV_SIM_EXPONENTIAL, .min_us = 1000, .spread_us = 2000},
         3000,
         1000,
         1e9},
        {"log-normal",
         {.shape = ELV_SIM_LOGNORMAL, .min_us = 1000, .spread_us = 2000, .sigma = 0.5},
         1000 + 2000 * 1.1331484530668263, /* exp(sigma^2 / 2) */
         1000,
         1e9},
        {"capped", {.shape = ELV_SIM_EXPONENTIAL, .spread_us = 1000000, .max_us = 10}, 10, 0, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_rng r = stream(10 + (uint32_t)i);
        double sum = 0;
        const uint32_t n = 20000;
        for (uint32_t k = 0; k < n; k++) {
            const double t = (double)elv_sim_delay_draw(&rows[i].delay, &r);
            assert_true(t >= rows[i].low && t <= rows[i].high);
            sum += t;
        }
        if (fabs(sum / n - rows[i].mean) > 0.03 * rows[i].mean)
            fail_msg("%s: mean %f", rows[i].what, sum / n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_come_out_by_time_and_then_by_order_of_pushing),
        cmocka_unit_test(the_earliest_deadline_is_found_whatever_was_changed_before),
        cmocka_unit_test(delays_have_the_moments_of_their_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
