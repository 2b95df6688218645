/* SPDX-License-Identifier: Apache-2.0 */
/* client/control.h - the control requests of a client node: one at a time, repeated until answered.
 *
 * The port repeats a request that goes unanswered for a while; this says what happens after it gave
 * up, and after a refusal: try again, later each time. */
#ifndef ELV_CLIENT_CONTROL_H
#define ELV_CLIENT_CONTROL_H

#include "backoff.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_FORGET_MAX 4u

struct elv_control { /* all zero to begin */
    enum elv_op op;  /* of the request that is out; ELV_OP_NONE: none is */
    uint32_t id;
    elv_time_us sent_us;
    uint32_t n_failures;             /* in a row */
    elv_time_us retry_us;            /* nothing is asked before */
    uint32_t observation;            /* id under which the ticket's changes come; 0: none */
    uint32_t forget[ELV_FORGET_MAX]; /* ids the port need not keep */
    uint32_t n_forget;
};

void elv_control_sent(struct elv_control *c, enum elv_op op, uint32_t id, elv_time_us now);
/* The request that is out need not be answered any more. */
void elv_control_drop(struct elv_control *c);
/* An answer that is no reason to wait. */
void elv_control_succeeded(struct elv_control *c);
/* No answer, or one that asks for patience: `wait` at least, 0 for the usual back-off. */
void elv_control_failed(struct elv_control *c, elv_time_us now, elv_time_us wait,
                        struct elv_rng *rng);
/* No answer, because another association took the place of the one it was asked on. */
void elv_control_moved(struct elv_control *c, elv_time_us now);
/* Ids of no interest from now on; 0 is none. */
void elv_control_forget(struct elv_control *c, uint32_t id);

#ifdef __cplusplus
}
#endif
#endif
