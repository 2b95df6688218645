/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/workers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "ports/posix/clock.h"

enum { WORKS = 64 };

/* One piece of work: counts to `goal`, or for ever when that is 0. */
struct count {
    uint32_t done, goal;
    enum elv_err ends_with;
    atomic_int inside; /* two slices of one work at a time would be a bug */
    atomic_bool started;
};

static struct count counts[WORKS];
static enum elv_err results[WORKS];
static uint32_t n_ended;
static struct elv_workers *workers;

static enum elv_err run(void *self, const struct elv_compute *work, uint32_t budget)
{
    (void)self;
    struct count *c = &counts[work->kind];
    assert_int_equal(atomic_fetch_add(&c->inside, 1), 0);
    atomic_store(&c->started, true);
    assert_true(budget >= 1);
    for (uint32_t i = 0; i < budget && (c->goal == 0 || c->done < c->goal); i++)
        c->done++;
    atomic_fetch_sub(&c->inside, 1);
    return c->done == c->goal ? c->ends_with : ELV_ERR_BUSY;
}

static void event(void *self, struct elv_event *ev)
{
    (void)self;
    assert_int_equal(ev->kind, ELV_EV_COMPUTED);
    assert_int_equal(results[ev->id], 1); /* once only */
    results[ev->id] = ev->err;
    n_ended++;
}

static void open_workers(uint32_t n_threads)
{
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < WORKS; i++)
        results[i] = (enum elv_err)1;
    n_ended = 0;
    const struct elv_workers_cfg cfg = {
        .node = {.run = run},
        .clock = elv_posix_clock(),
        .sink = {.event = event},
        .n_threads = n_threads,
        .slice_us = 100,
    };
    assert_int_equal(elv_workers_open(&workers, &cfg), ELV_OK);
}

static void start(uint32_t id, uint32_t goal, enum elv_err ends_with)
{
    counts[id].goal = goal;
    counts[id].ends_with = ends_with;
    elv_workers_start(workers, id, &(struct elv_compute){.kind = id});
}

/* What a loop does, until `n` pieces of work have ended. */
static void wait_for(uint32_t n)
{
    const struct elv_source s = elv_workers_source(workers);
    while (n_ended < n) {
        struct pollfd p = {.fd = (int)s.handle, .events = POLLIN};
        const int wait_ms = s.deadline(s.self) == ELV_NEVER ? 10000 : 0;
        assert_true(poll(&p, 1, wait_ms) > 0 || wait_ms == 0);
        s.ready(s.self);
    }
}

static void every_work_ends_once_with_its_own_result(void **state)
{
    (void)state;
    for (uint32_t n_threads = 0; n_threads <= 3; n_threads++) {
        open_workers(n_threads);
        for (uint32_t i = 0; i < WORKS; i++)
            start(i, 1 + i * 997, i % 3 == 0 ? ELV_ERR_RANGE : ELV_OK);
        wait_for(WORKS);
        for (uint32_t i = 0; i < WORKS; i++) {
            assert_int_equal(results[i], i % 3 == 0 ? ELV_ERR_RANGE : ELV_OK);
            assert_int_equal(counts[i].done, 1 + i * 997);
        }
        struct elv_workers_stats stats;
        elv_workers_stats(workers, &stats);
        assert_int_equal(stats.works, WORKS);
        assert_int_equal(stats.waiting, 0);
        assert_true(stats.slices >= WORKS);
        elv_workers_close(workers);
    }
}

static void cancelled_work_ends_between_two_slices(void **state)
{
    (void)state;
    for (uint32_t n_threads = 0; n_threads <= 2; n_threads++) {
        open_workers(n_threads);
        for (uint32_t i = 0; i < 8; i++)
            start(i, 0, ELV_OK); /* would go on for ever */
        start(8, 1000, ELV_OK);
        wait_for(1); /* long work does not hold up short work */
        assert_int_equal(results[8], ELV_OK);
        for (uint32_t i = 0; i < 8; i++)
            elv_workers_cancel(workers, i);
        elv_workers_cancel(workers, 8);  /* ended already */
        elv_workers_cancel(workers, 99); /* never was */
        wait_for(9);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(results[i], ELV_ERR_CANCELLED);
        elv_workers_close(workers);
    }
}

static void work_cancelled_before_its_first_slice_never_runs(void **state)
{
    (void)state;
    open_workers(0);
    start(1, 10, ELV_OK);
    elv_workers_cancel(workers, 1);
    assert_int_equal(n_ended, 0); /* never inside the call */
    wait_for(1);
    assert_int_equal(results[1], ELV_ERR_CANCELLED);
    assert_int_equal(counts[1].done, 0);
    elv_workers_close(workers);
}

static void a_close_in_the_middle_leaves_nothing_behind(void **state)
{
    (void)state;
    open_workers(2);
    for (uint32_t i = 0; i < 5; i++)
        start(i, i == 0 ? 1 : 0, ELV_OK);
    while (!atomic_load(&counts[1].started))
        continue;
    elv_workers_close(workers);
    elv_workers_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_work_ends_once_with_its_own_result),
        cmocka_unit_test(cancelled_work_ends_between_two_slices),
        cmocka_unit_test(work_cancelled_before_its_first_slice_never_runs),
        cmocka_unit_test(a_close_in_the_middle_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
