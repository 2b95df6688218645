/* SPDX-License-Identifier: Apache-2.0 */
#include "client/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "client/rtt.h"

static struct elv_rng stream(uint64_t seed)
{
    return elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_JITTER});
}

static void waits_double_up_to_a_minute_and_differ_between_clients(void **state)
{
    (void)state;
    static const struct {
        uint32_t n;
        elv_time_us most;
    } rows[] = {{0, 1000000},  {1, 2000000},  {2, 4000000},   {5, 32000000},
                {6, 60000000}, {7, 60000000}, {100, 60000000}};
    struct elv_rng a = stream(1), b = stream(2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const elv_time_us wait = elv_backoff(&a, rows[i].n);
        assert_in_range(wait, rows[i].most / 2, rows[i].most);
        assert_int_not_equal(wait, elv_backoff(&b, rows[i].n));
    }
}

static void jitter_reaches_both_ends_and_never_passes_them(void **state)
{
    (void)state;
    struct elv_rng rng = stream(3);
    bool low = false, high = false;
    for (int i = 0; i < 200; i++) {
        const elv_time_us j = elv_jitter(&rng, 3);
        assert_in_range(j, 0, 3);
        low |= j == 0;
        high |= j == 3;
    }
    assert_true(low && high);
    assert_int_equal(elv_jitter(&rng, 0), 0);
}

static void an_answer_is_due_after_the_mean_and_four_deviations(void **state)
{
    (void)state;
    struct elv_rtt r = {0};
    assert_int_equal(elv_rto(&r), ELV_RTO_FIRST_US);
    elv_rtt_sample(&r, 400000); /* mean 400 ms, deviation 200 ms */
    assert_int_equal(elv_rto(&r), 1200000);
    elv_rtt_sample(&r, 400000); /* deviation shrinks by a quarter */
    assert_int_equal(elv_rto(&r), 1000000);
    for (int i = 0; i < 100; i++)
        elv_rtt_sample(&r, 1000);
    assert_int_equal(elv_rto(&r), ELV_RTO_MIN_US);
    for (int i = 0; i < 100; i++)
        elv_rtt_sample(&r, 60000000);
    assert_int_equal(elv_rto(&r), ELV_RTO_MAX_US);
}

static void silence_is_measured_only_while_something_is_asked(void **state)
{
    (void)state;
    struct elv_rng rng = stream(4);
    struct elv_link l = {0};
    assert_true(elv_link_deadline(&l) == ELV_NEVER);
    elv_link_asked(&l, 1000, ELV_RTO_MIN_US, &rng);
    const elv_time_us first = elv_link_deadline(&l);
    assert_in_range(first, 1000 + ELV_QUIET_MIN_US, 1000 + ELV_QUIET_MIN_US * 5 / 4);
    elv_link_asked(&l, 900000, ELV_RTO_MIN_US, &rng); /* a second request moves nothing */
    assert_int_equal(elv_link_deadline(&l), first);
    elv_link_heard(&l, 1500000, ELV_RTO_MIN_US, &rng);
    assert_in_range(elv_link_deadline(&l), 1500000 + ELV_QUIET_MIN_US,
                    1500000 + ELV_QUIET_MIN_US * 5 / 4);
    elv_link_idle(&l);
    assert_true(elv_link_deadline(&l) == ELV_NEVER);
}

static void a_slow_link_gets_three_times_its_answer_time(void **state)
{
    (void)state;
    struct elv_rng rng = stream(5);
    struct elv_link l = {0};
    elv_link_asked(&l, 0, 3000000, &rng);
    assert_in_range(elv_link_deadline(&l), 9000000, 11250000);
}

static void patience_doubles_with_each_new_association_until_the_server_is_heard(void **state)
{
    (void)state;
    struct elv_rng rng = stream(6);
    struct elv_link l = {0};
    elv_link_asked(&l, 0, ELV_RTO_MIN_US, &rng);
    static const elv_time_us least[] = {4000000, 8000000, 16000000, 32000000, 60000000, 60000000};
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        const elv_time_us now = elv_link_deadline(&l);
        elv_link_renewed(&l, now, ELV_RTO_MIN_US, &rng);
        const elv_time_us wait = elv_link_deadline(&l) - now;
        const elv_time_us most = least[i] * 5 / 4;
        assert_in_range(wait, least[i], most < ELV_BACKOFF_CAP_US ? most : ELV_BACKOFF_CAP_US);
    }
    elv_link_heard(&l, 0, ELV_RTO_MIN_US, &rng);
    assert_in_range(elv_link_deadline(&l), ELV_QUIET_MIN_US, ELV_QUIET_MIN_US * 5 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_up_to_a_minute_and_differ_between_clients),
        cmocka_unit_test(jitter_reaches_both_ends_and_never_passes_them),
        cmocka_unit_test(an_answer_is_due_after_the_mean_and_four_deviations),
        cmocka_unit_test(silence_is_measured_only_while_something_is_asked),
        cmocka_unit_test(a_slow_link_gets_three_times_its_answer_time),
        cmocka_unit_test(patience_doubles_with_each_new_association_until_the_server_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
