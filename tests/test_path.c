/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/msg.h"

static struct elv_text text(const char *s) { return (struct elv_text){.at = s, .len = strlen(s)}; }

static const struct {
    const char *path;
    enum elv_method method;
    struct elv_request r;
} rows[] = {
    {"j/fashion", ELV_GET, {.op = ELV_OP_MANIFEST}},
    {"j/fashion/join", ELV_POST, {.op = ELV_OP_JOIN}},
    {"j/fashion/join", ELV_DELETE, {.op = ELV_OP_LEAVE}},
    {"j/fashion/t", ELV_GET, {.op = ELV_OP_TICKET}},
    {"j/fashion/m/0123456789abcdef/0",
     ELV_GET,
     {.op = ELV_OP_MODEL_CHUNK, .digest = 0x0123456789ABCDEF}},
    {"j/fashion/d/ffffffffffffffff/4294967295",
     ELV_GET,
     {.op = ELV_OP_STEP_CHUNK, .digest = UINT64_MAX, .chunk = UINT32_MAX}},
    {"j/fashion/u/7/12", ELV_PUT, {.op = ELV_OP_UPDATE_CHUNK, .assignment = 7, .chunk = 12}},
    {"j/fashion/u/4294967295", ELV_POST, {.op = ELV_OP_COMMIT, .assignment = UINT32_MAX}},
};

static void each_request_has_one_path_and_each_path_one_request(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[ELV_PATH_MAX];
        size_t len;
        enum elv_method method;
        assert_int_equal(elv_path_encode(&rows[i].r, text("fashion"), out, &len, &method), ELV_OK);
        assert_int_equal(len, strlen(rows[i].path));
        assert_memory_equal(out, rows[i].path, len);
        assert_int_equal(method, rows[i].method);

        struct elv_text job;
        struct elv_request r;
        assert_int_equal(elv_path_decode(method, text(rows[i].path), &job, &r), ELV_OK);
        assert_int_equal(r.op, rows[i].r.op);
        assert_true(r.digest == rows[i].r.digest);
        assert_int_equal(r.assignment, rows[i].r.assignment);
        assert_int_equal(r.chunk, rows[i].r.chunk);
        assert_int_equal(job.len, 7);
        assert_ptr_equal(job.at, rows[i].path + 2);
    }
}

static void a_known_path_with_another_method_is_told_apart(void **state)
{
    (void)state;
    struct elv_text job;
    struct elv_request r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int method = ELV_GET; method <= ELV_DELETE; method++) {
            bool served = false;
            for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++)
                served = served ||
                         (strcmp(rows[i].path, rows[j].path) == 0 && (int)rows[j].method == method);
            assert_int_equal(elv_path_decode((enum elv_method)method, text(rows[i].path), &job, &r),
                             served ? ELV_OK : ELV_ERR_UNSUPPORTED);
        }
    }
}

static void other_spellings_do_not_exist(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "/",
        "j",
        "j/",
        "/j/fashion",
        "j//t",
        "j/fashion/",
        "J/fashion",
        "x/fashion",
        "j/fash ion",
        "j/123456789012345678901234567890123", /* 33 characters */
        "j/fashion/T",
        "j/fashion/t/",
        "j/fashion/t/1",
        "j/fashion/leave",
        "j/fashion/m",
        "j/fashion/m/0123456789abcdef",
        "j/fashion/m/0123456789abcde/0",
        "j/fashion/m/0123456789abcdef0/0",
        "j/fashion/m/0123456789ABCDEF/0",
        "j/fashion/m/0123456789abcdeg/0",
        "j/fashion/m/0123456789abcdef/",
        "j/fashion/m/0123456789abcdef//0",
        "j/fashion/m/0123456789abcdef/00",
        "j/fashion/m/0123456789abcdef/-1",
        "j/fashion/m/0123456789abcdef/+1",
        "j/fashion/m/0123456789abcdef/4294967296",
        "j/fashion/m/0123456789abcdef/99999999999",
        "j/fashion/m/0123456789abcdef/1/2",
        "j/fashion/u",
        "j/fashion/u/0",
        "j/fashion/u/0/1",
        "j/fashion/u/07",
        "j/fashion/u/7/",
        "j/fashion/u/7/1/2",
        "j/fashion/u/7/a",
        "j/fashion/u/1/2/3/4/5/6",
        ".well-known/core",
    };
    struct elv_text job;
    struct elv_request r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int method = ELV_GET; method <= ELV_DELETE; method++)
            if (elv_path_decode((enum elv_method)method, text(bad[i]), &job, &r) != ELV_ERR_MISSING)
                fail_msg("%s", bad[i]);
}

static void every_truncation_is_another_resource_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t len = 0; len < strlen(rows[i].path); len++) {
            struct elv_text job;
            struct elv_request r;
            const struct elv_text cut = {rows[i].path, len};
            if (elv_path_decode(rows[i].method, cut, &job, &r) != ELV_OK)
                continue;
            char out[ELV_PATH_MAX];
            size_t again;
            enum elv_method method;
            assert_int_equal(elv_path_encode(&r, job, out, &again, &method), ELV_OK);
            assert_int_equal(again, len);
            assert_memory_equal(out, rows[i].path, len);
        }
    }
}

static void a_request_without_a_path_is_the_callers_mistake(void **state)
{
    (void)state;
    static const struct elv_request none = {.op = ELV_OP_NONE},
                                    no_assignment = {.op = ELV_OP_COMMIT},
                                    ticket = {.op = ELV_OP_TICKET};
    char out[ELV_PATH_MAX];
    size_t len;
    enum elv_method method;
    assert_int_equal(elv_path_encode(&none, text("a"), out, &len, &method), ELV_ERR_ARG);
    assert_int_equal(elv_path_encode(&no_assignment, text("a"), out, &len, &method), ELV_ERR_ARG);
    assert_int_equal(elv_path_encode(&ticket, text("a/b"), out, &len, &method), ELV_ERR_ARG);
    assert_int_equal(elv_path_encode(&ticket, text(""), out, &len, &method), ELV_ERR_ARG);
}

static void names_are_short_and_of_one_alphabet(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool ok;
    } names[] = {
        {"a", true},           {"A-z.0_9:x", true},
        {"12345678", true},    {"123456789", true},
        {"1234567890", false}, {"", false},
        {"a/b", false},        {"a b", false},
        {"a#2", false},        {"caf\xc3\xa9", false},
        {"a\n", false},        {"a%2f", false},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(elv_name_ok(text(names[i].name), 9), names[i].ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_has_one_path_and_each_path_one_request),
        cmocka_unit_test(a_known_path_with_another_method_is_told_apart),
        cmocka_unit_test(other_spellings_do_not_exist),
        cmocka_unit_test(every_truncation_is_another_resource_or_none),
        cmocka_unit_test(a_request_without_a_path_is_the_callers_mistake),
        cmocka_unit_test(names_are_short_and_of_one_alphabet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
