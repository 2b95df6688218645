/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/keys.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ports/posix/credential.h"
#include "ports/posix/file.h"

#define KEY_A "000102030405060708090a0b0c0d0e0f"
#define KEY_B "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
#define KEY_LONG KEY_A KEY_B

static char folder[] = "/tmp/elv_keys_XXXXXX";
static char path[64], lock_path[64], credential_path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/keys", folder);
    snprintf(lock_path, sizeof lock_path, "%s/keys.lock", folder);
    snprintf(credential_path, sizeof credential_path, "%s/credential", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(lock_path);
    unlink(credential_path);
    return rmdir(folder);
}

static struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){.at = (const uint8_t *)s, .len = strlen(s)};
}

static const struct elv_key *find(const struct elv_keytable *t, const char *identity)
{
    return elv_keytable_find(t, identity, strlen(identity));
}

static void identities_have_one_way_to_be_written(void **state)
{
    (void)state;
    static const struct {
        const char *identity;
        uint32_t generation; /* 0: refused */
    } rows[] = {
        {"a", 1},
        {"pump-7.site_3:x", 1},
        {"0123456789012345678901234567890123456789012345678901234567890123", 1},
        {"01234567890123456789012345678901234567890123456789012345678901234", 0},
        {"pump#2", 2},
        {"pump#999999999", 999999999},
        {"pump#1000000000", 0},
        {"pump#1", 0}, /* written without */
        {"pump#0", 0},
        {"pump#02", 0},
        {"pump#", 0},
        {"pump#-2", 0},
        {"pump#2#3", 0},
        {"", 0},
        {"#2", 0},
        {"two words", 0},
        {"sl/ash", 0},
        {"\xc3\xa9", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[ELV_KEY_NAME_MAX + 1] = "";
        uint32_t generation = 0;
        print_message("%s\n", rows[i].identity);
        assert_int_equal(
            elv_identity_split(rows[i].identity, strlen(rows[i].identity), name, &generation),
            rows[i].generation != 0);
        assert_int_equal(generation, rows[i].generation);
    }
}

static void a_line_is_a_key_a_comment_or_wrong_for_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum elv_err want;
        const char *why;
    } rows[] = {
        {"1 a " KEY_A, ELV_OK, ""},
        {"  4294967295\ta#7\t" KEY_LONG " enabled \r", ELV_OK, ""},
        {"1 a certificate revoked", ELV_OK, ""},
        {"", ELV_ERR_MISSING, ""},
        {" \t\r", ELV_ERR_MISSING, ""},
        {"# 1 a " KEY_A, ELV_ERR_MISSING, ""},
        {"1 a", ELV_ERR_FORMAT, "a line is"},
        {"1 a " KEY_A " revoked now", ELV_ERR_FORMAT, "a line is"},
        {"0 a " KEY_A, ELV_ERR_FORMAT, "number"},
        {"01 a " KEY_A, ELV_ERR_FORMAT, "number"},
        {"4294967296 a " KEY_A, ELV_ERR_FORMAT, "number"},
        {"-1 a " KEY_A, ELV_ERR_FORMAT, "number"},
        {"1 a/b " KEY_A, ELV_ERR_FORMAT, "identity"},
        {"1 a#1 " KEY_A, ELV_ERR_FORMAT, "identity"},
        {"1 a " KEY_A "0", ELV_ERR_FORMAT, "hexadecimal"},
        {"1 a 0102", ELV_ERR_FORMAT, "hexadecimal"},
        {"1 a " KEY_LONG "00", ELV_ERR_FORMAT, "hexadecimal"},
        {"1 a x00102030405060708090a0b0c0d0e0f", ELV_ERR_FORMAT, "hexadecimal"},
        {"1 a 00000000000000000000000000000000", ELV_ERR_FORMAT, "no secret"},
        {"1 a " KEY_A " Revoked", ELV_ERR_FORMAT, "enabled or revoked"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_key key;
        char why[ELV_KEY_WHY_MAX] = "";
        print_message("%s\n", rows[i].line);
        assert_int_equal(elv_key_parse(text(rows[i].line), &key, why), rows[i].want);
        assert_non_null(strstr(why, rows[i].why));
    }
}

static void a_key_prints_as_it_is_read(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "1 a " KEY_A " enabled",
        "4294967295 a.b_c:d-e#999999999 " KEY_LONG " revoked",
        "3 gate certificate enabled",
    };
    for (size_t i = 0; i < 3; i++) {
        struct elv_key key;
        char why[ELV_KEY_WHY_MAX], out[ELV_KEY_LINE_MAX];
        assert_int_equal(elv_key_parse(text(lines[i]), &key, why), ELV_OK);
        assert_int_equal(elv_key_print(&key, out), strlen(lines[i]));
        assert_string_equal(out, lines[i]);
    }
}

static void keys_are_found_by_identity_and_by_number(void **state)
{
    (void)state;
    struct elv_keytable t;
    struct elv_key_error e;
    assert_int_equal(elv_keytable_parse(&t,
                                        text("# fleet\n"
                                             "7 b " KEY_A "\n"
                                             "2 c certificate revoked\n"
                                             "9 a " KEY_A "\r\n"
                                             "\n"
                                             "7 b#3 " KEY_B "\n"
                                             "7 b#2 " KEY_LONG), /* no line end */
                                        &e),
                     ELV_OK);
    assert_int_equal(t.n, 5);
    assert_int_equal(find(&t, "b")->number, 7);
    assert_int_equal(find(&t, "b")->line, 2);
    assert_int_equal(find(&t, "b#2")->key_len, 32);
    assert_int_equal(find(&t, "b#3")->key[0], 0xF0);
    assert_int_equal(find(&t, "a")->number, 9);
    assert_null(find(&t, "b#4"));
    assert_null(find(&t, "a#2"));
    assert_null(find(&t, "d"));
    assert_null(find(&t, "b#1")); /* not how the first is written */
    assert_null(find(&t, "c"));   /* revoked */
    assert_int_equal(elv_keytable_device(&t, 7)->generation, 3);
    assert_string_equal(elv_keytable_device(&t, 2)->name, "c");
    assert_null(elv_keytable_device(&t, 8));
    assert_true(elv_keytable_enabled(&t, 9));
    assert_false(elv_keytable_enabled(&t, 2));
    assert_false(elv_keytable_enabled(&t, 3));
    elv_keytable_free(&t);
}

static void a_table_that_contradicts_itself_is_refused_with_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line;
        const char *why;
    } rows[] = {
        {"1 a " KEY_A "\n2 b " KEY_A "\n2 c " KEY_A, 3, "another identity in line 2"},
        {"1 a " KEY_A "\n2 b " KEY_A "\n3 a#2 " KEY_A, 3, "another number in line 1"},
        {"1 a " KEY_A "\n\n1 a " KEY_B, 3, "a key already in line 1"},
        {"1 a " KEY_A "\n1 a#2 " KEY_A "\n1 a#2 " KEY_B, 3, "a key already in line 2"},
        {"1 a " KEY_A "\nnonsense\n1 a " KEY_A, 2, "a line is"},
        {"1 z " KEY_A "\n1 z " KEY_B "\n5 b " KEY_A "\n5 a " KEY_A, 2, "already in line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_keytable t;
        struct elv_key_error e;
        assert_int_equal(elv_keytable_parse(&t, text(rows[i].text), &e), ELV_ERR_FORMAT);
        assert_int_equal(e.line, rows[i].line);
        assert_non_null(strstr(e.why, rows[i].why));
        assert_int_equal(t.n, 0);
    }
}

static void every_truncation_of_a_table_is_read_or_refused(void **state)
{
    (void)state;
    static const char all[] = "1 a " KEY_A " enabled\n2 b#2 " KEY_B " revoked\n3 c certificate\n";
    for (size_t len = 0; len < sizeof all; len++) {
        struct elv_keytable t;
        struct elv_key_error e;
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, all, len);
        const enum elv_err err = elv_keytable_parse(&t, (struct elv_bytes){copy, len}, &e);
        assert_true(err == ELV_OK || (err == ELV_ERR_FORMAT && e.line >= 1 && e.line <= 3));
        elv_keytable_free(&t);
        free(copy);
    }
}

static void twenty_thousand_devices_are_all_found(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *all = malloc((size_t)N * 80);
    size_t len = 0;
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t number = 1 + (i * 7919u) % N; /* in no order */
        len += (size_t)sprintf(all + len, "%u device-%u %08x0102030405060708090a0b0c\n", number,
                               number, number);
    }
    struct elv_keytable t;
    struct elv_key_error e;
    assert_int_equal(elv_keytable_parse(&t, (struct elv_bytes){(uint8_t *)all, len}, &e), ELV_OK);
    for (uint32_t number = 1; number <= N; number++) {
        char name[32];
        snprintf(name, sizeof name, "device-%u", number);
        const struct elv_key *k = find(&t, name);
        assert_non_null(k);
        assert_int_equal(k->number, number);
        assert_ptr_equal(elv_keytable_device(&t, number), k);
    }
    elv_keytable_free(&t);
    free(all);
}

static void write_table(const char *content)
{
    assert_int_equal(elv_posix_save(path, text(content)), ELV_OK);
}

static uint32_t gone_numbers[8], n_gone;

static void on_gone(void *ctx, uint32_t number)
{
    (void)ctx;
    gone_numbers[n_gone++] = number;
}

static bool check(struct elv_keys *k, enum elv_err want, struct elv_key_error *e)
{
    bool changed = false;
    n_gone = 0;
    assert_int_equal(elv_keys_check(k, &changed, NULL, on_gone, e), want);
    return changed;
}

static void a_changed_file_is_taken_and_the_revoked_are_named(void **state)
{
    (void)state;
    struct elv_keys k;
    struct elv_key_error e;
    write_table("1 a " KEY_A "\n2 b " KEY_A "\n3 c " KEY_A "\n3 c#2 " KEY_B "\n4 d " KEY_A
                " revoked\n");
    assert_int_equal(elv_keys_open(&k, path, &e), ELV_OK);
    assert_false(check(&k, ELV_OK, &e));
    /* a stays, b is revoked, c loses one of two keys, d was out already, e is new */
    write_table("1 a " KEY_A "\n2 b " KEY_A " revoked\n3 c#2 " KEY_B "\n5 e " KEY_A "\n");
    assert_true(check(&k, ELV_OK, &e));
    assert_int_equal(n_gone, 1);
    assert_int_equal(gone_numbers[0], 2);
    assert_int_equal(find(&k.table, "e")->number, 5);
    assert_null(find(&k.table, "b"));
    write_table("5 e " KEY_A "\n"); /* lines removed altogether */
    assert_true(check(&k, ELV_OK, &e));
    assert_int_equal(n_gone, 2);
    assert_int_equal(gone_numbers[0], 1);
    assert_int_equal(gone_numbers[1], 3);
    elv_keys_free(&k);
}

static void a_bad_line_keeps_the_old_table_and_is_reported_once(void **state)
{
    (void)state;
    struct elv_keys k;
    struct elv_key_error e;
    write_table("1 a " KEY_A "\n");
    assert_int_equal(elv_keys_open(&k, path, &e), ELV_OK);
    write_table("1 a " KEY_A " revoked\n2 b short\n");
    assert_false(check(&k, ELV_ERR_FORMAT, &e));
    assert_int_equal(e.line, 2);
    assert_int_equal(n_gone, 0);
    assert_non_null(find(&k.table, "a"));
    assert_false(check(&k, ELV_OK, &e));
    assert_int_equal(unlink(path), 0);
    assert_false(check(&k, ELV_ERR_MISSING, &e));
    assert_false(check(&k, ELV_OK, &e));
    write_table("2 b " KEY_A "\n");
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(check(&k, ELV_ERR_AUTH, &e));
    assert_non_null(strstr(e.why, "chmod 600"));
    write_table("2 b " KEY_A "\n");
    assert_true(check(&k, ELV_OK, &e));
    assert_int_equal(n_gone, 1);
    elv_keys_free(&k);
}

static void what_cannot_be_opened_is_explained(void **state)
{
    (void)state;
    struct elv_keys k;
    struct elv_key_error e;
    assert_int_equal(elv_keys_open(&k, "/tmp/elv/no/such", &e), ELV_ERR_MISSING);
    assert_non_null(strstr(e.why, "No such file"));
    write_table("1 a " KEY_A "\n2 a " KEY_A "\n");
    assert_int_equal(elv_keys_open(&k, path, &e), ELV_ERR_FORMAT);
    assert_int_equal(e.line, 2);
}

static void check_file(const char *want)
{
    uint8_t *got = NULL;
    size_t len;
    assert_int_equal(elv_posix_load(path, 10000, &got, &len), ELV_OK);
    assert_string_equal((char *)got, want);
    free(got);
}

static void the_older_key_ends_when_the_newer_is_used(void **state)
{
    (void)state;
    struct elv_keys k;
    struct elv_key_error e;
    write_table("# fleet\n1 a " KEY_A "\n2 b " KEY_A "\n1 a#2 " KEY_B "\n");
    assert_int_equal(elv_keys_open(&k, path, &e), ELV_OK);
    elv_keys_used(&k, "a", 1); /* the older one: both stay */
    assert_non_null(find(&k.table, "a"));
    assert_non_null(find(&k.table, "a#2"));
    elv_keys_used(&k, "nobody", 6);
    elv_keys_used(&k, "a#2", 3);
    assert_null(find(&k.table, "a"));
    assert_non_null(find(&k.table, "a#2"));
    /* meanwhile somebody adds a device; nothing of either change is lost */
    const struct elv_key added = {.number = 3, .generation = 1, .name = "c"};
    const struct elv_key_change change = {.add = &added, .n_add = 1};
    assert_int_equal(elv_keys_change(path, &change, true, &e), ELV_OK);
    assert_true(check(&k, ELV_OK, &e));
    assert_int_equal(n_gone, 0);
    check_file("# fleet\n2 b " KEY_A "\n1 a#2 " KEY_B "\n3 c certificate enabled\n");
    assert_null(find(&k.table, "a"));
    assert_non_null(find(&k.table, "c"));
    assert_false(check(&k, ELV_OK, &e));
    elv_keys_free(&k);
}

static enum elv_key_edit revoke_b(void *ctx, struct elv_key *key)
{
    (void)ctx;
    if (strcmp(key->name, "b") != 0)
        return strcmp(key->name, "gone") == 0 ? ELV_KEY_REMOVE : ELV_KEY_KEEP;
    key->revoked = true;
    return ELV_KEY_CHANGED;
}

static void a_change_touches_one_line_and_keeps_the_rest(void **state)
{
    (void)state;
    struct elv_key_error e;
    unlink(path);
    struct elv_key first = {.number = 1, .generation = 1, .key_len = 16, .name = "a"};
    for (uint8_t i = 0; i < 16; i++)
        first.key[i] = i;
    const struct elv_key_change make = {.add = &first, .n_add = 1};
    assert_int_equal(elv_keys_change(path, &make, true, &e), ELV_OK);
    check_file("# number identity key [enabled|revoked]\n1 a " KEY_A " enabled\n");
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);

    write_table("#x\n\n 9 gone certificate\n1   a " KEY_A " \n2 b " KEY_A "\n2 b#2 " KEY_B);
    const struct elv_key_change revoke = {.edit = revoke_b};
    assert_int_equal(elv_keys_change(path, &revoke, true, &e), ELV_OK);
    check_file("#x\n\n1   a " KEY_A " \n2 b " KEY_A " revoked\n2 b#2 " KEY_B " revoked\n");
}

static void a_change_that_would_break_the_table_is_refused(void **state)
{
    (void)state;
    struct elv_key_error e;
    write_table("1 a " KEY_A "\n");
    const struct elv_key again = {.number = 2, .generation = 1, .name = "a"};
    const struct elv_key_change change = {.add = &again, .n_add = 1};
    assert_int_equal(elv_keys_change(path, &change, true, &e), ELV_ERR_FORMAT);
    assert_int_equal(e.line, 2);
    check_file("1 a " KEY_A "\n");
    write_table("broken\n");
    assert_int_equal(elv_keys_change(path, &change, true, &e), ELV_ERR_FORMAT);
    assert_int_equal(e.line, 1);
    check_file("broken\n");
    struct elv_lock lock;
    assert_int_equal(elv_posix_lock(&lock, lock_path, false, NULL), ELV_OK);
    assert_int_equal(elv_keys_change(path, &change, false, &e), ELV_ERR_BUSY);
    elv_posix_unlock(&lock);
}

static void credentials_print_as_they_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "identity = pump-7#2\nkey = " KEY_LONG "\n",
        "identity = gate\ncertificate = a b.pem\nprivate_key = /x/gate.key\nca = ca.pem\n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct elv_credential c = {0}, again = {0};
        struct elv_key_error e;
        char out[ELV_CREDENTIAL_TEXT_MAX];
        assert_int_equal(elv_credential_parse(text(texts[i]), &c, &e), ELV_OK);
        assert_int_equal(elv_credential_print(&c, out), strlen(texts[i]));
        assert_string_equal(out, texts[i]);
        assert_int_equal(elv_credential_save(credential_path, &c), ELV_OK);
        assert_int_equal(elv_credential_load(credential_path, &again, &e), ELV_OK);
        assert_memory_equal(&c, &again, sizeof c);
    }
    struct elv_credential c;
    struct elv_key_error e;
    assert_int_equal(chmod(credential_path, 0644), 0);
    assert_int_equal(elv_credential_load(credential_path, &c, &e), ELV_ERR_AUTH);
    assert_int_equal(elv_credential_load("/tmp/elv/no/such", &c, &e), ELV_ERR_MISSING);
}

static void a_wrong_credential_is_refused_with_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line;
        const char *why;
    } rows[] = {
        {"", 0, "no identity"},
        {"# nothing\n\nidentity = a\n", 0, "neither"},
        {"key = " KEY_A "\n", 0, "no identity"},
        {"identity = a\nkey = " KEY_A "\nca = x\n", 0, "one of the two"},
        {"identity = a\nca = x\n", 0, "needs"},
        {"identity = a\nidentity = a\n", 2, "twice"},
        {"identity = a\nkey = " KEY_A "\nkey = " KEY_A "\n", 3, "twice"},
        {"identity = a b\n", 1, "identity is"},
        {"identity = a\nkey = 00\n", 2, "hexadecimal"},
        {"identity = a\nkey = certificate\n", 2, "hexadecimal"},
        {"identity = a\nkey = " KEY_A " revoked\n", 2, "hexadecimal"},
        {"identity = a\nkey = 00000000000000000000000000000000\n", 2, "alike"},
        {"identity = a\npassword = x\n", 2, "names are"},
        {"identity\n", 1, "name = value"},
        {"ca =\n", 1, "empty"},
        {"ca = a\x01\n", 1, "control"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_credential c;
        struct elv_key_error e;
        print_message("%s\n", rows[i].text);
        assert_int_equal(elv_credential_parse(text(rows[i].text), &c, &e), ELV_ERR_FORMAT);
        assert_int_equal(e.line, rows[i].line);
        assert_non_null(strstr(e.why, rows[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_have_one_way_to_be_written),
        cmocka_unit_test(a_line_is_a_key_a_comment_or_wrong_for_a_reason),
        cmocka_unit_test(a_key_prints_as_it_is_read),
        cmocka_unit_test(keys_are_found_by_identity_and_by_number),
        cmocka_unit_test(a_table_that_contradicts_itself_is_refused_with_the_line),
        cmocka_unit_test(every_truncation_of_a_table_is_read_or_refused),
        cmocka_unit_test(twenty_thousand_devices_are_all_found),
        cmocka_unit_test(a_changed_file_is_taken_and_the_revoked_are_named),
        cmocka_unit_test(a_bad_line_keeps_the_old_table_and_is_reported_once),
        cmocka_unit_test(what_cannot_be_opened_is_explained),
        cmocka_unit_test(the_older_key_ends_when_the_newer_is_used),
        cmocka_unit_test(a_change_touches_one_line_and_keeps_the_rest),
        cmocka_unit_test(a_change_that_would_break_the_table_is_refused),
        cmocka_unit_test(credentials_print_as_they_are_read),
        cmocka_unit_test(a_wrong_credential_is_refused_with_the_line),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
