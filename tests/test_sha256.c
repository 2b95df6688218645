/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/sha256_internal.h"

static void check_hex(const uint8_t digest[32], const char *hex)
{
    for (size_t i = 0; i < 32; i++) {
        static const char digits[] = "0123456789abcdef";
        assert_int_equal(digits[digest[i] >> 4], hex[2 * i]);
        assert_int_equal(digits[digest[i] & 15], hex[2 * i + 1]);
    }
}

/* FIPS 180-4 examples, and the lengths around the padding's edge from NIST's byte vectors. */
static void the_published_vectors_come_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t digest[32];
        elv_sha256(rows[i].text, strlen(rows[i].text), digest);
        check_hex(digest, rows[i].hex);
    }
}

static void a_million_letters_digest_as_published(void **state)
{
    (void)state;
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    struct elv_sha256 h;
    elv_sha256_init(&h);
    for (unsigned i = 0; i < 1000; i++)
        elv_sha256_update(&h, letters, sizeof letters);
    uint8_t digest[32];
    elv_sha256_final(&h, digest);
    check_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_of_any_length_digest_like_the_whole(void **state)
{
    (void)state;
    uint8_t text[200];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len <= sizeof text; len++) {
        uint8_t whole[32], pieces[32];
        elv_sha256(text, len, whole);
        for (size_t piece = 1; piece < 70; piece += 23) {
            struct elv_sha256 h;
            elv_sha256_init(&h);
            for (size_t at = 0; at < len; at += piece)
                elv_sha256_update(&h, text + at, len - at < piece ? len - at : piece);
            elv_sha256_final(&h, pieces);
            assert_memory_equal(whole, pieces, 32);
        }
    }
}

static void floats_digest_as_little_endian_bytes(void **state)
{
    (void)state;
    static const float v[] = {1.0f, -2.0f, 0.0f};
    static const uint8_t bytes[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0};
    uint8_t want[32], got[32];
    elv_sha256(bytes, sizeof bytes, want);
    elv_sha256_f32(v, 3, got);
    assert_memory_equal(got, want, 32);
}

/* What this machine does best against portable C; where there is nothing better, with itself. */
static void processor_and_portable_code_agree(void **state)
{
    (void)state;
    uint8_t text[64 * 40];
    uint32_t best[8] = {1, 2, 3, 4, 5, 6, 7, 8}, plain[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i + i / 251);
    for (size_t n = 0; n <= 8; n++) {
        elv_sha256_blocks(best, text + n, n);
        elv_sha256_blocks_plain(plain, text + n, n);
        assert_memory_equal(best, plain, sizeof best);
    }
    elv_sha256_blocks(best, text, 40);
    for (size_t n = 0; n < 40; n++)
        elv_sha256_blocks_plain(plain, text + 64 * n, 1);
    assert_memory_equal(best, plain, sizeof best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_vectors_come_out),
        cmocka_unit_test(a_million_letters_digest_as_published),
        cmocka_unit_test(pieces_of_any_length_digest_like_the_whole),
        cmocka_unit_test(floats_digest_as_little_endian_bytes),
        cmocka_unit_test(processor_and_portable_code_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
