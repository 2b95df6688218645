/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/trace.h"

#define HEAD "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n"

static enum elv_err parse(struct elv_lab_trace *t, const char *text, size_t len, char why[256],
                          uint32_t *line)
{
    uint8_t *copy = malloc(len + 1); /* so that a sanitizer sees the end */
    assert_non_null(copy);
    memcpy(copy, text, len);
    const enum elv_err err =
        elv_lab_trace_parse(t, (struct elv_bytes){.at = copy, .len = len}, why, line);
    free(copy);
    return err;
}

static void spans_are_read_and_found_by_client(void **state)
{
    (void)state;
    static const char text[] = HEAD "1,0,10,2.5,1000,2000\r\n"
                                    "1,12.5,20,2.5,0,0\n"
                                    "2,1,2, 40 ,5e3,1e4\n";
    struct elv_lab_trace t;
    char why[256];
    uint32_t line;
    assert_int_equal(parse(&t, text, sizeof text - 1, why, &line), ELV_OK);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.n_clients, 2);
    assert_int_equal(t.first[0], 0);
    assert_int_equal(t.first[1], 2);
    assert_int_equal(t.first[2], 3);
    assert_true(t.spans[1].start == 12500000 && t.spans[1].end == 20000000);
    assert_true(t.spans[0].compute_us == 2500.0 && t.spans[2].compute_us == 40000.0);
    assert_true(t.spans[2].up_bps == 5000.0 && t.spans[2].down_bps == 10000.0);
    elv_lab_trace_free(&t);
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        uint32_t line;
    } rows[] = {
        {"", "the first line is client,start", 1},
        {"client,start\n", "the first line is client,start", 1},
        {HEAD, "no client", 1},
        {HEAD "\n1,0,1,1,0,0\n", "six values", 2},
        {HEAD "1,0,1,1,0\n", "six values", 2},
        {HEAD "1,0,1,1,0,0,0\n", "six values", 2},
        {HEAD "x,0,1,1,0,0\n", "client is a number", 2},
        {HEAD "2,0,1,1,0,0\n", "the first client is 1", 2},
        {HEAD "0,0,1,1,0,0\n", "the first client is 1", 2},
        {HEAD "1,0,1,1,0,0\n3,0,1,1,0,0\n", "without gaps: the next is 2", 3},
        {HEAD "1,0,1,1,0,0\n2,0,1,1,0,0\n1,5,6,1,0,0\n", "without gaps: the next is 3", 4},
        {HEAD "1,soon,1,1,0,0\n", "start is a number", 2},
        {HEAD "1,,1,1,0,0\n", "start is a number", 2},
        {HEAD "1,-1,1,1,0,0\n", "start is 0 or more", 2},
        {HEAD "1,1,40000000,1,0,0\n", "end is in seconds", 2},
        {HEAD "1,1,1,1,0,0\n", "end is after start", 2},
        {HEAD "1,0,1,0,0,0\n", "compute_ms is above 0", 2},
        {HEAD "1,0,1,1,nan,0\n", "up_bytes_s is a number", 2},
        {HEAD "1,0,1,1,0,-5\n", "down_bytes_s is 0 or more", 2},
        {HEAD "1,0,5,1,0,0\n1,4,6,1,0,0\n", "before the one above it has ended", 3},
        {HEAD "1,5,6,1,0,0\n1,0,1,1,0,0\n", "before the one above it", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_lab_trace t;
        char why[256];
        uint32_t line;
        assert_int_equal(parse(&t, rows[i].text, strlen(rows[i].text), why, &line), ELV_ERR_FORMAT);
        if (strstr(why, rows[i].says) == NULL)
            fail_msg("row %zu says: %s", i, why);
        assert_int_equal(line, rows[i].line);
        assert_null(t.spans);
    }
}

static void every_truncation_is_refused_or_shorter(void **state)
{
    (void)state;
    static const char text[] = HEAD "1,0,10,2.5,1000,2000\n1,12.5,20,2.5,0,0\n2,1,2,40,5e3,1e4\n";
    for (size_t len = 0; len < sizeof text - 1; len++) {
        struct elv_lab_trace t;
        char why[256];
        uint32_t line;
        const enum elv_err err = parse(&t, text, len, why, &line);
        assert_true(err == ELV_OK || err == ELV_ERR_FORMAT);
        assert_true(err != ELV_OK || (t.n >= 1 && t.n <= 3 && t.first[t.n_clients] == t.n));
        elv_lab_trace_free(&t);
    }
}

static void a_spreadsheets_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf"
                               "client,start,end,compute_ms,up_bytes_s,down_bytes_s\r\n"
                               "1,0,10,5,0,0\r\n";
    struct elv_lab_trace t;
    char why[256];
    uint32_t line;
    const struct elv_bytes bytes = {.at = (const uint8_t *)text, .len = sizeof text - 1};
    assert_int_equal(elv_lab_trace_parse(&t, bytes, why, &line), ELV_OK);
    assert_int_equal(t.n, 1);
    elv_lab_trace_free(&t);
    for (size_t len = 0; len < 3; len++)
        assert_int_not_equal(elv_lab_trace_parse(&t, (struct elv_bytes){bytes.at, len}, why, &line),
                             ELV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_read_and_found_by_client),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test(every_truncation_is_refused_or_shorter),
        cmocka_unit_test(a_spreadsheets_byte_order_mark_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
