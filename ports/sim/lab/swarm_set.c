/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/swarm_set.h"

#include <stdlib.h>

#include "common/assert.h"
#include "ports/sim/queue.h"

void elv_swarm_set_init(struct elv_swarm_set *s, uint32_t cap)
{
    *s = (struct elv_swarm_set){.cap = cap, .top = 1};
    s->tree = elv_sim_alloc(((size_t)cap + 1) * sizeof *s->tree);
    while (s->top <= cap / 2)
        s->top *= 2;
}

void elv_swarm_set_free(struct elv_swarm_set *s)
{
    free(s->tree);
    *s = (struct elv_swarm_set){0};
}

/* Node i counts the members (i - lowest bit of i, i], counted from 1. */
static void change(struct elv_swarm_set *s, uint32_t member, uint32_t by)
{
    ELV_ASSERT(member < s->cap);
    for (uint32_t i = member + 1; i <= s->cap; i += i & (0 - i))
        s->tree[i] += by;
    s->n += by;
}

void elv_swarm_set_add(struct elv_swarm_set *s, uint32_t member) { change(s, member, 1); }

void elv_swarm_set_remove(struct elv_swarm_set *s, uint32_t member)
{
    change(s, member, UINT32_MAX); /* - 1 */
}

uint32_t elv_swarm_set_at(const struct elv_swarm_set *s, uint32_t place)
{
    ELV_ASSERT(place < s->n);
    uint32_t at = 0;
    for (uint32_t step = s->top; step > 0; step /= 2)
        if (at + step <= s->cap && s->tree[at + step] <= place) {
            at += step;
            place -= s->tree[at];
        }
    return at;
}
