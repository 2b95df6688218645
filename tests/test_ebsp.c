/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of the elastic barrier, event by event: short scripts, then many random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "server/sync.h"

enum { CLIENTS = 8 };

static struct driver {
    const struct elv_sync *sync;
    struct elv_sync_cfg cfg;
    struct elv_sync_round round, closed; /* closed: seq 0 unless a version is being made of it */
    elv_time_us now, started[CLIENTS + 1];
    void *state;
} d;

static struct elv_sync_client client(uint32_t number)
{
    return (struct elv_sync_client){number - 1, number};
}

static void begin(const struct elv_params *params, uint32_t quorum)
{
    d = (struct driver){.sync = elv_sync_by_name("ebsp")};
    d.cfg = (struct elv_sync_cfg){.clients_max = CLIENTS, .quorum = quorum, .params = params};
    d.round = (struct elv_sync_round){.seq = 1};
    d.state = calloc(1, d.sync->state_len(&d.cfg));
    assert_non_null(d.state);
}

static void join(uint32_t c) { d.sync->on_join(d.state, &d.cfg, client(c), d.now); }
static void leave(uint32_t c) { d.sync->on_leave(d.state, &d.cfg, client(c), d.now); }

static bool pull(uint32_t c)
{
    const struct elv_sync_grant g = d.sync->on_pull(d.state, &d.cfg, &d.round, client(c), d.now);
    assert_true(g.start == ELV_SYNC_START || g.start == ELV_SYNC_HOLD);
    if (g.start == ELV_SYNC_START)
        d.started[c] = d.now;
    return g.start == ELV_SYNC_START;
}

static void push(uint32_t c)
{
    const struct elv_sync_update u = {.from = client(c), .started = d.started[c]};
    const struct elv_sync_worth w = d.sync->on_update(d.state, &d.cfg, &d.round, &u, d.now);
    assert_true(w.counts && w.weight == 1.0);
    d.round.n_got++;
}

static enum elv_sync_commit_when asked(void)
{
    if (d.round.n_got < d.cfg.quorum)
        return ELV_SYNC_NO;
    return d.sync->should_commit(d.state, &d.cfg, &d.round, d.now);
}

static void close_round(void)
{
    assert_int_equal(d.closed.seq, 0);
    d.closed = d.round;
    d.round.seq++;
    d.round.n_got = 0;
}

static void publish(void)
{
    const struct elv_sync_commit c = {.round = d.closed, .version = ++d.round.version};
    assert_true(d.closed.seq > 0);
    d.closed.seq = 0;
    d.sync->on_commit(d.state, &d.cfg, &c, d.now);
}

/* 0: nobody. */
static uint32_t next(void)
{
    struct elv_sync_client c;
    if (!d.sync->next(d.state, &d.cfg, &d.round, &c, d.now))
        return 0;
    assert_int_equal(c.client, c.row + 1);
    d.started[c.client] = d.now;
    return c.client;
}

/* Scripts.
 *
 * @T   it is T ms                          u1+ u1-  1 delivers, asks, and starts or is held
 * j1   1 joins    l1  1 leaves             p1+ p1-  1 asks and starts or is held
 * ?no ?may ?must  may a version close?     c   it closes and is published    x  it only closes ...
 * n1   1 goes on  n.  nobody else does     C   ... and is published later
 * t700 the timer is set for 700 ms, t. not at all    T  the timer is called */

static void do_client(const char *word)
{
    const uint32_t c = (uint32_t)word[1] - '0';
    switch (word[0]) {
    case 'j':
        join(c);
        return;
    case 'l':
        leave(c);
        return;
    case 'u':
        push(c);
        assert_int_equal(pull(c), word[2] == '+');
        return;
    case 'p':
        assert_int_equal(pull(c), word[2] == '+');
        return;
    default:
        assert_int_equal(word[0], 'n');
        assert_int_equal(next(), word[1] == '.' ? 0 : c);
    }
}

static void do_version(const char *word)
{
    static const char *const answers[] = {"?no", "?may", "?must"};
    if (word[0] == '?')
        assert_string_equal(answers[asked()], word);
    if (word[0] == 'c' || word[0] == 'x')
        close_round();
    if (word[0] == 'c' || word[0] == 'C')
        publish();
}

static void do_word(const char *word)
{
    switch (word[0]) {
    case '@':
        d.now = 1000 * atoi(word + 1);
        return;
    case 't':
        assert_int_equal(d.sync->timer(d.state, &d.cfg),
                         word[1] == '.' ? ELV_NEVER : (elv_time_us)1000 * atoi(word + 1));
        return;
    case 'T':
        d.sync->on_timer(d.state, &d.cfg, &d.round, d.now);
        return;
    case '?':
    case 'c':
    case 'x':
    case 'C':
        do_version(word);
        return;
    default:
        do_client(word);
    }
}

static void play(const char *script)
{
    char text[512];
    assert_true(strlen(script) < sizeof text);
    strcpy(text, script);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        do_word(word);
}

/* Clients 1 and 2 need 100 and 150 ms, and both have delivered twice at 300. Predicted are 400,
 * 500, 600 and 450, 600: the barrier is at 600, and waited for until 750. */
#define MONITORED "@0 j1 j2 p1+ p2+ @100 u1+ @150 u2+ @200 u1+ t. @300 u1+ t. u2+ t750 "
#define ALMOST MONITORED "@400 u1+ @450 u2+ @500 u1+ "

static const struct {
    const char *phrase, *script;
} rows[] = {
    {"all meet at the barrier and go on from one version",
     ALMOST "?may @600 u1- ?may p1- n. u2- ?must p2- n. c n1 n2 n. ?no t."},
    {"the other way round", ALMOST "@600 u2- ?may n. u1- ?must n. c n2 n1 n. t."},
    {"nobody has asked for work yet when the barrier is over",
     MONITORED "@400 u1+ @450 u2+ @500 u1+ @600 u1- c n. @601 u2- c n1 n2 n. p1+ p2+"},
    {"after the barrier all run freely and are learnt anew",
     ALMOST "@600 u1- u2- c n1 n2 n. @700 u1+ @750 u2+ @800 u1+ t. @900 u1+ u2+ t1350"},
    {"versions in between change nothing", MONITORED "?may c n. @400 u1+ ?may c n. @450 u2+ c "
                                                     "@500 u1+ @600 u1- c n. u2- ?must c n1 n2"},

    {"the timer ends it with whoever is parked",
     ALMOST "@600 u1- @749 T ?may n. t750 @750 T ?must t. c n1 n. t."},
    {"... with nobody, too", ALMOST "@750 T ?must c n. t."},
    {"... and even with nothing new to publish", ALMOST "c @750 T ?no n. t. @760 u1+ u2+"},
    {"who is late goes on with the new version after its next update",
     ALMOST "@600 u1- @750 T c n1 n. @850 u1+ @900 u2+ t. @950 u1+ t. @1050 u2+ t1500"},
    {"the barrier comes while the timer is not asked", ALMOST "@800 u1- u2- ?must c n1 n2"},

    {"the last one missing leaves", ALMOST "@600 u1- l2 ?must c n1 n."},
    {"one leaves that is parked", ALMOST "@600 u1- l1 ?may u2- ?must c n2 n."},
    {"one leaves before its target", MONITORED "@400 u1+ l1 ?may @450 u2+ @600 u2- ?must c n2 n."},
    {"all leave", ALMOST "@600 u1- l2 l1 n. t. @700 j1 p1+"},
    {"all in the plan leave, a newcomer stays", MONITORED "j3 p3+ l1 l2 ?must c n. t. @310 u3+ t."},
    {"one leaves during monitoring, and the plan is made",
     "@0 j1 j2 p1+ p2+ @100 u1+ @200 u1+ t. @250 l2 t325"},
    {"one leaves that is not there", MONITORED "l3 l3 ?may"},
    {"it leaves after the barrier before it has gone on", ALMOST "@600 u1- u2- c l1 n2 n."},
    {"the last one missing leaves when the rest is published already",
     ALMOST "@600 u1- c n. l2 ?no n1 n."},

    {"a newcomer runs freely until the next plan",
     ALMOST "j3 p3+ @510 u3+ @520 u3+ @530 u3+ @600 u1- u2- ?must u3+ ?must c n1 n2 n. @610 u3+"},
    {"... and is waited for in the next super-step",
     ALMOST "j3 p3+ @600 u1- u2- c n1 n2 @700 u1+ @750 u2+ @800 u1+ @900 u1+ u2+ t. u3+ t. "
            "@950 u3+ t1325"},
    {"a newcomer before anybody is known is waited for",
     "@0 j1 j2 p1+ p2+ @100 u1+ j3 p3+ @150 u2+ @200 u1+ @300 u2+ t. @310 u3+ @400 u3+ t1615"},
    {"later ones are not", "@0 j1 j2 p1+ p2+ @100 u1+ @150 u2+ @200 u1+ j3 p3+ @300 u1+ u2+ t750"},
    {"a parked client that starts anew runs freely",
     ALMOST "@600 u1- j1 p1+ ?may u2- ?must c n2 n."},

    {"a version under way does not hold the last updates",
     ALMOST "x @600 u1- u2- ?must n. C n. ?must c n1 n2 n."},
    {"... but it does when the last one parked before", ALMOST "@600 u1- u2- x C n1 n2 n."},
    {"an update that is nobody's", MONITORED "l2 @350 u2+ ?may t750 n."},
};

static struct elv_params with(const char *name, enum elv_param_kind kind, double value,
                              const char *word)
{
    struct elv_params p = {.n = 1};
    strcpy(p.at[0].name, name);
    strcpy(p.at[0].word, word);
    p.at[0].kind = kind;
    p.at[0].value = value;
    p.at[0].line = 12;
    return p;
}

static const struct elv_params *soonest_barrier(void)
{
    static struct elv_params p;
    p = with("r_min", ELV_PARAM_NUMBER, 1, "");
    return &p;
}

static void each_script_goes_as_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(soonest_barrier(), 1);
        play(rows[i].script);
        free(d.state);
    }
}

static void a_barrier_short_of_the_quorum_goes_on_without_a_version(void **state)
{
    (void)state;
    begin(soonest_barrier(), 2);
    play(ALMOST "c @600 u1- ?no n. u2- ?must c n1 n2 n.");
    free(d.state);
    begin(soonest_barrier(), 2);
    play(ALMOST "@600 u1- ?may c n. u2- ?no n1 n2 n. ?no");
    free(d.state);
    begin(soonest_barrier(), 2);
    d.round.opened = ELV_NEVER; /* the round before is being given up */
    play(ALMOST "c @600 u1- n. @750 T ?no n.");
    d.round.opened = d.now;
    play("n1 n.");
    free(d.state);
}

/* The plan would wait until 750, 150 after it foresaw the barrier. */
static void nobody_is_parked_for_longer_than_work_may_take(void **state)
{
    (void)state;
    static const struct {
        elv_time_us deadline_us, waits_ms;
    } cases[] = {{0, 750}, {1000000, 750}, {100000, 700}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(soonest_barrier(), 1);
        d.cfg.deadline_us = cases[i].deadline_us;
        play(ALMOST "@600 u1-");
        assert_int_equal(d.sync->timer(d.state, &d.cfg), 1000 * cases[i].waits_ms);
        d.now = 1000 * cases[i].waits_ms;
        play("T ?must c n1 n. @800 u2+");
        free(d.state);
    }
}

/* Steps of the plan for intervals 100 and 150 after other parameters; t is the barrier and half of
 * the time to it. */
static void parameters_move_the_barrier(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum elv_param_kind kind;
        double value;
        const char *word, *script;
    } cases[] = {
        {"r_min", ELV_PARAM_NUMBER, 3, "", MONITORED},       /* 600 would be 2 of client 2 */
        {"r_min", ELV_PARAM_NUMBER, 2, "", MONITORED},       /* the default */
        {"lookahead", ELV_PARAM_NUMBER, 2, "", MONITORED},   /* 600 is 3 of client 1: reached */
        {"predictor", ELV_PARAM_WORD, 0, "last", MONITORED}, /* steady: the same */
    };
    static const elv_time_us timers[] = {1200, 750, 750, 750};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct elv_params p =
            with(cases[i].name, cases[i].kind, cases[i].value, cases[i].word);
        begin(&p, 1);
        play("@0 j1 j2 p1+ p2+ @100 u1+ @150 u2+ @200 u1+ @300 u1+ u2+");
        assert_int_equal(d.sync->timer(d.state, &d.cfg), 1000 * timers[i]);
        free(d.state);
    }
}

/* One client alone, r_min 2, so that the barrier is two intervals ahead and waited for one more. */
static void an_average_or_the_newest_gap_predicts(void **state)
{
    (void)state;
    static const struct {
        const char *predictor, *script;
    } cases[] = {
        {"ema", "@0 j1 p1+ @100 u1+ @250 u1+ t580"},  /* 0.8 * 100 + 0.2 * 150 = 110 */
        {"last", "@0 j1 p1+ @100 u1+ @250 u1+ t700"}, /* 150 */
        {"ema", "@0 j1 p1+ @100 u1+ @301 u1+ t904"},  /* more than twice as slow: 201 */
        {"ema", "@0 j1 p1+ @100 u1+ @149 u1+ t296"},  /* less than half: 49 */
        {"ema", "@0 j1 p1+ @100 u1+ @300 u1+ t660"},  /* just twice: 120 */
        /* kept over the barrier, and measured from the moment work was handed out */
        {"ema", "@0 j1 p1+ @100 u1+ @200 u1+ @300 u1+ @400 u1- c @450 n1 @600 u1+ @700 u1+ t1024"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct elv_params p = with("predictor", ELV_PARAM_WORD, 0, cases[i].predictor);
        begin(&p, 1);
        play(cases[i].script);
        free(d.state);
    }
}

static void another_client_in_the_same_row_is_learnt_anew(void **state)
{
    (void)state;
    begin(NULL, 1);
    play("@0 j1 p1+ @100 u1+ l1");
    d.sync->on_join(d.state, &d.cfg, (struct elv_sync_client){0, 77}, d.now);
    d.started[1] = d.now;
    play("@250 u1+ @400 u1+ t850");
    free(d.state);
}

static void updates_are_applied_one_by_one(void **state)
{
    (void)state;
    begin(NULL, 1);
    const struct elv_sync_scale s = d.sync->scale(d.state, &d.cfg, &d.round);
    assert_int_equal(s.by, ELV_SYNC_BY_FLEET);
    assert_true(s.step == 1.0 && !s.mixes);
    free(d.state);
}

static void impossible_parameters_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum elv_param_kind kind;
        double value;
        const char *word;
        bool fine;
    } cases[] = {
        {"lookahead", ELV_PARAM_NUMBER, 1, "", false}, /* below r_min */
        {"lookahead", ELV_PARAM_NUMBER, 2, "", true},
        {"lookahead", ELV_PARAM_NUMBER, 10000, "", true},
        {"lookahead", ELV_PARAM_NUMBER, 10001, "", false},
        {"lookahead", ELV_PARAM_NUMBER, 2.5, "", false},
        {"lookahead", ELV_PARAM_DURATION, 15e6, "", false},
        {"r_min", ELV_PARAM_NUMBER, 0, "", false},
        {"r_min", ELV_PARAM_NUMBER, 15, "", true},
        {"r_min", ELV_PARAM_NUMBER, 16, "", false},
        {"slack", ELV_PARAM_NUMBER, 0, "", true},
        {"slack", ELV_PARAM_NUMBER, -0.1, "", false},
        {"predictor", ELV_PARAM_WORD, 0, "ema", true},
        {"predictor", ELV_PARAM_WORD, 0, "last", true},
        {"predictor", ELV_PARAM_WORD, 0, "mean", false},
        {"predictor", ELV_PARAM_NUMBER, 1, "", false},
        {"tiers", ELV_PARAM_WORD, 0, "auto", true},
        {"tiers", ELV_PARAM_WORD, 0, "many", false},
        {"tiers", ELV_PARAM_NUMBER, 0, "", true},
        {"tiers", ELV_PARAM_NUMBER, 1000, "", true},
        {"tiers", ELV_PARAM_NUMBER, 1001, "", false},
    };
    const struct elv_sync *ebsp = elv_sync_by_name("ebsp");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct elv_params p =
            with(cases[i].name, cases[i].kind, cases[i].value, cases[i].word);
        const struct elv_sync_cfg cfg = {.quorum = 1, .params = &p};
        char why[ELV_JOB_ERROR_MAX] = "";
        uint32_t line = 0;
        assert_int_equal(ebsp->check(&cfg, why, &line) == ELV_OK, cases[i].fine);
        assert_int_equal(why[0] == '\0', cases[i].fine);
        assert_int_equal(line, cases[i].fine ? 0 : 12);
    }
}

/* Anything may happen at any time. */

static struct chaos {
    struct elv_rng rng;
    bool there[CLIENTS + 1], works[CLIENTS + 1];
    bool making;
    uint32_t n_barriers;
} x;

static bool one_in(uint32_t n) { return elv_rng_below(&x.rng, n) == 0; }

/* What a driver does after every event; making a version may take a while. */
static void settle(void)
{
    const enum elv_sync_commit_when when = asked();
    if (!x.making && (when == ELV_SYNC_MUST || (when == ELV_SYNC_MAY && one_in(4)))) {
        close_round();
        x.making = true;
        x.n_barriers += when == ELV_SYNC_MUST;
    }
    if (x.making && one_in(2)) {
        publish();
        x.making = false;
    }
    for (uint32_t c = next(); c; c = next()) {
        assert_true(x.there[c] && !x.works[c]);
        x.works[c] = true;
    }
}

static void happen(uint32_t c)
{
    if (!x.there[c]) {
        join(c);
        x.there[c] = true;
        x.works[c] = pull(c);
        assert_true(x.works[c]);
    } else if (one_in(40)) {
        leave(c);
        x.there[c] = x.works[c] = false;
    } else if (x.works[c]) {
        push(c);
        x.works[c] = pull(c);
    } else {
        const bool starts = pull(c); /* asks again: still held, unless something happened */
        x.works[c] = starts;
    }
    if (d.now >= d.sync->timer(d.state, &d.cfg))
        d.sync->on_timer(d.state, &d.cfg, &d.round, d.now);
    settle();
}

static bool somebody_works(void)
{
    bool any = false, all_away = true;
    for (uint32_t c = 1; c <= CLIENTS; c++) {
        any = any || x.works[c];
        all_away = all_away && !x.there[c];
    }
    return any || all_away;
}

/* Never is everybody held. */
static void nothing_that_happens_stops_the_clients(void **state)
{
    (void)state;
    uint32_t n_barriers = 0;
    for (uint32_t seed = 1; seed <= 500; seed++) {
        x = (struct chaos){
            .rng = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST})};
        begin(NULL, 1 + seed % 3);
        for (uint32_t step = 0; step < 500; step++) {
            d.now += elv_rng_below(&x.rng, 30000);
            happen(1 + elv_rng_below(&x.rng, CLIENTS));
            for (uint32_t more = 0; more < 20 && !somebody_works(); more++)
                settle();
            assert_true(somebody_works());
        }
        n_barriers += x.n_barriers;
        free(d.state);
    }
    assert_true(n_barriers > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_script_goes_as_written),
        cmocka_unit_test(a_barrier_short_of_the_quorum_goes_on_without_a_version),
        cmocka_unit_test(nobody_is_parked_for_longer_than_work_may_take),
        cmocka_unit_test(parameters_move_the_barrier),
        cmocka_unit_test(an_average_or_the_newest_gap_predicts),
        cmocka_unit_test(another_client_in_the_same_row_is_learnt_anew),
        cmocka_unit_test(updates_are_applied_one_by_one),
        cmocka_unit_test(impossible_parameters_are_refused),
        cmocka_unit_test(nothing_that_happens_stops_the_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
