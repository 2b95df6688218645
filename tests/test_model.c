/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model.h"

static struct elv_bytes bytes(const char *text)
{
    return (struct elv_bytes){(const uint8_t *)text, strlen(text)};
}

static enum elv_err parse(struct elv_model *m, const char *input, const char *layers,
                          struct elv_text_err *why)
{
    const struct elv_model_text text = {bytes(input), bytes(layers), bytes("")};
    return elv_model_parse(m, text, why);
}

static struct elv_model model(const char *line)
{
    struct elv_model m;
    struct elv_text_err why;
    assert_int_equal(elv_model_parse_line(&m, bytes(line), &why), ELV_OK);
    return m;
}

static const char lenet[] =
    "1x28x28 | conv 8 5x5 relu, maxpool 2, conv 16 5x5 relu, maxpool 2, dense 64 relu, dense 10 | "
    "softmax-cross-entropy";

static void shapes_and_flat_order_follow_the_text(void **state)
{
    (void)state;
    const struct elv_model m = model(lenet);
    assert_int_equal(m.n_layers, 6);
    assert_int_equal(m.n_classes, 10);
    static const struct {
        struct elv_shape out;
        uint32_t weight_at, n_weight, bias_at, n_bias;
    } rows[] = {
        {{8, 24, 24}, 0, 200, 200, 8},        {{8, 12, 12}, 208, 0, 208, 0},
        {{16, 8, 8}, 208, 3200, 3408, 16},    {{16, 4, 4}, 3424, 0, 3424, 0},
        {{64, 1, 1}, 3424, 16384, 19808, 64}, {{10, 1, 1}, 19872, 640, 20512, 10},
    };
    for (uint32_t i = 0; i < 6; i++) {
        const struct elv_layer *l = &m.layers[i];
        assert_memory_equal(&l->out, &rows[i].out, sizeof l->out);
        assert_int_equal(l->weight_at, rows[i].weight_at);
        assert_int_equal(l->n_weight, rows[i].n_weight);
        assert_int_equal(l->bias_at, rows[i].bias_at);
        assert_int_equal(l->n_bias, rows[i].n_bias);
        assert_int_equal(l->shared_at, rows[i].weight_at);
    }
    assert_int_equal(m.n_params, 20522);
    assert_int_equal(m.n_shared, 20522);
}

static void convolution_sides_follow_stride_and_pad(void **state)
{
    (void)state;
    static const struct {
        const char *layers;
        uint32_t h, w;
    } rows[] = {
        {"conv 2 5x5, dense 2", 24, 44},
        {"conv 2 5x5 pad 2, dense 2", 28, 48},
        {"conv 2 5x5 pad same, dense 2", 28, 48},
        {"conv 2 3x5 pad same, dense 2", 28, 48},
        {"conv 2 3x3 stride 2, dense 2", 13, 23},
        {"conv 2 3x3 stride 2 pad same, dense 2", 14, 24},
        {"conv 2 28x48, dense 2", 1, 1},
        {"conv 2 10x4 stride 2 pad 1, dense 2", 11, 24},
        {"maxpool 3, dense 2", 9, 16},
        {"maxpool 3 stride 2, dense 2", 13, 23},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_model m;
        struct elv_text_err why;
        assert_int_equal(parse(&m, "1x28x48", rows[i].layers, &why), ELV_OK);
        assert_int_equal(m.layers[0].out.h, rows[i].h);
        assert_int_equal(m.layers[0].out.w, rows[i].w);
    }
}

static void texts_that_mean_the_same_print_alike(void **state)
{
    (void)state;
    static const struct {
        const char *line, *want;
    } rows[] = {
        {lenet, lenet},
        {" 1x8x8|conv 4 3x3  stride 1 pad 1 none ,maxpool 2 stride 2,\n dense 3 none | ",
         "1x8x8 | conv 4 3x3 pad same, maxpool 2, dense 3 | softmax-cross-entropy"},
        {"3x9x9 | conv 4 3x5 stride 2 pad same relu local, maxpool 3 stride 1, dense 4 local, "
         "dense 2",
         "3x9x9 | conv 4 3x5 stride 2 pad same relu local, maxpool 3 stride 1, dense 4 local, "
         "dense 2 | softmax-cross-entropy"},
        {"64x1x1|dense 32 relu,dense 10|softmax-cross-entropy",
         "64x1x1 | dense 32 relu, dense 10 | softmax-cross-entropy"},
        {"1x8x8 | conv 4 5x5 pad 1, dense 2", "1x8x8 | conv 4 5x5 pad 1, dense 2 | "
                                              "softmax-cross-entropy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_model m = model(rows[i].line);
        char out[ELV_MODEL_TEXT_MAX];
        size_t len;
        assert_int_equal(elv_model_print(&m, out, sizeof out, &len), ELV_OK);
        assert_string_equal(out, rows[i].want);
        assert_int_equal(len, strlen(out));
        const struct elv_model again = model(out);
        assert_memory_equal(again.fingerprint, m.fingerprint, sizeof m.fingerprint);
        uint8_t want[ELV_SHA256_LEN];
        elv_sha256(out, len, want);
        assert_memory_equal(m.fingerprint, want, sizeof want);
        for (size_t cap = 0; cap <= len; cap++) {
            assert_int_equal(elv_model_print(&m, out, cap, &len), ELV_ERR_SPACE);
            assert_int_equal(len, strlen(rows[i].want));
        }
    }
}

static void the_longest_text_fits_its_limit(void **state)
{
    (void)state;
    char line[4096] = "65535x65535x1 | conv 65535 65535x1 stride 65535 pad 65534 relu local";
    struct elv_model m;
    struct elv_text_err why;
    /* Far too many weights: only the text's length matters, and that a product never wraps. */
    assert_int_equal(elv_model_parse_line(&m, bytes(line), &why), ELV_ERR_RANGE);
    strcpy(line, "1x15x15 | conv 65535 1x1 stride 65535 pad same relu local");
    for (unsigned i = 1; i < 31; i++)
        strcat(line, ", maxpool 1 stride 65535");
    strcat(line, ", dense 2");
    m = model(line);
    char out[ELV_MODEL_TEXT_MAX];
    size_t len;
    assert_int_equal(elv_model_print(&m, out, sizeof out, &len), ELV_OK);
}

static void bad_texts_name_the_place_and_what_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *input, *layers;
        enum elv_err err;
        uint32_t part;
        size_t at;
        const char *want; /* must occur in the message */
    } rows[] = {
        {"", "dense 2", ELV_ERR_FORMAT, 0, 0, "CHANNELSxHEIGHTxWIDTH"},
        {"28x28", "dense 2", ELV_ERR_FORMAT, 0, 5, "CHANNELSxHEIGHTxWIDTH"},
        {"1x28x28x1", "dense 2", ELV_ERR_FORMAT, 0, 7, "CHANNELSxHEIGHTxWIDTH"},
        {"1x0x28", "dense 2", ELV_ERR_RANGE, 0, 2, "1 to 65535"},
        {"1x65536x28", "dense 2", ELV_ERR_RANGE, 0, 2, "1 to 65535"},
        {"1x9999999999x28", "dense 2", ELV_ERR_RANGE, 0, 2, "1 to 65535"},
        {"65535x65535x1", "dense 2", ELV_ERR_RANGE, 0, 0, "2^31"},
        {"1x28x28", "", ELV_ERR_FORMAT, 1, 0, "conv OUT"},
        {"1x28x28", "dense 2,", ELV_ERR_FORMAT, 1, 8, "conv OUT"},
        {"1x28x28", "lstm 2", ELV_ERR_FORMAT, 1, 0, "conv OUT"},
        {"1x28x28", "dense", ELV_ERR_FORMAT, 1, 5, "dense OUT"},
        {"1x28x28", "dense 0", ELV_ERR_RANGE, 1, 6, "dense OUT"},
        {"1x28x28", "dense ten", ELV_ERR_FORMAT, 1, 6, "dense OUT"},
        {"1x28x28", "dense 10k", ELV_ERR_FORMAT, 1, 8, "dense OUT"},
        {"1x28x28", "densely 10", ELV_ERR_FORMAT, 1, 0, "conv OUT"},
        {"1x28x28", "dense 10 tanh", ELV_ERR_FORMAT, 1, 9, "relu, none, local"},
        {"1x28x28", "dense 10 local relu", ELV_ERR_FORMAT, 1, 15, "comma"},
        {"1x28x28", "dense 1", ELV_ERR_RANGE, 1, 7, "two classes"},
        {"1x28x28", "dense 10 local", ELV_ERR_RANGE, 1, 14, "not local"},
        {"1x28x28", "conv 8 5 relu, dense 2", ELV_ERR_FORMAT, 1, 8, "5x5"},
        {"1x28x28", "conv 8 29x5, dense 2", ELV_ERR_RANGE, 1, 7, "padded input"},
        {"1x28x28", "conv 8 4x4 pad same, dense 2", ELV_ERR_RANGE, 1, 15, "odd"},
        {"1x28x28", "conv 8 4x4 pad 4, dense 2", ELV_ERR_RANGE, 1, 15, "smaller"},
        {"1x28x28", "conv 8 5x5 pad 2 stride 2, dense 2", ELV_ERR_FORMAT, 1, 17, "order"},
        {"1x28x28", "maxpool 16, dense 2", ELV_ERR_RANGE, 1, 8, "1 to 15"},
        {"1x28x28", "maxpool 2 relu, dense 2", ELV_ERR_FORMAT, 1, 10, "stride"},
        {"1x2x2", "maxpool 2, maxpool 2, dense 2", ELV_ERR_RANGE, 1, 19, "window"},
        {"1x28x28", "maxpool 2", ELV_ERR_RANGE, 1, 9, "not local"},
        {"16x1024x1024", "dense 65535, dense 2", ELV_ERR_RANGE, 1, 0, "weights"},
        {"1x200x100", "dense 65535, dense 16384, dense 2", ELV_ERR_RANGE, 1, 13, "parameters"},
        {"1x1024x1024", "conv 4096 1x1, dense 2", ELV_ERR_RANGE, 1, 0, "values"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_model m = {.n_params = 77};
        struct elv_text_err why = {0};
        assert_int_equal(parse(&m, rows[i].input, rows[i].layers, &why), rows[i].err);
        assert_int_equal(why.part, rows[i].part);
        assert_int_equal(why.at, rows[i].at);
        assert_non_null(strstr(why.want, rows[i].want));
        assert_int_equal(m.n_params, 77); /* untouched */
    }
}

static void a_bad_line_names_the_place_in_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t at;
    } rows[] = {
        {"", 0},
        {"1x2x2", 5},
        {"1x2x2 | ", 8},
        {"1x2x2 | dense 2 | hinge", 18},
        {"1x2x2 | dense 2 | softmax-cross-entropy |", 40},
        {"1x2x2 | dense two", 14},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_model m;
        struct elv_text_err why = {0};
        assert_int_equal(elv_model_parse_line(&m, bytes(rows[i].line), &why), ELV_ERR_FORMAT);
        assert_int_equal(why.at, rows[i].at);
        assert_int_equal(elv_model_parse_line(&m, bytes(rows[i].line), NULL), ELV_ERR_FORMAT);
    }
}

static void every_truncation_of_a_good_line_is_refused_or_still_a_model(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof lenet - 1; n++) {
        char *copy = malloc(n + 1); /* exactly enough, so that the sanitizer sees one byte more */
        assert_non_null(copy);
        memcpy(copy, lenet, n);
        struct elv_model m;
        struct elv_text_err why = {0};
        if (elv_model_parse_line(&m, (struct elv_bytes){(uint8_t *)copy, n}, &why) != ELV_OK) {
            assert_true(why.at <= n);
            assert_non_null(why.want);
        } else {
            assert_true(m.n_layers >= 1 && m.n_shared >= 1);
        }
        free(copy);
    }
}

static void thirty_two_layers_fit_and_one_more_does_not(void **state)
{
    (void)state;
    char layers[1024] = "dense 2";
    for (unsigned i = 1; i < ELV_MODEL_LAYERS_MAX; i++)
        strcat(layers, ", dense 2");
    struct elv_model m;
    struct elv_text_err why;
    assert_int_equal(parse(&m, "4x1x1", layers, &why), ELV_OK);
    strcat(layers, ", dense 2");
    assert_int_equal(parse(&m, "4x1x1", layers, &why), ELV_ERR_RANGE);
    assert_non_null(strstr(why.want, "32"));
}

static void local_layers_do_not_travel(void **state)
{
    (void)state;
    /* flat: dense 2 (8+2), local dense 3 (6+3), dense 2 (6+2), local dense 2 (4+2) */
    const struct elv_model m =
        model("4x1x1 | dense 2, dense 3 local, maxpool 1, dense 2, dense 2 local");
    assert_int_equal(m.n_params, 33);
    assert_int_equal(m.n_shared, 18);
    float flat[33], shared[18], back[33] = {0};
    for (size_t i = 0; i < 33; i++)
        flat[i] = (float)i;
    elv_model_gather(&m, flat, 0, 18, shared);
    for (size_t i = 0; i < 18; i++)
        assert_true(shared[i] == (float)(i < 10 ? i : i + 9));
    elv_model_scatter(&m, back, 0, 18, shared);
    for (size_t i = 0; i < 33; i++)
        assert_true(back[i] == ((i >= 10 && i < 19) || i >= 27 ? 0.0f : (float)i));

    for (uint32_t first = 0; first <= 18; first++) {
        for (uint32_t n = 0; n <= 18 - first; n++) {
            float part[18 + 1];
            part[n] = -1.0f;
            elv_model_gather(&m, flat, first, n, part);
            assert_memory_equal(part, shared + first, n * sizeof(float));
            assert_true(part[n] == -1.0f);
        }
    }
    uint32_t at;
    assert_int_equal(elv_model_run(&m, 3, &at), 7);
    assert_int_equal(at, 3);
    assert_int_equal(elv_model_run(&m, 10, &at), 8);
    assert_int_equal(at, 19);
    assert_int_equal(elv_model_run(&m, 18, &at), 0);
}

static void layers_that_follow_each_other_form_one_run(void **state)
{
    (void)state;
    const struct elv_model m = model(lenet);
    uint32_t at;
    assert_int_equal(elv_model_run(&m, 0, &at), m.n_params);
    assert_int_equal(at, 0);
    assert_int_equal(elv_model_run(&m, 207, &at), m.n_params - 207);
    assert_int_equal(at, 207);
}

/* Recorded once on x86-64; the same digests are due on every machine. */
static void initial_values_are_the_same_bytes_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint64_t seed;
        uint8_t want[ELV_SHA256_LEN];
    } rows[] = {
        {lenet, 1, {0xf8, 0xab, 0x37, 0x94, 0x80, 0xb1, 0xbb, 0x74, 0x2f, 0x00, 0x0f,
                    0x0f, 0xc2, 0xc3, 0xe3, 0xd5, 0x00, 0x88, 0xa5, 0x29, 0xd7, 0x28,
                    0x50, 0x45, 0xd5, 0xdf, 0x7f, 0xc7, 0x3a, 0x4f, 0xf2, 0x15}},
        {"784x1x1 | dense 200 relu, dense 10 | softmax-cross-entropy",
         0xfeedface12345678ull,
         {0xb4, 0xe4, 0x5b, 0x33, 0xaf, 0x6b, 0xfa, 0x10, 0x53, 0xe3, 0xed,
          0x8b, 0x2c, 0xa1, 0xf5, 0x6a, 0x37, 0x40, 0x01, 0xfe, 0x51, 0x8a,
          0x08, 0xa7, 0x4b, 0x4c, 0xe1, 0xa1, 0x56, 0x28, 0x87, 0x65}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_model m = model(rows[i].line);
        float *w = malloc(m.n_params * sizeof *w);
        assert_non_null(w);
        elv_model_init_params(&m, rows[i].seed, w);
        uint8_t got[ELV_SHA256_LEN];
        elv_sha256_f32(w, m.n_params, got);
        assert_memory_equal(got, rows[i].want, sizeof got);
        free(w);
    }
}

static void initial_weights_fill_the_bounds_of_he_and_glorot(void **state)
{
    (void)state;
    const struct elv_model m = model("2x9x9 | conv 50 3x3 relu, dense 5");
    float *w = malloc(m.n_params * sizeof *w);
    assert_non_null(w);
    elv_model_init_params(&m, 3, w);
    const double bound[2] = {sqrt(6.0 / 18), sqrt(6.0 / (50 * 49 + 5))};
    for (uint32_t i = 0; i < 2; i++) {
        const struct elv_layer *l = &m.layers[i];
        double square = 0, most = 0;
        for (uint32_t j = 0; j < l->n_weight; j++) {
            const double v = (double)w[l->weight_at + j];
            square += v * v;
            most = fabs(v) > most ? fabs(v) : most;
        }
        assert_true(most <= bound[i] * 1.000001 && most > bound[i] * 0.98);
        assert_true(fabs(square / l->n_weight / (bound[i] * bound[i] / 3) - 1) < 0.1);
        for (uint32_t j = 0; j < l->n_bias; j++)
            assert_true(w[l->bias_at + j] == 0.0f);
    }
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_flat_order_follow_the_text),
        cmocka_unit_test(convolution_sides_follow_stride_and_pad),
        cmocka_unit_test(texts_that_mean_the_same_print_alike),
        cmocka_unit_test(the_longest_text_fits_its_limit),
        cmocka_unit_test(bad_texts_name_the_place_and_what_is_accepted),
        cmocka_unit_test(a_bad_line_names_the_place_in_the_line),
        cmocka_unit_test(every_truncation_of_a_good_line_is_refused_or_still_a_model),
        cmocka_unit_test(thirty_two_layers_fit_and_one_more_does_not),
        cmocka_unit_test(local_layers_do_not_travel),
        cmocka_unit_test(layers_that_follow_each_other_form_one_run),
        cmocka_unit_test(initial_values_are_the_same_bytes_everywhere),
        cmocka_unit_test(initial_weights_fill_the_bounds_of_he_and_glorot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
