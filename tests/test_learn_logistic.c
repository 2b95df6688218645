/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"
#include "ports/sim/lab/learn_logistic.h"

enum { PARAMS = 210 };

static struct elv_job job_of(void)
{
    struct elv_job job;
    elv_job_init(&job);
    job.up[0] = (struct elv_codec_choice){.id = ELV_CODEC_F32};
    job.n_up = 1;
    job.down = job.up[0];
    return job;
}

static struct elv_lab_learner open_model(const struct elv_job *job, struct elv_lab_logistic_cfg cfg)
{
    struct elv_lab_learner l;
    cfg.job = job;
    assert_int_equal(elv_lab_logistic(&l, &cfg), ELV_OK);
    return l;
}

static struct elv_lab_task train(struct elv_lab_learner *l, const float *base, uint32_t client,
                                 uint32_t assignment, float *update)
{
    struct elv_lab_task t = {.client = client,
                             .assignment = assignment,
                             .base = base,
                             .size = {.local_epochs = 1, .batch = 10},
                             .learning_rate = 0.1f,
                             .update = update};
    assert_int_equal(l->train(l->self, &t, 1), ELV_OK);
    assert_int_equal(t.err, ELV_OK);
    return t;
}

static struct elv_lab_score score(struct elv_lab_learner *l, const float *w)
{
    struct elv_lab_score s;
    assert_int_equal(l->evaluate(l->self, w, &s), ELV_OK);
    assert_int_equal(s.sums.n, ELV_LAB_LOGISTIC_TEST);
    return s;
}

/* Rounds of federated averaging over so many clients. */
static struct elv_lab_score after_rounds(struct elv_lab_learner *l, uint32_t clients,
                                         uint32_t rounds)
{
    float w[PARAMS], update[PARAMS], sum[PARAMS];
    l->init(l->self, w);
    for (uint32_t r = 1; r <= rounds; r++) {
        memset(sum, 0, sizeof sum);
        for (uint32_t c = 1; c <= clients; c++) {
            train(l, w, c, r, update);
            for (uint32_t i = 0; i < PARAMS; i++)
                sum[i] += update[i];
        }
        for (uint32_t i = 0; i < PARAMS; i++)
            w[i] += sum[i] / (float)clients;
    }
    return score(l, w);
}

static void it_starts_by_guessing_and_learns_nine_in_ten(void **state)
{
    (void)state;
    const struct elv_job job = job_of();
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct elv_lab_learner l =
            open_model(&job, (struct elv_lab_logistic_cfg){.seed = seed, .n_clients = 20});
        assert_int_equal(l.n_params, PARAMS);
        float w[PARAMS];
        l.init(l.self, w);
        assert_true(score(&l, w).loss > 1.5);
        assert_true(score(&l, w).accuracy < 0.35);
        const struct elv_lab_score s = after_rounds(&l, 20, 100);
        assert_true(s.accuracy > 0.85 && s.accuracy < 0.99);
        l.free(l.self);
    }
}

static void the_test_set_has_all_classes_alike(void **state)
{
    (void)state;
    const struct elv_job job = job_of();
    struct elv_lab_learner l =
        open_model(&job, (struct elv_lab_logistic_cfg){.seed = 1, .n_clients = 1, .alpha = 0.01});
    float w[PARAMS];
    l.init(l.self, w);
    const struct elv_lab_score s = score(&l, w);
    for (uint32_t c = 0; c < 10; c++)
        assert_in_range(s.sums.support[c], 140, 260);
    l.free(l.self);
}

/* How far the clients' updates lie apart grows as alpha falls; what is learnt gets worse. */
static void label_skew_drives_the_clients_apart(void **state)
{
    (void)state;
    enum { CLIENTS = 30 };
    static const double alpha[] = {0, 100, 1, 0.1};
    double before = 0;
    for (size_t k = 0; k < 4; k++) {
        const struct elv_job job = job_of();
        struct elv_lab_learner l = open_model(
            &job,
            (struct elv_lab_logistic_cfg){.seed = 5, .n_clients = CLIENTS, .alpha = alpha[k]});
        float w[PARAMS], update[PARAMS];
        double sum[PARAMS] = {0}, square = 0, mean = 0;
        l.init(l.self, w);
        for (uint32_t c = 1; c <= CLIENTS; c++) {
            train(&l, w, c, 1, update);
            for (uint32_t i = 0; i < PARAMS; i++) {
                sum[i] += (double)update[i] / CLIENTS;
                square += (double)update[i] * (double)update[i] / CLIENTS;
            }
        }
        for (uint32_t i = 0; i < PARAMS; i++)
            mean += sum[i] * sum[i];
        const double apart = (square - mean) / mean;
        if (k >= 2)
            assert_true(apart > 2 * before);
        before = apart;
        l.free(l.self);
    }
}

/* A client's examples are its own: they come back whenever it trains, whoever trained between. */
static void work_has_the_same_bits_in_any_order(void **state)
{
    (void)state;
    enum { N = 12 };
    const struct elv_job job = job_of();
    const struct elv_lab_logistic_cfg cfg = {.seed = 9, .n_clients = 100000, .alpha = 0.5};
    struct elv_lab_learner a = open_model(&job, cfg), b = open_model(&job, cfg);
    static float w[PARAMS], together[N][PARAMS], alone[PARAMS];
    struct elv_lab_task tasks[N];
    a.init(a.self, w);
    for (uint32_t i = 0; i < N; i++)
        tasks[i] = (struct elv_lab_task){.client = 1 + i * 9000,
                                         .assignment = 3,
                                         .base = w,
                                         .size = {.local_epochs = 1, .batch = 10},
                                         .learning_rate = 0.1f,
                                         .update = together[i]};
    assert_int_equal(a.train(a.self, tasks, N), ELV_OK);
    for (uint32_t i = N; i-- > 0;) {
        const struct elv_lab_task t = train(&b, w, tasks[i].client, 3, alone);
        assert_memory_equal(alone, together[i], sizeof alone);
        assert_true(t.loss_sum == tasks[i].loss_sum);
    }
    a.free(a.self);
    b.free(b.self);
}

static void effort_is_known_before_and_is_what_is_done(void **state)
{
    (void)state;
    const struct elv_job job = job_of();
    struct elv_lab_learner l =
        open_model(&job, (struct elv_lab_logistic_cfg){.seed = 1, .n_clients = 5, .samples = 53});
    static const struct {
        struct elv_size size;
        uint32_t steps, seen;
    } rows[] = {
        {{.local_epochs = 1, .batch = 8}, 7, 53},    {{.local_epochs = 3, .batch = 8}, 21, 159},
        {{.local_epochs = 2, .batch = 100}, 2, 106}, {{.local_steps = 1, .batch = 8}, 1, 8},
        {{.local_steps = 7, .batch = 8}, 7, 53},     {{.local_steps = 9, .batch = 8}, 9, 69},
        {{.local_steps = 3, .batch = 100}, 3, 159},
    };
    float w[PARAMS], update[PARAMS];
    l.init(l.self, w);
    assert_int_equal(l.samples(l.self, 3), 53);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t steps, seen;
        l.effort(l.self, 3, rows[i].size, &steps, &seen);
        assert_int_equal(steps, rows[i].steps);
        assert_int_equal(seen, rows[i].seen);
        struct elv_lab_task t = {.client = 3,
                                 .assignment = 1,
                                 .base = w,
                                 .size = rows[i].size,
                                 .learning_rate = 0.1f,
                                 .update = update};
        assert_int_equal(l.train(l.self, &t, 1), ELV_OK);
        assert_int_equal(t.err, ELV_OK);
        assert_int_equal(t.steps, steps);
        assert_int_equal(t.seen, seen);
        assert_int_equal(t.samples, 53);
    }
    l.free(l.self);
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    const struct elv_job job = job_of();
    static const struct elv_lab_logistic_cfg bad[] = {
        {.n_clients = 0},
        {.n_clients = 1, .alpha = -1},
        {.n_clients = 1, .alpha = 1e-9},
        {.n_clients = 1, .alpha = 1e9},
        {.n_clients = 1, .alpha = NAN},
        {.n_clients = 1, .dimensions = 5000},
        {.n_clients = 1, .samples = 2000000},
        {.n_clients = 1, .samples = 1000000, .dimensions = 100},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct elv_lab_learner l;
        struct elv_lab_logistic_cfg cfg = bad[i];
        cfg.job = &job;
        assert_int_equal(elv_lab_logistic(&l, &cfg), ELV_ERR_ARG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_by_guessing_and_learns_nine_in_ten),
        cmocka_unit_test(the_test_set_has_all_classes_alike),
        cmocka_unit_test(label_skew_drives_the_clients_apart),
        cmocka_unit_test(work_has_the_same_bits_in_any_order),
        cmocka_unit_test(effort_is_known_before_and_is_what_is_done),
        cmocka_unit_test(impossible_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
