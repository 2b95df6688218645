/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/range.h"
#include "common/rng.h"

enum { MODELS = 32, STEPS = 3000, CAP = 16384 };

static uint8_t out[CAP];
static uint16_t model[MODELS];

static void fresh(void)
{
    for (int i = 0; i < MODELS; i++)
        model[i] = ELV_RANGE_MODEL_NEW;
}

/* What is coded in step i of a run: mostly the same bits, numbers near each other, or any. */
struct step {
    int kind; /* 0 bit, 1 bits, 2 number */
    uint32_t v;
    unsigned n;
};

static struct step steps[STEPS];

static void make(uint32_t run, uint32_t n)
{
    struct elv_rng r =
        elv_rng_of((struct elv_rng_key){.seed = 11, .round = run, .purpose = ELV_RNG_TEST});
    for (uint32_t i = 0; i < n; i++) {
        struct step *s = &steps[i];
        s->kind = run % 5 == 0 ? (int)elv_rng_below(&r, 3) : (int)(run % 5 - 1) % 3;
        s->n = s->kind == 0 ? elv_rng_below(&r, 4) : elv_rng_below(&r, 33);
        s->v = s->kind == 0 ? elv_rng_below(&r, 300) < 1 + run % 3 * 100
               : s->n > 0   ? elv_rng_u32(&r) >> (32 - s->n)
                            : 0;
        if (run % 7 == 3 && s->kind == 1) /* nothing but ones: the carry goes far */
            s->v = s->n > 0 ? UINT32_MAX >> (32 - s->n) : 0;
        if (s->kind == 2)
            s->v = s->v == UINT32_MAX ? 0 : s->v;
    }
}

static void write(struct elv_range_wr *w, uint32_t n)
{
    fresh();
    for (uint32_t i = 0; i < n; i++) {
        if (steps[i].kind == 0)
            elv_range_wr_bit(w, &model[steps[i].n], steps[i].v);
        else if (steps[i].kind == 1)
            elv_range_wr_bits(w, steps[i].v, steps[i].n);
        else
            elv_range_wr_number(w, model, steps[i].v);
    }
}

static uint32_t read_step(struct elv_range_rd *r, const struct step *s)
{
    if (s->kind == 0)
        return elv_range_rd_bit(r, &model[s->n]);
    return s->kind == 1 ? elv_range_rd_bits(r, s->n) : elv_range_rd_number(r, model);
}

static void what_was_written_is_read_and_nothing_is_left(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < 210; run++) {
        const uint32_t n = run < 60 ? run : STEPS;
        make(run, n);
        struct elv_range_wr w = elv_range_wr_of(out, sizeof out), counted;
        counted = elv_range_wr_of(NULL, SIZE_MAX);
        write(&w, n);
        const size_t before = w.len, len = elv_range_wr_end(&w);
        assert_int_equal(w.err, ELV_OK);
        assert_int_equal(len, before + 1);
        write(&counted, n);
        assert_int_equal(counted.len, before);

        uint8_t *exact = malloc(len);
        memcpy(exact, out, len);
        struct elv_range_rd r = elv_range_rd_of((struct elv_bytes){exact, len});
        fresh();
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(read_step(&r, &steps[i]), steps[i].v);
        assert_true(elv_range_rd_ended(&r));
        free(exact);
    }
}

static void any_other_last_byte_or_length_is_no_end(void **state)
{
    (void)state;
    for (uint32_t run = 0; run < 60; run++) {
        make(run, 40);
        struct elv_range_wr w = elv_range_wr_of(out, sizeof out);
        write(&w, 40);
        const size_t len = elv_range_wr_end(&w);
        for (int change = 0; change < 258; change++) {
            const uint8_t last = out[len - 1];
            const size_t cut = change == 256 ? len - 1 : change == 257 ? len + 1 : len;
            if (change < 256)
                out[len - 1] = (uint8_t)change;
            out[len] = 0;
            struct elv_range_rd r = elv_range_rd_of((struct elv_bytes){out, cut});
            fresh();
            bool same = true;
            for (uint32_t i = 0; i < 40; i++)
                same = read_step(&r, &steps[i]) == steps[i].v && same;
            assert_int_equal(same && elv_range_rd_ended(&r), change == last);
            out[len - 1] = last;
        }
    }
}

static void writing_stops_at_the_end_of_the_buffer(void **state)
{
    (void)state;
    make(0, 60);
    struct elv_range_wr w = elv_range_wr_of(out, sizeof out);
    write(&w, 60);
    const size_t len = elv_range_wr_end(&w);
    for (size_t cap = 0; cap <= len; cap++) {
        uint8_t *exact = malloc(cap + (cap == 0));
        w = elv_range_wr_of(exact, cap);
        write(&w, 60);
        elv_range_wr_end(&w);
        assert_int_equal(w.err, cap < len ? ELV_ERR_SPACE : ELV_OK);
        assert_true(w.len <= cap);
        free(exact);
    }
}

static void reading_past_the_end_fails_and_stays_failed(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = {0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0};
    for (size_t len = 0; len <= sizeof bytes; len++) {
        uint8_t *exact = malloc(len + (len == 0));
        memcpy(exact, bytes, len);
        struct elv_range_rd r = elv_range_rd_of((struct elv_bytes){exact, len});
        fresh();
        for (int i = 0; i < 40; i++)
            elv_range_rd_bits(&r, 8);
        assert_int_equal(r.err, ELV_ERR_SHORT);
        assert_int_equal(elv_range_rd_bits(&r, 32), 0);
        assert_int_equal(elv_range_rd_bit(&r, model), 0);
        assert_int_equal(elv_range_rd_number(&r, model), 0);
        assert_int_equal(r.err, ELV_ERR_SHORT);
        assert_false(elv_range_rd_ended(&r));
        free(exact);
    }
}

static void what_no_encoder_writes_is_refused(void **state)
{
    (void)state;
    static const uint8_t ones[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct elv_range_rd r = elv_range_rd_of((struct elv_bytes){ones, sizeof ones});
    assert_int_equal(r.err, ELV_ERR_FORMAT);
    /* Beyond the last of three equal parts of a range that is no multiple of 2^13. */
    static const uint8_t high[8] = {0xFF, 0xFF, 0xFF, 0xFE};
    r = elv_range_rd_of((struct elv_bytes){high, sizeof high});
    assert_int_equal(r.err, ELV_OK);
    assert_int_equal(elv_range_rd_bits(&r, 13), 0);
    assert_int_equal(r.err, ELV_ERR_FORMAT);
}

static void bits_that_are_mostly_the_same_take_little(void **state)
{
    (void)state;
    struct elv_range_wr w = elv_range_wr_of(out, sizeof out);
    fresh();
    for (int i = 0; i < 8000; i++)
        elv_range_wr_bit(&w, model, 0);
    assert_in_range(elv_range_wr_end(&w), 1, 12);
    /* Of independent bits, not much more than the entropy. */
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 1});
    w = elv_range_wr_of(out, sizeof out);
    fresh();
    for (int i = 0; i < 40000; i++)
        elv_range_wr_bit(&w, model, elv_rng_below(&r, 10) == 0);
    const double entropy = -40000 * (0.1 * log2(0.1) + 0.9 * log2(0.9)) / 8;
    assert_in_range(elv_range_wr_end(&w), (unsigned)(entropy * 0.97), (unsigned)(entropy * 1.04));
}

static void a_range_coded_text_is_these_bytes(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x00, 0x18, 0x2B, 0x21, 0xFB, 0x45, 0xAF};
    struct elv_range_wr w = elv_range_wr_of(out, sizeof out);
    fresh();
    elv_range_wr_bits(&w, 3, 13);
    elv_range_wr_number(&w, model, 0);
    elv_range_wr_bits(&w, 1, 1);
    elv_range_wr_number(&w, model, 5);
    elv_range_wr_bits(&w, 0, 1);
    elv_range_wr_number(&w, model, 1000000);
    elv_range_wr_bits(&w, 1, 1);
    const size_t len = elv_range_wr_end(&w);
    assert_int_equal(len, sizeof golden);
    assert_memory_equal(out, golden, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_and_nothing_is_left),
        cmocka_unit_test(any_other_last_byte_or_length_is_no_end),
        cmocka_unit_test(writing_stops_at_the_end_of_the_buffer),
        cmocka_unit_test(reading_past_the_end_fails_and_stays_failed),
        cmocka_unit_test(what_no_encoder_writes_is_refused),
        cmocka_unit_test(bits_that_are_mostly_the_same_take_little),
        cmocka_unit_test(a_range_coded_text_is_these_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
