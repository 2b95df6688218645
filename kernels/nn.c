/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/nn.h"

#include <string.h>

#include "common/arena.h"
#include "common/assert.h"
#include "common/size.h"

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* floats = members * batch * per_row, as a piece of the arena. */
static float *take_rows(struct elv_arena *a, const struct elv_nn_cfg *cfg, uint32_t per_row)
{
    size_t rows;
    if (!elv_size_mul(cfg->members, cfg->batch, &rows) || !elv_size_mul(rows, per_row, &rows)) {
        a->err = ELV_ERR_SPACE;
        return NULL;
    }
    return elv_arena_take(a, rows, sizeof(float));
}

static float *take_params(struct elv_arena *a, const struct elv_nn_cfg *cfg, uint32_t n)
{
    size_t all;
    if (!elv_size_mul(cfg->members, n, &all)) {
        a->err = ELV_ERR_SPACE;
        return NULL;
    }
    return elv_arena_take(a, all, sizeof(float));
}

static uint32_t *take_labels(struct elv_arena *a, const struct elv_nn_cfg *cfg)
{
    size_t rows;
    if (!elv_size_mul(cfg->members, cfg->batch, &rows)) {
        a->err = ELV_ERR_SPACE;
        return NULL;
    }
    return elv_arena_take(a, rows, sizeof(uint32_t));
}

/* The largest output among layers i with i % 2 == parity: neighbours are alive at the same time. */
static uint32_t widest(const struct elv_model *m, uint32_t parity)
{
    uint32_t most = 0;
    for (uint32_t i = parity; i < m->n_layers; i += 2)
        most = larger(most, elv_shape_len(m->layers[i].out));
    return most;
}

static uint32_t largest_layer(const struct elv_model *m)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < m->n_layers; i++)
        most = larger(most, m->layers[i].n_weight + m->layers[i].n_bias);
    return most;
}

static size_t scratch_len(const struct elv_nn_cfg *cfg)
{
    size_t most = 0;
    for (uint32_t i = 0; i < cfg->model->n_layers; i++) {
        const struct elv_layer *l = &cfg->model->layers[i];
        size_t len = 0;
        if (l->kind == ELV_LAYER_CONV)
            len = cfg->kernels->conv_scratch(l);
        else if (l->kind == ELV_LAYER_DENSE)
            len = cfg->kernels->dense_scratch(cfg->batch, elv_shape_len(l->in), l->out.c);
        most = len > most ? len : most;
    }
    return most;
}

static void lay_out_activations(struct elv_nn *nn, struct elv_arena *a)
{
    const struct elv_model *m = nn->cfg.model;
    float *shared[2] = {NULL, NULL}; /* without a way back two buffers serve all layers */
    for (uint32_t p = 0; nn->cfg.inference && p < 2; p++)
        shared[p] = take_rows(a, &nn->cfg, widest(m, p));
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const uint32_t out = elv_shape_len(m->layers[i].out);
        float *act = nn->cfg.inference ? shared[i % 2] : take_rows(a, &nn->cfg, out);
        uint8_t *from = NULL;
        if (m->layers[i].kind == ELV_LAYER_MAXPOOL) {
            const size_t rows = (size_t)nn->cfg.members * nn->cfg.batch; /* fits: act did */
            from = elv_arena_take(a, rows, out);
        }
        if (nn->act != NULL && nn->from != NULL) {
            nn->act[i] = act;
            nn->from[i] = from;
        }
    }
}

/* The only description of the memory: run over an arena that counts, or over one that gives. */
static void lay_out(struct elv_nn *nn, struct elv_arena *a)
{
    const struct elv_nn_cfg *cfg = &nn->cfg;
    const struct elv_model *m = cfg->model;
    nn->act = elv_arena_take(a, m->n_layers, sizeof *nn->act);
    nn->from = elv_arena_take(a, m->n_layers, sizeof *nn->from);
    nn->rows = elv_arena_take(a, cfg->members, sizeof *nn->rows);
    nn->loss = elv_arena_take(a, cfg->members, sizeof *nn->loss);
    nn->correct = elv_arena_take(a, cfg->members, sizeof *nn->correct);
    nn->labels = take_labels(a, cfg);
    nn->guess = take_labels(a, cfg);
    nn->x = take_rows(a, cfg, elv_shape_len(m->input));
    lay_out_activations(nn, a);
    nn->scratch = elv_arena_take(a, scratch_len(cfg), 1);
    if (cfg->inference)
        return;
    nn->back[0] = take_rows(a, cfg, widest(m, 0));
    nn->back[1] = take_rows(a, cfg, widest(m, 1));
    nn->grad_stride = cfg->keep_gradients ? m->n_params : largest_layer(m);
    nn->grad = take_params(a, cfg, (uint32_t)nn->grad_stride);
    if (cfg->momentum)
        nn->velocity = take_params(a, cfg, m->n_params);
}

static struct elv_nn_cfg with_defaults(const struct elv_nn_cfg *cfg)
{
    struct elv_nn_cfg full = *cfg;
    full.members = cfg->members == 0 ? 1 : cfg->members;
    full.kernels = cfg->kernels == NULL ? elv_kernels_best() : cfg->kernels;
    return full;
}

size_t elv_nn_mem(const struct elv_nn_cfg *cfg)
{
    struct elv_nn nn = {.cfg = with_defaults(cfg)};
    struct elv_arena a = elv_arena_of(NULL, 0);
    lay_out(&nn, &a);
    return a.err == ELV_OK ? a.used : 0;
}

enum elv_err elv_nn_init(struct elv_nn *nn, const struct elv_nn_cfg *cfg, void *mem, size_t len)
{
    if (cfg->model == NULL || cfg->batch == 0)
        return ELV_ERR_ARG;
    const size_t need = elv_nn_mem(cfg);
    if (need == 0 || len < need)
        return ELV_ERR_SPACE;
    *nn = (struct elv_nn){.cfg = with_defaults(cfg)};
    struct elv_arena a = elv_arena_of(mem, len);
    lay_out(nn, &a);
    ELV_ASSERT(a.err == ELV_OK && a.used == need);
    return ELV_OK;
}

void elv_nn_bind(struct elv_nn *nn, float *params, size_t stride)
{
    ELV_ASSERT(nn->cfg.members == 1 || stride >= nn->cfg.model->n_params);
    nn->params = params;
    nn->param_stride = stride;
}

float *elv_nn_x(struct elv_nn *nn, uint32_t member)
{
    ELV_ASSERT(member < nn->cfg.members);
    return nn->x + (size_t)member * nn->cfg.batch * elv_shape_len(nn->cfg.model->input);
}

uint32_t *elv_nn_labels(struct elv_nn *nn, uint32_t member)
{
    ELV_ASSERT(member < nn->cfg.members);
    return nn->labels + (size_t)member * nn->cfg.batch;
}

void elv_nn_set_rows(struct elv_nn *nn, uint32_t member, uint32_t rows)
{
    ELV_ASSERT(member < nn->cfg.members && rows <= nn->cfg.batch);
    nn->rows[member] = rows;
}

static struct elv_cohort cohort(const struct elv_nn *nn)
{
    return (struct elv_cohort){.n = nn->cfg.members,
                               .rows_cap = nn->cfg.batch,
                               .rows = nn->rows,
                               .param_stride = nn->param_stride,
                               .grad_stride = nn->grad_stride};
}

static const float *input_of(const struct elv_nn *nn, uint32_t i)
{
    return i == 0 ? nn->x : nn->act[i - 1];
}

/* Gradient of the output of layer i - 1; NULL for the network's input, which nobody asks for. */
static float *passed_to(const struct elv_nn *nn, uint32_t i)
{
    return i == 0 ? NULL : nn->back[(i - 1) % 2];
}

static float *gradient_at(const struct elv_nn *nn, const struct elv_layer *l)
{
    return nn->cfg.keep_gradients ? nn->grad + l->weight_at : nn->grad;
}

static struct elv_dense dense_args(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    return (struct elv_dense){.of = cohort(nn),
                              .n_in = elv_shape_len(l->in),
                              .n_out = l->out.c,
                              .x = input_of(nn, i),
                              .w = nn->params + l->weight_at,
                              .b = nn->params + l->bias_at,
                              .y = nn->act[i],
                              .scratch = nn->scratch};
}

static struct elv_conv conv_args(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    return (struct elv_conv){.of = cohort(nn),
                             .l = l,
                             .x = input_of(nn, i),
                             .w = nn->params + l->weight_at,
                             .b = nn->params + l->bias_at,
                             .y = nn->act[i],
                             .scratch = nn->scratch};
}

static struct elv_pool pool_args(const struct elv_nn *nn, uint32_t i)
{
    return (struct elv_pool){.of = cohort(nn),
                             .l = &nn->cfg.model->layers[i],
                             .x = input_of(nn, i),
                             .y = nn->act[i],
                             .from = nn->from[i]};
}

static struct elv_relu relu_args(const struct elv_nn *nn, uint32_t i)
{
    return (struct elv_relu){
        .of = cohort(nn), .n = elv_shape_len(nn->cfg.model->layers[i].out), .y = nn->act[i]};
}

static void layer_forward(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_kernels *k = nn->cfg.kernels;
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    if (l->kind == ELV_LAYER_DENSE) {
        const struct elv_dense a = dense_args(nn, i);
        k->dense_forward(&a);
    } else if (l->kind == ELV_LAYER_CONV) {
        const struct elv_conv a = conv_args(nn, i);
        k->conv_forward(&a);
    } else {
        const struct elv_pool a = pool_args(nn, i);
        k->pool_forward(&a);
    }
    if (l->act == ELV_ACT_RELU) {
        const struct elv_relu a = relu_args(nn, i);
        k->relu_forward(&a);
    }
}

const float *elv_nn_forward(struct elv_nn *nn)
{
    ELV_ASSERT(nn->params != NULL);
    const uint32_t n = nn->cfg.model->n_layers;
    for (uint32_t i = 0; i < n; i++)
        layer_forward(nn, i);
    return nn->act[n - 1];
}

void elv_nn_loss(struct elv_nn *nn)
{
    const uint32_t last = nn->cfg.model->n_layers - 1;
    const struct elv_xent a = {.of = cohort(nn),
                               .n_classes = nn->cfg.model->n_classes,
                               .z = nn->act[last],
                               .label = nn->labels,
                               .dz = nn->cfg.inference ? NULL : nn->back[last % 2],
                               .guess = nn->guess,
                               .loss = nn->loss,
                               .correct = nn->correct};
    nn->cfg.kernels->xent(&a);
}

static void dense_back(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    struct elv_dense a = dense_args(nn, i);
    a.dy = nn->back[i % 2];
    a.dw = gradient_at(nn, l);
    a.db = a.dw + l->n_weight;
    a.dx = passed_to(nn, i);
    nn->cfg.kernels->dense_back_weight(&a);
    if (a.dx != NULL)
        nn->cfg.kernels->dense_back_data(&a);
}

static void conv_back(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    struct elv_conv a = conv_args(nn, i);
    a.dy = nn->back[i % 2];
    a.dw = gradient_at(nn, l);
    a.db = a.dw + l->n_weight;
    a.dx = passed_to(nn, i);
    nn->cfg.kernels->conv_back_weight(&a);
    if (a.dx != NULL)
        nn->cfg.kernels->conv_back_data(&a);
}

static void pool_back(const struct elv_nn *nn, uint32_t i)
{
    struct elv_pool a = pool_args(nn, i);
    a.dy = nn->back[i % 2];
    a.dx = passed_to(nn, i);
    if (a.dx != NULL)
        nn->cfg.kernels->pool_back(&a);
}

static void layer_back(const struct elv_nn *nn, uint32_t i)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    if (l->act == ELV_ACT_RELU) {
        struct elv_relu a = relu_args(nn, i);
        a.dy = nn->back[i % 2];
        nn->cfg.kernels->relu_back(&a);
    }
    if (l->kind == ELV_LAYER_DENSE)
        dense_back(nn, i);
    else if (l->kind == ELV_LAYER_CONV)
        conv_back(nn, i);
    else
        pool_back(nn, i);
}

static void descend(const struct elv_nn *nn, uint32_t i, const struct elv_nn_rates *rates)
{
    const struct elv_layer *l = &nn->cfg.model->layers[i];
    const struct elv_sgd a = {.of = cohort(nn),
                              .n = l->n_weight + l->n_bias,
                              .w = nn->params + l->weight_at,
                              .g = gradient_at(nn, l),
                              .v = rates->momentum == 0.0f ? NULL : nn->velocity + l->weight_at,
                              .v_stride = nn->cfg.model->n_params,
                              .rate = rates->rate,
                              .momentum = rates->momentum,
                              .decay = rates->decay,
                              .home = rates->home == NULL ? NULL : rates->home + l->weight_at,
                              .home_stride = rates->home_stride,
                              .pull = rates->pull};
    nn->cfg.kernels->sgd(&a);
}

void elv_nn_backward(struct elv_nn *nn, const struct elv_nn_rates *rates)
{
    ELV_ASSERT(!nn->cfg.inference);
    ELV_ASSERT(rates != NULL || nn->cfg.keep_gradients);
    ELV_ASSERT(rates == NULL || rates->momentum == 0.0f || nn->cfg.momentum);
    for (uint32_t i = nn->cfg.model->n_layers; i-- > 0;) {
        layer_back(nn, i);
        if (rates != NULL)
            descend(nn, i, rates);
    }
}

const float *elv_nn_gradient(const struct elv_nn *nn, uint32_t member)
{
    ELV_ASSERT(nn->cfg.keep_gradients && member < nn->cfg.members);
    return nn->grad + member * nn->grad_stride;
}

void elv_nn_rest(struct elv_nn *nn)
{
    if (nn->velocity != NULL)
        memset(nn->velocity, 0,
               (size_t)nn->cfg.members * nn->cfg.model->n_params * sizeof *nn->velocity);
}
