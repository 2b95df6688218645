/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sha256.h"

#include <string.h>

#include "common/cursor.h"
#include "common/sha256_internal.h"

static void store_be(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

void elv_sha256_init(struct elv_sha256 *h)
{
    *h = (struct elv_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                       0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void elv_sha256_update(struct elv_sha256 *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    const size_t held = (size_t)(h->len % 64);
    if (len == 0)
        return; /* `data` may be NULL */
    h->len += len;
    if (held > 0) {
        const size_t n = len < 64 - held ? len : 64 - held;
        memcpy(h->block + held, p, n);
        if (held + n < 64)
            return;
        elv_sha256_blocks(h->state, h->block, 1);
        p += n;
        len -= n;
    }
    const size_t n_blocks = len / 64;
    if (n_blocks > 0)
        elv_sha256_blocks(h->state, p, n_blocks);
    if (len % 64 > 0)
        memcpy(h->block, p + 64 * n_blocks, len % 64);
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

void elv_sha256_update_f32(struct elv_sha256 *h, const float *v, size_t n)
{
    while (n > 0) {
        uint8_t bytes[512];
        const size_t some = n < sizeof bytes / 4 ? n : sizeof bytes / 4;
        struct elv_wr w = elv_wr_of(bytes, sizeof bytes);
        elv_wr_f32s(&w, v, some);
        elv_sha256_update(h, bytes, w.need);
        v += some;
        n -= some;
    }
}

void elv_sha256_f32(const float *v, size_t n, uint8_t out[ELV_SHA256_LEN])
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    elv_sha256_update_f32(&h, v, n);
    elv_sha256_final(&h, out);
}
