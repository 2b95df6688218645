/* SPDX-License-Identifier: Apache-2.0 */
#include "common/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_finite_half_survives_the_way_there_and_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++)
        if ((h & 0x7FFF) <= 0x7BFF)
            assert_int_equal(elv_half_of(elv_half_value((uint16_t)h)), h);
}

static void a_number_between_two_goes_to_the_nearer_and_a_tie_to_the_even_one(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        const float low = elv_half_value((uint16_t)h), high = elv_half_value((uint16_t)(h + 1));
        const float middle = (low + high) / 2; /* exact: 11 digits and one more */
        assert_true(low < high);
        assert_int_equal(elv_half_of(nextafterf(middle, low)), h);
        assert_int_equal(elv_half_of(nextafterf(middle, high)), h + 1);
        assert_int_equal(elv_half_of(middle), h + (h & 1));
        assert_int_equal(elv_half_of(-middle), 0x8000 | (h + (h & 1)));
    }
}

static void known_values_have_their_bits(void **state)
{
    (void)state;
    static const struct {
        float v;
        uint16_t h;
    } rows[] = {
        {0.0f, 0},          {-0.0f, 0x8000},           {1.0f, 0x3C00},        {-2.0f, 0xC000},
        {65504.0f, 0x7BFF}, {65519.0f, 0x7BFF},        {65520.0f, 0x7BFF},    {1e30f, 0x7BFF},
        {-1e30f, 0xFBFF},   {0x1p-14f, 0x0400},        {0x1p-24f, 0x0001},    {0x1p-25f, 0},
        {0x1.8p-25f, 1},    {0x1.8p-24f, 2},           {0x1.ffep-15f, 0x400}, {1e-30f, 0},
        {0.1f, 0x2E66},     {(float)INFINITY, 0x7BFF},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(elv_half_of(rows[i].v), rows[i].h);
    assert_true(elv_half_value(0x7BFF) == ELV_HALF_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_finite_half_survives_the_way_there_and_back),
        cmocka_unit_test(a_number_between_two_goes_to_the_nearer_and_a_tie_to_the_even_one),
        cmocka_unit_test(known_values_have_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
