/* SPDX-License-Identifier: Apache-2.0 */
/* What an update is worth by its age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/staleness.h"
#include "sync_driver.h"

enum { N_TAUS = 6 };
static const uint32_t taus[N_TAUS] = {0, 1, 3, 4, 5, 99};

static void each_curve_is_the_one_it_is_named_after(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        double at[N_TAUS];
    } rows[] = {
        {"", {1, 1, 1, 1, 1, 1}},
        {"staleness = constant", {1, 1, 1, 1, 1, 1}},
        {"staleness = polynomial", {1, 0.70710678, 0.5, 0.44721360, 0.40824829, 0.1}},
        {"staleness = polynomial, staleness_a = 1", {1, 0.5, 0.25, 0.2, 0.16666667, 0.01}},
        {"staleness = polynomial, staleness_a = 0", {1, 1, 1, 1, 1, 1}},
        {"staleness = hinge", {1, 1, 1, 1, 1.0 / 11, 1.0 / 951}},
        {"staleness = hinge, staleness_a = 1, staleness_b = 0", {1, 0.5, 0.25, 0.2, 1.0 / 6, 0.01}},
        {"staleness = exponential",
         {1, 0.90483742, 0.74081822, 0.67032005, 0.60653066, 5.0174682e-5}},
        {"staleness = exponential, staleness_a = 0.5",
         {1, 0.60653066, 0.22313016, 0.13533528, 0.0820850, 3.1799709e-22}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_params p = sync_params(rows[i].params);
        const struct elv_staleness s = elv_staleness_of(&p, ELV_STALENESS_CONSTANT);
        for (size_t k = 0; k < N_TAUS; k++) {
            const double f = elv_staleness_factor(s, taus[k]);
            assert_true(fabs(f / rows[i].at[k] - 1.0) < 2e-5);
        }
    }
}

static void no_update_is_worth_nothing_or_more_than_a_fresh_one(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "staleness = polynomial, staleness_a = 1000", "staleness = hinge, staleness_a = 1000",
        "staleness = exponential, staleness_a = 1000", "staleness = polynomial, staleness_a = 1e-9",
        "staleness = exponential, staleness_a = 1e-9"};
    static const uint32_t old[] = {0, 1, 2, 1000, 1u << 24, UINT32_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_params p = sync_params(rows[i]);
        const struct elv_staleness s = elv_staleness_of(&p, ELV_STALENESS_CONSTANT);
        assert_true(elv_staleness_factor(s, 0) == 1.0);
        double before = 1.0;
        for (size_t k = 0; k < sizeof old / sizeof old[0]; k++) {
            const double f = elv_staleness_factor(s, old[k]);
            assert_true(f > 0.0 && f <= before);
            before = f;
        }
    }
}

static void a_policy_says_which_curve_is_its_usual_one(void **state)
{
    (void)state;
    const struct elv_params none = {0}, hinge = sync_params("staleness = hinge");
    assert_int_equal(elv_staleness_of(&none, ELV_STALENESS_POLYNOMIAL).kind,
                     ELV_STALENESS_POLYNOMIAL);
    assert_true(elv_staleness_of(&none, ELV_STALENESS_POLYNOMIAL).a == 0.5);
    assert_int_equal(elv_staleness_of(&hinge, ELV_STALENESS_POLYNOMIAL).kind, ELV_STALENESS_HINGE);
}

static void parameters_that_make_no_sense_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        uint32_t line; /* 0: fine */
        const char *accepted;
    } rows[] = {
        {"", 0, ""},
        {"staleness = exponential, staleness_a = 1000", 0, ""},
        {"staleness = hinge, staleness_b = 1000000, staleness_a = 0", 0, ""},
        {"staleness = linear", 11, "hinge or exponential"},
        {"staleness = 0.5", 11, "hinge or exponential"},
        {"staleness_a = 1", 11, "for staleness ="},
        {"staleness = constant, staleness_a = 1", 12, "for staleness ="},
        {"staleness = polynomial, staleness_a = -1", 12, "from 0 to 1000"},
        {"staleness = polynomial, staleness_a = 1001", 12, "from 0 to 1000"},
        {"staleness = polynomial, staleness_a = much", 12, "from 0 to 1000"},
        {"staleness = polynomial, staleness_b = 1", 12, "staleness = hinge"},
        {"staleness = hinge, staleness_a = 1, staleness_b = -1", 13, "from 0 to 1000000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_params p = sync_params(rows[i].params);
        char why[ELV_JOB_ERROR_MAX] = "";
        uint32_t line = 0;
        const enum elv_err err = elv_staleness_check(&p, ELV_STALENESS_CONSTANT, why, &line);
        assert_int_equal(err, rows[i].line ? ELV_ERR_RANGE : ELV_OK);
        assert_int_equal(line, rows[i].line);
        assert_non_null(strstr(why, rows[i].accepted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_curve_is_the_one_it_is_named_after),
        cmocka_unit_test(no_update_is_worth_nothing_or_more_than_a_fresh_one),
        cmocka_unit_test(a_policy_says_which_curve_is_its_usual_one),
        cmocka_unit_test(parameters_that_make_no_sense_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
