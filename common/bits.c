/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bits.h"

#include "common/assert.h"

/* Multiplying a power of two by a de Bruijn sequence shifts it, and its top five bits are different
 * for each shift. Source: Leiserson, Prokop, Randall, "Using de Bruijn Sequences to Index a 1 in a
 * Computer Word", MIT 1998. */
unsigned elv_lowest_bit(uint32_t x)
{
    static const uint8_t number[32] = {0,  1,  28, 2,  29, 14, 24, 3,  30, 22, 20,
                                       15, 25, 17, 4,  8,  31, 27, 13, 23, 21, 19,
                                       16, 7,  26, 12, 18, 6,  11, 5,  10, 9};
    return number[(x & (0u - x)) * 0x077CB531u >> 27];
}

struct elv_bit_wr elv_bit_wr_of(uint8_t *out, size_t cap)
{
    return (struct elv_bit_wr){.at = out, .left = cap};
}

static void give(struct elv_bit_wr *w)
{
    if (w->err == ELV_OK && w->left == 0)
        w->err = ELV_ERR_SPACE;
    if (w->err == ELV_OK) {
        *w->at++ = (uint8_t)w->held;
        w->left--;
        w->len++;
    }
    w->held >>= 8;
}

void elv_bit_wr_put(struct elv_bit_wr *w, uint32_t v, unsigned n)
{
    ELV_ASSERT(n <= 32 && (uint64_t)v >> n == 0);
    w->held |= (uint64_t)v << w->n_held;
    for (w->n_held += n; w->n_held >= 8; w->n_held -= 8)
        give(w);
}

void elv_bit_wr_zeros(struct elv_bit_wr *w, uint32_t n_zeros)
{
    for (; n_zeros >= 32 && w->err == ELV_OK; n_zeros -= 32)
        elv_bit_wr_put(w, 0, 32);
    n_zeros %= 32;
    elv_bit_wr_put(w, 1u << n_zeros, n_zeros + 1);
}

size_t elv_bit_wr_end(struct elv_bit_wr *w)
{
    if (w->n_held > 0)
        give(w);
    w->n_held = 0;
    return w->len;
}

struct elv_bit_rd elv_bit_rd_of(struct elv_bytes in)
{
    ELV_ASSERT(in.len <= SIZE_MAX / 8);
    return (struct elv_bit_rd){.in = in};
}

static size_t bits_left(const struct elv_bit_rd *r) { return 8 * r->in.len - r->at; }

/* The next 57 bits or more, with zeros past the end. */
static uint64_t ahead(const struct elv_bit_rd *r)
{
    const size_t from = r->at / 8, left = r->in.len - from;
    const uint8_t *p = r->in.at + from;
    uint64_t v = 0;
    if (left >= 8)
        v = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
            (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
            (uint64_t)p[7] << 56;
    else
        for (size_t i = 0; i < left; i++)
            v |= (uint64_t)p[i] << 8 * i;
    return v >> r->at % 8;
}

/* Whether there are `n` bits; fails when not. */
static bool has(struct elv_bit_rd *r, size_t n)
{
    if (r->err == ELV_OK && bits_left(r) < n)
        r->err = ELV_ERR_SHORT;
    return r->err == ELV_OK;
}

uint32_t elv_bit_rd_get(struct elv_bit_rd *r, unsigned n)
{
    ELV_ASSERT(n <= 32);
    if (n == 0 || !has(r, n))
        return 0;
    const uint32_t v = (uint32_t)ahead(r) & UINT32_MAX >> (32 - n);
    r->at += n;
    return v;
}

uint32_t elv_bit_rd_zeros(struct elv_bit_rd *r, uint32_t max)
{
    for (uint32_t n = 0; has(r, 1);) {
        const uint32_t next = (uint32_t)ahead(r);
        const uint32_t run = next != 0 ? elv_lowest_bit(next) : 32;
        if (run > max - n) {
            r->err = run > bits_left(r) ? ELV_ERR_SHORT : ELV_ERR_RANGE;
        } else if (next != 0) {
            r->at += run + 1;
            return n + run;
        } else if (has(r, 32)) {
            r->at += 32;
            n += 32;
        }
    }
    return 0;
}

bool elv_bit_rd_ended(const struct elv_bit_rd *r)
{
    const size_t left = bits_left(r);
    return r->err == ELV_OK && (left == 0 || (left < 8 && ahead(r) == 0));
}
