/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ports/posix/file.h"

static const char want[] = "{\"round\":3,\"left\":-1,\"loss\":0.25,\"nan\":null,\"done\":false,"
                           "\"updates\":{\"used\":18446744073709551615,\"reasons\":{}},"
                           "\"text\":\"a\\\"b\\\\c\\u000ad\xc3\xa9\"}\n";

static struct elv_stats fill(char *out, size_t cap)
{
    struct elv_stats s = elv_stats_begin(out, cap);
    elv_stats_u64(&s, "round", 3);
    elv_stats_i64(&s, "left", -1);
    elv_stats_real(&s, "loss", 0.25);
    elv_stats_real(&s, "nan", (double)NAN);
    elv_stats_bool(&s, "done", false);
    elv_stats_open(&s, "updates");
    elv_stats_u64(&s, "used", UINT64_MAX);
    elv_stats_open(&s, "reasons");
    elv_stats_close(&s);
    elv_stats_close(&s);
    elv_stats_text(&s, "text", "a\"b\\c\nd\xc3\xa9");
    return s;
}

static void figures_become_one_json_object(void **state)
{
    (void)state;
    char out[512];
    struct elv_stats s = fill(out, sizeof out);
    const struct elv_bytes text = elv_stats_end(&s);
    assert_int_equal(text.len, sizeof want - 1);
    assert_memory_equal(text.at, want, text.len);
}

static void a_buffer_too_small_by_any_amount_gives_nothing(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < sizeof want - 1; cap++) {
        char *out = malloc(cap + 1);
        struct elv_stats s = fill(out, cap);
        assert_int_equal(elv_stats_save(&s, "/tmp/elv/never/written"), ELV_ERR_SPACE);
        free(out);
    }
}

static void an_object_left_open_is_not_saved(void **state)
{
    (void)state;
    char out[512];
    struct elv_stats s = elv_stats_begin(out, sizeof out);
    elv_stats_open(&s, "x");
    assert_int_equal(elv_stats_save(&s, "/tmp/elv/never/written"), ELV_ERR_ARG);
}

static void a_saved_object_is_the_whole_file(void **state)
{
    (void)state;
    char out[512];
    uint8_t *got = NULL;
    size_t len = 0;
    struct elv_stats s = fill(out, sizeof out);
    assert_int_equal(elv_stats_save(&s, "/tmp/elv_stats_test"), ELV_OK);
    assert_int_equal(elv_posix_load("/tmp/elv_stats_test", 1000, &got, &len), ELV_OK);
    assert_string_equal((char *)got, want);
    free(got);
    remove("/tmp/elv_stats_test");
    s = fill(out, sizeof out);
    assert_int_equal(elv_stats_save(&s, "/tmp/elv/no/such"), ELV_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_become_one_json_object),
        cmocka_unit_test(a_buffer_too_small_by_any_amount_gives_nothing),
        cmocka_unit_test(an_object_left_open_is_not_saved),
        cmocka_unit_test(a_saved_object_is_the_whole_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
