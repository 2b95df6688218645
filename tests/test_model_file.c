/* SPDX-License-Identifier: Apache-2.0 */
/* Models as files: what a server writes is what the next job starts from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/safetensors.h"
#include "server/model_file.h"

enum { CAP = ELV_MODEL_HEAD_CAP + 4096 };

static struct elv_job job;
static uint8_t file[CAP];
static float w[256], flat[256];

static void parse(const char *input, const char *layers)
{
    const struct elv_model_text text = {
        .input = {(const uint8_t *)input, strlen(input)},
        .layers = {(const uint8_t *)layers, strlen(layers)},
    };
    elv_job_init(&job);
    strcpy(job.name, "fashion");
    assert_int_equal(elv_model_parse(&job.model, text, NULL), ELV_OK);
}

static size_t write_file(void)
{
    static const uint8_t run[ELV_RUN_ID_LEN] = {0xab, 0xcd};
    parse("1x3x3", "dense 4 relu, dense 3 local, dense 2");
    for (uint32_t i = 0; i < job.model.n_shared; i++)
        w[i] = 0.5f - (float)i;
    const size_t len = elv_model_file_write(&job, run, 12, w, file);
    assert_true(len <= CAP);
    return len;
}

static enum elv_err read_file(size_t len, float *out)
{
    return elv_model_file_read(&job.model, (struct elv_bytes){file, len}, flat, out);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    float back[256] = {0};
    const size_t len = write_file();
    assert_true(job.model.n_shared < job.model.n_params);
    assert_int_equal(read_file(len, back), ELV_OK);
    assert_memory_equal(back, w, job.model.n_shared * sizeof w[0]);
}

static void a_file_says_where_it_comes_from(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"job", "fashion"},
        {"run", "abcd0000000000000000000000000000"},
        {"version", "12"},
        {"shape", "1x3x3 | dense 4 relu, dense 3 local, dense 2 | softmax-cross-entropy"},
    };
    struct elv_safetensors st;
    const size_t len = write_file();
    assert_int_equal(elv_safetensors_read(&job.model, (struct elv_bytes){file, len}, &st), ELV_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char value[128];
        assert_int_equal(elv_safetensors_find(&st, rows[i].key, value, sizeof value), ELV_OK);
        assert_string_equal(value, rows[i].value);
    }
}

static void a_file_that_is_cut_off_or_longer_is_refused(void **state)
{
    (void)state;
    const size_t len = write_file();
    for (size_t n = 0; n < len; n++)
        assert_int_not_equal(read_file(n, w), ELV_OK);
    assert_int_equal(read_file(len - 1, w), ELV_ERR_SHORT);
    assert_int_equal(read_file(len + 1, w), ELV_ERR_SHORT);
}

static void the_file_of_another_model_is_refused(void **state)
{
    (void)state;
    const size_t len = write_file();
    parse("1x3x3", "dense 5 relu, dense 3 local, dense 2");
    assert_int_equal(read_file(len, w), ELV_ERR_MISMATCH);
}

static void values_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    const size_t len = write_file();
    static const uint8_t nan_bytes[4] = {0, 0, 0xc0, 0x7f};
    memcpy(file + len - sizeof nan_bytes, nan_bytes, sizeof nan_bytes);
    assert_int_equal(read_file(len, w), ELV_ERR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_says_where_it_comes_from),
        cmocka_unit_test(a_file_that_is_cut_off_or_longer_is_refused),
        cmocka_unit_test(the_file_of_another_model_is_refused),
        cmocka_unit_test(values_that_are_not_finite_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
