/* SPDX-License-Identifier: Apache-2.0 */
/* The way down, with the production nodes in the simulated world: whatever codec the steps come in,
 * and however a client came to a version, it trains on the bytes that the server published. The
 * fleet looks at the model itself, each time a client begins (sim_fleet.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim_fleet.h"

#define SECOND ((elv_time_us)1000000)

enum { CLIENTS = 10 };

/* Few are asked in a round, so that others skip versions, and some are there only later. */
static struct fleet *run(const char *up, const char *down, const char *count, uint64_t plain)
{
    const struct fleet_key keys[] = {
        {"sync", "policy", "bsp"},  {"sync", "deadline", "60s"},    {"sync", "quorum", "2"},
        {"select", "count", count}, {"select", "min_clients", "4"}, {"transfer", "up", up},
        {"transfer", "down", down}, {"job", "rounds", "14"},        {NULL, NULL, NULL},
    };
    struct fleet *f = fleet_new(&(struct fleet_cfg){
        .seed = 5,
        .n_clients = CLIENTS,
        .keys = keys,
        .link = {.delay = {.min_us = 20000, .spread_us = 50000}, .loss_ppm = 20000},
        .disk.sync = {.min_us = 2000},
        .step_us = 30000,
        .join_spread_us = 20 * SECOND,
        .plain = plain,
    });
    const bool over = fleet_run(f, 2000 * SECOND);
    if (fleet_wrong(f) != NULL)
        fail_msg("up %s down %s: %s", up, down, fleet_wrong(f));
    assert_true(over);
    return f;
}

static void every_codec_brings_every_client_the_bytes_that_were_published(void **state)
{
    (void)state;
    static const char *const down[] = {
        "q8",          "f16",          "q4",        "q8 stochastic", "sign",
        "ternary 0.1", "ternary 0.02", "topk 0.05", "rotate 2",      "rotate 4 unbiased"};
    for (size_t i = 0; i < sizeof down / sizeof down[0]; i++) {
        struct fleet *f = run("q8", down[i], "3", 0);
        assert_true(f->sums.by_steps > 0);
        assert_true(f->sums.by_seed > 0);
        fleet_free(f);
    }
}

/* What it skipped is worth more than the whole model, or no longer there. */
static void who_was_away_for_long_takes_the_whole_model(void **state)
{
    (void)state;
    struct fleet *f = run("q8", "q8", "2", 0);
    assert_true(f->sums.by_full > 0);
    assert_true(f->sums.by_steps > 0);
    fleet_free(f);
}

static void without_a_lossy_codec_there_are_no_steps(void **state)
{
    (void)state;
    struct fleet *f = run("q4 stochastic", "f32", "3", 0);
    assert_int_equal(f->sums.by_steps, 0);
    assert_true(f->sums.by_full > 0);
    fleet_free(f);
}

/* Three of them know f32 only: steps are nothing to them, and their updates come in the next codec
 * of the job's list. */
static void who_cannot_run_a_codec_gets_the_next_and_the_whole_model(void **state)
{
    (void)state;
    const uint64_t plain = 0x07;
    struct fleet *f = run("q4, f32", "ternary 0.1", "0", plain);
    assert_true(f->sums.by_full > 0);
    assert_true(f->sums.by_steps > 0);
    for (uint32_t i = 0; i < f->server->roster.n; i++) {
        const struct elv_row *row = &f->server->roster.rows[i];
        const bool is_plain = (plain >> (row->client - 1) & 1) != 0;
        assert_int_equal(row->codec, is_plain ? ELV_CODEC_F32 : ELV_CODEC_Q4);
        assert_true(row->last.assignment > 0);
        assert_true(row->last.decision == ELV_ACCEPTED && row->last.weight > 0);
    }
    fleet_free(f);
}

static void who_can_run_none_of_the_codecs_is_told_so(void **state)
{
    (void)state;
    struct fleet *f = run("q4", "ternary 0.1", "3", 0x01);
    const uint32_t exit_code = f->clients[0].client.exit_code;
    assert_int_equal(exit_code, ELV_CLIENT_REFUSED);
    assert_int_equal(f->clients[0].client.exit_reason, ELV_REASON_NO_CODEC);
    fleet_free(f);
}

/* One after the other for each byte the steps have, and the full body not at all. */
static void steps_are_offered_while_they_are_fewer_bytes_than_the_model(void **state)
{
    (void)state;
    struct fleet *f = run("q8", "q8", "3", 0);
    const struct elv_broadcast *c = &f->server->cast;
    struct elv_ticket t = {0};
    size_t len = 0;
    elv_broadcast_offer(c, c->version, &t);
    assert_true(t.n_steps > 0 && t.n_steps < c->n_steps);
    for (uint32_t i = 0; i <= t.n_steps; i++) {
        assert_true(len < c->n * sizeof(float) + t.full.n_chunks * ELV_CHUNK_HEAD_LEN);
        len += c->steps[(c->version - i) % c->n_steps].len;
    }
    assert_true(len >= c->n * sizeof(float));
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_brings_every_client_the_bytes_that_were_published),
        cmocka_unit_test(who_was_away_for_long_takes_the_whole_model),
        cmocka_unit_test(without_a_lossy_codec_there_are_no_steps),
        cmocka_unit_test(who_cannot_run_a_codec_gets_the_next_and_the_whole_model),
        cmocka_unit_test(who_can_run_none_of_the_codecs_is_told_so),
        cmocka_unit_test(steps_are_offered_while_they_are_fewer_bytes_than_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
