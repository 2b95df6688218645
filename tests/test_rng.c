/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "common/sha256.h"

static struct elv_rng stream(uint64_t seed, uint32_t client, uint32_t round)
{
    return elv_rng_of((struct elv_rng_key){seed, client, round, ELV_RNG_TEST});
}

/* From the kat_vectors file of Random123, lines philox4x32 10. */
static void the_bijection_gives_the_published_words(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t out[4];
        elv_philox(out, rows[i].counter, rows[i].key);
        assert_memory_equal(out, rows[i].want, sizeof out);
    }
}

static void every_part_of_the_name_changes_the_stream(void **state)
{
    (void)state;
    static const struct elv_rng_key keys[] = {
        {1, 0, 0, ELV_RNG_TEST}, {1ull << 32, 0, 0, ELV_RNG_TEST}, {1, 1, 0, ELV_RNG_TEST},
        {1, 0, 1, ELV_RNG_TEST}, {1, 0, 0, ELV_RNG_INIT},
    };
    uint32_t first[5];
    for (size_t i = 0; i < 5; i++) {
        struct elv_rng r = elv_rng_of(keys[i]);
        first[i] = elv_rng_u32(&r);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(first[i], first[j]);
    }
}

static void seeking_meets_the_words_drawn_in_order(void **state)
{
    (void)state;
    uint32_t words[23];
    struct elv_rng r = stream(7, 3, 9);
    for (size_t i = 0; i < 23; i++)
        words[i] = elv_rng_u32(&r);
    for (uint64_t from = 0; from < 23; from++) {
        elv_rng_seek(&r, from);
        for (uint64_t i = from; i < 23; i++)
            assert_int_equal(elv_rng_u32(&r), words[i]);
    }
    /* Far positions stay apart: the block number has more than 32 bits. */
    elv_rng_seek(&r, 1ull << 34);
    const uint32_t far = elv_rng_u32(&r);
    assert_int_not_equal(far, words[0]);
}

static void words_drawn_together_are_the_words_drawn_one_by_one(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 3, 4, 127, 128, 129, 131, 256, 600};
    for (uint32_t start = 0; start < 6; start++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            uint32_t got[601];
            struct elv_rng one = stream(11, 12, 13), many = stream(11, 12, 13);
            const uint64_t at = start + ((uint64_t)start << 33); /* beyond a counter's first word */
            elv_rng_seek(&one, at);
            elv_rng_seek(&many, at);
            elv_rng_words(&many, got, sizes[k]);
            got[sizes[k]] = elv_rng_u32(&many);
            for (uint32_t i = 0; i <= sizes[k]; i++)
                assert_int_equal(got[i], elv_rng_u32(&one));
        }
    }
}

static void bounded_numbers_stay_below_and_reach_every_value(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {1, 2, 3, 7, 16, 100};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        uint32_t seen[100] = {0};
        struct elv_rng r = stream(11, (uint32_t)b, 0);
        for (unsigned i = 0; i < 4000; i++) {
            const uint32_t v = elv_rng_below(&r, bounds[b]);
            assert_true(v < bounds[b]);
            seen[v]++;
        }
        for (uint32_t v = 0; v < bounds[b]; v++)
            assert_true(seen[v] > 4000 / bounds[b] / 3);
    }
}

/* With 3 * 2^30 a plain multiply-and-shift would give every third value twice as often. */
static void large_bounds_are_not_biased(void **state)
{
    (void)state;
    struct elv_rng r = stream(12, 0, 0);
    unsigned third[3] = {0};
    for (unsigned i = 0; i < 6000; i++)
        third[elv_rng_below(&r, 3u << 30) % 3]++;
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(third[i], 1850, 2150);
}

static void unit_numbers_fill_the_half_open_interval(void **state)
{
    (void)state;
    struct elv_rng r = stream(13, 0, 0);
    double sum = 0, square = 0;
    for (unsigned i = 0; i < 20000; i++) {
        const float v = elv_rng_unit(&r);
        assert_true(v >= 0.0f && v < 1.0f);
        sum += (double)v;
        square += (double)v * (double)v;
    }
    assert_true(fabs(sum / 20000 - 0.5) < 0.01);
    assert_true(fabs(square / 20000 - 1.0 / 3) < 0.01);
}

static void normal_numbers_have_the_moments_of_the_normal_law(void **state)
{
    (void)state;
    struct elv_rng r = stream(14, 0, 0);
    double m1 = 0, m2 = 0, m4 = 0;
    unsigned beyond2 = 0;
    for (unsigned i = 0; i < 40000; i++) {
        const double v = (double)elv_rng_normal(&r);
        m1 += v;
        m2 += v * v;
        m4 += v * v * v * v;
        beyond2 += fabs(v) > 2.0;
    }
    assert_true(fabs(m1 / 40000) < 0.02);
    assert_true(fabs(m2 / 40000 - 1) < 0.03);
    assert_true(fabs(m4 / 40000 - 3) < 0.2);
    assert_in_range(beyond2, 1640, 2000); /* 4.55 % */
}

/* Recorded once on x86-64; the same digest is due on every machine. */
static void floating_streams_are_the_same_bytes_everywhere(void **state)
{
    (void)state;
    static const uint8_t want[] = {0x16, 0xe7, 0xc9, 0x3d, 0x6c, 0xa0, 0x43, 0xf2, 0x9d, 0xa8, 0xdf,
                                   0x93, 0x60, 0x0c, 0x5c, 0x87, 0xa9, 0x21, 0x44, 0xfc, 0x25, 0xef,
                                   0x4d, 0x05, 0x69, 0xb6, 0x7b, 0x5f, 0x1a, 0xd4, 0x7e, 0x02};
    float v[512];
    struct elv_rng r = stream(0x123456789abcdef0ull, 5, 6);
    for (size_t i = 0; i < 512; i++)
        v[i] = i % 2 ? elv_rng_normal(&r) : elv_rng_unit(&r);
    uint8_t got[ELV_SHA256_LEN];
    elv_sha256_f32(v, 512, got);
    assert_memory_equal(got, want, sizeof want);
}

static void a_shuffle_is_a_permutation_and_every_order_occurs(void **state)
{
    (void)state;
    unsigned orders[27] = {0};
    struct elv_rng r = stream(15, 0, 0);
    for (unsigned i = 0; i < 6000; i++) {
        uint32_t v[3] = {0, 1, 2};
        elv_rng_shuffle(&r, v, 3);
        assert_int_equal(1u << v[0] | 1u << v[1] | 1u << v[2], 7);
        orders[v[0] * 9 + v[1] * 3 + v[2]]++;
    }
    unsigned kinds = 0;
    for (unsigned i = 0; i < 27; i++) {
        kinds += orders[i] > 0;
        assert_true(orders[i] == 0 || (orders[i] > 850 && orders[i] < 1150));
    }
    assert_int_equal(kinds, 6);
    elv_rng_shuffle(&r, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bijection_gives_the_published_words),
        cmocka_unit_test(every_part_of_the_name_changes_the_stream),
        cmocka_unit_test(seeking_meets_the_words_drawn_in_order),
        cmocka_unit_test(words_drawn_together_are_the_words_drawn_one_by_one),
        cmocka_unit_test(bounded_numbers_stay_below_and_reach_every_value),
        cmocka_unit_test(large_bounds_are_not_biased),
        cmocka_unit_test(unit_numbers_fill_the_half_open_interval),
        cmocka_unit_test(normal_numbers_have_the_moments_of_the_normal_law),
        cmocka_unit_test(floating_streams_are_the_same_bytes_everywhere),
        cmocka_unit_test(a_shuffle_is_a_permutation_and_every_order_occurs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
