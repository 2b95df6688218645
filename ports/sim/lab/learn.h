/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/learn.h - what happens inside a simulated client's training.
 *
 * A learner makes updates. Pieces of work that are under way at the same time come in one call, so
 * that a learner may train them as a cohort; the result of each is the same bits whatever the
 * others in the call are. */
#ifndef ELV_PORTS_SIM_LAB_LEARN_H
#define ELV_PORTS_SIM_LAB_LEARN_H

#include "client/trainer.h"
#include "server/score.h"
#include "server/sizing.h"

struct elv_lab_task {
    uint32_t client;     /* number, from 1 */
    uint32_t assignment; /* with the client: names the streams of random numbers */
    uint32_t version;
    const float *base; /* [n_params] the version it trains from */
    struct elv_size size;
    float learning_rate;
    float *update;                 /* [n_params] out: trained - base, as the server decodes it */
    uint32_t samples, seen, steps; /* out */
    double loss_sum;               /* out: over `seen` */
    uint64_t bytes_up;             /* out: what the encoded update takes; 0: as f32 */
    struct elv_eval_sums eval;     /* out: of the base on the client's own examples; n 0: none */
    enum elv_err err; /* out: other than ELV_OK: this client failed, and the rest means nothing */
};

/* Of an update. */
enum elv_lab_fate {
    ELV_LAB_FATE_GONE, /* it never arrived whole, and its client knows nothing of it any more */
    ELV_LAB_FATE_ACCEPTED,
    ELV_LAB_FATE_LATE,   /* it does not count: too late, or the policy has no use for it */
    ELV_LAB_FATE_SPOILT, /* it was refused for what it holds */
};

struct elv_lab_score {
    double loss;               /* NAN: unknown */
    double accuracy;           /* negative: the learner knows none */
    struct elv_eval_sums sums; /* n 0: none */
};

struct elv_lab_learner {
    void *self;
    uint32_t n_params;     /* 0: nothing is learnt */
    uint64_t bytes_down;   /* that a version takes to fetch, about */
    uint64_t bytes_full;   /* of a whole version; then what a client fetches is counted as the
                              server makes it; 0: bytes_down each time */
    uint32_t gather_max;   /* pieces of work that `train` takes at once; 1 or more */
    bool clients_evaluate; /* tasks come with evaluation sums, of examples a client holds out */

    /* The first version, [n_params]. */
    void (*init)(void *self, float *w);
    /* Work of the client as it is known before: samples it claims. */
    uint32_t (*samples)(void *self, uint32_t client);
    /* Local steps and samples a piece of work takes, before it is done: for its compute time. */
    void (*effort)(void *self, uint32_t client, struct elv_size size, uint32_t *steps,
                   uint32_t *seen);
    /* `n` is at most gather_max. Each task has an `err` of its own, like the commit of a client
     * that failed; an error returned is the learner's, and ends the run. */
    enum elv_err (*train)(void *self, struct elv_lab_task *tasks, uint32_t n);
    /* What became of the update a client trained last; it trains the next one only after that.
     * `version`: the newest by then. NULL: no client keeps anything of its updates. */
    void (*decided)(void *self, uint32_t client, enum elv_lab_fate fate, uint32_t version);
    enum elv_err (*evaluate)(void *self, const float *w, struct elv_lab_score *out);
    void (*free)(void *self);
};

#endif
