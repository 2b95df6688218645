/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim_history.h - what must be true of a server's deeds, checked while it does them.
 *
 * The history watches every step of the server and every chunk the clients send, keeps its own
 * books, and compares. It knows the protocol and the ledger's records but shares no arithmetic with
 * the server: the model each version must have is computed here a second time, the plain way.
 *
 *   I1  a client's contribution enters a round at most once; in a stream, where a client may have
 *       several in one version, each of them does
 *   I2  an acknowledged commit is durable, in exactly one version, or refused, or its round given
 *       up on record, and never changes
 *   I3  the version rises one by one
 *   I4  weights, their sum and the model are those of the recorded contributors (sim_recipe.h);
 *       where the policy scales the step by what is not on record, it is theirs but for that one
 *       factor
 *   I7  every contributor trained from the version the round started from, in a stream from the one
 *       its ticket named, where it is as stale as is recorded and worth what the job's staleness
 *       rule says; who only evaluates is given the last version
 *
 * Memory bounds (I5), armed deadlines (I6) and progress (I8) need the server itself: see
 * sim_watch.c and sim_case.c. */
#ifndef ELV_TESTS_SIM_HISTORY_H
#define ELV_TESTS_SIM_HISTORY_H

#include "common/port.h"
#include "server/weigh.h"

struct history;

struct history_cfg {
    const struct elv_job *job;                  /* borrowed */
    struct elv_disk disk;                       /* the server's, read only */
    uint32_t n_clients;                         /* client numbers are 1 .. n_clients */
    const struct elv_squeeze *squeeze;          /* borrowed; to read deflated chunks */
    double (*loss)(const float *w, uint32_t n); /* that the server's scorer finds; NULL: none */
};

struct history_sums {
    uint32_t versions, accepted, refused;
    uint32_t abandoned; /* accepted updates whose round ended without a version */
};

struct history *history_new(const struct history_cfg *cfg);
void history_free(struct history *h);

/* One step of the server, before its actions are carried out. */
void history_server(struct history *h, const struct elv_event *ev, const struct elv_actions *did);
/* One step of client `number`; one that is not `honest` may send anything. */
void history_client(struct history *h, uint32_t number, bool honest, const struct elv_actions *did);
/* The server is about to start from its disk: what it had not made durable never happened. */
void history_restart(struct history *h);

/* NULL, or the first thing that went wrong, as a sentence. */
const char *history_wrong(const struct history *h);
struct history_sums history_sums(const struct history *h);
/* The server has started, perhaps with other policies, and counts in these units. */
void history_started(struct history *h, const struct elv_scales *scales);
/* NULL, or what is not settled though the job is over. */
const char *history_unfinished(struct history *h);
/* Whether that is the SHA-256 of the model the server published as `version`. */
bool history_published(const struct history *h, uint32_t version, const uint8_t digest[32]);
/* Accepted answers of round `seq`: updates, or in a survey evaluations. */
uint32_t history_answers(const struct history *h, uint32_t seq);

#endif
