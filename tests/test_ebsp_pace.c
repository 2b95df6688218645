/* SPDX-License-Identifier: Apache-2.0 */
/* What the elastic barrier is for: clients of steady but different pace, who under bsp wait for the
 * slowest in every round, and here hardly wait at all.
 *
 * The workload is that of the algorithm's authors: a constant interval of 1000 to 1500 ms for each
 * client, here with Gaussian jitter on each iteration, for 300 s. Prints updates per second and the
 * share of the clients' time spent waiting, beside reference figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "server/sync.h"

enum { CLIENTS_MAX = 1000, SEEDS = 30 };
static const elv_time_us horizon = 300000000, publish = 1000000;

struct pace {
    double rate, waiting; /* updates per second, share of client time */
};

/* A world of clients that compute and nothing else. */

struct device {
    struct elv_rng rng;
    elv_time_us interval, started, done; /* done: ELV_NEVER while it waits */
    elv_time_us since;                   /* it waits */
};

static struct world {
    struct device at[CLIENTS_MAX];
    uint32_t n;
    double jitter;
    elv_time_us now, waited;
    uint64_t n_updates;
} w;

static elv_time_us work_of(struct device *d)
{
    const double factor = 1.0 + w.jitter * (double)elv_rng_normal(&d->rng);
    return (elv_time_us)((double)d->interval * (factor > 0.05 ? factor : 0.05));
}

static void make_world(uint32_t n, double jitter, uint64_t seed)
{
    w = (struct world){.n = n, .jitter = jitter};
    for (uint32_t i = 0; i < n; i++) {
        w.at[i].rng = elv_rng_of(
            (struct elv_rng_key){.seed = seed, .client = i + 1, .purpose = ELV_RNG_TEST});
        w.at[i].interval = 1000000 + elv_rng_below(&w.at[i].rng, 500001);
    }
}

static struct pace pace_of_world(void)
{
    const double s = (double)horizon * 1e-6;
    return (struct pace){(double)w.n_updates / s, (double)w.waited * 1e-6 / s / w.n};
}

/* Everybody waits for the slowest of each round. */
static struct pace run_bsp(void)
{
    while (w.now < horizon) {
        elv_time_us longest = 0, sum = 0;
        for (uint32_t i = 0; i < w.n; i++) {
            const elv_time_us t = work_of(&w.at[i]);
            longest = t > longest ? t : longest;
            sum += t;
        }
        w.now += longest;
        w.n_updates += w.n;
        w.waited += (elv_time_us)w.n * longest - sum;
    }
    w.n_updates = (uint64_t)((double)w.n_updates * (double)horizon / (double)w.now);
    w.waited = (elv_time_us)((double)w.waited * (double)horizon / (double)w.now);
    return pace_of_world();
}

/* The policy's driver: versions cost no time. */

static struct driver {
    const struct elv_sync *sync;
    struct elv_sync_cfg cfg;
    struct elv_sync_round round;
    elv_time_us published;
    uint32_t n_barriers, n_overdue;
    void *state;
} d;

static void start(uint32_t i)
{
    struct device *c = &w.at[i];
    if (c->done == ELV_NEVER)
        w.waited += w.now - c->since;
    c->started = w.now;
    c->done = w.now + work_of(c);
}

static void pull(uint32_t i)
{
    const struct elv_sync_client c = {i, i + 1};
    if (d.sync->on_pull(d.state, &d.cfg, &d.round, c, w.now).start == ELV_SYNC_START) {
        start(i);
        return;
    }
    w.at[i].done = ELV_NEVER;
    w.at[i].since = w.now;
}

static void deliver(uint32_t i)
{
    const struct elv_sync_update u = {.from = {i, i + 1}, .started = w.at[i].started};
    assert_true(d.sync->on_update(d.state, &d.cfg, &d.round, &u, w.now).counts);
    d.round.n_got++;
    w.n_updates++;
    pull(i);
}

static void commit(void)
{
    const struct elv_sync_commit c = {.round = d.round, .version = d.round.version + 1};
    d.published = w.now;
    d.round.seq++;
    d.round.version++;
    d.round.n_got = 0;
    d.sync->on_commit(d.state, &d.cfg, &c, w.now);
}

static void settle(void)
{
    const enum elv_sync_commit_when when =
        d.round.n_got > 0 ? d.sync->should_commit(d.state, &d.cfg, &d.round, w.now) : ELV_SYNC_NO;
    d.n_barriers += when == ELV_SYNC_MUST;
    if (when == ELV_SYNC_MUST || (when == ELV_SYNC_MAY && w.now >= d.published + publish))
        commit();
    struct elv_sync_client c;
    while (d.sync->next(d.state, &d.cfg, &d.round, &c, w.now)) {
        assert_true(w.at[c.row].done == ELV_NEVER);
        start(c.row);
    }
}

static void prepare(const struct elv_params *params)
{
    d = (struct driver){.sync = elv_sync_by_name("ebsp")};
    d.cfg = (struct elv_sync_cfg){.clients_max = w.n, .quorum = 1, .params = params};
    d.round = (struct elv_sync_round){.seq = 1, .n_joined = w.n};
    d.state = calloc(1, d.sync->state_len(&d.cfg));
    assert_non_null(d.state);
    for (uint32_t i = 0; i < w.n; i++)
        d.sync->on_join(d.state, &d.cfg, (struct elv_sync_client){i, i + 1}, 0);
    for (uint32_t i = 0; i < w.n; i++)
        pull(i);
}

static struct pace run_ebsp(const struct elv_params *params)
{
    prepare(params);
    for (;;) {
        uint32_t soonest = 0;
        for (uint32_t i = 1; i < w.n; i++)
            soonest = w.at[i].done < w.at[soonest].done ? i : soonest;
        const elv_time_us alarm = d.sync->timer(d.state, &d.cfg);
        const bool rings = alarm < w.at[soonest].done;
        w.now = rings ? alarm : w.at[soonest].done;
        if (w.now >= horizon)
            break;
        d.n_overdue += rings;
        if (rings)
            d.sync->on_timer(d.state, &d.cfg, &d.round, w.now);
        else
            deliver(soonest);
        settle();
    }
    w.now = horizon;
    for (uint32_t i = 0; i < w.n; i++)
        if (w.at[i].done == ELV_NEVER)
            w.waited += horizon - w.at[i].since;
    free(d.state);
    return pace_of_world();
}

/* The table. */

static void add(struct elv_params *p, const char *name, enum elv_param_kind kind, double value,
                const char *word)
{
    struct elv_param *at = &p->at[p->n++];
    strcpy(at->name, name);
    at->kind = kind;
    at->value = value;
    strcpy(at->word, word);
}

static struct elv_params settings(uint32_t lookahead, uint32_t r_min, const char *predictor)
{
    struct elv_params p = {.n = 0};
    add(&p, "lookahead", ELV_PARAM_NUMBER, lookahead, "");
    add(&p, "r_min", ELV_PARAM_NUMBER, r_min, "");
    add(&p, "predictor", ELV_PARAM_WORD, 0, predictor);
    return p;
}

/* NULL: of bsp. */
static struct pace mean_pace(uint32_t n, double jitter, const struct elv_params *p)
{
    struct pace mean = {0, 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        make_world(n, jitter, seed);
        const struct pace one = p ? run_ebsp(p) : run_bsp();
        mean.rate += one.rate / SEEDS;
        mean.waiting += one.waiting / SEEDS;
    }
    return mean;
}

/* Measured by another program with another generator, means of three worlds; ema was only measured
 * with jitter. */
static const struct {
    uint32_t n;
    double jitter;
    struct pace bsp, last[4], ema;
} rows[] = {
    {4, 0, {2.77, 0.122}, {{3.14, 0.022}, {3.17, 0.014}, {3.21, 0.004}, {3.21, 0.002}}, {0, 0}},
    {4,
     0.1,
     {2.66, 0.157},
     {{2.93, 0.089}, {2.94, 0.088}, {2.94, 0.087}, {2.99, 0.067}},
     {0, 0.043}},
    {16,
     0,
     {10.95, 0.132},
     {{12.14, 0.047}, {12.31, 0.036}, {12.70, 0.006}, {12.70, 0.006}},
     {0, 0}},
    {16,
     0.1,
     {10.00, 0.207},
     {{10.93, 0.144}, {10.76, 0.157}, {10.81, 0.153}, {11.10, 0.128}},
     {0, 0.079}},
    {64, 0, {42.7, 0.151}, {{45.5, 0.106}, {48.8, 0.043}, {50.0, 0.020}, {50.4, 0.011}}, {0, 0}},
    {64,
     0.1,
     {37.1, 0.262},
     {{41.3, 0.190}, {41.2, 0.192}, {40.3, 0.209}, {39.5, 0.221}},
     {0, 0.109}},
};

static const struct {
    uint32_t lookahead, r_min;
} lasts[] = {{15, 1}, {15, 5}, {60, 5}, {60, 20}};

static bool is_near(double a, double b, double most) { return a - b <= most && b - a <= most; }

static void print_pace(const char *what, struct pace ours, struct pace theirs)
{
    print_message("  %-18s %6.2f %5.3f", what, ours.rate, ours.waiting);
    if (theirs.rate > 0.0)
        print_message("  (%5.2f %5.3f)\n", theirs.rate, theirs.waiting);
    else
        print_message(theirs.waiting > 0.0 ? "  (      %5.3f)\n" : "\n", theirs.waiting);
}

/* Worlds differ in how fast the clients drawn are, so rates are compared with that of bsp in the
 * same worlds. */
static void compare(struct pace bsp, struct pace ours, struct pace bsp_theirs, struct pace theirs)
{
    assert_true(ours.rate > bsp.rate && ours.waiting < bsp.waiting);
    if (theirs.waiting > 0.0)
        assert_true(is_near(ours.waiting, theirs.waiting, 0.025));
    if (theirs.rate > 0.0) {
        assert_true(is_near(ours.rate / theirs.rate, 1.0, 0.05));
        assert_true(is_near(ours.rate / bsp.rate / (theirs.rate / bsp_theirs.rate), 1.0, 0.05));
    }
}

static void compare_row(size_t i)
{
    const struct pace bsp = mean_pace(rows[i].n, rows[i].jitter, NULL);
    print_message("%u clients, jitter %.1f\n", rows[i].n, rows[i].jitter);
    print_pace("bsp", bsp, rows[i].bsp);
    assert_true(is_near(bsp.waiting, rows[i].bsp.waiting, 0.025));
    for (size_t k = 0; k < sizeof lasts / sizeof lasts[0]; k++) {
        const struct elv_params p = settings(lasts[k].lookahead, lasts[k].r_min, "last");
        const struct pace ours = mean_pace(rows[i].n, rows[i].jitter, &p);
        char what[32];
        snprintf(what, sizeof what, "last, %u, r_min %u", lasts[k].lookahead, lasts[k].r_min);
        print_pace(what, ours, rows[i].last[k]);
        compare(bsp, ours, rows[i].bsp, rows[i].last[k]);
    }
    const struct elv_params shipped = {.n = 0};
    const struct pace ema = mean_pace(rows[i].n, rows[i].jitter, &shipped);
    print_pace("as shipped", ema, rows[i].ema);
    compare(bsp, ema, rows[i].bsp, rows[i].ema);
}

static void hardly_anybody_waits_at_the_elastic_barrier(void **state)
{
    (void)state;
    print_message("updates per second, share of time waiting; in brackets the reference\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        compare_row(i);
}

/* Near coincidences of all are rare in a large fleet; of sixteen tiers they are not. */
static void a_large_fleet_waits_less_in_tiers(void **state)
{
    (void)state;
    static const double jitters[] = {0, 0.1};
    for (size_t k = 0; k < 2; k++) {
        struct elv_params alone = {.n = 0}, tiers = {.n = 0};
        add(&alone, "tiers", ELV_PARAM_NUMBER, 0, "");
        add(&tiers, "tiers", ELV_PARAM_WORD, 0, "auto");
        make_world(CLIENTS_MAX, jitters[k], 1);
        const struct pace bsp = run_bsp();
        make_world(CLIENTS_MAX, jitters[k], 1);
        const struct pace one_by_one = run_ebsp(&alone);
        make_world(CLIENTS_MAX, jitters[k], 1);
        const struct pace in_tiers = run_ebsp(&tiers);
        print_message("%u clients, jitter %.1f\n", (unsigned)CLIENTS_MAX, jitters[k]);
        print_pace("bsp", bsp, (struct pace){0, 0});
        print_pace("tiers = 0", one_by_one, (struct pace){0, 0});
        print_pace("tiers = auto", in_tiers, (struct pace){0, 0});
        assert_true(one_by_one.waiting < bsp.waiting && one_by_one.rate > bsp.rate);
        assert_true(in_tiers.waiting < one_by_one.waiting && in_tiers.rate > one_by_one.rate);
    }
}

/* What one slow device in ten costs the others. */
static void stragglers_hold_nobody_up(void **state)
{
    (void)state;
    const struct elv_params shipped = {.n = 0};
    make_world(40, 0.1, 1);
    for (uint32_t i = 0; i < w.n; i += 10)
        w.at[i].interval *= 10;
    const struct pace ebsp = run_ebsp(&shipped);
    print_message("40 clients, jitter 0.1, every tenth ten times slower\n");
    print_pace("as shipped", ebsp, (struct pace){0, 0});
    assert_true(ebsp.waiting < 0.1);
    assert_true(d.n_barriers >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hardly_anybody_waits_at_the_elastic_barrier),
        cmocka_unit_test(a_large_fleet_waits_less_in_tiers),
        cmocka_unit_test(stragglers_hold_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
