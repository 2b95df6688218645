/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"
#include "common/rng.h"
#include "kernels/kernels.h"

enum { MEMBERS = 2, GAP = 3 }; /* parameters of two members lie GAP floats apart */

static struct elv_rng rng;

static void *take(size_t len)
{
    void *p = malloc(len == 0 ? 1 : len); /* exactly enough: the sanitizer sees one float more */
    assert_non_null(p);
    memset(p, 0x7F, len);
    return p;
}

static float *randoms(size_t n)
{
    float *v = take(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = elv_rng_normal(&rng);
    return v;
}

static float *magnitudes(const float *v, size_t n)
{
    float *m = take(n * sizeof *m);
    for (size_t i = 0; i < n; i++)
        m[i] = fabsf(v[i]);
    return m;
}

static const struct elv_kernels *ref(void) { return elv_kernels_by_name("ref"); }

static bool fuses(const struct elv_kernels *k)
{
    return strcmp(k->name, "ref") != 0 && strcmp(k->name, "x86-64-v2") != 0;
}

static void *scratch_of(size_t len)
{
    return len == 0 ? NULL : aligned_alloc(64, (len + 63) / 64 * 64);
}

/* What three operations of a layer write, for one table. */
struct outputs {
    float *y, *dx, *dw, *db;
    size_t n_y, n_dx, n_dw, n_db; /* of all members; dw and db include the gaps */
};

static struct outputs outputs(size_t n_y, size_t n_dx, size_t n_dw, size_t n_db)
{
    return (struct outputs){take(n_y * 4), take(n_dx * 4), take(n_dw * 4), take(n_db * 4),
                            n_y,           n_dx,           n_dw,           n_db};
}

static void drop(struct outputs *o)
{
    free(o->y);
    free(o->dx);
    free(o->dw);
    free(o->db);
}

/* Within `terms` roundings of the sum of magnitudes, which the reference computes from |inputs|. */
static void check_near(const float *got, const float *want, const float *magnitude, size_t n,
                       size_t terms)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, want + i, sizeof bits);
        if (bits == 0x7F7F7F7F) { /* nobody wrote here: neither may the other */
            assert_memory_equal(got + i, want + i, sizeof *got);
            continue;
        }
        const double bound = (double)terms * 0x1p-23 * (double)magnitude[i] + 1e-37;
        assert_true(fabs((double)got[i] - (double)want[i]) <= bound);
    }
}

static void check_all_near(const struct outputs *got, const struct outputs *want,
                           const struct outputs *magnitude, size_t terms)
{
    check_near(got->y, want->y, magnitude->y, want->n_y, terms);
    check_near(got->dx, want->dx, magnitude->dx, want->n_dx, terms);
    check_near(got->dw, want->dw, magnitude->dw, want->n_dw, terms);
    check_near(got->db, want->db, magnitude->db, want->n_db, terms);
}

static void check_all_equal(const struct outputs *got, const struct outputs *want)
{
    assert_memory_equal(got->y, want->y, want->n_y * 4);
    assert_memory_equal(got->dx, want->dx, want->n_dx * 4);
    assert_memory_equal(got->dw, want->dw, want->n_dw * 4);
    assert_memory_equal(got->db, want->db, want->n_db * 4);
}

static void run_dense(const struct elv_kernels *k, struct elv_dense a, struct outputs *o)
{
    a.y = o->y;
    a.dx = o->dx;
    a.dw = o->dw;
    a.db = o->db;
    a.scratch = scratch_of(k->dense_scratch(a.of.rows_cap, a.n_in, a.n_out));
    k->dense_forward(&a);
    k->dense_back_data(&a);
    k->dense_back_weight(&a);
    assert_int_equal(k->sync(), ELV_OK);
    free(a.scratch);
}

static void run_conv(const struct elv_kernels *k, struct elv_conv a, struct outputs *o)
{
    a.y = o->y;
    a.dx = o->dx;
    a.dw = o->dw;
    a.db = o->db;
    a.scratch = scratch_of(k->conv_scratch(a.l));
    k->conv_forward(&a);
    k->conv_back_data(&a);
    k->conv_back_weight(&a);
    assert_int_equal(k->sync(), ELV_OK);
    free(a.scratch);
}

/* Compares every table's outputs with the reference, and those that fuse with each other. */
struct verdicts {
    struct outputs want, magnitude, first; /* first: of the first table that fuses */
    bool has_first;
    size_t terms;
};

static void judge(struct verdicts *v, const struct elv_kernels *k, struct outputs *got)
{
    check_all_near(got, &v->want, &v->magnitude, v->terms);
    if (!fuses(k)) {
        check_all_equal(got, &v->want);
        drop(got);
    } else if (v->has_first) {
        check_all_equal(got, &v->first);
        drop(got);
    } else {
        v->first = *got;
        v->has_first = true;
    }
}

static void drop_verdicts(struct verdicts *v)
{
    drop(&v->want);
    drop(&v->magnitude);
    if (v->has_first)
        drop(&v->first);
}

static void check_dense(uint32_t n_in, uint32_t n_out, uint32_t rows_cap, const uint32_t *rows)
{
    const size_t n_w = (size_t)n_in * n_out, all = (MEMBERS - 1) * (n_w + GAP) + n_w;
    const size_t n_b = (MEMBERS - 1) * (n_w + GAP) + n_out;
    const size_t n_x = (size_t)MEMBERS * rows_cap * n_in, n_y = (size_t)MEMBERS * rows_cap * n_out;
    float *x = randoms(n_x), *w = randoms(all), *b = randoms(n_b), *dy = randoms(n_y);
    float *mx = magnitudes(x, n_x), *mw = magnitudes(w, all), *mb = magnitudes(b, n_b),
          *mdy = magnitudes(dy, n_y);
    const struct elv_dense a = {.of = {MEMBERS, rows_cap, rows, n_w + GAP, n_w + GAP},
                                .n_in = n_in,
                                .n_out = n_out,
                                .x = x,
                                .w = w,
                                .b = b,
                                .dy = dy};
    struct elv_dense m = a;
    m.x = mx;
    m.w = mw;
    m.b = mb;
    m.dy = mdy;
    struct verdicts v = {outputs(n_y, n_x, all, n_b), outputs(n_y, n_x, all, n_b), {0}, false, 0};
    v.terms = (n_in > n_out ? n_in : n_out) + rows_cap + 1;
    run_dense(ref(), a, &v.want);
    run_dense(ref(), m, &v.magnitude);
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        if (elv_kernels_at(i) == NULL)
            continue;
        struct outputs got = outputs(n_y, n_x, all, n_b);
        run_dense(elv_kernels_at(i), a, &got);
        judge(&v, elv_kernels_at(i), &got);
    }
    drop_verdicts(&v);
    float *const done[] = {x, w, b, dy, mx, mw, mb, mdy};
    for (size_t i = 0; i < 8; i++)
        free(done[i]);
}

/* Sizes at, below and above every vector width and tile. */
static void dense_layers_agree_on_all_tables(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1,  2,  3,  4,  5,  7,  8,  9,  12,
                                     15, 16, 17, 24, 25, 31, 33, 47, 50};
    enum { N = sizeof sizes / sizeof sizes[0] };
    rng = elv_rng_of((struct elv_rng_key){.seed = 1});
    for (size_t i = 0; i < N; i++) {
        for (size_t turn = 0; turn < N; turn++) {
            const uint32_t n_out = sizes[turn], cap = sizes[elv_rng_below(&rng, N)];
            const uint32_t rows[MEMBERS] = {cap, elv_rng_below(&rng, cap + 1)};
            check_dense(sizes[i], n_out, cap, rows);
        }
    }
    const uint32_t rows[MEMBERS] = {32, 10};
    check_dense(784, 20, 32, rows);
}

static struct elv_layer conv_layer(const char *line)
{
    struct elv_model m;
    assert_int_equal(
        elv_model_parse_line(&m, (struct elv_bytes){(const uint8_t *)line, strlen(line)}, NULL),
        ELV_OK);
    return m.layers[0];
}

static void check_conv(const char *line)
{
    const struct elv_layer l = conv_layer(line);
    static const uint32_t rows[MEMBERS] = {2, 1};
    const size_t n_in = elv_shape_len(l.in), n_out = elv_shape_len(l.out);
    const size_t apart = l.n_weight + GAP, all = apart + l.n_weight, n_b = apart + l.n_bias;
    const size_t n_x = MEMBERS * 2 * n_in, n_y = MEMBERS * 2 * n_out;
    float *x = randoms(n_x), *w = randoms(all), *b = randoms(n_b), *dy = randoms(n_y);
    float *mx = magnitudes(x, n_x), *mw = magnitudes(w, all), *mb = magnitudes(b, n_b),
          *mdy = magnitudes(dy, n_y);
    const struct elv_conv a = {
        .of = {MEMBERS, 2, rows, apart, apart}, .l = &l, .x = x, .w = w, .b = b, .dy = dy};
    struct elv_conv m = a;
    m.x = mx;
    m.w = mw;
    m.b = mb;
    m.dy = mdy;
    struct verdicts v = {outputs(n_y, n_x, all, n_b), outputs(n_y, n_x, all, n_b), {0}, false, 0};
    v.terms = l.n_weight + 2 * (size_t)l.out.h * l.out.w;
    run_conv(ref(), a, &v.want);
    run_conv(ref(), m, &v.magnitude);
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        if (elv_kernels_at(i) == NULL)
            continue;
        struct outputs got = outputs(n_y, n_x, all, n_b);
        run_conv(elv_kernels_at(i), a, &got);
        judge(&v, elv_kernels_at(i), &got);
    }
    drop_verdicts(&v);
    float *const done[] = {x, w, b, dy, mx, mw, mb, mdy};
    for (size_t i = 0; i < 8; i++)
        free(done[i]);
}

static void convolutions_agree_on_all_tables(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "1x28x28 | conv 8 5x5, dense 2",
        "8x12x12 | conv 16 5x5, dense 2",
        "1x1x1 | conv 2 1x1, dense 2",
        "3x7x9 | conv 5 3x3 pad same, dense 2",
        "3x7x9 | conv 5 3x2 stride 2 pad 1, dense 2",
        "2x9x9 | conv 7 4x4 stride 3 pad 3, dense 2",
        "2x5x17 | conv 17 1x1, dense 2",
        "4x16x33 | conv 3 2x9 pad 1, dense 2",
        "40x40x40 | conv 2 5x5 pad same, dense 2", /* more than one block of patches */
        "40x41x40 | conv 3 3x3 stride 2 pad same, dense 2",
        "70x3x70 | conv 2 3x3 pad same, dense 2", /* one row is more than a block */
        "1x20x8 | conv 9 10x4 stride 2 pad 1, dense 2",
    };
    rng = elv_rng_of((struct elv_rng_key){.seed = 2});
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        check_conv(lines[i]);
}

static void pooling_is_exact_and_lets_a_nan_through(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "3x24x24 | maxpool 2, dense 2",         "2x16x33 | maxpool 2, dense 2",
        "2x5x5 | maxpool 2, dense 2",           "1x9x9 | maxpool 3 stride 2, dense 2",
        "1x9x19 | maxpool 2 stride 1, dense 2", "2x30x30 | maxpool 15, dense 2",
        "1x7x7 | maxpool 1 stride 3, dense 2",
    };
    rng = elv_rng_of((struct elv_rng_key){.seed = 3});
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct elv_layer l = conv_layer(lines[i]);
        static const uint32_t rows[MEMBERS] = {3, 2};
        const size_t n_x = (size_t)MEMBERS * 3 * elv_shape_len(l.in);
        const size_t n_y = (size_t)MEMBERS * 3 * elv_shape_len(l.out);
        float *x = randoms(n_x), *dy = randoms(n_y);
        for (size_t p = 0; p < n_x; p++) /* equal values are common, so ties must agree */
            x[p] = p % 97 == 5 ? NAN : (float)(int)(x[p] * 2.0f);
        float *want_y = take(n_y * 4), *want_dx = take(n_x * 4);
        uint8_t *want_from = take(n_y);
        const struct elv_pool a = {.of = {MEMBERS, 3, rows, 0, 0}, .l = &l, .x = x, .dy = dy};
        struct elv_pool r = a;
        r.y = want_y;
        r.from = want_from;
        r.dx = want_dx;
        ref()->pool_forward(&r);
        ref()->pool_back(&r);
        if (l.stride <= l.kernel_h)
            assert_true(isnan(want_y[5 / l.stride]) || l.stride * l.out.w < 6);
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            if (elv_kernels_at(t) == NULL)
                continue;
            struct elv_pool g = a;
            g.y = take(n_y * 4);
            g.from = take(n_y);
            g.dx = take(n_x * 4);
            elv_kernels_at(t)->pool_forward(&g);
            elv_kernels_at(t)->pool_back(&g);
            assert_memory_equal(g.y, want_y, n_y * 4);
            assert_memory_equal(g.from, want_from, n_y);
            assert_memory_equal(g.dx, want_dx, n_x * 4);
            free(g.y);
            free(g.from);
            free(g.dx);
        }
        free(x);
        free(dy);
        free(want_y);
        free(want_from);
        free(want_dx);
    }
}

static void relu_is_exact_and_lets_a_nan_through(void **state)
{
    (void)state;
    static const uint32_t rows[MEMBERS] = {2, 1};
    rng = elv_rng_of((struct elv_rng_key){.seed = 4});
    for (uint32_t n = 1; n <= 70; n++) {
        const size_t all = MEMBERS * 2 * (size_t)n;
        float *y = randoms(all), *dy = randoms(all);
        y[0] = NAN;
        y[n / 2] = n / 2 == 0 ? NAN : 0.0f;
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            const struct elv_kernels *k = elv_kernels_at(t);
            if (k == NULL)
                continue;
            float *gy = take(all * 4), *gdy = take(all * 4);
            memcpy(gy, y, all * 4);
            memcpy(gdy, dy, all * 4);
            const struct elv_relu a = {.of = {MEMBERS, 2, rows, 0, 0}, .n = n, .y = gy, .dy = gdy};
            k->relu_forward(&a);
            k->relu_back(&a);
            for (size_t i = 0; i < all; i++) {
                const bool used = i < 3 * (size_t)n;
                const float want = used && y[i] < 0.0f ? 0.0f : y[i];
                const float back = !used || y[i] > 0.0f ? dy[i] : 0.0f;
                assert_true(gy[i] == want || (isnan(gy[i]) && isnan(want)));
                assert_true(gdy[i] == back);
            }
            free(gy);
            free(gdy);
        }
        free(y);
        free(dy);
    }
}

static void losses_agree_with_the_formula_in_double(void **state)
{
    (void)state;
    enum { C = 7, ROWS = 5 };
    rng = elv_rng_of((struct elv_rng_key){.seed = 5});
    for (unsigned turn = 0; turn < 50; turn++) {
        float z[ROWS * C], dz[ROWS * C];
        uint32_t label[ROWS], guess[ROWS], correct = 99, want_correct = 0;
        static const uint32_t rows[1] = {ROWS};
        double loss = 0, want = 0;
        for (size_t i = 0; i < ROWS * C; i++) /* from flat to so steep that powers vanish */
            z[i] = elv_rng_normal(&rng) * (float)(1u << turn % 8);
        for (size_t r = 0; r < ROWS; r++)
            label[r] = elv_rng_below(&rng, C);
        const struct elv_xent a = {{1, ROWS, rows, 0, 0}, C, z, label, dz, guess, &loss, &correct};
        elv_kernels_best()->xent(&a);
        for (size_t r = 0; r < ROWS; r++) {
            double sum = 0;
            uint32_t best = 0;
            for (uint32_t c = 0; c < C; c++) {
                sum += exp((double)z[r * C + c]);
                best = z[r * C + c] > z[r * C + best] ? c : best;
            }
            want += log(sum) - (double)z[r * C + label[r]];
            want_correct += best == label[r];
            assert_int_equal(guess[r], best);
            for (uint32_t c = 0; c < C; c++) {
                const double p = exp((double)z[r * C + c]) / sum - (c == label[r] ? 1.0 : 0.0);
                assert_true(fabs((double)dz[r * C + c] - p / ROWS) < 3e-7);
            }
        }
        assert_true(fabs(loss - want) <= 1e-5 * (1 + fabs(want)));
        assert_int_equal(correct, want_correct);
    }
}

static void a_loss_that_is_no_number_is_seen(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        float z[3] = {0.5f, bad[i], 1.0f};
        const uint32_t rows[1] = {1}, label[1] = {1};
        uint32_t guess, correct;
        double loss = 0;
        const struct elv_xent a = {{1, 1, rows, 0, 0}, 3, z, label, NULL, &guess, &loss, &correct};
        elv_kernels_best()->xent(&a);
        assert_true(isnan(loss) || isinf(loss));
    }
}

/* One parameter's step by the definition; `v` NULL: no momentum. */
static float stepped(const struct elv_sgd *a, bool fused, float w, float g, float home, float *v)
{
    float step = fused ? fmaf(a->decay, w, g) : g + a->decay * w;
    if (a->home != NULL)
        step = fused ? fmaf(a->pull, w - home, step) : step + a->pull * (w - home);
    if (v != NULL)
        *v = step = fused ? fmaf(a->momentum, *v, step) : step + a->momentum * *v;
    return fused ? fmaf(-a->rate, step, w) : w - a->rate * step;
}

static void descent_agrees_on_all_tables(void **state)
{
    (void)state;
    static const uint32_t rows[MEMBERS] = {1, 1};
    rng = elv_rng_of((struct elv_rng_key){.seed = 6});
    for (uint32_t n = 1; n <= 70; n++) {
        float *w = randoms(2 * n), *g = randoms(2 * n), *v = randoms(2 * n), *h = randoms(2 * n);
        for (size_t t = 4 * elv_kernels_count(); t-- > 0;) {
            const struct elv_kernels *k = elv_kernels_at(t / 4);
            const bool with_v = t % 2 == 1, with_home = t / 2 % 2 == 1;
            if (k == NULL)
                continue;
            float *gw = take(8 * n), *gv = take(8 * n);
            memcpy(gw, w, 8 * n);
            memcpy(gv, v, 8 * n);
            const struct elv_sgd a = {.of = {MEMBERS, 1, rows, n, n},
                                      .n = n,
                                      .w = gw,
                                      .g = g,
                                      .v = with_v ? gv : NULL,
                                      .v_stride = n,
                                      .rate = 0.1f,
                                      .momentum = 0.9f,
                                      .decay = 0.01f,
                                      .home = with_home ? h : NULL,
                                      .home_stride = n,
                                      .pull = 0.3f};
            k->sgd(&a);
            for (uint32_t i = 0; i < 2 * n; i++) {
                float want_v = v[i];
                const float want = stepped(&a, fuses(k), w[i], g[i], h[i], with_v ? &want_v : NULL);
                assert_true(gw[i] == want);
                assert_true(gv[i] == want_v);
            }
            free(gw);
            free(gv);
        }
        free(w);
        free(g);
        free(v);
        free(h);
    }
}

/* The definition itself: one fused operation per product, in order. */
static void fused_means_one_rounding_per_product(void **state)
{
    (void)state;
    enum { IN = 37, OUT = 5 };
    rng = elv_rng_of((struct elv_rng_key){.seed = 7});
    float *x = randoms(IN), *w = randoms(IN * OUT), *b = randoms(OUT);
    for (size_t t = 0; t < elv_kernels_count(); t++) {
        const struct elv_kernels *k = elv_kernels_at(t);
        if (k == NULL)
            continue;
        const uint32_t rows[1] = {1};
        float y[OUT];
        void *scratch = scratch_of(k->dense_scratch(1, IN, OUT));
        const struct elv_dense a = {.of = {1, 1, rows, 0, 0},
                                    .n_in = IN,
                                    .n_out = OUT,
                                    .x = x,
                                    .w = w,
                                    .b = b,
                                    .y = y,
                                    .scratch = scratch};
        k->dense_forward(&a);
        for (size_t o = 0; o < OUT; o++) {
            float sum = b[o];
            for (size_t i = 0; i < IN; i++) {
                const float product = x[i] * w[o * IN + i];
                sum = fuses(k) ? fmaf(x[i], w[o * IN + i], sum) : sum + product;
            }
            assert_true(y[o] == sum);
        }
        free(scratch);
    }
    free(x);
    free(w);
    free(b);
}

static void differences_and_norms_are_exact(void **state)
{
    (void)state;
    rng = elv_rng_of((struct elv_rng_key){.seed = 8});
    for (size_t n = 0; n <= 70; n++) {
        float *a = randoms(n), *b = randoms(n), *want = take(n * 4);
        double lane[16] = {0}, norm = 0;
        for (size_t i = 0; i < n; i++) {
            want[i] = a[i] - b[i];
            lane[i % 16] += (double)a[i] * (double)a[i];
        }
        const double want_norm = elv_lanes16_f64(lane);
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            const struct elv_kernels *k = elv_kernels_at(t);
            if (k == NULL)
                continue;
            float *got = take(n * 4);
            k->sub(got, a, b, n);
            assert_memory_equal(got, want, n * 4);
            memcpy(got, a, n * 4);
            k->sub(got, got, b, n); /* in place */
            assert_memory_equal(got, want, n * 4);
            k->norm2(&norm, a, n);
            assert_true(norm == want_norm);
            free(got);
        }
        free(a);
        free(b);
        free(want);
    }
}

static void lanes_are_joined_in_one_order(void **state)
{
    (void)state;
    float f[16];
    double d[16];
    for (unsigned i = 0; i < 16; i++)
        d[i] = f[i] = i == 0 ? 0x1p24f : 1.0f; /* 1 vanishes next to 2^24, 2 does not */
    /* 2^24 + 1 = 2^24; then pairs of 2, of 4, of 8: 2^24 + 2 + 4 + 8 */
    assert_true(elv_lanes16(f) == 0x1p24f + 14.0f);
    assert_true(elv_lanes16_f64(d) == 0x1p24 + 15.0);
}

/* The wire's encoder and the kernels have one definition. */
static void check_codec_agrees(const float *v, size_t n, const int8_t *q, float scale)
{
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX];
    size_t len;
    uint32_t count;
    const struct elv_codec_arg arg = {0};
    if (n == 0 || n > ELV_CHUNK_PAYLOAD_MAX - sizeof scale)
        return;
    assert_int_equal(
        elv_codec_by_id(ELV_CODEC_Q8)
            ->encode(v, (uint32_t)n, 0, 0, &arg, payload, sizeof payload, &len, &count),
        ELV_OK);
    struct elv_rd r = elv_rd_of((struct elv_bytes){payload, len});
    assert_true(elv_rd_f32(&r) == scale);
    assert_memory_equal(r.at, q, n);
}

static void quantising_is_exact_and_within_half_a_step(void **state)
{
    (void)state;
    rng = elv_rng_of((struct elv_rng_key){.seed = 9});
    for (size_t n = 0; n <= 70; n++) {
        float *v = randoms(n);
        for (size_t i = 0; i < n; i++)
            v[i] *= n % 3 == 0 ? 1e-25f : n % 3 == 1 ? 1e30f : 1.0f;
        int8_t *want = take(n);
        float want_scale = -1;
        ref()->quantise_q8(want, &want_scale, v, n);
        check_codec_agrees(v, n, want, want_scale);
        for (size_t i = 0; i < n; i++)
            assert_true(fabsf(v[i] - want_scale * (float)want[i]) <= 0.50001f * want_scale);
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            const struct elv_kernels *k = elv_kernels_at(t);
            if (k == NULL)
                continue;
            int8_t *q = take(n);
            float scale = -1;
            k->quantise_q8(q, &scale, v, n);
            assert_memory_equal(q, want, n);
            assert_memory_equal(&scale, &want_scale, 4);
            free(q);
        }
        free(v);
        free(want);
    }
}

static void quantising_keeps_its_edges(void **state)
{
    (void)state;
    static const struct {
        float v[4], scale;
        int8_t q[4];
    } rows[] = {
        {{0, 0, -0.0f, 0}, 0, {0, 0, 0, 0}},
        {{1, -1, 0, 0.5f}, 1.0f / 127, {127, -127, 0, 64}}, /* 63.5 goes to even */
        {{127, 2.5f, 3.5f, -2.5f}, 1, {127, 2, 4, -2}},     /* ties to even */
        {{0x1p-101f, 0, 0, 0}, 0, {0, 0, 0, 0}},            /* too small to scale */
        {{0x1p-149f, 0, 0, 0}, 0, {0, 0, 0, 0}},
        {{0x1p-94f, 0, 0, 0}, 0, {0, 0, 0, 0}},
        {{0x1p-93f, 0, 0, 0}, 0x1p-93f / 127, {127, 0, 0, 0}},
        {{FLT_MAX, -FLT_MAX, 1, 0}, FLT_MAX / 127, {127, -127, 0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            int8_t q[4];
            float scale = -1;
            if (elv_kernels_at(t) == NULL)
                continue;
            elv_kernels_at(t)->quantise_q8(q, &scale, rows[i].v, 4);
            assert_true(scale == rows[i].scale);
            assert_memory_equal(q, rows[i].q, 4);
        }
    }
}

/* Views with random ranges at odd addresses; the bytes live in `store`. */
struct update {
    struct elv_view views[12];
    uint8_t *store[12];
};

enum { P = 33000 }; /* more than two blocks of the fold */

static struct update random_update(float bound)
{
    struct update u;
    for (uint32_t k = 0; k < 12; k++) {
        struct elv_view *v = &u.views[k];
        v->kind = k % 2 ? ELV_VIEW_Q8 : ELV_VIEW_F32;
        v->first = k < 6 ? 0 : elv_rng_below(&rng, P);
        v->n = k < 6 ? P : elv_rng_below(&rng, P - v->first + 1);
        v->scale = elv_rng_unit(&rng) * bound / 127.0f;
        v->weight = k == 0 ? 0x7FFFFFFF : elv_rng_u32(&rng) >> 20;
        const size_t size = v->kind == ELV_VIEW_Q8 ? 1 : 4;
        u.store[k] = take(v->n * size + 1);
        v->values = u.store[k] + 1;
        for (uint32_t i = 0; i < v->n; i++) {
            const float x = i % 50 == 0 ? (i % 100 ? bound : -bound)
                                        : (2.0f * elv_rng_unit(&rng) - 1.0f) * bound;
            const int8_t q = (int8_t)(elv_rng_below(&rng, 255) - 127);
            memcpy(u.store[k] + 1 + i * size, size == 1 ? (const void *)&q : (const void *)&x,
                   size);
        }
    }
    return u;
}

static float value_of(const struct elv_view *v, uint32_t i)
{
    float x;
    if (v->kind == ELV_VIEW_Q8)
        return v->scale * (float)((const int8_t *)v->values)[i];
    memcpy(&x, (const uint8_t *)v->values + 4 * (size_t)i, sizeof x);
    return x;
}

static void folds_are_exact_in_any_order_and_grouping(void **state)
{
    (void)state;
    static const struct {
        float bound;
        int shift;
    } rows[] = {{8, 27}, {1, 30}, {0.25f, 32}, {1024, 20}, {0x1p31f, -1}};
    rng = elv_rng_of((struct elv_rng_key){.seed = 10});
    for (size_t c = 0; c < sizeof rows / sizeof rows[0]; c++) {
        struct update u = random_update(rows[c].bound);
        int64_t *want = take(P * sizeof *want), *got = take(P * sizeof *got);
        memset(want, 0, P * sizeof *want);
        for (uint32_t k = 0; k < 12; k++) {
            const struct elv_view *v = &u.views[k];
            for (uint32_t i = 0; i < v->n; i++)
                want[v->first + i] += (int64_t)v->weight *
                                      llrint((double)value_of(v, i) * exp2((double)rows[c].shift));
        }
        for (size_t t = 0; t < elv_kernels_count() * 8; t++) {
            const struct elv_kernels *k = elv_kernels_at(t / 8);
            if (k == NULL)
                continue;
            uint32_t order[12];
            struct elv_view mixed[12];
            for (uint32_t i = 0; i < 12; i++)
                order[i] = i;
            if (t % 8 > 0)
                elv_rng_shuffle(&rng, order, 12);
            for (uint32_t i = 0; i < 12; i++)
                mixed[i] = u.views[order[i]];
            memset(got, 0, P * sizeof *got);
            for (uint32_t at = 0, n; at < 12; at += n) {
                n = t % 8 == 0 ? 12 : 1 + elv_rng_below(&rng, 12 - at);
                k->fold(got, mixed + at, n, rows[c].shift);
            }
            assert_memory_equal(got, want, P * sizeof *got);
        }
        for (uint32_t k = 0; k < 12; k++)
            free(u.store[k]);
        free(want);
        free(got);
    }
}

static void applying_rounds_the_product_and_then_the_sum(void **state)
{
    (void)state;
    rng = elv_rng_of((struct elv_rng_key){.seed = 11});
    struct update u = random_update(1.0f);
    float *start = randoms(P), *want = take(P * 4), *got = take(P * 4);
    memcpy(want, start, P * 4);
    uint32_t fused_differs = 0;
    for (uint32_t k = 0; k < 12; k++) {
        const struct elv_view *v = &u.views[k];
        for (uint32_t i = 0; i < v->n; i++) {
            volatile float product = value_of(v, i); /* kept apart from the sum */
            if (v->kind == ELV_VIEW_Q8)
                fused_differs += fmaf(v->scale, (float)((const int8_t *)v->values)[i],
                                      want[v->first + i]) != want[v->first + i] + product;
            want[v->first + i] += product;
        }
    }
    assert_true(fused_differs > 100); /* the test can tell */
    for (size_t t = 0; t < elv_kernels_count(); t++) {
        if (elv_kernels_at(t) == NULL)
            continue;
        memcpy(got, start, P * 4);
        elv_kernels_at(t)->apply(got, u.views, 12);
        assert_memory_equal(got, want, P * 4);
    }
    for (uint32_t k = 0; k < 12; k++)
        free(u.store[k]);
    free(start);
    free(want);
    free(got);
}

static void values_beyond_the_bound_are_counted(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 8.000001f, -8.000001f, FLT_MAX};
    for (uint32_t n = 0; n <= 70; n++) {
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            const struct elv_kernels *k = elv_kernels_at(t);
            if (k == NULL)
                continue;
            uint8_t *store = take(4 * (size_t)n + 1);
            struct elv_view v = {.kind = ELV_VIEW_F32, .values = store + 1, .n = n};
            uint32_t count = 99;
            for (uint32_t i = 0; i < n; i++)
                memcpy(store + 1 + 4 * (size_t)i, &(float){i % 2 ? 8.0f : -8.0f}, 4);
            k->check(&count, &v, 8.0f);
            assert_int_equal(count, 0);
            for (uint32_t i = 0; i < n; i += 3)
                memcpy(store + 1 + 4 * (size_t)i, &bad[i / 3 % 6], 4);
            k->check(&count, &v, 8.0f);
            assert_int_equal(count, (n + 2) / 3);

            for (uint32_t i = 0; i < n; i++)
                store[1 + i] = (uint8_t)(i % 5 == 0 ? -127 : 63);
            v = (struct elv_view){ELV_VIEW_Q8, store + 1, 0.1f, 0, n, 1};
            k->check(&count, &v, 12.8f);
            assert_int_equal(count, 0);
            k->check(&count, &v, 12.6f);
            assert_int_equal(count, (n + 4) / 5);
            v.scale = NAN;
            k->check(&count, &v, 12.6f);
            assert_int_equal(count, n);
            free(store);
        }
    }
}

static void means_come_back_from_the_sums(void **state)
{
    (void)state;
    rng = elv_rng_of((struct elv_rng_key){.seed = 12});
    for (size_t n = 0; n <= 70; n++) {
        int64_t *acc = take(n * sizeof *acc);
        for (size_t i = 0; i < n; i++)
            acc[i] = (int64_t)elv_rng_u64(&rng) >> (3 + i % 60);
        const double gain = 1.0 / (3.0 * 0x1p27);
        for (size_t t = 0; t < elv_kernels_count(); t++) {
            float *got = take(n * 4);
            if (elv_kernels_at(t) != NULL) {
                elv_kernels_at(t)->unfold(got, acc, gain, n);
                for (size_t i = 0; i < n; i++)
                    assert_true(got[i] == (float)((double)acc[i] * gain));
            }
            free(got);
        }
        free(acc);
    }
}

static void tables_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(ref()->name, "ref");
    assert_null(elv_kernels_by_name("sse9"));
    assert_null(elv_kernels_by_name(""));
    assert_ptr_equal(elv_kernels_at(elv_kernels_count() - 1), ref());
    assert_null(elv_kernels_at(elv_kernels_count()));
    for (size_t i = 0; i < elv_kernels_count(); i++) {
        const struct elv_kernels *k = elv_kernels_at(i);
        print_message("table %zu: %s\n", i, k == NULL ? "(not on this computer)" : k->name);
        if (k != NULL)
            assert_ptr_equal(elv_kernels_by_name(k->name), k);
    }
    const struct elv_kernels *best = elv_kernels_best();
    assert_ptr_equal(elv_kernels_by_name("simd"), best == ref() ? NULL : best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_found_by_name),
        cmocka_unit_test(dense_layers_agree_on_all_tables),
        cmocka_unit_test(convolutions_agree_on_all_tables),
        cmocka_unit_test(pooling_is_exact_and_lets_a_nan_through),
        cmocka_unit_test(relu_is_exact_and_lets_a_nan_through),
        cmocka_unit_test(losses_agree_with_the_formula_in_double),
        cmocka_unit_test(a_loss_that_is_no_number_is_seen),
        cmocka_unit_test(descent_agrees_on_all_tables),
        cmocka_unit_test(fused_means_one_rounding_per_product),
        cmocka_unit_test(differences_and_norms_are_exact),
        cmocka_unit_test(lanes_are_joined_in_one_order),
        cmocka_unit_test(quantising_is_exact_and_within_half_a_step),
        cmocka_unit_test(quantising_keeps_its_edges),
        cmocka_unit_test(folds_are_exact_in_any_order_and_grouping),
        cmocka_unit_test(applying_rounds_the_product_and_then_the_sum),
        cmocka_unit_test(values_beyond_the_bound_are_counted),
        cmocka_unit_test(means_come_back_from_the_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
