/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_zlib.c - raw deflate of chunks and gunzip of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"
#include "common/rng.h"
#include "ports/zlib/squeeze.h"

static struct elv_bytes of(const uint8_t *at, size_t len) { return (struct elv_bytes){at, len}; }

static int begin(void **state)
{
    struct elv_zlib *z;
    if (elv_zlib_open(&z) != ELV_OK)
        return -1;
    *state = z;
    return 0;
}

static int end(void **state)
{
    elv_zlib_close(*state);
    return 0;
}

/* "elver" a few times, compressed by Python's zlib.compressobj(9, DEFLATED, -15). */
static const uint8_t packed_words[] = {0x4b, 0xcd, 0x29, 0x4b, 0x2d, 0x52,
                                       0x48, 0x25, 0x9f, 0x04, 0x00};
static const char words[] = "elver elver elver elver elver elver elver elver elver elver elver";

static void what_was_squeezed_comes_back(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    static const size_t lengths[] = {0, 1, 2, 255, 1000, 1024, 4096, 5000, 65536};
    static uint8_t in[65536], packed[70000], out[65536];
    for (size_t kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < sizeof in; i++)
            in[i] = (uint8_t)(kind == 0 ? 0 : kind == 1 ? i * i >> 3 : (i * 2654435761u) >> 13);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            size_t n = 0, m = 0;
            assert_int_equal(s.deflate(s.self, packed, sizeof packed, of(in, lengths[i]), &n),
                             ELV_OK);
            assert_int_equal(s.inflate(s.self, out, lengths[i], of(packed, n), &m), ELV_OK);
            assert_int_equal(m, lengths[i]);
            assert_memory_equal(out, in, m);
        }
    }
}

static void what_others_squeezed_can_be_read(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    uint8_t out[128];
    size_t n = 0;
    assert_int_equal(s.inflate(s.self, out, sizeof out, of(packed_words, sizeof packed_words), &n),
                     ELV_OK);
    assert_int_equal(n, sizeof words - 1);
    assert_memory_equal(out, words, n);
}

static void every_truncation_is_refused(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    uint8_t out[128];
    size_t n = 0;
    for (size_t len = 0; len < sizeof packed_words; len++)
        assert_int_equal(s.inflate(s.self, out, sizeof out, of(packed_words, len), &n),
                         ELV_ERR_FORMAT);
}

static void bytes_after_the_end_are_refused(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    uint8_t in[2 * sizeof packed_words], out[256];
    size_t n = 0;
    memcpy(in, packed_words, sizeof packed_words);
    memcpy(in + sizeof packed_words, packed_words, sizeof packed_words);
    for (size_t extra = 1; extra <= sizeof packed_words; extra++)
        assert_int_equal(
            s.inflate(s.self, out, sizeof out, of(in, sizeof packed_words + extra), &n),
            ELV_ERR_FORMAT);
}

static void the_wrappers_of_zlib_and_gzip_are_refused(void **state)
{
    static const uint8_t zlib_wrapped[] = {0x78, 0x9c, 0x4b, 0x04, 0x00, 0x00, 0x62, 0x00, 0x62};
    static const uint8_t gzip_wrapped[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0};
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    uint8_t out[64];
    size_t n = 0;
    assert_int_equal(s.inflate(s.self, out, sizeof out, of(zlib_wrapped, sizeof zlib_wrapped), &n),
                     ELV_ERR_FORMAT);
    assert_int_equal(s.inflate(s.self, out, sizeof out, of(gzip_wrapped, sizeof gzip_wrapped), &n),
                     ELV_ERR_FORMAT);
}

static void a_bomb_stops_at_the_cap_and_writes_nothing_beyond(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    const size_t len = 1u << 20;
    uint8_t *zeros = calloc(1, len), *packed = malloc(8192);
    uint8_t out[1024 + 16];
    size_t n = 0, m = 0;
    assert_true(zeros != NULL && packed != NULL);
    assert_int_equal(s.deflate(s.self, packed, 8192, of(zeros, len), &n), ELV_OK);
    memset(out, 0xee, sizeof out);
    assert_int_equal(s.inflate(s.self, out, 1024, of(packed, n), &m), ELV_ERR_SPACE);
    for (size_t i = 1024; i < sizeof out; i++)
        assert_int_equal(out[i], 0xee);
    assert_int_equal(s.inflate(s.self, out, 0, of(packed, n), &m), ELV_ERR_SPACE);
    free(zeros);
    free(packed);
}

static void a_result_that_does_not_fit_is_said_to(void **state)
{
    struct elv_squeeze s = elv_zlib_squeeze(*state);
    uint8_t in[600], out[700];
    size_t n = 0, need = 0;
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    assert_int_equal(s.deflate(s.self, out, sizeof out, of(in, sizeof in), &need), ELV_OK);
    assert_true(need > sizeof in);
    for (size_t cap = 0; cap < need; cap += 37)
        assert_int_equal(s.deflate(s.self, out, cap, of(in, sizeof in), &n), ELV_ERR_SPACE);
    assert_int_equal(s.deflate(s.self, out, need, of(in, sizeof in), &n), ELV_OK);
}

/* printf 'elver' | gzip -n */
static const uint8_t gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                             0x03, 0x4b, 0xcd, 0x29, 0x4b, 0x2d, 0x02, 0x00, 0x8b,
                             0xdc, 0xfd, 0x10, 0x05, 0x00, 0x00, 0x00};

static void a_gzip_file_is_unpacked_up_to_its_cap(void **state)
{
    uint8_t *out;
    size_t len = 0;
    (void)state;
    assert_int_equal(elv_zlib_gunzip(of(gz, sizeof gz), 5, &out, &len), ELV_OK);
    assert_int_equal(len, 5);
    assert_memory_equal(out, "elver", 5);
    elv_zlib_free(out);
    for (size_t cap = 0; cap < 5; cap++) {
        assert_int_equal(elv_zlib_gunzip(of(gz, sizeof gz), cap, &out, &len), ELV_ERR_SPACE);
        assert_null(out);
    }
}

static void a_damaged_gzip_file_is_refused(void **state)
{
    uint8_t bad[sizeof gz + 1], *out;
    size_t len = 0;
    (void)state;
    for (size_t n = 0; n < sizeof gz; n++)
        assert_int_equal(elv_zlib_gunzip(of(gz, n), 100, &out, &len), ELV_ERR_FORMAT);
    for (size_t i = 10; i < sizeof gz; i++) { /* data, checksum and length */
        memcpy(bad, gz, sizeof gz);
        bad[i] ^= 0x55;
        assert_int_not_equal(elv_zlib_gunzip(of(bad, sizeof gz), 100, &out, &len), ELV_OK);
        assert_null(out);
    }
    memcpy(bad, gz, sizeof gz);
    bad[sizeof gz] = 'x';
    assert_int_equal(elv_zlib_gunzip(of(bad, sizeof bad), 100, &out, &len), ELV_ERR_FORMAT);
}

static void members_of_a_gzip_file_are_joined(void **state)
{
    uint8_t two[2 * sizeof gz], *out;
    size_t len = 0;
    (void)state;
    memcpy(two, gz, sizeof gz);
    memcpy(two + sizeof gz, gz, sizeof gz);
    assert_int_equal(elv_zlib_gunzip(of(two, sizeof two), 10, &out, &len), ELV_OK);
    assert_int_equal(len, 10);
    assert_memory_equal(out, "elverelver", 10);
    elv_zlib_free(out);
    assert_int_equal(elv_zlib_gunzip(of(two, sizeof two), 9, &out, &len), ELV_ERR_SPACE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* Like the updates of a network: some inputs are never there, and some neurons learn more. */
static void fill(float *v, uint32_t n)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 4, .purpose = ELV_RNG_TEST});
    float scale = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (i % 784 == 0)
            scale = 0.1f + 4 * elv_rng_unit(&r) * elv_rng_unit(&r);
        v[i] = i % 28 < 5 ? 0.0f : scale * elv_rng_normal(&r) * elv_rng_unit(&r);
    }
}

static void payloads_that_are_called_tight_are_not_made_shorter(void **state)
{
    enum { N = 78400 };
    static float v[N];
    const struct elv_squeeze s = elv_zlib_squeeze(*state);
    fill(v, N);
    for (size_t i = 0; i < elv_codec_count(); i++) {
        const struct elv_codec *c = elv_codec_at(i);
        struct elv_codec_arg arg = {.seed = 1, .param = c->param_max > 0 ? c->param_min : 0};
        struct elv_codec_plan plan;
        arg.param = arg.param > 0 && arg.param < 0.01f ? 0.01f : arg.param;
        elv_codec_plan(c, &plan, v, N, &arg);
        size_t all = 0, squeezed = 0;
        uint32_t count = 0;
        for (uint32_t first = 0, index = 0; first < N; first += count, index++) {
            uint8_t out[ELV_CHUNK_PAYLOAD_MAX], packed[ELV_CHUNK_PAYLOAD_MAX];
            size_t len = 0, less = 0;
            assert_int_equal(c->encode(v, N, first, index, &arg, out, sizeof out, &len, &count),
                             ELV_OK);
            const bool shorter = s.deflate(s.self, packed, len - 1, of(out, len), &less) == ELV_OK;
            all += len;
            squeezed += shorter ? less : len;
        }
        if (c->tight)
            assert_in_range(squeezed, all - all / 200, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_squeezed_comes_back),
        TEST(what_others_squeezed_can_be_read),
        TEST(every_truncation_is_refused),
        TEST(bytes_after_the_end_are_refused),
        TEST(the_wrappers_of_zlib_and_gzip_are_refused),
        TEST(a_bomb_stops_at_the_cap_and_writes_nothing_beyond),
        TEST(a_result_that_does_not_fit_is_said_to),
        TEST(payloads_that_are_called_tight_are_not_made_shorter),
        TEST(a_gzip_file_is_unpacked_up_to_its_cap),
        TEST(a_damaged_gzip_file_is_refused),
        TEST(members_of_a_gzip_file_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
