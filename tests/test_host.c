/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A node that records what it sees and answers with what the test put down. */
static struct {
    struct elv_event seen[32];
    uint8_t bodies[32][8];
    uint32_t n_seen;
    bool inside;
    struct elv_action next[4];
    uint32_t n_next;
    char trace[64]; /* what the ports were asked, one letter each */
    bool answers_at_once;
} world;

static struct elv_host host;
static elv_time_us time_now;

static void trace(char c)
{
    const size_t n = strlen(world.trace);
    world.trace[n] = c;
    world.trace[n + 1] = 0;
}

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    (void)self;
    assert_false(world.inside);
    world.inside = true;
    assert_true(world.n_seen < 32);
    if (ev->response.body.len > 0)
        memcpy(world.bodies[world.n_seen], ev->response.body.at, ev->response.body.len);
    world.seen[world.n_seen++] = *ev;
    memcpy(out->at, world.next, sizeof world.next);
    out->n = world.n_next;
    world.n_next = 0;
    world.inside = false;
}

static elv_time_us deadline(const void *self)
{
    (void)self;
    return 77;
}

static elv_time_us now(void *self)
{
    (void)self;
    return time_now;
}

/* A net that answers inside the call, from a buffer that does not outlive it. */
static void act(void *self, const struct elv_action *a)
{
    (void)self;
    trace("sfrRn"[a->kind == ELV_DO_SEND     ? 0
                  : a->kind == ELV_DO_FORGET ? 1
                  : a->kind == ELV_DO_RELINK ? 2
                  : a->kind == ELV_DO_REPLY  ? 3
                                             : 4]);
    if (!world.answers_at_once)
        return;
    uint8_t body[4] = {1, 2, 3, (uint8_t)a->id};
    struct elv_event ev = {
        .kind = ELV_EV_RESPONSE, .id = a->id, .response = {.body = {.at = body, .len = 4}}};
    const struct elv_sink sink = elv_host_sink(&host);
    sink.event(sink.self, &ev);
    memset(body, 0, sizeof body);
}

static void submit(void *self, const struct elv_action *actions, uint32_t n)
{
    (void)self;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(actions[i].kind, ELV_DO_STORE);
    trace((char)('0' + n));
}

static int start(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    time_now = 100;
    const struct elv_node node = {.actions_max = 4, .step = step, .deadline = deadline};
    if (elv_host_init(&host, node, (struct elv_clock){.now = now}) != ELV_OK)
        return -1;
    elv_host_wire(&host, (struct elv_net){.act = act}, (struct elv_store){.submit = submit}, NULL);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    elv_host_free(&host);
    return 0;
}

static void plan(uint32_t n, const struct elv_action *actions)
{
    memcpy(world.next, actions, n * sizeof *actions);
    world.n_next = n;
}

static void stores_go_first_and_together(void **state)
{
    (void)state;
    plan(4, (const struct elv_action[]){{.kind = ELV_DO_REPLY},
                                        {.kind = ELV_DO_STORE, .id = 1},
                                        {.kind = ELV_DO_SEND},
                                        {.kind = ELV_DO_STORE}});
    elv_host_tick(&host);
    assert_string_equal(world.trace, "2Rs");
}

static void an_event_brought_by_an_action_waits_for_its_turn_with_its_body(void **state)
{
    (void)state;
    world.answers_at_once = true;
    plan(3, (const struct elv_action[]){{.kind = ELV_DO_SEND, .id = 7},
                                        {.kind = ELV_DO_SEND, .id = 8},
                                        {.kind = ELV_DO_STORE}});
    elv_host_tick(&host);
    assert_string_equal(world.trace, "1ss");
    assert_int_equal(world.n_seen, 3);
    assert_int_equal(world.seen[1].id, 7);
    assert_int_equal(world.seen[2].id, 8);
    assert_memory_equal(world.bodies[1], "\1\2\3\7", 4);
    assert_memory_equal(world.bodies[2], "\1\2\3\10", 4);
    assert_int_equal(host.stats.deferred, 2);
    assert_int_equal(host.stats.waiting_max, 2);
}

static void time_never_goes_back(void **state)
{
    (void)state;
    elv_host_tick(&host);
    time_now = 50;
    elv_host_tick(&host);
    time_now = 101;
    elv_host_stop(&host);
    assert_int_equal(world.seen[0].now, 100);
    assert_int_equal(world.seen[1].now, 100);
    assert_int_equal(world.seen[2].now, 101);
    assert_int_equal(world.seen[2].kind, ELV_EV_STOP);
}

static void without_a_store_everything_counts_as_stored(void **state)
{
    (void)state;
    elv_host_wire(&host, (struct elv_net){0}, (struct elv_store){0}, NULL);
    plan(4, (const struct elv_action[]){{.kind = ELV_DO_STORE, .id = 5},
                                        {.kind = ELV_DO_STORE},
                                        {.kind = ELV_DO_STORE, .id = 6},
                                        {.kind = ELV_DO_REPLY}});
    elv_host_tick(&host);
    assert_int_equal(world.n_seen, 3);
    assert_int_equal(world.seen[1].kind, ELV_EV_STORED);
    assert_int_equal(world.seen[1].id, 5);
    assert_int_equal(world.seen[1].err, ELV_OK);
    assert_int_equal(world.seen[2].id, 6);
}

static void after_the_end_the_node_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(elv_host_deadline(&host), 77);
    plan(1, (const struct elv_action[]){{.kind = ELV_DO_END, .id = 3}});
    elv_host_tick(&host);
    assert_true(host.ended);
    assert_int_equal(host.exit_code, 3);
    assert_true(elv_host_deadline(&host) == ELV_NEVER);
    elv_host_tick(&host);
    assert_int_equal(world.n_seen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stores_go_first_and_together, start, finish),
        cmocka_unit_test_setup_teardown(
            an_event_brought_by_an_action_waits_for_its_turn_with_its_body, start, finish),
        cmocka_unit_test_setup_teardown(time_never_goes_back, start, finish),
        cmocka_unit_test_setup_teardown(without_a_store_everything_counts_as_stored, start, finish),
        cmocka_unit_test_setup_teardown(after_the_end_the_node_is_left_alone, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
