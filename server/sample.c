/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sample.h"

struct elv_sample elv_sample_of(uint32_t n, struct elv_rng *rng)
{
    struct elv_sample s = {.n = n, .half = 1};
    while (s.half < 16 && ((uint32_t)1 << (2 * s.half)) < n)
        s.half++;
    for (size_t i = 0; i < ELV_SAMPLE_WORDS; i++)
        s.key[i] = elv_rng_u32(rng);
    return s;
}

static uint32_t mix(uint32_t x)
{
    x *= 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    return x >> 16;
}

static uint32_t permuted(const struct elv_sample *s, uint32_t i)
{
    const uint32_t mask = ((uint32_t)1 << s->half) - 1;
    uint32_t left = i >> s->half, right = i & mask;
    for (size_t k = 0; k < ELV_SAMPLE_WORDS; k++) {
        const uint32_t out = left ^ (mix(right ^ s->key[k]) & mask);
        left = right;
        right = out;
    }
    return left << s->half | right;
}

uint32_t elv_sample_at(const struct elv_sample *s, uint32_t i)
{
    do
        i = permuted(s, i);
    while (i >= s->n);
    return i;
}
