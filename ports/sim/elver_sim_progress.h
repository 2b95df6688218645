/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_progress.h - part of the program elver-sim: how far it is, and how long it
 * will take.
 *
 * On standard error: a bar on a terminal, a line now and then elsewhere, nothing when quiet. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_PROGRESS_H
#define ELV_PORTS_SIM_ELVER_SIM_PROGRESS_H

#include "common/node.h"
#include "ports/sim/elver_sim_run.h"

struct elv_sim_seat {              /* of one thread */
    const struct elv_sim_run *run; /* NULL: none now */
    struct elv_sim_watch watch;
};

struct elv_sim_progress {
    struct elv_sim_seat *seats; /* [n_seats] borrowed */
    uint32_t n_seats;
    uint32_t n_done, n_due; /* runs */
    bool quiet, terminal, shown;
    elv_time_us began, told;
};

void elv_sim_progress_init(struct elv_sim_progress *p, struct elv_sim_seat *seats, uint32_t n_seats,
                           uint32_t n_due, bool quiet);
/* When it is time to. */
void elv_sim_progress_show(struct elv_sim_progress *p);
/* Before something else is printed. */
void elv_sim_progress_clear(struct elv_sim_progress *p);

#endif
