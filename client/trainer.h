/* SPDX-License-Identifier: Apache-2.0 */
/* client/trainer.h - local training and evaluation in bounded slices.
 *
 * A device may bring its own trainer: any implementation of struct elv_trainer. The built-in one
 * trains the job's network with the kernels, by stochastic gradient descent, on examples of a feed.
 * A trainer belongs to one thread at a time and reads no clock. */
#ifndef ELV_CLIENT_TRAINER_H
#define ELV_CLIENT_TRAINER_H

#include "../common/feed.h"
#include "../common/msg.h"
#include "../common/rng.h"
#include "../kernels/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one assignment asks for. */
struct elv_task {
    uint64_t seed;       /* of the run; with client and assignment it decides the batch order */
    uint32_t client;     /* client number */
    uint32_t assignment; /* no two pieces of a client's work have the same, in one round neither */
    uint32_t round;
    uint32_t base_version; /* the version whose weights are given */
    uint32_t local_epochs; /* one of the two is 0 */
    uint32_t local_steps;
    uint32_t batch; /* of an evaluation: 0 for what suits the trainer */
    float rate, momentum, decay;
    float prox_mu; /* FedProx: pulls the weights to where they started; 0: not at all */
    enum elv_arithmetic arithmetic;
};

struct elv_train_result {
    uint32_t samples; /* distinct local examples: the usual weight of an update */
    uint32_t seen;    /* examples trained on, repeats counted */
    uint32_t steps;
    double loss_sum; /* over `seen`, each before the step it took part in */
    uint32_t n_user;
    struct elv_user_sum user[ELV_USER_SUMS_MAX]; /* names live as long as the trainer */
    struct elv_eval_sums eval;                   /* of an evaluation; all 0 after a training */
};

struct elv_trainer {
    void *self;

    /* The first three may be NULL in a trainer that was made for one run beforehand. */

    /* Bytes `prepare` must be given for a run that trains in batches up to `batch`, exactly. 0:
     * more than this machine can address. */
    size_t (*mem)(void *self, const struct elv_manifest *manifest, const struct elv_model *model,
                  uint32_t batch);

    /* Makes ready for a run, before anything is started; again when the run changes. `mem`, aligned
     * to 64, and `model` are the trainer's until then; the manifest is borrowed for the call.
     * ELV_ERR_SPACE: not even batches of one fit. ELV_ERR_MISMATCH: the local examples are not what
     * the model reads. Else the feed's error. */
    enum elv_err (*prepare)(void *self, const struct elv_manifest *manifest,
                            const struct elv_model *model, void *mem, size_t len);

    /* Local examples to train on; known once prepared. */
    uint32_t (*samples)(const void *self);

    /* Starts training `weights` in place: the model's flat vector, local layers included, borrowed
     * until the work ends. ELV_ERR_MISSING: no examples. ELV_ERR_SPACE: the batch does not fit the
     * memory. ELV_ERR_RANGE: more than the trainer was made for, or a number that is not finite.
     * ELV_ERR_UNSUPPORTED: a wish it cannot fulfil. On
     * any error nothing has started. */
    enum elv_err (*begin)(void *self, const struct elv_task *task, float *weights);

    /* Starts evaluating `weights` on the local evaluation examples; errors as for `begin`. */
    enum elv_err (*evaluate)(void *self, const struct elv_task *task, const float *weights);

    /* Goes on with what was started, `steps` batches at most (at least one). ELV_ERR_BUSY: there is
     * more; ELV_OK: done; else it failed and has ended: ELV_ERR_RANGE when the loss or the weights
     * are no longer finite or a label is none of the model's, or the feed's error. How work is cut
     * into slices never changes its result. */
    enum elv_err (*run)(void *self, uint32_t steps);

    /* Sums so far; final once `run` returned ELV_OK. Valid until the next start. */
    const struct elv_train_result *(*result)(const void *self);

    /* Ends the work between two slices; the weights keep whatever was reached. Legal at any time,
     * also when nothing runs. */
    void (*abort)(void *self);
};

/* The built-in trainer. */
struct elv_local_cfg {
    const struct elv_model *model;     /* borrowed */
    const struct elv_feed *train;      /* borrowed; NULL: evaluation only */
    const struct elv_feed *test;       /* borrowed; NULL: no evaluation */
    const struct elv_kernels *kernels; /* NULL: by `arithmetic` */
    enum elv_arithmetic arithmetic;    /* 0: fast */
    uint32_t batch;                    /* the largest a task may ask for */
    uint32_t examples;                 /* the most `train` may hold; 0: what it holds now */
    bool momentum;                     /* tasks may use momentum */
    bool proximal;                     /* tasks may use prox_mu */
};

enum elv_local_state { ELV_LOCAL_IDLE, ELV_LOCAL_TRAINING, ELV_LOCAL_EVALUATING };

struct elv_local { /* the fields belong to trainer.c */
    struct elv_local_cfg cfg;
    struct elv_nn nn;
    uint32_t *order;  /* [examples] the epoch's batch order */
    uint32_t *wanted; /* [batch] indices of an evaluation batch */
    float *home;      /* [n_params] the weights training began with; NULL: not kept */
    enum elv_local_state doing;
    struct elv_task task;
    struct elv_rng rng;
    uint32_t n;      /* examples of the feed in use */
    uint32_t at;     /* of them, used in this epoch */
    uint32_t epochs; /* finished */
    struct elv_train_result result;
};

/* Bytes `elv_local_init` needs and uses, exactly: what a device must have to take part. 0: more
 * than this machine can address. */
size_t elv_local_mem(const struct elv_local_cfg *cfg);

/* Keeps `mem`, aligned to 64, as long as the trainer is used. ELV_ERR_SPACE: `len` is below
 * `elv_local_mem`. ELV_ERR_MISMATCH: a feed does not fit the model. ELV_ERR_ARG: no model, no feed
 * or an empty batch. */
enum elv_err elv_local_init(struct elv_local *t, const struct elv_local_cfg *cfg, void *mem,
                            size_t len);

struct elv_trainer elv_local_trainer(struct elv_local *t);

#ifdef __cplusplus
}
#endif
#endif
