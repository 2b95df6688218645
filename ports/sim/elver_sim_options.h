/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_options.h - part of the program elver-sim: its command line and its files.
 *
 * What goes wrong is told on standard error, with file and line where there is one. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_OPTIONS_H
#define ELV_PORTS_SIM_ELVER_SIM_OPTIONS_H

#include "ports/sim/lab/plan.h"

#define ELV_SIM_FLAGS_MAX 64u                   /* of --set; likewise of --until */
enum { ELV_SIM_USAGE = 2, ELV_SIM_MISSED = 3 }; /* exit codes */

enum elv_sim_events { ELV_SIM_EVENTS_NONE, ELV_SIM_EVENTS_ROUNDS, ELV_SIM_EVENTS_ALL };

struct elv_sim_options {
    const char *job_path, *world_path; /* NULL: not given */
    const char *out;                   /* NULL: nothing is written */
    const char *seeds;
    const char *sets[ELV_SIM_FLAGS_MAX + 1], *until[ELV_SIM_FLAGS_MAX + 1]; /* NULL ends them */
    const char *sweeps[ELV_LAB_SWEEPS_MAX + 1];
    enum elv_sim_events events;
    uint32_t threads; /* 0: one for each processor */
    bool quiet, force, print;

    struct elv_lab_setup setup; /* as files and flags say, not checked: variants differ */
    struct elv_lab_plan plan;
};

/* Fills `o` from the command line and the files it names. -1: go on; else the exit code. */
int elv_sim_options_take(int argc, char **argv, struct elv_sim_options *o);

/* Every value of the setup and where it comes from. */
void elv_sim_options_print(const struct elv_sim_options *o, const struct elv_lab_setup *s);

/* "FILE:LINE", the file alone, "flag" or "default". */
#define ELV_SIM_ORIGIN_MAX 1100u
void elv_sim_origin(const struct elv_sim_options *o, enum elv_lab_origin of, uint32_t line,
                    char out[ELV_SIM_ORIGIN_MAX]);

/* Tells what is wrong with variant `label`, "" when there is but one; returns ELV_SIM_USAGE. */
int elv_sim_judge(const struct elv_sim_options *o, const char *label,
                  const struct elv_lab_fault *fault);

/* "elver-sim: WHAT: WHY"; returns 1. */
int elv_sim_complain(const char *what, const char *why);

#endif
