/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/dataset.h"

#include "common/assert.h"

static float scaled(const struct elv_dataset_feed *f, float raw)
{
    const float product = raw * f->scale;
    const float centred = product - f->mean;
    return centred / f->std;
}

void elv_dataset_feed_init(struct elv_dataset_feed *f, const struct elv_dataset *data,
                           const uint32_t *index, uint32_t n, float scale, float mean, float std)
{
    ELV_ASSERT(std > 0);
    f->data = data;
    f->index = index;
    f->n = index == NULL ? data->n : n;
    f->scale = scale;
    f->mean = mean;
    f->std = std;
    for (uint32_t i = 0; i < f->n && index != NULL; i++)
        ELV_ASSERT(index[i] < data->n);
    for (unsigned i = 0; i < 256; i++)
        f->table[i] = scaled(f, (float)i);
}

uint32_t elv_dataset_feed_count(void *self)
{
    const struct elv_dataset_feed *f = self;
    return f->n;
}

void elv_dataset_feed_shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    const struct elv_dataset_feed *f = self;
    *n_values = f->data->n_values;
    *n_classes = f->data->n_classes;
}

static void get_one(const struct elv_dataset_feed *f, uint32_t example, float *x)
{
    const struct elv_dataset *d = f->data;
    const size_t at = (size_t)example * d->n_values;
    for (uint32_t i = 0; i < d->n_values; i++)
        x[i] = d->u8 != NULL ? f->table[d->u8[at + i]] : scaled(f, d->f32[at + i]);
}

enum elv_err elv_dataset_feed_get(void *self, const uint32_t *index, uint32_t n, float *x,
                                  uint32_t *y)
{
    const struct elv_dataset_feed *f = self;
    for (uint32_t i = 0; i < n; i++) {
        ELV_ASSERT(index[i] < f->n);
        const uint32_t example = f->index == NULL ? index[i] : f->index[index[i]];
        get_one(f, example, x + (size_t)i * f->data->n_values);
        y[i] = f->data->labels[example];
    }
    return ELV_OK;
}
