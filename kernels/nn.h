/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/nn.h - forward, backward and descent for a network given as text, over any table.
 *
 * A *plan* is made once from a model, the largest batch and the number of cohort members; it cuts
 * all memory it will ever use from one block of the caller's, whose size `elv_nn_mem` tells before.
 * Parameters stay where the caller has them. One plan belongs to one thread.
 *
 * Gradients are used up layer by layer, so their buffer is as large as the largest layer only. */
#ifndef ELV_KERNELS_NN_H
#define ELV_KERNELS_NN_H

#include <stdbool.h>

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_nn_cfg {
    const struct elv_model *model;     /* borrowed for the life of the plan */
    const struct elv_kernels *kernels; /* NULL: the best built in */
    uint32_t batch;                    /* rows a member has room for; 1 or more */
    uint32_t members;                  /* 0: 1 */
    bool momentum;                     /* room for a velocity per parameter */
    bool inference;                    /* forward and loss only: no memory to go backward */
    bool keep_gradients; /* of all layers at once, in flat order, for `elv_nn_gradient` */
};

struct elv_nn_rates {
    float rate, momentum, decay; /* momentum must be 0 in a plan without */
    const float *home; /* [n_params] of each member, home_stride apart: where `pull` pulls its
                          weights to (kernels.h, elv_sgd); NULL: nowhere */
    size_t home_stride;
    float pull;
};

struct elv_nn { /* the fields belong to nn.c */
    struct elv_nn_cfg cfg;
    uint32_t *rows;    /* [members] */
    uint32_t *labels;  /* [members][batch] */
    uint32_t *guess;   /* [members][batch] */
    double *loss;      /* [members] */
    uint32_t *correct; /* [members] */
    float *x;          /* [members][batch][input] */
    float **act;       /* [layers] each [members][batch][out] */
    uint8_t **from;    /* [layers] of pools; NULL for others */
    float *back[2];    /* gradients of the outputs of even and of odd layers */
    float *grad;       /* [members] of the largest layer, or of all parameters */
    float *velocity;   /* [members][n_params], or NULL */
    void *scratch;
    size_t grad_stride; /* floats per member */
    float *params;      /* the caller's */
    size_t param_stride;
};

/* Bytes `elv_nn_init` needs and uses, exactly. 0: more than this machine can address. */
size_t elv_nn_mem(const struct elv_nn_cfg *cfg);

/* Keeps `mem`, aligned to 64, for the life of the plan; nothing to free. ELV_ERR_SPACE: `len` is
 * below `elv_nn_mem`. ELV_ERR_ARG: no model or an empty batch. */
enum elv_err elv_nn_init(struct elv_nn *nn, const struct elv_nn_cfg *cfg, void *mem, size_t len);

/* Parameters of member k are the model's flat vector at params + k * stride. `elv_nn_backward` with
 * rates changes them, nothing else does. */
void elv_nn_bind(struct elv_nn *nn, float *params, size_t stride);

/* A member's input: fill `batch` rows of x and labels at most, then say how many. */
float *elv_nn_x(struct elv_nn *nn, uint32_t member);
uint32_t *elv_nn_labels(struct elv_nn *nn, uint32_t member); /* each below n_classes */
void elv_nn_set_rows(struct elv_nn *nn, uint32_t member, uint32_t rows);

/* Outputs of all layers; returns the logits [members][batch][n_classes]. */
const float *elv_nn_forward(struct elv_nn *nn);

/* After forward: per member loss sum, correct count and guesses, and the gradient to go back from.
 */
void elv_nn_loss(struct elv_nn *nn);

/* After loss. With rates: one step of descent per layer, once its gradient has been passed on.
 * NULL: gradients only (needs keep_gradients). */
void elv_nn_backward(struct elv_nn *nn, const struct elv_nn_rates *rates);

/* Of the last backward pass, in flat order. Needs keep_gradients. */
const float *elv_nn_gradient(const struct elv_nn *nn, uint32_t member);

/* Velocities of all members become zero. */
void elv_nn_rest(struct elv_nn *nn);

#ifdef __cplusplus
}
#endif
#endif
