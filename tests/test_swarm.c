/* SPDX-License-Identifier: Apache-2.0 */
/* The swarm against what can be calculated: order statistics, classes of speed, waiting, deadlines,
 * silence, lateness, interruption, sums. */
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

static const struct swarm_key bsp[] = {{"sync", "policy", "bsp"}, {NULL, NULL, NULL}};

/* 1 - a + a * Exp(1) */
static struct elv_lab_draw shifted(double a)
{
    return (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .a = 1.0 - a, .b = a};
}

static double harmonic(uint32_t n)
{
    double h = 0.0;
    for (uint32_t i = 1; i <= n; i++)
        h += 1.0 / i;
    return h;
}

static void the_kth_arrival_takes_as_long_as_calculated(void **state)
{
    (void)state;
    static const struct {
        const char *k;
        double a;
    } rows[] = {{"4", 1.0}, {"8", 1.0}, {"12", 1.0}, {"16", 1.0}, {"16", 0.2}, {"8", 0.2}};
    enum { N = 16, ROUNDS = 20000 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct swarm_key keys[] = {
            {"sync", "policy", "backup"}, {"sync", "k", rows[i].k}, {NULL, NULL, NULL}};
        swarm_case_init(&c, keys, N);
        c.world.device.compute = shifted(rows[i].a);
        c.cfg.rounds = ROUNDS;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        const uint32_t k = (uint32_t)strtoul(rows[i].k, NULL, 10);
        const double expected = 1.0 - rows[i].a + rows[i].a * (harmonic(N) - harmonic(N - k));
        const double mean = (double)sum.ended / SECOND / ROUNDS;
        assert_true(mean > 0.99 * expected && mean < 1.01 * expected);
        assert_int_equal(sum.used, (uint64_t)k * ROUNDS);
        assert_int_equal(sum.version, ROUNDS);
        swarm_case_free(&c);
    }
}

/* A quarter of the devices takes four seconds, the others one. */
static void two_classes(struct elv_lab_world *w)
{
    w->device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1.0};
    w->device.straggler_share = 0.25;
    w->device.straggler_factor = 4.0;
    w->device.straggler_fixed = true;
}

static void two_classes_give_the_slow_ones_round_or_with_spares_the_fast_ones(void **state)
{
    (void)state;
    const struct swarm_key backup[] = {
        {"sync", "policy", "backup"}, {"sync", "k", "6"}, {NULL, NULL, NULL}};
    for (uint32_t i = 0; i < 2; i++) {
        swarm_case_init(&c, i == 0 ? bsp : backup, 8);
        two_classes(&c.world);
        c.cfg.rounds = 100;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        assert_true(sum.ended == (i == 0 ? 400 : 100) * (elv_time_us)SECOND);
        assert_int_equal(sum.used, i == 0 ? 800 : 600);
        assert_int_equal(sum.interrupted, i == 0 ? 0 : 200);
        assert_int_equal(c.rounds[5].n_asked, 8);
        swarm_case_free(&c);
    }
}

static void waiting_in_bsp_is_what_the_slowest_takes_longer(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 8);
    two_classes(&c.world);
    c.cfg.rounds = 10;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.waiting_us == 10.0 * 6 * 3 * SECOND);
    assert_true(sum.working_us == 10.0 * (6 * 1 + 2 * 4) * SECOND);
    assert_true(c.rounds[3].waiting_us == 6.0 * 3 * SECOND);
    assert_true(sum.fairness == 1.0);
    swarm_case_free(&c);
}

static void a_piece_of_work_is_download_compute_and_upload(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 1);
    c.world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 2.0};
    c.world.link.latency = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 0.25};
    c.world.link.down = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1000.0};
    c.world.link.up = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 500.0};
    c.world.link.loss = 0.5;
    c.learner.bytes_down = 1000;
    c.cfg.rounds = 1;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    /* 0.25 + 1, twice as long; 2; 0.25 + 2, twice as long */
    assert_true(sum.ended == 9 * (elv_time_us)SECOND);
    assert_int_equal(sum.bytes_down, 1000);
    assert_int_equal(sum.bytes_up, 1000);
    swarm_case_free(&c);
}

static void who_never_delivers_holds_a_round_until_its_deadline(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"sync", "deadline", "5s"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 10);
    c.world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1.0};
    c.world.availability.dropout = 0.1;
    c.cfg.rounds = 200;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < 200; i++) {
        const struct elv_lab_round *r = &c.rounds[i];
        assert_true(r->closed - r->opened == (r->n_dropped > 0 ? 5 : 1) * SECOND);
        assert_int_equal(r->n_used + r->n_dropped, 10);
        assert_int_equal(r->n_late, 0); /* silent, not late */
        dropped += r->n_dropped;
    }
    assert_in_range(dropped, 150, 250); /* 200 expected, standard deviation 13 */
    assert_int_equal(sum.dropped, dropped);
    assert_int_equal(sum.abandoned, 0);
    assert_true(sum.worst_overrun == 0);
    swarm_case_free(&c);
}

static void without_a_quorum_rounds_are_given_up_and_come_more_slowly(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"sync", "deadline", "10s"}, {NULL, NULL, NULL}};
    static const elv_time_us pause[] = {1, 2, 4, 8, 16, 32, 60, 60};
    swarm_case_init(&c, keys, 3);
    c.world.availability.dropout = 1.0;
    c.world.horizon_s = 400.0;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.ended == 400 * (elv_time_us)SECOND);
    assert_int_equal(sum.version, 0);
    assert_true(sum.abandoned >= 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(c.rounds[i].abandoned);
        assert_true(c.rounds[i].closed - c.rounds[i].opened == 10 * SECOND);
        assert_true(c.rounds[i + 1].opened - c.rounds[i].closed == pause[i] * SECOND);
    }
    swarm_case_free(&c);
}

static void late_work_is_finished_told_and_followed_by_the_newest(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"sync", "deadline", "2500ms"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 4);
    two_classes(&c.world);
    c.cfg.rounds = 8;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.ended == 20 * (elv_time_us)SECOND); /* it is always asked and never in time */
    assert_int_equal(sum.used, 24);
    assert_int_equal(sum.late, 5); /* at 4, 8, 12, 16 and 20 seconds, and then it is over */
    assert_int_equal(c.rounds[0].n_late, 1);
    for (uint32_t i = 0; i < c.n_events; i++)
        if (c.events[i].kind == ELV_LAB_LATE && c.events[i].at == 8 * SECOND)
            assert_int_equal(c.events[i].version, 1); /* it started at 4, when 1 was the newest */
    swarm_case_free(&c);
}

static void who_is_interrupted_stops_when_the_notice_arrives(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "backup"}, {"sync", "k", "3"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 4);
    two_classes(&c.world);
    c.world.link.latency = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 0.25};
    c.cfg.rounds = 10;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.ended == 15 * (elv_time_us)SECOND);
    assert_int_equal(sum.interrupted, 9); /* the last notice is under way */
    for (uint32_t i = 0; i < c.n_events; i++)
        if (c.events[i].kind == ELV_LAB_INTERRUPTED)
            assert_true(c.events[i].at % 1500000 == 250000);
    swarm_case_free(&c);
}

static void sums_and_weights_are_those_of_the_server(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 3);
    swarm_case_learns(&c, 1);
    c.cfg.rounds = 1;
    swarm_case_run(&c);
    /* Clients weigh 1, 2 and 3 and want 1, 2 and 3. */
    const float *w = elv_swarm_model(c.s);
    for (uint32_t i = 0; i < SWARM_PARAMS; i++)
        assert_true(w[i] == (float)(14.0 / 6.0));
    assert_true(c.rounds[0].train_loss == 1.0);
    assert_true(c.rounds[0].score.loss == 10.0 - (double)w[0]);
    uint32_t weights = 0;
    for (uint32_t i = 0; i < c.n_events; i++)
        weights += c.events[i].kind == ELV_LAB_USED ? c.events[i].weight / c.events[i].client : 0;
    assert_int_equal(weights % 3, 0);
    assert_int_equal(c.n_trained, 3);
    swarm_case_free(&c);
}

static void a_codec_that_rounds_versions_loses_nothing_for_good(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"transfer", "down", "q8"}, {NULL, NULL, NULL}};
    float first = 0.0f, last = 0.0f;
    for (uint32_t rounds = 1; rounds <= 4; rounds += 3) {
        swarm_case_init(&c, keys, 3);
        swarm_case_learns(&c, 1);
        c.cfg.rounds = rounds;
        swarm_case_run(&c);
        last = elv_swarm_model(c.s)[0];
        first = rounds == 1 ? last : first;
        swarm_case_free(&c);
    }
    assert_true(first > 2.33f && first < 2.34f);
    assert_true((double)last > 14.0 / 6.0 - 2e-6 && (double)last < 14.0 / 6.0 + 2e-6);
}

static void gathering_changes_nothing_but_the_calls(void **state)
{
    (void)state;
    static const uint32_t most[] = {1, 4, 100};
    uint64_t hash[3];
    for (uint32_t i = 0; i < 3; i++) {
        swarm_case_init(&c, bsp, 20);
        swarm_case_learns(&c, most[i]);
        c.world.device.compute = shifted(0.5);
        c.cfg.rounds = 20;
        hash[i] = swarm_case_run(&c).hash;
        assert_int_equal(c.n_trained, 400);
        assert_int_equal(c.largest_batch, most[i] < 20 ? most[i] : 20);
        swarm_case_free(&c);
    }
    assert_true(hash[0] == hash[1] && hash[0] == hash[2]);
}

static void updates_beyond_the_bound_are_discarded(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 12);
    swarm_case_learns(&c, 4);
    c.job.bound = 8.0f;
    c.cfg.rounds = 1;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(sum.used, 8);
    assert_int_equal(sum.discarded, 4);
    swarm_case_free(&c);
}

static void a_target_ends_the_run(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 9);
    swarm_case_learns(&c, 1);
    c.world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 3.0};
    c.cfg.target_loss = 4.0; /* the mean is 285 / 45 */
    c.cfg.rounds = 100;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(sum.reached && sum.reached_at == 3 * SECOND && sum.ended == 3 * SECOND);
    assert_int_equal(sum.version, 1);
    swarm_case_free(&c);
}

static void a_run_in_pieces_is_the_same_run(void **state)
{
    (void)state;
    struct elv_lab_summary whole, parts;
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; i < 2; i++) {
        swarm_case_init(&c, bsp, 8);
        c.world.device.compute = shifted(1.0);
        c.world.availability.dropout = 0.02;
        c.cfg.rounds = 40;
        if (i == 0) {
            whole = swarm_case_run(&c);
        } else {
            assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_OK);
            for (elv_time_us at = 0; err == ELV_ERR_BUSY; at += 700000) {
                err = elv_swarm_run(c.s, at);
                assert_true(elv_swarm_now(c.s) <= at);
            }
            assert_int_equal(err, ELV_OK);
            elv_swarm_summary(c.s, &parts);
        }
        swarm_case_free(&c);
    }
    assert_true(whole.hash == parts.hash && whole.ended == parts.ended);
    assert_true(whole.events == parts.events);
}

static void some_are_asked_and_all_in_turn(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"select", "count", "10"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 1000);
    c.world.device.compute = shifted(0.5);
    c.cfg.rounds = 2000;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_int_equal(sum.used, 20000);
    assert_int_equal(c.rounds[7].n_asked, 10);
    /* 20 each on average, nearly as in Poisson's law: 20^2 / (20 + 20^2). */
    assert_true(sum.fairness > 0.94 && sum.fairness < 0.965);
    swarm_case_free(&c);
}

static void the_first_round_waits_for_enough_clients(void **state)
{
    (void)state;
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"select", "min_clients", "6"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 10);
    c.world.device.start_spread = 10 * SECOND;
    c.world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1.3};
    c.cfg.rounds = 3;
    swarm_case_run(&c);
    assert_true(c.rounds[0].opened == 5 * SECOND);
    assert_int_equal(c.rounds[0].n_asked, 6);
    assert_int_equal(c.rounds[1].n_asked, 7);
    assert_int_equal(c.rounds[2].n_asked, 8);
    swarm_case_free(&c);
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

#define HEAD "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n"

static void who_is_away_is_silent_and_starts_anew_when_back(void **state)
{
    (void)state;
    /* Client 1 is away from 1.5 to 3; client 2 comes at 0.9 and leaves its second work at 4. */
    struct elv_lab_trace t = traced(HEAD "1,0,1.5,1000,0,0\n1,3,100,1000,0,0\n"
                                         "2,0.9,4,2000,0,0\n");
    const struct swarm_key keys[] = {
        {"sync", "policy", "bsp"}, {"sync", "deadline", "4s"}, {NULL, NULL, NULL}};
    swarm_case_init(&c, keys, 2);
    c.world.trace = &t;
    c.cfg.rounds = 4;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    assert_true(c.rounds[0].closed == 1 * SECOND); /* client 1 alone */
    assert_true(c.rounds[1].closed == 4 * SECOND); /* 2 at 3, 1 anew from 3 */
    assert_int_equal(c.rounds[1].n_used, 2);
    assert_int_equal(c.rounds[1].n_dropped, 0);    /* the work was, and done again */
    assert_true(c.rounds[2].closed == 8 * SECOND); /* waiting for 2 */
    assert_int_equal(c.rounds[2].n_dropped, 1);
    assert_int_equal(sum.dropped, 2);
    assert_int_equal(c.rounds[3].n_asked, 1);
    assert_int_equal(sum.version, 4);
    elv_lab_trace_free(&t);
    swarm_case_free(&c);
}

static void whoever_leaves_rounds_go_on_within_their_deadline(void **state)
{
    (void)state;
    static const char *const policies[] = {"bsp", "backup"};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const bool spare = seed % 2 == 0;
        const struct swarm_key keys[] = {{"sync", "policy", policies[spare]},
                                         {"sync", "deadline", "8s"},
                                         {"sync", spare ? "backup" : "quorum", "2"},
                                         {NULL, NULL, NULL}};
        swarm_case_init(&c, keys, 30);
        c.cfg.seed = seed;
        c.world.device.compute = shifted(0.8);
        c.world.availability.churn_rate = 0.3;
        c.world.availability.stay = (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 40.0};
        c.world.availability.on = (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 20.0};
        c.world.availability.off = (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 5.0};
        c.world.availability.dropout = 0.1;
        c.world.horizon_s = 1000.0;
        const struct elv_lab_summary sum = swarm_case_run(&c);
        assert_true(sum.worst_overrun == 0);
        assert_true(sum.version > 50);
        for (uint32_t i = 0; i < c.n_rounds; i++) {
            assert_true(c.rounds[i].closed - c.rounds[i].opened <= 8 * SECOND);
            assert_true(c.rounds[i].abandoned || c.rounds[i].n_used >= c.job.quorum);
        }
        assert_true(sum.used + sum.late + sum.discarded + sum.dropped + sum.interrupted <=
                    sum.started);
        assert_true(sum.used + sum.late + sum.discarded + sum.dropped + sum.interrupted + 30 >=
                    sum.started);
        swarm_case_free(&c);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    swarm_case_init(&c, bsp, 0);
    assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_ERR_ARG);
    assert_non_null(strstr(c.why, "number of clients"));
    c.cfg.n_clients = 1;
    c.world.link.loss = 1.0;
    assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_ERR_ARG);
    assert_non_null(strstr(c.why, "loss"));
    c.world.link.loss = 0.0;
    c.job.quorum = 2;
    assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_ERR_ARG);
    assert_non_null(strstr(c.why, "quorum"));
    c.job.quorum = 1;
    strcpy(c.job.sync, "backup");
    c.job.sync_params = (struct elv_params){{{.name = "k", .value = 2.0}}, 1};
    assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_ERR_ARG);
    assert_non_null(strstr(c.why, "k is at most"));
    strcpy(c.job.sync, "nonesuch");
    assert_int_equal(elv_swarm_new(&c.s, &c.cfg, c.why), ELV_ERR_ARG);
    assert_non_null(strstr(c.why, "nonesuch"));
}

static void the_same_seed_gives_the_same_hash_and_another_does_not(void **state)
{
    (void)state;
    uint64_t hash[3];
    for (uint32_t i = 0; i < 3; i++) {
        swarm_case_init(&c, bsp, 8);
        c.world.device.compute = shifted(1.0);
        c.cfg.rounds = 50;
        c.cfg.seed = i == 2 ? 2 : 1;
        hash[i] = swarm_case_run(&c).hash;
        swarm_case_free(&c);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kth_arrival_takes_as_long_as_calculated),
        cmocka_unit_test(two_classes_give_the_slow_ones_round_or_with_spares_the_fast_ones),
        cmocka_unit_test(waiting_in_bsp_is_what_the_slowest_takes_longer),
        cmocka_unit_test(a_piece_of_work_is_download_compute_and_upload),
        cmocka_unit_test(who_never_delivers_holds_a_round_until_its_deadline),
        cmocka_unit_test(without_a_quorum_rounds_are_given_up_and_come_more_slowly),
        cmocka_unit_test(late_work_is_finished_told_and_followed_by_the_newest),
        cmocka_unit_test(who_is_interrupted_stops_when_the_notice_arrives),
        cmocka_unit_test(sums_and_weights_are_those_of_the_server),
        cmocka_unit_test(a_codec_that_rounds_versions_loses_nothing_for_good),
        cmocka_unit_test(gathering_changes_nothing_but_the_calls),
        cmocka_unit_test(updates_beyond_the_bound_are_discarded),
        cmocka_unit_test(a_target_ends_the_run),
        cmocka_unit_test(a_run_in_pieces_is_the_same_run),
        cmocka_unit_test(some_are_asked_and_all_in_turn),
        cmocka_unit_test(the_first_round_waits_for_enough_clients),
        cmocka_unit_test(who_is_away_is_silent_and_starts_anew_when_back),
        cmocka_unit_test(whoever_leaves_rounds_go_on_within_their_deadline),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_same_seed_gives_the_same_hash_and_another_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
