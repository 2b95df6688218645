/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/spread.h - the runs of one label together: means, least and greatest over seeds.
 *
 * The table, the lines `result ...` and the keys of summary.json are promises: columns and keys are
 * only ever added, at the end. Pure. */
#ifndef ELV_PORTS_SIM_LAB_SPREAD_H
#define ELV_PORTS_SIM_LAB_SPREAD_H

#include "ports/sim/lab/outcome.h"

struct elv_lab_range { /* over the runs that know the figure; all NAN: none does */
    double mean, min, max;
};

enum elv_lab_figure {
    ELV_LAB_FIG_TIME, /* to the target, of the runs that reached it; without a target to the end */
    ELV_LAB_FIG_ROUNDS,
    ELV_LAB_FIG_USED,
    ELV_LAB_FIG_LATE,
    ELV_LAB_FIG_DISCARDED,
    ELV_LAB_FIG_DROPPED,
    ELV_LAB_FIG_WAITING_SHARE,
    ELV_LAB_FIG_UPDATES_PER_S,
    ELV_LAB_FIG_ACCURACY,
    ELV_LAB_FIG_BEST_ACCURACY,
    ELV_LAB_FIG_LOSS,
    ELV_LAB_FIG_STALENESS,
    ELV_LAB_FIG_FAIRNESS,
    ELV_LAB_FIG_BYTES_UP,
    ELV_LAB_FIG_BYTES_DOWN,
    ELV_LAB_FIG_ENDED,
    ELV_LAB_FIG_INTERRUPTED,
    ELV_LAB_FIG_WIRE_UP,
    ELV_LAB_FIG_WIRE_DOWN,
    ELV_LAB_FIGURES
};

struct elv_lab_spread {
    const char *label; /* borrowed */
    uint32_t n_seeds, n_reached;
    bool has_target;
    struct elv_lab_range figure[ELV_LAB_FIGURES];
};

/* Of `n` runs, 1 or more, with the same label. */
struct elv_lab_spread elv_lab_spread_of(const struct elv_lab_outcome *runs, uint32_t n);

/* The table's head and one row of it, lines ended. The first column is `width` wide. */
void elv_lab_spread_head(struct elv_line *out, uint32_t width);
void elv_lab_spread_row(struct elv_line *out, const struct elv_lab_spread *s, uint32_t width);

/* "result label=dbw seeds=10 reached=10 time=12.5 time_min=11.2 time_max=14 rounds=60.0 ..." */
void elv_lab_spread_line(struct elv_line *out, const struct elv_lab_spread *s);

/* {"label": "dbw", "seeds": 10, "reached": 10, "time": {"mean": ..., "min": ..., "max": ...}, ...}:
 * an object on lines of its own, indented, without an end of line. */
void elv_lab_spread_json(struct elv_line *out, const struct elv_lab_spread *s);
#define ELV_LAB_SPREAD_MAX 4096u /* bytes that it takes at most */

#endif
