/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of primes. */
static const uint32_t k[64] = {
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

static void store_be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* FIPS 180-4, 6.2.2. The schedule lives in a ring of 16 words: 64 bytes of stack, not 256. The
 * working variables stay in registers; an array that is shifted would not. */
static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (unsigned t = 0; t < 64; t++) {
        if (t < 16) {
            w[t] = load_be(block + 4 * t);
        } else {
            const uint32_t x = w[(t + 1) % 16], y = w[(t + 14) % 16];
            w[t % 16] += (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[(t + 9) % 16] +
                         (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
        }
        const uint32_t t1 =
            h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[t] + w[t % 16];
        const uint32_t t2 =
            (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; i++)
        state[i] += sum[i];
}

void elv_sha256_init(struct elv_sha256 *h)
{
    *h = (struct elv_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                       0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void elv_sha256_update(struct elv_sha256 *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        const size_t held = (size_t)(h->len % 64);
        const size_t n = len < 64 - held ? len : 64 - held;
        if (n == 64) {
            compress(h->state, p);
        } else {
            memcpy(h->block + held, p, n);
            if (held + n == 64)
                compress(h->state, h->block);
        }
        h->len += n;
        p += n;
        len -= n;
    }
}

void elv_sha256_final(struct elv_sha256 *h, uint8_t out[ELV_SHA256_LEN])
{
    const uint64_t bits = h->len * 8;
    const size_t held = (size_t)(h->len % 64);
    static const uint8_t padding[64] = {0x80};
    elv_sha256_update(h, padding, held < 56 ? 56 - held : 120 - held);
    uint8_t length[8];
    store_be(length, (uint32_t)(bits >> 32));
    store_be(length + 4, (uint32_t)bits);
    elv_sha256_update(h, length, sizeof length);
    for (unsigned i = 0; i < 8; i++)
        store_be(out + 4 * i, h->state[i]);
}

void elv_sha256(const void *data, size_t len, uint8_t out[ELV_SHA256_LEN])
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    elv_sha256_update(&h, data, len);
    elv_sha256_final(&h, out);
}

void elv_sha256_f32(const float *v, size_t n, uint8_t out[ELV_SHA256_LEN])
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    while (n > 0) {
        uint8_t block[64];
        const size_t some = n < 16 ? n : 16;
        for (size_t i = 0; i < some; i++) {
            uint32_t bits;
            memcpy(&bits, v + i, sizeof bits);
            for (unsigned b = 0; b < 4; b++)
                block[4 * i + b] = (uint8_t)(bits >> (8 * b));
        }
        elv_sha256_update(&h, block, 4 * some);
        v += some;
        n -= some;
    }
    elv_sha256_final(&h, out);
}
