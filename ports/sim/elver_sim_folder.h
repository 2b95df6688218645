/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_folder.h - part of the program elver-sim: the folder its results go to.
 *
 *     manifest.json     what was run: every value in force and where it came from, seeds, digests
 *     summary.json      what it came to: of one run as lab/outcome.h says, of a sweep as
 *                       lab/spread.h does
 *     report.html       the same to look at
 *     host.json         what depends on the machine: time, processor, memory
 *     rounds.csv        a line for each round (lab/rounds_csv.h)
 *     events.jsonl      the same as JSON, and what happened to single clients (likewise)
 *     participation.csv a line `client,used` for each client that ever joined; left out where there
 *                       are more than 100,000
 *
 * The last three are of a single run; a sweep has them and a summary.json for each of its runs in
 * runs/LABEL-seed-N/. All but host.json is the same bytes for the same seeds, whatever the number
 * of threads. A folder belongs to one process at a time and to one configuration. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_FOLDER_H
#define ELV_PORTS_SIM_ELVER_SIM_FOLDER_H

#include "ports/sim/elver_sim_experiment.h"

struct elv_sim_folder {
    int fd; /* holds the lock; -1: nothing is written */
};

/* Makes DIR, or finds in it which runs are finished; writes the manifest. Returns 0 or the exit
 * code. */
int elv_sim_folder_open(struct elv_sim_folder *f, struct elv_sim_experiment *x);

/* Once all runs are finished: summary.json of a sweep, and report.html. */
int elv_sim_folder_finish(const struct elv_sim_folder *f, const struct elv_sim_experiment *x);

/* host.json. `wall_s`: of this call of the program. */
int elv_sim_folder_host(const struct elv_sim_folder *f, const struct elv_sim_experiment *x,
                        uint32_t threads, double wall_s);

void elv_sim_folder_close(struct elv_sim_folder *f);

#endif
