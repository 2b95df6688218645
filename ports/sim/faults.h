/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/faults.h - trouble for a simulated world, drawn from a seed.
 *
 * Each call adds one source of trouble to one node, link or disk: it waits a drawn time, strikes,
 * and waits again, until the faults' end; then everything is healed and stays so. When a source
 * strikes and how is drawn from a stream of its own and depends on nothing else, so strikes have
 * numbers, from 0 as their times come, and one that is left out changes nothing about the others: a
 * failure can be followed back to the few strikes that it takes. Freed after the world, because the
 * world calls back into it. */
#ifndef ELV_PORTS_SIM_FAULTS_H
#define ELV_PORTS_SIM_FAULTS_H

#include "ports/sim/world.h"

struct elv_sim_faults;

/* `until`: by the world's time; nothing strikes at it or later, and what was broken is whole.
 * ELV_NEVER: for as long as the world runs. */
struct elv_sim_faults *elv_sim_faults_new(struct elv_sim *w, uint64_t seed, elv_time_us until);
void elv_sim_faults_free(struct elv_sim_faults *f);

struct elv_sim_crashes {
    struct elv_sim_delay every, down;
    uint32_t power_ppm;   /* share of crashes that take the whole machine */
    uint32_t actions_max; /* the node lives for 0 .. so many actions more */
};
void elv_sim_faults_crash(struct elv_sim_faults *f, uint32_t node, struct elv_sim_crashes how);

/* The node is stopped in an orderly way and started again `away` after it was told. */
struct elv_sim_leaves {
    struct elv_sim_delay every, away;
};
void elv_sim_faults_leave(struct elv_sim_faults *f, uint32_t node, struct elv_sim_leaves how);

/* The client's link is cut in one direction or both. */
struct elv_sim_cuts {
    struct elv_sim_delay every, lasts;
};
void elv_sim_faults_cut(struct elv_sim_faults *f, uint32_t client, struct elv_sim_cuts how);
/* Those of `n` clients, of node `client` and the next ones, are cut together. */
void elv_sim_faults_part(struct elv_sim_faults *f, uint32_t client, uint32_t n,
                         struct elv_sim_cuts how);

/* Transactions and reads fail for a while. */
struct elv_sim_bad_spells {
    struct elv_sim_delay every, lasts;
    uint32_t fail_ppm, append_fail_ppm, read_fail_ppm;
    enum elv_err fail_with; /* ELV_OK: ELV_ERR_IO and ELV_ERR_FULL in turn */
};
void elv_sim_faults_disk(struct elv_sim_faults *f, struct elv_sim_disk *disk,
                         struct elv_sim_bad_spells how);

/* Something else, once: `what` is called at `when`. `name` says what it is. */
void elv_sim_faults_once(struct elv_sim_faults *f, elv_time_us when, const char *name,
                         void (*what)(void *ctx, uint32_t arg), void *ctx, uint32_t arg);

struct elv_sim_faults_watch {
    void *self;
    /* The time of strike `number` has come; `what` is what it will do. False: it will not. */
    bool (*happens)(void *self, uint32_t number, const char *what);
    /* It did, and found something to break. */
    void (*struck)(void *self, uint32_t number);
};
/* Without, all strikes happen. */
void elv_sim_faults_set_watch(struct elv_sim_faults *f, const struct elv_sim_faults_watch *watch);

#endif
