/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_case.h - one seed of the fault campaign: a job, a fleet and all that goes wrong.
 *
 * The seed draws the job (sim_job.h), how many clients there are and how bad each fault is. Every
 * fault has a number and can be left out by itself: first those that last all the time (a lossy
 * link, a vandal, an identity used twice, a disk that dies), then each single crash, stop, cut, bad
 * spell of the disk, revocation and change of policy, at its time (ports/sim/faults.h). Leaving
 * some out changes nothing about when and how the others happen.
 *
 * After a minute all is healed but for links that lose few packets, and the run must end within a
 * number of rounds. The books are checked after every step (sim_history.h), and so are the
 * server's bounds (sim_watch.c). */
#ifndef ELV_TESTS_SIM_CASE_H
#define ELV_TESTS_SIM_CASE_H

#include "tests/sim_fleet.h"

#define SIM_CASE_FAULTS_MAX 1024u
#define SIM_CASE_WHY_MAX 240u

struct sim_case_cfg {
    uint64_t seed;
    const bool *on; /* [n_on] the faults that happen; those behind do not; NULL: all */
    uint32_t n_on;
    /* Pretends that an invariant is broken once both of these happened, to test what looks for the
     * faults that a failure takes. Equal: nothing is pretended. */
    uint32_t planted[2];
    void (*fault)(void *ctx, uint32_t number, const char *what); /* each whose time comes; NULL */
    void *fault_ctx;
    void (*line)(void *ctx, const char *text); /* trace; NULL: none */
    void *line_ctx;
};

struct sim_case_sums { /* of many, too */
    uint64_t seeds, events, spins, crashes, faults, versions, updates, refused, abandoned, late;
    uint64_t declined, failed, lapsed, log_losses, evaluations, store_failures;
    uint64_t restored, replayed, resumed; /* versions, chunks, updates: by clients that came back */
    uint64_t virtual_us;
    uint64_t worst_gap_us; /* between two versions, or an end, after all was healed */
    uint64_t worst_wait_us;
};

struct sim_case_end {
    char why[SIM_CASE_WHY_MAX];       /* empty: all is well */
    elv_time_us at;                   /* when it ended, or went wrong */
    uint64_t hash;                    /* of all that happened */
    uint32_t n_faults;                /* so many had their time */
    bool struck[SIM_CASE_FAULTS_MAX]; /* which of them happened */
    struct sim_case_sums sums;
};

/* Runs it to its end, or until something is wrong. */
void sim_case_run(const struct sim_case_cfg *cfg, struct sim_case_end *end);

/* Twice. True: all is well and both runs did the same. */
bool sim_case_same(const struct sim_case_cfg *cfg, struct sim_case_end *end);

void sim_case_add(struct sim_case_sums *to, const struct sim_case_sums *of);

/* What a seed is about: policy and settings in a line. */
void sim_case_title(uint64_t seed, char *text, uint32_t len);
/* Tells what the faults of a seed are that are `on`. */
void sim_case_tell(uint64_t seed, const bool *on, uint32_t n,
                   void (*tell)(void *ctx, uint32_t number, const char *what), void *ctx);

/* The faults that `end` takes, as far as `tries` runs tell: fills on[end->n_faults] and returns how
 * many there are left. */
uint32_t sim_case_shrink(const struct sim_case_cfg *cfg, const struct sim_case_end *end,
                         uint32_t tries, bool *on);

#endif
