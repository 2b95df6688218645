/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/plan.h - the runs of a sweep: every combination of the values given, with every
 * seed.
 *
 *     SECTION.KEY=VALUE,VALUE,...     or VALUE|VALUE|... for values with commas in them
 *
 * Where the key names a policy (sync.policy, aggregate.rule, select.policy, size.policy) a value
 * may carry keys of that section: backup:backup=5. A policy takes of the section's parameters those
 * that it knows; the others are meant for other values of the sweep, and refused only when none of
 * them knows them either. What a value carries goes before what the files say.
 *
 * Pure values; texts are borrowed for as long as the plan is used. */
#ifndef ELV_PORTS_SIM_LAB_PLAN_H
#define ELV_PORTS_SIM_LAB_PLAN_H

#include "ports/sim/lab/setup.h"

#define ELV_LAB_SWEEPS_MAX 8u
#define ELV_LAB_VALUES_MAX 64u
#define ELV_LAB_SEEDS_MAX 1000u
#define ELV_LAB_RUNS_MAX 10000u
#define ELV_LAB_LABEL_MAX 96u

struct elv_lab_sweep {
    char section[32], key[32];
    struct elv_text values[ELV_LAB_VALUES_MAX];
    uint32_t n;
};

struct elv_lab_plan { /* starts as zeros */
    struct elv_lab_sweep sweeps[ELV_LAB_SWEEPS_MAX];
    uint32_t n_sweeps;
    uint64_t seeds[ELV_LAB_SEEDS_MAX];
    uint32_t n_seeds;
};

/* One more dimension. ELV_ERR_FORMAT; ELV_ERR_FULL: too many of something; ELV_ERR_BUSY: the key or
 * a value is there already. */
enum elv_err elv_lab_plan_sweep(struct elv_lab_plan *p, const char *text,
                                char why[ELV_JOB_ERROR_MAX]);

/* "10": ten seeds from `first` on; "1,2,5": these. */
enum elv_err elv_lab_plan_seeds(struct elv_lab_plan *p, const char *text, uint64_t first,
                                char why[ELV_JOB_ERROR_MAX]);

/* Combinations of values, 1 without a sweep; with all seeds at most ELV_LAB_RUNS_MAX, else 0. */
uint32_t elv_lab_plan_variants(const struct elv_lab_plan *p);

/* What variant `v` is called, in files and in what is printed: its values, joined with commas;
 * those of other keys than sync.policy have their key before them. `alone` is the name without a
 * sweep. Characters that make trouble in file names become _, and then, or where it would be too
 * long, a few digits make the name unique. */
void elv_lab_plan_label(const struct elv_lab_plan *p, uint32_t v, const char *alone,
                        char label[ELV_LAB_LABEL_MAX]);

/* Turns the experiment of the files into variant `v` of it, not checked yet. */
enum elv_err elv_lab_plan_apply(const struct elv_lab_plan *p, uint32_t v, struct elv_lab_setup *s,
                                char why[ELV_JOB_ERROR_MAX]);

#endif
