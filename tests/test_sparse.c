/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the codecs that leave coordinates out; tests/test_codec.c has the rest. */
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
#include "common/sparse.h"

enum { N_MAX = 300000, RANGE_MAX = 1000008 };

static float v[N_MAX], back[RANGE_MAX];

struct rig {
    const struct elv_codec *codec;
    struct elv_codec_plan plan;
    struct elv_codec_arg arg;
    uint32_t n;
};

static struct rig rig_of(uint8_t id, float fraction, uint32_t n)
{
    return (struct rig){.codec = elv_codec_by_id(id), .arg = {.param = fraction}, .n = n};
}

static void encode(struct rig *r, uint32_t first, uint8_t out[ELV_CHUNK_PAYLOAD_MAX], size_t *len,
                   uint32_t *count)
{
    elv_codec_plan(r->codec, &r->plan, v, r->n, &r->arg);
    assert_int_equal(
        r->codec->encode(v, r->n, first, 0, &r->arg, out, ELV_CHUNK_PAYLOAD_MAX, len, count),
        ELV_OK);
}

/* Counts chunks and checks that they tile, and that all come back. */
static uint32_t chunks(struct rig *r, uint32_t *n_coded)
{
    elv_codec_plan(r->codec, &r->plan, v, r->n, &r->arg);
    uint32_t n = 0, count = 0;
    for (uint32_t first = 0; first < r->n; first += count, n++) {
        uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
        size_t len;
        assert_int_equal(
            r->codec->encode(v, r->n, first, n, &r->arg, out, sizeof out, &len, &count), ELV_OK);
        assert_in_range(count, 1, r->n - first);
        assert_int_equal(
            elv_codec_decode(r->codec, (struct elv_bytes){out, len}, count, back + first), ELV_OK);
    }
    *n_coded = 0;
    for (uint32_t i = 0; i < r->n; i++)
        *n_coded += back[i] != 0;
    return n;
}

static void check_golden(uint8_t id, const uint8_t *want, size_t want_len)
{
    static const float some[] = {0, 0, 0, 0, 0, 2.0f, 0.5f, -0.25f, 1, 1.0f, -3.0f, 0};
    uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
    memcpy(v, some, sizeof some);
    struct rig r = rig_of(id, 0.25f, 12);
    encode(&r, 0, out, &len, &count);
    assert_int_equal(count, 12);
    assert_int_equal(len, want_len);
    assert_memory_equal(out, want, len);
}

/* Of twelve the three largest: 2 at 5, then 1 at 8 before the equal one at 9, and -3 at 10. The
 * gaps 5, 2 and 1 take three bits each with parameter 1 or 2, but for 5 which takes four. */
static void payloads_are_these_bytes(void **state)
{
    (void)state;
    /* Magnitude 2, parameter 1; 001 1 0, 01 0 0, 1 1 1. */
    static const uint8_t ternary[] = {0x01, 0x00, 0x00, 0x40, 0x4C, 0x0E};
    check_golden(ELV_CODEC_TERNARY, ternary, sizeof ternary);
    /* Scale 3 / 127 cut, parameter 1; 001 1, 85, 01 0, 42, 1 1, -127. */
    static const uint8_t topk[] = {0x01, 0x83, 0xC1, 0x3C, 0x5C, 0x25, 0x95, 0x03, 0x01};
    check_golden(ELV_CODEC_TOPK, topk, sizeof topk);
}

static void a_vector_of_nothing_is_one_chunk_of_nothing(void **state)
{
    (void)state;
    static const uint8_t nothing[4];
    static const uint32_t sizes[] = {1, 2, 1000, 65536, 65537, N_MAX};
    memset(v, 0, sizeof v);
    v[3] = -0.0f;
    for (uint8_t id = ELV_CODEC_TERNARY; id <= ELV_CODEC_TOPK; id++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct rig r = rig_of(id, 0.5f, sizes[i]);
            uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
            size_t len;
            uint32_t count, n_coded;
            encode(&r, 0, out, &len, &count);
            assert_int_equal(count, sizes[i]);
            assert_int_equal(len, sizeof nothing);
            assert_memory_equal(out, nothing, len);
            assert_int_equal(chunks(&r, &n_coded), 1);
            assert_int_equal(n_coded, 0);
        }
}

static void a_chunk_ends_before_the_next_coordinate_coded_or_at_the_end(void **state)
{
    (void)state;
    memset(v, 0, sizeof v);
    for (uint32_t i = 0; i < 20000; i++)
        v[i] = 1.0f;
    struct rig r = rig_of(ELV_CODEC_TERNARY, 0.5f, N_MAX);
    uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count, n_coded;
    encode(&r, 0, out, &len, &count); /* little more than a bit each, when the model knows */
    assert_int_equal(out[0] & 31, ELV_SPARSE_MODELLED);
    assert_int_equal(len, ELV_CHUNK_PAYLOAD_MAX);
    assert_in_range(count, 7500, 7600);
    encode(&r, 19990, out, &len, &count); /* two bits each, for a model learns slowly */
    assert_int_equal(out[0] & 31, 0);
    assert_int_equal(len, 4 + (20 + 7) / 8);
    assert_int_equal(count, N_MAX - 19990);
    v[N_MAX - 1] = 1.0f; /* far away, so that another way is best */
    encode(&r, 19990, out, &len, &count);
    assert_in_range(len, 10, 18);
    assert_int_equal(count, N_MAX - 19990);
    assert_int_equal(chunks(&r, &n_coded), 3);
    assert_int_equal(n_coded, 20001);
}

static void of_equal_ones_the_first_are_coded_and_exactly_as_many_as_asked_for(void **state)
{
    (void)state;
    static const float fractions[] = {0.001f, 0.01f, 0.25f, 0.5f};
    for (uint32_t i = 0; i < 10007; i++)
        v[i] = i % 2 ? 0.5f : -0.5f;
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++)
        for (uint8_t id = ELV_CODEC_TERNARY; id <= ELV_CODEC_TOPK; id++) {
            struct rig r = rig_of(id, fractions[i], 10007);
            uint32_t n_coded;
            chunks(&r, &n_coded);
            const uint32_t k = elv_select_count(fractions[i], 10007);
            assert_int_equal(n_coded, k);
            assert_true(back[k - 1] != 0 && back[k] == 0);
        }
}

/* Ways to lay out what is coded, for bounds that must hold for all. */
static float laid_out(int kind, uint32_t i, uint32_t n, struct elv_rng *r)
{
    const float some = 1.0f + elv_rng_unit(r);
    switch (kind) {
    case 0:
        return elv_rng_normal(r);
    case 1: /* all at the end */
        return i > n - n / 50 ? some : 0.001f * some;
    case 2: /* evenly */
        return i % 97 == 96 ? some : 0.001f * some;
    case 3: /* clusters */
        return i % 3000 < 30 ? some : 0.001f * some;
    case 4: /* gaps of very different lengths */
        return (i & (i >> 3) & (i >> 5)) == 0 ? some : 0.001f * some;
    default: /* ever rarer */
        return elv_rng_unit(r) < 300.0f / (float)(i + 300) ? some : 0.001f * some;
    }
}

static void no_more_chunks_come_than_announced_however_the_coded_lie(void **state)
{
    (void)state;
    static const float fractions[] = {1e-6f, 0.0005f, 0.01f, 0.02f, 0.1f, 0.5f};
    static const uint32_t sizes[] = {1, 100, 3983, 20000, 100000};
    for (int kind = 0; kind < 6; kind++)
        for (size_t i = 0; i < 6 * 5; i++) {
            const uint32_t n = sizes[i % 5];
            struct elv_rng g = elv_rng_of((struct elv_rng_key){.seed = 5, .round = n});
            for (uint32_t j = 0; j < n; j++)
                v[j] = laid_out(kind, j, n, &g);
            for (uint8_t id = ELV_CODEC_TERNARY; id <= ELV_CODEC_TOPK; id++) {
                struct rig r = rig_of(id, fractions[i / 5], n);
                uint32_t n_coded;
                assert_in_range(chunks(&r, &n_coded), 1, r.codec->chunks_max(n, &r.arg));
                if (id == ELV_CODEC_TERNARY) /* values of topk may be rounded to nothing */
                    assert_int_equal(n_coded, elv_select_count(fractions[i / 5], n));
            }
        }
}

static void announced_chunks_are_few(void **state)
{
    (void)state;
    static const struct {
        float fraction;
        uint32_t n, ternary, topk;
    } rows[] = {
        {0.01f, 1, 1, 1},          {0.01f, 20000, 1, 1},
        {0.01f, 159010, 2, 4},     {0.05f, 159010, 8, 15},
        {0.001f, 1000000, 2, 3},   {0.01f, 1000000, 13, 21},
        {0.5f, 1000000, 252, 692}, {0.01f, 1u << 31, 25799, 44723},
        {1e-6f, 1u << 31, 7, 9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_codec_arg arg = {.param = rows[i].fraction};
        assert_int_equal(elv_codec_by_id(ELV_CODEC_TERNARY)->chunks_max(rows[i].n, &arg),
                         rows[i].ternary);
        assert_int_equal(elv_codec_by_id(ELV_CODEC_TOPK)->chunks_max(rows[i].n, &arg),
                         rows[i].topk);
    }
}

/* The way and the parameter written take fewest bits of this chunk. */
static void each_chunk_has_the_parameter_that_suits_it(void **state)
{
    (void)state;
    enum { N = 60000 };
    struct elv_rng g = elv_rng_of((struct elv_rng_key){.seed = 9});
    for (uint32_t i = 0; i < N; i++) /* ever sparser */
        v[i] = elv_rng_unit(&g) < 2000.0f / (float)(i + 4000) ? 1.0f : 0.0f;
    struct rig r = rig_of(ELV_CODEC_TERNARY, 0.5f, N);
    uint32_t seen = 0, count;
    for (uint32_t first = 0; first < N; first += count) {
        uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
        size_t len;
        encode(&r, first, out, &len, &count);
        uint32_t end = first, bits[ELV_RICE_MAX + 1] = {0}, best = 0;
        for (uint32_t i = first; i < first + count; i++)
            if (v[i] != 0) {
                for (uint32_t k = 0; k <= ELV_RICE_MAX; k++)
                    bits[k] += ((i - end) >> k) + 1 + k + 1;
                end = i + 1;
            }
        for (uint32_t k = 1; k <= ELV_RICE_MAX; k++)
            best = bits[k] < bits[best] ? k : best;
        const size_t by_rice = 4 + (bits[best] + 7) / 8;
        if ((out[0] & 31) == ELV_SPARSE_MODELLED)
            assert_true(len < by_rice || by_rice > ELV_CHUNK_PAYLOAD_MAX);
        else
            assert_true((out[0] & 31) == best && len == by_rice);
        seen |= 1u << (out[0] & 31);
    }
    assert_true((seen & (seen - 1)) != 0); /* several */
}

/* The bytes that tests/test_range.c has. */
#define MODELLED 31, 0, 0x80, 0x3F, 0x00, 0x18, 0x2B, 0x21, 0xFB, 0x45, 0xAF

/* Rows of hostile and merely odd payloads; the first four bytes are the head. */
static void a_payload_has_one_spelling_and_stays_inside_its_range(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t bytes[12];
        size_t len;
        uint32_t count;
        enum elv_err err;
    } rows[] = {
        {"one at 0", {0, 0, 0x80, 0x3F, 0x01}, 5, 1, ELV_OK},
        {"one at 0, another one past the end", {0, 0, 0x80, 0x3F, 0x05}, 5, 1, ELV_ERR_FORMAT},
        {"two", {0, 0, 0x80, 0x3F, 0x05}, 5, 2, ELV_OK},
        {"one at 6", {0, 0, 0x80, 0x3F, 0x40}, 5, 7, ELV_OK},
        {"one at 6 of 6", {0, 0, 0x80, 0x3F, 0x40}, 5, 6, ELV_ERR_FORMAT},
        {"the sign is missing", {0, 0, 0x80, 0x3F, 0x80}, 5, 8, ELV_ERR_FORMAT},
        {"bits of nothing", {0, 0, 0x80, 0x3F, 0x00}, 5, 8, ELV_ERR_FORMAT},
        {"a byte more", {0, 0, 0x80, 0x3F, 0x01, 0x00}, 6, 8, ELV_ERR_FORMAT},
        {"the gap has no end",
         {0, 0, 0x80, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0},
         12,
         1000,
         ELV_ERR_FORMAT},
        {"low bits are missing", {8, 0, 0x80, 0x3F, 0x01}, 5, 1000, ELV_ERR_FORMAT},
        {"a gap of 1000", {9, 0, 0x80, 0x3F, 0xA2, 0x07}, 6, 1001, ELV_OK},
        {"a gap of 1000 of 1000", {9, 0, 0x80, 0x3F, 0xA2, 0x07}, 6, 1000, ELV_ERR_FORMAT},
        {"a gap of 1 << 30", {30, 0, 0x80, 0x3F, 0x02, 0, 0, 0, 0}, 9, 1000, ELV_ERR_FORMAT},
        {"a gap of 60 << 30",
         {30, 0, 0x80, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0x10},
         12,
         1000,
         ELV_ERR_FORMAT},
        {"modelled, -1 at 0, 1 at 6, -1 a million on", {MODELLED}, 11, 1000008, ELV_OK},
        {"modelled, the last past the end", {MODELLED}, 11, 1000007, ELV_ERR_FORMAT},
        {"modelled, a byte less", {MODELLED}, 10, 1000008, ELV_ERR_FORMAT},
        {"modelled, a byte more", {MODELLED, 0}, 12, 1000008, ELV_ERR_FORMAT},
        {"modelled, none", {31, 0, 0x80, 0x3F, 0x00}, 5, 1000, ELV_ERR_FORMAT},
        {"modelled, 8191 of 1000", {31, 0, 0x80, 0x3F, 0xFF, 0xF8}, 6, 1000, ELV_ERR_FORMAT},
        {"modelled, too high", {31, 0, 0x80, 0x3F, 0xFF, 0xFF, 0xFF, 0xFF}, 8, 9, ELV_ERR_FORMAT},
        {"modelled, nothing", {31, 0, 0x80, 0x3F}, 4, 1000, ELV_ERR_FORMAT},
        {"nothing", {0, 0, 0, 0}, 4, 1000, ELV_OK},
        {"nothing of a magnitude", {0, 0, 0x80, 0x3F}, 4, 1000, ELV_ERR_FORMAT},
        {"nothing with a parameter", {1, 0, 0, 0}, 4, 1000, ELV_ERR_FORMAT},
        {"something of magnitude 0", {0, 0, 0, 0, 0x01}, 5, 1, ELV_OK},
        {"half a head", {0, 0, 0}, 3, 1, ELV_ERR_FORMAT},
        {"no head", {0}, 0, 1, ELV_ERR_FORMAT},
        {"a magnitude below 0", {0, 0, 0x80, 0xBF, 0x01}, 5, 1, ELV_ERR_RANGE},
        {"minus 0", {0, 0, 0, 0x80, 0x01}, 5, 1, ELV_ERR_RANGE},
        {"the largest", {0xE0, 0xFF, 0x7F, 0x7F, 0x01}, 5, 1, ELV_OK},
        {"infinity", {0, 0, 0x80, 0x7F, 0x01}, 5, 1, ELV_ERR_RANGE},
        {"not a number", {0x20, 0, 0x80, 0x7F, 0x01}, 5, 1, ELV_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t *exact = malloc(rows[i].len + 1);
        memcpy(exact + 1, rows[i].bytes, rows[i].len);
        if (elv_codec_decode(elv_codec_by_id(ELV_CODEC_TERNARY),
                             (struct elv_bytes){exact + 1, rows[i].len}, rows[i].count,
                             back) != rows[i].err)
            fail_msg("%s", rows[i].what);
        free(exact);
    }
}

static void topk_takes_scales_that_leave_every_value_finite(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[6];
        float value;
        enum elv_err err;
    } rows[] = {
        {{0, 0, 0x80, 0x3F, 0x01, 0x01}, -128.0f, ELV_OK},
        {{0, 0, 0x80, 0x3F, 0xFF, 0x00}, 127.0f, ELV_OK},
        {{0xE0, 0xFF, 0xFF, 0x7B, 0x01, 0x01}, -0x1.FFFFCp127f, ELV_OK},
        {{0, 0, 0, 0x7C, 0x01, 0x01}, 0, ELV_ERR_RANGE},
        {{0, 0, 0x80, 0xBF, 0x01, 0x01}, 0, ELV_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(elv_codec_decode(elv_codec_by_id(ELV_CODEC_TOPK),
                                          (struct elv_bytes){rows[i].bytes, 6}, 1, back),
                         rows[i].err);
        if (rows[i].err == ELV_OK)
            assert_true(back[0] == rows[i].value);
    }
}

static void magnitudes_are_cut_and_too_small_ones_are_nothing(void **state)
{
    (void)state;
    assert_true(elv_sparse_magnitude(1.0f) == 1.0f);
    assert_true(elv_sparse_magnitude(0x1.00003Ep0f) == 1.0f);
    assert_true(elv_sparse_magnitude(0x1.00004p0f) == 0x1.00004p0f);
    assert_true(elv_sparse_magnitude(FLT_MAX) == 0x1.FFFFCp127f);
    assert_true(elv_sparse_magnitude(0x1p-100f) == 0x1p-100f);
    assert_true(elv_sparse_magnitude(0x1.FFFFFEp-101f) == 0.0f);
    assert_true(elv_sparse_magnitude(0.0f) == 0.0f);
    for (uint8_t id = ELV_CODEC_TERNARY; id <= ELV_CODEC_TOPK; id++) {
        struct rig r = rig_of(id, 0.5f, 4);
        uint32_t n_coded;
        v[0] = 0x1p-120f, v[1] = -0x1p-140f, v[2] = v[3] = 0;
        assert_int_equal(chunks(&r, &n_coded), 1);
        assert_int_equal(n_coded, 0);
        v[2] = 0x1p-90f;
        assert_int_equal(chunks(&r, &n_coded), 1);
        assert_in_range(n_coded, 1, 2);
    }
}

static void fractions_beyond_a_half_or_of_nothing_are_not_taken(void **state)
{
    (void)state;
    for (uint8_t id = ELV_CODEC_TERNARY; id <= ELV_CODEC_TOPK; id++) {
        const struct elv_codec *c = elv_codec_by_id(id);
        assert_true(elv_codec_takes(c, 0.01f));
        assert_true(elv_codec_takes(c, 0.5f));
        assert_true(elv_codec_takes(c, 1e-6f));
        assert_false(elv_codec_takes(c, 0.0f));
        assert_false(elv_codec_takes(c, 0.9e-6f));
        assert_false(elv_codec_takes(c, 0.50001f));
        assert_false(elv_codec_takes(c, -0.01f)); /* there is no option word */
    }
}

/* The least that n independent coordinates take of which k are coded with a sign each: their
 * entropy, and one binary32 for the magnitude. */
static double least_bytes(uint32_t n, uint32_t k)
{
    const double p = (double)k / n;
    return (n * (p - p * log2(p) - (1 - p) * log2(1 - p)) + 32) / 8;
}

static void ternary_is_within_five_percent_of_the_entropy(void **state)
{
    (void)state;
    static const float fractions[] = {0.001f, 0.01f, 0.05f};
    static const uint32_t sizes[] = {20000, 159010};
    for (int i = 0; i < 12; i++) {
        const uint32_t n = sizes[i % 2];
        const float fraction = fractions[i / 2 % 3];
        struct elv_rng g = elv_rng_of((struct elv_rng_key){.seed = 6, .round = n});
        for (uint32_t j = 0; j < n; j++) {
            const float x = elv_rng_normal(&g);
            v[j] = i < 6 ? x : x * x * x; /* the latter with heavy tails */
        }
        struct rig r = rig_of(ELV_CODEC_TERNARY, fraction, n);
        size_t len, all = 0;
        uint32_t count;
        for (uint32_t first = 0; first < n; first += count, all += len) {
            uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
            encode(&r, first, out, &len, &count);
        }
        const double least = least_bytes(n, elv_select_count(fraction, n));
        assert_true((double)all <= 1.05 * least);
        assert_true((double)all >= 0.97 * least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_are_these_bytes),
        cmocka_unit_test(a_vector_of_nothing_is_one_chunk_of_nothing),
        cmocka_unit_test(a_chunk_ends_before_the_next_coordinate_coded_or_at_the_end),
        cmocka_unit_test(of_equal_ones_the_first_are_coded_and_exactly_as_many_as_asked_for),
        cmocka_unit_test(no_more_chunks_come_than_announced_however_the_coded_lie),
        cmocka_unit_test(announced_chunks_are_few),
        cmocka_unit_test(ternary_is_within_five_percent_of_the_entropy),
        cmocka_unit_test(each_chunk_has_the_parameter_that_suits_it),
        cmocka_unit_test(a_payload_has_one_spelling_and_stays_inside_its_range),
        cmocka_unit_test(topk_takes_scales_that_leave_every_value_finite),
        cmocka_unit_test(magnitudes_are_cut_and_too_small_ones_are_nothing),
        cmocka_unit_test(fractions_beyond_a_half_or_of_nothing_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
