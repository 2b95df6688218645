/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sparse.h"

#include <string.h>

#include "common/assert.h"
#include "common/chunk.h"

static const float magnitude_min = 0x1p-100f;
#define RICE_MASK 31u

/* What a decoder remembers between windows, in `word`. */
enum { AT, RICE, NEXT, VALUE };
#define NONE UINT32_MAX

/* A chunk ends before a coordinate that has no room with any parameter k. With that one, then, the
 * h coordinates of it take more than its bits B: (h + 1) (k + 1 + value) + (gaps >> k) > B. Summed
 * over all chunks but the last, where each coordinate counts once and the one that did not fit once
 * more, (chunks - 1) (B - k - 1 - value) < coded (k + 1 + value) + (n >> k). True for every k, so
 * the best one gives the bound. */
uint32_t elv_sparse_chunks_max(uint32_t n, float fraction, unsigned value_bits)
{
    const uint64_t room = 8 * (ELV_CHUNK_PAYLOAD_MAX - ELV_SPARSE_HEAD_LEN);
    const uint64_t coded = elv_select_count(fraction, n);
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k <= ELV_RICE_MAX; k++) {
        const uint64_t each = k + 1 + value_bits;
        const uint64_t most = (coded * each + (n >> k)) / (room - each) + 1;
        least = most < least ? most : least;
    }
    return (uint32_t)least; /* below n / 100 */
}

enum elv_err elv_sparse_plan(struct elv_codec_plan *p, const float *v, uint32_t n,
                             const struct elv_codec_arg *arg, uint32_t budget)
{
    return elv_select_top(p, v, n, elv_select_count(arg->param, n), budget);
}

struct room {
    struct elv_rice_sums sums;
    unsigned k; /* the last that did */
    uint32_t bits, value_bits;
};

static bool fits(struct room *r)
{
    const uint32_t values = r->sums.n * r->value_bits;
    if (values <= r->bits && elv_rice_bits(&r->sums, r->k) <= r->bits - values)
        return true;
    r->k = elv_rice_best(&r->sums);
    return values <= r->bits && elv_rice_bits(&r->sums, r->k) <= r->bits - values;
}

/* What machines may flush to zero counts as that everywhere. */
static float magnitude_of(float v)
{
    const float size = v < 0.0f ? -v : v;
    return size < magnitude_min ? 0.0f : size;
}

enum elv_err elv_sparse_fill(struct elv_sparse *s, const struct elv_codec_plan *plan,
                             const float *v, uint32_t n, uint32_t first, unsigned value_bits,
                             size_t cap)
{
    ELV_ASSERT(first < n && plan != NULL);
    if (cap < ELV_SPARSE_HEAD_LEN)
        return ELV_ERR_SPACE;
    const size_t most = cap < ELV_CHUNK_PAYLOAD_MAX ? cap : ELV_CHUNK_PAYLOAD_MAX;
    struct room room = {.bits = 8 * (uint32_t)(most - ELV_SPARSE_HEAD_LEN),
                        .value_bits = value_bits};
    *s = (struct elv_sparse){0};
    struct elv_select_scan scan = elv_select_from(plan, v, n, first);
    uint32_t end = first, at;
    while ((at = elv_select_next(&scan)) < n) {
        elv_rice_add(&room.sums, at - end);
        if (!fits(&room)) {
            elv_rice_drop(&room.sums, at - end);
            break;
        }
        const float size = magnitude_of(v[at]);
        s->sum += (double)size;
        s->largest = size > s->largest ? size : s->largest;
        end = at + 1;
    }
    s->count = at - first;
    s->n_coded = room.sums.n;
    s->rice = elv_rice_best(&room.sums);
    return s->count == 0 ? ELV_ERR_SPACE : ELV_OK;
}

float elv_sparse_magnitude(float magnitude)
{
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits &= ~RICE_MASK;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude < magnitude_min ? 0.0f : magnitude;
}

size_t elv_sparse_write(const struct elv_sparse *s, const struct elv_codec_plan *plan,
                        const float *v, uint32_t n, uint32_t first, unsigned value_bits,
                        float magnitude, uint32_t (*of)(float v, float magnitude), uint8_t *out,
                        size_t cap)
{
    struct elv_bit_wr w = elv_bit_wr_of(out, cap);
    uint32_t head;
    memcpy(&head, &magnitude, sizeof head);
    elv_bit_wr_put(&w, head | s->rice, 32);
    struct elv_select_scan scan = elv_select_from(plan, v, n, first);
    uint32_t end = first;
    for (uint32_t i = 0; i < s->n_coded; i++) {
        const uint32_t at = elv_select_next(&scan);
        elv_rice_put(&w, at - end, s->rice);
        elv_bit_wr_put(&w, of(v[at], magnitude), value_bits);
        end = at + 1;
    }
    const size_t len = elv_bit_wr_end(&w);
    ELV_ASSERT(w.err == ELV_OK);
    return len;
}

/* Reads the next coordinate coded, with `left` of them from where the last one was. */
static bool read_coded(struct elv_decoder *d, struct elv_bit_rd *r, unsigned value_bits,
                       uint32_t from, uint32_t left)
{
    d->word[NEXT] = NONE;
    if (elv_bit_rd_ended(r))
        return true;
    if (left == 0)
        return false;
    d->word[NEXT] = from + elv_rice_get(r, d->word[RICE], left - 1);
    d->word[VALUE] = elv_bit_rd_get(r, value_bits);
    return r->err == ELV_OK;
}

enum elv_err elv_sparse_open(struct elv_decoder *d, unsigned value_bits, float most)
{
    const uint32_t head = elv_rd_u32(&d->in), bits = head & ~RICE_MASK;
    d->word[RICE] = head & RICE_MASK;
    if (d->in.err != ELV_OK || d->word[RICE] > ELV_RICE_MAX || (d->in.left == 0 && head != 0))
        return ELV_ERR_FORMAT;
    memcpy(&d->scale, &bits, sizeof bits);
    if (bits > INT32_MAX || !(d->scale <= most))
        return ELV_ERR_RANGE;
    struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){d->in.at, d->in.left});
    const bool fine = read_coded(d, &r, value_bits, 0, d->left);
    d->word[AT] = (uint32_t)r.at;
    return fine ? ELV_OK : ELV_ERR_FORMAT;
}

enum elv_err elv_sparse_next(struct elv_decoder *d, unsigned value_bits,
                             float (*of)(uint32_t bits, float magnitude), float *out, uint32_t cap)
{
    struct elv_bit_rd r = elv_bit_rd_of((struct elv_bytes){d->in.at, d->in.left});
    r.at = d->word[AT];
    memset(out, 0, cap * sizeof *out);
    while (d->word[NEXT] < cap) {
        const uint32_t at = d->word[NEXT];
        out[at] = of(d->word[VALUE], d->scale);
        if (!read_coded(d, &r, value_bits, at + 1, d->left - (at + 1)))
            return ELV_ERR_FORMAT;
    }
    if (d->word[NEXT] != NONE)
        d->word[NEXT] -= cap;
    d->word[AT] = (uint32_t)r.at;
    if (cap == d->left) /* nothing is left over: the last coordinate coded came before the end */
        elv_rd_bytes(&d->in, d->in.left);
    return ELV_OK;
}
