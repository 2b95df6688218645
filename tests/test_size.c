/* SPDX-License-Identifier: Apache-2.0 */
#include "common/size.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define UNTOUCHED 12345u
#define HALF (SIZE_MAX / 2)
#define ROOT ((size_t)1 << (sizeof(size_t) * 4)) /* ROOT * ROOT is one past SIZE_MAX */

struct row {
    const char *what;
    size_t a, b;
    bool fits;
    size_t result;
};

static void sums_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"nothing and nothing", 0, 0, true, 0},
        {"small numbers", 2, 3, true, 5},
        {"exactly the largest", SIZE_MAX - 1, 1, true, SIZE_MAX},
        {"one more than the largest", SIZE_MAX, 1, false, 0},
        {"the same from the other side", 1, SIZE_MAX, false, 0},
        {"the largest and nothing", SIZE_MAX, 0, true, SIZE_MAX},
        {"two halves", HALF, HALF, true, SIZE_MAX - 1},
        {"the two largest", SIZE_MAX, SIZE_MAX, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t out = UNTOUCHED;
        print_message("%s\n", rows[i].what);
        assert_int_equal(elv_size_add(rows[i].a, rows[i].b, &out), rows[i].fits);
        assert_true(out == (rows[i].fits ? rows[i].result : UNTOUCHED));
    }
}

static void products_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"nothing and nothing", 0, 0, true, 0},
        {"the largest times nothing", SIZE_MAX, 0, true, 0},
        {"nothing times the largest", 0, SIZE_MAX, true, 0},
        {"small numbers", 6, 7, true, 42},
        {"the largest times one", SIZE_MAX, 1, true, SIZE_MAX},
        {"half times two", HALF, 2, true, SIZE_MAX - 1},
        {"a little more than half times two", HALF + 1, 2, false, 0},
        {"the first square that does not fit", ROOT, ROOT, false, 0},
        {"the last one that does", ROOT - 1, ROOT - 1, true, (ROOT - 1) * (ROOT - 1)},
        {"the largest squared", SIZE_MAX, SIZE_MAX, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t out = UNTOUCHED;
        print_message("%s\n", rows[i].what);
        assert_int_equal(elv_size_mul(rows[i].a, rows[i].b, &out), rows[i].fits);
        assert_true(out == (rows[i].fits ? rows[i].result : UNTOUCHED));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_or_refused),
        cmocka_unit_test(products_are_exact_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
