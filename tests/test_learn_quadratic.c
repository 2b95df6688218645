/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/learn_quadratic.h"

enum { D = 40 };

static struct elv_lab_learner open_model(const struct elv_lab_quadratic_cfg *cfg)
{
    struct elv_lab_learner l;
    assert_int_equal(elv_lab_quadratic(&l, cfg), ELV_OK);
    return l;
}

/* One piece of work from `base`. */
static struct elv_lab_task train(struct elv_lab_learner *l, const float *base, float *update,
                                 struct elv_lab_task wish)
{
    wish.base = base;
    wish.update = update;
    assert_int_equal(l->train(l->self, &wish, 1), ELV_OK);
    return wish;
}

static struct elv_lab_task one_step(uint32_t client, uint32_t assignment)
{
    return (struct elv_lab_task){.client = client,
                                 .assignment = assignment,
                                 .size = {.local_steps = 1, .batch = 64},
                                 .learning_rate = 0.4f};
}

static double score(struct elv_lab_learner *l, const float *w)
{
    struct elv_lab_score s;
    assert_int_equal(l->evaluate(l->self, w, &s), ELV_OK);
    assert_true(s.accuracy < 0);
    assert_int_equal(s.sums.n, 0);
    return s.loss;
}

static float curvature(uint32_t i) { return (float)(pow(0.9, i) + 0.05); }

static void it_starts_at_all_ones_with_a_loss_of_nearly_six(void **state)
{
    (void)state;
    struct elv_lab_learner l = open_model(&(struct elv_lab_quadratic_cfg){.seed = 1});
    float w[D];
    assert_int_equal(l.n_params, D);
    l.init(l.self, w);
    for (uint32_t i = 0; i < D; i++)
        assert_true(w[i] == 1.0f);
    assert_true(fabs(score(&l, w) - ((1 - pow(0.9, D)) / 0.1 + 0.05 * D) / 2) < 1e-5);
    memset(w, 0, sizeof w);
    assert_true(score(&l, w) == 0);
    l.free(l.self);
}

static void some_clients_have_more_samples_and_make_as_many_more_steps(void **state)
{
    (void)state;
    struct elv_lab_learner l = open_model(&(struct elv_lab_quadratic_cfg){
        .seed = 1, .n_clients = 10, .samples = 2, .more_share = 0.3, .more_factor = 10});
    float w[D], update[D];
    l.init(l.self, w);
    for (uint32_t client = 1; client <= 10; client++) {
        const uint32_t expected = client <= 3 ? 20 : 2;
        uint32_t steps, seen;
        const struct elv_size pass = {.local_epochs = 1, .batch = 1};
        l.effort(l.self, client, pass, &steps, &seen);
        assert_int_equal(steps, expected);
        assert_int_equal(l.samples(l.self, client), expected);
        struct elv_lab_task wish = one_step(client, 1);
        wish.size = pass;
        assert_int_equal(train(&l, w, update, wish).steps, expected);
    }
    l.free(l.self);
}

static void without_noise_a_step_follows_the_gradient_exactly(void **state)
{
    (void)state;
    struct elv_lab_learner l = open_model(&(struct elv_lab_quadratic_cfg){.seed = 1});
    float w[D], update[D];
    l.init(l.self, w);
    const struct elv_lab_task t = train(&l, w, update, one_step(1, 1));
    assert_int_equal(t.err, ELV_OK);
    for (uint32_t i = 0; i < D; i++)
        assert_true(fabsf(update[i] + 0.4f * curvature(i)) < 1e-6f);
    assert_true(fabs(t.loss_sum / t.seen - score(&l, w)) < 1e-9);
    assert_int_equal(t.seen, 64);
    assert_int_equal(t.steps, 1);
    l.free(l.self);
}

static void momentum_decay_and_the_proximal_term_are_those_of_the_trainer(void **state)
{
    (void)state;
    const struct elv_lab_quadratic_cfg cfg = {
        .seed = 1, .momentum = 0.5, .weight_decay = 0.01, .proximal = 0.3};
    struct elv_lab_learner l = open_model(&cfg);
    float base[D], update[D];
    l.init(l.self, base);
    struct elv_lab_task wish = one_step(1, 1);
    wish.size.local_steps = 3;
    train(&l, base, update, wish);
    for (uint32_t i = 0; i < D; i++) {
        double w = 1, v = 0;
        for (uint32_t step = 0; step < 3; step++) {
            v = 0.5 * v + (double)curvature(i) * w + 0.01 * w + 0.3 * (w - 1);
            w -= 0.4 * v;
        }
        assert_true(fabs((double)update[i] - (w - 1)) < 1e-6);
    }
    l.free(l.self);
}

/* The total variance of one worker's gradient is noise^2 / batch. */
static void the_noise_has_the_variance_that_is_asked_for(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    const double sigma = 12;
    struct elv_lab_learner l =
        open_model(&(struct elv_lab_quadratic_cfg){.seed = 3, .noise = sigma});
    float w[D] = {0}, update[D];
    double norm2 = 0, mean = 0;
    for (uint32_t i = 1; i <= DRAWS; i++) {
        train(&l, w, update, one_step(1, i));
        for (uint32_t k = 0; k < D; k++) {
            const double g = (double)update[k] / -0.4;
            norm2 += g * g / DRAWS;
            mean += g / (DRAWS * D);
        }
    }
    assert_true(fabs(norm2 / (sigma * sigma / 64) - 1) < 0.02);
    assert_true(fabs(mean) < 0.02);
    l.free(l.self);
}

static void reported_losses_are_off_by_the_relative_error(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    struct elv_lab_learner l =
        open_model(&(struct elv_lab_quadratic_cfg){.seed = 3, .loss_noise = 0.002});
    float w[D], update[D];
    l.init(l.self, w);
    const double exact = score(&l, w);
    double mean = 0, square = 0;
    for (uint32_t i = 1; i <= DRAWS; i++) {
        const struct elv_lab_task t = train(&l, w, update, one_step(2, i));
        const double off = t.loss_sum / t.seen / exact - 1;
        mean += off / DRAWS;
        square += off * off / DRAWS;
    }
    assert_true(fabs(mean) < 2e-4);
    assert_true(fabs(sqrt(square) / 0.002 - 1) < 0.05);
    l.free(l.self);
}

static void work_has_the_same_bits_whoever_is_in_the_call(void **state)
{
    (void)state;
    const struct elv_lab_quadratic_cfg cfg = {
        .seed = 9, .n_clients = 50, .noise = 3, .loss_noise = 0.002, .spread = 0.5};
    struct elv_lab_learner a = open_model(&cfg), b = open_model(&cfg);
    enum { N = 8 };
    float w[D], together[N][D], alone[D];
    struct elv_lab_task tasks[N];
    a.init(a.self, w);
    for (uint32_t i = 0; i < N; i++) {
        tasks[i] = one_step(i + 1, 100 + i);
        tasks[i].base = w;
        tasks[i].update = together[i];
    }
    assert_true(a.gather_max >= N);
    assert_int_equal(a.train(a.self, tasks, N), ELV_OK);
    for (uint32_t i = N; i-- > 0;) {
        const struct elv_lab_task t = train(&b, w, alone, one_step(i + 1, 100 + i));
        assert_memory_equal(alone, together[i], sizeof alone);
        assert_true(t.loss_sum == tasks[i].loss_sum);
    }
    a.free(a.self);
    b.free(b.self);
}

static void clients_apart_pull_to_their_own_optima_and_the_best_lies_between(void **state)
{
    (void)state;
    enum { CLIENTS = 20 };
    struct elv_lab_learner l =
        open_model(&(struct elv_lab_quadratic_cfg){.seed = 5, .n_clients = CLIENTS, .spread = 1});
    const float *best = elv_lab_quadratic_optimum(&l);
    assert_true(score(&l, best) == 0);
    double sum[D] = {0}, largest = 0;
    float update[D];
    for (uint32_t c = 1; c <= CLIENTS; c++) {
        train(&l, best, update, one_step(c, 1));
        for (uint32_t i = 0; i < D; i++) {
            sum[i] += (double)update[i];
            largest = fmax(largest, fabs((double)update[i]));
        }
    }
    assert_true(largest > 0.1); /* each alone goes its own way */
    for (uint32_t i = 0; i < D; i++)
        assert_true(fabs(sum[i]) < 1e-4); /* all together stay */
    l.free(l.self);
}

static void effort_is_known_before_and_is_what_is_done(void **state)
{
    (void)state;
    struct elv_lab_learner l =
        open_model(&(struct elv_lab_quadratic_cfg){.seed = 1, .samples = 100});
    static const struct {
        struct elv_size size;
        uint32_t steps, seen;
    } rows[] = {
        {{.local_steps = 1, .batch = 64}, 1, 64},
        {{.local_steps = 7, .batch = 10}, 7, 70},
        {{.local_epochs = 2, .batch = 32}, 8, 256}, /* every batch is full */
        {{.local_steps = UINT32_MAX, .batch = 2}, UINT32_MAX, UINT32_MAX},
    };
    float w[D], update[D];
    l.init(l.self, w);
    assert_int_equal(l.samples(l.self, 3), 100);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t steps, seen;
        l.effort(l.self, 3, rows[i].size, &steps, &seen);
        assert_int_equal(steps, rows[i].steps);
        assert_int_equal(seen, rows[i].seen);
        struct elv_lab_task wish = one_step(3, 1);
        wish.size = rows[i].size;
        if (steps > 1000)
            continue;
        wish = train(&l, w, update, wish);
        assert_int_equal(wish.steps, steps);
        assert_int_equal(wish.seen, seen);
        assert_int_equal(wish.samples, 100);
    }
    l.free(l.self);
}

static void a_client_that_diverges_fails_alone(void **state)
{
    (void)state;
    struct elv_lab_learner l = open_model(&(struct elv_lab_quadratic_cfg){.seed = 1});
    float w[D], update[D];
    l.init(l.self, w);
    struct elv_lab_task wild = one_step(1, 1);
    wild.learning_rate = 1e4f;
    wild.size.local_steps = 50;
    assert_int_equal(train(&l, w, update, wild).err, ELV_ERR_RANGE);
    wild.size.local_steps = 0;
    assert_int_equal(train(&l, w, update, wild).err, ELV_ERR_RANGE);
    assert_int_equal(train(&l, w, update, one_step(1, 2)).err, ELV_OK);
    l.free(l.self);
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    static const struct elv_lab_quadratic_cfg bad[] = {
        {.noise = -1},        {.noise = NAN},         {.loss_noise = -0.1},
        {.spread = INFINITY}, {.spread = 1},          {.momentum = -1},
        {.proximal = -1},     {.weight_decay = 1e30}, {.dimensions = 1u << 20},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct elv_lab_learner l;
        assert_int_equal(elv_lab_quadratic(&l, &bad[i]), ELV_ERR_ARG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_at_all_ones_with_a_loss_of_nearly_six),
        cmocka_unit_test(some_clients_have_more_samples_and_make_as_many_more_steps),
        cmocka_unit_test(without_noise_a_step_follows_the_gradient_exactly),
        cmocka_unit_test(momentum_decay_and_the_proximal_term_are_those_of_the_trainer),
        cmocka_unit_test(the_noise_has_the_variance_that_is_asked_for),
        cmocka_unit_test(reported_losses_are_off_by_the_relative_error),
        cmocka_unit_test(work_has_the_same_bits_whoever_is_in_the_call),
        cmocka_unit_test(clients_apart_pull_to_their_own_optima_and_the_best_lies_between),
        cmocka_unit_test(effort_is_known_before_and_is_what_is_done),
        cmocka_unit_test(a_client_that_diverges_fails_alone),
        cmocka_unit_test(impossible_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
