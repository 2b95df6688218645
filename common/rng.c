/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rng.h"

#include <float.h>
#include <math.h>

#include "common/assert.h"
#include "common/exact.h"

/* Wider intermediates (x87) would round twice and change the last bit. */
_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated as float");

/* The constants of Philox4x32: two multipliers, and what the keys grow by. */
#define M0 0xD2511F53u
#define M1 0xCD9E8D57u
#define W0 0x9E3779B9u /* golden ratio */
#define W1 0xBB67AE85u /* sqrt(3) - 1 */

void elv_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (unsigned round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)M0 * c0, p1 = (uint64_t)M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += W0;
        k1 += W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Every part of the name sits in the counter or the key, so two streams never share a block. */
static void draw_block(struct elv_rng *r)
{
    const uint64_t block = r->at / 4;
    const uint32_t key[2] = {(uint32_t)r->key.seed, (uint32_t)(r->key.seed >> 32)};
    const uint32_t counter[4] = {
        (uint32_t)block,
        ((uint32_t)(block >> 32) & 0xFFFFFFu) | (uint32_t)r->key.purpose << 24,
        r->key.round,
        r->key.client,
    };
    elv_philox(r->block, counter, key);
}

struct elv_rng elv_rng_of(struct elv_rng_key key)
{
    ELV_ASSERT((unsigned)key.purpose <= 255);
    return (struct elv_rng){.key = key};
}

void elv_rng_seek(struct elv_rng *r, uint64_t at)
{
    r->at = at;
    if (at % 4 != 0)
        draw_block(r);
}

uint32_t elv_rng_u32(struct elv_rng *r)
{
    const unsigned word = (unsigned)(r->at % 4);
    if (word == 0)
        draw_block(r);
    r->at++;
    return r->block[word];
}

enum { WIDE = 32 };

/* Many blocks side by side, for compilers to make vectors of: the words of one are a chain of
 * multiplications, each of which waits for the one before. */
static void draw_wide(const struct elv_rng *r, uint32_t out[4 * WIDE])
{
    uint32_t c0[WIDE], c1[WIDE], c2[WIDE], c3[WIDE];
    uint32_t k0 = (uint32_t)r->key.seed, k1 = (uint32_t)(r->key.seed >> 32);
    for (uint32_t i = 0; i < WIDE; i++) {
        const uint64_t block = r->at / 4 + i;
        c0[i] = (uint32_t)block;
        c1[i] = ((uint32_t)(block >> 32) & 0xFFFFFFu) | (uint32_t)r->key.purpose << 24;
        c2[i] = r->key.round;
        c3[i] = r->key.client;
    }
    for (unsigned round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < WIDE; i++) {
            const uint64_t p0 = (uint64_t)M0 * c0[i], p1 = (uint64_t)M1 * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += W0;
        k1 += W1;
    }
    for (uint32_t i = 0; i < WIDE; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

void elv_rng_words(struct elv_rng *r, uint32_t *out, uint32_t n)
{
    for (; n > 0 && (r->at % 4 != 0 || n < 4 * WIDE); n--)
        *out++ = elv_rng_u32(r);
    for (; n >= 4 * WIDE; n -= 4 * WIDE, out += 4 * WIDE, r->at += 4 * WIDE)
        draw_wide(r, out);
    for (; n > 0; n--)
        *out++ = elv_rng_u32(r);
}

uint64_t elv_rng_u64(struct elv_rng *r)
{
    const uint64_t low = elv_rng_u32(r);
    return low | (uint64_t)elv_rng_u32(r) << 32;
}

uint32_t elv_rng_below(struct elv_rng *r, uint32_t n)
{
    ELV_ASSERT(n >= 1);
    uint64_t wide = (uint64_t)elv_rng_u32(r) * n;
    if ((uint32_t)wide < n) {
        const uint32_t unfair =
            (0u - n) % n;               /* 2^32 mod n: so many low words come once too often */
        while ((uint32_t)wide < unfair) /* each turn ends it with a chance above one half */
            wide = (uint64_t)elv_rng_u32(r) * n;
    }
    return (uint32_t)(wide >> 32);
}

float elv_rng_unit(struct elv_rng *r) { return (float)(elv_rng_u32(r) >> 8) * 0x1p-24f; }

/* Uniform in [-1, 1). */
static float signed_unit(struct elv_rng *r)
{
    return (float)((int32_t)(elv_rng_u32(r) >> 8) - (1 << 23)) * 0x1p-23f;
}

float elv_rng_normal(struct elv_rng *r)
{
    float u, s;
    do { /* a point in the unit disc; each turn ends it with a chance of pi / 4 */
        u = signed_unit(r);
        const float v = signed_unit(r);
        s = u * u + v * v;
    } while (s >= 1.0f || s == 0.0f);
    return u * sqrtf(-2.0f * elv_ln(s) / s);
}

void elv_rng_shuffle(struct elv_rng *r, uint32_t *at, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = elv_rng_below(r, i);
        const uint32_t kept = at[i - 1];
        at[i - 1] = at[j];
        at[j] = kept;
    }
}
