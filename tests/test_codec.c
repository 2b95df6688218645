/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for any codec of the list; tests/codec_cases.c has a row for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codec_cases.h"

enum { N_MAX = 20000 };

/* A codec with one of its parameters, and a vector it has looked through. */
struct rig {
    const struct elv_codec *codec;
    const struct codec_case *row;
    struct elv_codec_arg arg;
    struct elv_codec_plan plan;
    float v[N_MAX], back[N_MAX];
    uint32_t n;
};

struct coded {
    uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
};

static struct rig r;

/* Vectors of several kinds, the same each time. */
enum { MIXED, ZERO, SPARSE, ONE_SIGN, KINDS };

static void fill(float *v, uint32_t n, int kind)
{
    uint32_t x = n * 2654435761u + 1;
    for (uint32_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        const float u = (float)(int32_t)x * 0x1p-31f * (1.0f + (float)(i % 7));
        v[i] = kind == ZERO || (kind == SPARSE && i % 97 != 5) ? 0.0f : u;
        if (kind == ONE_SIGN && u < 0)
            v[i] = -u;
    }
}

static void look_through(uint32_t n, int kind)
{
    r.n = n;
    fill(r.v, n, kind);
    elv_codec_plan(r.codec, &r.plan, r.v, n, &r.arg);
}

static void encode(uint32_t first, uint32_t index, struct coded *c)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(r.codec->encode(r.v, r.n, first, index, &r.arg, c->bytes, sizeof c->bytes,
                                     &c->len, &c->count),
                     ELV_OK);
    assert_in_range(c->count, 1, r.n - first);
    assert_in_range(c->len, 1, sizeof c->bytes);
}

/* From a block of exactly that length, so that a read past the end shows. */
static enum elv_err decode(const uint8_t *bytes, size_t len, uint32_t count, float *out)
{
    uint8_t *exact = malloc(len + (len == 0));
    memcpy(exact, bytes, len);
    const enum elv_err err = elv_codec_decode(r.codec, (struct elv_bytes){exact, len}, count, out);
    free(exact);
    return err;
}

static void for_all(void (*check)(void))
{
    for (size_t k = 0; k < elv_codec_count(); k++) {
        r.codec = elv_codec_at(k);
        r.row = codec_case_of(r.codec->id);
        assert_non_null(r.row);
        for (uint32_t p = 0; p < r.row->n_params; p++) {
            r.arg = (struct elv_codec_arg){.seed = 0x9E3779B97F4A7C15u, .param = r.row->params[p]};
            assert_true(elv_codec_takes(r.codec, r.arg.param));
            check();
        }
    }
}

static void codecs_are_found_by_number_and_by_name(void **state)
{
    (void)state;
    assert_int_equal(elv_codec_by_id(ELV_CODEC_F32)->id, ELV_CODEC_F32);
    assert_int_equal(elv_codec_by_id(ELV_CODEC_Q8)->id, ELV_CODEC_Q8);
    assert_null(elv_codec_by_id(0));
    assert_null(elv_codec_by_id(255));
    assert_int_equal(elv_codec_by_name("f16", 3)->id, ELV_CODEC_F16);
    assert_int_equal(elv_codec_by_name("q4", 2)->id, ELV_CODEC_Q4);
    assert_int_equal(elv_codec_by_name("sign", 4)->id, ELV_CODEC_SIGN);
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

/* None is longer than a chunk may be, each can be made again alone, and no more come out than
 * announced. */
static void check_tiles(void)
{
    static const uint32_t sizes[] = {1,    2,    7,    8,    249,  250,  251,  499,
                                     500,  995,  996,  997,  1024, 1025, 1991, 1992,
                                     1993, 3000, 7967, 7968, 7969, 20000};
    for (size_t s = 0; s < KINDS * (sizeof sizes / sizeof sizes[0]); s++) {
        look_through(sizes[s / KINDS], (int)(s % KINDS));
        uint32_t first = 0, index = 0;
        for (; first < r.n; index++) {
            struct coded c, again;
            encode(first, index, &c);
            encode(first, index, &again);
            assert_memory_equal(&c, &again, sizeof c);
            if (r.codec->first_of != NULL)
                assert_int_equal(r.codec->first_of(index), first);
            assert_int_equal(decode(c.bytes, c.len, c.count, r.back), ELV_OK);
            const struct codec_trial t = {&r.arg, r.v, r.n, first, c.count, r.back};
            if (!r.row->holds(&t))
                fail_msg("%s: chunk %u of %u values is too far off", r.codec->name, (unsigned)index,
                         (unsigned)r.n);
            first += c.count;
        }
        assert_in_range(index, 1, r.codec->chunks_max(r.n, &r.arg));
    }
}

static void chunks_tile_any_vector_and_can_be_made_again(void **state)
{
    (void)state;
    for_all(check_tiles);
}

static void check_room(void)
{
    look_through(10, MIXED);
    for (size_t cap = 0; cap < 64; cap++) {
        uint8_t *out = malloc(cap + (cap == 0));
        size_t len = 0;
        uint32_t count = 0, fit = 8;
        const enum elv_err err = r.codec->encode(r.v, r.n, 2, 1, &r.arg, out, cap, &len, &count);
        while (r.row->len_of != NULL && fit > 0 && r.row->len_of(fit) > cap)
            fit--;
        if (err == ELV_OK) {
            assert_in_range(len, 1, cap);
            assert_in_range(count, 1, fit);
            assert_int_equal(decode(out, len, count, r.back), ELV_OK);
        } else {
            assert_int_equal(err, ELV_ERR_SPACE);
        }
        if (r.row->len_of != NULL) {
            assert_int_equal(count, fit);
            assert_int_equal(len, fit > 0 ? r.row->len_of(fit) : 0);
        }
        free(out);
    }
}

static void a_chunk_fills_whatever_room_there_is(void **state)
{
    (void)state;
    for_all(check_room);
}

static void check_lengths(void)
{
    static const uint8_t payload[12];
    for (size_t len = 0; r.row->len_of != NULL && len <= sizeof payload; len++)
        for (uint32_t count = 1; count < 80; count++)
            assert_int_equal(decode(payload, len, count, r.back),
                             len == r.row->len_of(count) ? ELV_OK : ELV_ERR_FORMAT);
}

static void lengths_and_counts_must_agree(void **state)
{
    (void)state;
    for_all(check_lengths);
}

/* Refused, or what came before the cut. */
static void check_cut(const struct coded *c, size_t len, const float *whole)
{
    const enum elv_err err = decode(c->bytes, len, c->count, r.back);
    if (err == ELV_OK && r.row->open_ended)
        for (uint32_t i = 0; i < c->count; i++)
            assert_true(r.back[i] == whole[i] || r.back[i] == 0);
    else
        assert_int_equal(err, ELV_ERR_FORMAT);
}

static void check_cut_short(void)
{
    static float whole[3000];
    for (int kind = 0; kind < KINDS; kind++) {
        struct coded c;
        look_through(3000, kind);
        encode(0, 0, &c);
        assert_int_equal(decode(c.bytes, c.len, c.count, whole), ELV_OK);
        for (size_t len = 0; len < c.len; len++)
            check_cut(&c, len, whole);
        for (size_t more = 0; more < 256 && c.len < sizeof c.bytes; more += 51) {
            c.bytes[c.len] = (uint8_t)more;
            const enum elv_err err = decode(c.bytes, c.len + 1, c.count, r.back);
            if (more == 0 || !r.row->open_ended)
                assert_int_equal(err, ELV_ERR_FORMAT);
        }
    }
}

static void a_payload_cut_short_or_made_longer_is_refused(void **state)
{
    (void)state;
    for_all(check_cut_short);
}

static void check_windows(void)
{
    static const uint32_t caps[] = {ELV_DECODE_MIN, ELV_DECODE_MIN + 1, 1500, 4097, N_MAX};
    static float window[N_MAX];
    struct coded c;
    look_through(N_MAX, MIXED);
    encode(0, 0, &c);
    const struct elv_bytes in = {c.bytes, c.len};
    assert_int_equal(decode(c.bytes, c.len, c.count, r.back), ELV_OK);
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        struct elv_decoder d;
        uint32_t at = 0;
        assert_int_equal(elv_decode_begin(&d, r.codec, in, c.count), ELV_OK);
        for (uint32_t n; d.left > 0; at += n) {
            /* The last window need not be larger than what is left. */
            float *exact = malloc(sizeof(float) * (caps[i] < d.left ? caps[i] : d.left));
            const uint32_t cap = caps[i] < d.left ? caps[i] : d.left;
            assert_int_equal(elv_decode_next(&d, exact, cap, &n), ELV_OK);
            assert_in_range(n, 1, cap);
            memcpy(window + at, exact, n * sizeof *exact);
            free(exact);
        }
        assert_int_equal(at, c.count);
        assert_memory_equal(window, r.back, at * sizeof *window);
    }
}

static void windows_of_any_size_give_the_same_values(void **state)
{
    (void)state;
    for_all(check_windows);
}

static void a_payload_of_nothing_is_refused(void **state)
{
    (void)state;
    static const uint8_t zero[8];
    for (size_t k = 0; k < elv_codec_count(); k++) {
        struct elv_decoder d;
        for (size_t len = 0; len <= sizeof zero; len++)
            assert_int_equal(
                elv_decode_begin(&d, elv_codec_at(k), (struct elv_bytes){zero, len}, 0),
                ELV_ERR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs_are_found_by_number_and_by_name),
        cmocka_unit_test(chunks_tile_any_vector_and_can_be_made_again),
        cmocka_unit_test(a_chunk_fills_whatever_room_there_is),
        cmocka_unit_test(lengths_and_counts_must_agree),
        cmocka_unit_test(a_payload_cut_short_or_made_longer_is_refused),
        cmocka_unit_test(windows_of_any_size_give_the_same_values),
        cmocka_unit_test(a_payload_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
