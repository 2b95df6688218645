/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cbor.h"

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; hex[2 * n] != '\0'; n++) {
        const char pair[3] = {hex[2 * n], hex[2 * n + 1], '\0'};
        out[n] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return n;
}

static void check_bytes(const struct elv_wr *w, const uint8_t *out, const char *hex)
{
    uint8_t want[64];
    const size_t n = unhex(hex, want);
    assert_int_equal(w->err, ELV_OK);
    assert_int_equal(w->need, n);
    assert_memory_equal(out, want, n);
}

static struct elv_rd reader(const char *hex, uint8_t *buf)
{
    return elv_rd_of((struct elv_bytes){buf, unhex(hex, buf)});
}

/* RFC 8949, appendix A, and the edges of every length. */
static void integers_take_their_shortest_form(void **state)
{
    (void)state;
    static const struct {
        int64_t v;
        const char *hex;
    } rows[] = {
        {0, "00"},
        {23, "17"},
        {24, "1818"},
        {255, "18ff"},
        {256, "190100"},
        {65535, "19ffff"},
        {65536, "1a00010000"},
        {4294967295, "1affffffff"},
        {4294967296, "1b0000000100000000"},
        {INT64_MAX, "1b7fffffffffffffff"},
        {-1, "20"},
        {-24, "37"},
        {-25, "3818"},
        {-100, "3863"},
        {-1000, "3903e7"},
        {INT64_MIN, "3b7fffffffffffffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t out[16], in[16];
        struct elv_wr w = elv_wr_of(out, sizeof out);
        elv_cbor_wr_int(&w, rows[i].v);
        check_bytes(&w, out, rows[i].hex);
        struct elv_rd r = reader(rows[i].hex, in);
        assert_int_equal(elv_cbor_rd_int(&r), rows[i].v);
        assert_int_equal(r.err, ELV_OK);
        assert_int_equal(r.left, 0);
    }
    uint8_t out[16];
    struct elv_wr w = elv_wr_of(out, sizeof out);
    elv_cbor_wr_uint(&w, UINT64_MAX);
    check_bytes(&w, out, "1bffffffffffffffff");
}

static void floats_take_the_shortest_form_that_keeps_the_value(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *hex;
    } rows[] = {
        {0.0, "f90000"},
        {-0.0, "f98000"},
        {1.0, "f93c00"},
        {1.5, "f93e00"},
        {65504.0, "f97bff"},
        {65505.0, "fa477fe100"},
        {65536.0, "fa47800000"},
        {100000.0, "fa47c35000"},
        {5.960464477539063e-8, "f90001"},      /* 2^-24, the least subnormal half */
        {2.9802322387695312e-8, "fa33000000"}, /* 2^-25 */
        {6.097555160522461e-05, "f903ff"},     /* the greatest subnormal half */
        {0.00006103515625, "f90400"},          /* the least normal half */
        {-4.0, "f9c400"},
        {0.1, "fb3fb999999999999a"},
        {3.4028234663852886e+38, "fa7f7fffff"},
        {3.4028234663852889e+38, "fb47efffffe0000001"}, /* one double past FLT_MAX */
        {1.401298464324817e-45, "fa00000001"},
        {1.1, "fb3ff199999999999a"},
        {1.0e+300, "fb7e37e43c8800759c"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t out[16], in[16];
        struct elv_wr w = elv_wr_of(out, sizeof out);
        elv_cbor_wr_float(&w, rows[i].v);
        check_bytes(&w, out, rows[i].hex);
        struct elv_rd r = reader(rows[i].hex, in);
        const double got = elv_cbor_rd_float(&r);
        assert_memory_equal(&got, &rows[i].v, sizeof got);
        assert_int_equal(r.err, ELV_OK);
    }
}

static void every_half_float_survives(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const uint8_t in[3] = {0xF9, (uint8_t)(bits >> 8), (uint8_t)bits};
        struct elv_rd r = elv_rd_of((struct elv_bytes){in, sizeof in});
        const double v = elv_cbor_rd_float(&r);
        if ((bits & 0x7C00) == 0x7C00) {
            assert_int_equal(r.err, ELV_ERR_RANGE); /* infinity or not a number */
            continue;
        }
        uint8_t out[9];
        struct elv_wr w = elv_wr_of(out, sizeof out);
        elv_cbor_wr_float(&w, v);
        assert_int_equal(w.need, sizeof in);
        assert_memory_equal(out, in, sizeof in);
    }
}

static void write_one_of_each(struct elv_wr *w)
{
    elv_cbor_wr_map(w, 4);
    elv_cbor_wr_uint(w, 1);
    elv_cbor_wr_text(w, (struct elv_bytes){(const uint8_t *)"elv\xc3\xa9r", 6});
    elv_cbor_wr_uint(w, 2);
    elv_cbor_wr_array(w, 3);
    elv_cbor_wr_bool(w, true);
    elv_cbor_wr_bool(w, false);
    elv_cbor_wr_null(w);
    elv_cbor_wr_uint(w, 24);
    elv_cbor_wr_bytes(w, (struct elv_bytes){(const uint8_t *)"\x00\xff", 2});
    elv_cbor_wr_uint(w, 300);
    elv_cbor_wr_float(w, 2.5);
}

static enum elv_err read_one_of_each(struct elv_bytes in)
{
    struct elv_rd r = elv_rd_of(in);
    struct elv_cbor_map map = elv_cbor_rd_map(&r);
    uint64_t key;
    while (elv_cbor_rd_key(&r, &map, &key)) {
        switch (key) {
        case 1:
            if (elv_cbor_rd_text(&r).len != 6)
                return r.err != ELV_OK ? r.err : ELV_ERR_MISMATCH;
            break;
        case 2:
            if (elv_cbor_rd_array(&r) != 3 || !elv_cbor_rd_bool(&r) || elv_cbor_rd_bool(&r))
                return r.err != ELV_OK ? r.err : ELV_ERR_MISMATCH;
            elv_cbor_rd_null(&r);
            break;
        default:
            elv_cbor_rd_skip(&r);
        }
    }
    return r.err;
}

static void a_message_reads_back_and_every_truncation_is_refused(void **state)
{
    (void)state;
    uint8_t out[64];
    struct elv_wr w = elv_wr_of(out, sizeof out);
    write_one_of_each(&w);
    check_bytes(&w, out, "a40166656c76c3a9720283f5f4f618184200ff19012cf94100");
    assert_int_equal(read_one_of_each((struct elv_bytes){out, w.need}), ELV_OK);
    for (size_t len = 0; len < w.need; len++) {
        uint8_t *exact = malloc(len + (len == 0)); /* so that a sanitizer sees one byte too many */
        memcpy(exact, out, len);
        assert_int_equal(read_one_of_each((struct elv_bytes){exact, len}), ELV_ERR_SHORT);
        struct elv_rd r = elv_rd_of((struct elv_bytes){exact, len});
        elv_cbor_rd_skip(&r);
        assert_int_equal(r.err, ELV_ERR_SHORT);
        free(exact);
    }
}

static void a_writer_without_room_says_how_much_it_needs(void **state)
{
    (void)state;
    uint8_t out[64];
    for (size_t cap = 0; cap < 25; cap++) {
        struct elv_wr w = elv_wr_of(out, cap);
        write_one_of_each(&w);
        assert_int_equal(w.err, ELV_ERR_SPACE);
        assert_int_equal(w.need, 25);
    }
}

/* What a strict reader refuses, whichever call meets it. */
static void other_encodings_of_a_value_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *hex;
        enum elv_err err;
    } rows[] = {
        {"1817", ELV_ERR_FORMAT},   /* 23 in two bytes */
        {"1900ff", ELV_ERR_FORMAT}, /* 255 in three */
        {"1a0000ffff", ELV_ERR_FORMAT},
        {"1b00000000ffffffff", ELV_ERR_FORMAT},
        {"3817", ELV_ERR_FORMAT},     /* -24 in two bytes */
        {"580161", ELV_ERR_FORMAT},   /* a length likewise */
        {"1c", ELV_ERR_FORMAT},       /* reserved */
        {"5f4101ff", ELV_ERR_FORMAT}, /* indefinite lengths */
        {"7f6161ff", ELV_ERR_FORMAT},
        {"9f01ff", ELV_ERR_FORMAT},
        {"bf0101ff", ELV_ERR_FORMAT},
        {"c11a514b67b0", ELV_ERR_FORMAT}, /* a tag */
        {"f7", ELV_ERR_FORMAT},           /* undefined */
        {"e0", ELV_ERR_FORMAT},           /* a simple value */
        {"f814", ELV_ERR_FORMAT},         /* false, the long way */
        {"f8ff", ELV_ERR_FORMAT},
        {"ff", ELV_ERR_FORMAT},                 /* a break nobody waits for */
        {"fa3fc00000", ELV_ERR_FORMAT},         /* 1.5 in 32 bits */
        {"fb3ff8000000000000", ELV_ERR_FORMAT}, /* 1.5 in 64 bits */
        {"fb3fb99999a0000000", ELV_ERR_FORMAT}, /* a 32-bit value in 64 bits */
        {"f97c00", ELV_ERR_RANGE},              /* infinity */
        {"f97e00", ELV_ERR_RANGE},              /* not a number */
        {"fa7f800000", ELV_ERR_RANGE},
        {"fbfff0000000000000", ELV_ERR_RANGE},
        {"a2020001", ELV_ERR_SHORT},
        {"a202000100", ELV_ERR_FORMAT},     /* keys fall */
        {"a201000100", ELV_ERR_FORMAT},     /* a key twice */
        {"a2616200616100", ELV_ERR_FORMAT}, /* text keys fall */
        {"a2200001f4", ELV_ERR_FORMAT},     /* -1 sorts after 1 */
        {"a1f400", ELV_ERR_FORMAT},         /* a bool as key */
        {"a1800000", ELV_ERR_FORMAT},       /* an array as key */
        {"61ff", ELV_ERR_FORMAT},           /* not UTF-8 */
        {"62c080", ELV_ERR_FORMAT},         /* overlong */
        {"63eda080", ELV_ERR_FORMAT},       /* a surrogate */
        {"64f4908080", ELV_ERR_FORMAT},     /* past U+10FFFF */
        {"61c3", ELV_ERR_FORMAT},           /* cut inside a character */
        {"9affffffff", ELV_ERR_SHORT},      /* counts and lengths nobody can hold */
        {"9bffffffffffffffff", ELV_ERR_SHORT},
        {"bb7fffffffffffffff", ELV_ERR_SHORT},
        {"5bffffffffffffffff", ELV_ERR_SHORT},
        {"7b7fffffffffffffff", ELV_ERR_SHORT},
        {"", ELV_ERR_SHORT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t in[32];
        struct elv_rd r = reader(rows[i].hex, in);
        elv_cbor_rd_skip(&r);
        if (r.err != rows[i].err)
            fail_msg("%s: %s", rows[i].hex, elv_err_text(r.err));
    }
}

static void a_reader_wants_the_type_it_asks_for(void **state)
{
    (void)state;
    static const char *const values[] = {"01",     "20", "4101", "6161",  "8101",
                                         "a10101", "f4", "f6",   "f93c00"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (size_t want = 0; want < 9; want++) {
            uint8_t in[8];
            struct elv_rd r = reader(values[i], in);
            switch (want) {
            case 0:
                (void)elv_cbor_rd_uint(&r);
                break;
            case 1:
                (void)elv_cbor_rd_int(&r);
                break;
            case 2:
                (void)elv_cbor_rd_bytes(&r);
                break;
            case 3:
                (void)elv_cbor_rd_text(&r);
                break;
            case 4:
                (void)elv_cbor_rd_array(&r);
                break;
            case 5:
                (void)elv_cbor_rd_map(&r);
                break;
            case 6:
                (void)elv_cbor_rd_bool(&r);
                break;
            case 7:
                elv_cbor_rd_null(&r);
                break;
            default:
                (void)elv_cbor_rd_float(&r);
            }
            const bool fits = want == i || (want == 1 && i == 0);
            assert_int_equal(r.err, fits ? ELV_OK : ELV_ERR_FORMAT);
        }
    }
    uint8_t in[8];
    struct elv_rd r = reader("193c00", in); /* an integer with the bits of 1.0 in 16 */
    (void)elv_cbor_rd_float(&r);
    assert_int_equal(r.err, ELV_ERR_FORMAT);
}

static void text_is_utf8_up_to_its_edges(void **state)
{
    (void)state;
    static const char *const good[] = {
        "60",       "617f",     "62c280",   "62dfbf",     "63e0a080",
        "63ed9fbf", "63ee8080", "63efbfbf", "64f0908080", "64f48fbfbf",
    };
    static const char *const bad[] = {
        "6180",       "62c1bf",     "63e09fbf",   "63eda080",
        "64f08fbfbf", "64f4908080", "64f5808080", "62c241",
    };
    uint8_t in[8];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct elv_rd r = reader(good[i], in);
        const struct elv_bytes text = elv_cbor_rd_text(&r);
        assert_int_equal(r.err, ELV_OK);
        assert_int_equal(text.len, strlen(good[i]) / 2 - 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct elv_rd r = reader(bad[i], in);
        assert_int_equal(elv_cbor_rd_text(&r).len, 0);
        assert_int_equal(r.err, ELV_ERR_FORMAT);
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    uint8_t in[ELV_CBOR_DEPTH_MAX + 2];
    memset(in, 0x81, sizeof in);
    in[ELV_CBOR_DEPTH_MAX] = 0x00;
    struct elv_rd r = elv_rd_of((struct elv_bytes){in, ELV_CBOR_DEPTH_MAX + 1});
    elv_cbor_rd_skip(&r);
    assert_int_equal(r.err, ELV_OK);
    in[ELV_CBOR_DEPTH_MAX] = 0x81;
    in[ELV_CBOR_DEPTH_MAX + 1] = 0x00;
    r = elv_rd_of((struct elv_bytes){in, sizeof in});
    elv_cbor_rd_skip(&r);
    assert_int_equal(r.err, ELV_ERR_FORMAT);
}

static void skipping_ends_after_one_value(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "8301820203820405f6", "a20120206161f6",     "80f6", "a0f6", "f93c00f6",
        "42f6f6f6",           "a3018101028080a0f6", /* keys of several types in their order: 1, 2
                                                       ... is not it */
    };
    for (size_t i = 0; i + 1 < sizeof rows / sizeof rows[0]; i++) {
        uint8_t in[32];
        struct elv_rd r = reader(rows[i], in);
        elv_cbor_rd_skip(&r);
        assert_int_equal(r.err, ELV_OK);
        assert_int_equal(r.left, 1);
        elv_cbor_rd_null(&r);
        assert_int_equal(r.err, ELV_OK);
    }
    uint8_t in[32];
    struct elv_rd r = reader(rows[6], in);
    elv_cbor_rd_skip(&r);
    assert_int_equal(r.err, ELV_ERR_FORMAT);
}

static void the_greatest_key_is_the_last(void **state)
{
    (void)state;
    uint8_t in[64];
    struct elv_rd r = reader("a21bffffffffffffffff001bffffffffffffffff00", in);
    struct elv_cbor_map map = elv_cbor_rd_map(&r);
    uint64_t key;
    assert_true(elv_cbor_rd_key(&r, &map, &key));
    assert_true(key == UINT64_MAX);
    (void)elv_cbor_rd_uint(&r);
    assert_false(elv_cbor_rd_key(&r, &map, &key));
    assert_int_equal(r.err, ELV_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_take_their_shortest_form),
        cmocka_unit_test(floats_take_the_shortest_form_that_keeps_the_value),
        cmocka_unit_test(every_half_float_survives),
        cmocka_unit_test(a_message_reads_back_and_every_truncation_is_refused),
        cmocka_unit_test(a_writer_without_room_says_how_much_it_needs),
        cmocka_unit_test(other_encodings_of_a_value_are_refused),
        cmocka_unit_test(a_reader_wants_the_type_it_asks_for),
        cmocka_unit_test(text_is_utf8_up_to_its_edges),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(skipping_ends_after_one_value),
        cmocka_unit_test(the_greatest_key_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
