/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cursor.h"

#include <string.h>

struct elv_rd elv_rd_of(struct elv_bytes in)
{
    return (struct elv_rd){.at = in.at, .left = in.len};
}

/* Every read passes through here, so there is one bounds check to get right. */
static const uint8_t *take(struct elv_rd *r, size_t len)
{
    if (r->err == ELV_OK && len > r->left)
        r->err = ELV_ERR_SHORT;
    if (r->err != ELV_OK || len == 0)
        return NULL;
    const uint8_t *at = r->at;
    r->at += len;
    r->left -= len;
    return at;
}

static uint64_t take_le(struct elv_rd *r, unsigned len)
{
    const uint8_t *p = take(r, len);
    uint64_t v = 0;
    for (unsigned i = 0; p && i < len; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t elv_rd_u8(struct elv_rd *r) { return (uint8_t)take_le(r, 1); }

uint16_t elv_rd_u16(struct elv_rd *r) { return (uint16_t)take_le(r, 2); }

uint32_t elv_rd_u32(struct elv_rd *r) { return (uint32_t)take_le(r, 4); }

uint64_t elv_rd_u64(struct elv_rd *r) { return take_le(r, 8); }

float elv_rd_f32(struct elv_rd *r)
{
    const uint32_t bits = elv_rd_u32(r);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void elv_rd_f32s(struct elv_rd *r, float *v, size_t n)
{
    const uint8_t *p = take(r, n <= SIZE_MAX / 4 ? 4 * n : SIZE_MAX); /* nothing is that long */
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        if (p)
            bits = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 |
                   (uint32_t)p[4 * i + 3] << 24;
        memcpy(v + i, &bits, sizeof bits);
    }
}

struct elv_bytes elv_rd_bytes(struct elv_rd *r, size_t len)
{
    const uint8_t *p = take(r, len);
    return p ? (struct elv_bytes){.at = p, .len = len} : (struct elv_bytes){0};
}

void elv_rd_fail(struct elv_rd *r, enum elv_err err)
{
    if (r->err == ELV_OK)
        r->err = err;
}

struct elv_wr elv_wr_of(uint8_t *out, size_t cap)
{
    return (struct elv_wr){.at = out, .left = cap};
}

static uint8_t *give(struct elv_wr *w, size_t len)
{
    w->need += len;
    if (w->err == ELV_OK && len > w->left)
        w->err = ELV_ERR_SPACE;
    if (w->err != ELV_OK || len == 0)
        return NULL;
    uint8_t *at = w->at;
    w->at += len;
    w->left -= len;
    return at;
}

static void give_le(struct elv_wr *w, uint64_t v, unsigned len)
{
    uint8_t *p = give(w, len);
    for (unsigned i = 0; p && i < len; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void elv_wr_u8(struct elv_wr *w, uint8_t v) { give_le(w, v, 1); }

void elv_wr_u16(struct elv_wr *w, uint16_t v) { give_le(w, v, 2); }

void elv_wr_u32(struct elv_wr *w, uint32_t v) { give_le(w, v, 4); }

void elv_wr_u64(struct elv_wr *w, uint64_t v) { give_le(w, v, 8); }

void elv_wr_f32(struct elv_wr *w, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    elv_wr_u32(w, bits);
}

void elv_wr_f32s(struct elv_wr *w, const float *v, size_t n)
{
    uint8_t *p = give(w, 4 * n);
    for (size_t i = 0; p && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        for (unsigned b = 0; b < 4; b++)
            p[4 * i + b] = (uint8_t)(bits >> (8 * b));
    }
}

void elv_wr_bytes(struct elv_wr *w, struct elv_bytes v)
{
    uint8_t *p = give(w, v.len);
    if (p)
        memcpy(p, v.at, v.len);
}
