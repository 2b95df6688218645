/* SPDX-License-Identifier: Apache-2.0 */
#include "common/select_top.h"

#include <string.h>

#include "common/assert.h"
#include "common/bits.h"

/* Where the digit of each pass starts; the lowest has seven bits, since the sign is left out. */
static const uint8_t shifts[] = {23, 15, 7, 0};
enum { DIGITS = 4, TIES = DIGITS, DONE, BLOCK = 32 };

uint32_t elv_select_count(float fraction, uint32_t n)
{
    const double product = (double)fraction * (double)n;
    if (product >= (double)n)
        return n;
    const uint32_t whole = (uint32_t)product;
    return whole + ((double)whole < product);
}

static int32_t magnitude_bits(const float *v)
{
    int32_t bits;
    memcpy(&bits, v, sizeof bits);
    return bits & INT32_MAX;
}

static uint32_t digit_of(int32_t bits, uint32_t pass)
{
    return (uint32_t)bits >> shifts[pass] & (pass == DIGITS - 1 ? 127u : 255u);
}

/* Which of v[0..BLOCK) lie in [least, most]. A compiler makes vectors of it. */
static bool some_within(const float *v, int32_t least, int32_t most)
{
    int32_t n_within = 0;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const int32_t bits = magnitude_bits(v + i);
        n_within |= (bits >= least) & (bits <= most);
    }
    return n_within != 0;
}

static void count_all(uint32_t n[256], const float *v, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        n[(uint32_t)magnitude_bits(v + i) >> 23]++;
}

/* The digits of those that share the higher ones with `p->bits`. */
static void count_within(struct elv_codec_plan *p, const float *v, uint32_t len)
{
    const int32_t least = (int32_t)p->bits;
    const int32_t most = least + (int32_t)((1u << shifts[p->pass - 1]) - 1);
    for (uint32_t at = 0; at < len; at += BLOCK) {
        const uint32_t left = len - at < BLOCK ? len - at : BLOCK;
        if (left == BLOCK && !some_within(v + at, least, most))
            continue;
        for (uint32_t i = 0; i < left; i++) {
            const int32_t bits = magnitude_bits(v + at + i);
            if (bits >= least && bits <= most)
                p->n[digit_of(bits, p->pass)]++;
        }
    }
}

/* The first of the ties, as many as are wanted. Returns how far it looked. */
static uint32_t count_ties(struct elv_codec_plan *p, const float *v, uint32_t len)
{
    const int32_t tie = (int32_t)p->bits;
    for (uint32_t i = 0; i < len; i++)
        if (magnitude_bits(v + i) == tie && --p->rest == 0)
            return i + 1;
    return len;
}

/* The digit of the one that `p->rest` counts to, from the largest down. */
static void end_digit(struct elv_codec_plan *p, uint32_t n)
{
    uint32_t digit = 255;
    for (; p->n[digit] < p->rest; digit--)
        p->rest -= p->n[digit];
    p->bits |= digit << shifts[p->pass];
    const bool all = p->n[digit] == p->rest;
    memset(p->n, 0, sizeof p->n);
    p->at = 0;
    if (++p->pass < DIGITS)
        return;
    p->tie_end = n;
    if (p->bits == 0) /* everything but zero */
        p->bits = 1;
    else if (!all)
        return;
    p->pass = DONE;
}

static void end_ties(struct elv_codec_plan *p)
{
    p->tie_end = p->at;
    p->pass = DONE;
}

enum elv_err elv_select_top(struct elv_codec_plan *p, const float *v, uint32_t n, uint32_t k,
                            uint32_t budget)
{
    ELV_ASSERT(k > 0 && k <= n);
    if (p->pass == 0 && p->at == 0)
        p->rest = k;
    for (uint64_t left = (uint64_t)budget * 1024; left > 0 && p->pass != DONE;) {
        uint32_t len = n - p->at < left ? n - p->at : (uint32_t)left;
        if (p->pass == 0)
            count_all(p->n, v + p->at, len);
        else if (p->pass < TIES)
            count_within(p, v + p->at, len);
        else
            len = count_ties(p, v + p->at, len);
        left -= len;
        p->at += len;
        if (p->pass == TIES && p->rest == 0)
            end_ties(p);
        else if (p->at == n)
            end_digit(p, n);
    }
    return p->pass == DONE ? ELV_OK : ELV_ERR_BUSY;
}

struct elv_select_scan elv_select_from(const struct elv_codec_plan *plan, const float *v,
                                       uint32_t n, uint32_t first)
{
    ELV_ASSERT(plan->pass == DONE);
    return (struct elv_select_scan){.plan = plan, .v = v, .n = n, .at = first};
}

static uint32_t which(const float *v, uint32_t len, int32_t least)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < len; i++)
        found |= (uint32_t)(magnitude_bits(v + i) >= least) << i;
    return found;
}

/* Looks at the next block, or the part of one where ties count. */
static void look(struct elv_select_scan *s)
{
    const uint32_t end = s->at < s->plan->tie_end ? s->plan->tie_end : s->n;
    const int32_t least = (int32_t)s->plan->bits + (s->at >= s->plan->tie_end);
    while (s->found == 0 && s->at < end) {
        s->base = s->at;
        const uint32_t len = end - s->at < BLOCK ? end - s->at : BLOCK;
        if (len < BLOCK || some_within(s->v + s->at, least, INT32_MAX))
            s->found = which(s->v + s->at, len, least);
        s->at += len;
    }
}

uint32_t elv_select_next(struct elv_select_scan *s)
{
    while (s->found == 0 && s->at < s->n)
        look(s);
    if (s->found == 0)
        return s->n;
    const uint32_t i = elv_lowest_bit(s->found);
    s->found &= s->found - 1;
    return s->base + i;
}
