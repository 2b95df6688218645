/* SPDX-License-Identifier: Apache-2.0 */
/* tests/dbw_race.h - a small world of times, to see how soon a policy of rounds gets somewhere.
 *
 * n workers train a diagonal quadratic with eigenvalues 0.9^i + 0.05 in 40 dimensions by noisy
 * gradients, one step a round. A piece of work takes 1 - a + a * Exp(1) units of time, so 1 in the
 * mean. The policy is driven through its table of functions, in the order server/sync.h says.
 * A worker that is late finishes what it does and then takes the newest version, or is interrupted.
 */
#ifndef ELV_TESTS_DBW_RACE_H
#define ELV_TESTS_DBW_RACE_H

#include "server/sync.h"

#define RACE_UNIT 1000000 /* microseconds of a unit of time */
#define RACE_WORKERS_MAX 1024u
#define RACE_ROUNDS_MAX 4000u

struct race_cfg {
    const struct elv_sync *sync;
    struct elv_params params;
    uint32_t n;
    uint64_t seed;
    double sigma;  /* of a gradient with a batch of 1; the batch is 64 */
    double a;      /* the random part of a piece of work */
    double rate;   /* 0: 0.4 */
    double target; /* loss at which it ends */
    double time_max;
    uint32_t rounds_max;            /* at most RACE_ROUNDS_MAX */
    bool interrupts;                /* late workers start anew at once */
    bool mute;                      /* nobody reports a loss */
    uint32_t slow_from, slow_until; /* rounds in which ... */
    double slow; /* ... the first half of the workers takes so many times as long */
};

struct race {
    double time; /* to the target; INFINITY: never */
    double loss;
    uint32_t rounds;
    double k_mean;
    uint32_t k[RACE_ROUNDS_MAX]; /* wanted by each round */
    double opened[RACE_ROUNDS_MAX];
};

void race_run(const struct race_cfg *cfg, struct race *out);

/* Adds `name = value`; text that is no number is a word. */
void race_param(struct race_cfg *cfg, const char *name, const char *value);

#endif
