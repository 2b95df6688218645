/* SPDX-License-Identifier: Apache-2.0 */
/* tests/memory_feed.h - a data set in memory as a feed. */
#ifndef ELV_TESTS_MEMORY_FEED_H
#define ELV_TESTS_MEMORY_FEED_H

#include <string.h>

#include "common/feed.h"

struct memory_set {
    uint32_t n, n_values, n_classes;
    float *x;    /* [n][n_values] */
    uint32_t *y; /* [n] */
};

static inline uint32_t memory_count(void *self) { return ((struct memory_set *)self)->n; }

static inline void memory_shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    const struct memory_set *s = self;
    *n_values = s->n_values;
    *n_classes = s->n_classes;
}

static inline enum elv_err memory_get(void *self, const uint32_t *index, uint32_t n, float *x,
                                      uint32_t *y)
{
    const struct memory_set *s = self;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(x + (size_t)i * s->n_values, s->x + (size_t)index[i] * s->n_values,
               s->n_values * sizeof *x);
        y[i] = s->y[index[i]];
    }
    return ELV_OK;
}

static inline struct elv_feed memory_feed(struct memory_set *s)
{
    return (struct elv_feed){
        .self = s, .count = memory_count, .shape = memory_shape, .get = memory_get};
}

#endif
