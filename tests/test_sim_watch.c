/* SPDX-License-Identifier: Apache-2.0 */
/* What the fault campaign asks of every run is no more than the server and the policies promise,
 * and no less: what it must blame, and what it must let pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim_fleet.h"

#define SECOND ((elv_time_us)1000000)

enum { CLIENTS = 3, STEP_US = 100, STEPS_MAX = 1000000 };

static struct fleet *begin(const struct fleet_key *keys)
{
    return fleet_new(&(struct fleet_cfg){
        .seed = 7,
        .n_clients = CLIENTS,
        .keys = keys,
        .link = {.delay = {.min_us = 20000, .spread_us = 50000}},
        .disk.sync = {.min_us = 5000},
        .slice = 4,
        .step_us = 30000,
        .join_spread_us = SECOND,
    });
}

static struct fleet *begin_stream(void)
{
    static const struct fleet_key keys[] = {
        {"sync", "policy", "asp"},      {"sync", "deadline", "12s"}, {"sync", "quorum", "1"},
        {"select", "min_clients", "1"}, {"job", "rounds", "8"},      {NULL, NULL, NULL}};
    return begin(keys);
}

/* Runs until a client is as it should be, and returns its row. */
static struct elv_row *run_to(struct fleet *f,
                              bool (*is)(const struct fleet *f, const struct elv_row *row))
{
    for (uint32_t n = 0; n < STEPS_MAX; n++) {
        elv_sim_run(f->w, elv_sim_now(f->w) + STEP_US);
        assert_null(fleet_wrong(f));
        for (uint32_t i = 0; i < f->server->roster.n; i++)
            if (is(f, &f->server->roster.rows[i]))
                return &f->server->roster.rows[i];
    }
    fail();
    return NULL;
}

static bool is_at_work(const struct fleet *f, const struct elv_row *row)
{
    (void)f;
    return row->waiting && row->offer.own && !row->offer.promised && row->upload == ELV_ROW_NONE;
}

static bool is_being_decided(const struct fleet *f, const struct elv_row *row)
{
    return row->upload != ELV_ROW_NONE &&
           f->server->uploads.at[row->upload].state == ELV_UPLOAD_VERIFY;
}

static void work_past_its_time_is_blamed_unless_the_server_is_about_to_end_it(void **state)
{
    (void)state;
    struct fleet *f = begin_stream();
    struct elv_row *row = run_to(f, is_at_work);
    row->offer.granted -= 31 * SECOND;
    f->server->lapse_at = f->server->now; /* it asks to be called at once */
    fleet_check(f);
    assert_null(fleet_wrong(f));
    f->server->lapse_at = f->server->now + SECOND;
    fleet_check(f);
    assert_non_null(fleet_wrong(f));
    fleet_free(f);
}

static void who_was_revoked_may_end_for_having_heard_so(void **state)
{
    (void)state;
    struct fleet *f = begin_stream();
    const uint32_t number = run_to(f, is_being_decided)->client;
    struct fleet_client *c = &f->clients[number - 1];
    uint32_t code = 0;
    assert_int_equal(c->number, number);
    c->revoked = true;
    elv_sim_revoke(f->w, f->server_node, number);
    assert_true(fleet_run(f, 300 * SECOND));
    assert_true(elv_sim_ended(f->w, c->node, &code));
    assert_int_equal(code, ELV_CLIENT_REFUSED);
    assert_int_equal(c->client.exit_reason, ELV_REASON_REVOKED);
    assert_false(fleet_sent_away(f));
    c->revoked = false; /* anybody else may not */
    assert_true(fleet_sent_away(f));
    fleet_free(f);
}

/* Six are wanted and there are three: each round waits half a minute for the others. */
static void a_policy_may_wait_for_clients_before_each_round(void **state)
{
    (void)state;
    static const struct fleet_key keys[] = {
        {"sync", "policy", "overselect"}, {"sync", "goal", "3"},   {"sync", "factor", "2"},
        {"sync", "deadline", "12s"},      {"sync", "quorum", "2"}, {"select", "min_clients", "2"},
        {"job", "rounds", "4"},           {NULL, NULL, NULL}};
    struct fleet *f = begin(keys);
    assert_true(fleet_run(f, 300 * SECOND));
    assert_true(f->over_us > 3 * (30 * SECOND));
    assert_in_range(f->over_us, 0, 4 * fleet_round_max(&f->job));
    fleet_free(f);
    f = begin_stream(); /* nobody is waited for */
    assert_int_equal(fleet_round_max(&f->job), f->job.deadline_us);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_past_its_time_is_blamed_unless_the_server_is_about_to_end_it),
        cmocka_unit_test(who_was_revoked_may_end_for_having_heard_so),
        cmocka_unit_test(a_policy_may_wait_for_clients_before_each_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
