/* SPDX-License-Identifier: Apache-2.0 */
/* The elementary functions against the C library's in double: the bounds of common/exact.h. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/exact.h"

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* How many units in the last place of `want` the two are apart. */
static double ulps(float got, double want)
{
    const float near = (float)want;
    const double unit = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    return fabs((double)got - want) / unit;
}

enum { STEP = 9973 }; /* prime: every few thousandth float */

static void the_logarithm_is_within_three_units(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t bits = 0x00800000; bits < 0x7F800000; bits += STEP) {
        const float x = from_bits(bits);
        const double off = ulps(elv_ln(x), log((double)x));
        worst = off > worst ? off : worst;
    }
    assert_true(worst <= 3.0);
    assert_true(elv_ln(1.0f) == 0.0f);
    assert_true(isnan(elv_ln(NAN)));
    assert_true(elv_ln(INFINITY) == INFINITY);
}

static void the_power_of_e_is_within_three_units(void **state)
{
    (void)state;
    double worst = 0;
    for (float x = -87.0f; x <= 88.0f; x += 0x1p-10f) {
        const double off = ulps(elv_exp(x), exp((double)x));
        worst = off > worst ? off : worst;
    }
    assert_true(worst <= 3.0);
    assert_true(elv_exp(0.0f) == 1.0f);
    assert_true(elv_exp(-87.1f) == 0.0f);
    assert_true(elv_exp(-INFINITY) == 0.0f);
    assert_true(isnan(elv_exp(NAN)));
}

static void rounding_takes_ties_to_even_at_any_size(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7F800000; bits += STEP) {
        const float x = from_bits(bits);
        assert_true(elv_rint(x) == rintf(x));
        assert_true(elv_rint(-x) == rintf(-x));
    }
    static const float rows[][2] = {{0.5f, 0},
                                    {1.5f, 2},
                                    {2.5f, 2},
                                    {-0.5f, 0},
                                    {-1.5f, -2},
                                    {-2.5f, -2},
                                    {0x1.fffffep22f, 0x1p23f}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(elv_rint(rows[i][0]) == rows[i][1]);
    assert_true(isnan(elv_rint(NAN)));
    assert_true(elv_rint(INFINITY) == INFINITY);
}

static void only_numbers_are_finite(void **state)
{
    (void)state;
    assert_true(elv_finite_f32(FLT_MAX) && elv_finite_f32(-FLT_MAX) && elv_finite_f32(0.0f));
    assert_false(elv_finite_f32(INFINITY) || elv_finite_f32(-INFINITY) || elv_finite_f32(NAN));
    assert_true(elv_finite_f64(DBL_MAX) && elv_finite_f64(-DBL_MAX));
    assert_false(elv_finite_f64((double)INFINITY) || elv_finite_f64((double)NAN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_is_within_three_units),
        cmocka_unit_test(the_power_of_e_is_within_three_units),
        cmocka_unit_test(rounding_takes_ties_to_even_at_any_size),
        cmocka_unit_test(only_numbers_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
