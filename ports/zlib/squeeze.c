/* SPDX-License-Identifier: Apache-2.0 */
/* ports/zlib/squeeze.c - zlib behind struct elv_squeeze. */
#define ZLIB_CONST /* input is not written to */
#include "ports/zlib/squeeze.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    /* A chunk is about a kilobyte, so a window of 4 KiB sees all of it. */
    WINDOW_BITS = 12,
    MEMORY_LEVEL = 6,
    LEVEL = 6,
    /* What zlib asks for in all: 54 KiB to deflate, 7 to inflate, 32 for the window of an input
     * that breaks off, and a margin for other versions of it. */
    POOL = 112 * 1024,
};

struct elv_zlib {
    z_stream deflate, inflate;
    size_t used;
    _Alignas(16) uint8_t pool[POOL];
};

static void *take(void *self, unsigned n, unsigned size)
{
    struct elv_zlib *z = self;
    const size_t want = ((size_t)n * size + 15) & ~(size_t)15;
    if (size != 0 && n > POOL / size)
        return NULL;
    if (want > POOL - z->used)
        return NULL;
    void *at = z->pool + z->used;
    z->used += want;
    return at;
}

static void keep(void *self, void *at)
{
    (void)self; /* all goes back at once, when the whole is closed */
    (void)at;
}

enum elv_err elv_zlib_open(struct elv_zlib **zlib)
{
    struct elv_zlib *z = calloc(1, sizeof *z);
    *zlib = NULL;
    if (z == NULL)
        return ELV_ERR_MEMORY;
    z->deflate = (z_stream){.zalloc = take, .zfree = keep, .opaque = z};
    z->inflate = (z_stream){.zalloc = take, .zfree = keep, .opaque = z};
    if (deflateInit2(&z->deflate, LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        inflateInit2(&z->inflate, -MAX_WBITS) != Z_OK) {
        free(z);
        return ELV_ERR_MEMORY;
    }
    *zlib = z;
    return ELV_OK;
}

void elv_zlib_close(struct elv_zlib *z) { free(z); }

/* Zlib wants pointers even where it has nothing to read or write. */
static void point(z_stream *s, struct elv_bytes in, uint8_t *out, size_t cap)
{
    static const uint8_t none[1];
    static uint8_t nowhere[1];
    s->next_in = in.len != 0 ? in.at : none;
    s->avail_in = (unsigned)in.len;
    s->next_out = cap != 0 ? out : nowhere;
    s->avail_out = (unsigned)cap;
}

static bool too_long(size_t a, size_t b) { return a > INT_MAX || b > INT_MAX; }

static enum elv_err squeeze(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len)
{
    struct elv_zlib *z = self;
    if (too_long(cap, in.len))
        return ELV_ERR_ARG;
    deflateReset(&z->deflate);
    point(&z->deflate, in, out, cap);
    int end = deflate(&z->deflate, Z_FINISH);
    const size_t made = cap - z->deflate.avail_out;
    if (end == Z_OK && z->deflate.avail_out == 0) {
        /* Zlib says that it is done only when it has room left, so offer it some. */
        uint8_t beyond[1];
        z->deflate.next_out = beyond;
        z->deflate.avail_out = sizeof beyond;
        end = deflate(&z->deflate, Z_FINISH);
        if (z->deflate.avail_out == 0)
            return ELV_ERR_SPACE;
    }
    if (end != Z_STREAM_END)
        return ELV_ERR_SPACE;
    *len = made;
    return ELV_OK;
}

static enum elv_err expand(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len)
{
    struct elv_zlib *z = self;
    if (too_long(cap, in.len))
        return ELV_ERR_ARG;
    inflateReset(&z->inflate);
    point(&z->inflate, in, out, cap);
    const int end = inflate(&z->inflate, Z_FINISH);
    if (end == Z_STREAM_END && z->inflate.avail_in == 0) {
        *len = cap - z->inflate.avail_out;
        return ELV_OK;
    }
    return end == Z_BUF_ERROR && z->inflate.avail_out == 0 ? ELV_ERR_SPACE : ELV_ERR_FORMAT;
}

struct elv_squeeze elv_zlib_squeeze(struct elv_zlib *zlib)
{
    return (struct elv_squeeze){zlib, squeeze, expand};
}
