/* SPDX-License-Identifier: Apache-2.0 */
/* Over-selection: whom a round asks and waits for, who is sent away for how long, and how often
 * enough clients are left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "common/rng.h"
#include "server/sync.h"

static const struct elv_sync *overselect;
static struct elv_params params;
static struct elv_sync_cfg cfg;
static uint64_t state[1];

static void add(const char *name, enum elv_param_kind kind, double value)
{
    struct elv_param *p = &params.at[params.n++];
    strcpy(p->name, name);
    p->kind = kind;
    p->value = value;
    p->line = 10 + params.n;
}

/* NAN: not given. */
static void begin(double goal, double factor, double minimum, uint32_t quorum)
{
    overselect = elv_sync_by_name("overselect");
    memset(&params, 0, sizeof params);
    memset(state, 0, sizeof state);
    if (!isnan(goal))
        add("goal", ELV_PARAM_NUMBER, goal);
    if (!isnan(factor))
        add("factor", ELV_PARAM_NUMBER, factor);
    if (!isnan(minimum))
        add("minimum", ELV_PARAM_NUMBER, minimum);
    cfg = (struct elv_sync_cfg){
        .quorum = quorum, .deadline_us = 60000000, .seed = 7, .params = &params};
    assert_true(overselect->state_len(&cfg) <= sizeof state);
}

static void a_round_asks_more_than_it_needs(void **st)
{
    (void)st;
    static const struct {
        double goal, factor, minimum;
        uint32_t quorum, ask, least;
    } rows[] = {
        {300, NAN, NAN, 1, 390, 1},
        {300, 1.3, 0.8, 240, 390, 240},
        {10, 1.1, NAN, 1, 11, 1},
        {10, 1.01, 1, 10, 11, 10},
        {1, 1, NAN, 1, 1, 1},
        {7, 1.3, 0.5, 4, 10, 4},
        {1000000, 1.3, NAN, 1, 1300000, 1},
        {10, 1, 0.3, 5, 10, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].goal, rows[i].factor, rows[i].minimum, rows[i].quorum);
        const struct elv_sync_call c = overselect->call(&cfg);
        assert_int_equal(c.ask, rows[i].ask);
        assert_int_equal(c.least, rows[i].least);
        assert_int_equal(c.wait_us, 30000000);
    }
    add("selection_timeout", ELV_PARAM_DURATION, 5e6);
    assert_int_equal(overselect->call(&cfg).wait_us, 5000000);
}

/* Each row is one situation of a round that wants 4 of 6, and 2 at least. */
static void a_round_closes_with_the_goal(void **st)
{
    (void)st;
    static const struct {
        uint32_t n_asked, n_got, n_waiting, version;
        bool closes, one_more_counts;
        uint32_t wanted;
    } rows[] = {
        {6, 0, 6, 5, false, true, 4},  {6, 3, 3, 5, false, true, 4},
        {6, 4, 2, 5, true, false, 4},                                /* the surplus is late */
        {6, 3, 0, 5, true, true, 4},                                 /* nobody else will come */
        {3, 3, 0, 5, true, true, 3},   {3, 2, 1, 5, false, true, 3}, /* opened with few */
        {6, 0, 6, 4, false, false, 4},                               /* of the round before */
    };
    begin(4, 1.5, 0.5, 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_sync_round r = {.version = 5,
                                         .n_asked = rows[i].n_asked,
                                         .n_got = rows[i].n_got,
                                         .n_waiting = rows[i].n_waiting};
        const struct elv_sync_update u = {.version = rows[i].version};
        const struct elv_sync_worth w = overselect->on_update(state, &cfg, &r, &u, 0);
        assert_int_equal(overselect->should_commit(state, &cfg, &r, 0),
                         rows[i].closes ? ELV_SYNC_MUST : ELV_SYNC_NO);
        assert_int_equal(w.counts, rows[i].one_more_counts);
        assert_true(w.weight == 1.0);
        assert_int_equal(overselect->wanted(state, &cfg, &r), rows[i].wanted);
    }
    assert_true(overselect->interrupts(state, &cfg, (struct elv_sync_client){0, 1}));
}

/* Sent away. */

static double retry_s(const struct elv_sync_round *r, uint32_t client, elv_time_us now)
{
    const struct elv_sync_grant g =
        overselect->on_pull(state, &cfg, r, (struct elv_sync_client){client - 1, client}, now);
    assert_int_equal(g.start, ELV_SYNC_REJECT);
    assert_true(g.retry_ms >= 1);
    return g.retry_ms * 1e-3;
}

static void took(double s)
{
    const struct elv_sync_commit c = {.round = {.opened = 1000000}};
    overselect->on_commit(state, &cfg, &c, 1000000 + (elv_time_us)(s * 1e6));
}

static void a_large_population_is_spread_over_the_rounds_it_takes_to_ask_it(void **st)
{
    (void)st;
    enum { N = 20000 };
    begin(100, 1.3, NAN, 1);
    took(40);
    const struct elv_sync_round r = {.seq = 9, .opened = 0, .n_joined = N};
    const double period = 40.0 * N / 130;
    double sum = 0, least = 1e9, most = 0;
    uint32_t halves = 0, same = 0;
    for (uint32_t c = 1; c <= N; c++) {
        const double s = retry_s(&r, c, 5000000);
        sum += s;
        least = s < least ? s : least;
        most = s > most ? s : most;
        halves += s < period;
        same += s == retry_s(&r, c + 1, 5000000);
        assert_true(s == retry_s(&r, c, 5000000)); /* it may ask over and over */
    }
    assert_true(fabs(sum / N / period - 1) < 0.01);
    assert_true(least >= 0.5 * period - 1e-3 && least < 0.51 * period);
    assert_true(most <= 1.5 * period && most > 1.49 * period);
    assert_in_range(halves, N / 2 - 300, N / 2 + 300); /* standard deviation 71 */
    assert_true(same < 10);
    const struct elv_sync_round later = {.seq = 10, .n_joined = N};
    assert_true(retry_s(&r, 5, 0) != retry_s(&later, 5, 0));
    cfg.seed = 8;
    assert_true(retry_s(&later, 5, 0) != period);
}

static void a_small_population_comes_back_together_at_the_rounds_end(void **st)
{
    (void)st;
    begin(10, 1.3, NAN, 1);
    const struct elv_sync_round r = {.seq = 3, .opened = 100000000, .n_joined = 20};
    for (uint32_t c = 1; c <= 20; c++) { /* nothing known yet: the deadline, 60 s */
        const double s = retry_s(&r, c, 110000000);
        assert_true(s >= 50.0 - 1e-3 && s <= 57.5);
    }
    took(8);
    for (uint32_t c = 1; c <= 20; c++) {
        const double s = retry_s(&r, c, 102000000);
        assert_true(s >= 6.0 - 1e-3 && s <= 7.0);
        const double overdue = retry_s(&r, c, 130000000);
        assert_true(overdue >= 2.0 - 1e-3 && overdue <= 3.0);
    }
    assert_true(retry_s(&r, 1, 102000000) != retry_s(&r, 2, 102000000));
}

static void how_long_a_round_takes_is_averaged(void **st)
{
    (void)st;
    begin(10, 1.3, NAN, 1);
    const struct elv_sync_round r = {.seq = 3, .opened = 0, .n_joined = 20};
    took(10);
    took(20); /* 0.8 * 10 + 0.2 * 20 */
    const double s = retry_s(&r, 1, 0);
    assert_true(s >= 12.0 - 1e-3 && s <= 13.5);
}

static void without_a_round_clients_wait(void **st)
{
    (void)st;
    begin(10, 1.3, NAN, 1);
    const struct elv_sync_round r = {.opened = ELV_NEVER, .n_joined = 20};
    const struct elv_sync_grant g =
        overselect->on_pull(state, &cfg, &r, (struct elv_sync_client){0, 1}, 0);
    assert_int_equal(g.start, ELV_SYNC_HOLD);
}

/* Enough are left. */

static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Of n, each there with probability p, at least k. */
static double at_least(uint32_t n, double p, uint32_t k)
{
    double sum = 0;
    for (uint32_t i = k; i <= n; i++)
        sum += exp(log_choose(n, i) + i * log(p) + (n - i) * log1p(-p));
    return sum;
}

/* Every client asked delivers, or drops out and is not heard of: does the goal come together? */
static bool round_succeeds(struct elv_rng *rng, double p)
{
    struct elv_sync_round r = {.n_asked = overselect->call(&cfg).ask};
    r.n_waiting = r.n_asked;
    const struct elv_sync_update u = {.version = 0};
    for (uint32_t i = 0; i < r.n_asked; i++) {
        if ((double)elv_rng_unit(rng) >= p)
            continue;
        r.n_waiting--;
        r.n_got += overselect->on_update(state, &cfg, &r, &u, 0).counts;
        if (overselect->should_commit(state, &cfg, &r, 0) == ELV_SYNC_MUST)
            return true;
    }
    return false;
}

/* 300 wanted, 8 % drop out. */
static void a_third_more_clients_make_up_for_those_that_drop_out(void **st)
{
    (void)st;
    enum { ROUNDS = 4000 };
    static const struct {
        double factor;
        uint32_t ask;
        double published, within;
    } rows[] = {{1.05, 315, 0.017, 0.0005}, {1.10, 330, 0.80, 0.005}, {1.30, 390, 1.0, 1e-9}};
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = 1, .purpose = ELV_RNG_TEST});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(300, rows[i].factor, NAN, 1);
        assert_int_equal(overselect->call(&cfg).ask, rows[i].ask);
        const double exact = at_least(rows[i].ask, 0.92, 300);
        uint32_t n = 0;
        for (uint32_t round = 0; round < ROUNDS; round++)
            n += round_succeeds(&rng, 0.92);
        const double ours = (double)n / ROUNDS;
        print_message("factor %.2f: %.4f of the rounds reach the goal, exactly %.4f, "
                      "reference %.3f\n",
                      rows[i].factor, ours, exact, rows[i].published);
        assert_true(fabs(exact - rows[i].published) <= rows[i].within);
        assert_true(fabs(ours - exact) <= 4 * sqrt(fmax(0, exact * (1 - exact)) / ROUNDS) + 1e-9);
    }
}

/* Parameters. */

static bool is_fine(char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    why[0] = '\0';
    *line = 99;
    const bool fine = overselect->check(&cfg, why, line) == ELV_OK;
    assert_int_equal(why[0] == '\0', fine);
    return fine;
}

static void impossible_parameters_are_refused(void **st)
{
    (void)st;
    static const struct {
        double goal, factor, minimum;
        uint32_t quorum, line; /* 99: fine */
    } rows[] = {
        {NAN, NAN, NAN, 1, 0},  {0, NAN, NAN, 1, 11},   {2.5, NAN, NAN, 1, 11},
        {10, NAN, NAN, 1, 99},  {10, NAN, NAN, 10, 99}, {10, NAN, NAN, 11, 11},
        {10, 0.9, NAN, 1, 12},  {10, 1, NAN, 1, 99},    {10, 101, NAN, 1, 12},
        {10, 1.3, 0, 1, 13},    {10, 1.3, 1.1, 10, 13}, {10, 1.3, 0.8, 8, 99},
        {10, 1.3, 0.75, 8, 99}, {10, 1.3, 0.8, 9, 99},  {10, 1.3, 0.8, 7, 13},
    };
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].goal, rows[i].factor, rows[i].minimum, rows[i].quorum);
        const bool fine = is_fine(why, &line);
        assert_int_equal(fine, rows[i].line == 99);
        if (!fine)
            assert_int_equal(line, rows[i].line);
    }
    assert_non_null(strstr(why, "quorum = 8"));
    begin(10, NAN, NAN, 1);
    add("selection_timeout", ELV_PARAM_NUMBER, 30);
    assert_false(is_fine(why, &line));
    assert_int_equal(line, 12);
    params.at[1].kind = ELV_PARAM_DURATION;
    params.at[1].value = 30e6;
    assert_true(is_fine(why, &line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_asks_more_than_it_needs),
        cmocka_unit_test(a_round_closes_with_the_goal),
        cmocka_unit_test(a_large_population_is_spread_over_the_rounds_it_takes_to_ask_it),
        cmocka_unit_test(a_small_population_comes_back_together_at_the_rounds_end),
        cmocka_unit_test(how_long_a_round_takes_is_averaged),
        cmocka_unit_test(without_a_round_clients_wait),
        cmocka_unit_test(a_third_more_clients_make_up_for_those_that_drop_out),
        cmocka_unit_test(impossible_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
