/* SPDX-License-Identifier: Apache-2.0 */
/* The values of configuration files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/text.h"
#include "server/value.h"

static void a_list_is_cut_at_blanks_or_at_a_separator(void **state)
{
    (void)state;
    struct elv_text at[2];
    assert_int_equal(elv_value_words(elv_value_of(" \tone  two three\n"), at, 2), 3);
    assert_true(elv_value_is(at[0], "one") && elv_value_is(at[1], "two"));
    assert_int_equal(elv_value_words(elv_value_of("  "), at, 2), 0);
    assert_int_equal(elv_value_parts(elv_value_of(" a b , ,c"), ',', at, 2), 3);
    assert_true(elv_value_is(at[0], "a b") && elv_value_is(at[1], ""));
    assert_int_equal(elv_value_parts(elv_value_of(""), ',', at, 2), 1);
    assert_int_equal(at[0].len, 0);
}

static void a_number_may_be_a_fraction(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double v;
    } good[] = {{"0", 0},       {"0.25", 0.25}, {"1e-3", 1e-3}, {"1/255", 1.0 / 255},
                {"-1/4", -.25}, {"1 / 2", 0.5}, {"0/7", 0},     {"1e30", 1e30}};
    static const char *const bad[] = {"",   "one", "1/0",   "1/2/3", "/2",
                                      "1/", "1,5", "1e-31", "1e31",  "1e30/1e-1"};
    double v;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!elv_value_number(elv_value_of(good[i].text), &v) || v != good[i].v)
            fail_msg("%s", good[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        v = 7;
        if (elv_value_number(elv_value_of(bad[i]), &v) || v != 7)
            fail_msg("%s", bad[i]);
    }
}

static void a_duration_has_a_unit_and_prints_in_the_largest_that_divides(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        elv_time_us us;
        const char *printed;
    } rows[] = {{"100us", 100, "100us"},   {"500ms", 500000, "500ms"},  {"30s", 30000000, "30s"},
                {"1.5m", 90000000, "90s"}, {"2h", 7200000000, "7200s"}, {"0s", 0, "0s"},
                {"0.5us", 1, "1us"},       {"1500us", 1500, "1500us"}};
    static const char *const bad[] = {"",       "30",    "s",   "30 s",           "-1s",
                                      "1e300h", "30sec", "1s2", "9007199254741ms"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        elv_time_us v = -1;
        struct elv_line l = elv_line_of(text, sizeof text);
        if (!elv_value_duration(elv_value_of(rows[i].text), &v) || v != rows[i].us)
            fail_msg("%s", rows[i].text);
        elv_value_put_duration(&l, v);
        assert_string_equal(text, rows[i].printed);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        elv_time_us v = 7;
        if (elv_value_duration(elv_value_of(bad[i]), &v) || v != 7)
            fail_msg("%s", bad[i]);
    }
}

static void yes_and_no_have_four_words_each(void **state)
{
    (void)state;
    static const char *const words[2][4] = {{"off", "no", "false", "0"},
                                            {"on", "yes", "true", "1"}};
    bool v;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 4; i++) {
            v = which == 0;
            assert_true(elv_value_bool(elv_value_of(words[which][i]), &v));
            assert_int_equal(v, which);
        }
    v = true;
    assert_false(elv_value_bool(elv_value_of("On"), &v));
    assert_false(elv_value_bool(elv_value_of(""), &v));
    assert_true(v);
}

static void the_distance_counts_letters_to_change(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        uint32_t n;
    } rows[] = {{"", "", 0},
                {"", "abc", 3},
                {"rounds", "rounds", 0},
                {"rouns", "rounds", 1},
                {"rounds", "ronuds", 2},
                {"kitten", "sitting", 3},
                {"a234567890123456789012345678901", "b234567890123456789012345678901", 1},
                {"a23456789012345678901234567890123", "a", 99}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(elv_value_distance(rows[i].a, rows[i].b), rows[i].n);
        assert_int_equal(elv_value_distance(rows[i].b, rows[i].a), rows[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_cut_at_blanks_or_at_a_separator),
        cmocka_unit_test(a_number_may_be_a_fraction),
        cmocka_unit_test(a_duration_has_a_unit_and_prints_in_the_largest_that_divides),
        cmocka_unit_test(yes_and_no_have_four_words_each),
        cmocka_unit_test(the_distance_counts_letters_to_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
