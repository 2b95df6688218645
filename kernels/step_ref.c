/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a training step: activation, loss and descent. */

#include "common/exact.h"
#include "kernels/ops_internal.h"

void elv_relu_forward_ref(const struct elv_relu *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        float *y = a->y + (size_t)k * a->of.rows_cap * a->n;
        for (size_t i = 0; i < (size_t)a->of.rows[k] * a->n; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i];
    }
}

void elv_relu_back_ref(const struct elv_relu *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        const float *y = a->y + (size_t)k * a->of.rows_cap * a->n;
        float *dy = a->dy + (size_t)k * a->of.rows_cap * a->n;
        for (size_t i = 0; i < (size_t)a->of.rows[k] * a->n; i++)
            dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

/* Loss of one row; its gradient times `share` into `dz` unless that is NULL. The largest logit is
 * taken off first, so no power overflows. */
static float row_loss(const float *z, uint32_t n, uint32_t label, uint32_t best, float share,
                      float *dz)
{
    float sum = 0.0f;
    for (uint32_t c = 0; c < n; c++)
        sum += elv_exp(z[c] - z[best]);
    for (uint32_t c = 0; dz != NULL && c < n; c++)
        dz[c] = (elv_exp(z[c] - z[best]) / sum - (c == label ? 1.0f : 0.0f)) * share;
    return elv_ln(sum) - (z[label] - z[best]);
}

static uint32_t best_class(const float *z, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < n; c++)
        best = z[c] > z[best] ? c : best;
    return best;
}

void elv_xent_ref(const struct elv_xent *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        if (a->of.rows[k] == 0)
            continue;
        const float share = 1.0f / (float)a->of.rows[k];
        a->loss[k] = 0.0;
        a->correct[k] = 0;
        for (uint32_t r = 0; r < a->of.rows[k]; r++) {
            const size_t row = (size_t)k * a->of.rows_cap + r;
            const float *z = a->z + row * a->n_classes;
            float *dz = a->dz == NULL ? NULL : a->dz + row * a->n_classes;
            const uint32_t best = best_class(z, a->n_classes), label = a->label[row];
            a->guess[row] = best;
            a->correct[k] += best == label;
            a->loss[k] += (double)row_loss(z, a->n_classes, label, best, share, dz);
        }
    }
}

void elv_sgd_ref(const struct elv_sgd *a)
{
    for (uint32_t k = 0; k < a->of.n; k++) {
        float *w = a->w + k * a->of.param_stride;
        float *v = a->v == NULL ? NULL : a->v + k * a->v_stride;
        const float *g = a->g + k * a->of.grad_stride;
        const float *home = a->home == NULL ? NULL : a->home + k * a->home_stride;
        for (uint32_t i = 0; a->of.rows[k] > 0 && i < a->n; i++) {
            float step = g[i] + a->decay * w[i];
            if (home != NULL)
                step = step + a->pull * (w[i] - home[i]);
            if (v != NULL)
                step = v[i] = step + a->momentum * v[i];
            w[i] = w[i] - a->rate * step;
        }
    }
}
