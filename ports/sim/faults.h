/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/faults.h - trouble for a simulated world, drawn from a seed.
 *
 * Each call adds one source of trouble to one node, link or disk: it waits a drawn time, strikes,
 * and waits again, until the faults' end; then everything is healed and stays so. All strikes of a
 * source are drawn when it is added, from a stream of its own, and numbered on from those before:
 * what one does, and whether it is left out, changes nothing about the others. So a failure can be
 * followed back to the few strikes that it takes. Freed after the world, because the world calls
 * back into it. */
#ifndef ELV_PORTS_SIM_FAULTS_H
#define ELV_PORTS_SIM_FAULTS_H

#include "ports/sim/world.h"

struct elv_sim_faults;

/* `until`: by the world's time; nothing strikes at it or later, and what was broken is whole. */
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

/* The links of `n` clients, of nodes `client` and following, are cut together, in one direction or
 * both. */
struct elv_sim_cuts {
    struct elv_sim_delay every, lasts;
};
void elv_sim_faults_cut(struct elv_sim_faults *f, uint32_t client, uint32_t n,
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

/* Strikes drawn so far; their numbers are below that. */
uint32_t elv_sim_faults_count(const struct elv_sim_faults *f);
/* It will not strike. Called before it does. */
void elv_sim_faults_skip(struct elv_sim_faults *f, uint32_t number);
/* It did, and found something to break. */
bool elv_sim_faults_struck(const struct elv_sim_faults *f, uint32_t number);

#define ELV_SIM_FAULT_TEXT_MAX 80u
/* What it is, where and when. */
void elv_sim_faults_text(const struct elv_sim_faults *f, uint32_t number,
                         char text[ELV_SIM_FAULT_TEXT_MAX]);

#endif
