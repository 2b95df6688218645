/* SPDX-License-Identifier: Apache-2.0 */
#include "common/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A layout as an init function would have it: what is counted must be what is used. */
static void lay_out(struct elv_arena *a, void *pieces[3])
{
    pieces[0] = elv_arena_take(a, 3, sizeof(float));
    pieces[1] = elv_arena_take(a, 1, 64);
    pieces[2] = elv_arena_take(a, 65, 1);
}

static void counting_answers_the_size_that_then_fits_exactly(void **state)
{
    (void)state;
    void *pieces[3];
    struct elv_arena count = elv_arena_of(NULL, 0);
    lay_out(&count, pieces);
    assert_int_equal(count.err, ELV_OK);
    assert_int_equal(count.used, 64 + 64 + 128);
    assert_null(pieces[0]);

    uint8_t *block = aligned_alloc(ELV_ARENA_ALIGN, count.used);
    assert_non_null(block);
    memset(block, 0xa5, count.used);
    struct elv_arena a = elv_arena_of(block, count.used);
    lay_out(&a, pieces);
    assert_int_equal(a.err, ELV_OK);
    assert_int_equal(a.used, count.used);
    assert_ptr_equal(pieces[0], block);
    assert_ptr_equal(pieces[1], block + 64);
    assert_ptr_equal(pieces[2], block + 128);
    free(block);
}

static void pieces_are_zeroed_and_aligned(void **state)
{
    (void)state;
    _Alignas(ELV_ARENA_ALIGN) uint8_t block[512];
    memset(block, 0xa5, sizeof block);
    struct elv_arena a = elv_arena_of(block, sizeof block);
    for (size_t len = 1; len <= 65; len += 32) {
        const uint8_t *p = elv_arena_take(&a, len, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % ELV_ARENA_ALIGN, 0);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(p[i], 0);
    }
}

static void one_byte_too_few_fails_and_the_failure_sticks(void **state)
{
    (void)state;
    _Alignas(ELV_ARENA_ALIGN) uint8_t block[256];
    void *pieces[3];
    struct elv_arena a = elv_arena_of(block, sizeof block - 1);
    lay_out(&a, pieces);
    assert_int_equal(a.err, ELV_ERR_SPACE);
    assert_non_null(pieces[1]);
    assert_null(pieces[2]);
    assert_null(elv_arena_take(&a, 1, 1));
    assert_int_equal(a.err, ELV_ERR_SPACE);
}

static void sizes_that_overflow_are_refused_even_while_counting(void **state)
{
    (void)state;
    static const struct {
        size_t count, size;
    } rows[] = {
        {SIZE_MAX, 2},           /* the product */
        {SIZE_MAX, 1},           /* rounding it up */
        {SIZE_MAX / 2 + 1, 2},   /* the product, just */
        {SIZE_MAX - 63 - 64, 1}, /* the sum with what is taken already */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_arena a = elv_arena_of(NULL, 0);
        elv_arena_take(&a, 65, 1);
        assert_null(elv_arena_take(&a, rows[i].count, rows[i].size));
        assert_int_equal(a.err, ELV_ERR_SPACE);
    }
}

static void a_piece_of_nothing_takes_nothing(void **state)
{
    (void)state;
    _Alignas(ELV_ARENA_ALIGN) uint8_t block[64];
    struct elv_arena a = elv_arena_of(block, sizeof block);
    elv_arena_take(&a, 0, 8);
    assert_int_equal(a.used, 0);
    assert_int_equal(a.err, ELV_OK);
    assert_ptr_equal(elv_arena_take(&a, 64, 1), block);
}

static void a_raw_piece_lies_like_a_zeroed_one_and_is_left_alone(void **state)
{
    (void)state;
    static _Alignas(ELV_ARENA_ALIGN) uint8_t block[256];
    memset(block, 0xa5, sizeof block);
    struct elv_arena a = elv_arena_of(block, sizeof block);
    uint8_t *zeroed = elv_arena_take(&a, 10, 1), *raw = elv_arena_take_raw(&a, 10, 10);
    assert_ptr_equal(zeroed, block);
    assert_ptr_equal(raw, block + 64);
    assert_int_equal(a.used, 192);
    assert_int_equal(zeroed[9], 0);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(raw[i], 0xa5);
    assert_null(elv_arena_take_raw(&a, SIZE_MAX, 2));
    assert_int_equal(a.err, ELV_ERR_SPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting_answers_the_size_that_then_fits_exactly),
        cmocka_unit_test(pieces_are_zeroed_and_aligned),
        cmocka_unit_test(one_byte_too_few_fails_and_the_failure_sticks),
        cmocka_unit_test(sizes_that_overflow_are_refused_even_while_counting),
        cmocka_unit_test(a_piece_of_nothing_takes_nothing),
        cmocka_unit_test(a_raw_piece_lies_like_a_zeroed_one_and_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
