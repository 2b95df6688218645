/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_trouble.h - what a seed of the fault campaign draws: a job, a fleet, and what goes
 * wrong.
 *
 * Faults are numbered: first those that last all the time, then those that strike at their time, as
 * ports/sim/faults.h numbers them. After SIM_TROUBLE_US all is healed but for links that lose few
 * packets. */
#ifndef ELV_TESTS_SIM_TROUBLE_H
#define ELV_TESTS_SIM_TROUBLE_H

#include "ports/sim/faults.h"
#include "tests/sim_job.h"

#define SIM_TROUBLE_US ((elv_time_us)60000000)
#define SIM_TROUBLE_STANDING_MAX 64u
#define SIM_TROUBLE_PLACES 11u

struct sim_standing {
    int kind;
    uint32_t place; /* of a client */
    bool on;
};

struct sim_trouble {
    uint64_t seed;
    struct elv_rng rng;
    uint32_t n_honest, n_vandals;
    struct sim_standing standing[SIM_TROUBLE_STANDING_MAX];
    uint32_t n_standing;
    uint32_t loss_ppm;
    elv_time_us server_every, client_every, cut_every, revoked_at, changed_at;
    bool changes, revokes, disk_fails, disk_is_gone, at_once, observe, scores;
    const char *policy, *other_policy;
    struct fleet_key keys[SIM_JOB_KEYS], other_keys[SIM_JOB_KEYS];

    /* While it runs. */
    struct fleet *fleet;
    struct elv_sim_faults *faults;
    struct elv_sim_faults_watch watch;
    uint32_t numbers[SIM_TROUBLE_PLACES];
};

void sim_trouble_draw(struct sim_trouble *t, uint64_t seed);

/* Makes the fleet, with `line` as its trace, and lets it all begin. `watch` says of each fault
 * whether it happens. */
void sim_trouble_begin(struct sim_trouble *t, const struct elv_sim_faults_watch *watch,
                       void (*line)(void *ctx, const char *text), void *line_ctx);
void sim_trouble_end(struct sim_trouble *t);

#endif
