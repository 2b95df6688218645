/* SPDX-License-Identifier: Apache-2.0 */
/* client/session_internal.h - the client's standing with the server, as parts of client.c see it:
 * manifest, joining, tickets, commits, leaving, and what to do when it says no or nothing. */
#ifndef ELV_CLIENT_SESSION_INTERNAL_H
#define ELV_CLIENT_SESSION_INTERNAL_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The answer to the control request that is out, or news of the observed ticket. */
void elv_session_answer(struct elv_client *c, uint32_t id, const struct elv_response *r);
/* Request `id` will not be answered. */
void elv_session_unanswered(struct elv_client *c, uint32_t id, enum elv_err err);

/* What a refusal of any request says, counted. `wait`: how long it asks to be left alone, or 0. */
enum elv_reason elv_session_refusal(struct elv_client *c, const struct elv_response *r,
                                    elv_time_us *wait);
/* Does what a reason asks for wherever it is given: end, join again, read the manifest again. */
bool elv_session_heed(struct elv_client *c, enum elv_reason reason);

/* Local examples to train on, as of the last time no work was out; UINT32_MAX: unknown. */
uint32_t elv_session_samples(struct elv_client *c);

/* Asks for a ticket: at once, or as soon as the server said when it was last asked. What a ticket
 * says about asking again holds while its work is open; who has done it need not wait. */
void elv_session_poll(struct elv_client *c, bool at_once);
/* An orderly end with code 0: tells the server when it is to know. */
void elv_session_leave(struct elv_client *c);
/* The operator wants to stop: decline what is open, then leave; the second time at once. */
void elv_session_stop(struct elv_client *c);
/* Stopping has taken long enough. */
void elv_session_tick(struct elv_client *c);

void elv_session_advance(struct elv_client *c, struct elv_actions *out);
elv_time_us elv_session_deadline(const struct elv_client *c);

/* session_plan.c: the manifest's model. ELV_ERR_MISMATCH: not what its fingerprint says. */
enum elv_err elv_session_parse(const struct elv_manifest *m, struct elv_model *model);
/* Cuts the memory for this run and makes the trainer ready, with a residual if that fits. */
enum elv_err elv_session_plan(struct elv_client *c, const struct elv_manifest *m);
/* The run is this one from now on. */
void elv_session_set_up(struct elv_client *c, const struct elv_manifest *m);
/* Whether this device takes part with that codec; those the job does not list do no harm. */
bool elv_session_offers(const struct elv_client *c, uint8_t codec);

/* The id the next action gets. */
uint32_t elv_session_next_id(const struct elv_client *c);
/* Emits one request under it, and returns it. */
uint32_t elv_session_send(struct elv_client *c, struct elv_actions *out, struct elv_request request,
                          bool reliable);

#ifdef __cplusplus
}
#endif
#endif
