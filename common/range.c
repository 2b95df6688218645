/* SPDX-License-Identifier: Apache-2.0 */
#include "common/range.h"

#include "common/assert.h"

/* A range is narrowed for every bit, and has 25 bits or more before each. */
static const uint32_t range_min = 1u << 24;
enum { AHEAD = 4, AT_ONCE = 16, LENGTH_BITS = 5 };

/* Where the range of a 0 ends. Neither range is ever empty, since no model stays at an end. */
static uint32_t bound(uint32_t range, uint16_t model) { return (range >> 12) * (model >> 4); }

/* The probability moves by a half of what is left, a quarter twice, an eighth four times, and so on
 * to 1/32, which is nothing below 32 or above 4064: there it stays. */
static void learn(uint16_t *model, unsigned bit)
{
    static const uint8_t speed[16] = {1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5};
    const unsigned seen = *model & 15u, p = *model >> 4;
    const unsigned now = bit ? p - (p >> speed[seen]) : p + ((4096 - p) >> speed[seen]);
    *model = (uint16_t)(now << 4 | (seen < 15 ? seen + 1 : 15));
}

struct elv_range_wr elv_range_wr_of(uint8_t *out, size_t cap)
{
    return (struct elv_range_wr){.at = out, .cap = cap, .range = UINT32_MAX};
}

/* Adds to what was written. The sum of all stays below 1, so a carry finds a byte to stop at. */
static void add(struct elv_range_wr *w, uint32_t v)
{
    w->low += v;
    if (w->low >= v || w->at == NULL || w->err != ELV_OK)
        return;
    size_t i = w->len;
    do
        i--;
    while (++w->at[i] == 0);
}

static void give(struct elv_range_wr *w)
{
    if (w->err == ELV_OK && w->len == w->cap)
        w->err = ELV_ERR_SPACE;
    if (w->err != ELV_OK)
        return;
    if (w->at != NULL)
        w->at[w->len] = (uint8_t)(w->low >> 24);
    w->len++;
}

static void settle(struct elv_range_wr *w)
{
    for (; w->range < range_min; w->range <<= 8, w->low <<= 8)
        give(w);
}

void elv_range_wr_bit(struct elv_range_wr *w, uint16_t *model, unsigned bit)
{
    const uint32_t zero = bound(w->range, *model);
    if (bit)
        add(w, zero);
    w->range = bit ? w->range - zero : zero;
    learn(model, bit);
    settle(w);
}

void elv_range_wr_bits(struct elv_range_wr *w, uint32_t v, unsigned n)
{
    ELV_ASSERT(n <= 32 && (uint64_t)v >> n == 0);
    for (unsigned some; n > 0; n -= some) {
        some = n < AT_ONCE ? n : AT_ONCE;
        w->range >>= some;
        add(w, (v >> (n - some) & ((1u << some) - 1)) * w->range);
        settle(w);
    }
}

void elv_range_wr_number(struct elv_range_wr *w, uint16_t *model, uint32_t number)
{
    ELV_ASSERT(number < UINT32_MAX);
    const uint32_t v = number + 1;
    unsigned len = 0, node = 1;
    while (v >> len > 1)
        len++;
    for (unsigned i = LENGTH_BITS; i-- > 0; node = node << 1 | (len >> i & 1u))
        elv_range_wr_bit(w, &model[node], len >> i & 1u);
    elv_range_wr_bits(w, v - (1u << len), len);
}

/* A byte is enough to name a number in the range, with zeros behind it. */
size_t elv_range_wr_end(struct elv_range_wr *w)
{
    add(w, range_min - 1);
    give(w);
    return w->len;
}

/* The last byte is not the last of a number: the encoder had zeros follow, and no more than that.
 */
static uint32_t take(struct elv_range_rd *r)
{
    if (r->at >= r->in.len + AHEAD - 1 && r->err == ELV_OK)
        r->err = ELV_ERR_SHORT;
    if (r->err != ELV_OK)
        return 0;
    const size_t at = r->at++;
    return at < r->in.len ? r->in.at[at] : 0;
}

struct elv_range_rd elv_range_rd_of(struct elv_bytes in)
{
    struct elv_range_rd r = {.in = in, .range = UINT32_MAX};
    for (unsigned i = 0; i < AHEAD; i++)
        r.code = r.code << 8 | take(&r);
    if (r.err == ELV_OK && r.code >= r.range)
        r.err = ELV_ERR_FORMAT;
    return r;
}

static void settle_rd(struct elv_range_rd *r)
{
    for (; r->range < range_min; r->range <<= 8)
        r->code = r->code << 8 | take(r);
}

unsigned elv_range_rd_bit(struct elv_range_rd *r, uint16_t *model)
{
    if (r->err != ELV_OK)
        return 0;
    const uint32_t zero = bound(r->range, *model);
    const unsigned bit = r->code >= zero;
    r->code = bit ? r->code - zero : r->code;
    r->range = bit ? r->range - zero : zero;
    learn(model, bit);
    settle_rd(r);
    return bit;
}

uint32_t elv_range_rd_bits(struct elv_range_rd *r, unsigned n)
{
    uint32_t v = 0;
    ELV_ASSERT(n <= 32);
    for (unsigned some; n > 0 && r->err == ELV_OK; n -= some) {
        some = n < AT_ONCE ? n : AT_ONCE;
        r->range >>= some;
        const uint32_t part = r->code / r->range;
        r->code -= part * r->range;
        if (part >> some != 0)
            r->err = ELV_ERR_FORMAT;
        v = v << some | part;
        settle_rd(r);
    }
    return r->err == ELV_OK ? v : 0;
}

uint32_t elv_range_rd_number(struct elv_range_rd *r, uint16_t *model)
{
    unsigned node = 1;
    for (unsigned i = 0; i < LENGTH_BITS; i++)
        node = node << 1 | elv_range_rd_bit(r, &model[node]);
    const unsigned len = node - (1u << LENGTH_BITS);
    const uint32_t rest = elv_range_rd_bits(r, len);
    return r->err == ELV_OK ? (1u << len) - 1 + rest : 0;
}

bool elv_range_rd_ended(const struct elv_range_rd *r)
{
    return r->err == ELV_OK && r->at == r->in.len + AHEAD - 1 && r->code < range_min;
}
