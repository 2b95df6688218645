/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_sim_link.c - one direction of a link against what its figures promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ports/sim/link.h"

enum { N = 100000 };
#define MS 1000
#define SECOND 1000000

/* A lane that datagrams are put on, and what became of them. */
struct trial {
    struct elv_sim_way way;
    struct elv_sim_lane lane;
    struct elv_rng rng;
    struct elv_sim_fates fates;
};

static struct trial trial(struct elv_sim_way way)
{
    return (struct trial){
        .way = way, .rng = elv_rng_of((struct elv_rng_key){.seed = 3, .purpose = ELV_RNG_NETWORK})};
}

static struct elv_sim_passage put(struct trial *t, elv_time_us now, size_t bytes)
{
    const struct elv_sim_passage p = elv_sim_pass(&t->lane, &t->way, &t->rng, now, bytes);
    elv_sim_fates_count(&t->fates, &p, bytes);
    return p;
}

static void a_way_without_troubles_delivers_at_once(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){0});
    const struct elv_sim_passage p = put(&t, 77, 1000);
    assert_int_equal(p.fate, ELV_SIM_ARRIVED);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.at[0], 77);
    assert_int_equal(p.wait_us, 0);
}

static void the_same_seed_gives_the_same_fates(void **state)
{
    (void)state;
    struct trial a = trial(elv_sim_profile("lossy", 5)->up);
    struct trial b = a;
    for (int i = 0; i < 1000; i++) {
        const struct elv_sim_passage x = put(&a, i * MS, 500), y = put(&b, i * MS, 500);
        assert_int_equal(x.fate, y.fate);
        assert_int_equal(x.n, y.n);
        for (uint32_t k = 0; k < x.n; k++)
            assert_int_equal(x.at[k], y.at[k]);
    }
}

static void datagrams_are_lost_and_doubled_as_often_as_said(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){.loss_ppm = 50000, .duplicate_ppm = 20000});
    for (int i = 0; i < N; i++)
        put(&t, i, 100);
    assert_true(fabs((double)t.fates.n[ELV_SIM_LOST] / N - 0.05) < 0.003);
    assert_true(fabs((double)t.fates.duplicated / (0.95 * N) - 0.02) < 0.002);
    assert_int_equal(t.fates.put, N);
    assert_int_equal(t.fates.bytes, 100 * N);
    assert_int_equal(elv_sim_fates_lost(&t.fates), t.fates.n[ELV_SIM_LOST]);
}

static void bursts_have_their_length_and_share(void **state)
{
    (void)state;
    const struct elv_sim_bursts b = {.enter_ppm = 10000, .leave_ppm = 200000, .loss_ppm = 1000000};
    struct trial t = trial((struct elv_sim_way){.bursts = b});
    uint32_t n_bursts = 0;
    bool before = false;
    for (int i = 0; i < N; i++) {
        const bool lost = put(&t, i, 100).fate == ELV_SIM_BURST;
        n_bursts += lost && !before;
        before = lost;
    }
    const double share = (double)t.fates.n[ELV_SIM_BURST] / N;
    assert_true(fabs(share - 1.0 / 21.0) < 0.004);
    assert_true(fabs(elv_sim_way_loss(&t.way) - 1.0 / 21.0) < 1e-9);
    const double length = (double)t.fates.n[ELV_SIM_BURST] / n_bursts;
    assert_true(fabs(length - 5.0) < 0.3);
}

static void a_line_takes_as_many_bytes_as_its_rate(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){.bps = 125000, .delay.min_us = 50 * MS});
    for (int i = 0; i < 100; i++) {
        const struct elv_sim_passage p = put(&t, 0, 1000);
        assert_int_equal(p.wait_us, i * 8 * MS);
        assert_int_equal(p.at[0], (i + 1) * 8 * MS + 50 * MS);
    }
    assert_int_equal(put(&t, 10 * SECOND, 1000).wait_us, 0); /* idle in between */
    assert_int_equal(t.fates.wait_longest_us, 99 * 8 * MS);
}

static void a_full_queue_drops_what_comes_last(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){.bps = 125000, .queue_bytes = 64000});
    for (int i = 0; i < 100; i++)
        assert_int_equal(put(&t, 0, 1000).fate, i < 64 ? ELV_SIM_ARRIVED : ELV_SIM_FULL);
    assert_int_equal(put(&t, 8 * MS, 1000).fate, ELV_SIM_ARRIVED); /* one has left */
    assert_int_equal(put(&t, 8 * MS, 1000).fate, ELV_SIM_FULL);
    assert_int_equal(t.fates.wait_longest_us, 63 * 8 * MS);
}

static void order_is_kept_except_for_those_held_back(void **state)
{
    (void)state;
    struct elv_sim_way way = {.delay = {.min_us = 10 * MS, .spread_us = 20 * MS}};
    for (int row = 0; row < 3; row++) {
        way.in_order = row > 0;
        way.reorder_ppm = row == 2 ? 50000 : 0;
        way.held_back.min_us = 50 * MS;
        struct trial t = trial(way);
        elv_time_us last = 0;
        uint32_t overtaken = 0;
        for (int i = 0; i < 10000; i++) {
            const struct elv_sim_passage p = put(&t, i * MS, 100);
            overtaken += p.at[0] < last;
            last = p.at[0];
        }
        assert_true(row == 0 ? overtaken > 3000 : row == 1 ? overtaken == 0 : overtaken > 400);
        assert_true((row == 2) == (t.fates.held_back > 0));
    }
}

static void long_datagrams_vanish_and_short_ones_do_not(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){.mtu = 600});
    assert_int_equal(put(&t, 0, 600).fate, ELV_SIM_ARRIVED);
    assert_int_equal(put(&t, 0, 601).fate, ELV_SIM_LONG);
    assert_int_equal(t.fates.n[ELV_SIM_LONG], 1);
}

static void outages_come_and_go_on_time(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){
        .outages = {.first_us = 10 * SECOND, .every_us = 60 * SECOND}, .outage_us = 5 * SECOND});
    const struct {
        elv_time_us at;
        enum elv_sim_fate fate;
    } rows[] = {{0, ELV_SIM_ARRIVED},           {10 * SECOND - 1, ELV_SIM_ARRIVED},
                {10 * SECOND, ELV_SIM_OUT},     {15 * SECOND - 1, ELV_SIM_OUT},
                {15 * SECOND, ELV_SIM_ARRIVED}, {70 * SECOND - 1, ELV_SIM_ARRIVED},
                {70 * SECOND, ELV_SIM_OUT},     {75 * SECOND, ELV_SIM_ARRIVED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(put(&t, rows[i].at, 100).fate, rows[i].fate);
}

static void what_is_on_its_way_to_an_old_address_is_lost(void **state)
{
    (void)state;
    struct trial t =
        trial((struct elv_sim_way){.delay.min_us = 100 * MS, .moves = {.first_us = SECOND}});
    assert_int_equal(put(&t, 899 * MS, 100).fate, ELV_SIM_ARRIVED);
    assert_int_equal(put(&t, 900 * MS, 100).fate, ELV_SIM_MOVED);
    assert_int_equal(put(&t, 999 * MS, 100).fate, ELV_SIM_MOVED);
    assert_int_equal(put(&t, 1000 * MS, 100).fate, ELV_SIM_ARRIVED);
}

static void a_cut_way_lets_nothing_through(void **state)
{
    (void)state;
    struct trial t = trial((struct elv_sim_way){.cut = true});
    assert_int_equal(put(&t, 0, 1).fate, ELV_SIM_CUT);
}

static void times_come_back(void **state)
{
    (void)state;
    const struct elv_sim_times never = {0}, once = {.first_us = 5}, often = {5, 10};
    assert_true(elv_sim_times_next(&never, 0) == ELV_NEVER);
    assert_int_equal(elv_sim_times_next(&once, 4), 5);
    assert_true(elv_sim_times_next(&once, 5) == ELV_NEVER);
    assert_int_equal(elv_sim_times_next(&often, 0), 5);
    assert_int_equal(elv_sim_times_next(&often, 5), 15);
    assert_int_equal(elv_sim_times_next(&often, 14), 15);
    assert_int_equal(elv_sim_times_next(&often, 1015), 1025);
}

static void every_profile_is_found_by_its_name_and_is_as_it_says(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double rtt_ms, loss;
    } rows[] = {{"lan", 1, 0},          {"lte", 70, 0.001},       {"lte-m", 160, 0.0098},
                {"nb-iot", 1500, 0.05}, {"satellite", 600, 0.01}, {"lossy", 60, 0.3}};
    size_t n = 0;
    for (; elv_sim_profile_at(n) != NULL; n++) {
        const struct elv_sim_profile *p = elv_sim_profile_at(n);
        assert_string_equal(p->name, rows[n].name);
        assert_ptr_equal(elv_sim_profile(p->name, strlen(p->name)), p);
        assert_non_null(strstr(ELV_SIM_PROFILES, p->name));
        struct trial up = trial(p->up), down = trial(p->down);
        double sum = 0, k = 0;
        for (int i = 0; i < N; i++) {
            const elv_time_us now = (elv_time_us)i * SECOND;
            const struct elv_sim_passage a = put(&up, now, 1), b = put(&down, now, 1);
            if (a.n > 0 && b.n > 0) {
                sum += (double)(a.at[0] + b.at[0] - 2 * now) / 1000.0;
                k += 1;
            }
        }
        assert_true(fabs(sum / k - rows[n].rtt_ms) < 0.01 * rows[n].rtt_ms + 1);
        assert_true(fabs((double)elv_sim_fates_lost(&up.fates) / N - rows[n].loss) < 0.01);
        assert_true(fabs((double)elv_sim_fates_lost(&down.fates) / N - rows[n].loss) < 0.01);
        assert_true(fabs(elv_sim_way_loss(&p->up) - rows[n].loss) < 0.0001);
    }
    assert_int_equal(n, sizeof rows / sizeof rows[0]);
    assert_null(elv_sim_profile("nb", 2));
    assert_null(elv_sim_profile("", 0));
}

static void fates_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < ELV_SIM_FATES; i++)
        assert_true(strlen(elv_sim_fate_name((enum elv_sim_fate)i)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_without_troubles_delivers_at_once),
        cmocka_unit_test(the_same_seed_gives_the_same_fates),
        cmocka_unit_test(datagrams_are_lost_and_doubled_as_often_as_said),
        cmocka_unit_test(bursts_have_their_length_and_share),
        cmocka_unit_test(a_line_takes_as_many_bytes_as_its_rate),
        cmocka_unit_test(a_full_queue_drops_what_comes_last),
        cmocka_unit_test(order_is_kept_except_for_those_held_back),
        cmocka_unit_test(long_datagrams_vanish_and_short_ones_do_not),
        cmocka_unit_test(outages_come_and_go_on_time),
        cmocka_unit_test(what_is_on_its_way_to_an_old_address_is_lost),
        cmocka_unit_test(a_cut_way_lets_nothing_through),
        cmocka_unit_test(times_come_back),
        cmocka_unit_test(every_profile_is_found_by_its_name_and_is_as_it_says),
        cmocka_unit_test(fates_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
