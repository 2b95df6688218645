/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own test set: sums over all examples, whatever the batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "server/test_set.h"

enum { N = 7, CLASSES = 3 };

/* Example i shines at place i % 3, and is labelled so, but for the last one. */
static uint32_t n_examples = N, label_of_last = 2;
static enum elv_err fails;

static uint32_t count(void *self)
{
    (void)self;
    return n_examples;
}

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = CLASSES;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    (void)self;
    for (uint32_t i = 0; i < n; i++) {
        assert_in_range(index[i], 0, n_examples - 1);
        for (uint32_t k = 0; k < CLASSES; k++)
            x[i * CLASSES + k] = index[i] % CLASSES == k ? 1.0f : 0.0f;
        y[i] = index[i] == N - 1 ? label_of_last : index[i] % CLASSES;
    }
    return fails;
}

static const struct elv_feed feed = {.count = count, .shape = shape, .get = get};
static struct elv_model model;
static void *mem;

static void parse(const char *layers)
{
    const struct elv_model_text text = {.input = {(const uint8_t *)"3x1x1", 5},
                                        .layers = {(const uint8_t *)layers, strlen(layers)}};
    assert_int_equal(elv_model_parse(&model, text, NULL), ELV_OK);
}

static enum elv_err open_set(struct elv_test_set *t, uint32_t batch, size_t missing)
{
    const struct elv_test_set_cfg cfg = {.model = &model, .feed = &feed, .batch = batch};
    const size_t len = elv_test_set_mem(&cfg);
    assert_int_not_equal(len, 0);
    free(mem);
    mem = aligned_alloc(ELV_ARENA_ALIGN,
                        (len + ELV_ARENA_ALIGN - 1) / ELV_ARENA_ALIGN * ELV_ARENA_ALIGN);
    assert_non_null(mem);
    return elv_test_set_init(t, &cfg, mem, len - missing);
}

/* The answer is where the input shines, by a margin of ten. */
static const float sure[CLASSES * CLASSES + CLASSES] = {10, 0, 0, 0, 10, 0, 0, 0, 10, 0, 0, 0};

static void the_sums_do_not_depend_on_batch_or_budget(void **state)
{
    (void)state;
    parse("dense 3");
    for (uint32_t batch = 1; batch <= N + 1; batch++)
        for (uint32_t budget = 1; budget <= 3; budget++) {
            struct elv_test_set t;
            struct elv_eval_sums sums;
            assert_int_equal(open_set(&t, batch, 0), ELV_OK);
            const struct elv_scorer s = elv_test_set_scorer(&t);
            s.begin(s.self, sure);
            enum elv_err err = s.run(s.self, budget);
            while (err == ELV_ERR_BUSY)
                err = s.run(s.self, budget);
            assert_int_equal(err, ELV_OK);
            s.sums(s.self, &sums);
            assert_int_equal(sums.n, N);
            assert_int_equal(sums.n_classes, CLASSES);
            static const uint32_t support[] = {2, 2, 3}, predicted[] = {3, 2, 2},
                                  correct[] = {2, 2, 2};
            assert_memory_equal(sums.support, support, sizeof support);
            assert_memory_equal(sums.predicted, predicted, sizeof predicted);
            assert_memory_equal(sums.correct, correct, sizeof correct);
            assert_true(fabs(sums.loss - 10.0) < 0.01); /* the one that is wrong */
        }
}

static void layers_that_stay_on_devices_keep_their_initial_values(void **state)
{
    (void)state;
    struct elv_test_set t;
    struct elv_eval_sums sums;
    parse("dense 3, dense 3 local");
    assert_true(model.n_shared < model.n_params);
    assert_int_equal(open_set(&t, 4, 0), ELV_OK);
    const struct elv_scorer s = elv_test_set_scorer(&t);
    s.begin(s.self, sure);
    assert_int_equal(s.run(s.self, 100), ELV_OK);
    s.sums(s.self, &sums);
    assert_int_equal(sums.n, N);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct elv_test_set t;
    parse("dense 3");
    assert_int_equal(open_set(&t, 4, 1), ELV_ERR_SPACE);
    n_examples = 0;
    assert_int_equal(open_set(&t, 4, 0), ELV_ERR_MISSING);
    n_examples = N;
    parse("dense 2"); /* fewer classes than labels */
    assert_int_equal(open_set(&t, 4, 0), ELV_ERR_MISMATCH);
}

static void a_bad_label_or_a_feed_that_fails_ends_the_evaluation(void **state)
{
    (void)state;
    struct elv_test_set t;
    parse("dense 3");
    assert_int_equal(open_set(&t, 100, 0), ELV_OK);
    const struct elv_scorer s = elv_test_set_scorer(&t);
    label_of_last = CLASSES;
    s.begin(s.self, sure);
    assert_int_equal(s.run(s.self, 1), ELV_ERR_RANGE);
    label_of_last = 2;
    fails = ELV_ERR_IO;
    s.begin(s.self, sure);
    assert_int_equal(s.run(s.self, 1), ELV_ERR_IO);
    fails = ELV_OK;
}

static int release(void **state)
{
    (void)state;
    free(mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sums_do_not_depend_on_batch_or_budget),
        cmocka_unit_test(layers_that_stay_on_devices_keep_their_initial_values),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_bad_label_or_a_feed_that_fails_ends_the_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
