/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/loop.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ports/posix/clock.h"

static struct elv_host host;
static struct elv_loop loop;

/* A node that wakes itself every millisecond and ends after `ticks_left` times. */
static struct {
    elv_time_us next;
    uint32_t ticks_left;
    bool stopped, stubborn;
} node_state;

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    (void)self;
    out->n = 0;
    if (ev->kind == ELV_EV_TICK) {
        assert_true(ev->now >= node_state.next); /* never early */
        node_state.next = ev->now + 1000;
        node_state.ticks_left -= node_state.ticks_left > 0;
    } else if (ev->kind == ELV_EV_STOP) {
        node_state.stopped = true;
    }
    if (node_state.ticks_left == 0 || (node_state.stopped && !node_state.stubborn)) {
        out->n = 1;
        out->at[0] = (struct elv_action){.kind = ELV_DO_END, .id = node_state.stopped ? 5 : 4};
    }
}

static elv_time_us deadline(const void *self)
{
    (void)self;
    return node_state.next;
}

static int begin(void **state)
{
    (void)state;
    memset(&node_state, 0, sizeof node_state);
    node_state.ticks_left = UINT32_MAX;
    const struct elv_node node = {.actions_max = 1, .step = step, .deadline = deadline};
    if (elv_loop_init(&loop) != ELV_OK || elv_host_init(&host, node, elv_posix_clock()) != ELV_OK)
        return -1;
    elv_host_wire(&host, (struct elv_net){0}, (struct elv_store){0}, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    elv_host_free(&host);
    elv_loop_free(&loop);
    return 0;
}

static void a_node_is_woken_at_its_deadlines_until_it_ends(void **state)
{
    (void)state;
    node_state.ticks_left = 20;
    assert_int_equal(elv_loop_run(&loop, &host), 4);
    assert_int_equal(host.stats.steps, 20);
}

static void the_first_signal_asks_the_node_to_stop(void **state)
{
    (void)state;
    assert_int_equal(raise(SIGTERM), 0); /* blocked, so it waits for the loop */
    assert_int_equal(elv_loop_run(&loop, &host), 5);
}

/* A source that sends the second signal once the first has been taken. */
static void interrupt(void *self)
{
    uint32_t *calls = self;
    if (node_state.stopped && (*calls)++ == 0)
        raise(SIGINT);
}

static elv_time_us always_due(const void *self)
{
    (void)self;
    return 0;
}

static void a_second_signal_ends_the_loop_whatever_the_node_does(void **state)
{
    (void)state;
    uint32_t calls = 0;
    node_state.stubborn = true;
    const struct elv_source s = {
        .self = &calls, .handle = -1, .ready = interrupt, .deadline = always_due};
    assert_int_equal(elv_loop_add(&loop, s), ELV_OK);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(elv_loop_run(&loop, &host), 128 + SIGINT);
    assert_false(host.ended);
}

static void drain(void *self)
{
    const int *fds = self;
    char c;
    assert_int_equal(read(fds[0], &c, 1), 1);
    node_state.ticks_left = 1;
}

static void a_readable_source_is_called(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    const struct elv_source s = {.self = fds, .handle = fds[0], .ready = drain};
    assert_int_equal(elv_loop_add(&loop, s), ELV_OK);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(elv_loop_run(&loop, &host), 4);
    close(fds[0]);
    close(fds[1]);
}

static void a_reader_that_went_away_does_not_end_the_program(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(write(fds[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(fds[1]);
}

static void sources_are_bounded_and_checked(void **state)
{
    (void)state;
    const struct elv_source timer_only = {.handle = -1};
    for (uint32_t i = 0; i < ELV_LOOP_SOURCES_MAX - 1; i++)
        assert_int_equal(elv_loop_add(&loop, timer_only), ELV_OK);
    assert_int_equal(elv_loop_add(&loop, (struct elv_source){.handle = 9999}), ELV_ERR_IO);
    assert_int_equal(elv_loop_add(&loop, timer_only), ELV_OK);
    assert_int_equal(elv_loop_add(&loop, timer_only), ELV_ERR_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_is_woken_at_its_deadlines_until_it_ends, begin, end),
        cmocka_unit_test_setup_teardown(the_first_signal_asks_the_node_to_stop, begin, end),
        cmocka_unit_test_setup_teardown(a_second_signal_ends_the_loop_whatever_the_node_does, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_readable_source_is_called, begin, end),
        cmocka_unit_test_setup_teardown(a_reader_that_went_away_does_not_end_the_program, begin,
                                        end),
        cmocka_unit_test_setup_teardown(sources_are_bounded_and_checked, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
