/* SPDX-License-Identifier: Apache-2.0 */
/* client/assignment_internal.h - one assignment from ticket to decision, as parts of client.c see
 * it.
 *
 * fetch -> load -> evaluate? -> train -> encode -> upload -> commit. Work of an earlier life of the
 * client enters at encode, where its bytes are checked, and then begins with its commit. Whatever
 * goes wrong on the way ends in a commit that says so; a newer ticket, or a refusal that says
 * nobody waits for it any more, drops it at any point. */
#ifndef ELV_CLIENT_ASSIGNMENT_INTERNAL_H
#define ELV_CLIENT_ASSIGNMENT_INTERNAL_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the ticket's work up; there must be none. */
void elv_assignment_begin(struct elv_client *c, const struct elv_ticket *t);
bool elv_assignment_can_encode(const struct elv_client *c, const struct elv_codec_choice *up);
/* FETCHING to COMMITTING. */
bool elv_assignment_open(const struct elv_client *c);
/* The server named the assignment that is open, and says how much time is left for it. */
void elv_assignment_renew(struct elv_client *c, const struct elv_ticket *t);
/* The server named this one; it is not worked on any more. Its memory is free once the work is. */
void elv_assignment_drop(struct elv_client *c);
/* There is a decision, or the server does not know it: `drop`, and never take it up again. `done`:
 * the work was accepted. */
void elv_assignment_decided(struct elv_client *c, bool done);
/* To be committed without an update. */
void elv_assignment_give_up(struct elv_client *c, enum elv_status status, enum elv_reason reason);

/* Emits the COMPUTE that the phase is for. */
void elv_assignment_start(struct elv_client *c, struct elv_actions *out, uint32_t kind);
/* A slice of RESTORE. */
enum elv_err elv_assignment_restore_run(struct elv_client *c, uint32_t budget);
void elv_assignment_computed(struct elv_client *c, enum elv_err err);
/* What was fetched is no good: once more, not before `wait` is over. */
void elv_assignment_fetch_again(struct elv_client *c, elv_time_us wait);
void elv_assignment_chunk(struct elv_client *c, uint32_t id, const struct elv_response *r);
/* The answer to the commit. False: it makes no sense now. */
bool elv_assignment_verdict(struct elv_client *c, const struct elv_verdict *v);

/* Moves on, and starts the work that is due. */
void elv_assignment_work(struct elv_client *c, struct elv_actions *out);
bool elv_assignment_transfers(const struct elv_client *c); /* chunks are wanted, or to be sent */
/* They do not get through: the assignment is given up. */
void elv_assignment_choked(struct elv_client *c);
/* Sends chunks that are due. */
void elv_assignment_send(struct elv_client *c, struct elv_actions *out);
elv_time_us elv_assignment_deadline(const struct elv_client *c);

#ifdef __cplusplus
}
#endif
#endif
