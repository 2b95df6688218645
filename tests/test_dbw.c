/* SPDX-License-Identifier: Apache-2.0 */
/* The policy dbw by itself: how many it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/policies.h"
#include "tests/commit_case.h"

enum { CLIENTS = 8, SECOND = 1000000 };

/* The policy and the round it is in. */
struct play {
    const struct elv_sync *dbw;
    struct elv_params params;
    struct elv_sync_cfg cfg;
    struct elv_sync_round r;
    elv_time_us now; /* of commits */
    void *state;
};

static void set(struct play *p, const char *name, const char *value)
{
    struct elv_param *at = &p->params.at[p->params.n++];
    char *end;
    strcpy(at->name, name);
    at->line = 10 + p->params.n;
    at->value = strtod(value, &end);
    at->kind = *end == '\0' ? ELV_PARAM_NUMBER : ELV_PARAM_WORD;
    if (*end != '\0')
        strcpy(at->word, value);
}

static void init(struct play *p)
{
    *p = (struct play){.dbw = elv_sync_by_name("dbw")};
    p->cfg = (struct elv_sync_cfg){.clients_max = CLIENTS, .quorum = 1, .params = &p->params};
}

static void begin(struct play *p)
{
    p->state = calloc(1, p->dbw->state_len(&p->cfg));
    assert_non_null(p->state);
    assert_true(p->dbw->timer(p->state, &p->cfg) == ELV_NEVER);
}

/* Opens the next round, 100 s after the one before. How many it waits for. */
static uint32_t open_round(struct play *p, uint32_t n)
{
    p->r.seq++;
    p->r.version++;
    p->r.n_asked = p->r.n_waiting = p->r.n_joined = n;
    p->r.n_got = 0;
    p->r.opened = p->now = (elv_time_us)p->r.seq * 100 * SECOND;
    p->r.deadline = p->r.opened + 90 * SECOND;
    p->dbw->on_open(p->state, &p->cfg, &p->r);
    assert_false(p->dbw->should_commit(p->state, &p->cfg, &p->r, p->r.opened));
    return p->dbw->wanted(p->state, &p->cfg, &p->r);
}

/* An update of the round, `after` seconds. Whether it counts. */
static bool arrive(struct play *p, double after)
{
    const struct elv_sync_update u = {.version = p->r.version};
    const elv_time_us now = p->r.opened + (elv_time_us)(after * SECOND);
    const struct elv_sync_worth w = p->dbw->on_update(p->state, &p->cfg, &p->r, &u, now);
    assert_true(w.weight == 1.0);
    p->r.n_got += w.counts;
    p->r.n_waiting--;
    return w.counts;
}

static void arrive_late(struct play *p, uint32_t version, double after)
{
    const elv_time_us now = ((elv_time_us)version * 100 * SECOND) + (elv_time_us)(after * SECOND);
    p->dbw->on_late(p->state, &p->cfg, &p->r, (struct elv_sync_client){0, 1}, version, now);
}

static bool commits(struct play *p)
{
    return p->dbw->should_commit(p->state, &p->cfg, &p->r, 0) != ELV_SYNC_NO;
}

static void commit(struct play *p, double norm, double variance, double loss)
{
    struct elv_sync_commit c = commit_of(norm, variance, p->r.n_got, loss, 0.5);
    c.round = p->r;
    c.version = p->r.version + 1;
    p->dbw->on_commit(p->state, &p->cfg, &c, p->now);
}

/* Updates come after 1, 2, 3, 4 s and the rate is 0.5. Each row is what a version says, and how
 * many the round after it waits for; the first waits for all. */
struct said {
    double norm, variance, loss;
    uint32_t k;
};

static void replay(const char *depth, const struct said *rows, size_t n)
{
    struct play p;
    init(&p);
    set(&p, "variant", "psi");
    set(&p, "depth", depth);
    set(&p, "memory", "0");
    set(&p, "slack", "0");
    begin(&p);
    uint32_t k = open_round(&p, 4);
    assert_int_equal(k, 4);
    for (size_t i = 0; i < n; i++) {
        for (uint32_t a = 1; a <= k; a++)
            assert_true(arrive(&p, a));
        assert_true(commits(&p));
        commit(&p, rows[i].norm, rows[i].variance, rows[i].loss);
        assert_true(p.dbw->timer(p.state, &p.cfg) == ELV_NEVER);
        k = open_round(&p, 4);
        if (k != rows[i].k)
            fail_msg("row %zu: %u", i, k);
    }
    free(p.state);
}

static void each_round_waits_for_what_gains_most_per_second(void **state)
{
    (void)state;
    static const struct said rows[] = {
        /* L = 2: (11/12 - 1/k) / k is greatest at 2. */
        {11.0 / 3.0, 4.0, 3.0, 2},
        /* L = 2 again: 0.25 - 100/k is no gain at all, so the least noisy step. */
        {1.0, 400.0, 7.0 / 3.0, 4},
        /* It fell as on a plane, L = 0: noise does not matter, so the soonest step. */
        {1.0, 40.0, 11.0 / 6.0, 1},
    };
    replay("1", rows, sizeof rows / sizeof rows[0]);
}

static void a_loss_that_rises_makes_the_next_round_wait_for_one_more(void **state)
{
    (void)state;
    static const struct said rows[] = {
        {1.0, 0.0, 4.0, 1},  {1.0, 0.0, 3.5, 1},  {1.0, 0.0, 3.0, 1},
        {1.0, 0.0, 2.5, 1},  {1.0, 0.0, 2.52, 1}, /* by less than a hundredth */
        {1.0, 0.0, 2.6, 2},                       /* by more */
        {1.0, 0.0, 2.7, 3},                       /* and again */
        {1.0, 0.0, 2.2, 1},  {1.0, 0.0, NAN, 1},  /* nobody says */
        {1.0, 0.0, 9.0, 1},                       /* more than what? */
        {1.0, 0.0, 99.0, 4},                      /* no step seems to gain anything */
    };
    replay("10", rows, sizeof rows / sizeof rows[0]);
}

static void without_losses_noise_still_decides(void **state)
{
    (void)state;
    static const struct {
        double variance;
        uint32_t k;
    } rows[] = {{0.0, 1}, {4.0, 2}, {12.0, 4}, {400.0, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct play p;
        init(&p);
        begin(&p);
        uint32_t k = open_round(&p, 4);
        for (uint32_t round = 0; round < 20; round++) {
            for (uint32_t a = 1; a <= k; a++)
                arrive(&p, a);
            commit(&p, 11.0 / 3.0, rows[i].variance, NAN);
            k = open_round(&p, 4);
        }
        assert_int_equal(k, rows[i].k);
        free(p.state);
    }
}

static void only_the_first_k_count_and_leavers_are_not_waited_for(void **state)
{
    (void)state;
    struct play p;
    init(&p);
    set(&p, "rule", "blind");
    set(&p, "k_min", "3");
    begin(&p);
    assert_int_equal(open_round(&p, 5), 5);
    const struct elv_sync_update old = {.version = 0}, next = {.version = 2};
    assert_false(p.dbw->on_update(p.state, &p.cfg, &p.r, &old, p.r.opened).counts);
    assert_false(p.dbw->on_update(p.state, &p.cfg, &p.r, &next, p.r.opened).counts);
    for (uint32_t a = 1; a <= 5; a++) {
        assert_false(commits(&p));
        assert_true(arrive(&p, a < 4 ? 1.0 : 50.0));
    }
    assert_true(commits(&p));
    commit(&p, 1.0, 1.0, NAN);

    assert_int_equal(open_round(&p, 5), 3); /* the other two take fifty times as long */
    assert_true(arrive(&p, 1.0));
    assert_true(arrive(&p, 1.0));
    assert_false(commits(&p));
    assert_true(arrive(&p, 1.0));
    assert_true(commits(&p));
    assert_false(arrive(&p, 1.0)); /* one too many */
    commit(&p, 1.0, 1.0, NAN);

    assert_int_equal(open_round(&p, 5), 3);
    assert_true(arrive(&p, 1.0));
    p.r.n_waiting = 1; /* three left */
    assert_int_equal(p.dbw->wanted(p.state, &p.cfg, &p.r), 2);
    assert_false(commits(&p));
    p.r.n_waiting = 0;
    assert_int_equal(p.dbw->wanted(p.state, &p.cfg, &p.r), 1);
    assert_true(commits(&p));
    commit(&p, 1.0, 1.0, NAN);

    assert_int_equal(open_round(&p, 2), 2); /* fewer than k_min are there */
    free(p.state);
}

static void a_round_that_takes_too_long_closes_and_the_next_waits_for_one_more(void **state)
{
    (void)state;
    struct play p;
    init(&p);
    set(&p, "rule", "blind");
    begin(&p);
    const struct elv_sync *dbw = p.dbw;
    assert_int_equal(open_round(&p, 4), 4);
    assert_true(dbw->timer(p.state, &p.cfg) == ELV_NEVER); /* nothing is known of times */
    for (uint32_t a = 1; a <= 4; a++)
        arrive(&p, a < 3 ? 2.0 : 40.0);
    commit(&p, 1.0, 1.0, NAN);
    assert_int_equal(open_round(&p, 4), 2);
    const elv_time_us at = p.r.opened + 6 * SECOND; /* three times 2 s */
    assert_true(dbw->timer(p.state, &p.cfg) == at);
    arrive(&p, 1.0);
    dbw->on_timer(p.state, &p.cfg, &p.r, at - 1);
    assert_false(commits(&p));
    dbw->on_timer(p.state, &p.cfg, &p.r, at);
    assert_true(commits(&p)); /* asked with the quorum there */
    assert_true(dbw->timer(p.state, &p.cfg) == ELV_NEVER);
    assert_true(arrive(&p, 6.0)); /* not closed yet: it counts */
    commit(&p, 1.0, 1.0, NAN);
    assert_int_equal(open_round(&p, 4), 3);
    free(p.state);
}

static void the_first_round_closes_when_the_others_take_much_longer_than_half(void **state)
{
    (void)state;
    struct play p;
    init(&p);
    begin(&p);
    const struct elv_sync *dbw = p.dbw;
    assert_int_equal(open_round(&p, 5), 5);
    arrive(&p, 1.0);
    arrive(&p, 1.0);
    assert_true(dbw->timer(p.state, &p.cfg) == ELV_NEVER);
    arrive(&p, 2.0);
    const elv_time_us at = p.r.opened + 12 * SECOND; /* three times twice 2 s */
    assert_true(dbw->timer(p.state, &p.cfg) == at);
    arrive(&p, 5.0);
    assert_true(dbw->timer(p.state, &p.cfg) == at);
    dbw->on_timer(p.state, &p.cfg, &p.r, at);
    assert_true(commits(&p));
    commit(&p, 11.0 / 3.0, 4.0, NAN);
    /* It did not choose those five, so nothing says that four were too few: (11/12 - 1/k) / T. */
    assert_int_equal(open_round(&p, 5), 2);
    free(p.state);
}

static void who_never_delivers_takes_as_long_as_a_round_may(void **state)
{
    (void)state;
    struct play p;
    init(&p);
    set(&p, "rule", "blind");
    set(&p, "slack", "0");
    set(&p, "k_min", "5");
    begin(&p);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(open_round(&p, 6), i == 0 ? 6 : 5); /* 5 / 5 s and 6 / 90 s */
        for (uint32_t a = 1; a <= 5; a++)
            arrive(&p, a);
        p.now = i == 0 ? p.r.deadline : p.r.opened + 5 * SECOND;
        commit(&p, 1.0, 1.0, NAN);
    }
    free(p.state);
}

static void late_updates_tell_their_times(void **state)
{
    (void)state;
    for (uint32_t told = 0; told < 2; told++) {
        struct play p;
        init(&p);
        set(&p, "rule", "blind");
        set(&p, "variant", "pull");
        set(&p, "memory", "0");
        begin(&p);
        assert_int_equal(open_round(&p, 2), 2);
        arrive(&p, 1.0);
        arrive(&p, 10.0);
        commit(&p, 1.0, 1.0, NAN);
        assert_int_equal(open_round(&p, 2), 1);
        arrive(&p, 1.0);
        commit(&p, 1.0, 1.0, NAN);
        arrive_late(&p, 7, 1.0); /* of no version known here */
        if (told)
            arrive_late(&p, 2, 1.1);
        if (told)
            arrive_late(&p, 2, 1.2); /* more than were asked */
        /* All samples after a round of 2: 1 and 1 for k = 1, for k = 2 10 and, if told, 1.1. So the
         * row of h = 1 is 3.275, 5.55 when told and 4, 10 when not. */
        assert_int_equal(open_round(&p, 2), told ? 2 : 1);
        free(p.state);
    }
}

static void adasync_follows_the_loss_alone(void **state)
{
    (void)state;
    static const struct {
        double loss;
        uint32_t k;
    } rows[] = {{4.0, 2}, {3.9, 3}, {1.0, 4}, {0.1, 8}, {16.0, 1}, {NAN, 1}};
    struct play p;
    init(&p);
    set(&p, "rule", "adasync");
    set(&p, "k0", "2");
    set(&p, "depth", "1");
    begin(&p);
    assert_int_equal(open_round(&p, CLIENTS), 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        arrive(&p, 1.0);
        arrive(&p, 2.0);
        commit(&p, 1.0, 1.0, rows[i].loss);
        assert_int_equal(open_round(&p, CLIENTS), rows[i].k);
    }
    free(p.state);
}

static void clients_may_come_and_go_between_rounds(void **state)
{
    (void)state;
    static const uint32_t asked[] = {8, 1, 5, 8, 2, 7, 0, 8};
    struct play p;
    init(&p);
    set(&p, "variant", "psw");
    begin(&p);
    for (uint32_t i = 0; i < 80; i++) {
        const uint32_t n = asked[i % 8], k = open_round(&p, n);
        assert_in_range(k, 1, n > 0 ? n : 1);
        for (uint32_t a = 1; a <= n; a++)
            a <= k ? (void)arrive(&p, a) : arrive_late(&p, p.r.version, a);
        if (n > 0) /* else given up */
            commit(&p, 2.0, 3.0, 1.0 / (i + 1.0));
    }
    free(p.state);
}

static void variants_say_whether_late_clients_are_interrupted(void **state)
{
    (void)state;
    static const struct {
        const char *variant;
        bool interrupts;
    } rows[] = {{NULL, true}, {"pai", true}, {"psi", true}, {"psw", false}, {"pull", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct play p;
        init(&p);
        if (rows[i].variant)
            set(&p, "variant", rows[i].variant);
        const struct elv_sync_client c = {0, 1};
        assert_int_equal(p.dbw->interrupts(NULL, &p.cfg, c), rows[i].interrupts);
        p.cfg.clients_max = 1000000; /* classes bound what is remembered */
        assert_true(p.dbw->state_len(&p.cfg) < 131072);
    }
}

static void parameters_out_of_range_are_refused_with_what_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *says; /* NULL: accepted */
    } rows[] = {
        {"variant", "pull", NULL},
        {"variant", "push", "psw, psi, pull or pai"},
        {"variant", "1", "psw"},
        {"rule", "blind", NULL},
        {"rule", "fast", "gain, blind or adasync"},
        {"k0", "2", "adasync"},
        {"k0", "0", "from 1"},
        {"depth", "1", NULL},
        {"depth", "64", NULL},
        {"depth", "65", "1 to 64"},
        {"depth", "2.5", "whole"},
        {"depth", "0", "1 to 64"},
        {"guard", "1", NULL},
        {"guard", "0.99", "from 1"},
        {"memory", "0", NULL},
        {"memory", "1", "from 2"},
        {"memory", "2", NULL},
        {"memory", "50.5", "whole"},
        {"memory", "on", "whole"},
        {"k_min", "1", "quorum"},
        {"k_min", "2", NULL},
        {"k_min", "1e7", "whole"},
        {"slack", "0", NULL},
        {"slack", "0.5", "from 1"},
        {"slack", "1", NULL},
        {"slack", "-1", "from 1"},
        {"slack", "off", "from 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char why[ELV_JOB_ERROR_MAX] = "";
        uint32_t line = 0;
        struct play p;
        init(&p);
        p.cfg.quorum = 2;
        set(&p, rows[i].name, rows[i].value);
        const enum elv_err err = p.dbw->check(&p.cfg, why, &line);
        assert_int_equal(err, rows[i].says ? ELV_ERR_RANGE : ELV_OK);
        if (rows[i].says && (strstr(why, rows[i].says) == NULL || line != 11))
            fail_msg("%s = %s: %s", rows[i].name, rows[i].value, why);
    }
    struct play p;
    char why[ELV_JOB_ERROR_MAX] = "";
    uint32_t line = 0;
    init(&p);
    set(&p, "rule", "adasync");
    set(&p, "k0", "1.5");
    assert_int_equal(p.dbw->check(&p.cfg, why, &line), ELV_OK);
    p.cfg.params = NULL;
    assert_int_equal(p.dbw->check(&p.cfg, why, &line), ELV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_waits_for_what_gains_most_per_second),
        cmocka_unit_test(a_loss_that_rises_makes_the_next_round_wait_for_one_more),
        cmocka_unit_test(without_losses_noise_still_decides),
        cmocka_unit_test(only_the_first_k_count_and_leavers_are_not_waited_for),
        cmocka_unit_test(a_round_that_takes_too_long_closes_and_the_next_waits_for_one_more),
        cmocka_unit_test(the_first_round_closes_when_the_others_take_much_longer_than_half),
        cmocka_unit_test(who_never_delivers_takes_as_long_as_a_round_may),
        cmocka_unit_test(late_updates_tell_their_times),
        cmocka_unit_test(adasync_follows_the_loss_alone),
        cmocka_unit_test(clients_may_come_and_go_between_rounds),
        cmocka_unit_test(variants_say_whether_late_clients_are_interrupted),
        cmocka_unit_test(parameters_out_of_range_are_refused_with_what_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
