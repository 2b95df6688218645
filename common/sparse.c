/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sparse.h"

#include <string.h>

#include "common/assert.h"
#include "common/chunk.h"

static const float magnitude_min = 0x1p-100f;
#define MODE_MASK 31u

/* A chunk ends before a coordinate that has no room with any parameter k. With that one, then, the
 * h coordinates of it take more than its bits B: (h + 1) (k + 1 + value) + (gaps >> k) > B. Summed
 * over all chunks but the last, where each coordinate counts once and the one that did not fit once
 * more, (chunks - 1) (B - k - 1 - value) < coded (k + 1 + value) + (n >> k). True for every k, so
 * the best one gives the bound. A chunk that is range coded because it holds more leaves less to
 * the next ones. */
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

/* Gaps as Rice codes, one parameter for all. */
struct rice {
    struct elv_rice_sums sums;
    unsigned k; /* the last that had room */
    uint32_t bits, value_bits;
};

static uint32_t rice_bits(const struct rice *r)
{
    return elv_rice_bits(&r->sums, r->k) + r->sums.n * r->value_bits;
}

static bool rice_takes(struct rice *r, uint32_t gap)
{
    elv_rice_add(&r->sums, gap);
    if (rice_bits(r) <= r->bits)
        return true;
    r->k = elv_rice_best(&r->sums);
    if (rice_bits(r) <= r->bits)
        return true;
    elv_rice_drop(&r->sums, gap);
    return false;
}

static size_t rice_len(struct rice *r)
{
    r->k = elv_rice_best(&r->sums);
    return (rice_bits(r) + 7) / 8;
}

/* Gaps range coded. */
struct modelled {
    struct elv_range_wr w; /* only counts bytes */
    uint16_t model[ELV_SPARSE_MODEL];
    size_t room, len; /* len: of all that had room */
    uint32_t value_bits;
};

static void modelled_begin(struct modelled *m, size_t room, uint32_t value_bits)
{
    *m = (struct modelled){
        .w = elv_range_wr_of(NULL, SIZE_MAX), .room = room, .value_bits = value_bits};
    elv_sparse_model(m->model);
    elv_range_wr_bits(&m->w, 0, ELV_SPARSE_COUNT_BITS);
}

static bool modelled_takes(struct modelled *m, uint32_t gap)
{
    elv_range_wr_number(&m->w, m->model, gap);
    elv_range_wr_bits(&m->w, 0, m->value_bits);
    if (m->w.len >= m->room)
        return false;
    m->len = m->w.len + 1;
    return true;
}

/* What machines may flush to zero counts as that everywhere. */
static float magnitude_of(float v)
{
    const float size = v < 0.0f ? -v : v;
    return size < magnitude_min ? 0.0f : size;
}

static void take(struct elv_sparse *s, float v)
{
    const float size = magnitude_of(v);
    s->n_coded++;
    s->sum += (double)size;
    s->largest = size > s->largest ? size : s->largest;
}

/* Fills both ways at once, since only the end shows which holds more. */
static struct elv_sparse fill(const struct elv_sparse_part *part, size_t room)
{
    struct rice rice = {.bits = 8 * (uint32_t)room, .value_bits = part->value_bits};
    struct modelled modelled;
    modelled_begin(&modelled, room, part->value_bits);
    struct elv_select_scan scan = elv_select_from(part->plan, part->v, part->n, part->first);
    struct elv_sparse all = {0}, by_rice = {0}, by_model = {0};
    bool rice_full = false, model_full = false;
    for (uint32_t end = part->first; !(rice_full && model_full);) {
        const uint32_t at = elv_select_next(&scan);
        all.count = at - part->first;
        if (!rice_full && (at == part->n || !rice_takes(&rice, at - end)))
            by_rice = all, rice_full = true;
        if (!model_full && (at == part->n || !modelled_takes(&modelled, at - end)))
            by_model = all, model_full = true;
        if (at < part->n)
            take(&all, part->v[at]);
        end = at + 1;
    }
    const size_t len = rice_len(&rice);
    by_rice.rice = rice.k;
    by_model.rice = ELV_SPARSE_MODELLED;
    return by_model.count > by_rice.count ||
                   (by_model.count == by_rice.count && modelled.len < len && by_model.n_coded > 0)
               ? by_model
               : by_rice;
}

enum elv_err elv_sparse_fill(struct elv_sparse *s, const struct elv_sparse_part *part, size_t cap)
{
    ELV_ASSERT(part->first < part->n && part->plan != NULL);
    if (cap < ELV_SPARSE_HEAD_LEN)
        return ELV_ERR_SPACE;
    const size_t most = cap < ELV_CHUNK_PAYLOAD_MAX ? cap : ELV_CHUNK_PAYLOAD_MAX;
    *s = fill(part, most - ELV_SPARSE_HEAD_LEN);
    return s->count == 0 ? ELV_ERR_SPACE : ELV_OK;
}

void elv_sparse_model(uint16_t model[ELV_SPARSE_MODEL])
{
    for (unsigned i = 0; i < ELV_SPARSE_MODEL; i++)
        model[i] = ELV_RANGE_MODEL_NEW;
}

float elv_sparse_magnitude(float magnitude)
{
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits &= ~MODE_MASK;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude < magnitude_min ? 0.0f : magnitude;
}

/* What to write, beside the part. */
struct writing {
    const struct elv_sparse *s;
    float magnitude;
    uint32_t (*of)(float v, float magnitude);
};

static size_t write_rice(const struct writing *w, const struct elv_sparse_part *part, uint8_t *out,
                         size_t cap)
{
    struct elv_bit_wr bits = elv_bit_wr_of(out, cap);
    struct elv_select_scan scan = elv_select_from(part->plan, part->v, part->n, part->first);
    uint32_t end = part->first;
    for (uint32_t i = 0; i < w->s->n_coded; i++) {
        const uint32_t at = elv_select_next(&scan);
        elv_rice_put(&bits, at - end, w->s->rice);
        elv_bit_wr_put(&bits, w->of(part->v[at], w->magnitude), part->value_bits);
        end = at + 1;
    }
    const size_t len = elv_bit_wr_end(&bits);
    ELV_ASSERT(bits.err == ELV_OK);
    return len;
}

static size_t write_modelled(const struct writing *w, const struct elv_sparse_part *part,
                             uint8_t *out, size_t cap)
{
    uint16_t model[ELV_SPARSE_MODEL];
    struct elv_range_wr range = elv_range_wr_of(out, cap);
    struct elv_select_scan scan = elv_select_from(part->plan, part->v, part->n, part->first);
    uint32_t end = part->first;
    elv_sparse_model(model);
    elv_range_wr_bits(&range, w->s->n_coded, ELV_SPARSE_COUNT_BITS);
    for (uint32_t i = 0; i < w->s->n_coded; i++) {
        const uint32_t at = elv_select_next(&scan);
        elv_range_wr_number(&range, model, at - end);
        elv_range_wr_bits(&range, w->of(part->v[at], w->magnitude), part->value_bits);
        end = at + 1;
    }
    const size_t len = elv_range_wr_end(&range);
    ELV_ASSERT(range.err == ELV_OK);
    return len;
}

size_t elv_sparse_write(const struct elv_sparse *s, const struct elv_sparse_part *part,
                        float magnitude, uint32_t (*of)(float v, float magnitude), uint8_t *out,
                        size_t cap)
{
    const struct writing w = {s, magnitude, of};
    struct elv_wr head = elv_wr_of(out, cap);
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    elv_wr_u32(&head, bits | s->rice);
    const size_t len = s->rice == ELV_SPARSE_MODELLED ? write_modelled(&w, part, head.at, head.left)
                                                      : write_rice(&w, part, head.at, head.left);
    return ELV_SPARSE_HEAD_LEN + len;
}
