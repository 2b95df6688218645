/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/sparse.h"

#define MODE_MASK 31u

/* What is remembered between windows, in `word`: where the reader is, how gaps are coded, the next
 * coordinate coded, counted from the start of the window, its value, and when range coded how many
 * more there are. */
enum { AT, MODE, NEXT, VALUE, MORE, RANGE, CODE };
#define NONE UINT32_MAX

struct reader {
    struct elv_bit_rd bits;
    struct elv_range_rd range; /* one of the two, as the mode says */
};

static struct reader load(const struct elv_decoder *d)
{
    const struct elv_bytes in = {d->in.at, d->in.left};
    struct reader r = {.bits = elv_bit_rd_of(in)};
    r.bits.at = d->word[AT];
    r.range = (struct elv_range_rd){
        .in = in, .at = d->word[AT], .range = d->word[RANGE], .code = d->word[CODE]};
    return r;
}

static void store(struct elv_decoder *d, const struct reader *r)
{
    const bool modelled = d->word[MODE] == ELV_SPARSE_MODELLED;
    d->word[AT] = (uint32_t)(modelled ? r->range.at : r->bits.at);
    d->word[RANGE] = r->range.range;
    d->word[CODE] = r->range.code;
}

static bool read_rice(struct elv_decoder *d, struct elv_bit_rd *r, unsigned value_bits,
                      uint32_t from, uint32_t left)
{
    if (elv_bit_rd_ended(r))
        return true;
    if (left == 0)
        return false;
    d->word[NEXT] = from + elv_rice_get(r, d->word[MODE], left - 1);
    d->word[VALUE] = elv_bit_rd_get(r, value_bits);
    return r->err == ELV_OK;
}

static bool read_modelled(struct elv_decoder *d, struct elv_range_rd *r, unsigned value_bits,
                          uint32_t from, uint32_t left)
{
    if (d->word[MORE] == 0)
        return elv_range_rd_ended(r);
    d->word[MORE]--;
    const uint32_t gap = elv_range_rd_number(r, d->model);
    d->word[VALUE] = elv_range_rd_bits(r, value_bits);
    d->word[NEXT] = from + gap;
    return r->err == ELV_OK && gap < left;
}

/* Reads the next coordinate coded, if there is one. `left` are there from `from` on. */
static bool read_coded(struct elv_decoder *d, struct reader *r, unsigned value_bits, uint32_t from,
                       uint32_t left)
{
    d->word[NEXT] = NONE;
    return d->word[MODE] == ELV_SPARSE_MODELLED
               ? read_modelled(d, &r->range, value_bits, from, left)
               : read_rice(d, &r->bits, value_bits, from, left);
}

static bool begin_modelled(struct elv_decoder *d, struct reader *r)
{
    elv_sparse_model(d->model);
    r->range = elv_range_rd_of(r->range.in);
    d->word[MORE] = elv_range_rd_bits(&r->range, ELV_SPARSE_COUNT_BITS);
    return d->word[MORE] > 0;
}

enum elv_err elv_sparse_open(struct elv_decoder *d, unsigned value_bits, float most)
{
    const uint32_t head = elv_rd_u32(&d->in), bits = head & ~MODE_MASK;
    d->word[MODE] = head & MODE_MASK;
    if (d->in.err != ELV_OK || (d->in.left == 0 && head != 0))
        return ELV_ERR_FORMAT;
    memcpy(&d->scale, &bits, sizeof bits);
    if (bits > INT32_MAX || !(d->scale <= most))
        return ELV_ERR_RANGE;
    struct reader r = load(d);
    if (d->word[MODE] == ELV_SPARSE_MODELLED && !begin_modelled(d, &r))
        return ELV_ERR_FORMAT;
    const bool fine = read_coded(d, &r, value_bits, 0, d->left);
    store(d, &r);
    return fine ? ELV_OK : ELV_ERR_FORMAT;
}

enum elv_err elv_sparse_next(struct elv_decoder *d, unsigned value_bits,
                             float (*of)(uint32_t bits, float magnitude), float *out, uint32_t cap)
{
    struct reader r = load(d);
    memset(out, 0, cap * sizeof *out);
    while (d->word[NEXT] < cap) {
        const uint32_t at = d->word[NEXT];
        out[at] = of(d->word[VALUE], d->scale);
        if (!read_coded(d, &r, value_bits, at + 1, d->left - (at + 1)))
            return ELV_ERR_FORMAT;
    }
    if (d->word[NEXT] != NONE)
        d->word[NEXT] -= cap;
    store(d, &r);
    if (cap == d->left) /* nothing is left over: the last coordinate coded came before the end */
        elv_rd_bytes(&d->in, d->in.left);
    return ELV_OK;
}
