/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rice.h"
#include "common/rng.h"

static struct elv_rng some(uint32_t round)
{
    return elv_rng_of((struct elv_rng_key){.seed = 3, .round = round, .purpose = ELV_RNG_TEST});
}

/* A copy of exactly that length, so that a read past the end shows. */
static uint8_t *exactly(const uint8_t *at, size_t len)
{
    uint8_t *p = malloc(len + (len == 0));
    memcpy(p, at, len);
    return p;
}

static void the_lowest_bit_is_found(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(elv_lowest_bit(1u << i), i);
        assert_int_equal(elv_lowest_bit(UINT32_MAX << i), i);
    }
}

static void bits_are_written_lowest_first(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x5D, 0x00, 0x78, 0x56, 0x34, 0x12};
    uint8_t out[8];
    struct elv_bit_wr w = elv_bit_wr_of(out, sizeof out);
    elv_bit_wr_put(&w, 1, 1);
    elv_bit_wr_put(&w, 0x2E, 6);
    elv_bit_wr_put(&w, 0, 0);
    elv_bit_wr_put(&w, 0, 9);
    elv_bit_wr_put(&w, 0x12345678, 29);
    assert_int_equal(elv_bit_wr_end(&w), sizeof golden);
    assert_int_equal(w.err, ELV_OK);
    assert_memory_equal(out, golden, sizeof golden);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    static uint8_t out[4096];
    static struct {
        uint32_t v;
        unsigned n;
    } put[1000];
    struct elv_rng r = some(0);
    struct elv_bit_wr w = elv_bit_wr_of(out, sizeof out);
    size_t bits = 0;
    for (int i = 0; i < 1000; i++) {
        put[i].n = elv_rng_below(&r, 33);
        put[i].v = put[i].n > 0 ? elv_rng_u32(&r) >> (32 - put[i].n) : 0;
        elv_bit_wr_put(&w, put[i].v, put[i].n);
        bits += put[i].n;
    }
    const size_t len = elv_bit_wr_end(&w);
    assert_int_equal(len, (bits + 7) / 8);
    assert_int_equal(w.err, ELV_OK);
    uint8_t *exact = exactly(out, len);
    struct elv_bit_rd rd = elv_bit_rd_of((struct elv_bytes){exact, len});
    for (int i = 0; i < 1000; i++)
        assert_int_equal(elv_bit_rd_get(&rd, put[i].n), put[i].v);
    assert_int_equal(rd.err, ELV_OK);
    assert_true(elv_bit_rd_ended(&rd));
    elv_bit_rd_get(&rd, 8);
    assert_int_equal(rd.err, ELV_ERR_SHORT);
    free(exact);
}

static void writing_past_the_end_fails_and_stays_failed(void **state)
{
    (void)state;
    for (size_t cap = 0; cap < 6; cap++) {
        uint8_t *out = malloc(cap + (cap == 0));
        struct elv_bit_wr w = elv_bit_wr_of(out, cap);
        for (unsigned i = 0; i < 8 * cap; i++)
            elv_bit_wr_put(&w, 1, 1);
        assert_int_equal(w.err, ELV_OK);
        elv_bit_wr_put(&w, 0, 1);
        elv_bit_wr_end(&w);
        assert_int_equal(w.err, ELV_ERR_SPACE);
        elv_bit_wr_zeros(&w, 1u << 30);
        assert_int_equal(w.err, ELV_ERR_SPACE);
        assert_int_equal(elv_bit_wr_end(&w), cap);
        free(out);
    }
}

static void reading_past_the_end_fails_and_stays_failed(void **state)
{
    (void)state;
    static const uint8_t bytes[8] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    for (size_t len = 0; len < sizeof bytes; len++) {
        uint8_t *exact = exactly(bytes, len);
        for (unsigned n = 1; n <= 32; n++) {
            struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){exact, len});
            for (size_t left = 8 * len; left >= n; left -= n)
                elv_bit_rd_get(&r, n);
            assert_int_equal(r.err, ELV_OK);
            const size_t at = r.at;
            assert_int_equal(elv_bit_rd_get(&r, n), 0);
            assert_int_equal(r.err, ELV_ERR_SHORT);
            assert_int_equal(elv_bit_rd_get(&r, 1), 0);
            assert_int_equal(elv_bit_rd_zeros(&r, 9), 0);
            assert_int_equal(r.at, at);
            assert_int_equal(r.err, ELV_ERR_SHORT);
        }
        free(exact);
    }
}

static void runs_of_zeros_end_with_a_one_or_fail(void **state)
{
    (void)state;
    for (uint32_t lead = 0; lead < 9; lead++) {
        for (uint32_t run = 0; run < 150; run++) {
            uint8_t out[32];
            struct elv_bit_wr w = elv_bit_wr_of(out, sizeof out);
            elv_bit_wr_put(&w, (1u << lead) - 1, lead);
            elv_bit_wr_zeros(&w, run);
            const size_t len = elv_bit_wr_end(&w);
            assert_int_equal(len, (lead + run + 1 + 7) / 8);
            uint8_t *exact = exactly(out, len);
            for (uint32_t max = run < 2 ? 0 : run - 2; max < run + 3; max++) {
                struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){exact, len});
                elv_bit_rd_get(&r, lead);
                assert_int_equal(elv_bit_rd_zeros(&r, max), run <= max ? run : 0);
                assert_int_equal(r.err, run <= max ? ELV_OK : ELV_ERR_RANGE);
                assert_int_equal(r.at, run <= max ? lead + run + 1 : r.at);
                assert_true(run > max || elv_bit_rd_ended(&r));
            }
            /* The one is in the last byte: without that the run has no end. */
            struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){exact, len - 1});
            elv_bit_rd_get(&r, lead);
            elv_bit_rd_zeros(&r, 200);
            assert_int_equal(r.err, ELV_ERR_SHORT);
            free(exact);
        }
    }
}

static void only_the_filling_of_the_last_byte_is_an_end(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[2];
        size_t len, at;
        bool ended;
    } rows[] = {
        {{0}, 0, 0, true},          {{0}, 1, 0, false},       {{0}, 1, 1, true},
        {{0}, 1, 8, true},          {{0x80}, 1, 1, false},    {{0x80}, 1, 7, false},
        {{0x80}, 1, 8, true},       {{0x01}, 1, 1, true},     {{0xFF, 0}, 2, 8, false},
        {{0xFF, 0x01}, 2, 9, true}, {{0xFF, 0}, 2, 7, false}, {{0xFF, 0x02}, 2, 9, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){rows[i].bytes, rows[i].len});
        r.at = rows[i].at;
        assert_int_equal(elv_bit_rd_ended(&r), rows[i].ended);
        r.err = ELV_ERR_SHORT;
        assert_false(elv_bit_rd_ended(&r));
    }
}

/* 9 with parameter 2: two zeros, a one, then 01, lowest first. */
static void a_rice_code_is_zeros_a_one_and_the_low_bits(void **state)
{
    (void)state;
    uint8_t out[1];
    struct elv_bit_wr w = elv_bit_wr_of(out, sizeof out);
    elv_rice_put(&w, 9, 2);
    assert_int_equal(elv_bit_wr_end(&w), 1);
    assert_int_equal(out[0], 0x0C);
}

static const uint32_t numbers[] = {0,   1,    2,    3,     4,          7,         8,         15,
                                   100, 1000, 4095, 65536, 0x7FFFFFFE, 0x3FFFFFF, 0x40000000};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static void rice_codes_come_back_up_to_the_largest_allowed(void **state)
{
    (void)state;
    for (unsigned k = 0; k <= ELV_RICE_MAX; k++) {
        for (int i = 0; i < NUMBERS; i++) {
            const uint32_t v = numbers[i];
            uint8_t out[128];
            if (v >> k > 900)
                continue;
            struct elv_bit_wr w = elv_bit_wr_of(out, sizeof out);
            elv_rice_put(&w, v, k);
            const size_t len = elv_bit_wr_end(&w);
            assert_int_equal(w.err, ELV_OK);
            struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){out, len});
            assert_int_equal(elv_rice_get(&r, k, v), v);
            assert_int_equal(r.err, ELV_OK);
            assert_true(elv_bit_rd_ended(&r));
            r = elv_bit_rd_of((struct elv_bytes){out, len});
            assert_int_equal(elv_rice_get(&r, k, INT32_MAX), v);
            assert_int_equal(r.err, ELV_OK);
            if (v == 0)
                continue;
            r = elv_bit_rd_of((struct elv_bytes){out, len});
            assert_int_equal(elv_rice_get(&r, k, v - 1), 0);
            assert_int_equal(r.err, ELV_ERR_RANGE);
        }
    }
}

static void what_a_parameter_takes_is_known_beforehand(void **state)
{
    (void)state;
    struct elv_rng r = some(1);
    for (uint32_t turn = 0; turn < 40; turn++) {
        struct elv_rice_sums s = {0};
        uint32_t v[50], bits[ELV_RICE_MAX + 1] = {0};
        for (int i = 0; i < 50; i++) {
            v[i] = elv_rng_below(&r, 1u << turn % 21);
            elv_rice_add(&s, v[i]);
            elv_rice_add(&s, v[i] / 2 + 1);
            elv_rice_drop(&s, v[i] / 2 + 1);
            for (unsigned k = 0; k <= ELV_RICE_MAX; k++)
                bits[k] += (v[i] >> k) + 1 + k;
        }
        const unsigned best = elv_rice_best(&s);
        for (unsigned k = 0; k <= ELV_RICE_MAX; k++) {
            assert_int_equal(elv_rice_bits(&s, k), bits[k]);
            assert_true(k < best ? bits[k] > bits[best] : bits[k] >= bits[best]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_bit_is_found),
        cmocka_unit_test(bits_are_written_lowest_first),
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(writing_past_the_end_fails_and_stays_failed),
        cmocka_unit_test(reading_past_the_end_fails_and_stays_failed),
        cmocka_unit_test(runs_of_zeros_end_with_a_one_or_fail),
        cmocka_unit_test(only_the_filling_of_the_last_byte_is_an_end),
        cmocka_unit_test(a_rice_code_is_zeros_a_one_and_the_low_bits),
        cmocka_unit_test(rice_codes_come_back_up_to_the_largest_allowed),
        cmocka_unit_test(what_a_parameter_takes_is_known_beforehand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
