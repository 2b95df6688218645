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
        cmocka_unit_test(the_same_seed_gives_the_same_hash_and_another_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
