/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a stream that are quicker than its versions, or that get nothing done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/stream_world.h"

static const elv_time_us second = 1000000;

static void start(struct world *w, uint32_t peers)
{
    stream_init(w);
    world_start(w);
    for (uint32_t peer = 1; peer <= peers; peer++)
        world_join(w, peer);
}

static void who_delivers_over_and_over_from_one_version_does_not_overshoot(void **state)
{
    (void)state;
    static const struct {
        uint32_t updates;
        double by; /* claims: 10 of the first client, 20 of the second */
    } rows[] = {{1, 30}, {3, 30}, {4, 40}, {9, 90}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct world w;
        static float before[1020], v[1020];
        double sum[1020] = {0};
        start(&w, 2);
        told.enough = rows[i].updates;
        told.scale.by = ELV_SYNC_BY_FLEET;
        memcpy(before, elv_server_model(w.s), sizeof before);
        for (uint32_t k = 0; k < rows[i].updates; k++) {
            struct elv_ticket t;
            stream_work(&w, 1, &t);
            world_update(&w, 1, &t, v);
            for (uint32_t p = 0; p < 1020; p++)
                sum[p] += 10 * (double)v[p];
            assert_true(stream_deliver(&w, 1, &t));
        }
        assert_int_equal(elv_server_stats(w.s)->version, 1);
        for (uint32_t p = 0; p < 1020; p++)
            assert_true(fabs((double)elv_server_model(w.s)[p] - (double)before[p] -
                             sum[p] / rows[i].by) < 1e-6);
        world_free(&w);
    }
}

static void observe(struct world *w, uint32_t peer)
{
    const struct elv_request ask = {.op = ELV_OP_TICKET, .observe = true};
    world_ask(w, peer, &ask);
}

static void who_got_nothing_done_is_given_more_only_when_it_asks(void **state)
{
    (void)state;
    static const enum elv_status ways[] = {ELV_STATUS_DECLINED, ELV_STATUS_FAILED};
    for (size_t i = 0; i < 2; i++) {
        static struct world w;
        struct elv_ticket t;
        start(&w, 2);
        observe(&w, 1);
        observe(&w, 2);
        world_settle(&w);
        const uint32_t joins = told.joins;
        assert_true(world_decline(&w, 1, ways[i], ELV_REASON_NO_DATA));
        assert_int_equal(told.leaves, 1); /* nobody waits for it */
        const uint32_t pulls = told.pulls, notified = w.n_notified;
        world_advance(&w, 2 * second);
        assert_int_equal(told.pulls, pulls);
        assert_int_equal(w.n_notified, notified);
        assert_int_equal(elv_roster_there(&w.s->roster), 1);
        assert_true(stream_work(&w, 1, &t) > 0);
        assert_int_equal(told.joins, joins + 1);
        assert_true(stream_deliver(&w, 1, &t));
        assert_int_equal(told.leaves, 1);
        world_free(&w);
    }
}

static void who_got_nothing_done_is_not_chosen_either(void **state)
{
    (void)state;
    static struct world w;
    struct elv_ticket t;
    stream_init(&w);
    w.cfg.sync = &roomy;
    told.room = 1;
    world_start(&w);
    world_join(&w, 1);
    stream_work(&w, 1, &t);
    assert_true(world_decline(&w, 1, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA));
    world_advance(&w, 2 * second);
    assert_int_equal(w.s->round.n_waiting, 0);
    world_join(&w, 2);
    world_advance(&w, 1);
    assert_int_equal(w.s->round.n_waiting, 1); /* the other one is */
    stream_work(&w, 2, &t);
    assert_true(stream_deliver(&w, 2, &t));
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_delivers_over_and_over_from_one_version_does_not_overshoot),
        cmocka_unit_test(who_got_nothing_done_is_given_more_only_when_it_asks),
        cmocka_unit_test(who_got_nothing_done_is_not_chosen_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
