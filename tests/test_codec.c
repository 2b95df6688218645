/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"

static const struct elv_codec_arg no_arg = {0};

/* Values of many magnitudes, the same each time. */
static void fill(float *v, uint32_t n, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (uint32_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)x * 0x1p-31f * (1.0f + (float)(i % 7));
    }
}

static void codecs_are_found_by_number_and_by_name(void **state)
{
    (void)state;
    assert_int_equal(elv_codec_by_id(ELV_CODEC_F32)->id, ELV_CODEC_F32);
    assert_int_equal(elv_codec_by_id(ELV_CODEC_Q8)->id, ELV_CODEC_Q8);
    assert_null(elv_codec_by_id(0));
    assert_null(elv_codec_by_id(255));
    assert_null(elv_codec_by_name("q", 1));
    assert_null(elv_codec_by_name("q8x", 3));
    assert_null(elv_codec_by_name("", 0));
    for (size_t i = 0; i < elv_codec_count(); i++) {
        const struct elv_codec *c = elv_codec_at(i);
        assert_ptr_equal(elv_codec_by_id(c->id), c);
        assert_ptr_equal(elv_codec_by_name(c->name, strlen(c->name)), c);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(elv_codec_at(j)->id, c->id);
    }
}

/* Any codec: chunks tile the vector, none is longer than a chunk may be, each is made again alone
 * with the same bytes, and no more chunks come out than announced. */
static void chunks_tile_any_vector_and_can_be_made_again(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 249, 250, 251, 995, 996, 997, 1992, 3000};
    for (size_t k = 0; k < elv_codec_count(); k++) {
        const struct elv_codec *c = elv_codec_at(k);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const uint32_t n = sizes[s];
            float *v = malloc(n * sizeof *v), *back = malloc(n * sizeof *back);
            fill(v, n, n);
            uint32_t first = 0, index = 0;
            for (; first < n; index++) {
                uint8_t a[ELV_CHUNK_PAYLOAD_MAX], b[ELV_CHUNK_PAYLOAD_MAX];
                size_t len, len_again;
                uint32_t count, again;
                assert_int_equal(c->encode(v, n, first, index, &no_arg, a, sizeof a, &len, &count),
                                 ELV_OK);
                assert_in_range(count, 1, n - first);
                assert_in_range(len, 1, sizeof a);
                if (c->first_of != NULL)
                    assert_int_equal(c->first_of(index), first);
                assert_int_equal(
                    c->encode(v, n, first, index, &no_arg, b, sizeof b, &len_again, &again),
                    ELV_OK);
                assert_int_equal(again, count);
                assert_int_equal(len_again, len);
                assert_memory_equal(a, b, len);
                assert_int_equal(
                    elv_codec_decode(c, (struct elv_bytes){a, len}, count, back + first), ELV_OK);
                first += count;
            }
            assert_in_range(index, 1, c->chunks_max(n, &no_arg));
            for (uint32_t i = 0; i < n; i++)
                assert_true(fabsf(v[i] - back[i]) <= 7.0f / 127 / 2 * 1.00001f);
            free(v);
            free(back);
        }
    }
}

static void a_chunk_fills_whatever_room_there_is(void **state)
{
    (void)state;
    float v[10];
    fill(v, 10, 1);
    for (size_t k = 0; k < elv_codec_count(); k++) {
        const struct elv_codec *c = elv_codec_at(k);
        const size_t head = c->id == ELV_CODEC_Q8 ? 4 : 0, each = c->id == ELV_CODEC_Q8 ? 1 : 4;
        for (size_t cap = 0; cap < 48; cap++) {
            uint8_t out[48];
            size_t len;
            uint32_t count;
            const enum elv_err err = c->encode(v, 10, 2, 0, &no_arg, out, cap, &len, &count);
            if (cap < head + each) {
                assert_int_equal(err, ELV_ERR_SPACE);
                continue;
            }
            const size_t fit = (cap - head) / each;
            assert_int_equal(err, ELV_OK);
            assert_int_equal(count, fit < 8 ? fit : 8);
            assert_int_equal(len, head + count * each);
        }
    }
}

static void lengths_and_counts_must_agree(void **state)
{
    (void)state;
    const uint8_t payload[12] = {0};
    float out[16];
    for (size_t k = 0; k < elv_codec_count(); k++) {
        const struct elv_codec *c = elv_codec_at(k);
        for (size_t len = 0; len <= sizeof payload; len++) {
            for (uint32_t count = 1; count < 16; count++) {
                const bool fits = c->id == ELV_CODEC_Q8 ? len == 4 + count : len == 4 * count;
                uint8_t *exact = malloc(len + (len == 0));
                memcpy(exact, payload, len);
                assert_int_equal(elv_codec_decode(c, (struct elv_bytes){exact, len}, count, out),
                                 fits ? ELV_OK : ELV_ERR_FORMAT);
                free(exact);
            }
        }
    }
}

static void check_q8(const float *v, uint32_t n, const uint8_t *want)
{
    uint8_t out[64];
    size_t len;
    uint32_t count;
    const struct elv_codec *q8 = elv_codec_by_id(ELV_CODEC_Q8);
    assert_int_equal(q8->encode(v, n, 0, 0, &no_arg, out, sizeof out, &len, &count), ELV_OK);
    assert_int_equal(len, 4 + n);
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
    check_q8(v, 12, want);
}

static void q8_writes_nothing_where_nothing_is(void **state)
{
    (void)state;
    static const float zero[3], tiny[3] = {1e-29f, -1e-44f, 0.0f};
    static const uint8_t want[7];
    check_q8(zero, 3, want);
    check_q8(tiny, 3, want); /* a scale below 2^-100 */
    static const float small[1] = {0x1p-93f};
    static const uint8_t some[] = {0x04, 0x02, 0x81, 0x0D, 127};
    check_q8(small, 1, some); /* 2^-93 / 127 is just above */
}

static void values_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    const struct elv_codec *f32 = elv_codec_by_id(ELV_CODEC_F32);
    const struct elv_codec *q8 = elv_codec_by_id(ELV_CODEC_Q8);
    static const struct {
        uint8_t f[4];
        enum elv_err as_value, as_scale;
    } rows[] = {
        {{0x00, 0x00, 0x80, 0x3F}, ELV_OK, ELV_OK},        /* 1 */
        {{0x00, 0x00, 0x80, 0xBF}, ELV_OK, ELV_ERR_RANGE}, /* -1 */
        {{0xFF, 0xFF, 0x7F, 0x7F}, ELV_OK, ELV_ERR_RANGE}, /* times -128 is infinite */
        {{0xFF, 0xFF, 0xFF, 0x7B}, ELV_OK, ELV_OK},        /* is not */
        {{0xFF, 0xFF, 0x7F, 0xFF}, ELV_OK, ELV_ERR_RANGE},
        {{0x00, 0x00, 0x80, 0x7F}, ELV_ERR_RANGE, ELV_ERR_RANGE}, /* infinity */
        {{0x00, 0x00, 0x80, 0xFF}, ELV_ERR_RANGE, ELV_ERR_RANGE},
        {{0x00, 0x00, 0xC0, 0x7F}, ELV_ERR_RANGE, ELV_ERR_RANGE}, /* not a number */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float out[3];
        uint8_t two[8] = {0}, scaled[7] = {0, 0, 0, 0, 0x80, 0x7F, 0};
        memcpy(two + 4, rows[i].f, 4);
        memcpy(scaled, rows[i].f, 4);
        assert_int_equal(elv_codec_decode(f32, (struct elv_bytes){two, 8}, 2, out),
                         rows[i].as_value);
        assert_int_equal(elv_codec_decode(q8, (struct elv_bytes){scaled, 7}, 3, out),
                         rows[i].as_scale);
        if (rows[i].as_scale == ELV_OK)
            for (int j = 0; j < 3; j++)
                assert_true(isfinite(out[j]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs_are_found_by_number_and_by_name),
        cmocka_unit_test(chunks_tile_any_vector_and_can_be_made_again),
        cmocka_unit_test(a_chunk_fills_whatever_room_there_is),
        cmocka_unit_test(lengths_and_counts_must_agree),
        cmocka_unit_test(q8_rounds_to_the_nearest_step_and_ties_to_even),
        cmocka_unit_test(q8_writes_nothing_where_nothing_is),
        cmocka_unit_test(values_that_are_not_finite_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
