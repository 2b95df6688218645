/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/trainer.h"
#include "common/arena.h"
#include "common/rng.h"

enum { N = 53, VALUES = 16, CLASSES = 3 };

/* A data set in memory that counts how often each example is asked for and fails on demand. */
struct set {
    uint32_t n;
    float x[N][VALUES];
    uint32_t y[N];
    uint32_t asked[N];
    uint32_t calls, fail_at; /* the call that fails, from 1; 0: none */
    uint32_t order[4096], n_order;
};

static uint32_t count(void *self) { return ((struct set *)self)->n; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct set *s = self;
    if (++s->calls == s->fail_at)
        return ELV_ERR_IO;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(index[i] < s->n);
        memcpy(x + (size_t)i * VALUES, s->x[index[i]], sizeof s->x[0]);
        y[i] = s->y[index[i]];
        s->asked[index[i]]++;
        s->order[s->n_order++ % 4096] = index[i];
    }
    return ELV_OK;
}

/* A trainer over a small set, with what it stands on. */
struct bench {
    struct elv_model m;
    struct set set;
    struct elv_feed feed;
    struct elv_local local;
    struct elv_trainer trainer;
    void *mem;
    float *w;
};

static const struct elv_task two_epochs = {
    .seed = 7, .client = 3, .assignment = 4, .local_epochs = 2, .batch = 8, .rate = 0.1f};

static void open_bench(struct bench *b, const struct elv_local_cfg *wish)
{
    static const char line[] = "1x4x4 | conv 4 3x3 pad same relu, maxpool 2, dense 3 | ";
    struct elv_text_err why;
    *b = (struct bench){.set = {.n = N}};
    assert_int_equal(elv_model_parse_line(
                         &b->m, (struct elv_bytes){(const uint8_t *)line, sizeof line - 1}, &why),
                     ELV_OK);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 21});
    for (uint32_t i = 0; i < N; i++) {
        b->set.y[i] = i % CLASSES;
        for (uint32_t p = 0; p < VALUES; p++)
            b->set.x[i][p] = 0.3f * elv_rng_normal(&r) + (p % CLASSES == i % CLASSES ? 1.0f : 0.0f);
    }
    b->feed = (struct elv_feed){.self = &b->set, .count = count, .shape = shape, .get = get};
    struct elv_local_cfg cfg = *wish;
    cfg.model = &b->m;
    cfg.train = &b->feed;
    cfg.test = &b->feed;
    cfg.batch = 16;
    const size_t len = elv_local_mem(&cfg);
    b->mem = aligned_alloc(64, (len + 63) / 64 * 64);
    b->w = malloc(b->m.n_params * sizeof *b->w);
    assert_true(b->mem != NULL && b->w != NULL);
    assert_int_equal(elv_local_init(&b->local, &cfg, b->mem, len - 1), ELV_ERR_SPACE);
    assert_int_equal(elv_local_init(&b->local, &cfg, b->mem, len), ELV_OK);
    b->trainer = elv_local_trainer(&b->local);
    elv_model_init_params(&b->m, 1, b->w);
}

static void close_bench(struct bench *b)
{
    free(b->mem);
    free(b->w);
}

static enum elv_err finish(struct bench *b, uint32_t slice)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (unsigned i = 0; i < 10000 && err == ELV_ERR_BUSY; i++)
        err = b->trainer.run(b->trainer.self, slice);
    return err;
}

static void train(struct bench *b, const struct elv_task *task, uint32_t slice)
{
    assert_int_equal(b->trainer.begin(b->trainer.self, task, b->w), ELV_OK);
    assert_int_equal(finish(b, slice), ELV_OK);
}

static void epochs_visit_every_example_once_each(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, &(struct elv_local_cfg){0});
    train(&b, &two_epochs, 1);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(b.set.asked[i], 2);
    const struct elv_train_result *r = b.trainer.result(b.trainer.self);
    assert_int_equal(r->samples, N);
    assert_int_equal(r->seen, 2 * N);
    assert_int_equal(r->steps, 14); /* the last batch of an epoch is smaller */
    assert_true(r->loss_sum > 0);
    close_bench(&b);
}

static void a_number_of_steps_is_exact_and_runs_over_epochs(void **state)
{
    (void)state;
    static const uint32_t steps[] = {1, 6, 7, 8, 20};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){0});
        struct elv_task task = two_epochs;
        task.local_epochs = 0;
        task.local_steps = steps[i];
        train(&b, &task, 3);
        assert_int_equal(b.trainer.result(b.trainer.self)->steps, steps[i]);
        const uint32_t whole = steps[i] / 7, rest = steps[i] % 7;
        assert_int_equal(b.trainer.result(b.trainer.self)->seen, whole * N + rest * 8);
        close_bench(&b);
    }
}

static void slices_do_not_change_the_result(void **state)
{
    (void)state;
    struct elv_task task = two_epochs;
    task.momentum = 0.9f;
    task.decay = 1e-3f;
    float want[256];
    double loss = 0;
    for (uint32_t slice = 0; slice < 20; slice++) {
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){.momentum = true});
        assert_true(b.m.n_params <= 256);
        train(&b, &task, slice); /* a slice of 0 makes progress too */
        if (slice == 0) {
            memcpy(want, b.w, b.m.n_params * sizeof *want);
            loss = b.trainer.result(b.trainer.self)->loss_sum;
        }
        assert_memory_equal(b.w, want, b.m.n_params * sizeof *want);
        assert_true(b.trainer.result(b.trainer.self)->loss_sum == loss);
        close_bench(&b);
    }
}

static void the_batch_order_is_named_by_seed_client_and_assignment(void **state)
{
    (void)state;
    struct elv_task tasks[5] = {two_epochs, two_epochs, two_epochs, two_epochs, two_epochs};
    tasks[1].seed++;
    tasks[2].client++;
    tasks[3].assignment++;
    tasks[4].base_version++; /* not part of the name: the assignment is */
    uint32_t first[2 * N];
    for (size_t i = 0; i < 5; i++) {
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){0});
        train(&b, &tasks[i], 100);
        if (i == 0)
            memcpy(first, b.set.order, sizeof first);
        const bool same = memcmp(first, b.set.order, sizeof first) == 0;
        assert_int_equal(same, i == 0 || i == 4);
        close_bench(&b);
    }
    assert_true(memcmp(first, first + N, N * sizeof *first) != 0); /* epochs differ too */
}

static void training_makes_evaluation_better(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, &(struct elv_local_cfg){.momentum = true});
    struct elv_task task = two_epochs;
    task.local_epochs = 12;
    double loss[2] = {0};
    uint32_t correct[2] = {0};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(b.trainer.evaluate(b.trainer.self, &task, b.w), ELV_OK);
        assert_int_equal(finish(&b, 1), ELV_OK);
        const struct elv_eval_sums *e = &b.trainer.result(b.trainer.self)->eval;
        assert_int_equal(e->n, N);
        assert_int_equal(e->n_classes, CLASSES);
        uint32_t support = 0, predicted = 0;
        for (uint32_t c = 0; c < CLASSES; c++) {
            support += e->support[c];
            predicted += e->predicted[c];
            correct[i] += e->correct[c];
            assert_true(e->correct[c] <= e->support[c] && e->correct[c] <= e->predicted[c]);
        }
        assert_int_equal(support, N);
        assert_int_equal(predicted, N);
        loss[i] = e->loss;
        if (i == 0)
            train(&b, &task, 4);
    }
    assert_true(loss[1] < 0.5 * loss[0]);
    assert_true(correct[1] > N * 9 / 10);
    close_bench(&b);
}

static void work_can_be_aborted_between_slices_and_begun_again(void **state)
{
    (void)state;
    struct bench b;
    float want[256];
    open_bench(&b, &(struct elv_local_cfg){.momentum = true});
    struct elv_task task = two_epochs;
    task.momentum = 0.9f;
    b.trainer.abort(b.trainer.self); /* nothing runs */
    assert_int_equal(b.trainer.run(b.trainer.self, 1), ELV_ERR_ARG);
    train(&b, &task, 1);
    memcpy(want, b.w, b.m.n_params * sizeof *want);
    for (uint32_t after = 0; after < 14; after++) {
        elv_model_init_params(&b.m, 1, b.w);
        assert_int_equal(b.trainer.begin(b.trainer.self, &task, b.w), ELV_OK);
        for (uint32_t i = 0; i < after; i++)
            assert_int_equal(b.trainer.run(b.trainer.self, 1), ELV_ERR_BUSY);
        b.trainer.abort(b.trainer.self);
        assert_int_equal(b.trainer.run(b.trainer.self, 1), ELV_ERR_ARG);
        elv_model_init_params(&b.m, 1, b.w);
        train(&b, &task, 5); /* nothing of the aborted work is left */
        assert_memory_equal(b.w, want, b.m.n_params * sizeof *want);
    }
    close_bench(&b);
}

static void impossible_tasks_start_nothing(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, &(struct elv_local_cfg){0});
    struct elv_task rows[8];
    static const enum elv_err want[8] = {
        ELV_ERR_RANGE, ELV_ERR_RANGE,       ELV_ERR_RANGE,       ELV_ERR_RANGE,
        ELV_ERR_RANGE, ELV_ERR_UNSUPPORTED, ELV_ERR_UNSUPPORTED, ELV_ERR_UNSUPPORTED,
    };
    for (size_t i = 0; i < 8; i++)
        rows[i] = two_epochs;
    rows[0].batch = 0;
    rows[1].batch = 17; /* more than planned for */
    rows[2].local_epochs = 0;
    rows[3].local_steps = 5; /* both */
    rows[4].rate = NAN;
    rows[5].momentum = 0.9f; /* no room for velocities */
    rows[6].prox_mu = 0.1f;  /* no room for a copy of the weights */
    rows[7].arithmetic = ELV_ARITHMETIC_REFERENCE;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(b.trainer.begin(b.trainer.self, &rows[i], b.w), want[i]);
        assert_int_equal(b.trainer.run(b.trainer.self, 1), ELV_ERR_ARG);
    }
    b.set.n = 0;
    assert_int_equal(b.trainer.begin(b.trainer.self, &two_epochs, b.w), ELV_ERR_MISSING);
    assert_int_equal(b.trainer.evaluate(b.trainer.self, &two_epochs, b.w), ELV_ERR_MISSING);
    close_bench(&b);
}

static void a_feed_that_fails_ends_the_work_with_its_error(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 15; k++) { /* 14 batches: the 15th never happens */
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){0});
        b.set.fail_at = k;
        assert_int_equal(b.trainer.begin(b.trainer.self, &two_epochs, b.w), ELV_OK);
        assert_int_equal(finish(&b, 4), k <= 14 ? ELV_ERR_IO : ELV_OK);
        assert_int_equal(b.trainer.run(b.trainer.self, 1), ELV_ERR_ARG);
        close_bench(&b);
    }
}

static void bad_examples_fail_the_training_instead_of_poisoning_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){0});
        if (i == 0)
            b.set.y[17] = CLASSES;
        else
            b.set.x[17][3] = i == 1 ? NAN : INFINITY;
        assert_int_equal(b.trainer.begin(b.trainer.self, &two_epochs, b.w), ELV_OK);
        assert_int_equal(finish(&b, 4), ELV_ERR_RANGE);
        for (uint32_t p = 0; p < b.m.n_params; p++)
            assert_true(i == 2 || isfinite(b.w[p])); /* the batch before was the last step */
        close_bench(&b);
    }
}

static void a_feed_must_fit_the_model(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, &(struct elv_local_cfg){0});
    struct elv_model other = b.m;
    other.input.h = 5;
    struct elv_local t;
    struct elv_local_cfg cfg = {.model = &other, .train = &b.feed, .batch = 4};
    assert_int_equal(elv_local_init(&t, &cfg, b.mem, SIZE_MAX), ELV_ERR_MISMATCH);
    cfg = (struct elv_local_cfg){.model = &b.m, .batch = 4};
    assert_int_equal(elv_local_init(&t, &cfg, b.mem, SIZE_MAX), ELV_ERR_ARG);
    close_bench(&b);
}

static void reference_training_ends_in_the_same_bytes_everywhere(void **state)
{
    (void)state;
    static const uint8_t want[] = {0xf2, 0xde, 0xec, 0x93, 0x9d, 0x3d, 0x32, 0xc9, 0xd1, 0xa9, 0x77,
                                   0x45, 0xe8, 0x5d, 0x3e, 0x28, 0x67, 0xc0, 0x3e, 0x05, 0x26, 0x5c,
                                   0x83, 0xca, 0x6e, 0x91, 0x76, 0x4c, 0x64, 0xdc, 0xee, 0xcd};
    struct bench b;
    open_bench(&b,
               &(struct elv_local_cfg){.arithmetic = ELV_ARITHMETIC_REFERENCE, .momentum = true});
    struct elv_task task = two_epochs;
    task.arithmetic = ELV_ARITHMETIC_REFERENCE;
    task.momentum = 0.9f;
    task.decay = 1e-3f;
    train(&b, &task, 1);
    uint8_t got[ELV_SHA256_LEN];
    elv_sha256_f32(b.w, b.m.n_params, got);
    assert_memory_equal(got, want, sizeof want);
    close_bench(&b);
}

static void reference_training_with_a_proximal_term_does_too(void **state)
{
    (void)state;
    static const uint8_t want[] = {0xdd, 0xb4, 0xaf, 0xc4, 0x47, 0x15, 0x59, 0x99, 0x50, 0x31, 0xbb,
                                   0x11, 0x47, 0x1a, 0xd6, 0x1c, 0x8e, 0x61, 0xe0, 0x7e, 0x59, 0x26,
                                   0x82, 0x5f, 0xa1, 0xe5, 0x0a, 0x08, 0x5e, 0x7c, 0x46, 0x84};
    struct bench b;
    open_bench(&b,
               &(struct elv_local_cfg){.arithmetic = ELV_ARITHMETIC_REFERENCE, .proximal = true});
    struct elv_task task = two_epochs;
    task.arithmetic = ELV_ARITHMETIC_REFERENCE;
    task.prox_mu = 0.1f;
    train(&b, &task, 1);
    uint8_t got[ELV_SHA256_LEN];
    elv_sha256_f32(b.w, b.m.n_params, got);
    assert_memory_equal(got, want, sizeof want);
    close_bench(&b);
}

/* Two steps, with and without the pull: at the first there is nothing to be pulled to, at the
 * second the gradient is the same and mu * (w1 - w0) is added to it. */
static void the_proximal_term_adds_mu_times_the_way_gone_to_a_gradient(void **state)
{
    (void)state;
    static const enum elv_arithmetic kinds[] = {ELV_ARITHMETIC_FAST, ELV_ARITHMETIC_REFERENCE};
    enum { ONE, TWO, PULLED, RUNS };
    const float mu = 0.7f;
    for (size_t k = 0; k < 2; k++) {
        float start[256], w[RUNS][256];
        uint32_t n = 0;
        for (unsigned i = 0; i < RUNS; i++) {
            struct bench b;
            open_bench(&b, &(struct elv_local_cfg){.arithmetic = kinds[k], .proximal = true});
            struct elv_task task = two_epochs;
            task.arithmetic = kinds[k];
            task.local_epochs = 0;
            task.local_steps = i == ONE ? 1 : 2;
            task.prox_mu = i == PULLED ? mu : 0.0f;
            n = b.m.n_params;
            memcpy(start, b.w, n * sizeof *start);
            train(&b, &task, 1);
            memcpy(w[i], b.w, n * sizeof *start);
            close_bench(&b);
        }
        bool moved = false;
        for (uint32_t i = 0; i < n; i++) {
            const float want = w[TWO][i] - two_epochs.rate * mu * (w[ONE][i] - start[i]);
            assert_true(fabsf(w[PULLED][i] - want) < 1e-6f);
            moved = moved || fabsf(want - w[TWO][i]) > 1e-4f;
        }
        assert_true(moved);
    }
}

static void a_strong_pull_keeps_the_weights_near_their_start(void **state)
{
    (void)state;
    static const float mu[] = {0.0f, 0.1f, 1.0f, 5.0f};
    double before = INFINITY;
    for (size_t k = 0; k < 4; k++) {
        struct bench b;
        float start[256];
        open_bench(&b, &(struct elv_local_cfg){.proximal = true, .momentum = true});
        struct elv_task task = two_epochs;
        task.local_epochs = 10;
        task.momentum = 0.5f;
        task.prox_mu = mu[k];
        memcpy(start, b.w, b.m.n_params * sizeof *start);
        train(&b, &task, 3);
        double way = 0;
        for (uint32_t i = 0; i < b.m.n_params; i++)
            way += ((double)b.w[i] - (double)start[i]) * ((double)b.w[i] - (double)start[i]);
        assert_true(way < 0.9 * before);
        before = way;
        close_bench(&b);
    }
}

static void room_for_a_proximal_term_changes_nothing_but_the_memory(void **state)
{
    (void)state;
    float want[256] = {0};
    for (unsigned i = 0; i < 2; i++) {
        struct bench b;
        open_bench(&b, &(struct elv_local_cfg){.proximal = i == 1, .momentum = true});
        struct elv_task task = two_epochs;
        task.momentum = 0.9f;
        train(&b, &task, 4);
        if (i == 0)
            memcpy(want, b.w, b.m.n_params * sizeof *want);
        assert_memory_equal(b.w, want, b.m.n_params * sizeof *want);
        struct elv_local_cfg cfg = b.local.cfg;
        cfg.proximal = false;
        const size_t least = elv_local_mem(&cfg), copy = b.m.n_params * sizeof(float);
        assert_in_range(elv_local_mem(&b.local.cfg), least + i * copy,
                        least + i * (copy + ELV_ARENA_ALIGN - 1));
        cfg.train = NULL; /* an evaluation is not pulled anywhere */
        const size_t evaluates = elv_local_mem(&cfg);
        cfg.proximal = true;
        assert_int_equal(elv_local_mem(&cfg), evaluates);
        close_bench(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_visit_every_example_once_each),
        cmocka_unit_test(a_number_of_steps_is_exact_and_runs_over_epochs),
        cmocka_unit_test(slices_do_not_change_the_result),
        cmocka_unit_test(the_batch_order_is_named_by_seed_client_and_assignment),
        cmocka_unit_test(training_makes_evaluation_better),
        cmocka_unit_test(work_can_be_aborted_between_slices_and_begun_again),
        cmocka_unit_test(impossible_tasks_start_nothing),
        cmocka_unit_test(a_feed_that_fails_ends_the_work_with_its_error),
        cmocka_unit_test(bad_examples_fail_the_training_instead_of_poisoning_it),
        cmocka_unit_test(a_feed_must_fit_the_model),
        cmocka_unit_test(reference_training_ends_in_the_same_bytes_everywhere),
        cmocka_unit_test(reference_training_with_a_proximal_term_does_too),
        cmocka_unit_test(the_proximal_term_adds_mu_times_the_way_gone_to_a_gradient),
        cmocka_unit_test(a_strong_pull_keeps_the_weights_near_their_start),
        cmocka_unit_test(room_for_a_proximal_term_changes_nothing_but_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
