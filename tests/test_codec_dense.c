/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes and the errors of the codecs with a fixed number of bits per coordinate. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"
#include "common/rng.h"

static const struct elv_codec_arg plain = {0};

static void check_bytes(uint8_t id, const struct elv_codec_arg *arg, const float *v, uint32_t n,
                        const uint8_t *want, size_t want_len)
{
    uint8_t out[64];
    size_t len;
    uint32_t count;
    const struct elv_codec *codec = elv_codec_by_id(id);
    assert_int_equal(codec->encode(v, n, 0, 0, arg, out, sizeof out, &len, &count), ELV_OK);
    assert_int_equal(count, n);
    assert_int_equal(len, want_len);
    assert_memory_equal(out, want, len);
}

static void q8_rounds_to_the_nearest_step_and_ties_to_even(void **state)
{
    (void)state;
    /* The scale is 1: the values are in steps already. */
    static const float v[] = {127.0f, 0.5f, 1.5f,  2.5f,    -0.5f,       -1.5f,
                              -2.5f,  0.0f, -0.0f, -127.0f, 0.49999997f, 125.50001f};
    static const uint8_t want[] = {0x00, 0x00, 0x80, 0x3F, 127, 0,    2, 2,
                                   0,    0xFE, 0xFE, 0,    0,   0x81, 0, 126};
    check_bytes(ELV_CODEC_Q8, &plain, v, 12, want, sizeof want);
}

static void q4_rounds_likewise_and_puts_the_first_of_two_values_in_the_lower_half(void **state)
{
    (void)state;
    static const float v[] = {7.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, -7.0f, 6.4999995f};
    static const uint8_t want[] = {0x00, 0x00, 0x80, 0x3F, 0x07, 0x22, 0xE0, 0x9E, 0x06};
    check_bytes(ELV_CODEC_Q4, &plain, v, 9, want, sizeof want);
}

static void scaled_codecs_write_nothing_where_nothing_is(void **state)
{
    (void)state;
    static const float zero[3], tiny[3] = {1e-31f, -1e-44f, 0.0f};
    static const uint8_t want[7];
    const struct elv_codec_arg random = {.seed = 1, .param = -1.0f};
    for (int i = 0; i < 2; i++) {
        const struct elv_codec_arg *arg = i == 0 ? &plain : &random;
        check_bytes(ELV_CODEC_Q8, arg, zero, 3, want, 7);
        check_bytes(ELV_CODEC_Q8, arg, tiny, 3, want, 7);
        check_bytes(ELV_CODEC_Q4, arg, zero, 3, want, 6);
        check_bytes(ELV_CODEC_Q4, arg, tiny, 3, want, 6);
    }
    check_bytes(ELV_CODEC_SIGN, &plain, zero, 3, want, 5);
    check_bytes(ELV_CODEC_SIGN, &plain, tiny, 3, want, 5);

    static const float small[1] = {0x1p-93f}, small4[1] = {0x1p-97f}, small1[1] = {-0x1p-100f};
    static const uint8_t some[] = {0x04, 0x02, 0x81, 0x0D, 127};
    static const uint8_t some4[] = {0x25, 0x49, 0x92, 0x0D, 7};
    static const uint8_t some1[] = {0x00, 0x00, 0x80, 0x0D, 1};
    check_bytes(ELV_CODEC_Q8, &plain, small, 1, some, 5);   /* 2^-93 / 127 is just above 2^-100 */
    check_bytes(ELV_CODEC_Q4, &plain, small4, 1, some4, 5); /* and so is 2^-97 / 7 */
    check_bytes(ELV_CODEC_SIGN, &plain, small1, 1, some1, 5);
    /* The mean is 2^-99 without what is below 2^-100, and 2^-101 with one alone that is not. */
    static const float mixed[2] = {0x1p-98f, -0x1.FFFFFEp-101f}, half[2] = {-0x1p-100f, 0.0f};
    static const uint8_t some2[] = {0x00, 0x00, 0x00, 0x0E, 2}, none[5];
    check_bytes(ELV_CODEC_SIGN, &plain, mixed, 2, some2, 5);
    check_bytes(ELV_CODEC_SIGN, &plain, half, 2, none, 5);
}

static void sign_writes_the_mean_magnitude_and_a_bit_where_a_value_is_below_zero(void **state)
{
    (void)state;
    static const float v[] = {-1, 2, -3, 4, 5, 6, 7, -8, -9, 0.0f, -0.0f};
    static const uint8_t want[] = {0xBA, 0xE8, 0x82, 0x40, 0x85, 0x05}; /* 45 / 11 */
    check_bytes(ELV_CODEC_SIGN, &plain, v, 11, want, sizeof want);
}

/* A mean of many large values needs more than binary32 on the way, and comes out right. */
static void the_mean_magnitude_does_not_overflow(void **state)
{
    (void)state;
    static float v[7968], back[7968];
    uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
    const struct elv_codec *sign = elv_codec_by_id(ELV_CODEC_SIGN);
    for (uint32_t i = 0; i < 7968; i++)
        v[i] = i % 3 == 0 ? -FLT_MAX : FLT_MAX;
    assert_int_equal(sign->encode(v, 7968, 0, 0, &plain, out, sizeof out, &len, &count), ELV_OK);
    assert_int_equal(count, 7968);
    assert_int_equal(elv_codec_decode(sign, (struct elv_bytes){out, len}, count, back), ELV_OK);
    assert_memory_equal(v, back, sizeof v);
}

static double squared_error(const float *v, const float *back, uint32_t n, double factor)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double off = (double)v[i] - (double)back[i] * factor;
        sum += off * off;
    }
    return sum;
}

static void no_other_magnitude_than_the_mean_leaves_a_smaller_error(void **state)
{
    (void)state;
    float v[1000], back[1000];
    uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
    const struct elv_codec *sign = elv_codec_by_id(ELV_CODEC_SIGN);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 3});
    for (uint32_t i = 0; i < 1000; i++)
        v[i] = elv_rng_normal(&r);
    assert_int_equal(sign->encode(v, 1000, 0, 0, &plain, out, sizeof out, &len, &count), ELV_OK);
    assert_int_equal(elv_codec_decode(sign, (struct elv_bytes){out, len}, count, back), ELV_OK);
    const double least = squared_error(v, back, 1000, 1.0);
    for (double factor = 0.5; factor < 2.0; factor += 0.01)
        assert_true(least <= squared_error(v, back, 1000, factor));
}

static float half_value(uint32_t half)
{
    const int exponent = (int)(half >> 10 & 31), mantissa = (int)(half & 1023);
    const float a = exponent == 0 ? ldexpf((float)mantissa, -24)
                                  : ldexpf((float)(mantissa + 1024), exponent - 25);
    return (half & 0x8000u) != 0 ? -a : a;
}

static uint16_t half_of(float v)
{
    uint8_t out[2];
    size_t len;
    uint32_t count;
    const struct elv_codec *f16 = elv_codec_by_id(ELV_CODEC_F16);
    assert_int_equal(f16->encode(&v, 1, 0, 0, &plain, out, sizeof out, &len, &count), ELV_OK);
    assert_int_equal(len, 2);
    return (uint16_t)(out[0] | out[1] << 8);
}

static void every_finite_f16_is_decoded_exactly_and_encoded_back(void **state)
{
    (void)state;
    const struct elv_codec *f16 = elv_codec_by_id(ELV_CODEC_F16);
    for (uint32_t half = 0; half < 0x10000; half++) {
        const uint8_t bytes[2] = {(uint8_t)half, (uint8_t)(half >> 8)};
        float v;
        const enum elv_err err = elv_codec_decode(f16, (struct elv_bytes){bytes, 2}, 1, &v);
        assert_int_equal(err, (half >> 10 & 31) == 31 ? ELV_ERR_RANGE : ELV_OK);
        if (err != ELV_OK)
            continue;
        const float want = half_value(half);
        assert_memory_equal(&v, &want, sizeof v); /* the sign of zero as well */
        assert_int_equal(half_of(v), half);
    }
}

/* Each pair of neighbours: the middle goes to the even one, what is next to it to the nearer. */
static void f16_rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7BFF; half++) {
        const float below = half_value(half), above = half_value(half + 1);
        const float middle = (below + above) / 2; /* exact: binary32 has 13 bits more */
        const uint32_t even = half + half % 2;
        assert_int_equal(half_of(middle), even);
        assert_int_equal(half_of(-middle), even | 0x8000u);
        assert_int_equal(half_of(nextafterf(middle, 0)), half);
        assert_int_equal(half_of(nextafterf(middle, above)), half + 1);
    }
}

static void f16_keeps_to_its_largest_value_and_is_never_infinite(void **state)
{
    (void)state;
    static const float v[] = {65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e30f, FLT_MAX};
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        assert_int_equal(half_of(v[i]), 0x7BFF);
        assert_int_equal(half_of(-v[i]), 0xFBFF);
    }
    assert_int_equal(half_of(0x1p-25f), 0); /* half of the smallest: to even */
    assert_int_equal(half_of(0x1.000002p-25f), 1);
    assert_int_equal(half_of(-0x1p-149f), 0x8000);
    static const float some[] = {1.0f, -2.0f, 0.1f};
    static const uint8_t want[] = {0x00, 0x3C, 0x00, 0xC0, 0x66, 0x2E};
    check_bytes(ELV_CODEC_F16, &plain, some, 3, want, sizeof want);
}

static void bits_behind_the_last_value_are_zero(void **state)
{
    (void)state;
    float out[16];
    for (uint32_t bit = 0; bit < 8; bit++) {
        const uint8_t q4[6] = {0, 0, 0x80, 0x3F, 0, (uint8_t)(1u << bit)};
        const struct elv_bytes in = {q4, sizeof q4};
        assert_int_equal(elv_codec_decode(elv_codec_by_id(ELV_CODEC_Q4), in, 3, out),
                         bit < 4 ? ELV_OK : ELV_ERR_FORMAT);
        for (uint32_t count = 9; count <= 16; count++)
            assert_int_equal(elv_codec_decode(elv_codec_by_id(ELV_CODEC_SIGN), in, count, out),
                             8 + bit < count ? ELV_OK : ELV_ERR_FORMAT);
    }
}

#define BAD ELV_ERR_RANGE

static void values_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    const struct elv_codec *f32 = elv_codec_by_id(ELV_CODEC_F32);
    const struct elv_codec *q8 = elv_codec_by_id(ELV_CODEC_Q8);
    const struct elv_codec *q4 = elv_codec_by_id(ELV_CODEC_Q4);
    const struct elv_codec *sign = elv_codec_by_id(ELV_CODEC_SIGN);
    static const struct {
        uint8_t f[4];
        enum elv_err as_value, as_scale, as_scale_of_q4, as_magnitude;
    } rows[] = {
        {{0x00, 0x00, 0x80, 0x3F}, ELV_OK, ELV_OK, ELV_OK, ELV_OK}, /* 1 */
        {{0x00, 0x00, 0x80, 0xBF}, ELV_OK, BAD, BAD, BAD},          /* -1 */
        {{0xFF, 0xFF, 0x7F, 0x7F}, ELV_OK, BAD, BAD, ELV_OK},       /* times -8 is infinite */
        {{0x00, 0x00, 0x00, 0x7E}, ELV_OK, BAD, BAD, ELV_OK},       /* still */
        {{0xFF, 0xFF, 0xFF, 0x7D}, ELV_OK, BAD, ELV_OK, ELV_OK},    /* is not */
        {{0x00, 0x00, 0x00, 0x7C}, ELV_OK, BAD, ELV_OK, ELV_OK},    /* times -128 is */
        {{0xFF, 0xFF, 0xFF, 0x7B}, ELV_OK, ELV_OK, ELV_OK, ELV_OK}, /* is not */
        {{0xFF, 0xFF, 0x7F, 0xFF}, ELV_OK, BAD, BAD, BAD},
        {{0x00, 0x00, 0x80, 0x7F}, BAD, BAD, BAD, BAD}, /* infinity */
        {{0x00, 0x00, 0x80, 0xFF}, BAD, BAD, BAD, BAD},
        {{0x00, 0x00, 0xC0, 0x7F}, BAD, BAD, BAD, BAD}, /* not a number */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float out[8];
        uint8_t two[8] = {0}, scaled[7] = {0, 0, 0, 0, 0x80, 0x7F, 0};
        memcpy(two + 4, rows[i].f, 4);
        memcpy(scaled, rows[i].f, 4);
        assert_int_equal(elv_codec_decode(f32, (struct elv_bytes){two, 8}, 2, out),
                         rows[i].as_value);
        assert_int_equal(elv_codec_decode(q8, (struct elv_bytes){scaled, 7}, 3, out),
                         rows[i].as_scale);
        for (int j = 0; rows[i].as_scale == ELV_OK && j < 3; j++)
            assert_true(out[j] >= -FLT_MAX && out[j] <= FLT_MAX);
        scaled[4] = 0x88; /* twice -8 */
        assert_int_equal(elv_codec_decode(q4, (struct elv_bytes){scaled, 5}, 2, out),
                         rows[i].as_scale_of_q4);
        for (int j = 0; rows[i].as_scale_of_q4 == ELV_OK && j < 2; j++)
            assert_true(out[j] >= -FLT_MAX && out[j] <= FLT_MAX);
        assert_int_equal(elv_codec_decode(sign, (struct elv_bytes){scaled, 5}, 8, out),
                         rows[i].as_magnitude);
    }
}

/* Rounding at random. */

enum { BODIES = 400, VALUES = 996 };

struct rounding {
    const struct elv_codec *codec;
    float most;
    float v[VALUES], back[VALUES]; /* in steps: the largest is `most`, so the scale is 1 */
};

static struct rounding make(uint8_t id, float most)
{
    struct rounding r = {.codec = elv_codec_by_id(id), .most = most};
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = 5});
    for (uint32_t i = 0; i < VALUES; i++)
        r.v[i] = (elv_rng_unit(&rng) * 2 - 1) * most;
    r.v[0] = most;
    r.v[1] = -most;
    r.v[2] = 0.0f;
    r.v[3] = 3.0f;
    r.v[4] = 0x1p-20f; /* goes up once in a million */
    return r;
}

static void there_and_back(struct rounding *r, uint64_t seed)
{
    const struct elv_codec_arg arg = {.seed = seed, .param = -1.0f};
    uint8_t out[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
    assert_int_equal(r->codec->encode(r->v, VALUES, 0, 0, &arg, out, sizeof out, &len, &count),
                     ELV_OK);
    assert_int_equal(count, VALUES);
    assert_int_equal(elv_codec_decode(r->codec, (struct elv_bytes){out, len}, count, r->back),
                     ELV_OK);
}

/* Over many seeds the mean of each coordinate is the value, and that of all coordinates far more
 * so. A coordinate's rounding has a variance of at most 1/4; the bounds are six deviations. */
static void check_unbiased(uint8_t id, float most)
{
    static double sum[VALUES];
    struct rounding r = make(id, most);
    double all = 0;
    memset(sum, 0, sizeof sum);
    for (uint64_t seed = 0; seed < BODIES; seed++) {
        there_and_back(&r, seed);
        for (uint32_t i = 0; i < VALUES; i++) {
            const float off = r.back[i] - r.v[i];
            assert_true(off > -1.0f && off < 1.0f);
            assert_true(r.back[i] >= -most && r.back[i] <= most);
            sum[i] += (double)off;
        }
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        assert_true(fabs(sum[i] / BODIES) <= 6 * 0.5 / sqrt(BODIES));
        all += sum[i];
    }
    assert_true(fabs(all / BODIES / VALUES) <= 6 * 0.5 / sqrt((double)BODIES * VALUES));
    for (uint32_t i = 0; i < 4; i++)
        assert_true(sum[i] == 0.0); /* whole steps stay */
}

static void rounding_at_random_is_unbiased(void **state)
{
    (void)state;
    check_unbiased(ELV_CODEC_Q8, 127.0f);
    check_unbiased(ELV_CODEC_Q4, 7.0f);
}

/* The chance is the part behind the point: a quarter of many equal values goes up. */
static void as_many_go_up_as_the_value_is_above_the_step(void **state)
{
    (void)state;
    static const float parts[] = {0.25f, 0.5f, 0.75f};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        struct rounding r = make(ELV_CODEC_Q8, 127.0f);
        unsigned n_up = 0;
        for (uint32_t i = 1; i < VALUES; i++)
            r.v[i] = i % 2 == 0 ? 5 + parts[k] : -5 - parts[k];
        for (uint64_t seed = 0; seed < 40; seed++) {
            there_and_back(&r, seed);
            for (uint32_t i = 1; i < VALUES; i++)
                n_up += fabsf(r.back[i]) > 5.5f;
        }
        const double n = 40.0 * (VALUES - 1), p = (double)parts[k];
        assert_true(fabs(n_up - n * p) <= 5 * sqrt(n * p * (1 - p)));
    }
}

/* The dice belong to the coordinate, not to where chunks begin. */
static void a_coordinate_has_the_same_dice_in_any_chunk(void **state)
{
    (void)state;
    float v[40];
    uint8_t whole[64], part[64];
    const struct elv_codec_arg arg = {.seed = 77, .param = -1.0f};
    for (int i = 0; i < 40; i++)
        v[i] = i % 10 == 9 ? 127.0f : 0.37f * (float)i;
    size_t len;
    uint32_t count;
    const struct elv_codec *q8 = elv_codec_by_id(ELV_CODEC_Q8);
    assert_int_equal(q8->encode(v, 40, 0, 0, &arg, whole, 44, &len, &count), ELV_OK);
    for (uint32_t first = 0; first < 30; first++) {
        assert_int_equal(q8->encode(v, 40, first, 0, &arg, part, 14, &len, &count), ELV_OK);
        assert_int_equal(count, 10);
        assert_memory_equal(part, whole, 4);
        assert_memory_equal(part + 4, whole + 4 + first, 10);
    }
}

/* With this seed the first coordinate's dice show 0 of 2^24, so that any part behind the point goes
 * up. A whole number has none; and where the rounded scale leaves a little above the largest step,
 * there is no step to go to. */
static void the_luckiest_dice_neither_leave_whole_steps_nor_pass_the_largest(void **state)
{
    (void)state;
    const struct elv_codec_arg arg = {.seed = 10551981, .param = -1.0f};
    static const float whole[2] = {3.0f, 127.0f}, whole4[2] = {3.0f, 7.0f}, above[2] = {3.001f, 7};
    static const uint8_t want[] = {0, 0, 0x80, 0x3F, 3, 127}, want4[] = {0, 0, 0x80, 0x3F, 0x73};
    static const uint8_t want_up[] = {0, 0, 0x80, 0x3F, 0x74};
    check_bytes(ELV_CODEC_Q8, &arg, whole, 2, want, sizeof want);
    check_bytes(ELV_CODEC_Q4, &arg, whole4, 2, want4, sizeof want4);
    check_bytes(ELV_CODEC_Q4, &arg, above, 2, want_up, sizeof want_up);

    static const float a = 1.00500023f, b = 1.00200009f;
    assert_true(a / (a / 127.0f) > 127.0f && b / (b / 7.0f) > 7.0f);
    float back;
    uint8_t out[8];
    size_t len;
    uint32_t count;
    for (int i = 0; i < 2; i++) {
        const struct elv_codec *c = elv_codec_by_id(i == 0 ? ELV_CODEC_Q8 : ELV_CODEC_Q4);
        const float v = i == 0 ? a : b;
        assert_int_equal(c->encode(&v, 1, 0, 0, &arg, out, sizeof out, &len, &count), ELV_OK);
        assert_int_equal(out[4], i == 0 ? 127 : 7);
        assert_int_equal(elv_codec_decode(c, (struct elv_bytes){out, len}, 1, &back), ELV_OK);
        assert_true(back > 1.0f);
    }
}

static void rounding_at_random_writes_the_same_bytes_everywhere(void **state)
{
    (void)state;
    const struct elv_codec_arg arg = {.seed = 0x0123456789ABCDEF, .param = -1.0f};
    static const float v[] = {7.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, -7.0f, 6.4999995f};
    static const uint8_t q8[] = {0x87, 0xC3, 0x61, 0x3D, 0x7F, 0x09, 0x1B,
                                 0x2D, 0xF7, 0xE5, 0xD3, 0x81, 0x76};
    static const uint8_t q4[] = {0x00, 0x00, 0x80, 0x3F, 0x17, 0x21, 0xE0, 0x9E, 0x06};
    check_bytes(ELV_CODEC_Q8, &arg, v, 9, q8, sizeof q8);
    check_bytes(ELV_CODEC_Q4, &arg, v, 9, q4, sizeof q4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q8_rounds_to_the_nearest_step_and_ties_to_even),
        cmocka_unit_test(q4_rounds_likewise_and_puts_the_first_of_two_values_in_the_lower_half),
        cmocka_unit_test(scaled_codecs_write_nothing_where_nothing_is),
        cmocka_unit_test(sign_writes_the_mean_magnitude_and_a_bit_where_a_value_is_below_zero),
        cmocka_unit_test(the_mean_magnitude_does_not_overflow),
        cmocka_unit_test(no_other_magnitude_than_the_mean_leaves_a_smaller_error),
        cmocka_unit_test(every_finite_f16_is_decoded_exactly_and_encoded_back),
        cmocka_unit_test(f16_rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(f16_keeps_to_its_largest_value_and_is_never_infinite),
        cmocka_unit_test(bits_behind_the_last_value_are_zero),
        cmocka_unit_test(values_that_are_not_finite_are_refused),
        cmocka_unit_test(rounding_at_random_is_unbiased),
        cmocka_unit_test(as_many_go_up_as_the_value_is_above_the_step),
        cmocka_unit_test(a_coordinate_has_the_same_dice_in_any_chunk),
        cmocka_unit_test(the_luckiest_dice_neither_leave_whole_steps_nor_pass_the_largest),
        cmocka_unit_test(rounding_at_random_writes_the_same_bytes_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
