/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/swarm.h - many clients in few bytes each: the world where messages are only times.
 *
 * The server's own policies decide (server/sync.h, select.h, sizing.h, weigh.h) and its own sums
 * and rules make the versions; the protocol around them is left out. A piece of work takes its
 * download, its compute and its upload, as the world says, and then its update is there. What the
 * server does with rounds, deadlines, quorum, leavers and the two flows is what the server node
 * does, and a test holds the two against each other. Storing, deciding and making a version take no
 * time.
 *
 * A client that is away, or whose work is dropped, is silent, and the server cannot know. In ROUNDS
 * it is waited for until the deadline; in STREAM it lapses when its work is older than that, and
 * joins again, at once or when it is back. Its work is lost; back in time, it starts anew. A client
 * that goes for good (`stay`) says so, and nobody waits for it. Only clients that are there are
 * asked. Of those not asked, only who just came, or was late, asks the policy for work.
 *
 * Versions are fetched, and an interrupted client stops when the notice has come over its link;
 * with dbw's variants psw and psi versions are pushed instead, as its paper has it: the download
 * starts when the round opens, whatever the client is doing, and an interruption comes at once.
 *
 * A client works from the start of its piece to its end or its interruption. It waits from having
 * delivered until it starts again, if it is asked by the next round or held by the policy. Bytes
 * up count at arrival; where nothing is learnt an update is as long as a version.
 *
 * Versions are evaluated when they are made, in no time, or, where the job leaves it to the clients
 * and they hold examples out for it, by those whose updates count, about the version they trained
 * from; then its record waits for the next round to close.
 *
 * An event costs O(log of those at work); a client that does nothing costs nothing but its bytes,
 * unless it comes and goes. Not thread-safe; separate swarms are independent. */
#ifndef ELV_PORTS_SIM_LAB_SWARM_H
#define ELV_PORTS_SIM_LAB_SWARM_H

#include "ports/sim/lab/record.h"
#include "ports/sim/lab/world.h"
#include "server/policies.h"

struct elv_swarm_cfg {
    const struct elv_job *job;         /* checked; borrowed. Its seed is not used: */
    uint64_t seed;                     /* this is */
    const struct elv_lab_world *world; /* borrowed */
    uint32_t n_clients;                /* registered */
    struct elv_lab_learner *learner;   /* borrowed; NULL: nothing is learnt, nothing is sent */
    const struct elv_kernels *kernels; /* NULL: the best built in */
    struct elv_lab_sink sink;
    double target_accuracy, target_loss; /* 0: none */
    uint32_t rounds;                     /* versions to make; 0: no end */
};

/* The most updates that one version may count in such a job with `n` clients; its weights are
 * scaled by it. */
uint32_t elv_swarm_counted_max(const struct elv_job *job, const struct elv_policies *p, uint32_t n);

struct elv_swarm;

/* ELV_ERR_ARG: the policies or the world do not fit, `why` (ELV_JOB_ERROR_MAX) says how. */
enum elv_err elv_swarm_new(struct elv_swarm **out, const struct elv_swarm_cfg *cfg, char *why);
void elv_swarm_free(struct elv_swarm *s);

/* Until the run ends, or its virtual time reaches `until`. ELV_ERR_BUSY: there is more to come;
 * ELV_OK: it ended (versions made, target reached, horizon, nothing can ever happen again). Any
 * other: the learner failed with it, which ends the run. */
enum elv_err elv_swarm_run(struct elv_swarm *s, elv_time_us until);

/* The run ends where it is. */
void elv_swarm_stop(struct elv_swarm *s);

elv_time_us elv_swarm_now(const struct elv_swarm *s);
/* Of the run so far. */
void elv_swarm_summary(const struct elv_swarm *s, struct elv_lab_summary *out);
/* f32 [n_params] the newest version; NULL: nothing is learnt. */
const float *elv_swarm_model(const struct elv_swarm *s);

#endif
