/* SPDX-License-Identifier: Apache-2.0 */
/* The policy dbw against fixed numbers of updates, in time to a loss. Prints the tables it judges.
 *
 *     test_dbw_race [SEEDS [SEEDS_CLASSES]]
 *
 * 20 seeds for each figure, and 1 for the comparison of a table in classes with one that has a cell
 * for each of 256 clients; from 100 on that must come out within 3 %: four minutes.
 *
 * After the experiments of Xu, Neglia, Sebastianelli, "Dynamic Backup Workers for Parallel Machine
 * Learning", IFIP Networking 2020, arXiv:2004.14696. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/dbw_race.h"

extern const struct elv_sync elv_sync_dbw_exact;

enum { N = 16, LAST = 20 };

static uint32_t n_seeds = 20, n_seeds_classes = 1;
static struct race race;

static struct race_cfg world(const char *policy, uint32_t n, double sigma, double a)
{
    return (struct race_cfg){.sync = elv_sync_by_name(policy),
                             .n = n,
                             .sigma = sigma,
                             .a = a,
                             .target = 0.05,
                             .time_max = 400.0,
                             .rounds_max = RACE_ROUNDS_MAX};
}

/* Means over the seeds; a run that does not get there counts as time_max. */
struct mean {
    double time, k;
};

static struct mean mean_of(struct race_cfg cfg, uint32_t seeds)
{
    struct mean m = {0};
    for (cfg.seed = 1; cfg.seed <= seeds; cfg.seed++) {
        race_run(&cfg, &race);
        m.time += fmin(race.time, cfg.time_max) / seeds;
        m.k += race.k_mean / seeds;
    }
    return m;
}

static struct mean fixed(const char *k, const char *variant, double sigma, double a)
{
    struct race_cfg cfg = world("backup", N, sigma, a);
    cfg.interrupts = strcmp(variant, "psi") == 0;
    race_param(&cfg, "k", k);
    return mean_of(cfg, n_seeds);
}

static struct mean chosen(const char *rule, const char *variant, double sigma, double a)
{
    struct race_cfg cfg = world("dbw", N, sigma, a);
    cfg.interrupts = strcmp(variant, "psi") == 0;
    race_param(&cfg, "variant", variant);
    race_param(&cfg, "rule", rule);
    return mean_of(cfg, n_seeds);
}

/* One line of the table. What dbw takes, as a multiple of the best fixed k. */
static double compare(const char *variant, double sigma, double a)
{
    static const char *const ks[] = {"4", "8", "12", "16"};
    double best = INFINITY, all = 0.0;
    printf("%s sigma %2.0f a %.1f  k = 4, 8, 12, 16:", variant, sigma, a);
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
        all = fixed(ks[i], variant, sigma, a).time;
        best = fmin(best, all);
        printf(" %6.1f", all);
    }
    const struct mean dbw = chosen("gain", variant, sigma, a);
    const struct mean blind = chosen("blind", variant, sigma, a);
    printf("  dbw %5.1f (%4.1f)  blind %5.1f (%4.1f)  best/dbw %.2f  all/dbw %.2f\n", dbw.time,
           dbw.k, blind.time, blind.k, best / dbw.time, all / dbw.time);
    assert_true(dbw.time <= 1.3 * best);
    assert_true(a < 1.0 || all >= 1.8 * dbw.time);
    return dbw.time / best;
}

static void dbw_keeps_up_with_the_best_fixed_k(void **state)
{
    (void)state;
    static const char *const variants[] = {"psw", "psi"};
    for (size_t i = 0; i < 2; i++) {
        double sum = 0.0;
        for (uint32_t cell = 0; cell < 4; cell++)
            sum += compare(variants[i], cell < 2 ? 3.0 : 12.0, cell % 2 == 0 ? 0.2 : 1.0);
        printf("%s: %.3f of the best fixed k's time in the mean\n", variants[i], sum / 4.0);
        assert_true(sum / 4.0 <= 1.15);
    }
}

/* Mean and deviation of what the LAST rounds before `end` waited for. */
struct waited {
    double mean, deviation;
};

static struct waited waited_before(uint32_t end)
{
    struct waited w = {0};
    double square = 0.0;
    for (uint32_t i = end - LAST; i < end; i++) {
        w.mean += race.k[i] / (double)LAST;
        square += (double)race.k[i] * race.k[i] / LAST;
    }
    w.deviation = sqrt(fmax(0.0, square - w.mean * w.mean));
    return w;
}

static void noise_above_the_goal_makes_it_wait_for_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct race_cfg cfg = world("dbw", N, 40.0, i == 0 ? 0.2 : 1.0);
        double k = 0.0;
        race_param(&cfg, "variant", "psw");
        for (cfg.seed = 1; cfg.seed <= n_seeds; cfg.seed++) {
            race_run(&cfg, &race);
            assert_true(isinf(race.time));
            k += waited_before(race.rounds).mean / n_seeds;
        }
        printf("sigma 40 a %.1f: k ends at %.1f\n", cfg.a, k);
        assert_true(k >= 15.0);
    }
}

/* Half of the workers is `slow` times as slow in rounds FROM to UNTIL - 1. */
enum { FROM = 60, UNTIL = 140, END = 220 };

struct regime {
    double before, during, after; /* mean k of the last rounds of each phase */
    double deviation;             /* of k, of one round from the next, in the last slow rounds */
};

static struct regime regime_of(const char *rule, const char *variant, const char *memory,
                               double slow)
{
    struct regime g = {0};
    struct race_cfg cfg = world("dbw", N, 24.0, 0.2);
    cfg.rate = 0.05; /* so slow that there is something to gain for long */
    cfg.target = -1.0;
    cfg.time_max = INFINITY;
    cfg.rounds_max = END;
    cfg.interrupts = strcmp(variant, "psi") == 0;
    cfg.slow_from = FROM;
    cfg.slow_until = UNTIL;
    cfg.slow = slow;
    race_param(&cfg, "variant", variant);
    race_param(&cfg, "rule", rule);
    race_param(&cfg, "memory", memory);
    for (cfg.seed = 1; cfg.seed <= n_seeds; cfg.seed++) {
        race_run(&cfg, &race);
        const struct waited w = waited_before(UNTIL);
        g.before += waited_before(FROM).mean / n_seeds;
        g.during += w.mean / n_seeds;
        g.deviation += w.deviation / n_seeds;
        g.after += waited_before(END).mean / n_seeds;
    }
    printf("%-5s %s memory %2s slow %.0f: k %4.1f, %4.1f, %4.1f, amplitude while slow %.1f\n", rule,
           variant, memory, slow, g.before, g.during, g.after, g.deviation);
    return g;
}

static void it_stops_waiting_for_workers_that_became_slow_and_takes_them_back(void **state)
{
    (void)state;
    const struct regime blind = regime_of("blind", "psw", "50", 5.0);
    const struct regime kept = regime_of("blind", "psw", "0", 5.0);
    assert_true(blind.before - blind.during >= 3.0);
    assert_true(blind.deviation <= 1.0);
    assert_true(fabs(blind.after - blind.before) <= 1.0);
    assert_true(kept.after < blind.after - 3.0); /* so forgetting is needed */

    /* With less and less to gain, k rises by itself: the same rounds without the change tell. */
    static const char *const variants[] = {"psw", "psi"};
    for (size_t i = 0; i < 2; i++) {
        const struct regime gain = regime_of("gain", variants[i], "50", 5.0);
        const struct regime even = regime_of("gain", variants[i], "50", 1.0);
        regime_of("gain", variants[i], "0", 5.0);
        assert_true(even.during - gain.during >= 3.0);
        assert_true(gain.during > N / 2 - 2 && gain.during < N / 2 + 1);
        assert_true(gain.deviation <= even.deviation + 0.5);
        assert_true(fabs(gain.after - even.after) <= 1.5);
    }
}

static void without_losses_it_still_gets_there(void **state)
{
    (void)state;
    for (uint32_t cell = 0; cell < 4; cell++) {
        struct race_cfg cfg = world("dbw", N, cell < 2 ? 3.0 : 12.0, cell % 2 == 0 ? 0.2 : 1.0);
        cfg.mute = true;
        race_param(&cfg, "variant", "psw");
        const struct mean m = mean_of(cfg, n_seeds);
        const double all = fixed("16", "psw", cfg.sigma, cfg.a).time;
        printf("sigma %2.0f a %.1f, no losses: %.1f (%.1f), all/dbw %.2f\n", cfg.sigma, cfg.a,
               m.time, m.k, all / m.time);
        assert_true(m.time <= all);
    }
}

static void a_table_in_classes_is_as_good_as_one_with_all_cells(void **state)
{
    (void)state;
    double ratios = 0.0;
    for (uint32_t cell = 0; cell < 4; cell++) {
        struct race_cfg cfg = world("dbw", 256, cell < 2 ? 12.0 : 40.0, cell % 2 == 0 ? 0.2 : 1.0);
        race_param(&cfg, "variant", "psw");
        const struct mean classes = mean_of(cfg, n_seeds_classes);
        cfg.sync = &elv_sync_dbw_exact;
        const struct mean cells = mean_of(cfg, n_seeds_classes);
        printf("256 clients, sigma %2.0f a %.1f: %.2f (%.1f) in classes, %.2f (%.1f) with all "
               "cells\n",
               cfg.sigma, cfg.a, classes.time, classes.k, cells.time, cells.k);
        ratios += classes.time / cells.time / 4.0;
    }
    printf("256 clients: %.3f of the time with all cells in the mean\n", ratios);
    assert_true(ratios <= (n_seeds_classes >= 100 ? 1.03 : 1.25));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dbw_keeps_up_with_the_best_fixed_k),
        cmocka_unit_test(noise_above_the_goal_makes_it_wait_for_all),
        cmocka_unit_test(it_stops_waiting_for_workers_that_became_slow_and_takes_them_back),
        cmocka_unit_test(without_losses_it_still_gets_there),
        cmocka_unit_test(a_table_in_classes_is_as_good_as_one_with_all_cells),
    };
    n_seeds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : n_seeds;
    n_seeds_classes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : n_seeds_classes;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
