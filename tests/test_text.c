/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/text.h"

static void a_line_is_cut_where_it_is_full(void **state)
{
    (void)state;
    char out[8];
    struct elv_line l = elv_line_of(out, sizeof out);
    elv_line_add(&l, "ab");
    elv_line_uint(&l, 1234);
    assert_string_equal(out, "ab1234");
    assert_false(l.full);
    elv_line_hex(&l, (const uint8_t *)"\x0f", 1);
    assert_string_equal(out, "ab12340");
    assert_true(l.full);
    elv_line_add(&l, "x");
    assert_string_equal(out, "ab12340");
    struct elv_line none = elv_line_of(out, 1);
    elv_line_add(&none, "x");
    assert_string_equal(out, "");
}

static void numbers_print_short_and_plain(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *single, *twice; /* as a float, as a double */
    } rows[] = {
        {0, "0", "0"},
        {1, "1", "1"},
        {-2.5, "-2.5", "-2.5"},
        {0.1, "0.1", "0.1"},
        {0.05, "0.05", "0.05"},
        {0.0005, "0.0005", "0.0005"},
        {0.00001, "1e-5", "1e-5"},
        {1.0 / 255, "0.003921569", "0.003921568627451"},
        {100000, "100000", "100000"},
        {123456789, "123456790", "123456789"},
        {999999999, "1e9", "999999999"},
        {1e9, "1e9", "1e9"},
        {1.5e10, "1.5e10", "1.5e10"},
        {16777216, "16777216", "16777216"},
        {3.4028234663852886e38, "3.402823466e38", "3.4028234663853e38"},
        {30000000, "30000000", "30000000"},
        {9.5, "9.5", "9.5"},
        {0.999999, "0.999999", "0.999999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[40];
        struct elv_line l = elv_line_of(out, sizeof out);
        elv_line_f32(&l, (float)rows[i].v);
        assert_string_equal(out, rows[i].single);
        l = elv_line_of(out, sizeof out);
        elv_line_f64(&l, rows[i].v);
        assert_string_equal(out, rows[i].twice);
    }
}

static void what_is_printed_reads_back_as_the_same_float(void **state)
{
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 1664525u + 1013904223u;
        float v;
        double back;
        memcpy(&v, &bits, sizeof v);
        if (!(v >= -FLT_MAX && v <= FLT_MAX) || (v < 1e-30f && v > -1e-30f))
            continue;
        char out[40];
        struct elv_line l = elv_line_of(out, sizeof out);
        elv_line_f32(&l, v);
        assert_true(elv_text_number(out, l.len, &back));
        if ((float)back != v)
            fail_msg("%s", out);
        assert_true(strtof(out, NULL) == v);
    }
}

static void numbers_are_read_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double v;
    } good[] = {
        {"0", 0},
        {"-1", -1},
        {"+1", 1},
        {"00012", 12},
        {"1.", 1},
        {".5", 0.5},
        {"1e3", 1000},
        {"1E-3", 0.001},
        {"2.5e+2", 250},
        {"1e-400", 0},
        {"0.1", 0.1},
        {"123456789012345", 123456789012345},
        {"1e22", 1e22},
        {"3.14159", 3.14159},
        {"0.000000000000000000000000000001", 1e-30},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double v = -7;
        if (!elv_text_number(good[i].text, strlen(good[i].text), &v) || v != good[i].v)
            fail_msg("%s", good[i].text);
    }
    static const char *const bad[] = {
        "",    "+",    "-",  ".",  "e5",  "1e",   "1e+", "1e401", "1e400", "nan",
        "inf", "0x10", " 1", "1 ", "1,5", "1..2", "--1", "1e2.5", "1f",    "123456789012345678"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double v = -7;
        if (elv_text_number(bad[i], strlen(bad[i]), &v) || v != -7)
            fail_msg("%s", bad[i]);
    }
}

static void unsigned_numbers_stop_at_64_bits(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_true(elv_text_uint("18446744073709551615", 20, &v));
    assert_true(v == UINT64_MAX);
    assert_false(elv_text_uint("18446744073709551616", 20, &v));
    assert_false(elv_text_uint("99999999999999999999", 20, &v));
    assert_false(elv_text_uint("", 0, &v));
    assert_false(elv_text_uint("-1", 2, &v));
    assert_true(v == UINT64_MAX);
}

static void a_writer_counts_the_text_it_has_no_room_for(void **state)
{
    (void)state;
    uint8_t out[8];
    struct elv_wr w = elv_wr_of(out, sizeof out);
    elv_wr_text(&w, "n=");
    elv_wr_decimal(&w, 0);
    elv_wr_text(&w, "");
    assert_int_equal(w.need, 3);
    assert_memory_equal(out, "n=0", 3);
    assert_int_equal(w.err, ELV_OK);
    elv_wr_decimal(&w, UINT64_MAX);
    assert_int_equal(w.need, 23);
    assert_int_equal(w.err, ELV_ERR_SPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_cut_where_it_is_full),
        cmocka_unit_test(numbers_print_short_and_plain),
        cmocka_unit_test(what_is_printed_reads_back_as_the_same_float),
        cmocka_unit_test(numbers_are_read_and_nothing_else),
        cmocka_unit_test(unsigned_numbers_stop_at_64_bits),
        cmocka_unit_test(a_writer_counts_the_text_it_has_no_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
