/* SPDX-License-Identifier: Apache-2.0 */
/* The swarm where clients say how good versions are, as they do to the server: about the version
 * they trained from, so a version is known when the round after it closes. Four clients make the
 * model 3 in one step, for their numbers are its optima and their weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/swarm_case.h"

#define SECOND 1000000

static struct swarm_case c;

static void clients_evaluate(const char *policy, const char *every)
{
    const struct swarm_key keys[] = {
        {"sync", "policy", policy}, {"sync", "publish_interval", "0s"}, {"eval", "on", "clients"},
        {"eval", "every", every},   {"aggregate", "max_weight", "10"},  {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 4);
    swarm_case_learns(&c, 3);
    c.learner.clients_evaluate = c.holds_out = true;
    c.world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1.0};
}

static void
a_versions_score_comes_with_the_next_round_and_the_lasts_when_it_is_asked_for(void **state)
{
    (void)state;
    clients_evaluate("bsp", "1");
    c.cfg.rounds = 3;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(c.n_rounds, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(c.rounds[i].version, i + 1);
        assert_true(fabs(c.rounds[i].score.loss - 7.0) < 1e-6);
        assert_true(fabs(c.rounds[i].score.accuracy - 0.3) < 1e-6);
    }
    assert_int_equal(c.rounds[2].score.sums.n, 40);
    assert_true(fabs(sum.best_accuracy - 0.3) < 1e-6);
    assert_true(sum.ended == 3 * SECOND); /* asking them takes no time */
    assert_int_equal(sum.started, 12);    /* and is no work */
    assert_int_equal(sum.rounds, 3);
    swarm_case_free(&c);
}

static void a_target_is_reached_when_the_clients_say_so(void **state)
{
    (void)state;
    static const struct {
        double accuracy, loss;
        bool reached;
    } rows[] = {{0.3, 0, true}, {0, 7.5, true}, {0.31, 0, false}, {0, 6.5, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        clients_evaluate("bsp", "never");
        c.cfg.target_accuracy = rows[i].accuracy;
        c.cfg.target_loss = rows[i].loss;
        c.cfg.rounds = 5;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        assert_int_equal(sum.reached, rows[i].reached);
        if (rows[i].reached) { /* version 1, of which the second round's updates tell */
            assert_true(sum.reached_at == 2 * SECOND && sum.ended == 2 * SECOND);
            assert_int_equal(sum.version, 1);
            assert_int_equal(c.n_rounds, 1);
            assert_true(c.rounds[0].score.loss < 7.1);
        } else {
            assert_int_equal(sum.version, 5);
            assert_int_equal(c.n_rounds, 5);
        }
        swarm_case_free(&c);
    }
}

static void who_claims_more_examples_than_may_count_is_not_heard(void **state)
{
    (void)state;
    clients_evaluate("bsp", "1");
    c.job.max_weight = 9;
    c.cfg.rounds = 2;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(c.n_rounds, 2);
    assert_true(isnan(c.rounds[0].score.loss) && isnan(sum.score.loss));
    assert_true(sum.best_accuracy < 0);
    swarm_case_free(&c);
}

static void records_come_in_their_order_whatever_they_wait_for(void **state)
{
    (void)state;
    static const char *const policies[] = {"bsp", "asp", "fedbuff"};
    for (size_t i = 0; i < 3; i++) {
        clients_evaluate(policies[i], "2");
        c.world.availability.dropout = 0.4; /* so that some rounds are given up */
        c.job.quorum = i == 0 ? 3 : 1;
        c.job.deadline_us = 3 * SECOND;
        c.world.horizon_s = 600;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        assert_true(c.n_rounds > 20);
        assert_int_equal(sum.rounds, c.n_rounds);
        for (uint32_t k = 0; k < c.n_rounds; k++) {
            assert_int_equal(c.rounds[k].seq, k + 1);
            if (c.rounds[k].abandoned || c.rounds[k].version % 2 != 0)
                assert_true(isnan(c.rounds[k].score.loss));
        }
        assert_true(sum.best_accuracy > 0.1);
        swarm_case_free(&c);
    }
}

static void with_a_test_set_the_server_does_it(void **state)
{
    (void)state;
    clients_evaluate("bsp", "1");
    c.job.eval_on = ELV_EVAL_BOTH;
    c.cfg.rounds = 1;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(c.rounds[0].score.sums.n, 0);
    assert_true(fabs(sum.score.loss - 7.0) < 1e-6);
    assert_int_equal(c.n_trained, 4);
    swarm_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_versions_score_comes_with_the_next_round_and_the_lasts_when_it_is_asked_for),
        cmocka_unit_test(a_target_is_reached_when_the_clients_say_so),
        cmocka_unit_test(who_claims_more_examples_than_may_count_is_not_heard),
        cmocka_unit_test(records_come_in_their_order_whatever_they_wait_for),
        cmocka_unit_test(with_a_test_set_the_server_does_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
