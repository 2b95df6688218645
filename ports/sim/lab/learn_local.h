/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn_local.h - one piece of work as a real client does it, without its protocol.
 *
 * The client's own trainer trains, its encoder makes the update, and the update is decoded again as
 * the server would: what compression does to accuracy, and how many bytes travel, are the real
 * ones. For the same seed, client number, assignment and base the bits are those of a client node.
 *
 * One worker serves any number of clients, one after the other, from one block of memory; only
 * layers marked `local`, and the residual of a lossy codec, cost memory per client, once it has
 * trained, and a vector until its update is decided. A worker belongs to one thread at a time. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_LOCAL_H
#define ELV_PORTS_SIM_LAB_LEARN_LOCAL_H

#include "common/port.h"
#include "ports/sim/lab/learn.h"

struct elv_lab_local;

struct elv_lab_local_cfg {
    const struct elv_model *model; /* borrowed, like all pointers here */
    const struct elv_job *job;     /* optimizer, arithmetic, codec and limits of updates, holdout */
    uint64_t seed;                 /* of the run; the job's is not used */
    uint32_t n_clients;
    uint32_t examples;                 /* the most a client trains on */
    const struct elv_feed *train;      /* of the client whose turn it is */
    const struct elv_feed *test;       /* what it holds out; NULL: nothing */
    const struct elv_squeeze *squeeze; /* NULL: nothing is deflated, whatever the job says */
    const struct elv_kernels *kernels; /* for fast arithmetic; NULL: the best built in */
};

/* ELV_ERR_MEMORY; ELV_ERR_UNSUPPORTED: the job's first codec is not built in. */
enum elv_err elv_lab_local_new(struct elv_lab_local **out, const struct elv_lab_local_cfg *cfg);
void elv_lab_local_free(struct elv_lab_local *l); /* NULL is fine */

/* Does the task, for the client whose examples the feeds give now: fills in every field that is
 * out. What goes wrong at a client is the task's `err`; ELV_ERR_MEMORY is returned. */
enum elv_err elv_lab_local_work(struct elv_lab_local *l, struct elv_lab_task *t);

/* Whether clients keep what their codec leaves out, and `decided` must be told. */
bool elv_lab_local_feeds_back(const struct elv_lab_local *l);
void elv_lab_local_decided(struct elv_lab_local *l, uint32_t client, enum elv_lab_fate fate,
                           uint32_t version);

/* The model's initial shared values. */
void elv_lab_local_init(struct elv_lab_local *l, float *w);

/* Bytes that a version takes to fetch: steps in the job's codec for versions, as many as a client
 * misses on average between two rounds it is asked for, or the whole model when that is less. */
uint64_t elv_lab_local_bytes_down(struct elv_lab_local *l);
/* The whole model, in f32. */
uint64_t elv_lab_local_bytes_full(struct elv_lab_local *l);

#endif
