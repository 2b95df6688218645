/* SPDX-License-Identifier: Apache-2.0 */
/* client/work.h - the heavy work of a client node: one COMPUTE at a time, and rests between them.
 *
 * A device that may work only `duty` percent of the time rests after each piece of work, so long
 * that the share comes out exactly, by the times of the events around it. Training is cut into
 * pieces of a few steps then. */
#ifndef ELV_CLIENT_WORK_H
#define ELV_CLIENT_WORK_H

#include "../common/node.h"
#include "trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* COMPUTE kinds of a client node. The input of EVALUATE and TRAIN is a struct elv_client_train, for
 * ports that do the work of many clients at once; that of the others is private. */
enum elv_client_work {
    ELV_CLIENT_LOAD = 1,     /* make the weights from what was fetched */
    ELV_CLIENT_EVALUATE = 2, /* evaluate them on the local evaluation examples */
    ELV_CLIENT_TRAIN = 3,
    ELV_CLIENT_ENCODE = 4,  /* make the update and its digest */
    ELV_CLIENT_SETTLE = 5,  /* keep what was not sent; never cancelled */
    ELV_CLIENT_RESTORE = 6, /* read back what was kept */
    ELV_CLIENT_REPLAY = 7,  /* and what had been fetched of a body */
};

struct elv_client_outcome {
    bool finished; /* false after a TRAIN that stopped at `steps_max` */
    struct elv_train_result result;
};

/* Whoever does the work instead of the node's `run` brings `weights` to where the trainer would, or
 * the evaluation's sums into the result, then fills in `*outcome` and reports COMPUTED; pieces of
 * one training have the same task, and `resumed` is set from the second on. */
struct elv_client_train {
    const struct elv_trainer *trainer;
    struct elv_task task;
    float *weights;     /* f32 [n_params]; EVALUATE leaves them alone */
    uint32_t steps_max; /* TRAIN: this piece ends after so many steps; 0: the whole training */
    bool resumed;
    struct elv_client_outcome *outcome;
};

#define ELV_DUTY_STEPS 8u /* steps between rests */

struct elv_work {
    uint32_t duty; /* percent, 1 to 100 */
    uint32_t id;   /* of the COMPUTE not yet COMPUTED; 0: none */
    uint32_t kind;
    bool cancel;       /* its result is not wanted any more */
    bool cancel_told;  /* and the port knows */
    elv_time_us since; /* when it began */
    elv_time_us rest_until;
};

void elv_work_begin(struct elv_work *w, uint32_t id, uint32_t kind, elv_time_us now);
/* COMPUTED: returns how long it took. */
elv_time_us elv_work_end(struct elv_work *w, elv_time_us now);

/* Slices of EVALUATE or TRAIN by the trainer itself. `*begun` and `*left` belong to this piece of
 * work: false and steps_max at first. Errors are the trainer's. */
enum elv_err elv_client_train_run(const struct elv_client_train *t, uint32_t kind, uint32_t budget,
                                  bool *begun, uint32_t *left);

#ifdef __cplusplus
}
#endif
#endif
