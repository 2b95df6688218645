/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim_shrink.h"

enum { N = 200 };

struct culprits { /* it fails when all of them are there */
    const uint32_t *at;
    uint32_t n;
};

static bool all_there(void *self, const bool *on, uint32_t n)
{
    const struct culprits *c = self;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i] >= n || !on[c->at[i]])
            return false;
    return true;
}

static void expect_just(struct culprits c)
{
    bool on[N];
    uint32_t left = 0;
    memset(on, true, sizeof on);
    struct shrink s = {.self = &c, .fails = all_there, .tries_max = 10000};
    assert_true(shrink(&s, on, N));
    for (uint32_t i = 0; i < N; i++)
        left += on[i];
    assert_int_equal(left, c.n);
    assert_true(all_there(&c, on, N));
}

static void just_the_faults_that_it_takes_are_left(void **state)
{
    (void)state;
    static const uint32_t two[] = {3, 171}, last[] = {0, N - 1}, near[] = {99, 100, 101};
    static const uint32_t many[] = {0, 1, 5, 17, 50, 51, 52, 100, 133, 199};
    expect_just((struct culprits){.n = 0});
    for (uint32_t i = 0; i < N; i++)
        expect_just((struct culprits){&i, 1});
    expect_just((struct culprits){two, 2});
    expect_just((struct culprits){last, 2});
    expect_just((struct culprits){near, 3});
    expect_just((struct culprits){many, 10});
}

static bool odd(void *self, const bool *on, uint32_t n)
{
    uint32_t k = 0;
    (void)self;
    for (uint32_t i = 0; i < n; i++)
        k += on[i];
    return k % 2 == 1;
}

static void of_what_is_left_none_can_go_by_itself(void **state)
{
    (void)state;
    bool on[N];
    uint32_t left = 0;
    memset(on, true, sizeof on);
    on[7] = false;
    struct shrink s = {.fails = odd, .tries_max = 10000};
    assert_true(shrink(&s, on, N));
    for (uint32_t i = 0; i < N; i++)
        left += on[i];
    assert_int_equal(left, 1);
    assert_false(on[7]);
}

static void it_stops_after_so_many_tries_with_a_set_that_fails(void **state)
{
    (void)state;
    static const uint32_t many[] = {0, 1, 5, 17, 50, 51, 52, 100, 133, 199};
    struct culprits c = {many, 10};
    for (uint32_t tries = 0; tries < 60; tries++) {
        bool on[N];
        memset(on, true, sizeof on);
        struct shrink s = {.self = &c, .fails = all_there, .tries_max = tries};
        assert_false(shrink(&s, on, N));
        assert_true(s.tries <= tries);
        assert_true(all_there(&c, on, N));
    }
}

static void a_list_is_read_as_it_was_written(void **state)
{
    (void)state;
    char text[64];
    bool on[40] = {false}, back[40] = {false};
    shrink_write(on, 40, text, sizeof text);
    assert_string_equal(text, "none");
    assert_true(shrink_read(text, back, 40));
    assert_memory_equal(on, back, sizeof on);
    on[0] = on[3] = on[4] = on[5] = on[39] = true;
    shrink_write(on, 40, text, sizeof text);
    assert_string_equal(text, "0,3-5,39");
    assert_true(shrink_read(text, back, 40));
    assert_memory_equal(on, back, sizeof on);
    shrink_write(on, 40, text, 8);
    assert_string_equal(text, "0...");
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    ",",  "1,",    "-",     "1-",
                                      "3-1", "40", "a",     "1,,2",  "0-40",
                                      "1 2", " 1", "1-2-3", "none,", "9999999999999999999999",
                                      "-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool on[40] = {false};
        assert_false(shrink_read(bad[i], on, 40));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(just_the_faults_that_it_takes_are_left),
        cmocka_unit_test(of_what_is_left_none_can_go_by_itself),
        cmocka_unit_test(it_stops_after_so_many_tries_with_a_set_that_fails),
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(what_is_no_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
