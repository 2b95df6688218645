/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_same_bytes.c - the model does not depend on how it came about.
 *
 *     sim_same_bytes FIRST COUNT
 *
 * Under policy bsp, with a deadline so long that nothing can change who contributes, the final
 * model and the deflated step to it are the same bytes: for any order of arrival, whether server
 * and clients died or not, with their machines or without, or the server was stopped and started
 * again. Clients that feed errors back have disks. Each seed is one disturbed run, compared with
 * the undisturbed one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "ports/sim/faults.h"
#include "tests/sim_fleet.h"

#define SECOND ((elv_time_us)1000000)

enum { CLIENTS = 8, TROUBLE_S = 240, LIMIT_S = 4000 };

static const struct fleet_key dense[] = {
    {"sync", "policy", "bsp"},      {"sync", "deadline", "100000s"}, {"sync", "quorum", "8"},
    {"select", "min_clients", "8"}, {"transfer", "up", "q8"},        {"transfer", "down", "q8"},
    {"job", "rounds", "6"},         {"transfer", "deflate", "on"},   {NULL, NULL, NULL},
};
/* What the steps leave out is in the master model, what the updates leave out with the clients: it
 * has to survive, too. */
static const struct fleet_key sparse[] = {
    {"sync", "policy", "bsp"},
    {"sync", "deadline", "100000s"},
    {"sync", "quorum", "8"},
    {"select", "min_clients", "8"},
    {"transfer", "up", "topk 0.05"},
    {"transfer", "momentum_correction", "0.5"},
    {"transfer", "warm_up", "3"},
    {"transfer", "clip", "0.3"},
    {"transfer", "down", "ternary 0.05"},
    {"job", "rounds", "6"},
    {"transfer", "deflate", "on"},
    {NULL, NULL, NULL},
};

/* Clients with a disk keep what they have not sent. */
static const struct fleet_key feeding_back[] = {
    {"sync", "policy", "bsp"},
    {"sync", "deadline", "100000s"},
    {"sync", "quorum", "8"},
    {"select", "min_clients", "8"},
    {"transfer", "up", "ternary 0.05"},
    {"transfer", "down", "q8"},
    {"job", "rounds", "6"},
    {"transfer", "momentum_correction", "0.5"},
    {NULL, NULL, NULL},
};
static const struct fleet_key *const keys[] = {dense, sparse, feeding_back};
enum { KINDS = sizeof keys / sizeof keys[0] };

struct outcome {
    uint8_t model[32];
    uint8_t step[ELV_BODY_DIGEST_LEN]; /* the last one, as it travels */
};

struct disturbance {
    const struct fleet_key *keys;
    uint64_t seed;
    bool links, server, clients;
};

static struct fleet *make_fleet(const struct disturbance *d, uint32_t numbers[CLIENTS])
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        numbers[i] = i + 1;
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = d->seed, .purpose = ELV_RNG_TEST});
    if (d->links)
        elv_rng_shuffle(&r, numbers, CLIENTS);
    struct fleet_cfg cfg = {
        .seed = d->seed,
        .n_clients = CLIENTS,
        .keys = d->keys,
        .link.delay = {.min_us = 20000},
        .disk.sync = {.min_us = 2000},
        .keeps = UINT64_MAX, /* a client without a disk would forget what it has not sent */
        .client_disk = {.sync = {.min_us = 5000, .spread_us = 50000}, .torn = true},
        .slice = 4,
        .step_us = 30000,
        .numbers = numbers,
    };
    if (d->links) {
        cfg.link.delay.spread_us = 200000;
        cfg.link.loss_ppm = cfg.link.duplicate_ppm = 100000;
        cfg.disk.torn = true;
        cfg.slow = 4;
        cfg.join_spread_us = 20 * SECOND;
    }
    return fleet_new(&cfg);
}

static void crash_at_random(struct elv_sim_faults *t, uint32_t node, elv_time_us mean)
{
    elv_sim_faults_crash(
        t, node,
        (struct elv_sim_crashes){.every = {.shape = ELV_SIM_EXPONENTIAL, .spread_us = mean},
                                 .down = {.min_us = SECOND / 10, .spread_us = SECOND},
                                 .power_ppm = ELV_SIM_PPM / 2,
                                 .actions_max = 12});
}

static bool run(const struct disturbance *d, struct outcome *got, uint64_t *crashes)
{
    uint32_t numbers[CLIENTS];
    struct fleet *f = make_fleet(d, numbers);
    struct elv_sim_faults *t = elv_sim_faults_new(f->w, d->seed, TROUBLE_S * SECOND);
    if (d->server) {
        crash_at_random(t, f->server_node, 8 * SECOND);
        elv_sim_faults_leave(t, f->server_node,
                             (struct elv_sim_leaves){
                                 .every = {.shape = ELV_SIM_EXPONENTIAL, .spread_us = 30 * SECOND},
                                 .away = {.spread_us = SECOND}});
    }
    for (uint32_t i = 0; d->clients && i < CLIENTS; i++)
        crash_at_random(t, f->clients[i].node, 40 * SECOND);
    const bool over = fleet_run(f, LIMIT_S * SECOND);
    const bool fine = over && fleet_wrong(f) == NULL && f->server != NULL;
    if (!fine) {
        printf("seed %" PRIu64 ": %s\n", d->seed,
               fleet_wrong(f) != NULL ? fleet_wrong(f) : "the run does not end");
    } else {
        memcpy(got->model, elv_server_stats(f->server)->model, sizeof got->model);
        memcpy(got->step, f->server->cast.rec.step.digest, sizeof got->step);
    }
    *crashes += elv_sim_stats(f->w).crashes;
    fleet_free(f);
    elv_sim_faults_free(t);
    return fine;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s FIRST COUNT\n", argv[0]);
        return 2;
    }
    const uint64_t from = strtoull(argv[1], NULL, 10), n = strtoull(argv[2], NULL, 10);
    struct outcome want[KINDS] = {0}, got = {0};
    uint64_t crashes = 0, failed = 0;
    for (int i = 0; i < KINDS; i++)
        if (!run(&(struct disturbance){.keys = keys[i], .seed = 1}, &want[i], &crashes))
            return 1;
    for (uint64_t seed = from; seed - from < n; seed++) {
        const uint64_t kind = seed % KINDS, who = seed / KINDS % 3;
        const struct disturbance d = {.keys = keys[kind],
                                      .seed = seed,
                                      .links = true,
                                      .server = who != 0,
                                      .clients = who != 1};
        const bool fine = run(&d, &got, &crashes) && memcmp(&want[kind], &got, sizeof got) == 0;
        failed += !fine;
        if (!fine)
            printf("seed %" PRIu64 ": other bytes; replay: %s %" PRIu64 " 1\n", seed, argv[0],
                   seed);
    }
    printf("%" PRIu64 " disturbed runs with %" PRIu64 " crashes, %" PRIu64 " failed\n", n, crashes,
           failed);
    return failed == 0 ? 0 : 1;
}
