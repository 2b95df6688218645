/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by themselves: sums in, models out; and what unequal work does to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "server/param.h"
#include "server/policies.h"
#include "server/tally.h"
#include "sync_driver.h"

enum { BITS = 20 };

static void apply(const char *rule, const char *params, const int64_t *sum, float *w, float *state,
                  size_t n)
{
    const struct elv_params p = sync_params(params);
    float mean[4];
    const struct elv_rule_step step = {.params = &p,
                                       .kernels = elv_kernels_best(),
                                       .sum = sum,
                                       .gain = ldexp(0.25, -BITS),
                                       .w = w,
                                       .mean = mean,
                                       .state = state,
                                       .n = n};
    elv_rule_by_name(rule)->apply(&step);
    for (size_t i = 0; i < n; i++) /* whatever the rule makes of it */
        assert_true(mean[i] == (float)sum[i] * ldexpf(0.25f, -BITS));
}

static void the_server_has_a_learning_rate_of_its_own(void **state)
{
    (void)state;
    const int64_t sum[3] = {(int64_t)4 << BITS, -((int64_t)8 << BITS), 0};
    static const char *const rules[] = {"fedavg", "fednova"};
    for (size_t i = 0; i < 2; i++) {
        float w[3] = {1.0f, 1.0f, 1.0f};
        apply(rules[i], "", sum, w, NULL, 3);
        assert_true(w[0] == 2.0f && w[1] == -1.0f && w[2] == 1.0f);
        apply(rules[i], "server_learning_rate = 0.5", sum, w, NULL, 3);
        assert_true(w[0] == 2.5f && w[1] == -2.0f && w[2] == 1.0f);
    }
}

static void fedavgm_gathers_momentum(void **state)
{
    (void)state;
    const int64_t sum[2] = {(int64_t)4 << BITS, 0};
    float w[2] = {0}, v[2] = {0.0f, 1.0f};
    assert_int_equal(elv_rule_by_name("fedavgm")->state_per_param, 1);
    apply("fedavgm", "server_momentum = 0.5, server_learning_rate = 2", sum, w, v, 2);
    assert_true(v[0] == 1.0f && w[0] == 2.0f);
    assert_true(v[1] == 0.5f && w[1] == 1.0f);
    apply("fedavgm", "server_momentum = 0.5, server_learning_rate = 2", sum, w, v, 2);
    assert_true(v[0] == 1.5f && w[0] == 5.0f);
    for (int i = 0; i < 300; i++) /* 1 / (1 - 0.9), which is the default */
        apply("fedavgm", "", sum, w, v, 2);
    assert_true(fabsf(v[0] - 10.0f) < 1e-3f);
}

static void their_parameters_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *params;
        uint32_t line;
    } rows[] = {
        {"fedavg", "", 0},
        {"fedavg", "server_learning_rate = 0.000001", 0},
        {"fedavg", "server_learning_rate = 0", 11},
        {"fedavg", "server_learning_rate = 1001", 11},
        {"fedavg", "server_learning_rate = high", 11},
        {"fednova", "server_learning_rate = -1", 11},
        {"fedavgm", "server_momentum = 0, server_learning_rate = 1000", 0},
        {"fedavgm", "server_momentum = 1", 11},
        {"fedavgm", "server_momentum = -0.1", 11},
        {"fedavgm", "server_momentum = 0.9, server_learning_rate = 0", 12},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_rule *rule = elv_rule_by_name(rows[i].rule);
        const struct elv_params p = sync_params(rows[i].params);
        char why[ELV_JOB_ERROR_MAX] = "";
        uint32_t line = 0;
        assert_int_equal(rule->check(&p, why, &line), rows[i].line ? ELV_ERR_RANGE : ELV_OK);
        assert_int_equal(line, rows[i].line);
        assert_int_equal(why[0] != '\0', rows[i].line != 0);
        assert_int_equal(elv_param_check_names(&p, rule->params, why, &line), ELV_OK);
    }
}

static double effort_of(float rate, float momentum, float proximal, uint32_t steps)
{
    static struct elv_job job;
    elv_job_init(&job);
    job.learning_rate = rate;
    job.momentum = momentum;
    job.proximal = proximal;
    return elv_rule_by_name("fednova")->effort(&job, steps);
}

static void work_is_how_far_equal_gradients_would_go(void **state)
{
    (void)state;
    static const uint32_t steps[] = {1, 2, 3, 10, 77, 1000};
    static const struct {
        float rate, momentum, proximal;
    } rows[] = {{0.1f, 0.0f, 0.0f}, {0.1f, 0.9f, 0.0f}, {0.1f, 0.0f, 0.5f}, {0.05f, 0.5f, 1.0f}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            const double rho = (double)rows[i].momentum;
            const double mu = (double)rows[i].rate * (double)rows[i].proximal;
            double v = 0, d = 0;
            for (uint32_t t = 0; t < steps[k]; t++) {
                v = rho * v + 1 - mu * d;
                d += v;
            }
            const double a = effort_of(rows[i].rate, rows[i].momentum, rows[i].proximal, steps[k]);
            assert_true(fabs(a / d - 1) < 1e-9);
            if (mu == 0) { /* the paper's closed form */
                const double n = (double)steps[k];
                const double closed = (n - rho * (1 - pow(rho, n)) / (1 - rho)) / (1 - rho);
                assert_true(fabs(a / closed - 1) < 1e-9);
            }
            if (rho == 0) /* and its recursion, summed */
                assert_true(mu == 0 || fabs(a / ((1 - pow(1 - mu, steps[k])) / mu) - 1) < 1e-6);
        }
}

static void no_claim_of_steps_breaks_the_work(void **state)
{
    (void)state;
    assert_true(effort_of(0.1f, 0.0f, 0.0f, 0) == 1.0);
    assert_true(effort_of(0.1f, 0.0f, 0.0f, UINT32_MAX) == (double)UINT32_MAX);
    assert_true(fabs(effort_of(0.1f, 0.9f, 0.0f, UINT32_MAX) / (10.0 * UINT32_MAX) - 1) < 1e-4);
    assert_true(fabs(effort_of(0.1f, 0.0f, 1.0f, UINT32_MAX) - 10) < 1e-6);
    assert_true(effort_of(1.0f, 0.9f, 1e6f, UINT32_MAX) == 1.0);
    assert_true(effort_of(1.0f, 0.0f, 1.5f, 2) == 1.0);
}

/* A fleet of two on a convex problem, f_i = h_i / 2 (w - c_i)^2, weighed as the server weighs. */
enum { FEW = 5, MANY = 50 };
struct side {
    double h, c;
    uint32_t samples, steps;
};

struct optimiser {
    float rate, momentum, proximal;
};

static float train(const struct side *s, const struct optimiser *o, double w0)
{
    double w = w0, v = 0;
    for (uint32_t t = 0; t < s->steps; t++) {
        const double g = s->h * (w - s->c) + (double)o->proximal * (w - w0);
        v = (double)o->momentum * v + g;
        w -= (double)o->rate * v;
    }
    return (float)(w - w0);
}

static double settles_at(const char *name, const struct side sides[2], const struct optimiser *o)
{
    static struct elv_job job;
    const struct elv_rule *rule = elv_rule_by_name(name);
    const struct elv_params params = sync_params("server_learning_rate = 200");
    struct elv_scales scales;
    char why[ELV_JOB_ERROR_MAX];
    elv_job_init(&job);
    job.learning_rate = o->rate;
    job.momentum = o->momentum;
    job.proximal = o->proximal;
    job.max_weight = 1000;
    assert_int_equal(elv_scales_of(&job, 2, &scales, why), ELV_OK);
    float w = 0.0f, mean;
    for (int round = 0; round < 4000; round++) {
        struct elv_tally tally = {0};
        int64_t sum = 0;
        for (int i = 0; i < 2; i++) {
            const double effort = rule->effort ? rule->effort(&job, sides[i].steps) : 1.0;
            const struct elv_tally_item item = {
                .weight = elv_weight_of(&scales, sides[i].samples, 1.0 / effort),
                .claim = sides[i].samples,
                .factor = 1.0,
                .effort = effort,
                .steps = sides[i].steps,
            };
            elv_tally_add(&tally, &scales, &item);
            sum += item.weight *
                   (int64_t)rint(ldexp((double)train(&sides[i], o, (double)w), scales.value_bits));
        }
        const struct elv_sync_scale scale = {.by = ELV_SYNC_BY_USED, .step = 1.0};
        const struct elv_rule_step step = {.params = &params,
                                           .kernels = elv_kernels_best(),
                                           .sum = &sum,
                                           .gain = elv_tally_gain(&tally, &scales, &scale, 0),
                                           .w = &w,
                                           .mean = &mean,
                                           .n = 1};
        rule->apply(&step);
    }
    return (double)w;
}

/* X16 */
static void fednova_finds_the_optimum_that_fedavg_misses(void **state)
{
    (void)state;
    const struct side sides[2] = {{1.0, -1.0, 300, FEW}, {2.0, 1.0, 100, MANY}};
    static const struct optimiser rows[] = {
        {2e-6f, 0.0f, 0.0f}, {2e-6f, 0.9f, 0.0f}, {2e-6f, 0.0f, 500.0f}, {2e-6f, 0.5f, 500.0f}};
    const double optimum = (300.0 * 1.0 * -1.0 + 100.0 * 2.0 * 1.0) / (300.0 * 1.0 + 100.0 * 2.0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double nova = settles_at("fednova", sides, &rows[i]);
        const double avg = settles_at("fedavg", sides, &rows[i]);
        assert_true(fabs(nova - optimum) < 1e-3);
        assert_true(avg - optimum > 0.5); /* where those with many steps pull it */
        if (i == 0)
            assert_true(fabs(avg - (-300.0 * FEW + 200.0 * MANY) / (300.0 * FEW + 200.0 * MANY)) <
                        1e-2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_has_a_learning_rate_of_its_own),
        cmocka_unit_test(fedavgm_gathers_momentum),
        cmocka_unit_test(their_parameters_are_checked),
        cmocka_unit_test(work_is_how_far_equal_gradients_would_go),
        cmocka_unit_test(no_claim_of_steps_breaks_the_work),
        cmocka_unit_test(fednova_finds_the_optimum_that_fedavg_misses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
