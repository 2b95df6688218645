/* SPDX-License-Identifier: Apache-2.0 */
/* Every subset of the wanted size is equally likely. */
#include <stdbool.h>

#include "common/rng.h"
#include "server/select.h"

static const char *const no_params[] = {NULL};

static struct elv_rng stream(const struct elv_select_ask *ask)
{
    return elv_rng_of(
        (struct elv_rng_key){.seed = ask->seed, .round = ask->round, .purpose = ELV_RNG_SELECT});
}

/* Many of few: selection sampling keeps the order, each candidate is taken with chance wanted /
 * left. Source: Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S. */
static bool takes_many(uint32_t count, uint32_t n) { return count > n / 2; }

/* Few of many: places are drawn until enough different ones have come. A mark in the row, which is
 * below 2^31, remembers who was. */
#define MARK 0x80000000u

static void mark_few(struct elv_rng *rng, uint32_t count, struct elv_candidate *at, uint32_t n)
{
    for (uint32_t taken = 0; taken < count;) {
        struct elv_candidate *c = &at[elv_rng_below(rng, n)];
        taken += (c->row & MARK) == 0;
        c->row |= MARK;
    }
}

static uint32_t choose(const struct elv_select_ask *ask, struct elv_candidate *at, uint32_t n)
{
    const uint32_t count = ask->count;
    uint32_t taken = 0;
    if (count == 0 || count >= n)
        return n;
    struct elv_rng rng = stream(ask);
    const bool many = takes_many(count, n);
    if (!many)
        mark_few(&rng, count, at, n);
    for (uint32_t i = 0; taken < count; i++) {
        const bool take = many ? elv_rng_below(&rng, n - i) < count - taken : at[i].row & MARK;
        at[i].row &= ~MARK;
        if (take)
            at[taken++] = at[i];
    }
    return taken;
}

static void sift(uint32_t *at, uint32_t i, uint32_t n)
{
    const uint32_t moved = at[i];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && at[child + 1] > at[child];
        if (at[child] <= moved)
            break;
        at[i] = at[child];
    }
    at[i] = moved;
}

/* Source: Williams, "Algorithm 232: Heapsort", Communications of the ACM 7, 1964. */
static void sort(uint32_t *at, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift(at, i, n);
    for (uint32_t left = n; left-- > 1;) {
        const uint32_t largest = at[0];
        at[0] = at[left];
        at[left] = largest;
        sift(at, 0, left);
    }
}

/* Of sorted numbers, each once. */
static uint32_t distinct(uint32_t *at, uint32_t n)
{
    uint32_t kept = 1;
    for (uint32_t i = 1; i < n; i++)
        if (at[i] != at[kept - 1])
            at[kept++] = at[i];
    return kept;
}

static void draw(const struct elv_select_ask *ask, uint32_t n, uint32_t *places)
{
    struct elv_rng rng = stream(ask);
    const uint32_t count = ask->count;
    uint32_t taken = 0;
    if (takes_many(count, n)) {
        for (uint32_t i = 0; taken < count; i++)
            if (count == n || elv_rng_below(&rng, n - i) < count - taken)
                places[taken++] = i;
        return;
    }
    while (taken < count) { /* at least every second one is new */
        while (taken < count)
            places[taken++] = elv_rng_below(&rng, n);
        sort(places, count);
        taken = distinct(places, count);
    }
}

const struct elv_select elv_select_uniform = {
    .name = "uniform",
    .params = no_params,
    .choose = choose,
    .draw = draw,
};
