/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/deploy.h - a whole deployment in a world: the server and the clients themselves,
 * exchanging every message.
 *
 * It takes what the swarm takes (lab/swarm.h) and tells the same records. What differs is what the
 * swarm leaves out: requests are lost, repeated and overtake each other, associations are opened,
 * clients learn of a round when they are told and fetch a version chunk by chunk, the server stores
 * what it decides, and nodes crash between any two actions and go on from what is durable. Compute
 * times, speeds, links and who drops out are the swarm's own draws, named by (seed, client, piece
 * of work), so that the same job in the same world is the same run in both, as far as messages cost
 * nothing. Work that the server and the clients do besides training takes no time.
 *
 * A client that drops out of a piece of work dies when its training is over, and starts again when
 * the round is over, or, in a policy without rounds, the time for the work. One that is away is
 * down; one that goes for good leaves. Faults strike each node on its own.
 *
 * Training is the client's own (client/trainer.h) on its own examples; one trainer serves all
 * clients, one after the other, so a client costs its node and two vectors of the model's size.
 * Only the network of a job can be learnt: the models Q and L have no job that a client could read.
 * Not thread-safe; separate deployments are independent. */
#ifndef ELV_PORTS_SIM_LAB_DEPLOY_H
#define ELV_PORTS_SIM_LAB_DEPLOY_H

#include "client/work.h"
#include "ports/sim/lab/swarm.h"
#include "ports/sim/world.h"

/* Trainings that are under way together may be done together. However they are, the outcome of each
 * must be that of its own trainer, to the last bit. */
struct elv_deploy_cohort {
    uint32_t most; /* at once; 0: one by one */
    void *self;
    /* `err` [n] is what each one's trainer would return. NULL: by the trainers, in turn. */
    void (*train)(void *self, const struct elv_client_train *const *works, enum elv_err *err,
                  uint32_t n);
    bool at_start; /* nothing waits: each is trained by itself when it starts */
};

/* Memory that can be emptied without being given back. With it a client without work takes none for
 * its vectors; a version that many hold is there once. All NULL: it comes from the heap, and
 * clients keep theirs. */
struct elv_deploy_pages {
    void *self;
    size_t page; /* bytes; what `drop` is given starts and ends with one */
    void *(*take)(void *self, size_t len); /* aligned to 64; NULL: there is none */
    void (*give)(void *self, void *at, size_t len);
    void (*drop)(void *self, void *at, size_t len); /* anything may be there afterwards */
};

#define ELV_DEPLOY_CLIENTS_MAX 1000000u /* each owes the server's port a place */

struct elv_deploy_cfg {
    struct elv_swarm_cfg run; /* its learner is one of lab/learn_network.h */
    struct elv_deploy_cohort cohort;
    struct elv_deploy_pages pages;
};

struct elv_deploy;

/* ELV_ERR_ARG: the job or the world do not fit, `why` (ELV_JOB_ERROR_MAX) says how. */
enum elv_err elv_deploy_new(struct elv_deploy **out, const struct elv_deploy_cfg *cfg, char *why);
void elv_deploy_free(struct elv_deploy *d);

/* As elv_swarm_run. ELV_ERR_ARG: a node broke the rules of common/node.h. */
enum elv_err elv_deploy_run(struct elv_deploy *d, elv_time_us until);

/* As elv_swarm_stop. */
void elv_deploy_stop(struct elv_deploy *d);

elv_time_us elv_deploy_now(const struct elv_deploy *d);
void elv_deploy_summary(const struct elv_deploy *d, struct elv_lab_summary *out);
/* f32 [n_shared] the newest version; NULL: the server is down. */
const float *elv_deploy_model(const struct elv_deploy *d);

/* For a look inside. */
struct elv_sim *elv_deploy_world(struct elv_deploy *d);
/* Bytes that a client takes while it is up, and when it is down. */
void elv_deploy_client_bytes(const struct elv_deploy *d, size_t *up, size_t *down);

#endif
