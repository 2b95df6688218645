/* SPDX-License-Identifier: Apache-2.0 */
/* What the radix selection takes is what sorting by magnitude, then by coordinate, puts first. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "common/select_top.h"

enum { N_MAX = 5000 };

static float v[N_MAX];
static uint32_t order[N_MAX];
static bool wanted[N_MAX];

static int by_magnitude(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const float x = fabsf(v[i]), y = fabsf(v[j]);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

static void sort(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort(order, n, sizeof order[0], by_magnitude);
}

static void check(uint32_t n, uint32_t k, const struct elv_codec_plan *p)
{
    memset(wanted, 0, sizeof wanted);
    for (uint32_t i = 0; i < k; i++)
        wanted[order[i]] = v[order[i]] != 0;
    struct elv_select_scan s = elv_select_from(p, v, n, 0);
    for (uint32_t i = 0; i < n; i++)
        if (wanted[i])
            assert_int_equal(elv_select_next(&s), i);
    assert_int_equal(elv_select_next(&s), n);
    assert_int_equal(elv_select_next(&s), n);
}

static void check_all(uint32_t n)
{
    static const uint32_t ks[] = {1, 2, 3, 10, 31, 32, 33, 100, 1000, N_MAX};
    sort(n);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
        const uint32_t k = ks[i] < n ? ks[i] : n;
        struct elv_codec_plan p = {0};
        assert_int_equal(elv_select_top(&p, v, n, k, UINT32_MAX), ELV_OK);
        check(n, k, &p);
    }
}

static float of_kind(int kind, uint32_t i, struct elv_rng *r)
{
    static const float few[] = {0.0f, 1.0f, -1.0f, 0.5f, -2.0f};
    const float normal = elv_rng_normal(r);
    uint32_t bits = elv_rng_u32(r);
    float any;
    switch (kind) {
    case 0:
        return normal;
    case 1:
        return -logf(elv_rng_unit(r) + 0x1p-25f) * (normal < 0 ? -1 : 1);
    case 2: /* few values: ties everywhere */
        return few[bits % 5];
    case 3: /* nothing but one magnitude */
        return normal < 0 ? -0.75f : 0.75f;
    case 4:
        return i % 2 ? 0.0f : -0.0f;
    case 5: /* a single value */
        return i == 1234 || i == 0 ? -3.0f : 0.0f;
    case 6: /* mostly zero */
        return bits % 50 == 0 ? normal : 0.0f;
    case 7: /* differing in the lowest bits only */
        bits = 0x3F800000u | bits % 200;
        break;
    case 8: /* any finite value, subnormal ones too */
        bits = (bits & 0x7F800000u) == 0x7F800000u ? 0xFF7FFFFFu : bits;
        break;
    case 9:
        bits = bits % 300; /* the smallest there are */
        break;
    default: /* rising */
        return (float)i;
    }
    memcpy(&any, &bits, sizeof any);
    return any;
}
enum { KINDS = 11 };

static void fill(int kind, uint32_t n)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = (uint64_t)kind, .round = n, .purpose = ELV_RNG_TEST});
    for (uint32_t i = 0; i < n; i++)
        v[i] = of_kind(kind, i, &r);
}

static void the_largest_are_taken_as_sorting_has_them(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 1000, 1024, 1025, N_MAX};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            fill(kind, sizes[i]);
            check_all(sizes[i]);
        }
}

static void slices_of_any_size_give_the_same_plan(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct elv_codec_plan whole = {0}, sliced = {0};
        fill(kind, N_MAX);
        assert_int_equal(elv_select_top(&whole, v, N_MAX, 50, UINT32_MAX), ELV_OK);
        uint32_t slices = 1;
        while (elv_select_top(&sliced, v, N_MAX, 50, 1) == ELV_ERR_BUSY)
            slices++;
        assert_int_equal(slices >= 4 * N_MAX / 1024 && slices <= 5 * N_MAX / 1024 + 1, 1);
        assert_memory_equal(&whole, &sliced, sizeof whole);
        assert_int_equal(elv_select_top(&sliced, v, N_MAX, 50, 1), ELV_OK);
        assert_memory_equal(&whole, &sliced, sizeof whole);
    }
}

static void a_scan_may_start_anywhere(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct elv_codec_plan p = {0};
        fill(kind, 300);
        assert_int_equal(elv_select_top(&p, v, 300, 40, UINT32_MAX), ELV_OK);
        uint32_t next = 300;
        for (uint32_t first = 300; first-- > 0;) {
            struct elv_select_scan s = elv_select_from(&p, v, 300, first), one;
            one = elv_select_from(&p, v, first + 1, first);
            next = elv_select_next(&one) == first ? first : next;
            assert_int_equal(elv_select_next(&s), next);
        }
    }
}

static void a_fraction_is_rounded_up(void **state)
{
    (void)state;
    static const struct {
        float fraction;
        uint32_t n, k;
    } rows[] = {
        {0.5f, 1, 1},        {0.5f, 2, 1},
        {0.5f, 3, 2},        {0.25f, 1000, 250},
        {0.25f, 1001, 251},  {1e-6f, 1, 1},
        {1e-6f, 5000000, 5}, {0.01f, 159010, 1591},
        {1.0f, 7, 7},        {0.5f, UINT32_MAX, 0x80000000u},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(elv_select_count(rows[i].fraction, rows[i].n), rows[i].k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_are_taken_as_sorting_has_them),
        cmocka_unit_test(slices_of_any_size_give_the_same_plan),
        cmocka_unit_test(a_scan_may_start_anywhere),
        cmocka_unit_test(a_fraction_is_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
