/* SPDX-License-Identifier: Apache-2.0 */
/* What is special about `rotate`; what holds for any codec is in test_codec.c. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec_rotate.h"
#include "common/rng.h"

enum { N = 7680 };

static const struct elv_codec *const rotate = &elv_codec_rotate;
static float v[N], back[N];

/* Mean square error over mean square, of normally distributed values. */
static const double distortion[] = {0.3634, 0.1175, 0.03454, 0.009497};

struct coded {
    uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
};

static struct coded encode(uint32_t n, uint32_t first, uint64_t seed, float param)
{
    const struct elv_codec_arg arg = {.seed = seed, .param = param};
    struct coded c = {.len = 0};
    assert_int_equal(
        rotate->encode(v, n, first, 0, &arg, c.bytes, sizeof c.bytes, &c.len, &c.count), ELV_OK);
    return c;
}

/* The whole vector there and back. */
static void there_and_back(uint32_t n, uint64_t seed, float param)
{
    for (uint32_t first = 0; first < n;) {
        const struct coded c = encode(n, first, seed + first, param);
        assert_int_equal(
            elv_codec_decode(rotate, (struct elv_bytes){c.bytes, c.len}, c.count, back + first),
            ELV_OK);
        first += c.count;
    }
}

static double dot(const float *a, const float *b, uint32_t n)
{
    double s = 0;
    for (uint32_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

static double error(uint32_t n)
{
    return (dot(v, v, n) - 2 * dot(v, back, n) + dot(back, back, n)) / dot(v, v, n);
}

enum { NORMAL, CUBES, ONE_SIGN, LAYERS, KINDS };

/* Normal; with heavy tails; of one sign; in runs of very different size. */
static void fill(int kind, uint32_t seed)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = seed, .round = (uint32_t)kind, .purpose = ELV_RNG_TEST});
    for (uint32_t i = 0; i < N; i++) {
        const float g = elv_rng_normal(&r);
        v[i] = kind == CUBES      ? g * g * g
               : kind == ONE_SIGN ? g * g
               : kind == LAYERS   ? ldexpf(g, (int)(i / 1000) * 2 - 20)
                                  : g;
    }
}

static double density(double x) { return exp(-x * x / 2) / sqrt(2 * acos(-1.0)); }
static double tail(double x) { return erfc(x / sqrt(2.0)) / 2; }

/* Lloyd's iteration: a level is the mean of what goes to it, a threshold lies midway. */
static void the_levels_are_those_of_lloyd_and_max(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits <= 4; bits++) {
        const uint32_t n = 1u << (bits - 1);
        double level[8], edge[9] = {0}, left = 1;
        for (uint32_t i = 0; i < n; i++)
            level[i] = (i + 0.5) * 2.5 / n;
        for (int t = 0; t < 2000; t++) {
            for (uint32_t i = 0; i < n; i++)
                edge[i + 1] = i + 1 < n ? (level[i] + level[i + 1]) / 2 : HUGE_VAL;
            for (uint32_t i = 0; i < n; i++)
                level[i] =
                    (density(edge[i]) - density(edge[i + 1])) / (tail(edge[i]) - tail(edge[i + 1]));
        }
        for (uint32_t i = 0; i < n; i++) {
            assert_true(fabs((double)elv_rotate_levels(bits)[i] / level[i] - 1) < 1e-7);
            left -= 2 * (tail(edge[i]) - tail(edge[i + 1])) * level[i] * level[i];
        }
        for (uint32_t i = 0; i + 1 < n; i++)
            assert_true(fabs((double)elv_rotate_thresholds(bits)[i] / edge[i + 1] - 1) < 1e-7);
        assert_true(fabs(left / distortion[bits - 1] - 1) < 1e-3);
    }
}

static void the_error_is_that_of_a_normal_distribution_for_any_vector(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int bits = 1; bits <= 4; bits++) {
            fill(kind, 1);
            there_and_back(N, 7, (float)bits);
            assert_true(error(N) < distortion[bits - 1] * (1 + 0.03));
            there_and_back(N, 7, (float)-bits);
            const double unbiased = distortion[bits - 1] / (1 - distortion[bits - 1]);
            assert_true(error(N) < unbiased * (1 + 0.03));
        }
    }
}

/* The mean over seeds, as a multiple of the vector, and what is left beside it. */
static void mean_over_seeds(float param, double *along, double *beside)
{
    enum { SEEDS = 200, LEN = 1024 };
    static float mean[LEN];
    memset(mean, 0, sizeof mean);
    for (uint32_t s = 0; s < SEEDS; s++) {
        there_and_back(LEN, s, param);
        for (uint32_t i = 0; i < LEN; i++)
            mean[i] += back[i] / SEEDS;
    }
    *along = dot(mean, v, LEN) / dot(v, v, LEN);
    *beside = dot(mean, mean, LEN) / dot(v, v, LEN) - *along * *along;
    *beside *= SEEDS;
}

/* What is left beside it shrinks as independent errors do; of heavy tails a little stays. */
static void the_mean_over_seeds_is_the_vector_when_unbiased(void **state)
{
    (void)state;
    static const double slack[KINDS] = {1.2, 1.5, 1.2, 1.2};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int bits = 1; bits <= 4; bits++) {
            fill(kind, 2);
            double along, beside;
            const double d = distortion[bits - 1];
            mean_over_seeds((float)-bits, &along, &beside);
            assert_true(fabs(along - 1) < 0.003);
            assert_true(beside < d / (1 - d) * slack[kind]);
            mean_over_seeds((float)bits, &along, &beside);
            assert_true(fabs(along - (1 - d)) < 0.02);
            assert_true(beside < d * slack[kind]);
        }
    }
}

static void one_large_value_comes_back_exactly(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < 300; at += 37) {
        for (int bits = -4; bits <= 4; bits += 1 + (bits == -1)) {
            memset(v, 0, sizeof v);
            v[at] = -0.375f;
            there_and_back(300, 3, (float)bits);
            for (uint32_t i = 0; i < 300; i++) /* but for the scale's eight bits */
                assert_true(fabsf(back[i] - v[i]) <= (i == at ? 0.375f / 256 : 1e-6f));
        }
    }
}

static void magnitudes_from_the_smallest_to_the_largest(void **state)
{
    (void)state;
    static const struct {
        int exponent;
        bool there;
    } rows[] = {{-149, false}, {-130, false}, {-103, false}, {-90, true},
                {0, true},     {100, true},   {116, true},   {119, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t k = 0; k < 256; k++)
            v[k] = ldexpf(k % 3 == 0 ? -1.0f : 1.0f, rows[i].exponent);
        there_and_back(256, 1, 4);
        if (rows[i].there)
            assert_true(error(256) < 0.02);
        else
            assert_true(dot(back, back, 256) == 0);
    }
    for (uint32_t k = 0; k < 256; k++) /* beyond what a scale can say: shorter, but finite */
        v[k] = k % 3 == 0 ? -FLT_MAX : FLT_MAX;
    there_and_back(256, 1, -1);
    for (uint32_t k = 0; k < 256; k++)
        assert_true(fabsf(back[k]) <= FLT_MAX);
    assert_true(dot(back, v, 256) > 0);
}

static void chunks_are_as_full_as_blocks_allow(void **state)
{
    (void)state;
    static const struct {
        float param;
        uint32_t n, count;
        size_t len;
    } rows[] = {
        {1, N, 7424 + 64, 4 + 29 * 34 + 10}, /* 29 blocks, and one of 64 in the room left */
        {2, N, 3840 + 16, 4 + 15 * 66 + 6},
        {3, N, 2560 + 32, 4 + 10 * 98 + 14},
        {4, N, 1792 + 128, 4 + 7 * 130 + 66},
        {4, 1792 + 129, 1792 + 128, 4 + 7 * 130 + 66},
        {-1, 1, 1, 4 + 2 + 1}, /* padded to 8 */
        {-4, 9, 9, 4 + 2 + 8}, /* to 16 */
        {2, 256, 256, 4 + 66},
        {2, 257, 257, 4 + 66 + 4},
        {3, 300, 300, 4 + 98 + 2 + 24},
    };
    fill(NORMAL, 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct coded c = encode(rows[i].n, 0, 1, rows[i].param);
        assert_int_equal(c.count, rows[i].count);
        assert_int_equal(c.len, rows[i].len);
        const struct elv_codec_arg arg = {.param = rows[i].param};
        assert_int_equal(rotate->chunks_max(rows[i].n, &arg),
                         (rows[i].n + rows[i].count - 1) / rows[i].count);
    }
}

static void the_seed_and_the_place_decide_the_signs(void **state)
{
    (void)state;
    fill(NORMAL, 4);
    const struct elv_codec_arg arg = {.seed = 5, .param = 1};
    struct coded a = encode(256, 0, 5, 1), b = encode(256, 0, 6, 1), c = {.len = 0};
    assert_memory_not_equal(a.bytes, b.bytes, a.len);
    assert_int_equal(rotate->encode(v, 256, 0, 1, &arg, c.bytes, sizeof c.bytes, &c.len, &c.count),
                     ELV_OK);
    assert_memory_not_equal(a.bytes, c.bytes, a.len);
    /* Two blocks of one chunk with the same values, too. */
    memcpy(v + 256, v, 256 * sizeof *v);
    a = encode(512, 0, 5, 1);
    assert_memory_not_equal(a.bytes + 4, a.bytes + 4 + 34, 34);
}

/* Written down by an independent program that follows common/WIRE.md. */
static void the_bytes_are_these(void **state)
{
    (void)state;
    static const struct {
        float param;
        size_t len;
        uint8_t want[14];
    } rows[] = {
        {1, 8, {0xB0, 0x05, 0x65, 0x47, 0x2F, 0x3E, 0x70, 0x30}},
        {2, 10, {0xB1, 0x05, 0x65, 0x47, 0x1D, 0x3E, 0x92, 0xC4, 0x70, 0x30}},
        {-3, 12, {0xB2, 0x05, 0x65, 0x47, 0x26, 0x3E, 0x0C, 0x27, 0x92, 0xC4, 0x70, 0x30}},
        {4,
         14,
         {0xB3, 0x05, 0x65, 0x47, 0x27, 0x3E, 0x24, 0x29, 0x0C, 0x27, 0x92, 0xC4, 0x70, 0x30}},
    };
    for (uint32_t i = 0; i < 11; i++)
        v[i] = (float)((int)(i * 5 % 11) - 5) * 0.25f;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct coded c = encode(11, 0, 1, rows[i].param);
        assert_int_equal(c.len, rows[i].len);
        assert_memory_equal(c.bytes, rows[i].want, c.len);
    }
}

static void hostile_payloads_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint16_t scale;
        enum elv_err want;
    } rows[] = {
        {0x0000, ELV_OK},        {0x0001, ELV_OK},        {0x3F80, ELV_OK},
        {0x7A00, ELV_OK}, /* 2^117, the largest */
        {0x7A01, ELV_ERR_RANGE}, {0x7F7F, ELV_ERR_RANGE}, {0x7F80, ELV_ERR_RANGE}, /* infinity */
        {0x7FC0, ELV_ERR_RANGE}, /* not a number */
        {0x8000, ELV_ERR_RANGE}, {0xBF80, ELV_ERR_RANGE}, {0xFF80, ELV_ERR_RANGE},
    };
    for (uint32_t bits = 1; bits <= 4; bits++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            /* A whole block and one of 8; the second one's scale. Each code the same and the
             * highest, so that one of the transform's results is as large as it can be. */
            uint8_t in[4 + 2 + 128 + 2 + 4] = {(uint8_t)(bits - 1)};
            const size_t second = 4 + 2 + 32 * bits, len = second + 2 + bits;
            memset(in + 6, 0xFF, 32 * bits);
            in[4] = 0x00, in[5] = 0x7A;
            in[second] = (uint8_t)rows[i].scale;
            in[second + 1] = (uint8_t)(rows[i].scale >> 8);
            assert_int_equal(elv_codec_decode(rotate, (struct elv_bytes){in, len}, 257, back),
                             rows[i].want);
            assert_int_equal(elv_codec_decode(rotate, (struct elv_bytes){in, len}, 264, back),
                             rows[i].want);
            assert_int_equal(elv_codec_decode(rotate, (struct elv_bytes){in, len}, 265, back),
                             ELV_ERR_FORMAT);
            assert_int_equal(elv_codec_decode(rotate, (struct elv_bytes){in, len}, 256, back),
                             ELV_ERR_FORMAT);
            assert_int_equal(
                elv_codec_decode(rotate, (struct elv_bytes){in, len}, UINT32_MAX, back),
                ELV_ERR_FORMAT);
            for (uint32_t k = 0; k < 256; k++)
                assert_true(fabsf(back[k]) <= FLT_MAX);
        }
    }
}

static void one_to_four_bits_and_the_word_unbiased(void **state)
{
    (void)state;
    static const float good[] = {1, 2, 3, 4, -1, -4}, bad[] = {0, 0.5f, 5, -5, 100};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(elv_codec_takes(rotate, good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(elv_codec_takes(rotate, bad[i]));
}

/* Where large values cancel it would be all there is, and a machine that flushes it to zero would
 * come to other signs. */
static void dust_beside_large_values_counts_as_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 16; seed++) {
        for (uint32_t i = 0; i < 256; i++)
            v[i] = i < 2 ? 1.0f : 0.0f;
        const struct coded clean = encode(256, 0, seed, 1);
        for (uint32_t i = 2; i < 256; i++)
            v[i] = 0x1p-140f * (float)i;
        const struct coded dusty = encode(256, 0, seed, 1);
        assert_int_equal(dusty.len, clean.len);
        assert_memory_equal(dusty.bytes, clean.bytes, clean.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_levels_are_those_of_lloyd_and_max),
        cmocka_unit_test(the_error_is_that_of_a_normal_distribution_for_any_vector),
        cmocka_unit_test(dust_beside_large_values_counts_as_nothing),
        cmocka_unit_test(the_mean_over_seeds_is_the_vector_when_unbiased),
        cmocka_unit_test(one_large_value_comes_back_exactly),
        cmocka_unit_test(magnitudes_from_the_smallest_to_the_largest),
        cmocka_unit_test(chunks_are_as_full_as_blocks_allow),
        cmocka_unit_test(the_seed_and_the_place_decide_the_signs),
        cmocka_unit_test(the_bytes_are_these),
        cmocka_unit_test(hostile_payloads_are_refused),
        cmocka_unit_test(one_to_four_bits_and_the_word_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
