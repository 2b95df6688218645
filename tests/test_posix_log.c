/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int pipe_fd[2];
static struct elv_log logger;

static int open_pipe(void **state)
{
    (void)state;
    if (pipe(pipe_fd) != 0)
        return -1;
    logger = (struct elv_log){.fd = pipe_fd[1], .level = ELV_LOG_INFO};
    return 0;
}

/* What came out, behind the time. */
static const char *read_line(char line[2 * ELV_LOG_LINE_MAX])
{
    const ssize_t n = read(pipe_fd[0], line, 2 * ELV_LOG_LINE_MAX - 1);
    assert_true(n > 0);
    line[n] = 0;
    assert_int_equal(line[n - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + n - 1); /* exactly one line */
    return strchr(line, ' ') + 1;
}

static void a_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    char line[2 * ELV_LOG_LINE_MAX];
    struct elv_log_line l = elv_log_begin(&logger, ELV_LOG_WARN, "round_closed");
    elv_log_u64(&l, "round", 3);
    elv_log_i64(&l, "left_ms", -5);
    elv_log_real(&l, "loss", 0.25);
    elv_log_text(&l, "peer", "10.0.0.1:5684");
    elv_log_fields(&l, "");
    elv_log_fields(&l, "asked=8 used=6");
    elv_log_end(&l);
    assert_string_equal(read_line(line),
                        "level=warn event=round_closed round=3 left_ms=-5 loss=0.25 "
                        "peer=10.0.0.1:5684 asked=8 used=6\n");
    static const char shape[] = "ts=dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; shape[i] != 0; i++) {
        if (shape[i] == 'd' && i > 2)
            assert_in_range(line[i], '0', '9');
        else
            assert_int_equal(line[i], shape[i]);
    }
}

static void text_from_outside_cannot_forge_a_field_or_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        size_t len;
        const char *want;
    } rows[] = {
        {"plain-1.2", 9, "plain-1.2"},
        {"", 0, "\"\""},
        {"two words", 9, "\"two words\""},
        {"a=b", 3, "\"a=b\""},
        {"say \"hi\"", 8, "\"say \\\"hi\\\"\""},
        {"back\\slash", 10, "\"back\\\\slash\""},
        {"x\nlevel=error event=forged", 26, "\"x\\nlevel=error event=forged\""},
        {"\x1b[2J", 4, "\"\\x1b[2J\""},
        {"z\0z", 3, "\"z\\x00z\""},
        {"\xc3\xa9", 2, "\"\\xc3\\xa9\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[2 * ELV_LOG_LINE_MAX], want[256] = "level=info event=e v=";
        struct elv_log_line l = elv_log_begin(&logger, ELV_LOG_INFO, "e");
        elv_log_bytes(&l, "v", rows[i].value, rows[i].len);
        elv_log_end(&l);
        strcat(strcat(want, rows[i].want), "\n");
        assert_string_equal(read_line(line), want);
    }
}

static void a_field_that_does_not_fit_is_left_out_whole_and_the_line_says_so(void **state)
{
    (void)state;
    for (size_t len = ELV_LOG_LINE_MAX - 80; len < ELV_LOG_LINE_MAX + 10; len++) {
        char line[2 * ELV_LOG_LINE_MAX], value[ELV_LOG_LINE_MAX + 10];
        memset(value, 'a', len);
        value[len - 1] = ' '; /* quoted, so that a cut would leave the quote open */
        struct elv_log_line l = elv_log_begin(&logger, ELV_LOG_INFO, "e");
        elv_log_bytes(&l, "v", value, len);
        elv_log_text(&l, "after", "x");
        elv_log_end(&l);
        const char *got = read_line(line);
        assert_true(strlen(line) <= ELV_LOG_LINE_MAX);
        const char *tail = strrchr(got, '"');
        if (tail == NULL)
            assert_string_equal(got, "level=info event=e cut=true\n");
        else if (strcmp(tail, "\" after=x\n") != 0)
            assert_string_equal(tail, "\" cut=true\n");
    }
}

static void what_is_less_urgent_than_the_level_is_dropped(void **state)
{
    (void)state;
    char line[2 * ELV_LOG_LINE_MAX];
    struct elv_log_line l = elv_log_begin(&logger, ELV_LOG_DEBUG, "quiet");
    elv_log_text(&l, "v", "x");
    elv_log_end(&l);
    l = elv_log_begin(NULL, ELV_LOG_ERROR, "nowhere");
    elv_log_end(&l);
    l = elv_log_begin(&logger, ELV_LOG_ERROR, "loud");
    elv_log_end(&l);
    assert_string_equal(read_line(line), "level=error event=loud\n");
}

static void levels_have_names(void **state)
{
    (void)state;
    enum elv_log_level level = ELV_LOG_ERROR;
    assert_true(elv_log_level_of("debug", &level));
    assert_int_equal(level, ELV_LOG_DEBUG);
    assert_true(elv_log_level_of("error", &level));
    assert_int_equal(level, ELV_LOG_ERROR);
    assert_false(elv_log_level_of("loud", &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_event_and_fields),
        cmocka_unit_test(text_from_outside_cannot_forge_a_field_or_a_line),
        cmocka_unit_test(a_field_that_does_not_fit_is_left_out_whole_and_the_line_says_so),
        cmocka_unit_test(what_is_less_urgent_than_the_level_is_dropped),
        cmocka_unit_test(levels_have_names),
    };
    return cmocka_run_group_tests(tests, open_pipe, NULL);
}
