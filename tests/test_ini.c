/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/inih/ini.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char seen[4096];

/* Writes down what it is given; refuses the value "bad". */
static enum elv_err note(void *ctx, const char *section, const char *key, const char *value,
                         uint32_t line, char why[ELV_INI_WHY_MAX])
{
    (void)ctx;
    if (strcmp(value, "bad") == 0) {
        snprintf(why, ELV_INI_WHY_MAX, "%s is a number, 1 to 9", key);
        return ELV_ERR_RANGE;
    }
    if (strcmp(value, "silent") == 0)
        return ELV_ERR_UNSUPPORTED;
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s.%s=%s@%u|", section, key, value,
             (unsigned)line);
    return ELV_OK;
}

static enum elv_err parse(const char *text, size_t len, char *message)
{
    seen[0] = 0;
    message[0] = 0;
    return elv_ini_parse((struct elv_bytes){(const uint8_t *)text, len}, "job.ini", NULL, note,
                         message);
}

static void keys_come_with_section_value_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},
        {"; nothing\n# at all\n\n", ""},
        {"[job]\nname = fashion\nseed=1\n", "job.name=fashion@2|job.seed=1@3|"},
        {"[data]                  ; scaling\ntrain = idx /a/b   ; one ; two\n",
         "data.train=idx /a/b@2|"},
        {"a = 1", ".a=1@1|"},
        {"[s]\na =\n", "s.a=@2|"},
        {"[s]\na = x;y\n", "s.a=x;y@2|"},
        {"[s]\r\na = 1\r\n", "s.a=1@2|"},
        {"\xef\xbb\xbf[s]\na = 1\n", "s.a=1@2|"},
        {"[s]\nlayers = conv 8,\n    dense 64,\n\tdense 10\nb = 2\n",
         "s.layers=conv 8, dense 64, dense 10@2|s.b=2@5|"},
        {"[s]\nlayers =\n  dense 10\n", "s.layers=dense 10@2|"},
        {"[s]\na = 1\n  ; a comment\n  2\n", "s.a=1 2@2|"},
        {"[s]\na = 1\n[t]\na = 2\n[s]\nb = 3\n", "s.a=1@2|t.a=2@4|s.b=3@6|"},
        {"[s]\n  a = 1\n", "s.a=1@2|"}, /* the first key of a section may be indented */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char message[ELV_INI_MESSAGE_MAX];
        print_message("%s\n", rows[i].text);
        assert_int_equal(parse(rows[i].text, strlen(rows[i].text), message), ELV_OK);
        assert_string_equal(seen, rows[i].want);
    }
}

static void what_is_wrong_is_named_with_file_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum elv_err want;
        const char *message;
    } rows[] = {
        {"[job]\nseed = bad\n", ELV_ERR_RANGE, "job.ini:2: seed is a number, 1 to 9"},
        {"[job]\nseed = silent\n", ELV_ERR_UNSUPPORTED,
         "job.ini:2: this build or device cannot do it"},
        {"[job]\na = 1\nseed =\n bad\n\nb = 1\n", ELV_ERR_RANGE,
         "job.ini:3: seed is a number, 1 to 9"},
        {"[job]\na = 1\nb = 2\na = 3\n", ELV_ERR_FORMAT, "job.ini:4: this key was given before"},
        {"[job]\na = 1\n  b = 2\n", ELV_ERR_FORMAT,
         "job.ini:3: an indented line continues the value above; begin a key at the start of its "
         "line"},
        {"[job\na = 1\n", ELV_ERR_FORMAT,
         "job.ini:1: a line is [section], key = value or a ; "
         "comment"},
        {"[job]\na = 1\nnonsense\nb = bad\n", ELV_ERR_FORMAT,
         "job.ini:3: a line is [section], key = value or a ; comment"},
        {"[job]\nb = bad\nnonsense\n", ELV_ERR_RANGE, "job.ini:2: b is a number, 1 to 9"},
        {"[job]\na = \x01\n", ELV_ERR_FORMAT, "job.ini:2: there is a control character"},
        {"[a234567890123456789012345678901234567890123456789]\nx = 1\n", ELV_ERR_FORMAT,
         "job.ini:1: the section's name is too long"},
        {"[s]\na234567890123456789012345678901234567890123456789 = 1\n", ELV_ERR_FORMAT,
         "job.ini:2: the key's name is too long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char message[ELV_INI_MESSAGE_MAX];
        print_message("%s\n", rows[i].text);
        assert_int_equal(parse(rows[i].text, strlen(rows[i].text), message), rows[i].want);
        assert_string_equal(message, rows[i].message);
    }
}

static void a_utf_16_file_is_recognised(void **state)
{
    (void)state;
    char message[ELV_INI_MESSAGE_MAX];
    assert_int_equal(parse("\xff\xfe[\0s\0]\0\n\0", 10, message), ELV_ERR_FORMAT);
    assert_string_equal(message, "job.ini:1: there is a zero byte: is this a text file in UTF-8?");
}

/* A line of every length is taken whole or refused, never cut. */
static void no_line_is_cut(void **state)
{
    (void)state;
    bool refused = false;
    for (size_t len = 1; len < 1500; len++) {
        char text[1600], message[ELV_INI_MESSAGE_MAX], want[1600];
        memcpy(text, "k=", 2);
        memset(text + 2, 'v', len);
        text[len + 2] = 0;
        snprintf(want, sizeof want, ".k=%s@1|", text + 2);
        const enum elv_err err = parse(text, len + 2, message);
        if (err == ELV_OK) {
            assert_false(refused);
            assert_string_equal(seen, want);
        } else {
            refused = true;
            assert_non_null(strstr(message, "too long"));
        }
    }
    assert_true(refused);
}

static void a_value_may_go_on_up_to_a_limit(void **state)
{
    (void)state;
    for (size_t lines = 8; lines <= 11; lines++) {
        char text[2000] = "k = 0123456789", message[ELV_INI_MESSAGE_MAX];
        for (size_t i = 0; i < lines; i++) {
            strcat(text, "\n ");
            memset(text + strlen(text), 'v', 100); /* the array is zero beyond */
        }
        const bool fits = 10 + lines * 101 < ELV_INI_VALUE_MAX;
        assert_int_equal(parse(text, strlen(text), message), fits ? ELV_OK : ELV_ERR_FORMAT);
        if (!fits)
            assert_non_null(strstr(message, "the value is too long"));
    }
}

static void too_many_keys_are_refused(void **state)
{
    (void)state;
    char *text = malloc(ELV_INI_KEYS_MAX * 20), message[ELV_INI_MESSAGE_MAX];
    size_t len = 0;
    for (uint32_t i = 0; i <= ELV_INI_KEYS_MAX; i++)
        len += (size_t)sprintf(text + len, "k%u = 1\n", i);
    assert_int_equal(parse(text, len, message), ELV_ERR_FORMAT);
    assert_string_equal(message, "job.ini:513: there are too many keys");
    free(text);
}

static void a_file_is_read_or_the_reason_given(void **state)
{
    (void)state;
    char path[] = "/tmp/elv_ini_test", message[ELV_INI_MESSAGE_MAX] = "";
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("[s]\na = 1\nb = bad\n", f);
    fclose(f);
    seen[0] = 0;
    assert_int_equal(elv_ini_load(path, NULL, note, message), ELV_ERR_RANGE);
    assert_string_equal(seen, "s.a=1@2|");
    assert_string_equal(message, "/tmp/elv_ini_test:3: b is a number, 1 to 9");
    remove(path);
    assert_int_equal(elv_ini_load(path, NULL, note, message), ELV_ERR_MISSING);
    assert_string_equal(message, "/tmp/elv_ini_test: No such file or directory");
    assert_int_equal(elv_ini_load("/tmp", NULL, note, message), ELV_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_with_section_value_and_line),
        cmocka_unit_test(what_is_wrong_is_named_with_file_and_line),
        cmocka_unit_test(a_utf_16_file_is_recognised),
        cmocka_unit_test(no_line_is_cut),
        cmocka_unit_test(a_value_may_go_on_up_to_a_limit),
        cmocka_unit_test(too_many_keys_are_refused),
        cmocka_unit_test(a_file_is_read_or_the_reason_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
