/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_certify.c - an authority and what it signs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ports/mbedtls/certify.h"

static struct elv_text text(const char *s) { return (struct elv_text){s, strlen(s)}; }

static struct elv_bytes bytes(const struct elv_pem *pem)
{
    return (struct elv_bytes){(const uint8_t *)pem->text, pem->len};
}

static struct elv_certified both(const struct elv_pem *cert, const struct elv_pem *key)
{
    return (struct elv_certified){bytes(cert), bytes(key)};
}

struct fixture {
    struct elv_pem ca, ca_key, cert, key;
    struct elv_certified authority;
};

static int begin(void **state)
{
    static struct fixture f;
    if (elv_certify_authority(text("our-fleet"), 3650, &f.ca, &f.ca_key) != ELV_OK)
        return -1;
    f.authority = both(&f.ca, &f.ca_key);
    *state = &f;
    return 0;
}

static void what_the_authority_issues_checks(void **state)
{
    static const struct {
        const char *name;
        bool server;
    } rows[] = {
        {"dev-1", false},
        {"dev:a.b_c#12", false},
        {"server.example", true},
        {"127.0.0.1", true},
        {"::1", true},
        {"localhost", true},
        {"a-name-of-sixty-four-characters-is-the-longest-there-can-be-0123", false},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_certify_order order = {text(rows[i].name), rows[i].server, 30};
        assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_OK);
        const struct elv_certified own = both(&f->cert, &f->key);
        assert_int_equal(elv_certify_check(&f->authority, &own, &order), ELV_OK);
        order.server = !order.server;
        assert_int_equal(elv_certify_check(&f->authority, &own, &order), ELV_ERR_AUTH);
        order.server = !order.server;
        order.name = text("another");
        assert_int_equal(elv_certify_check(&f->authority, &own, &order), ELV_ERR_AUTH);
    }
}

static void a_foreign_authority_or_key_does_not_check(void **state)
{
    struct fixture *f = *state;
    struct elv_pem ca, ca_key, cert, key;
    const struct elv_certify_order order = {text("dev-1"), false, 30};
    assert_int_equal(elv_certify_authority(text("our-fleet"), 30, &ca, &ca_key), ELV_OK);
    assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_OK);
    assert_int_equal(elv_certify_issue(&f->authority, &order, &cert, &key), ELV_OK);
    const struct elv_certified other = both(&ca, &ca_key), own = both(&f->cert, &f->key);
    assert_int_equal(elv_certify_check(&other, &own, &order), ELV_ERR_AUTH);
    const struct elv_certified mixed = both(&f->cert, &key);
    assert_int_equal(elv_certify_check(&f->authority, &mixed, &order), ELV_ERR_AUTH);
}

static void only_an_authority_with_its_own_key_may_issue(void **state)
{
    struct fixture *f = *state;
    struct elv_pem cert, key;
    const struct elv_certify_order order = {text("dev-1"), false, 30};
    assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_OK);
    const struct elv_certified device = both(&f->cert, &f->key);
    assert_int_equal(elv_certify_issue(&device, &order, &cert, &key), ELV_ERR_AUTH);
    const struct elv_certified mixed = both(&f->ca, &f->key);
    assert_int_equal(elv_certify_issue(&mixed, &order, &cert, &key), ELV_ERR_AUTH);
    const struct elv_certified empty = {{NULL, 0}, {NULL, 0}};
    assert_int_equal(elv_certify_issue(&empty, &order, &cert, &key), ELV_ERR_AUTH);
}

static void names_outside_the_alphabet_are_refused(void **state)
{
    static const char *const rows[] = {"", "a b", "a,O=x", "a/b", "\xc3\xa4", "#1", "a+b", "a=b"};
    struct fixture *f = *state;
    char longest[66];
    memset(longest, 'a', 65);
    longest[65] = '\0';
    for (size_t i = 0; i <= sizeof rows / sizeof *rows; i++) {
        const char *name = i < sizeof rows / sizeof *rows ? rows[i] : longest;
        const struct elv_certify_order order = {text(name), false, 30};
        assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_ERR_ARG);
    }
    struct elv_certify_order order = {text("dev-1"), false, 0};
    assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_ERR_ARG);
    order.days = ELV_CERTIFY_DAYS_MAX + 1;
    assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_ERR_ARG);
}

static void a_truncated_text_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct elv_certify_order order = {text("dev-1"), false, 30};
    assert_int_equal(elv_certify_issue(&f->authority, &order, &f->cert, &f->key), ELV_OK);
    for (size_t n = 0; n + 28 < f->cert.len; n += 13) {
        struct elv_certified own = both(&f->cert, &f->key);
        own.cert.len = n;
        assert_int_equal(elv_certify_check(&f->authority, &own, &order), ELV_ERR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_authority_issues_checks),
        cmocka_unit_test(a_foreign_authority_or_key_does_not_check),
        cmocka_unit_test(only_an_authority_with_its_own_key_may_issue),
        cmocka_unit_test(names_outside_the_alphabet_are_refused),
        cmocka_unit_test(a_truncated_text_is_refused),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
