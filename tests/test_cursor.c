/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cursor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One of each, in the order write_all writes them. */
static const uint8_t golden[] = {
    0x01,                                           /* u8 */
    0x02, 0x01,                                     /* u16 */
    0x04, 0x03, 0x02, 0x01,                         /* u32 */
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* u64 */
    0x00, 0x00, 0x20, 0xc0,                         /* f32 */
    'e',  'l',  'v',                                /* bytes */
};

static struct elv_wr write_all(uint8_t *out, size_t cap)
{
    struct elv_wr w = elv_wr_of(out, cap);
    elv_wr_u8(&w, 0x01);
    elv_wr_u16(&w, 0x0102);
    elv_wr_u32(&w, 0x01020304);
    elv_wr_u64(&w, 0x0102030405060708);
    elv_wr_f32(&w, -2.5f);
    elv_wr_bytes(&w, (struct elv_bytes){.at = (const uint8_t *)"elv", .len = 3});
    return w;
}

static void writing_gives_the_golden_bytes(void **state)
{
    (void)state;
    uint8_t out[sizeof golden];
    const struct elv_wr w = write_all(out, sizeof out);
    assert_int_equal(w.err, ELV_OK);
    assert_int_equal(w.left, 0);
    assert_int_equal(w.need, sizeof golden);
    assert_memory_equal(out, golden, sizeof golden);
}

static void reading_the_golden_bytes_gives_the_values(void **state)
{
    (void)state;
    struct elv_rd r = elv_rd_of((struct elv_bytes){.at = golden, .len = sizeof golden});
    assert_int_equal(elv_rd_u8(&r), 0x01);
    assert_int_equal(elv_rd_u16(&r), 0x0102);
    assert_int_equal(elv_rd_u32(&r), 0x01020304);
    assert_true(elv_rd_u64(&r) == 0x0102030405060708);
    assert_true(elv_rd_f32(&r) == -2.5f);
    const struct elv_bytes tail = elv_rd_bytes(&r, 3);
    assert_int_equal(tail.len, 3);
    assert_ptr_equal(tail.at, golden + sizeof golden - 3);
    assert_int_equal(r.left, 0);
    assert_int_equal(r.err, ELV_OK);
}

static void every_truncation_is_short_and_reads_as_zero_from_there(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof golden; len++) {
        uint8_t *in = malloc(len + 1); /* a sanitizer sees what is read past the end */
        assert_non_null(in);
        memcpy(in, golden, len);
        in = realloc(in, len ? len : 1);
        struct elv_rd r = elv_rd_of((struct elv_bytes){.at = in, .len = len});
        elv_rd_u8(&r);
        elv_rd_u16(&r);
        elv_rd_u32(&r);
        elv_rd_u64(&r);
        elv_rd_f32(&r);
        const struct elv_bytes tail = elv_rd_bytes(&r, 3);
        assert_int_equal(r.err, ELV_ERR_SHORT);
        assert_int_equal(tail.len, 0);
        assert_null(tail.at);
        assert_int_equal(elv_rd_u8(&r), 0);
        free(in);
    }
}

static void a_failed_read_consumes_nothing_and_sticks(void **state)
{
    (void)state;
    const uint8_t in[3] = {1, 2, 3};
    struct elv_rd r = elv_rd_of((struct elv_bytes){.at = in, .len = sizeof in});
    assert_int_equal(elv_rd_u32(&r), 0);
    assert_int_equal(r.err, ELV_ERR_SHORT);
    assert_int_equal(r.left, 3);
    assert_int_equal(elv_rd_u8(&r), 0); /* there is a byte, but the failure sticks */
}

static void a_short_buffer_keeps_what_fitted_and_reports_the_size_needed(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < sizeof golden; cap++) {
        uint8_t *out = malloc(cap ? cap : 1);
        assert_non_null(out);
        const struct elv_wr w = write_all(out, cap);
        assert_int_equal(w.err, ELV_ERR_SPACE);
        assert_int_equal(w.need, sizeof golden);
        assert_memory_equal(out, golden, cap - w.left);
        free(out);
    }
}

static void empty_views_need_no_memory(void **state)
{
    (void)state;
    struct elv_rd r = elv_rd_of((struct elv_bytes){0});
    const struct elv_bytes none = elv_rd_bytes(&r, 0);
    assert_int_equal(r.err, ELV_OK);
    assert_int_equal(none.len, 0);

    struct elv_wr w = elv_wr_of(NULL, 0);
    elv_wr_bytes(&w, none);
    assert_int_equal(w.err, ELV_OK);
    assert_int_equal(w.need, 0);
}

static void a_length_near_the_top_of_size_t_is_short_not_a_wrap(void **state)
{
    (void)state;
    struct elv_rd r = elv_rd_of((struct elv_bytes){.at = golden, .len = sizeof golden});
    elv_rd_u8(&r);
    assert_null(elv_rd_bytes(&r, SIZE_MAX).at);
    assert_int_equal(r.err, ELV_ERR_SHORT);
}

static void every_float_bit_pattern_survives(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {
        0x00000000, 0x80000000, /* zeros */
        0x00000001, 0x7f7fffff, /* smallest, largest */
        0x7f800000, 0xff800000, /* infinities */
        0x7fc00000,             /* a quiet NaN */
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        uint8_t bytes[4], again[4];
        struct elv_wr w = elv_wr_of(bytes, sizeof bytes);
        elv_wr_u32(&w, patterns[i]);
        struct elv_rd r = elv_rd_of((struct elv_bytes){.at = bytes, .len = sizeof bytes});
        w = elv_wr_of(again, sizeof again);
        elv_wr_f32(&w, elv_rd_f32(&r));
        assert_memory_equal(again, bytes, sizeof bytes);
    }
}

static void floats_in_a_row_are_the_same_bytes_as_one_by_one(void **state)
{
    (void)state;
    static const float v[5] = {1.0f, -2.5f, 0.0f, 3e-39f, 1e30f};
    for (size_t n = 0; n <= 5; n++) {
        uint8_t single[20], row[20];
        float back[5];
        struct elv_wr one = elv_wr_of(single, sizeof single), all = elv_wr_of(row, sizeof row);
        for (size_t i = 0; i < n; i++)
            elv_wr_f32(&one, v[i]);
        elv_wr_f32s(&all, v, n);
        assert_int_equal(all.need, 4 * n);
        assert_memory_equal(single, row, 4 * n);
        struct elv_rd r = elv_rd_of((struct elv_bytes){row, 4 * n});
        elv_rd_f32s(&r, back, n);
        assert_int_equal(r.err, ELV_OK);
        assert_int_equal(r.left, 0);
        assert_memory_equal(back, v, 4 * n);
        elv_rd_f32s(&r, back, 1);
        assert_int_equal(r.err, ELV_ERR_SHORT);
        assert_true(back[0] == 0.0f);
    }
    struct elv_wr small = elv_wr_of(NULL, 0);
    elv_wr_f32s(&small, v, 5);
    assert_int_equal(small.err, ELV_ERR_SPACE);
    assert_int_equal(small.need, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing_gives_the_golden_bytes),
        cmocka_unit_test(reading_the_golden_bytes_gives_the_values),
        cmocka_unit_test(every_truncation_is_short_and_reads_as_zero_from_there),
        cmocka_unit_test(a_failed_read_consumes_nothing_and_sticks),
        cmocka_unit_test(a_short_buffer_keeps_what_fitted_and_reports_the_size_needed),
        cmocka_unit_test(empty_views_need_no_memory),
        cmocka_unit_test(a_length_near_the_top_of_size_t_is_short_not_a_wrap),
        cmocka_unit_test(every_float_bit_pattern_survives),
        cmocka_unit_test(floats_in_a_row_are_the_same_bytes_as_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
