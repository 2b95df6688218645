/* SPDX-License-Identifier: Apache-2.0 */
/* A case of the fault campaign, and the search for the faults that a failure takes: two faults are
 * planted that together break something, and it ends with exactly those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim_case.h"
#include "tests/sim_job.h"

enum { TRIES = 500 };

static void one_seed_gives_one_run(void **state)
{
    (void)state;
    struct sim_case_end end;
    const struct sim_case_cfg cfg = {.seed = 3};
    assert_true(sim_case_same(&cfg, &end));
    assert_string_equal(end.why, "");
    assert_true(end.sums.versions > 0 && end.sums.crashes > 0 && end.n_faults > 30);
}

static void without_faults_nothing_goes_wrong(void **state)
{
    (void)state;
    const bool none[1] = {false};
    for (uint64_t seed = 1; seed <= sim_job_variants(); seed++) {
        struct sim_case_end end;
        const struct sim_case_cfg cfg = {.seed = seed, .on = none};
        sim_case_run(&cfg, &end);
        assert_string_equal(end.why, "");
        assert_int_equal(end.sums.crashes, 0);
        assert_int_equal(end.sums.faults, 0);
        assert_int_equal(end.sums.store_failures, 0);
    }
}

/* Two that happen, of those that last and of those that strike before the job could be over. */
static bool pick(const struct sim_case_end *end, uint32_t skip, uint32_t pair[2])
{
    pair[0] = pair[1] = UINT32_MAX;
    for (uint32_t i = 0; i < end->n_faults && pair[0] == UINT32_MAX; i++)
        if (end->struck[i] && skip-- == 0)
            pair[0] = i;
    for (uint32_t i = end->n_faults / 2; i > 0 && pair[1] == UINT32_MAX; i--)
        if (end->struck[i])
            pair[1] = i;
    return pair[0] < pair[1] && pair[1] != UINT32_MAX;
}

static void the_planted_faults_are_found(void **state)
{
    (void)state;
    for (uint64_t seed = 2; seed < 8; seed++) {
        static struct sim_case_end end, again;
        static bool on[SIM_CASE_FAULTS_MAX];
        struct sim_case_cfg cfg = {.seed = seed};
        sim_case_run(&cfg, &end);
        assert_true(pick(&end, 2 * (uint32_t)seed, cfg.planted));
        sim_case_run(&cfg, &end);
        assert_string_equal(end.why, "planted: both faults happened");
        assert_int_equal(sim_case_shrink(&cfg, &end, TRIES, on), 2);
        assert_true(on[cfg.planted[0]] && on[cfg.planted[1]]);
        cfg.on = on; /* it fails again with just those */
        cfg.n_on = end.n_faults;
        sim_case_run(&cfg, &again);
        assert_string_equal(again.why, end.why);
        on[cfg.planted[0]] = false;
        sim_case_run(&cfg, &again);
        assert_string_equal(again.why, "");
    }
}

struct told {
    uint32_t n, last;
};

static void count(void *ctx, uint32_t number, const char *what)
{
    struct told *t = ctx;
    assert_true(t->n == 0 || number > t->last);
    assert_true(strlen(what) > 5);
    t->n++;
    t->last = number;
}

static void faults_are_told_by_number(void **state)
{
    (void)state;
    struct told told = {0};
    bool on[60] = {false};
    on[0] = on[17] = on[30] = on[31] = true;
    sim_case_tell(4, on, 60, count, &told);
    assert_int_equal(told.n, 4);
    assert_int_equal(told.last, 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_gives_one_run),
        cmocka_unit_test(without_faults_nothing_goes_wrong),
        cmocka_unit_test(the_planted_faults_are_found),
        cmocka_unit_test(faults_are_told_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
