/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that take each update as it comes, against the figures of their papers and closed
 * forms: whole runs of them. Times are in virtual seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/exact.h"
#include "common/rng.h"
#include "sync_driver.h"

enum { CLIENTS_MAX = 1000 };
static const double second = 1e6;

/* What one run of a policy comes to. */
struct figures {
    struct sync_driven d;
    double rate; /* updates per second */
    double waiting;
};

struct setting {
    const char *policy, *params;
    uint32_t n;
    double horizon;
    elv_time_us (*duration)(const void *self, uint32_t row, uint32_t nth);
    const void *self;
};

static struct figures measure(const struct setting *s)
{
    const struct elv_params params = sync_params(s->params);
    const struct sync_drive drive = {
        .sync = elv_sync_by_name(s->policy),
        .params = &params,
        .n = s->n,
        .quorum = 1,
        .seed = 1,
        .deadline_us = (elv_time_us)(1000 * second),
        .horizon = (elv_time_us)(s->horizon * second),
        .duration = s->duration,
        .self = s->self,
    };
    struct figures f = {.d = sync_drive(&drive)};
    free(f.d.delivered);
    f.rate = (double)f.d.n_updates / s->horizon;
    f.waiting = f.d.waiting / (f.d.waiting + f.d.working);
    return f;
}

static bool is_near(double x, double expected, double tolerance)
{
    return fabs(x / expected - 1.0) <= tolerance;
}

/* Each client always takes as long as the table says. */
static elv_time_us constant(const void *self, uint32_t row, uint32_t nth)
{
    const double *seconds = self;
    (void)nth;
    return (elv_time_us)(seconds[row] * second);
}

static struct elv_rng device(uint32_t row, uint32_t nth)
{
    return elv_rng_of(
        (struct elv_rng_key){.seed = 5, .client = row, .round = nth, .purpose = ELV_RNG_DEVICE});
}

struct stragglers {
    float sigma;         /* of the log of a usual piece of work, which takes a second */
    float share, factor; /* some pieces take so much longer */
};

static elv_time_us straggling(const void *self, uint32_t row, uint32_t nth)
{
    const struct stragglers *s = self;
    struct elv_rng rng = device(row, nth);
    const float slow = elv_rng_unit(&rng) < s->share ? s->factor : 1.0f;
    return 1 + (elv_time_us)(second * (double)(slow * elv_exp(s->sigma * elv_rng_normal(&rng))));
}

static elv_time_us half_normal(const void *self, uint32_t row, uint32_t nth)
{
    (void)self;
    struct elv_rng rng = device(row, nth);
    return (elv_time_us)(second * (0.1 + (double)fabsf(elv_rng_normal(&rng))));
}

/* X2 */
static void ssp_is_bound_by_the_slowest_whatever_its_threshold(void **state)
{
    (void)state;
    static const double pair[] = {1.0, 1.83}, triple[] = {1.0, 3.0, 2.0},
                        four[] = {1.0, 1.2, 2.0, 3.1};
    static const struct {
        const double *intervals;
        uint32_t n;
        double slowest;
    } rows[] = {{pair, 2, 1.83}, {triple, 3, 3.0}, {four, 4, 3.1}};
    static const uint32_t thresholds[] = {0, 1, 3, 6};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < sizeof thresholds / sizeof thresholds[0]; k++) {
            char params[] = "threshold = 0";
            params[12] = (char)('0' + thresholds[k]);
            const struct figures f = measure(
                &(struct setting){"ssp", params, rows[i].n, 2000, constant, rows[i].intervals});
            assert_true(is_near(f.rate, rows[i].n / rows[i].slowest, 0.01));
            assert_int_equal(f.d.gap_max, thresholds[k] + 1); /* it is parked having delivered */
        }
}

/* X3: "pushes per time unit, largest gap", four ways. */
static void dssp_does_what_was_printed_and_strictly_what_was_meant(void **state)
{
    (void)state;
    static const double pair[] = {1.0, 1.83}, far[] = {1.0, 3.0}, four[] = {1.0, 1.2, 2.0, 3.1};
    static const struct {
        const double *intervals;
        uint32_t n;
        const char *policy, *params;
        double rate;
        uint32_t gap;
    } rows[] = {
        {pair, 2, "ssp", "", 1.094, 4},
        {pair, 2, "dssp", "strict = off", 1.546, 908},
        {pair, 2, "dssp", "", 1.099, 15},
        {pair, 2, "asp", "", 1.546, 908},
        {far, 2, "ssp", "", 0.668, 4},
        {far, 2, "dssp", "strict = off", 1.329, 1327},
        {far, 2, "dssp", "", 0.668, 6},
        {far, 2, "asp", "", 1.333, 1334},
        {four, 4, "ssp", "", 1.294, 4},
        {four, 4, "dssp", "strict = off", 1.970, 1354},
        {four, 4, "dssp", "strict = on", 1.296, 15},
        {four, 4, "asp", "", 2.656, 1355},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct figures f = measure(&(struct setting){
            rows[i].policy, rows[i].params, rows[i].n, 2000, constant, rows[i].intervals});
        assert_true(is_near(f.rate, rows[i].rate, 0.02));
        assert_true(is_near(f.d.gap_max, rows[i].gap, 0.02));
    }
}

static void asp_is_as_stale_as_there_are_others(void **state)
{
    (void)state;
    static double alike[20], one_slow[20];
    for (size_t i = 0; i < 20; i++) {
        alike[i] = 1.0 + 0.0001 * (double)i;
        one_slow[i] = i == 0 ? 10.0 : 1.0;
    }
    const struct figures a = measure(&(struct setting){"asp", "", 20, 500, constant, alike});
    assert_true(is_near(a.d.stale_mean, 19, 0.01));
    assert_true(a.waiting == 0.0);
    const struct figures b = measure(&(struct setting){"asp", "", 20, 500, constant, one_slow});
    assert_true(is_near(b.rate, 19 + 0.1, 0.01));
    /* The slow one's 190, and for everybody else one of ten. */
    assert_true(is_near(b.d.stale_mean, (0.1 * 190 + 19 * 18.1) / 19.1, 0.01));
    const struct figures c = measure(&(struct setting){
        "asp", "staleness = polynomial, staleness_a = 1", 20, 500, constant, alike});
    assert_true(is_near(c.d.weight_mean, 1.0 / 20, 0.02));
}

/* X18 */
static void psp_keeps_clients_together_though_few_of_them_wait(void **state)
{
    (void)state;
    static const struct {
        struct stragglers s;
        uint32_t n;
        const char *threshold;
    } rows[] = {
        {{0.3f, 0.10f, 2.0f}, 200, "threshold = 4"},  {{0.3f, 0.20f, 2.0f}, 200, "threshold = 4"},
        {{0.3f, 0.20f, 3.5f}, 200, "threshold = 8"},  {{0.1f, 0.30f, 5.0f}, 200, "threshold = 8"},
        {{0.1f, 0.30f, 3.5f}, 1000, "threshold = 8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char beta[64] = "beta = 0.01, ";
        strcat(beta, rows[i].threshold);
        const struct setting ssp = {"ssp", rows[i].threshold, rows[i].n,
                                    200,   straggling,        &rows[i].s};
        const struct setting psp = {"psp", beta, rows[i].n, 200, straggling, &rows[i].s};
        const struct setting asp = {"asp", "", rows[i].n, 200, straggling, &rows[i].s};
        const struct figures s = measure(&ssp), p = measure(&psp), a = measure(&asp);
        assert_true(p.d.gap_max <= 3 * s.d.gap_max);
        assert_true(p.waiting < 0.5 * s.waiting);
        assert_true(p.rate > s.rate && p.rate < a.rate);
        assert_true(p.d.gap_max < a.d.gap_max);
    }
}

static void psp_is_asp_with_no_sample_and_ssp_with_all(void **state)
{
    (void)state;
    static const struct {
        const char *psp, *other, *params;
    } rows[] = {
        {"beta = 0", "asp", ""},
        {"beta = 29", "ssp", "threshold = 4"},
        {"beta = 1000000, threshold = 2", "ssp", "threshold = 2"},
        {"beta = 29, barrier = pbsp", "ssp", "threshold = 0"},
    };
    const struct stragglers s = {0.5f, 0.1f, 5.0f};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct figures a =
            measure(&(struct setting){"psp", rows[i].psp, 30, 200, straggling, &s});
        const struct figures b =
            measure(&(struct setting){rows[i].other, rows[i].params, 30, 200, straggling, &s});
        assert_true(a.d.hash == b.d.hash);
    }
}

/* X15, its first half: "each client sees M completions during its own run". */
static void fedbuff_is_as_stale_as_concurrency_by_buffer(void **state)
{
    (void)state;
    static const struct {
        const char *params;
        uint32_t n, concurrency;
        double horizon, stale;
    } rows[] = {
        {"buffer = 10, concurrency = 100", 200, 100, 100, 10},
        {"buffer = 10, concurrency = 0", 100, 100, 100, 10},
        {"buffer = 10, concurrency = 1000", CLIENTS_MAX, 1000, 30, 100},
        {"buffer = 100, concurrency = 1000", CLIENTS_MAX, 1000, 40, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct figures f = measure(&(struct setting){"fedbuff", rows[i].params, rows[i].n,
                                                           rows[i].horizon, half_normal, NULL});
        assert_true(is_near(f.d.stale_mean, rows[i].stale, 0.1));
        assert_int_equal(f.d.working_max, rows[i].concurrency);
    }
}

enum { FLEET = 12, DEATHS = 20 };

/* One of the fleet lives; of the others anybody may die at any time, some come back, and some say
 * that they go. */
static void draw_deaths(struct sync_death deaths[DEATHS], struct elv_rng *rng)
{
    for (uint32_t i = 0; i < DEATHS; i++) {
        struct sync_death *d = &deaths[i];
        d->at = (elv_time_us)(150 * second * (double)elv_rng_unit(rng));
        d->back = d->at + (elv_time_us)(80 * second * (double)elv_rng_unit(rng));
        if (elv_rng_below(rng, 2))
            d->back = ELV_NEVER;
        d->row = 1 + elv_rng_below(rng, FLEET - 1);
        d->said = elv_rng_below(rng, 3) == 0;
    }
}

static void survive(const char *policy, const char *text, uint32_t seed)
{
    const struct stragglers s = {0.5f, 0.1f, 4.0f};
    const struct elv_params params = sync_params(text);
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
    struct sync_death deaths[DEATHS];
    draw_deaths(deaths, &rng);
    const struct sync_drive drive = {
        .sync = elv_sync_by_name(policy),
        .params = &params,
        .n = FLEET,
        .quorum = 1,
        .seed = seed,
        .deadline_us = (elv_time_us)(30 * second),
        .publish_us = (elv_time_us)(second / 2),
        .horizon = (elv_time_us)(400 * second),
        .duration = straggling,
        .self = &s,
        .deaths = deaths,
        .n_deaths = DEATHS,
    };
    const struct sync_driven a = sync_drive(&drive), b = sync_drive(&drive);
    /* One deadline finds the dead, one more the dead that were given work meanwhile. */
    assert_true(a.commit_gap <= (elv_time_us)(75 * second));
    assert_true(a.n_versions >= 20);
    assert_true(a.delivered[0] >= 15);
    assert_true(a.hash == b.hash);
    free(a.delivered);
    free(b.delivered);
}

/* X20 */
static void whoever_dies_and_whenever_versions_go_on(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"asp", ""},
        {"ssp", "threshold = 0"},
        {"ssp", ""},
        {"dssp", ""},
        {"dssp", "strict = off"},
        {"psp", "beta = 2"},
        {"psp", "beta = 0.5, resample = off"},
        {"psp", "beta = 30, barrier = pbsp"},
        {"fedasync", ""},
        {"fedasync", "concurrency = 4, max_staleness = 3"},
        {"fedbuff", "buffer = 1"},
        {"fedbuff", "buffer = 8, concurrency = 6, max_staleness = 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (uint32_t seed = 0; seed < 25; seed++)
            survive(rows[i][0], rows[i][1], 100 * (uint32_t)i + seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssp_is_bound_by_the_slowest_whatever_its_threshold),
        cmocka_unit_test(dssp_does_what_was_printed_and_strictly_what_was_meant),
        cmocka_unit_test(asp_is_as_stale_as_there_are_others),
        cmocka_unit_test(psp_keeps_clients_together_though_few_of_them_wait),
        cmocka_unit_test(psp_is_asp_with_no_sample_and_ssp_with_all),
        cmocka_unit_test(fedbuff_is_as_stale_as_concurrency_by_buffer),
        cmocka_unit_test(whoever_dies_and_whenever_versions_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
