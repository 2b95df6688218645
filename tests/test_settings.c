/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/settings.h"

static struct elv_settings s;
static char why[ELV_SETTINGS_ERROR_MAX];

static enum elv_err set(const char *section, const char *key, const char *value, uint32_t line)
{
    return elv_settings_set(&s, section, key, value, line, why);
}

static void values_are_read_or_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key, *value;
        enum elv_err err;
        const char *says; /* part of the sentence */
    } rows[] = {
        {"server", "listen", "127.0.0.1:0", ELV_OK, ""},
        {"server", "linger", "5s", ELV_OK, ""},
        {"server", "linger", "24h", ELV_OK, ""},
        {"server", "linger", "25h", ELV_ERR_RANGE, "at most 24h"},
        {"server", "linger", "5", ELV_ERR_FORMAT, "a duration like 60s"},
        {"server", "threads", "64", ELV_OK, ""},
        {"server", "threads", "65", ELV_ERR_RANGE, "at most 64"},
        {"server", "threads", "two", ELV_ERR_FORMAT, "a number of threads"},
        {"limits", "log", "1TiB", ELV_OK, ""},
        {"limits", "log", "1025GiB", ELV_ERR_RANGE, "at most 1TiB"},
        {"limits", "log", "99999999999TiB", ELV_ERR_FORMAT, "a size like 1GiB"},
        {"limits", "log", "1GB", ELV_ERR_FORMAT, "a size like 1GiB"},
        {"limits", "receive_buffer", "4096", ELV_OK, ""},
        {"limits", "client_min", "elver/0.1.0", ELV_OK, ""},
        {"limits", "client_min", "0.1.0", ELV_ERR_FORMAT, "like elver/0.1.0"},
        {"limits", "client_min", "elver/", ELV_ERR_FORMAT, "like elver/0.1.0"},
        {"limits", "client_min", "elver/new", ELV_ERR_FORMAT, "like elver/0.1.0"},
        {"log", "level", "debug", ELV_OK, ""},
        {"log", "level", "loud", ELV_ERR_FORMAT, "error, warn, info or debug"},
        {"server", "lister", "x", ELV_ERR_MISSING, "did you mean 'listen' of [server]?"},
        {"server", "wonderful", "x", ELV_ERR_MISSING, "the sections are"},
        {"sever", "state", "x", ELV_ERR_MISSING, "did you mean 'state' of [server]?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        elv_settings_init(&s);
        assert_int_equal(set(rows[i].section, rows[i].key, rows[i].value, 1), rows[i].err);
        if (rows[i].err != ELV_OK)
            assert_non_null(strstr(why, rows[i].says));
    }
}

static void a_key_is_given_once_and_a_flag_overrides_it(void **state)
{
    (void)state;
    elv_settings_init(&s);
    assert_int_equal(set("server", "threads", "2", 7), ELV_OK);
    assert_int_equal(set("server", "threads", "3", 9), ELV_ERR_BUSY);
    assert_non_null(strstr(why, "line 7"));
    assert_int_equal(s.threads, 2);
    assert_int_equal(set("server", "threads", "4", ELV_SETTING_FLAG), ELV_OK);
    assert_int_equal(s.threads, 4);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    uint32_t line;
    elv_settings_init(&s);
    assert_int_equal(elv_settings_check(&s, why, &line), ELV_ERR_MISSING);
    assert_non_null(strstr(why, "'state'"));
    set("server", "state", "d", 1);
    assert_int_equal(elv_settings_check(&s, why, &line), ELV_ERR_MISSING);
    assert_non_null(strstr(why, "'keys'"));
    set("server", "keys", "k", 2);
    assert_int_equal(elv_settings_check(&s, why, &line), ELV_OK);
    set("server", "cert", "c", 5);
    assert_int_equal(elv_settings_check(&s, why, &line), ELV_ERR_MISSING);
    assert_int_equal(line, 5);
}

static void what_is_printed_reads_back(void **state)
{
    (void)state;
    const char *section, *key;
    char value[ELV_SETTING_TEXT_MAX];
    uint32_t line;
    struct elv_settings again;
    elv_settings_init(&s);
    set("limits", "log", "3MiB", 1);
    set("limits", "receive_buffer", "1025", 2);
    set("server", "linger", "90s", 3);
    elv_settings_init(&again);
    for (size_t i = 0; elv_settings_key(&s, i, &section, &key, value, &line); i++)
        if (value[0] != 0)
            assert_int_equal(elv_settings_set(&again, section, key, value, 1, why), ELV_OK);
    assert_int_equal(again.log_bytes, 3 << 20);
    assert_int_equal(again.receive_buffer, 1025);
    assert_int_equal(again.linger_us, 90000000);
    assert_string_equal(again.listen, s.listen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_or_refused_with_a_sentence),
        cmocka_unit_test(a_key_is_given_once_and_a_flag_overrides_it),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(what_is_printed_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
