/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/chunk.h"

static const uint8_t golden[] = {
    0x03,                                           /* kind: update */
    0x02,                                           /* codec: q8 */
    0x01, 0x00,                                     /* flags: deflated */
    0x05, 0x00, 0x00, 0x00,                         /* index */
    0x74, 0x13, 0x00, 0x00,                         /* first: 4980 */
    0xE4, 0x03, 0x00, 0x00,                         /* count: 996 */
    0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, /* tag */
    'e',  'l',  'v',                                /* payload */
};

static const struct elv_chunk sample = {
    .kind = ELV_BODY_UPDATE,
    .codec = 2,
    .flags = ELV_CHUNK_DEFLATED,
    .index = 5,
    .first = 4980,
    .count = 996,
    .tag = {0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7},
    .payload = {.at = (const uint8_t *)"elv", .len = 3},
};

static void the_layout_is_the_golden_one(void **state)
{
    (void)state;
    uint8_t out[sizeof golden];
    size_t len;
    assert_int_equal(elv_chunk_encode(&sample, out, sizeof out, &len), ELV_OK);
    assert_int_equal(len, sizeof golden);
    assert_memory_equal(out, golden, len);

    struct elv_chunk c;
    assert_int_equal(elv_chunk_decode((struct elv_bytes){golden, sizeof golden}, &c), ELV_OK);
    assert_int_equal(c.kind, sample.kind);
    assert_int_equal(c.codec, sample.codec);
    assert_int_equal(c.flags, sample.flags);
    assert_int_equal(c.index, sample.index);
    assert_int_equal(c.first, sample.first);
    assert_int_equal(c.count, sample.count);
    assert_memory_equal(c.tag, sample.tag, sizeof c.tag);
    assert_int_equal(c.payload.len, 3);
    assert_ptr_equal(c.payload.at, golden + ELV_CHUNK_HEAD_LEN);
}

static void a_small_buffer_gets_the_size_it_should_have_had(void **state)
{
    (void)state;
    uint8_t out[sizeof golden];
    for (size_t cap = 0; cap < sizeof golden; cap++) {
        size_t len = 0;
        assert_int_equal(elv_chunk_encode(&sample, out, cap, &len), ELV_ERR_SPACE);
        assert_int_equal(len, sizeof golden);
    }
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX + 1] = {0}, big[ELV_CHUNK_MAX + 1];
    struct elv_chunk c = sample;
    size_t len = 0;
    c.payload = (struct elv_bytes){payload, sizeof payload};
    assert_int_equal(elv_chunk_encode(&c, big, sizeof big, &len), ELV_ERR_SPACE);
    c.payload.len--;
    assert_int_equal(elv_chunk_encode(&c, big, sizeof big, &len), ELV_OK);
    assert_int_equal(len, ELV_CHUNK_MAX);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len <= ELV_CHUNK_HEAD_LEN; len++) {
        uint8_t *exact = malloc(len + (len == 0)); /* so that a sanitizer sees one byte too many */
        memcpy(exact, golden, len);
        struct elv_chunk c;
        assert_int_equal(elv_chunk_decode((struct elv_bytes){exact, len}, &c), ELV_ERR_SHORT);
        free(exact);
    }
}

static void put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static void headers_that_fit_no_body_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at, len;
        uint32_t v;
        enum elv_err err;
    } rows[] = {
        {0, 1, 0, ELV_ERR_FORMAT}, /* kinds 1 to 3 */
        {0, 1, 1, ELV_OK},
        {0, 1, 4, ELV_ERR_FORMAT},
        {1, 1, 0, ELV_ERR_FORMAT}, /* no codec */
        {1, 1, 200, ELV_OK},       /* one we do not know is the caller's to refuse */
        {2, 1, 2, ELV_ERR_FORMAT}, /* unknown flags */
        {3, 1, 0x80, ELV_ERR_FORMAT},
        {2, 1, 0, ELV_OK},
        {4, 4, 0, ELV_ERR_FORMAT}, /* the first chunk, not at 0 */
        {4, 4, 4980, ELV_OK},      /* one coordinate each before it */
        {4, 4, 4981, ELV_ERR_FORMAT},
        {8, 4, 0, ELV_ERR_FORMAT},        /* at 0, not the first chunk */
        {8, 4, UINT32_MAX - 996, ELV_OK}, /* up to the last number */
        {8, 4, UINT32_MAX - 995, ELV_ERR_FORMAT},
        {12, 4, 0, ELV_ERR_FORMAT}, /* covers nothing */
        {12, 4, 1, ELV_OK},
        {12, 4, UINT32_MAX, ELV_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t in[sizeof golden];
        memcpy(in, golden, sizeof in);
        if (rows[i].len == 4)
            put32(in + rows[i].at, rows[i].v);
        else
            in[rows[i].at] = (uint8_t)rows[i].v;
        struct elv_chunk c = {.count = 77};
        const enum elv_err err = elv_chunk_decode((struct elv_bytes){in, sizeof in}, &c);
        if (err != rows[i].err)
            fail_msg("row %u: %s", (unsigned)i, elv_err_text(err));
        if (err != ELV_OK)
            assert_int_equal(c.count, 77);
    }
    uint8_t big[ELV_CHUNK_MAX + 1] = {0};
    memcpy(big, golden, sizeof golden);
    struct elv_chunk c;
    assert_int_equal(elv_chunk_decode((struct elv_bytes){big, ELV_CHUNK_MAX}, &c), ELV_OK);
    assert_int_equal(elv_chunk_decode((struct elv_bytes){big, sizeof big}, &c), ELV_ERR_FORMAT);
}

/* Recorded with Python's hashlib: sha256(golden[:16] + golden[24:])[:16], and sha256 of two. */
static void hashes_leave_out_the_tag(void **state)
{
    (void)state;
    static const uint8_t want[ELV_CHUNK_HASH_LEN] = {0x02, 0x1E, 0xB7, 0xF8, 0x44, 0xB1,
                                                     0xDC, 0x01, 0x20, 0xA8, 0x62, 0xB2,
                                                     0xCC, 0x89, 0xFC, 0x5F};
    static const uint8_t body[ELV_BODY_DIGEST_LEN] = {
        0x16, 0x14, 0x66, 0x52, 0xE6, 0x51, 0x9C, 0x01, 0xF4, 0xC1, 0x26,
        0x69, 0x7D, 0x94, 0x92, 0xEE, 0x0F, 0x3C, 0x1D, 0x10, 0xF8, 0xC8,
        0x2F, 0x0C, 0x96, 0x88, 0x5F, 0x56, 0xE9, 0x8A, 0x18, 0x75};
    uint8_t hash[ELV_CHUNK_HASH_LEN], in[sizeof golden], digest[ELV_BODY_DIGEST_LEN];
    memcpy(in, golden, sizeof in);
    elv_chunk_hash((struct elv_bytes){in, sizeof in}, hash);
    assert_memory_equal(hash, want, sizeof want);
    in[16] ^= 1; /* the tag */
    in[23] ^= 1;
    elv_chunk_hash((struct elv_bytes){in, sizeof in}, hash);
    assert_memory_equal(hash, want, sizeof want);
    for (size_t at = 0; at < sizeof in; at = at == 15 ? 24 : at + 1) {
        in[at] ^= 1;
        elv_chunk_hash((struct elv_bytes){in, sizeof in}, hash);
        assert_memory_not_equal(hash, want, sizeof want);
        in[at] ^= 1;
    }

    struct elv_body_digest d;
    elv_body_digest_init(&d);
    elv_body_digest_add(&d, want);
    elv_body_digest_add(&d, want);
    elv_body_digest_final(&d, digest);
    assert_memory_equal(digest, body, sizeof body);
}

static void a_bitmap_counts_each_chunk_once(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 63, 64, 65, 511, 512, 513, 1000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const uint32_t n = sizes[s];
        uint64_t words[ELV_BITMAP_WORDS(1000)];
        memset(words, 0xFF, sizeof words);
        struct elv_bitmap b;
        elv_bitmap_init(&b, words, n);
        for (uint32_t i = 0; i < n; i++) { /* backwards: nothing is complete before the last */
            const uint32_t at = n - 1 - i;
            assert_false(elv_bitmap_get(&b, at));
            assert_int_equal(b.first_clear, 0);
            assert_true(elv_bitmap_set(&b, at));
            assert_false(elv_bitmap_set(&b, at));
            assert_true(elv_bitmap_get(&b, at));
            assert_int_equal(b.n_set, i + 1);
        }
        assert_int_equal(b.first_clear, n);
    }
}

static void missing_shows_the_first_gap_and_what_follows_it(void **state)
{
    (void)state;
    enum { N = 700 };
    uint64_t words[ELV_BITMAP_WORDS(N)];
    struct elv_bitmap b;
    struct elv_missing m;
    static const uint8_t none[ELV_MISSING_BITS / 8];

    elv_bitmap_init(&b, words, N);
    elv_missing_of(&b, &m);
    assert_int_equal(m.first, 0);
    assert_memory_equal(m.have, none, sizeof none);

    for (uint32_t i = 0; i < 100; i++)
        elv_bitmap_set(&b, i);
    elv_bitmap_set(&b, 101);
    elv_bitmap_set(&b, 108);
    elv_bitmap_set(&b, 100 + 511);
    elv_bitmap_set(&b, 100 + 512); /* past the window */
    elv_missing_of(&b, &m);
    assert_int_equal(m.first, 100);
    assert_int_equal(m.have[0], 0x02);
    assert_int_equal(m.have[1], 0x01);
    assert_int_equal(m.have[63], 0x80);
    for (size_t i = 2; i < 63; i++)
        assert_int_equal(m.have[i], 0);

    for (uint32_t i = 0; i < N - 1; i++)
        elv_bitmap_set(&b, i);
    elv_missing_of(&b, &m);
    assert_int_equal(m.first, N - 1);
    assert_memory_equal(m.have, none, sizeof none);
    elv_bitmap_set(&b, N - 1);
    elv_missing_of(&b, &m);
    assert_int_equal(m.first, N);

    elv_bitmap_init(&b, NULL, 0); /* how many there are is not known yet */
    elv_missing_of(&b, &m);
    assert_int_equal(m.first, 0);
    assert_memory_equal(m.have, none, sizeof none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_the_golden_one),
        cmocka_unit_test(a_small_buffer_gets_the_size_it_should_have_had),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(headers_that_fit_no_body_are_refused),
        cmocka_unit_test(hashes_leave_out_the_tag),
        cmocka_unit_test(a_bitmap_counts_each_chunk_once),
        cmocka_unit_test(missing_shows_the_first_gap_and_what_follows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
