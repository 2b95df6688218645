/* SPDX-License-Identifier: Apache-2.0 */
/* The swarm under policies that let clients start by themselves: throughput, bounds, room, silence,
 * pace, and what stale updates and mixed models add up to. And under dbw, whose four variants
 * differ in what becomes of those that a round closed without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/swarm_case.h"

#define SECOND 1000000

static struct swarm_case c;

/* A quarter of the devices takes four seconds, the others one. */
static void two_classes(struct elv_lab_world *w)
{
    w->device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1.0};
    w->device.straggler_share = 0.25;
    w->device.straggler_factor = 4.0;
    w->device.straggler_fixed = true;
}

static struct elv_lab_draw constant(double a)
{
    return (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = a};
}

static void asp_runs_everybody_at_its_own_pace(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "asp"}, {"sync", "publish_interval", "0s"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 8);
    two_classes(&c.world);
    c.world.horizon_s = 100.5;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(sum.used, 6 * 100 + 2 * 25);
    assert_true(sum.waiting_us == 0.0);
    assert_true(sum.working_us == 8 * 100.5 * SECOND);
    /* A slow one sees 6 * 4 + 1 others, a fast one 5 + 2 / 4, and both what came at the same
     * moment as their version. */
    assert_true(sum.stale_mean > 5.0 && sum.stale_mean < 8.0);
    swarm_case_free(&c);
}

static void ssp_is_bound_by_the_slowest_whatever_the_threshold(void **state)
{
    (void)state;
    static const char *const threshold[] = {"0", "3", "15"};
    for (uint32_t i = 0; i < 3; i++) {
        const struct swarm_key keys[] = {{"sync", "policy", "ssp"},
                                         {"sync", "publish_interval", "0s"},
                                         {"sync", "threshold", threshold[i]},
                                         {NULL, NULL, NULL}};
        swarm_case_init(&c, keys, 8);
        two_classes(&c.world);
        c.world.horizon_s = 4000.5;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        const uint64_t ahead = 6 * (strtoul(threshold[i], NULL, 10) + 1);
        assert_in_range(sum.used, 8000, 8000 + ahead); /* n / T_slow, and a transient */
        assert_true(sum.waiting_us > 0.7 * 6 * 4000.0 * SECOND);
        swarm_case_free(&c);
    }
}

static void room_bounds_who_works_and_so_the_staleness(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {{"sync", "policy", "fedbuff"},
                                     {"sync", "buffer", "10"},
                                     {"sync", "concurrency", "100"},
                                     {"sync", "publish_interval", "0s"},
                                     {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 1000);
    c.world.device.compute =
        (struct elv_lab_draw){.shape = ELV_LAB_HALF_NORMAL, .a = 0.1, .b = 1.0};
    c.cfg.rounds = 2000;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(sum.used, 20000);
    assert_true(sum.working_us == 100.0 * (double)sum.ended);
    /* Everybody sees the other 99 come, and on average half a buffer before it started. */
    assert_true(sum.stale_mean > 0.98 * 103.5 && sum.stale_mean < 1.02 * 103.5);
    assert_true(sum.fairness > 0.93);
    swarm_case_free(&c);
}

static void who_is_silent_lapses_and_joins_again(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {{"sync", "policy", "ssp"},
                                     {"sync", "publish_interval", "0s"},
                                     {"sync", "threshold", "2"},
                                     {"sync", "deadline", "5s"},
                                     {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 8);
    c.world.device.compute = constant(1.0);
    c.world.availability.dropout = 0.05;
    c.world.horizon_s = 1000.0;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.lapsed > 20);
    assert_true(sum.dropped - sum.lapsed <= 8);
    assert_int_equal(swarm_case_count(&c, ELV_LAB_JOINED) > 8, true);
    assert_true(sum.used > 1500); /* never held up for longer than the deadline */
    assert_true(sum.worst_overrun == 0);
    swarm_case_free(&c);
}

static void versions_come_no_faster_than_the_job_says(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "asp"}, {"sync", "publish_interval", "10s"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 5);
    c.world.device.compute = constant(1.5);
    c.cfg.rounds = 20;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.ended == 200 * (elv_time_us)SECOND);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(c.rounds[i].closed - c.rounds[i].opened == 10 * SECOND);
    swarm_case_free(&c);
}

static void with_everybody_alike_asp_makes_the_server_s_share_of_a_step(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "asp"}, {"sync", "publish_interval", "0s"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 3);
    swarm_case_learns(&c, 2);
    c.world.device.compute = constant(1.0);
    c.cfg.rounds = 3;
    swarm_case_run(&c);
    /* One from each, all made from version 0: one averaged step, (1 + 4 + 9) / 6. */
    const double w = (double)elv_swarm_model(c.s)[0];
    assert_true(w > 14.0 / 6.0 - 1e-6 && w < 14.0 / 6.0 + 1e-6);
    swarm_case_free(&c);
}

static void fedasync_mixes_models_one_by_one(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {{"sync", "policy", "fedasync"},
                                     {"sync", "alpha", "0.5"},
                                     {"sync", "staleness", "constant"},
                                     {"sync", "publish_interval", "0s"},
                                     {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 3);
    swarm_case_learns(&c, 1);
    c.world.device.compute = constant(1.0);
    c.cfg.rounds = 3;
    swarm_case_run(&c);
    /* ((0 / 2 + 1 / 2) / 2 + 2 / 2) / 2 + 3 / 2 */
    const double w = (double)elv_swarm_model(c.s)[0];
    assert_true(w > 2.125 - 1e-6 && w < 2.125 + 1e-6);
    swarm_case_free(&c);
}

/* Three fast clients and a slow one, which no round needs. */
static struct elv_lab_summary run_dbw(const char *variant, uint32_t rounds)
{
    const struct swarm_key keys[] = {{"sync", "policy", "dbw"},
                                     {"sync", "variant", variant},
                                     {"sync", "rule", "blind"},
                                     {"sync", "slack", "0"},
                                     {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 4);
    two_classes(&c.world);
    c.world.link.latency = constant(0.25);
    c.world.link.down = constant(1000.0);
    c.learner.bytes_down = 250;
    c.cfg.rounds = rounds;
    return swarm_case_run(&c);
}

static uint32_t first_of(enum elv_lab_event_kind kind)
{
    uint32_t i = 0;
    while (i < c.n_events && c.events[i].kind != kind)
        i++;
    assert_true(i < c.n_events);
    return i;
}

/* The first start of the same client from there on. */
static const struct elv_lab_event *next_start(uint32_t i)
{
    const uint32_t client = c.events[i].client;
    while (c.events[i].kind != ELV_LAB_STARTED || c.events[i].client != client)
        i++;
    return &c.events[i];
}

static void the_variants_of_dbw_treat_the_slow_as_they_say(void **state)
{
    (void)state;
    /* Blind dbw soon waits for the three fast ones, 1.75 s instead of 4.75 s. */
    struct elv_lab_summary sum = run_dbw("psi", 100);
    assert_true(sum.interrupted > 80 && sum.late == 0);
    uint32_t i = first_of(ELV_LAB_INTERRUPTED);
    assert_true(next_start(i)->at == c.events[i].at);
    swarm_case_free(&c);

    sum = run_dbw("pai", 100);
    assert_true(sum.interrupted > 80 && sum.late == 0);
    i = first_of(ELV_LAB_INTERRUPTED);
    assert_true(c.events[i].at % SECOND != 0);
    swarm_case_free(&c);

    sum = run_dbw("pull", 100);
    assert_true(sum.interrupted == 0 && sum.late > 20);
    i = first_of(ELV_LAB_LATE);
    assert_true(next_start(i)->at == c.events[i].at);
    const double pull = sum.working_us / (double)sum.ended;
    swarm_case_free(&c);

    sum = run_dbw("psw", 100);
    assert_true(sum.interrupted == 0 && sum.late > 20);
    const double psw = sum.working_us / (double)sum.ended;
    assert_true(psw > 0.9 * pull && psw < 1.1 * pull);
    swarm_case_free(&c);
}

static void pushed_versions_are_there_when_late_work_ends(void **state)
{
    (void)state;
    static const char *const variant[] = {"pull", "psw"};
    double rate[2];
    for (uint32_t i = 0; i < 2; i++) {
        const struct elv_lab_summary sum = run_dbw(variant[i], 400);
        rate[i] = (double)sum.late / (double)sum.ended;
        swarm_case_free(&c);
    }
    assert_true(rate[1] > rate[0]); /* each piece of the slow one takes 0.5 s less */
}

static void streams_give_the_same_hash_twice_in_a_world_where_everything_happens(void **state)
{
    (void)state;
    static const char *const policies[] = {"asp", "ssp", "dssp", "psp", "fedasync", "fedbuff"};
    for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++) {
        const struct swarm_key keys[] = {
            {"sync", "policy", policies[p]}, {"sync", "deadline", "20s"}, {NULL, NULL, NULL}};
        uint64_t hash[2];
        for (uint32_t i = 0; i < 2; i++) {
            swarm_case_init(&c, keys, 30);
            swarm_case_learns(&c, 8);
            c.world.device.compute =
                (struct elv_lab_draw){.shape = ELV_LAB_LOGNORMAL, .a = 2.0, .b = 0.7};
            c.world.link.latency = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .b = 0.2};
            c.world.link.up = constant(100.0);
            c.world.availability.churn_rate = 0.2;
            c.world.availability.stay =
                (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 100.0};
            c.world.availability.on =
                (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 50.0};
            c.world.availability.off =
                (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 10.0};
            c.world.availability.dropout = 0.05;
            c.world.horizon_s = 600.0;
            const struct elv_lab_summary sum = swarm_case_run(&c);
            hash[i] = sum.hash;
            assert_true(sum.version > 50 && sum.worst_overrun == 0);
            swarm_case_free(&c);
        }
        assert_true(hash[0] == hash[1]);
    }
}

static struct elv_lab_trace traced(const char *text)
{
    struct elv_lab_trace t;
    char why[256];
    uint32_t line;
    const struct elv_bytes bytes = {.at = (const uint8_t *)text, .len = strlen(text)};
    assert_int_equal(elv_lab_trace_parse(&t, bytes, why, &line), ELV_OK);
    return t;
}

/* As the server has it: with one of three silent it opens no round, and what comes meanwhile counts
 * once that one is back. */
static void no_round_opens_without_a_quorum_there_and_updates_wait_for_it(void **state)
{
    (void)state;
    struct elv_lab_trace t = traced("client,start,end,compute_ms,up_bytes_s,down_bytes_s\n"
                                    "1,0,100,1000,0,0\n"
                                    "2,0,0.5,1000,0,0\n2,30,100,1000,0,0\n"
                                    "3,0,100,1500,0,0\n");
    const struct swarm_key keys[] = {{"sync", "policy", "asp"},
                                     {"sync", "publish_interval", "0s"},
                                     {"sync", "quorum", "3"},
                                     {"sync", "deadline", "10s"},
                                     {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 3);
    c.world.trace = &t;
    c.world.horizon_s = 60;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    elv_time_us closed = 0, used_at = 0;
    for (uint32_t i = 0; i < c.n_rounds; i++) {
        closed = c.rounds[i].closed < 30 * SECOND ? c.rounds[i].closed : closed;
        assert_true(c.rounds[i].opened <= 12 * SECOND || c.rounds[i].opened >= 30 * SECOND);
        assert_false(c.rounds[i].abandoned);
    }
    assert_true(closed >= 10 * SECOND && closed <= 12 * SECOND);
    for (uint32_t i = 0; i < c.n_events; i++) {
        const struct elv_lab_event *e = &c.events[i];
        assert_true(e->at <= closed || e->at >= 30 * SECOND);
        if (e->kind == ELV_LAB_USED && e->at > closed && used_at == 0)
            used_at = e->at;
    }
    assert_true(used_at == 30 * (elv_time_us)SECOND);
    assert_int_equal(sum.dropped, 1);
    assert_int_equal(sum.lapsed, 1);
    assert_int_equal(sum.late, 0);
    elv_lab_trace_free(&t);
    swarm_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asp_runs_everybody_at_its_own_pace),
        cmocka_unit_test(ssp_is_bound_by_the_slowest_whatever_the_threshold),
        cmocka_unit_test(room_bounds_who_works_and_so_the_staleness),
        cmocka_unit_test(who_is_silent_lapses_and_joins_again),
        cmocka_unit_test(versions_come_no_faster_than_the_job_says),
        cmocka_unit_test(with_everybody_alike_asp_makes_the_server_s_share_of_a_step),
        cmocka_unit_test(fedasync_mixes_models_one_by_one),
        cmocka_unit_test(the_variants_of_dbw_treat_the_slow_as_they_say),
        cmocka_unit_test(pushed_versions_are_there_when_late_work_ends),
        cmocka_unit_test(no_round_opens_without_a_quorum_there_and_updates_wait_for_it),
        cmocka_unit_test(streams_give_the_same_hash_twice_in_a_world_where_everything_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
