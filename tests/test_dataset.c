/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/dataset.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ports/posix/csv.h"

#define BYTES(s) ((struct elv_bytes){.at = (const uint8_t *)(s), .len = sizeof(s) - 1})

static struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){.at = (const uint8_t *)s, .len = strlen(s)};
}

/* An .npy file around a dictionary and data. */
static struct elv_bytes npy(const char *dict, const void *data, size_t len)
{
    static uint8_t out[512];
    const size_t n = strlen(dict);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + 10, dict, n);
    memcpy(out + 10 + n, data, len);
    return (struct elv_bytes){.at = out, .len = 10 + n + len};
}

static void an_idx_file_is_read_as_it_is_specified(void **state)
{
    (void)state;
    struct elv_array a;
    const char *why = NULL;
    const struct elv_bytes in = BYTES("\0\0\x0B\x02\0\0\0\x02\0\0\0\x03"
                                      "\x00\x01\xFF\xFE\x7F\xFF\x80\x00\x00\x00\x12\x34");
    assert_int_equal(elv_idx_parse(in, &a, &why), ELV_OK);
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.dims[0], 2);
    assert_int_equal(a.dims[1], 3);
    static const int want[] = {1, -2, 32767, -32768, 0, 0x1234};
    for (size_t i = 0; i < 6; i++)
        assert_true(elv_array_value(&a, i) == want[i]);
    for (size_t len = 0; len < in.len; len++) {
        const enum elv_err err = elv_idx_parse((struct elv_bytes){in.at, len}, &a, &why);
        assert_int_equal(err, ELV_ERR_SHORT);
        assert_non_null(why);
    }
}

static void damaged_idx_files_are_refused_for_a_reason(void **state)
{
    (void)state;
    static const struct {
        struct elv_bytes in;
        enum elv_err want;
        const char *why;
    } rows[] = {
        {{(const uint8_t *)"\1\0\x08\1\0\0\0\0", 8}, ELV_ERR_FORMAT, "begin"},
        {{(const uint8_t *)"\0\0\x0A\1\0\0\0\0", 8}, ELV_ERR_FORMAT, "begin"},
        {{(const uint8_t *)"\0\0\x08\0", 4}, ELV_ERR_RANGE, "dimension"},
        {{(const uint8_t *)"\0\0\x08\5\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1x", 25},
         ELV_ERR_RANGE,
         "dimension"},
        {{(const uint8_t *)"\0\0\x08\1\0\0\0\1xy", 10}, ELV_ERR_FORMAT, "follow"},
        {{(const uint8_t *)"\0\0\x0E\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16},
         ELV_ERR_RANGE,
         "too large"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_array a;
        const char *why = "";
        assert_int_equal(elv_idx_parse(rows[i].in, &a, &why), rows[i].want);
        assert_non_null(strstr(why, rows[i].why));
    }
}

static void an_npy_file_of_each_type_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        const char *data;
        size_t len;
        double want;
    } rows[] = {
        {"|u1", "\xFE", 1, 254},
        {"|b1", "\x01", 1, 1},
        {"|i1", "\xFE", 1, -2},
        {"<u2", "\x02\x01", 2, 258},
        {">u2", "\x02\x01", 2, 513},
        {"<i2", "\xFE\xFF", 2, -2},
        {"<u4", "\xFE\xFF\xFF\xFF", 4, 4294967294.0},
        {">i4", "\xFF\xFF\xFF\xFE", 4, -2},
        {"<i8", "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8, -2},
        {"<u8", "\0\0\0\0\0\0\0\x80", 8, 9223372036854775808.0},
        {"<f4", "\0\0\xC0\x3F", 4, 1.5},
        {">f4", "\x3F\xC0\0\0", 4, 1.5},
        {"<f8", "\0\0\0\0\0\0\x04\xC0", 8, -2.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char dict[128];
        struct elv_array a;
        const char *why = NULL;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }   \n",
                 rows[i].descr);
        assert_int_equal(elv_npy_parse(npy(dict, rows[i].data, rows[i].len), &a, &why), ELV_OK);
        assert_int_equal(a.n, 1);
        assert_true(elv_array_value(&a, 0) == rows[i].want);
    }
}

static void npy_headers_are_accepted_or_refused_for_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        enum elv_err want;
        const char *why;
    } rows[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", ELV_OK, ""},
        {"{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"|u1\"}", ELV_OK, ""},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3, 1)}", ELV_OK, ""},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (6,)}", ELV_OK, ""},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", ELV_ERR_UNSUPPORTED,
         "Fortran"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (6,)}", ELV_ERR_UNSUPPORTED, "values"},
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (3,)}", ELV_ERR_UNSUPPORTED, "values"},
        {"{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (6,)}", ELV_ERR_FORMAT,
         "plain"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': ()}", ELV_ERR_FORMAT, "plain"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6)}", ELV_OK, ""},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,6)}", ELV_ERR_FORMAT, "plain"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}", ELV_ERR_FORMAT, "plain"},
        {"{'descr': '|u1', 'fortran_order': False}", ELV_ERR_FORMAT, "plain"},
        {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", ELV_ERR_FORMAT,
         "plain"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} x", ELV_ERR_FORMAT, "plain"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}", ELV_ERR_SHORT, "ends"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", ELV_ERR_FORMAT, "follow"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967295, 4294967295, 2)}",
         ELV_ERR_RANGE, "large"},
        {"", ELV_ERR_FORMAT, "plain"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_array a;
        const char *why = "";
        print_message("%s\n", rows[i].dict);
        assert_int_equal(elv_npy_parse(npy(rows[i].dict, "abcdef", 6), &a, &why), rows[i].want);
        assert_non_null(strstr(why, rows[i].why));
    }
}

static void every_truncation_of_an_npy_file_is_refused(void **state)
{
    (void)state;
    const struct elv_bytes in =
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", "abcdefgh", 8);
    for (size_t len = 0; len < in.len; len++) {
        struct elv_array a;
        const char *why = NULL;
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, in.at, len);
        assert_int_not_equal(elv_npy_parse((struct elv_bytes){copy, len}, &a, &why), ELV_OK);
        assert_non_null(why);
        free(copy);
    }
    struct elv_array a;
    const char *why = NULL;
    uint8_t other[64] = "\x94NUMPY\x01\x00\x02\x00{}";
    assert_int_equal(elv_npy_parse((struct elv_bytes){other, 12}, &a, &why), ELV_ERR_FORMAT);
    memcpy(other, "\x93NUMPY\x04\x00\x02\x00\x00\x00{}", 14);
    assert_int_equal(elv_npy_parse((struct elv_bytes){other, 14}, &a, &why), ELV_ERR_VERSION);
}

static void a_csv_table_is_read_with_or_without_a_header(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1.5,2,0\n-3e2,4,7\n",
        "a,b,label\r\n\r\n 1.5 ,\t2 , 0\r\n-3e2,4,7",
    };
    for (int i = 0; i < 2; i++) {
        struct elv_csv c;
        struct elv_csv_error e;
        assert_int_equal(elv_csv_measure(text(texts[i]), &c, &e), ELV_OK);
        assert_int_equal(c.n_rows, 2);
        assert_int_equal(c.n_values, 2);
        assert_int_equal(c.has_header, i == 1);
        float x[4];
        uint32_t y[2];
        elv_csv_read(text(texts[i]), &c, x, y);
        assert_true(x[0] == 1.5f && x[1] == 2.0f && x[2] == -300.0f && x[3] == 4.0f);
        assert_int_equal(y[0], 0);
        assert_int_equal(y[1], 7);
    }
}

static void a_wrong_csv_line_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t line;
        const char *why;
    } rows[] = {
        {"", 0, "no examples"},
        {"a,b\n", 0, "no examples"},
        {"1\n", 1, "separated by commas"},
        {"1,0\n\n1,2,0\n", 3, "more"},
        {"1,2,0\n1,0\n", 2, "fewer"},
        {"1,2,0\n1,2,0,4\n", 2, "more"},
        {"1,2,0\nx,2,0\n", 2, "not a number"},
        {"1,2,0\n,2,0\n", 2, "not a number"},
        {"1,2,0\nnan,2,0\n", 2, "not a number"},
        {"1,2,0\n1e39,2,0\n", 2, "not a number"},
        {"1,2,0\n1,2,-1\n", 2, "label"},
        {"1,2,0\n1,2,0.5\n", 2, "label"},
        {"1,2,0\n1,2,65536\n", 2, "label"},
        {"1;2;0\n", 1, "separated by commas"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_csv c;
        struct elv_csv_error e;
        print_message("%s\n", rows[i].text);
        assert_int_equal(elv_csv_measure(text(rows[i].text), &c, &e), ELV_ERR_FORMAT);
        assert_int_equal(e.line, rows[i].line);
        assert_non_null(strstr(e.why, rows[i].why));
    }
}

static char folder[] = "/tmp/elv_data_XXXXXX";
static const char *const names[] = {
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
    "x.npy",
    "y.npy",
    "t.csv",
};

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, struct elv_bytes data)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data.at, 1, data.len, f), data.len);
    fclose(f);
}

/* Not gzip, but enough to see that what comes out of it is used: drops the first byte. */
static enum elv_err unpack(struct elv_bytes in, size_t cap, uint8_t **out, size_t *len)
{
    assert_true(in.len - 1 <= cap);
    *out = malloc(in.len);
    memcpy(*out, in.at + 1, in.len - 1);
    *len = in.len - 1;
    return in.at[0] == 'Z' ? ELV_OK : ELV_ERR_FORMAT;
}

static void release(uint8_t *out) { free(out); }

static const struct elv_gunzip gz = {unpack, release};

static int make_files(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    write_file(names[0], BYTES("\0\0\x08\3\0\0\0\3\0\0\0\1\0\0\0\2\x01\x02\xFF\x00\x80\x81"));
    write_file(names[1], BYTES("\0\0\x08\1\0\0\0\3\x02\x00\x05"));
    write_file(names[2], BYTES("Z\0\0\x08\3\0\0\0\1\0\0\0\1\0\0\0\2\x10\x20"));
    write_file(names[3], BYTES("Z\0\0\x08\1\0\0\0\1\x09"));
    write_file(names[4], npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
                             "\0\0\xC0\x3F\0\0\x80\xBF", 8));
    write_file(names[5], npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}",
                             "\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16));
    write_file(names[6], BYTES("x,label\n0.5,1\n1.5,0\n2.5,1\n"));
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    return rmdir(folder);
}

static enum elv_err load(struct elv_dataset *d, const char *format, enum elv_dataset_part part,
                         const struct elv_gunzip *g, char *why)
{
    char spec[512];
    snprintf(spec, sizeof spec, format, folder, folder);
    return elv_dataset_load(d, spec, part, g, why);
}

static void a_job_names_its_data_and_bytes_stay_bytes(void **state)
{
    (void)state;
    struct elv_dataset d;
    char why[ELV_DATASET_WHY_MAX];
    assert_int_equal(load(&d, "idx %s", ELV_DATASET_TRAIN, NULL, why), ELV_OK);
    assert_int_equal(d.n, 3);
    assert_int_equal(d.n_values, 2);
    assert_int_equal(d.n_classes, 6);
    assert_non_null(d.u8);
    assert_int_equal(d.u8[2], 0xFF);
    assert_int_equal(d.labels[2], 5);
    elv_dataset_free(&d);

    assert_int_equal(load(&d, "idx  %s ", ELV_DATASET_TEST, &gz, why), ELV_OK);
    assert_int_equal(d.u8[1], 0x20);
    assert_int_equal(d.labels[0], 9);
    elv_dataset_free(&d);

    assert_int_equal(load(&d, "npy %s/x.npy %s/y.npy", ELV_DATASET_TEST, NULL, why), ELV_OK);
    assert_null(d.u8);
    assert_true(d.f32[0] == 1.5f && d.f32[1] == -1.0f);
    assert_int_equal(d.n_classes, 4);
    elv_dataset_free(&d);

    assert_int_equal(load(&d, "csv %s/t.csv", ELV_DATASET_TRAIN, NULL, why), ELV_OK);
    assert_int_equal(d.n, 3);
    assert_true(d.f32[2] == 2.5f);
    elv_dataset_free(&d);
}

static void data_that_cannot_be_loaded_is_explained(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum elv_err want;
        const char *why;
    } rows[] = {
        {"idx /tmp/elv/no/such", ELV_ERR_MISSING, "/tmp/elv/no/such/t10k-labels-idx1-ubyte.gz"},
        {"idx %s", ELV_ERR_UNSUPPORTED, "cannot unpack"},
        {"npy %s/x.npy %s/x.npy", ELV_ERR_RANGE, "whole number"},
        {"npy %s/t.csv %s/y.npy", ELV_ERR_FORMAT, "t.csv: it does not begin"},
        {"npy %s/train-images-idx3-ubyte", ELV_ERR_ARG, "npy X.npy Y.npy"},
        {"csv %s/x.npy", ELV_ERR_FORMAT, "x.npy: it has no examples"},
        {"", ELV_ERR_ARG, "data is"},
        {"zip a", ELV_ERR_ARG, "data is"},
        {"csv a b c d", ELV_ERR_ARG, "data is"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_dataset d;
        char why[ELV_DATASET_WHY_MAX] = "";
        print_message("%s\n", rows[i].spec);
        assert_int_equal(load(&d, rows[i].spec, ELV_DATASET_TEST, NULL, why), rows[i].want);
        assert_non_null(strstr(why, rows[i].why));
    }
}

static void examples_and_labels_must_match(void **state)
{
    (void)state;
    const struct elv_array x = {.type = ELV_ARRAY_U8, .n_dims = 1, .dims = {2}, .n = 2};
    const struct elv_array y = {.type = ELV_ARRAY_U8, .n_dims = 1, .dims = {3}, .n = 3};
    const struct elv_array none = {.type = ELV_ARRAY_U8, .n_dims = 1};
    struct elv_dataset d;
    char why[ELV_DATASET_WHY_MAX];
    assert_int_equal(elv_dataset_of(&d, &x, &y, malloc(1), release, why), ELV_ERR_MISMATCH);
    assert_string_equal(why, "2 examples but 3 labels");
    assert_int_equal(elv_dataset_of(&d, &none, &none, malloc(1), release, why), ELV_ERR_RANGE);
    static const float inf[] = {1.0f, HUGE_VALF};
    struct elv_array bad = {.type = ELV_ARRAY_F32, .n_dims = 1, .dims = {2}, .n = 2};
    bad.data = (struct elv_bytes){.at = (const uint8_t *)inf, .len = sizeof inf};
    struct elv_array labels = x;
    labels.data = (struct elv_bytes){.at = (const uint8_t *)"ab", .len = 2};
    assert_int_equal(elv_dataset_of(&d, &bad, &labels, malloc(1), release, why), ELV_ERR_RANGE);
}

static void a_feed_scales_what_it_is_asked_for(void **state)
{
    (void)state;
    struct elv_dataset d;
    char why[ELV_DATASET_WHY_MAX];
    assert_int_equal(load(&d, "idx %s", ELV_DATASET_TRAIN, NULL, why), ELV_OK);
    static const uint32_t index[] = {2, 0};
    struct elv_dataset_feed f;
    elv_dataset_feed_init(&f, &d, index, 2, 1.0f / 255.0f, 0.25f, 0.5f);
    assert_int_equal(elv_dataset_feed_count(&f), 2);
    uint32_t n_values = 0, n_classes = 0;
    elv_dataset_feed_shape(&f, &n_values, &n_classes);
    assert_int_equal(n_values, 2);
    assert_int_equal(n_classes, 6);

    static const uint32_t ask[] = {1, 0, 1};
    static const float raw[] = {1, 2, 0x80, 0x81, 1, 2};
    static const uint32_t labels[] = {2, 5, 2};
    float x[6];
    uint32_t y[3];
    assert_int_equal(elv_dataset_feed_get(&f, ask, 3, x, y), ELV_OK);
    for (size_t i = 0; i < 6; i++) {
        volatile float v = raw[i] * (1.0f / 255.0f); /* each operation rounds */
        v = v - 0.25f;
        v = v / 0.5f;
        assert_true(x[i] == v);
    }
    assert_memory_equal(y, labels, sizeof y);
    elv_dataset_feed_init(&f, &d, NULL, 0, 1, 0, 1);
    assert_int_equal(elv_dataset_feed_count(&f), 3);
    elv_dataset_free(&d);
}

static void owners_of_a_partition_are_checked(void **state)
{
    (void)state;
    uint32_t owner[2];
    char why[ELV_DATASET_WHY_MAX];
    assert_int_equal(elv_dataset_load_owners(path_of("y.npy"), 2, 4, owner, why), ELV_OK);
    assert_int_equal(owner[0], 3);
    assert_int_equal(owner[1], 1);
    assert_int_equal(elv_dataset_load_owners(path_of("y.npy"), 2, 3, owner, why), ELV_ERR_RANGE);
    assert_int_equal(elv_dataset_load_owners(path_of("y.npy"), 3, 4, owner, why), ELV_ERR_MISMATCH);
    assert_int_equal(elv_dataset_load_owners(path_of("x.npy"), 2, 4, owner, why), ELV_ERR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idx_file_is_read_as_it_is_specified),
        cmocka_unit_test(damaged_idx_files_are_refused_for_a_reason),
        cmocka_unit_test(an_npy_file_of_each_type_is_read),
        cmocka_unit_test(npy_headers_are_accepted_or_refused_for_a_reason),
        cmocka_unit_test(every_truncation_of_an_npy_file_is_refused),
        cmocka_unit_test(a_csv_table_is_read_with_or_without_a_header),
        cmocka_unit_test(a_wrong_csv_line_is_named),
        cmocka_unit_test(a_job_names_its_data_and_bytes_stay_bytes),
        cmocka_unit_test(data_that_cannot_be_loaded_is_explained),
        cmocka_unit_test(examples_and_labels_must_match),
        cmocka_unit_test(a_feed_scales_what_it_is_asked_for),
        cmocka_unit_test(owners_of_a_partition_are_checked),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
