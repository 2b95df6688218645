/* SPDX-License-Identifier: Apache-2.0 */
/* common/sha256_plain.c - SHA-256 in portable C. */
#include <string.h>

#include "common/sha256_internal.h"

/* The first 32 bits of the fractional parts of the cube roots of primes. */
const uint32_t elv_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t v, unsigned by) { return v >> by | v << (32 - by); }

static uint32_t load_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The words are not moved along after a round: they take turns in their roles instead. */
static void turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                 uint32_t g, uint32_t *h, uint32_t kw)
{
    const uint32_t t1 = *h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + kw;
    *d += t1;
    *h = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void eight(uint32_t s[8], const uint32_t *k, const uint32_t *w)
{
    turn(s[0], s[1], s[2], &s[3], s[4], s[5], s[6], &s[7], k[0] + w[0]);
    turn(s[7], s[0], s[1], &s[2], s[3], s[4], s[5], &s[6], k[1] + w[1]);
    turn(s[6], s[7], s[0], &s[1], s[2], s[3], s[4], &s[5], k[2] + w[2]);
    turn(s[5], s[6], s[7], &s[0], s[1], s[2], s[3], &s[4], k[3] + w[3]);
    turn(s[4], s[5], s[6], &s[7], s[0], s[1], s[2], &s[3], k[4] + w[4]);
    turn(s[3], s[4], s[5], &s[6], s[7], s[0], s[1], &s[2], k[5] + w[5]);
    turn(s[2], s[3], s[4], &s[5], s[6], s[7], s[0], &s[1], k[6] + w[6]);
    turn(s[1], s[2], s[3], &s[4], s[5], s[6], s[7], &s[0], k[7] + w[7]);
}

/* The next 16 words of the schedule, in the place of those before: 64 bytes of stack, not 256. */
static void extend(uint32_t w[16])
{
    for (unsigned t = 0; t < 16; t++) {
        const uint32_t a = w[(t + 1) % 16], b = w[(t + 14) % 16];
        w[t] += (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[(t + 9) % 16] +
                (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
    }
}

static void block(uint32_t state[8], const uint8_t *p)
{
    uint32_t w[16], s[8];
    memcpy(s, state, sizeof s);
    for (unsigned t = 0; t < 16; t++)
        w[t] = load_be(p + 4 * t);
    for (unsigned t = 0; t < 64; t += 16) {
        if (t > 0)
            extend(w);
        eight(s, elv_sha256_k + t, w);
        eight(s, elv_sha256_k + t + 8, w + 8);
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void elv_sha256_blocks_plain(uint32_t state[8], const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        block(state, p + 64 * i);
}
