/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tiers.h"

#include "common/assert.h"

enum { FINE_BITS = 8, FINE = 1 << FINE_BITS };

/* As floating point does it: a power of two, and the eight bits below its first. */
uint32_t elv_tier_class(elv_time_us interval)
{
    uint64_t v = interval > 0 ? (uint64_t)interval : 0;
    uint32_t octave = 0;
    while (v >= 2 * FINE) {
        v >>= 1;
        octave++;
    }
    const uint32_t at = octave * FINE + (uint32_t)v;
    return at < ELV_TIER_CLASSES ? at : ELV_TIER_CLASSES - 1;
}

struct span {
    uint32_t lo, hi; /* classes in use, both included */
};

/* Tiers of `width` classes, each beginning where somebody is. */
static uint32_t count_tiers(const uint32_t *classes, struct span in, uint32_t width, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = in.lo; i <= in.hi && n <= most; i++) {
        if (classes[i] == 0)
            continue;
        n++;
        i += width - 1;
    }
    return n;
}

static uint32_t label(uint32_t *classes, struct span in, uint32_t width)
{
    uint32_t n = 0, end = in.lo;
    for (uint32_t i = in.lo; i <= in.hi; i++) {
        if (classes[i] == 0)
            continue;
        if (n == 0 || i >= end) {
            n++;
            end = i + width;
        }
        classes[i] = n - 1;
    }
    return n;
}

uint32_t elv_tier_cut(uint32_t *classes, uint32_t most)
{
    ELV_ASSERT(most >= 1);
    struct span in = {0, ELV_TIER_CLASSES - 1};
    while (in.lo < in.hi && classes[in.lo] == 0)
        in.lo++;
    while (in.hi > in.lo && classes[in.hi] == 0)
        in.hi--;
    uint32_t narrow = 1, wide = in.hi - in.lo + 1;
    while (narrow < wide) {
        const uint32_t middle = narrow + (wide - narrow) / 2;
        if (count_tiers(classes, in, middle, most) <= most)
            wide = middle;
        else
            narrow = middle + 1;
    }
    return label(classes, in, wide);
}
