/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rice.h"

#include "common/assert.h"

void elv_rice_put(struct elv_bit_wr *w, uint32_t v, unsigned k)
{
    ELV_ASSERT(k <= ELV_RICE_MAX);
    elv_bit_wr_zeros(w, v >> k);
    elv_bit_wr_put(w, v & ((1u << k) - 1), k);
}

uint32_t elv_rice_get(struct elv_bit_rd *r, unsigned k, uint32_t max)
{
    ELV_ASSERT(k <= ELV_RICE_MAX);
    const uint32_t high = elv_bit_rd_zeros(r, max >> k);
    const uint32_t v = high << k | elv_bit_rd_get(r, k);
    if (r->err == ELV_OK && v > max)
        r->err = ELV_ERR_RANGE;
    return r->err == ELV_OK ? v : 0;
}

void elv_rice_add(struct elv_rice_sums *s, uint32_t v)
{
    s->n++;
    for (unsigned k = 0; v >> k != 0; k++)
        s->of[k] += v >> k;
}

void elv_rice_drop(struct elv_rice_sums *s, uint32_t v)
{
    ELV_ASSERT(s->n > 0);
    s->n--;
    for (unsigned k = 0; v >> k != 0; k++)
        s->of[k] -= v >> k;
}

uint32_t elv_rice_bits(const struct elv_rice_sums *s, unsigned k)
{
    return s->of[k] + s->n * (k + 1);
}

unsigned elv_rice_best(const struct elv_rice_sums *s)
{
    unsigned best = 0;
    for (unsigned k = 1; k <= ELV_RICE_MAX; k++)
        if (elv_rice_bits(s, k) < elv_rice_bits(s, best))
            best = k;
    return best;
}
