/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers against the definition, and targets of clients planned one by one and in tiers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "server/barrier.h"
#include "server/tiers.h"
#include "server/zipline.h"

static uint32_t classes[ELV_TIER_CLASSES], before[ELV_TIER_CLASSES];

static void classes_are_narrow_and_in_order(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (elv_time_us t = 0; t < ELV_ZIP_INTERVAL_MAX; t += 1 + t / 1000) {
        const uint32_t at = elv_tier_class(t);
        assert_true(at >= last && at < ELV_TIER_CLASSES);
        if (t >= 256)
            assert_true(elv_tier_class(t + t / 256 + 1) > at);
        last = at;
    }
    assert_int_equal(elv_tier_class(-5), 0);
    assert_int_equal(elv_tier_class(ELV_NEVER), ELV_TIER_CLASSES - 1);
}

/* Fewest tiers of at most `width` classes: the next begins with the first class left out. */
static uint32_t fewest(const uint32_t *in_use, uint32_t width)
{
    uint32_t n = 0, end = 0;
    for (uint32_t i = 0; i < ELV_TIER_CLASSES; i++)
        if (in_use[i] > 0 && i >= end) {
            n++;
            end = i + width;
        }
    return n;
}

static void tiers_are_as_narrow_as_their_number_allows(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
        const uint32_t n = 1 + elv_rng_below(&r, 60), most = 1 + elv_rng_below(&r, 12);
        const uint32_t spread = 1 + elv_rng_below(&r, 900);
        memset(classes, 0, sizeof classes);
        for (uint32_t i = 0; i < n; i++)
            classes[5000 + elv_rng_below(&r, spread)] += 1 + elv_rng_below(&r, 3);
        memcpy(before, classes, sizeof classes);
        const uint32_t tiers = elv_tier_cut(classes, most);
        uint32_t width = 1, first = 0, tier = 0;
        while (fewest(before, width) > most)
            width++;
        assert_int_equal(tiers, fewest(before, width));
        for (uint32_t i = 0; i < ELV_TIER_CLASSES; i++) {
            if (before[i] == 0)
                continue;
            first = first == 0 || classes[i] != tier ? i : first;
            assert_true(classes[i] == tier || classes[i] == tier + 1);
            tier = classes[i];
            assert_true(i - first < width);
        }
        assert_int_equal(tier, tiers - 1);
    }
}

enum { MANY = 400 };

static struct elv_barrier_client at[MANY];

static elv_time_us plan(const struct elv_barrier_cfg *cfg, uint32_t n, elv_time_us now)
{
    void *scratch = malloc(elv_barrier_scratch_len(cfg, n));
    elv_time_us barrier = -1;
    assert_non_null(scratch);
    assert_true(elv_barrier_plan(cfg, at, n, 0, now, scratch, &barrier));
    free(scratch);
    return barrier;
}

static void clients_planned_one_by_one_come_with_the_update_chosen(void **state)
{
    (void)state;
    static const struct elv_barrier_cfg cfg = {.lookahead = 15, .r_min = 1, .alone_max = 100};
    at[0] = (struct elv_barrier_client){.pushed = 300, .interval = 100};
    at[1] = (struct elv_barrier_client){.pushed = 300, .interval = 150};
    assert_int_equal(plan(&cfg, 2, 300), 600);
    assert_true(at[0].updates == 3 && at[1].updates == 2);
    at[1].pushed = 140; /* 290 has passed, so it is expected now, at 300 */
    assert_int_equal(plan(&cfg, 2, 300), 600);
    assert_true(at[0].updates == 3 && at[1].updates == 3);
    at[1].interval = 10000; /* 14 moments of the other do not reach the first of this one */
    assert_int_equal(plan(&cfg, 2, 300), 10140);
    assert_true(at[0].updates == 98 && at[1].updates == 1);
}

static void clients_without_a_moment_are_not_planned(void **state)
{
    (void)state;
    static const struct elv_barrier_cfg cfg = {.lookahead = 15, .r_min = 1, .alone_max = 100};
    elv_time_us barrier = -1;
    uint64_t scratch[64];
    assert_false(elv_barrier_plan(&cfg, at, 0, 0, 300, scratch, &barrier));
    assert_int_equal(barrier, -1);
}

/* When each client comes, if it keeps its pace. */
static elv_time_us comes(const struct elv_barrier_client *c, elv_time_us now)
{
    const elv_time_us base = c->pushed > now - c->interval ? c->pushed : now - c->interval;
    return base + (elv_time_us)c->updates * c->interval;
}

static void a_tier_aims_at_one_moment(void **state)
{
    (void)state;
    static const struct elv_barrier_cfg cfg = {
        .lookahead = 15, .r_min = 3, .alone_max = 100, .tiers = 16};
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 5, .purpose = ELV_RNG_TEST});
    const elv_time_us now = 3100000;
    for (uint32_t i = 0; i < MANY; i++) {
        const elv_time_us interval = 1000000 + elv_rng_below(&r, 500001);
        /* most began together; a few joined in between */
        const elv_time_us began = i % 50 == 0 ? elv_rng_below(&r, 1000000) : 0;
        at[i] = (struct elv_barrier_client){
            .pushed = began + (now - began) / interval * interval, .interval = interval, .row = i};
    }
    assert_true(plan(&cfg, MANY, now) > now);
    elv_time_us first[16], last[16];
    for (uint32_t k = 0; k < 16; k++)
        first[k] = INT64_MAX, last[k] = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        const elv_time_us t = comes(&at[i], now);
        const uint32_t k = at[i].colour;
        assert_int_equal(at[i].row, i);
        assert_true(k < 16 && at[i].updates >= cfg.r_min);
        first[k] = t < first[k] ? t : first[k];
        last[k] = t > last[k] ? t : last[k];
        assert_true(last[k] - first[k] <= 1500000 + 1500000 / 16);
    }
}

static void wild_clients_are_planned_all_the_same(void **state)
{
    (void)state;
    static const struct elv_barrier_cfg cfgs[] = {
        {.lookahead = 1, .r_min = 1, .alone_max = 0, .tiers = 1},
        {.lookahead = 15, .r_min = 2, .alone_max = 100, .tiers = 16},
        {.lookahead = 15, .r_min = 15, .alone_max = UINT32_MAX, .tiers = 0},
    };
    static const elv_time_us intervals[] = {1, 3, 1000, 1000000, ELV_ZIP_INTERVAL_MAX};
    for (uint32_t seed = 1; seed <= 60; seed++) {
        struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed, .purpose = ELV_RNG_TEST});
        const uint32_t n = 1 + elv_rng_below(&r, MANY);
        const elv_time_us now = elv_rng_below(&r, 1u << 31);
        for (uint32_t i = 0; i < n; i++)
            at[i] = (struct elv_barrier_client){.pushed = elv_rng_below(&r, (uint32_t)now + 1),
                                                .interval = intervals[elv_rng_below(&r, 5)]};
        const struct elv_barrier_cfg *cfg = &cfgs[seed % 3];
        assert_true(plan(cfg, n, now) >= now);
        for (uint32_t i = 0; i < n; i++)
            assert_in_range(at[i].updates, cfg->r_min, ELV_ZIP_MOMENTS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_narrow_and_in_order),
        cmocka_unit_test(tiers_are_as_narrow_as_their_number_allows),
        cmocka_unit_test(clients_planned_one_by_one_come_with_the_update_chosen),
        cmocka_unit_test(clients_without_a_moment_are_not_planned),
        cmocka_unit_test(a_tier_aims_at_one_moment),
        cmocka_unit_test(wild_clients_are_planned_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
