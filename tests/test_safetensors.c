/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/safetensors.h"

static struct elv_model model(const char *line)
{
    struct elv_model m;
    assert_int_equal(
        elv_model_parse_line(&m, (struct elv_bytes){(const uint8_t *)line, strlen(line)}, NULL),
        ELV_OK);
    return m;
}

static const char small[] = "1x4x4 | conv 2 3x3 relu, maxpool 2, dense 3 local, dense 2 | ";

/* A header as a file starts with it, from its JSON; the caller frees. */
static struct elv_bytes head_of(const char *json)
{
    const size_t n = strlen(json);
    uint8_t *at = malloc(n + 8);
    assert_non_null(at);
    struct elv_wr w = elv_wr_of(at, n + 8);
    elv_wr_u64(&w, n);
    elv_wr_bytes(&w, (struct elv_bytes){(const uint8_t *)json, n});
    return (struct elv_bytes){at, n + 8};
}

static enum elv_err read_json(const struct elv_model *m, const char *json,
                              struct elv_safetensors *st)
{
    const struct elv_bytes head = head_of(json);
    const enum elv_err err = elv_safetensors_read(m, head, st);
    free((void *)(uintptr_t)head.at);
    return err;
}

static const struct elv_safetensors_meta meta[] = {{"job", "fashion"}, {"shape", "a \"b\\c\""}};

static void written_bytes_are_these(void **state)
{
    (void)state;
    const struct elv_model m = model(small);
    static const char want[] =
        "{\"__metadata__\":{\"job\":\"fashion\",\"shape\":\"a \\\"b\\\\c\\\"\"},"
        "\"0.weight\":{\"dtype\":\"F32\",\"shape\":[2,1,3,3],\"data_offsets\":[0,72]},"
        "\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[72,80]},"
        "\"2.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[80,104]},"
        "\"2.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[104,116]},"
        "\"3.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[116,140]},"
        "\"3.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[140,148]}}";
    uint8_t out[1024];
    size_t len = 0;
    assert_int_equal(elv_safetensors_write(&m, false, meta, 2, out, sizeof out, &len), ELV_OK);
    assert_int_equal(len % 64, 0);
    assert_memory_equal(out,
                        ((const uint8_t[]){(uint8_t)((len - 8) & 255), (uint8_t)((len - 8) >> 8), 0,
                                           0, 0, 0, 0, 0}),
                        8);
    assert_memory_equal(out + 8, want, sizeof want - 1);
    for (size_t i = 8 + sizeof want - 1; i < len; i++)
        assert_int_equal(out[i], ' ');
    for (size_t cap = 0; cap < len; cap++) {
        uint8_t *little = malloc(cap == 0 ? 1 : cap);
        size_t need = 0;
        assert_non_null(little);
        assert_int_equal(elv_safetensors_write(&m, false, meta, 2, little, cap, &need),
                         ELV_ERR_SPACE);
        assert_int_equal(need, len);
        free(little);
    }
}

static void what_was_written_reads_back(void **state)
{
    (void)state;
    const struct elv_model m = model(small);
    for (unsigned shared_only = 0; shared_only < 2; shared_only++) {
        uint8_t out[1024];
        size_t len = 0, head_len = 0;
        struct elv_safetensors st;
        assert_int_equal(elv_safetensors_write(&m, shared_only, meta, 2, out, sizeof out, &len),
                         ELV_OK);
        assert_int_equal(elv_safetensors_head_len((struct elv_bytes){out, 8}, &head_len), ELV_OK);
        assert_int_equal(head_len, len);
        assert_int_equal(elv_safetensors_read(&m, (struct elv_bytes){out, len}, &st), ELV_OK);
        assert_int_equal(st.has_local, !shared_only);
        assert_int_equal(st.n_pieces, shared_only ? 4 : 6);
        assert_int_equal(st.file_len, len + 4 * (shared_only ? m.n_shared : m.n_params));
        uint64_t at = len;
        for (uint32_t i = 0; i < st.n_pieces; i++) {
            assert_int_equal(st.piece[i].file_at, at);
            at += 4 * (uint64_t)st.piece[i].n;
        }
        assert_int_equal(at, st.file_len);
        assert_int_equal(st.piece[st.n_pieces - 1].flat_at, m.layers[3].bias_at);

        char value[16];
        assert_int_equal(elv_safetensors_find(&st, "job", value, sizeof value), ELV_OK);
        assert_string_equal(value, "fashion");
        assert_int_equal(elv_safetensors_find(&st, "shape", value, sizeof value), ELV_OK);
        assert_string_equal(value, "a \"b\\c\"");
        assert_int_equal(elv_safetensors_find(&st, "run", value, sizeof value), ELV_ERR_MISSING);
        assert_int_equal(elv_safetensors_find(&st, "job", value, 8), ELV_OK);
        assert_int_equal(elv_safetensors_find(&st, "job", value, 7), ELV_ERR_SPACE);
        assert_int_equal(elv_safetensors_find(&st, "job", value, 0), ELV_ERR_SPACE);
    }
}

static void metadata_that_cannot_be_written_is_refused(void **state)
{
    (void)state;
    const struct elv_model m = model(small);
    static const struct elv_safetensors_meta rows[][2] = {
        {{"a", "1"}, {"a", "2"}}, {{"a", "line\n"}, {"b", ""}}, {{"\x80", ""}, {"b", ""}}};
    uint8_t out[1024];
    size_t len;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(elv_safetensors_write(&m, false, rows[i], 2, out, sizeof out, &len),
                         ELV_ERR_ARG);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    const struct elv_model m = model(small);
    uint8_t out[1024];
    size_t len = 0, head_len;
    assert_int_equal(elv_safetensors_write(&m, false, meta, 2, out, sizeof out, &len), ELV_OK);
    for (size_t n = 0; n < len; n++) {
        uint8_t *copy = malloc(n == 0 ? 1 : n);
        struct elv_safetensors st;
        assert_non_null(copy);
        memcpy(copy, out, n);
        assert_int_equal(elv_safetensors_read(&m, (struct elv_bytes){copy, n}, &st), ELV_ERR_SHORT);
        if (n < 8)
            assert_int_equal(elv_safetensors_head_len((struct elv_bytes){copy, n}, &head_len),
                             ELV_ERR_SHORT);
        free(copy);
    }
    /* Cut in the JSON, with a length that agrees: never read as whole, never past the end. */
    char json[1024];
    memcpy(json, out + 8, len - 8);
    json[len - 8] = 0;
    const size_t end = (size_t)(strrchr(json, '}') - json);
    for (size_t n = 0; n <= end; n++) {
        struct elv_safetensors st;
        json[end - n] = 0;
        assert_int_not_equal(read_json(&m, json, &st), ELV_OK);
    }
}

#define W0 "\"0.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define B0 "\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"

static void strange_headers_are_judged_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum elv_err want;
    } rows[] = {
        {"{" W0 "," B0 "}", ELV_OK},
        {"{" B0 "," W0 "}   ", ELV_OK}, /* any order, blanks after it */
        {"{ \"__metadata__\" : { } ,\n" W0 "," B0 "}", ELV_OK},
        {"{\"0.bias\":{\"data_offsets\":[0,8],\"dtype\":\"F32\",\"shape\":[2]},"
         "\"0.weight\":{\"shape\":[2,3],\"dtype\":\"F32\",\"data_offsets\":[8,32]}}",
         ELV_OK},
        {"", ELV_ERR_FORMAT},
        {" {" W0 "," B0 "}", ELV_ERR_FORMAT}, /* a blank before it */
        {"{}", ELV_ERR_MISMATCH},
        {"[]", ELV_ERR_FORMAT},
        {"{" W0 "}", ELV_ERR_MISMATCH},
        {"{" W0 "," B0 "}x", ELV_ERR_FORMAT},
        {"{" W0 "," B0 ",}", ELV_ERR_FORMAT},
        {"{" W0 "," B0 "," B0 "}", ELV_ERR_FORMAT},
        {"{" W0 B0 "}", ELV_ERR_FORMAT},
        {"{\"__metadata__\":{},\"__metadata__\":{}," W0 "," B0 "}", ELV_ERR_FORMAT},
        {"{\"__metadata__\":{\"a\":1}," W0 "," B0 "}", ELV_ERR_FORMAT},
        {"{\"__metadata__\":{\"a\":\"\\x\"}," W0 "," B0 "}", ELV_ERR_FORMAT},
        {"{\"__metadata__\":{\"a\":\"\\u12g4\"}," W0 "," B0 "}", ELV_ERR_FORMAT},
        {"{\"__metadata__\":{\"a\":\"\\u00e9\\n\"}," W0 "," B0 "}", ELV_OK},
        {"{\"__metadata__\":{\"a\":\"\n\"}," W0 "," B0 "}", ELV_ERR_FORMAT},
        {"{" W0 "," B0 ",\"1.bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[32,36]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,32]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[24,32]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,32]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[1,2,3,4,5],\"data_offsets\":[24,32]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[28,36]}}",
         ELV_ERR_FORMAT}, /* a gap */
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[20,28]}}",
         ELV_ERR_FORMAT}, /* an overlap */
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,24]}}",
         ELV_ERR_MISMATCH},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[24,32]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[24,32]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],"
         "\"data_offsets\":[24,9007199254740992]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2]}}", ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
         "\"data_offsets\":[24,32]}}",
         ELV_ERR_FORMAT},
        {"{" W0 ",\"0.bias\":{\"dtype\":\"F32\",\"rank\":[1],\"shape\":[2],"
         "\"data_offsets\":[24,32]}}",
         ELV_ERR_FORMAT},
    };
    const struct elv_model m = model("3x1x1 | dense 2 | ");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_safetensors st = {.n_pieces = 77};
        const enum elv_err err = read_json(&m, rows[i].json, &st);
        if (err != rows[i].want)
            print_error("row %zu: %s\n", i, rows[i].json);
        assert_int_equal(err, rows[i].want);
        assert_int_equal(st.n_pieces, err == ELV_OK ? 2 : 77);
    }
}

static void pieces_come_in_flat_order_whatever_the_file_has(void **state)
{
    (void)state;
    const struct elv_model m = model("3x1x1 | dense 2 | ");
    struct elv_safetensors st;
    static const char json[] =
        "{\"0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"0.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}}";
    assert_int_equal(read_json(&m, json, &st), ELV_OK);
    assert_int_equal(st.piece[0].flat_at, 0);
    assert_int_equal(st.piece[0].n, 6);
    assert_int_equal(st.piece[0].file_at, 8 + strlen(json) + 8);
    assert_int_equal(st.piece[1].flat_at, 6);
    assert_int_equal(st.piece[1].file_at, 8 + strlen(json));
}

static void local_tensors_are_there_all_or_none(void **state)
{
    (void)state;
    const struct elv_model m = model("3x1x1 | dense 2, dense 2 local | ");
    struct elv_safetensors st;
    assert_int_equal(read_json(&m, "{" W0 "," B0 "}", &st), ELV_OK);
    assert_false(st.has_local);
    assert_int_equal(
        read_json(&m,
                  "{" W0 "," B0
                  ",\"1.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}",
                  &st),
        ELV_ERR_MISMATCH);
}

static void a_header_longer_than_the_limit_is_refused_before_reading(void **state)
{
    (void)state;
    static const uint8_t rows[][8] = {
        {0xF9, 0xFF, 0, 0, 0, 0, 0, 0},
        {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0, 0, 0, 0, 1, 0, 0, 0},
    };
    size_t len = 0;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(elv_safetensors_head_len((struct elv_bytes){rows[i], 8}, &len),
                         ELV_ERR_RANGE);
    static const uint8_t most[8] = {0xF8, 0xFF};
    assert_int_equal(elv_safetensors_head_len((struct elv_bytes){most, 8}, &len), ELV_OK);
    assert_int_equal(len, ELV_SAFETENSORS_HEAD_MAX);
}

static void the_largest_model_has_a_readable_header(void **state)
{
    (void)state;
    char line[1024] = "5000x7x7 | conv 5000 1x1, conv 5000 1x1 pad 0";
    for (unsigned i = 2; i < 31; i++)
        strcat(line, ", conv 5000 1x1");
    strcat(line, ", dense 1000 | ");
    const struct elv_model m = model(line);
    static uint8_t out[ELV_SAFETENSORS_HEAD_MAX];
    size_t len = 0;
    struct elv_safetensors st;
    assert_int_equal(elv_safetensors_write(&m, false, NULL, 0, out, sizeof out, &len), ELV_OK);
    assert_int_equal(elv_safetensors_read(&m, (struct elv_bytes){out, len}, &st), ELV_OK);
    assert_int_equal(st.n_pieces, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_bytes_are_these),
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(metadata_that_cannot_be_written_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(strange_headers_are_judged_one_by_one),
        cmocka_unit_test(pieces_come_in_flat_order_whatever_the_file_has),
        cmocka_unit_test(local_tensors_are_there_all_or_none),
        cmocka_unit_test(a_header_longer_than_the_limit_is_refused_before_reading),
        cmocka_unit_test(the_largest_model_has_a_readable_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
