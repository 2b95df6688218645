/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that take each update as it comes: single answers of theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/param.h"
#include "sync_driver.h"

/* A policy by itself, with its state. */
struct bench {
    const struct elv_sync *sync;
    struct elv_params params;
    struct elv_sync_cfg cfg;
    struct elv_sync_round round;
    void *state;
};

static struct bench set_up(const char *policy, const char *params, uint32_t clients_max)
{
    struct bench b = {.sync = elv_sync_by_name(policy), .params = sync_params(params)};
    b.cfg = (struct elv_sync_cfg){.clients_max = clients_max, .quorum = 1, .deadline_us = 1000};
    b.cfg.params = &b.params;
    b.state = calloc(1, b.sync->state_len ? b.sync->state_len(&b.cfg) : 1);
    assert_non_null(b.state);
    return b;
}

static struct elv_sync_client who(uint32_t row)
{
    return (struct elv_sync_client){.row = row, .client = row + 1};
}

static struct elv_sync_worth deliver(struct bench *b, uint32_t row, uint32_t staleness,
                                     elv_time_us now)
{
    const struct elv_sync_update u = {.from = who(row), .staleness = staleness};
    b->cfg.params = &b->params;
    return b->sync->on_update(b->state, &b->cfg, &b->round, &u, now);
}

static bool starts(struct bench *b, uint32_t row, elv_time_us now)
{
    b->cfg.params = &b->params;
    return b->sync->on_pull(b->state, &b->cfg, &b->round, who(row), now).start == ELV_SYNC_START;
}

static bool next_is(struct bench *b, uint32_t row, elv_time_us now)
{
    struct elv_sync_client c = {0};
    return b->sync->next(b->state, &b->cfg, &b->round, &c, now) && c.row == row;
}

static bool is_near(double x, double expected, double tolerance)
{
    return fabs(x / expected - 1.0) <= tolerance;
}

/* The fast one's updates come every 100, the latest at 1000, the slow one's every 330, at 900: nine
 * updates on, at 1900, one of the slow one's is 10 away. */
static void dssp_foresees_where_the_wait_is_shortest(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        uint32_t updates; /* after the one at 1000, before it waits */
    } rows[] = {
        {"", 9},          {"strict = off", 43}, /* as printed: grant follows grant until all
                                                   foreseen is past */
        {"high = 12", 8},                       /* cut to what is left: it is four ahead already */
        {"high = 5", 1},  {"high = 4", 0},      {"early = on", 3}, /* 1300 is after 1230: no wait */
        {"high = 3", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b = set_up("dssp", rows[i].params, 2);
        assert_true(starts(&b, 0, 400) && starts(&b, 1, 400));
        deliver(&b, 1, 0, 570);
        assert_true(starts(&b, 1, 570));
        for (elv_time_us t = 500; t < 1000; t += 100) {
            if (t == 900)
                deliver(&b, 1, 0, 900);
            deliver(&b, 0, 0, t);
            assert_true(starts(&b, 0, t));
        }
        uint32_t updates = 0;
        for (elv_time_us t = 1000; deliver(&b, 0, 0, t).counts && starts(&b, 0, t); t += 100)
            assert_true(++updates < 100);
        assert_int_equal(updates, rows[i].updates);
        free(b.state);
    }
}

static void dssp_is_ssp_until_it_has_seen_two_updates_of_both(void **state)
{
    (void)state;
    struct bench b = set_up("dssp", "", 2);
    assert_true(starts(&b, 0, 0) && starts(&b, 1, 0));
    deliver(&b, 1, 0, 5);
    for (elv_time_us t = 10; t < 50; t += 10) {
        deliver(&b, 0, 0, t);
        assert_true(starts(&b, 0, t));
    }
    deliver(&b, 0, 0, 50); /* five to one */
    assert_false(starts(&b, 0, 50));
    free(b.state);
}

/* Nobody looks for a client that has no work; the policy must not wait for it either. */
static void whoever_never_asks_again_is_not_waited_for(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"ssp", "threshold = 0"},
        {"dssp", "low = 0, high = 0"},
        {"psp", "threshold = 0, beta = 1"},
        {"psp", "threshold = 0, beta = 1, resample = off"},
        {"psp", "barrier = pbsp, beta = 0.9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b = set_up(rows[i][0], rows[i][1], 3);
        assert_true(starts(&b, 0, 0) && starts(&b, 1, 0));
        deliver(&b, 0, 0, 10);
        assert_false(starts(&b, 0, 10));
        deliver(&b, 1, 0, 20);
        assert_true(next_is(&b, 0, 20));
        deliver(&b, 0, 0, 30);
        assert_false(starts(&b, 0, 30));
        assert_false(starts(&b, 0, 900)); /* however often it asks */
        assert_false(next_is(&b, 0, 900));
        assert_true(starts(&b, 2, 900)); /* a newcomer is as far as the slowest */
        b.sync->on_leave(b.state, &b.cfg, who(2), 950);
        assert_false(next_is(&b, 0, 950));
        assert_int_equal(b.sync->timer(b.state, &b.cfg), 1020);
        b.sync->on_timer(b.state, &b.cfg, &b.round, 1019);
        assert_false(next_is(&b, 0, 1019));
        b.sync->on_timer(b.state, &b.cfg, &b.round, 1020);
        assert_true(next_is(&b, 0, 1020));
        assert_false(next_is(&b, 0, 1020));
        assert_int_equal(b.sync->timer(b.state, &b.cfg), 2020);
        free(b.state);
    }
}

static void the_held_start_when_the_one_they_wait_for_leaves(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"ssp", "threshold = 1"},
        {"dssp", "low = 1, high = 1"},
        {"psp", "threshold = 1, beta = 1"},
        {"psp", "threshold = 1, beta = 5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int asks = 0; asks < 2; asks++) {
            struct bench b = set_up(rows[i][0], rows[i][1], 2);
            assert_true(starts(&b, 0, 0) && starts(&b, 1, 0));
            deliver(&b, 0, 0, 10);
            assert_true(starts(&b, 0, 10));
            deliver(&b, 0, 0, 20);
            assert_false(starts(&b, 0, 20));
            b.sync->on_leave(b.state, &b.cfg, who(1), 25);
            assert_true(asks ? starts(&b, 0, 30) : next_is(&b, 0, 30));
            assert_false(next_is(&b, 0, 30)); /* once */
            free(b.state);
        }
}

static void fedasync_mixes_as_if_one_by_one(void **state)
{
    (void)state;
    struct bench b = set_up("fedasync", "staleness = hinge, staleness_a = 1, staleness_b = 1", 4);
    struct elv_sync_round r = {.n_got = 3};
    b.sync->on_open(b.state, &b.cfg, &r);
    assert_true(is_near(deliver(&b, 0, 0, 0).weight, 0.6, 1e-12));
    assert_true(is_near(deliver(&b, 1, 1, 0).weight, 0.6, 1e-12));
    assert_true(is_near(deliver(&b, 2, 2, 0).weight, 0.3, 1e-12));
    b.cfg.params = &b.params;
    struct elv_sync_scale s = b.sync->scale(b.state, &b.cfg, &r);
    assert_true(is_near(s.step, 1 - 0.4 * 0.4 * 0.7, 1e-12));
    assert_true(s.mixes && s.by == ELV_SYNC_BY_USED);
    r.n_got = 4; /* one more, of before a restart */
    assert_true(is_near(b.sync->scale(b.state, &b.cfg, &r).step, 1 - 0.4 * 0.4 * 0.7 * 0.4, 1e-12));
    b.sync->on_open(b.state, &b.cfg, &r);
    r.n_got = 1;
    assert_true(is_near(b.sync->scale(b.state, &b.cfg, &r).step, 0.6, 1e-12));
    free(b.state);
    b = set_up("fedasync", "max_staleness = 4", 1);
    assert_true(deliver(&b, 0, 4, 0).counts);
    assert_false(deliver(&b, 0, 5, 0).counts);
    free(b.state);
}

static void fedbuff_makes_a_version_of_every_so_many(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        uint32_t n_got;
        enum elv_sync_commit_when when;
        enum elv_sync_divisor by;
        double step;
        uint32_t n_joined; /* 0: 100 */
    } rows[] = {
        {"", 0, ELV_SYNC_NO, ELV_SYNC_BY_CLAIMED, 0, 0},
        {"", 9, ELV_SYNC_NO, ELV_SYNC_BY_CLAIMED, 0.9, 0}, /* the deadline may close it so */
        {"", 10, ELV_SYNC_MAY, ELV_SYNC_BY_CLAIMED, 1, 0},
        {"", 11, ELV_SYNC_NO, ELV_SYNC_BY_CLAIMED, 1.1, 0},
        {"", 30, ELV_SYNC_MAY, ELV_SYNC_BY_CLAIMED, 3, 0},
        {"buffer = 4, normalise = count", 4, ELV_SYNC_MAY, ELV_SYNC_BY_CLAIMED, 1, 0},
        {"buffer = 4, normalise = weights", 8, ELV_SYNC_MAY, ELV_SYNC_BY_USED, 2, 0},
        {"buffer = 4", 16, ELV_SYNC_MAY, ELV_SYNC_BY_CLAIMED, 1.5, 6}, /* each one several times */
        {"buffer = 4", 16, ELV_SYNC_MAY, ELV_SYNC_BY_CLAIMED, 1, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b = set_up("fedbuff", rows[i].params, 1);
        b.cfg.params = &b.params;
        b.round.n_got = rows[i].n_got;
        b.round.n_joined = rows[i].n_joined > 0 ? rows[i].n_joined : 100;
        assert_int_equal(b.sync->should_commit(b.state, &b.cfg, &b.round, 0), rows[i].when);
        const struct elv_sync_scale s = b.sync->scale(b.state, &b.cfg, &b.round);
        assert_int_equal(s.by, rows[i].by);
        assert_true(fabs(s.step - rows[i].step) < 1e-12);
        free(b.state);
    }
    struct bench b = set_up("fedbuff", "staleness_a = 1, max_staleness = 2", 1);
    assert_true(is_near(deliver(&b, 0, 9, 0).weight, 1.0, 1e-6));
    assert_true(is_near(deliver(&b, 0, 10, 0).weight, 0.5, 1e-6));
    assert_true(deliver(&b, 0, 29, 0).counts);
    assert_false(deliver(&b, 0, 30, 0).counts);
    free(b.state);
}

static void parameters_are_checked_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *params;
        uint32_t line; /* 0: fine */
        const char *accepted;
    } rows[] = {
        {"asp", "", 0, ""},
        {"asp", "staleness = sharp", 11, "constant, polynomial"},
        {"ssp", "threshold = 0, staleness = exponential", 0, ""},
        {"ssp", "threshold = -1", 11, "from 0 to 1000000"},
        {"ssp", "threshold = 1.5", 11, "whole number"},
        {"ssp", "threshold = low", 11, "whole number"},
        {"ssp", "staleness = sharp", 11, "constant, polynomial"},
        {"dssp", "low = 0, high = 1000, strict = off, early = on", 0, ""},
        {"dssp", "low = 15", 0, ""},
        {"dssp", "low = 16", 11, "high (15 unless given)"},
        {"dssp", "low = 3, high = 2", 12, "high (15 unless given)"},
        {"dssp", "low = 3, high = 1004", 12, "1000 more"},
        {"dssp", "low = a", 11, "low is"},
        {"dssp", "high = 1e9", 11, "high is"},
        {"dssp", "strict = maybe", 11, "on or off"},
        {"dssp", "low = 1, early = 1", 12, "on or off"},
        {"dssp", "staleness_b = 1", 11, "hinge"},
        {"psp", "beta = 0.5, threshold = 9, barrier = pssp, resample = off", 0, ""},
        {"psp", "barrier = pbsp, beta = 3", 0, ""},
        {"psp", "beta = 1.5", 11, "share"},
        {"psp", "beta = -1", 11, "share"},
        {"psp", "beta = 2000000", 11, "1000000"},
        {"psp", "barrier = bsp", 11, "pssp or pbsp"},
        {"psp", "barrier = pbsp, threshold = 1", 12, "nobody"},
        {"psp", "threshold = 0.1", 11, "whole number"},
        {"psp", "resample = often", 11, "on or off"},
        {"psp", "staleness = sharp", 11, "constant, polynomial"},
        {"fedasync", "alpha = 1, max_staleness = 16, concurrency = 10", 0, ""},
        {"fedasync", "alpha = 0", 11, "above 0"},
        {"fedasync", "alpha = 1.01", 11, "up to 1"},
        {"fedasync", "max_staleness = 0.5", 11, "whole number"},
        {"fedasync", "concurrency = -2", 11, "whole number"},
        {"fedasync", "staleness = constant, staleness_a = 1", 12, "polynomial"},
        {"fedbuff", "buffer = 1, concurrency = 0, max_staleness = 5, normalise = weights", 0, ""},
        {"fedbuff", "buffer = 0", 11, "from 1"},
        {"fedbuff", "concurrency = some", 11, "whole number"},
        {"fedbuff", "max_staleness = -1", 11, "whole number"},
        {"fedbuff", "normalise = mean", 11, "count or weights"},
        {"fedbuff", "staleness_a = -1", 11, "from 0 to 1000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_sync *sync = elv_sync_by_name(rows[i].policy);
        const struct elv_params params = sync_params(rows[i].params);
        const struct elv_sync_cfg cfg = {.quorum = 1, .params = &params};
        char why[ELV_JOB_ERROR_MAX] = "";
        uint32_t line = 0;
        const enum elv_err err = sync->check(&cfg, why, &line);
        assert_int_equal(err, rows[i].line ? ELV_ERR_RANGE : ELV_OK);
        assert_int_equal(line, rows[i].line);
        assert_non_null(strstr(why, rows[i].accepted));
        assert_int_equal(elv_param_check_names(&params, sync->params, why, &line), ELV_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dssp_foresees_where_the_wait_is_shortest),
        cmocka_unit_test(dssp_is_ssp_until_it_has_seen_two_updates_of_both),
        cmocka_unit_test(whoever_never_asks_again_is_not_waited_for),
        cmocka_unit_test(the_held_start_when_the_one_they_wait_for_leaves),
        cmocka_unit_test(fedasync_mixes_as_if_one_by_one),
        cmocka_unit_test(fedbuff_makes_a_version_of_every_so_many),
        cmocka_unit_test(parameters_are_checked_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
