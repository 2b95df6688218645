/* SPDX-License-Identifier: Apache-2.0 */
/* A model's values: how they start, and where the shared ones lie. */
#include "common/model.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated as float");

/* Bound of the uniform distribution a layer's weights start from. */
static float init_bound(const struct elv_layer *l)
{
    const uint32_t area = l->kind == ELV_LAYER_CONV ? l->kernel_h * l->kernel_w : 1;
    const float in = (float)(l->n_weight / l->out.c);
    const float out = (float)(l->out.c * area);
    return sqrtf(6.0f / (l->act == ELV_ACT_RELU ? in : in + out));
}

void elv_model_init_params(const struct elv_model *m, uint64_t seed, float *w)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *l = &m->layers[i];
        if (l->n_weight == 0)
            continue;
        struct elv_rng r =
            elv_rng_of((struct elv_rng_key){.seed = seed, .round = i, .purpose = ELV_RNG_INIT});
        const float bound = init_bound(l);
        for (uint32_t j = 0; j < l->n_weight; j++)
            w[l->weight_at + j] = (2.0f * elv_rng_unit(&r) - 1.0f) * bound;
        for (uint32_t j = 0; j < l->n_bias; j++)
            w[l->bias_at + j] = 0.0f;
    }
}

uint32_t elv_model_run(const struct elv_model *m, uint32_t first, uint32_t *flat_at)
{
    uint32_t end = 0; /* of the stretch, in shared coordinates */
    bool found = false;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *l = &m->layers[i];
        const uint32_t n = l->n_weight + l->n_bias;
        if (n == 0)
            continue;
        if (l->local && found)
            break;
        if (l->local || first >= l->shared_at + n)
            continue;
        if (!found)
            *flat_at = l->weight_at + (first - l->shared_at);
        found = true;
        end = l->shared_at + n;
    }
    return found ? end - first : 0;
}

void elv_model_gather(const struct elv_model *m, const float *w, uint32_t first, uint32_t n,
                      float *shared)
{
    ELV_ASSERT(first <= m->n_shared && n <= m->n_shared - first);
    while (n > 0) {
        uint32_t at = 0;
        const uint32_t run = elv_model_run(m, first, &at);
        const uint32_t some = run < n ? run : n;
        memcpy(shared, w + at, some * sizeof *shared);
        shared += some;
        first += some;
        n -= some;
    }
}

void elv_model_scatter(const struct elv_model *m, float *w, uint32_t first, uint32_t n,
                       const float *shared)
{
    ELV_ASSERT(first <= m->n_shared && n <= m->n_shared - first);
    while (n > 0) {
        uint32_t at = 0;
        const uint32_t run = elv_model_run(m, first, &at);
        const uint32_t some = run < n ? run : n;
        memcpy(w + at, shared, some * sizeof *shared);
        shared += some;
        first += some;
        n -= some;
    }
}
