/* SPDX-License-Identifier: Apache-2.0 */
/* tests/swarm_case.h - a swarm to look at: its job by keys, a world filled in by the test, what it
 * said of itself kept, and a learner that can be calculated by hand. */
#ifndef ELV_TESTS_SWARM_CASE_H
#define ELV_TESTS_SWARM_CASE_H

#include "ports/sim/lab/swarm.h"

struct swarm_key { /* one line of a job file */
    const char *section, *key, *value;
};

#define SWARM_KEPT 4096u

/* Each client wants the model to be its number in every coordinate, and goes there in one step. */
#define SWARM_PARAMS 3u

struct swarm_case {
    struct elv_job job;
    struct elv_lab_world world;
    struct elv_lab_learner learner;
    struct elv_swarm_cfg cfg;
    struct elv_swarm *s;
    char why[ELV_JOB_ERROR_MAX];
    struct elv_lab_round rounds[SWARM_KEPT]; /* the first so many */
    struct elv_lab_event events[SWARM_KEPT];
    uint32_t n_rounds, n_events;
    uint32_t n_trained, largest_batch; /* pieces of work; the most in one call */
    bool
        holds_out; /* each client tells of its base: loss 10 - w, right in w / 10 of ten examples */
};

/* `keys` end with section NULL. The learner teaches nothing until `swarm_case_learns`. */
void swarm_case_init(struct swarm_case *c, const struct swarm_key *keys, uint32_t n_clients);
void swarm_case_learns(struct swarm_case *c, uint32_t gather_max);
/* Runs it to its end. */
struct elv_lab_summary swarm_case_run(struct swarm_case *c);
/* Events of this kind among those kept. */
uint32_t swarm_case_count(const struct swarm_case *c, enum elv_lab_event_kind kind);
void swarm_case_free(struct swarm_case *c);

#endif
