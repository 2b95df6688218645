/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "kernels/nn.h"

static struct elv_model model(const char *line)
{
    struct elv_model m;
    struct elv_text_err why;
    const struct elv_bytes text = {(const uint8_t *)line, strlen(line)};
    assert_int_equal(elv_model_parse_line(&m, text, &why), ELV_OK);
    return m;
}

static void *block(size_t len)
{
    void *mem = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_non_null(mem);
    memset(mem, 0xA5, len);
    return mem;
}

static struct elv_rng random_of(uint32_t what)
{
    return elv_rng_of((struct elv_rng_key){1, what, 0, ELV_RNG_TEST});
}

/* A plan with its memory and parameters. */
struct net {
    struct elv_model m;
    struct elv_nn nn;
    void *mem;
    float *params;
};

static void open_net(struct net *t, const char *line, struct elv_nn_cfg cfg)
{
    t->m = model(line);
    cfg.model = &t->m;
    const size_t len = elv_nn_mem(&cfg);
    assert_true(len > 0);
    t->mem = block(len);
    assert_int_equal(elv_nn_init(&t->nn, &cfg, t->mem, len), ELV_OK);
    const uint32_t members = cfg.members == 0 ? 1 : cfg.members;
    t->params = malloc(members * t->m.n_params * sizeof(float));
    assert_non_null(t->params);
    for (uint32_t k = 0; k < members; k++)
        elv_model_init_params(&t->m, 5 + k, t->params + (size_t)k * t->m.n_params);
    elv_nn_bind(&t->nn, t->params, t->m.n_params);
}

static void close_net(struct net *t)
{
    free(t->mem);
    free(t->params);
}

static void fill_random(struct net *t, uint32_t member, uint32_t rows, uint32_t salt)
{
    struct elv_rng r = random_of(salt);
    float *x = elv_nn_x(&t->nn, member);
    for (size_t i = 0; i < (size_t)rows * elv_shape_len(t->m.input); i++)
        x[i] = elv_rng_normal(&r);
    for (uint32_t i = 0; i < rows; i++)
        elv_nn_labels(&t->nn, member)[i] = elv_rng_below(&r, t->m.n_classes);
    elv_nn_set_rows(&t->nn, member, rows);
}

/* The mean loss in double, straight from the definition of each layer: the oracle for gradients. */
static double oracle_loss(const struct elv_model *m, const double *w, const float *x,
                          const uint32_t *label, uint32_t rows)
{
    double total = 0;
    for (uint32_t r = 0; r < rows; r++) {
        double *in = malloc(elv_shape_len(m->input) * sizeof *in);
        assert_non_null(in);
        for (uint32_t i = 0; i < elv_shape_len(m->input); i++)
            in[i] = (double)x[(size_t)r * elv_shape_len(m->input) + i];
        for (uint32_t n = 0; n < m->n_layers; n++) {
            const struct elv_layer *l = &m->layers[n];
            const struct elv_shape si = l->in, so = l->out;
            double *out = malloc(elv_shape_len(so) * sizeof *out);
            assert_non_null(out);
            const uint32_t len = elv_shape_len(si);
            for (uint32_t o = 0; o < elv_shape_len(so); o++) {
                const uint32_t c = o / (so.h * so.w), row = o / so.w % so.h, col = o % so.w;
                double v = l->kind == ELV_LAYER_MAXPOOL ? -INFINITY : w[l->bias_at + c];
                for (uint32_t i = 0; l->kind == ELV_LAYER_DENSE && i < len; i++)
                    v += w[l->weight_at + (size_t)o * len + i] * in[i];
                for (uint32_t k = 0; l->kind != ELV_LAYER_DENSE && k < si.c; k++) {
                    for (uint32_t i = 0; i < l->kernel_h * l->kernel_w; i++) {
                        const int64_t h = (int64_t)row * l->stride + i / l->kernel_w - l->pad_h;
                        const int64_t q = (int64_t)col * l->stride + i % l->kernel_w - l->pad_w;
                        const bool inside = h >= 0 && h < si.h && q >= 0 && q < si.w;
                        const double p = inside ? in[((int64_t)k * si.h + h) * si.w + q] : 0.0;
                        if (l->kind == ELV_LAYER_CONV)
                            v += p * w[l->weight_at +
                                       ((size_t)c * si.c + k) * l->kernel_h * l->kernel_w + i];
                        else if (k == c && p > v)
                            v = p;
                    }
                }
                out[o] = l->act == ELV_ACT_RELU && v < 0 ? 0 : v;
            }
            free(in);
            in = out;
        }
        double most = in[0], sum = 0;
        for (uint32_t c = 1; c < m->n_classes; c++)
            most = in[c] > most ? in[c] : most;
        for (uint32_t c = 0; c < m->n_classes; c++)
            sum += exp(in[c] - most);
        total += log(sum) - (in[label[r]] - most);
        free(in);
    }
    return total / rows;
}

static const char *const shapes[] = {
    "5x1x1 | dense 7 relu, dense 4 | softmax-cross-entropy",
    "1x9x9 | conv 3 3x3 relu, maxpool 2, dense 5 relu, dense 3 | softmax-cross-entropy",
    "2x8x7 | conv 4 3x3 pad same relu, conv 3 3x2 stride 2 relu, dense 3 | softmax-cross-entropy",
    "2x9x9 | maxpool 3 stride 2, conv 5 2x2 stride 2 pad 1, maxpool 2 stride 1, dense 4 | ",
    "3x6x6 | conv 17 1x1 relu, conv 2 5x5 pad 2, maxpool 2, dense 2 | softmax-cross-entropy",
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Central differences with a step of 1e-5 in double: their own error is far below the bound. */
static void check_gradients(const struct elv_kernels *k, const char *line)
{
    struct net t;
    open_net(&t, line, (struct elv_nn_cfg){.kernels = k, .batch = 3, .keep_gradients = true});
    fill_random(&t, 0, 3, 77);
    elv_nn_forward(&t.nn);
    elv_nn_loss(&t.nn);
    elv_nn_backward(&t.nn, NULL);

    double *w = malloc(t.m.n_params * sizeof *w);
    assert_non_null(w);
    for (uint32_t i = 0; i < t.m.n_params; i++)
        w[i] = (double)t.params[i];
    const float *x = elv_nn_x(&t.nn, 0), *got = elv_nn_gradient(&t.nn, 0);
    const uint32_t *label = elv_nn_labels(&t.nn, 0);
    assert_true(fabs(oracle_loss(&t.m, w, x, label, 3) * 3 - t.nn.loss[0]) < 1e-4);
    for (uint32_t i = 0; i < t.m.n_params; i += 1 + t.m.n_params / 64) {
        const double step = 1e-5, at = w[i];
        w[i] = at + step;
        const double above = oracle_loss(&t.m, w, x, label, 3);
        w[i] = at - step;
        const double below = oracle_loss(&t.m, w, x, label, 3);
        w[i] = at;
        const double want = (above - below) / (2 * step);
        assert_true(fabs((double)got[i] - want) <= 2e-5 + 1e-4 * fabs(want));
    }
    free(w);
    close_net(&t);
}

static void gradients_agree_with_finite_differences_in_double(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_kernels_count(); i++)
        for (size_t s = 0; s < N_SHAPES && elv_kernels_at(i) != NULL; s++)
            check_gradients(elv_kernels_at(i), shapes[s]);
}

static void memory_is_known_before_and_equal_to_what_is_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_kernels_count() * N_SHAPES * 16; i++) {
        const struct elv_kernels *k = elv_kernels_at(i / (N_SHAPES * 16));
        if (k == NULL)
            continue;
        const struct elv_model m = model(shapes[i / 16 % N_SHAPES]);
        const struct elv_nn_cfg cfg = {.model = &m,
                                       .kernels = k,
                                       .batch = 1 + (uint32_t)i % 5,
                                       .members = (uint32_t)(i % 3),
                                       .momentum = i & 1,
                                       .inference = i & 2,
                                       .keep_gradients = i & 4};
        const size_t len = elv_nn_mem(&cfg);
        struct elv_nn nn;
        void *mem = block(len); /* the sanitizer sees any byte used beyond it */
        assert_int_equal(elv_nn_init(&nn, &cfg, mem, len - 1), ELV_ERR_SPACE);
        assert_int_equal(elv_nn_init(&nn, &cfg, mem, len), ELV_OK);
        free(mem);
    }
}

static void impossible_plans_are_refused(void **state)
{
    (void)state;
    const struct elv_model big = model("1x1024x1024 | conv 1000 1x1, maxpool 15, dense 2 | ");
    struct elv_nn nn;
    char mem[1];
    struct elv_nn_cfg cfg = {.model = &big, .batch = UINT32_MAX, .members = UINT32_MAX};
    assert_int_equal(elv_nn_mem(&cfg), 0);
    assert_int_equal(elv_nn_init(&nn, &cfg, mem, SIZE_MAX), ELV_ERR_SPACE);
    cfg.batch = 0;
    assert_int_equal(elv_nn_init(&nn, &cfg, mem, SIZE_MAX), ELV_ERR_ARG);
    cfg.model = NULL;
    assert_int_equal(elv_nn_init(&nn, &cfg, mem, SIZE_MAX), ELV_ERR_ARG);
}

/* Three classes around three centres; a network that cannot learn this learns nothing. */
static void a_small_network_learns_a_separable_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        if (elv_kernels_at(i) == NULL)
            continue;
        struct net t;
        open_net(&t, "1x6x6 | conv 4 3x3 relu, maxpool 2, dense 16 relu, dense 3 | ",
                 (struct elv_nn_cfg){.kernels = elv_kernels_at(i), .batch = 30, .momentum = true});
        struct elv_rng r = random_of(4);
        float *x = elv_nn_x(&t.nn, 0);
        for (uint32_t row = 0; row < 30; row++) {
            elv_nn_labels(&t.nn, 0)[row] = row % 3;
            for (uint32_t p = 0; p < 36; p++)
                x[row * 36 + p] = 0.3f * elv_rng_normal(&r) + (p / 12 == row % 3 ? 1.0f : 0.0f);
        }
        elv_nn_set_rows(&t.nn, 0, 30);
        const struct elv_nn_rates rates = {.rate = 0.05f, .momentum = 0.9f, .decay = 1e-4f};
        double first = 0;
        for (unsigned step = 0; step < 60; step++) {
            elv_nn_forward(&t.nn);
            elv_nn_loss(&t.nn);
            first = step == 0 ? t.nn.loss[0] : first;
            elv_nn_backward(&t.nn, &rates);
        }
        elv_nn_forward(&t.nn);
        elv_nn_loss(&t.nn);
        assert_true(t.nn.loss[0] < 0.1 * first);
        assert_int_equal(t.nn.correct[0], 30);
        close_net(&t);
    }
}

static void step_alone(struct net *t, uint32_t member, uint32_t rows, float *out)
{
    fill_random(t, member, rows, 100 + rows);
    const struct elv_nn_rates rates = {.rate = 0.1f, .momentum = 0.5f};
    elv_nn_forward(&t->nn);
    elv_nn_loss(&t->nn);
    elv_nn_backward(&t->nn, &rates);
    memcpy(out, t->params + (size_t)member * t->m.n_params, t->m.n_params * sizeof *out);
}

static void a_client_in_a_cohort_ends_with_the_bits_it_reaches_alone(void **state)
{
    (void)state;
    static const uint32_t rows[4] = {5, 3, 0, 16};
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        for (size_t s = 0; s < N_SHAPES && elv_kernels_at(i) != NULL; s++) {
            struct elv_nn_cfg cfg = {.kernels = elv_kernels_at(i), .batch = 16, .members = 4};
            cfg.momentum = true;
            struct net all, one;
            open_net(&all, shapes[s], cfg);
            for (uint32_t k = 0; k < 4; k++)
                fill_random(&all, k, rows[k], 100 + rows[k]);
            const struct elv_nn_rates rates = {.rate = 0.1f, .momentum = 0.5f};
            elv_nn_forward(&all.nn);
            elv_nn_loss(&all.nn);
            elv_nn_backward(&all.nn, &rates);

            float *want = malloc(all.m.n_params * sizeof *want);
            assert_non_null(want);
            for (uint32_t k = 0; k < 4; k++) {
                cfg.members = 1;
                cfg.batch = rows[k] == 0 ? 1 : rows[k];
                open_net(&one, shapes[s], cfg);
                elv_model_init_params(&one.m, 5 + k, one.params);
                step_alone(&one, 0, rows[k], want);
                assert_memory_equal(all.params + (size_t)k * all.m.n_params, want,
                                    all.m.n_params * sizeof *want);
                if (rows[k] > 0)
                    assert_true(all.nn.loss[k] == one.nn.loss[0]);
                close_net(&one);
            }
            free(want);
            close_net(&all);
        }
    }
}

static void a_plan_for_inference_gives_the_same_loss(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        struct net a, b;
        open_net(&a, shapes[s], (struct elv_nn_cfg){.batch = 4});
        open_net(&b, shapes[s], (struct elv_nn_cfg){.batch = 4, .inference = true});
        fill_random(&a, 0, 4, 9);
        fill_random(&b, 0, 4, 9);
        elv_nn_forward(&a.nn);
        elv_nn_forward(&b.nn);
        elv_nn_loss(&a.nn);
        elv_nn_loss(&b.nn);
        assert_true(a.nn.loss[0] == b.nn.loss[0]);
        assert_memory_equal(a.nn.guess, b.nn.guess, 4 * sizeof(uint32_t));
        close_net(&a);
        close_net(&b);
    }
}

static void momentum_starts_from_rest_when_asked(void **state)
{
    (void)state;
    struct net t;
    open_net(&t, shapes[0], (struct elv_nn_cfg){.batch = 4, .momentum = true});
    float first[75], again[75];
    assert_true(t.m.n_params <= 75);
    step_alone(&t, 0, 4, first);
    elv_model_init_params(&t.m, 5, t.params);
    elv_nn_rest(&t.nn);
    step_alone(&t, 0, 4, again);
    assert_memory_equal(first, again, t.m.n_params * sizeof(float));
    close_net(&t);
}

/* Recorded once on x86-64, checked on arm64: the same digests are due on every machine. */
static void training_ends_in_the_same_bytes_everywhere(void **state)
{
    (void)state;
    static const uint8_t by_ref[] = {0xba, 0x54, 0xf5, 0x96, 0x01, 0x47, 0xfe, 0x5b,
                                     0x1f, 0xd3, 0xb2, 0x08, 0x70, 0xd3, 0x88, 0x3d,
                                     0x32, 0xfb, 0x50, 0xab, 0x4c, 0x43, 0x0e, 0x93,
                                     0x2a, 0x11, 0x52, 0x99, 0xe9, 0x58, 0x88, 0x61};
    static const uint8_t by_fusing[] = {0x94, 0x62, 0x16, 0xf8, 0xbd, 0x35, 0x68, 0xa5,
                                        0x3f, 0xf9, 0x23, 0x6f, 0x59, 0x81, 0x4b, 0xca,
                                        0x5f, 0xfb, 0x39, 0xf1, 0x91, 0x1e, 0xba, 0x4c,
                                        0xec, 0xc1, 0x76, 0xb2, 0x60, 0x97, 0x15, 0x4c};
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        const struct elv_kernels *k = elv_kernels_at(i);
        if (k == NULL)
            continue;
        struct net t;
        open_net(&t,
                 "3x13x11 | conv 5 3x2 stride 2 pad 1 relu, maxpool 2 stride 1, dense 19 relu, "
                 "dense 5 | ",
                 (struct elv_nn_cfg){.kernels = k, .batch = 13, .momentum = true});
        const struct elv_nn_rates rates = {.rate = 0.05f, .momentum = 0.9f, .decay = 1e-3f};
        for (uint32_t step = 0; step < 10; step++) {
            fill_random(&t, 0, 13 - step % 3, step);
            elv_nn_forward(&t.nn);
            elv_nn_loss(&t.nn);
            elv_nn_backward(&t.nn, &rates);
        }
        uint8_t got[ELV_SHA256_LEN];
        elv_sha256_f32(t.params, t.m.n_params, got);
        const bool fuses = strcmp(k->name, "ref") != 0 && strcmp(k->name, "x86-64-v2") != 0;
        assert_memory_equal(got, fuses ? by_fusing : by_ref, sizeof got);
        close_net(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_finite_differences_in_double),
        cmocka_unit_test(memory_is_known_before_and_equal_to_what_is_used),
        cmocka_unit_test(impossible_plans_are_refused),
        cmocka_unit_test(a_small_network_learns_a_separable_set),
        cmocka_unit_test(a_client_in_a_cohort_ends_with_the_bits_it_reaches_alone),
        cmocka_unit_test(a_plan_for_inference_gives_the_same_loss),
        cmocka_unit_test(training_ends_in_the_same_bytes_everywhere),
        cmocka_unit_test(momentum_starts_from_rest_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
