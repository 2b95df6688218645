/* SPDX-License-Identifier: Apache-2.0 */
/* What the laboratory's world draws: means, classes, stragglers, regimes, traces, and that nothing
 * one draws shifts what another does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/world.h"

#define SECOND 1000000
enum { MANY = 20000 };

static struct elv_lab_piece piece(uint32_t client, uint32_t number)
{
    return (struct elv_lab_piece){.client = client,
                                  .piece = number,
                                  .n_clients = 10,
                                  .steps = 3,
                                  .seen = 7,
                                  .facts = {.speed = 1.0f}};
}

static double mean_of(const struct elv_lab_world *w)
{
    double sum = 0.0;
    for (uint32_t i = 1; i <= MANY; i++) {
        const struct elv_lab_piece p = piece(1, i);
        sum += (double)elv_lab_compute(w, 1, &p);
    }
    return sum / MANY / SECOND;
}

static void compute_times_have_the_means_of_their_shapes(void **state)
{
    (void)state;
    static const struct {
        struct elv_lab_draw compute;
        double mean;
    } rows[] = {
        {{.shape = ELV_LAB_CONSTANT, .a = 2.0}, 2.0},
        {{.shape = ELV_LAB_UNIFORM, .a = 1.0, .b = 3.0}, 2.0},
        {{.shape = ELV_LAB_EXPONENTIAL, .a = 0.5, .b = 1.5}, 2.0},
        {{.shape = ELV_LAB_LOGNORMAL, .a = 1.0, .b = 0.5}, 1.1331485}, /* e^(b^2 / 2) */
        {{.shape = ELV_LAB_HALF_NORMAL, .a = 1.0, .b = 1.0}, 1.7978846},
        {{.shape = ELV_LAB_CLASSES, .value = {1.0, 5.0}, .share = {0.75, 0.25}, .n_classes = 2},
         2.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_lab_world w = {.device.compute = rows[i].compute};
        const double mean = mean_of(&w);
        assert_true(mean > 0.97 * rows[i].mean && mean < 1.03 * rows[i].mean);
        w.device.jitter = 0.1;
        w.device.straggler_share = 0.1;
        w.device.straggler_factor = 6.0; /* 1.5 times as long on average */
        const double longer = mean_of(&w);
        assert_true(longer > 1.44 * rows[i].mean && longer < 1.56 * rows[i].mean);
    }
}

static void compute_grows_with_what_the_world_says(void **state)
{
    (void)state;
    struct elv_lab_world w = {.device.compute = {.shape = ELV_LAB_CONSTANT, .a = 0.5}};
    struct elv_lab_piece p = piece(1, 1);
    assert_true(elv_lab_compute(&w, 1, &p) == 500000);
    w.device.per = ELV_LAB_PER_STEP;
    assert_true(elv_lab_compute(&w, 1, &p) == 1500000);
    w.device.per = ELV_LAB_PER_SAMPLE;
    assert_true(elv_lab_compute(&w, 1, &p) == 3500000);
    p.facts.speed = 2.0f;
    assert_true(elv_lab_compute(&w, 1, &p) == 7000000);
}

static void a_regime_slows_the_lowest_numbers_while_it_lasts(void **state)
{
    (void)state;
    const struct elv_lab_world w = {
        .device = {.compute = {.shape = ELV_LAB_CONSTANT, .a = 1.0},
                   .regimes = {{.from = 10, .until = 20, .share = 0.5, .factor = 5.0}},
                   .n_regimes = 1}};
    for (uint32_t client = 1; client <= 10; client++)
        for (elv_time_us at = 9; at <= 20; at++) {
            struct elv_lab_piece p = piece(client, 1);
            p.at = at;
            const bool slow = client <= 5 && at >= 10 && at < 20;
            assert_true(elv_lab_compute(&w, 1, &p) == (slow ? 5 : 1) * SECOND);
        }
}

static void exactly_the_share_of_devices_always_straggles(void **state)
{
    (void)state;
    const struct elv_lab_world w = {
        .device = {.straggler_share = 0.1, .straggler_factor = 2.0, .straggler_fixed = true}};
    struct elv_lab_facts facts[101];
    uint32_t low = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint32_t n = 0;
        elv_lab_facts(&w, seed, facts, 101);
        for (uint32_t i = 0; i < 101; i++) {
            n += facts[i].straggles;
            low += facts[i].straggles && i < 50;
            assert_true(facts[i].speed == 1.0f && facts[i].up == 0.0f && facts[i].down == 0.0f);
        }
        assert_int_equal(n, 10);
    }
    assert_in_range(low, 70, 130); /* anywhere */
}

static void what_else_is_drawn_shifts_nothing(void **state)
{
    (void)state;
    struct elv_lab_world w = {
        .device.compute = {.shape = ELV_LAB_EXPONENTIAL, .b = 1.0},
        .availability.dropout = 0.5,
    };
    struct elv_lab_world more = w;
    more.link.latency = (struct elv_lab_draw){.shape = ELV_LAB_LOGNORMAL, .a = 1.0, .b = 1.0};
    more.device.straggler_share = 1e-12;
    more.device.straggler_factor = 9.0;
    uint32_t dropped = 0;
    for (uint32_t i = 1; i <= 1000; i++) {
        const struct elv_lab_piece p = piece(3, i);
        assert_true(elv_lab_compute(&w, 5, &p) == elv_lab_compute(&more, 5, &p));
        assert_true(elv_lab_is_dropped(&w, 5, &p) == elv_lab_is_dropped(&more, 5, &p));
        assert_true(elv_lab_transfer(&more, 5, &p, ELV_LAB_DOWN, 0) !=
                    elv_lab_transfer(&more, 5, &p, ELV_LAB_UP, 0));
        dropped += elv_lab_is_dropped(&w, 5, &p);
    }
    assert_in_range(dropped, 440, 560);
}

static void devices_come_as_the_world_says(void **state)
{
    (void)state;
    struct elv_lab_world w = {.device.start_spread = 100};
    for (uint32_t client = 1; client <= 10; client++)
        assert_true(elv_lab_comes(&w, 1, client, 10) == 10 * (elv_time_us)(client - 1));
    w.device.cohort_start = true;
    uint32_t moved = 0;
    for (uint32_t client = 1; client <= 10; client++) {
        const elv_time_us at = elv_lab_comes(&w, 1, client, 10);
        assert_true(at >= 0 && at < 100);
        moved += at != 10 * (elv_time_us)(client - 1);
    }
    assert_true(moved > 5);
    w.availability.churn_rate = 0.5;
    assert_true(elv_lab_comes(&w, 1, 1, 10) == ELV_NEVER);
    double sum = 0.0;
    for (uint32_t k = 1; k <= MANY; k++)
        sum += (double)elv_lab_gap(&w, 1, k) / SECOND;
    assert_true(sum / MANY > 1.95 && sum / MANY < 2.05);
}

static void stretches_follow_each_other_or_have_no_end(void **state)
{
    (void)state;
    struct elv_lab_world w = {0};
    assert_true(elv_lab_stretch(&w, 1, 1, 0, 5) == ELV_NEVER);
    assert_true(elv_lab_stays(&w, 1, 1, 1) == ELV_NEVER);
    w.availability.on = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 3.0};
    w.availability.off = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 2.0};
    w.availability.stay = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 9.0};
    assert_true(elv_lab_stretch(&w, 1, 1, 0, 5) == 5 + 3 * SECOND);
    assert_true(elv_lab_stretch(&w, 1, 1, 1, 5) == 5 + 2 * SECOND);
    assert_true(elv_lab_stays(&w, 1, 1, 1) == 9 * SECOND);
}

static void a_trace_replaces_devices_links_and_presence(void **state)
{
    (void)state;
    static const char text[] = "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n"
                               "1,1,2,10,100,200\n1,4,5,20,100,0\n2,0,9,30,0,0\n";
    struct elv_lab_trace t;
    char why[256];
    uint32_t line;
    const struct elv_bytes bytes = {.at = (const uint8_t *)text, .len = sizeof text - 1};
    assert_int_equal(elv_lab_trace_parse(&t, bytes, why, &line), ELV_OK);
    const struct elv_lab_world w = {
        .device.compute = {.shape = ELV_LAB_CONSTANT, .a = 7.0},
        .trace = &t,
    };
    assert_true(elv_lab_comes(&w, 1, 1, 4) == SECOND);
    assert_true(elv_lab_comes(&w, 1, 2, 4) == 0);
    assert_true(elv_lab_comes(&w, 1, 3, 4) == SECOND); /* as client 1 */
    assert_true(elv_lab_stretch(&w, 1, 1, 0, 0) == 2 * SECOND);
    assert_true(elv_lab_stretch(&w, 1, 1, 1, 0) == 4 * SECOND);
    assert_true(elv_lab_stretch(&w, 1, 1, 2, 0) == 5 * SECOND);
    assert_true(elv_lab_stretch(&w, 1, 1, 3, 0) == ELV_NEVER);
    assert_null(elv_lab_span_at(&t, 1, 3 * SECOND));
    assert_null(elv_lab_span_at(&t, 1, 5 * SECOND));
    struct elv_lab_piece p = piece(1, 1);
    p.at = 4 * SECOND;
    assert_true(elv_lab_compute(&w, 1, &p) == 20000);
    assert_true(elv_lab_transfer(&w, 1, &p, ELV_LAB_UP, 50) == SECOND / 2);
    assert_true(elv_lab_transfer(&w, 1, &p, ELV_LAB_DOWN, 50) == 0);
    elv_lab_trace_free(&t);
}

static void what_is_always_zero_is_not_set(void **state)
{
    (void)state;
    static const struct {
        struct elv_lab_draw draw;
        bool set;
    } rows[] = {
        {{.shape = ELV_LAB_CONSTANT}, false},
        {{.shape = ELV_LAB_CONSTANT, .a = 1e-30}, true},
        {{.shape = ELV_LAB_UNIFORM}, false},
        {{.shape = ELV_LAB_UNIFORM, .b = 1}, true},
        {{.shape = ELV_LAB_EXPONENTIAL}, false},
        {{.shape = ELV_LAB_EXPONENTIAL, .b = 1}, true},
        {{.shape = ELV_LAB_LOGNORMAL, .b = 1}, false},
        {{.shape = ELV_LAB_LOGNORMAL, .a = 1}, true},
        {{.shape = ELV_LAB_HALF_NORMAL}, false},
        {{.shape = ELV_LAB_HALF_NORMAL, .a = 1}, true},
        {{.shape = ELV_LAB_CLASSES, .share = {1, 0}, .value = {0, 1}, .n_classes = 2}, false},
        {{.shape = ELV_LAB_CLASSES, .share = {0.5, 0.5}, .value = {0, 1}, .n_classes = 2}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(elv_lab_draw_is_set(&rows[i].draw), rows[i].set);
}

/* Else a client that comes and goes in no time would do so for ever at the same moment. */
static void a_stretch_takes_some_time(void **state)
{
    (void)state;
    static struct elv_lab_world w;
    w.availability.on = (struct elv_lab_draw){.shape = ELV_LAB_EXPONENTIAL, .b = 1e-30};
    w.availability.off = (struct elv_lab_draw){.shape = ELV_LAB_CONSTANT, .a = 1e-9};
    for (uint32_t k = 0; k < 100; k++)
        assert_true(elv_lab_stretch(&w, 1, 1, k, 5) == 6);
}

static void a_profile_says_how_long_bytes_take(void **state)
{
    (void)state;
    struct elv_lab_world w = {.link.profile = elv_sim_profile("nb-iot", 6)};
    struct elv_lab_piece p = {.client = 1, .piece = 1};
    /* 0.7 to 0.8 s, and 32500 bytes at 3250 a second; one in twenty is sent again. */
    const double least = 10.7 / 0.95 * SECOND, most = 10.8 / 0.95 * SECOND;
    for (p.piece = 1; p.piece < 20; p.piece++) {
        const double up = (double)elv_lab_transfer(&w, 1, &p, ELV_LAB_UP, 32500);
        assert_true(up > least - 1 && up < most + 1);
        assert_true(elv_lab_transfer(&w, 1, &p, ELV_LAB_TELL, 32500) < SECOND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_times_have_the_means_of_their_shapes),
        cmocka_unit_test(compute_grows_with_what_the_world_says),
        cmocka_unit_test(a_regime_slows_the_lowest_numbers_while_it_lasts),
        cmocka_unit_test(exactly_the_share_of_devices_always_straggles),
        cmocka_unit_test(what_else_is_drawn_shifts_nothing),
        cmocka_unit_test(devices_come_as_the_world_says),
        cmocka_unit_test(stretches_follow_each_other_or_have_no_end),
        cmocka_unit_test(a_trace_replaces_devices_links_and_presence),
        cmocka_unit_test(what_is_always_zero_is_not_set),
        cmocka_unit_test(a_stretch_takes_some_time),
        cmocka_unit_test(a_profile_says_how_long_bytes_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
