/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_flow.c - how much is in flight, over a line of one queue and one round-trip time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "client/flow.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
enum { GRANT = 64, FLIGHTS = 128 };

/* Answers come in the order of the requests, `trip` later, or when the line has taken them. */
struct line {
    struct elv_flow f;
    struct elv_flow_mark mark[FLIGHTS];
    elv_time_us at[FLIGHTS]; /* when the answer comes */
    uint32_t first, n;       /* in flight: a ring */
    elv_time_us now, free_us;
    elv_time_us trip, each; /* of a request: there and back, and on the line */
    elv_time_us (*more)(uint32_t n);
    bool (*lost)(uint32_t n);
    uint32_t n_sent;
};

static bool never(uint32_t n) { return n == UINT32_MAX; }
static bool every_second(uint32_t n) { return n % 2 == 1; }
static elv_time_us steady(uint32_t n) { return n == UINT32_MAX; }
static elv_time_us by_turns(uint32_t n) { return n % 2 * 30 * MS; }

static struct line line(elv_time_us trip, uint32_t per_second)
{
    struct line l = {.trip = trip, .each = SECOND / per_second, .more = steady, .lost = never};
    elv_flow_init(&l.f);
    elv_flow_grant(&l.f, GRANT);
    elv_flow_restart(&l.f, ELV_WINDOW_FIRST);
    l.now = SECOND;
    return l;
}

static void send(struct line *l)
{
    const uint32_t at = (l->first + l->n) % FLIGHTS;
    elv_flow_sent(&l->f, l->now, l->n, &l->mark[at]);
    l->free_us = (l->free_us > l->now ? l->free_us : l->now) + l->each;
    l->at[at] = l->free_us + l->trip + l->more(l->n_sent);
    if (l->n > 0 && l->lost == never && l->at[at] < l->at[(at + FLIGHTS - 1) % FLIGHTS])
        l->at[at] = l->at[(at + FLIGHTS - 1) % FLIGHTS];
    l->n++;
    l->n_sent++;
}

static void answer(struct line *l)
{
    const struct elv_flow_mark m = l->mark[l->first];
    const bool lost = l->lost(l->n_sent - l->n);
    l->now = l->at[l->first] > l->now ? l->at[l->first] : l->now;
    l->first = (l->first + 1) % FLIGHTS;
    l->n--;
    if (lost)
        elv_flow_lost(&l->f);
    else
        elv_flow_answered(&l->f, l->now, &m, l->n);
}

static void go_on(struct line *l, elv_time_us until)
{
    while (l->now < until) {
        if (l->n < l->f.window && l->now >= l->f.pace_us)
            send(l);
        else if (l->n < l->f.window && l->f.pace_us < l->at[l->first])
            l->now = l->f.pace_us;
        else
            answer(l);
        assert_in_range(l->f.window, 1, GRANT);
    }
}

static void the_window_is_what_the_line_carries_and_some_more(void **state)
{
    (void)state;
    static const struct {
        elv_time_us trip;
        uint32_t per_second, least, most;
    } rows[] = {
        {100 * MS, 100, 13, 20}, /* the line carries 10 */
        {100 * MS, 200, 25, 32}, {1500 * MS, 3, 6, 13}, {50 * MS, 100000, GRANT, GRANT},
        {1 * MS, 2000, 10, 30}, /* a queue below ten milliseconds does not matter */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct line l = line(rows[i].trip, rows[i].per_second);
        go_on(&l, 60 * SECOND);
        assert_in_range(l.f.window, rows[i].least, rows[i].most);
        assert_false(l.f.quick);
        go_on(&l, 90 * SECOND);
        assert_true(l.f.window >= rows[i].least || l.f.drain != ELV_FLOW_STEADY);
    }
}

static void the_start_doubles_and_ends_when_nothing_is_gained(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 100000);
    go_on(&l, SECOND + 350 * MS);
    assert_true(l.f.quick && l.f.window >= 20);
    go_on(&l, SECOND + 1500 * MS);
    assert_false(l.f.quick);
    assert_int_equal(l.f.window, GRANT);
    l = line(100 * MS, 100);
    go_on(&l, SECOND + 1000 * MS);
    assert_false(l.f.quick);
    assert_in_range(l.f.window, 5, 20);
}

static void answers_that_take_twice_as_long_shrink_the_window_until_they_are_believed(void **state)
{
    (void)state;
    struct line l = line(50 * MS, 1000);
    go_on(&l, 5 * SECOND);
    assert_true(l.f.window > 50);
    l.trip = 300 * MS;
    go_on(&l, 6500 * MS);
    assert_true(l.f.window < 30);
    go_on(&l, 20 * SECOND);
    assert_true(l.f.least >= 300 * MS);
    assert_int_equal(l.f.window, GRANT);
}

static void what_is_always_lost_is_made_up_for(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 300);
    l.lost = every_second;
    go_on(&l, 20 * SECOND);
    assert_in_range(l.f.window, 30, 50); /* answers alone, 150 in a second, would ask for 22 */
    assert_in_range(elv_flow_patience(&l.f), 5, 7);
    assert_true(l.f.ceiling >= l.f.window);
}

static void a_path_that_varies_by_itself_is_used_all_the_same(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 100000);
    l.more = by_turns;
    go_on(&l, 20 * SECOND);
    assert_int_equal(l.f.window, GRANT);
}

static void few_requests_say_nothing_about_the_path(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 200);
    go_on(&l, 10 * SECOND);
    while (l.n > 0)
        answer(&l);
    const uint32_t before = l.f.window;
    for (int i = 0; i < 40; i++) { /* bodies of one chunk */
        send(&l);
        elv_flow_idle(&l.f, l.n);
        answer(&l);
    }
    assert_in_range(l.f.window, before - 6, GRANT);
    assert_true(l.f.delivered > 40);
}

static void after_a_long_rest_the_path_is_learnt_anew(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 200);
    go_on(&l, 10 * SECOND);
    while (l.n > 0)
        answer(&l);
    l.now += 60 * SECOND;
    send(&l);
    assert_true(l.f.quick && l.f.window <= ELV_WINDOW_FIRST && l.f.least == 0);
    go_on(&l, l.now + 5 * SECOND);
    assert_in_range(l.f.window, 20, 35);
}

/* The first question was repeated, so its answer seemed to take for ever. */
static void a_time_that_was_measured_before_does_not_hold_the_start_up(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 100000);
    elv_rtt_sample(&l.f.rtt, 3 * SECOND);
    go_on(&l, SECOND + 1000 * MS);
    assert_int_equal(l.f.window, GRANT);
    assert_in_range(l.f.rtt.smoothed, 90 * MS, 110 * MS);
}

static void a_smaller_grant_counts_at_once_and_a_larger_one_is_grown_into(void **state)
{
    (void)state;
    struct line l = line(50 * MS, 100000);
    go_on(&l, 5 * SECOND);
    elv_flow_grant(&l.f, 8);
    assert_int_equal(l.f.window, 8);
    while (l.n > 7)
        answer(&l);
    go_on(&l, 6 * SECOND);
    assert_int_equal(l.f.window, 8);
    elv_flow_grant(&l.f, GRANT);
    assert_int_equal(l.f.window, 8);
    go_on(&l, 10 * SECOND);
    assert_int_equal(l.f.window, GRANT);
}

static void counts_may_wrap_around(void **state)
{
    (void)state;
    struct line l = line(100 * MS, 200);
    l.f.delivered = l.f.limited = l.f.round_end = UINT32_MAX - 300;
    go_on(&l, 10 * SECOND);
    assert_true(l.f.delivered < 10000);
    assert_in_range(l.f.window, 20, 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_is_what_the_line_carries_and_some_more),
        cmocka_unit_test(the_start_doubles_and_ends_when_nothing_is_gained),
        cmocka_unit_test(answers_that_take_twice_as_long_shrink_the_window_until_they_are_believed),
        cmocka_unit_test(what_is_always_lost_is_made_up_for),
        cmocka_unit_test(a_path_that_varies_by_itself_is_used_all_the_same),
        cmocka_unit_test(few_requests_say_nothing_about_the_path),
        cmocka_unit_test(after_a_long_rest_the_path_is_learnt_anew),
        cmocka_unit_test(a_time_that_was_measured_before_does_not_hold_the_start_up),
        cmocka_unit_test(a_smaller_grant_counts_at_once_and_a_larger_one_is_grown_into),
        cmocka_unit_test(counts_may_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
