/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on the wire are a promise: what version 1 wrote once, this build writes and reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/wire_samples.h"

static size_t load(const char *name, uint8_t *out, size_t cap)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/wire-1/%s", name);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("%s is missing", path);
    const size_t len = fread(out, 1, cap, f);
    fclose(f);
    return len;
}

static void encoders_write_the_golden_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        uint8_t golden[ELV_MANIFEST_MAX], out[ELV_MANIFEST_MAX];
        const size_t len = load(wire_samples[i].file, golden, sizeof golden);
        if (wire_sample_bytes(&wire_samples[i], out) != len || memcmp(out, golden, len) != 0)
            fail_msg("%s differs", wire_samples[i].file);
    }
}

static void decoders_read_the_golden_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        const struct wire_sample *s = &wire_samples[i];
        uint8_t golden[ELV_MANIFEST_MAX], again[ELV_MANIFEST_MAX];
        const struct elv_bytes in = {golden, load(s->file, golden, sizeof golden)};
        size_t len = 0;
        if (s->codec >= 0) {
            union wire_msg m;
            assert_int_equal(wire_codecs[s->codec].decode(in, &m), ELV_OK);
            assert_int_equal(wire_codecs[s->codec].encode(&m, again, sizeof again, &len), ELV_OK);
        } else {
            struct elv_chunk c;
            assert_int_equal(elv_chunk_decode(in, &c), ELV_OK);
            assert_int_equal(elv_chunk_encode(&c, again, sizeof again, &len), ELV_OK);
        }
        assert_int_equal(len, in.len);
        assert_memory_equal(again, golden, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_write_the_golden_bytes),
        cmocka_unit_test(decoders_read_the_golden_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
