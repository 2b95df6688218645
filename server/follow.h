/* SPDX-License-Identifier: Apache-2.0 */
/* server/follow.h - from a server's notes to what is told of a run.
 *
 * A round's line waits for the score of its model, if there will be one, so that one line says all;
 * the result waits for the last line. Pure: values in, values out. */
#ifndef ELV_SERVER_FOLLOW_H
#define ELV_SERVER_FOLLOW_H

#include "report.h"

struct elv_follow {
    const struct elv_job *job;  /* borrowed */
    bool scorer;                /* the server has a test set: its scores count, not the clients' */
    struct elv_round_line line; /* the newest closed round */
    bool waiting;               /* and it has not been told */
    bool over, told;
    elv_time_us began, ended; /* first tickets, last version */
};

/* `restored`: the evaluation of the version a restarted server begins with; n 0: there is none. */
void elv_follow_init(struct elv_follow *p, const struct elv_job *job, bool scorer,
                     const struct elv_eval_sums *restored);

/* Takes a note; notes come in their order. Returns how many lines are to be told now, at most two,
 * written to `lines`. */
uint32_t elv_follow_take(struct elv_follow *p, const struct elv_note *n,
                         struct elv_round_line lines[2]);

/* True once: the run is over and every line was told. */
bool elv_follow_result(struct elv_follow *p);

/* From the first round's tickets to the newest version. */
double elv_follow_seconds(const struct elv_follow *p);

#endif
