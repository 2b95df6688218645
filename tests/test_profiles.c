/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_profiles.c - real server and clients on every link that has a name, in virtual time:
 * each round closes with everybody's update before its deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_fleet.h"

#define SECOND ((elv_time_us)1000000)
enum { CLIENTS = 4 };

struct trip { /* what a run took */
    double seconds;
    double up_s, down_s; /* a client's bytes over the line, all headers and repeats counted */
};

/* A model of 19,923 parameters. */
static struct trip travel(const struct elv_sim_profile *p, const char *up, const char *deadline,
                          uint32_t rounds, uint64_t seed)
{
    char n_rounds[12];
    snprintf(n_rounds, sizeof n_rounds, "%u", rounds);
    const struct fleet_key keys[] = {{"model", "layers", "dense 1660 relu, dense 3"},
                                     {"sync", "policy", "bsp"},
                                     {"sync", "deadline", deadline},
                                     {"sync", "quorum", "4"},
                                     {"select", "min_clients", "4"},
                                     {"transfer", "up", up},
                                     {"transfer", "down", "q8"},
                                     {"job", "rounds", n_rounds},
                                     {NULL, NULL, NULL}};
    const struct fleet_cfg cfg = {.seed = seed,
                                  .n_clients = CLIENTS,
                                  .keys = keys,
                                  .link = {.up = &p->up, .down = &p->down},
                                  .disk.sync = {.min_us = 2000},
                                  .slice = 64,
                                  .step_us = 1000};
    struct fleet *f = fleet_new(&cfg);
    const bool over = fleet_run(f, 4000 * SECOND);
    const struct fleet_sums sums = fleet_sums(f);
    const struct elv_sim_stats s = elv_sim_stats(f->w);
    const char *wrong = fleet_wrong(f);
    if (!over || wrong != NULL || sums.abandoned + sums.late + sums.lapsed + sums.failed > 0)
        fail_msg("%s, up %s, seed %u: %s; %u rounds abandoned, %u updates late, %u lapsed", p->name,
                 up, (unsigned)seed,
                 wrong != NULL ? wrong
                 : over        ? "over"
                               : "never over",
                 (unsigned)sums.abandoned, (unsigned)sums.late, (unsigned)sums.lapsed);
    const struct trip t = {.seconds = (double)f->over_us / 1e6,
                           .up_s = (double)s.up.bytes / p->up.bps / CLIENTS,
                           .down_s = (double)s.down.bytes / p->down.bps / CLIENTS};
    fleet_free(f);
    return t;
}

static void every_round_closes_in_time_on_every_profile(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *deadline;
    } rows[] = {{"lan", "10s"},     {"lte", "15s"},       {"lte-m", "30s"},
                {"nb-iot", "120s"}, {"satellite", "60s"}, {"lossy", "300s"}};
    static const char *const ups[] = {"q8", "ternary 0.01"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_sim_profile *p = elv_sim_profile(rows[i].profile, strlen(rows[i].profile));
        for (size_t k = 0; k < sizeof ups / sizeof ups[0]; k++)
            for (uint64_t seed = 1; seed <= 5; seed++) {
                const struct trip t = travel(p, ups[k], rows[i].deadline, 3, seed);
                print_message("%s, up %s: 3 rounds in %.1f s, on the air %.2f s up, %.2f s down\n",
                              p->name, ups[k], t.seconds, t.up_s, t.down_s);
            }
    }
    assert_null(elv_sim_profile_at(sizeof rows / sizeof rows[0]));
}

/* Air time: how long the line is taken by a client's bytes, both ways, at NB-IoT's rate. */
static void a_round_on_nb_iot_takes_at_most_ten_seconds_of_air_each_way(void **state)
{
    (void)state;
    const struct elv_sim_profile *p = elv_sim_profile("nb-iot", 6);
    static const char *const ups[] = {"q8", "ternary 0.01"};
    for (size_t k = 0; k < sizeof ups / sizeof ups[0]; k++) {
        const struct trip one = travel(p, ups[k], "120s", 1, 3);
        const struct trip five = travel(p, ups[k], "120s", 5, 3);
        const double up = (five.up_s - one.up_s) / 4, down = (five.down_s - one.down_s) / 4;
        print_message("nb-iot, up %s: the first round %.1f s in all, %.2f s up and %.2f s down on "
                      "the air; each further one %.2f s and %.2f s, %.1f s in all\n",
                      ups[k], one.seconds, one.up_s, one.down_s, up, down,
                      (five.seconds - one.seconds) / 4);
        assert_true(up <= 10.0 && down <= 10.0);
        assert_true(one.down_s <= 30.0); /* with the first full download */
    }
}

/* Runs in short steps until `until` holds. */
static void run_until(struct fleet *f, bool (*until)(const struct fleet *f))
{
    while (!until(f)) {
        if (fleet_wrong(f) != NULL || elv_sim_now(f->w) > 4000 * SECOND)
            fail_msg("%s", fleet_wrong(f) != NULL ? fleet_wrong(f) : "it takes too long");
        elv_sim_run(f->w, elv_sim_now(f->w) + SECOND / 20);
    }
}

static bool version_8(const struct fleet *f)
{
    return f->server != NULL && elv_server_stats(f->server)->version >= 8;
}
static bool fetches(const struct fleet *f)
{
    return f->clients[CLIENTS - 1].client.phase == ELV_CLIENT_FETCHING;
}
static bool has_fetched(const struct fleet *f)
{
    return f->clients[CLIENTS - 1].client.phase > ELV_CLIENT_FETCHING;
}

/* The last client comes when the steps to the present version are more than the model. */
static void a_first_full_download_on_nb_iot_takes_half_a_minute_of_air(void **state)
{
    (void)state;
    static const struct fleet_key keys[] = {{"model", "layers", "dense 1660 relu, dense 3"},
                                            {"sync", "policy", "bsp"},
                                            {"sync", "deadline", "120s"},
                                            {"sync", "quorum", "3"},
                                            {"select", "min_clients", "3"},
                                            {"transfer", "up", "q8"},
                                            {"transfer", "down", "q8"},
                                            {"job", "rounds", "40"},
                                            {NULL, NULL, NULL}};
    const struct elv_sim_profile *p = elv_sim_profile("nb-iot", 6);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct fleet_cfg cfg = {.seed = seed,
                                      .n_clients = CLIENTS,
                                      .observe = true,
                                      .absent = 1u << (CLIENTS - 1),
                                      .keys = keys,
                                      .link.delay.min_us = 20000,
                                      .disk.sync = {.min_us = 2000},
                                      .slice = 64,
                                      .step_us = 1000};
        struct fleet *f = fleet_new(&cfg);
        const struct fleet_client *c = &f->clients[CLIENTS - 1];
        run_until(f, version_8);
        *elv_sim_link(f->w, c->node) = (struct elv_sim_link){.up = &p->up, .down = &p->down};
        elv_sim_start(f->w, c->node);
        run_until(f, fetches);
        for (uint32_t i = 0; i + 1 < CLIENTS; i++) /* whatever passes from now on is this one's */
            elv_sim_crash(f->w, f->clients[i].node, (struct elv_sim_crash){.down_us = ELV_NEVER});
        const uint64_t before = elv_sim_stats(f->w).down.bytes;
        const elv_time_us from = elv_sim_now(f->w);
        run_until(f, has_fetched);
        const double seconds = (double)(elv_sim_now(f->w) - from) / 1e6;
        const double air = (double)(elv_sim_stats(f->w).down.bytes - before) / p->down.bps;
        print_message("nb-iot: a full model of %u chunks in %.1f s, %.1f s on the air, %u chunks "
                      "asked for again\n",
                      (unsigned)c->client.transfer.have.n, seconds, air,
                      (unsigned)c->client.stats.chunks_repeated);
        assert_true(air <= 33.0 && seconds <= 60.0);
        fleet_free(f);
    }
}

/* One of three clients sits behind a path that drops every datagram of more than 600 bytes: its
 * tickets come, no chunk passes. It says so long before the deadline, and the others are used. */
static void who_is_behind_an_mtu_black_hole_says_so_and_holds_up_nobody(void **state)
{
    (void)state;
    static const struct fleet_key keys[] = {{"model", "layers", "dense 1660 relu, dense 3"},
                                            {"sync", "policy", "bsp"},
                                            {"sync", "deadline", "1000s"},
                                            {"sync", "quorum", "2"},
                                            {"select", "min_clients", "3"},
                                            {"transfer", "up", "q8"},
                                            {"transfer", "down", "q8"},
                                            {"job", "rounds", "3"},
                                            {NULL, NULL, NULL}};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const struct fleet_cfg cfg = {.seed = seed,
                                      .n_clients = 3,
                                      .keys = keys,
                                      .link = {.delay = {.min_us = 30000, .spread_us = 10000},
                                               .loss_ppm = seed > 2 ? 100000 : 0},
                                      .observe = seed % 2 == 0,
                                      .disk.sync = {.min_us = 2000},
                                      .slice = 64,
                                      .step_us = 1000};
        struct fleet *f = fleet_new(&cfg);
        elv_sim_link(f->w, f->clients[1].node)->mtu = 600;
        const bool over = fleet_run(f, 4000 * SECOND);
        const struct fleet_sums sums = fleet_sums(f);
        const struct elv_sim_stats s = elv_sim_stats(f->w);
        if (!over || fleet_wrong(f) != NULL)
            fail_msg("seed %u: %s", (unsigned)seed, over ? fleet_wrong(f) : "never over");
        print_message("with a black hole: 3 rounds in %.0f s, %u failed\n",
                      (double)f->over_us / 1e6, (unsigned)sums.failed);
        assert_int_equal(sums.abandoned, 0);
        assert_int_equal(sums.failed, 3);
        assert_true(s.up.n[ELV_SIM_LONG] > 0 && s.down.n[ELV_SIM_LONG] > 0);
        assert_true(f->over_us < 3 * 200 * SECOND);
        fleet_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_closes_in_time_on_every_profile),
        cmocka_unit_test(a_round_on_nb_iot_takes_at_most_ten_seconds_of_air_each_way),
        cmocka_unit_test(a_first_full_download_on_nb_iot_takes_half_a_minute_of_air),
        cmocka_unit_test(who_is_behind_an_mtu_black_hole_says_so_and_holds_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
