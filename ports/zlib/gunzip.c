/* SPDX-License-Identifier: Apache-2.0 */
/* ports/zlib/gunzip.c - whole gzip files. */
#define ZLIB_CONST /* input is not written to */
#include "ports/zlib/squeeze.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct unpacked {
    uint8_t *at;
    size_t len, cap;
};

static enum elv_err make_room(struct unpacked *u, size_t limit)
{
    size_t cap = u->cap < 65536 ? 65536 : u->cap * 2;
    if (cap > limit)
        cap = limit;
    if (u->len == limit)
        return ELV_ERR_SPACE;
    uint8_t *at = realloc(u->at, cap);
    if (at == NULL)
        return ELV_ERR_MEMORY;
    u->at = at;
    u->cap = cap;
    return ELV_OK;
}

/* One member; zlib checks its checksum and length. */
static enum elv_err unpack_member(z_stream *s, struct unpacked *u, size_t limit)
{
    uint8_t beyond[1]; /* lets zlib see the end of a file that fills `limit` exactly */
    for (;;) {
        const bool full = u->len == limit;
        if (!full && u->len == u->cap) {
            const enum elv_err err = make_room(u, limit);
            if (err != ELV_OK)
                return err;
        }
        const size_t room = full ? 1 : u->cap - u->len;
        const unsigned step = room < 1u << 30 ? (unsigned)room : 1u << 30;
        s->next_out = full ? beyond : u->at + u->len;
        s->avail_out = step;
        const int end = inflate(s, Z_NO_FLUSH);
        const unsigned got = step - s->avail_out;
        if (full && got != 0)
            return ELV_ERR_SPACE;
        u->len += full ? 0 : got;
        if (end == Z_STREAM_END)
            return ELV_OK;
        if (end != Z_OK || (got == 0 && s->avail_in == 0))
            return end == Z_MEM_ERROR ? ELV_ERR_MEMORY : ELV_ERR_FORMAT;
    }
}

static enum elv_err unpack(z_stream *s, struct unpacked *u, size_t limit)
{
    do {
        const enum elv_err err = unpack_member(s, u, limit);
        if (err != ELV_OK)
            return err;
        if (s->avail_in != 0 && inflateReset(s) != Z_OK)
            return ELV_ERR_FORMAT;
    } while (s->avail_in != 0);
    return ELV_OK;
}

enum elv_err elv_zlib_gunzip(struct elv_bytes in, size_t cap, uint8_t **out, size_t *len)
{
    z_stream s = {0};
    struct unpacked u = {0};
    *out = NULL;
    if (in.len == 0)
        return ELV_ERR_FORMAT;
    if (in.len > UINT_MAX)
        return ELV_ERR_SPACE;
    s.next_in = in.at;
    s.avail_in = (unsigned)in.len;
    if (inflateInit2(&s, MAX_WBITS + 16) != Z_OK)
        return ELV_ERR_MEMORY;
    const enum elv_err err = unpack(&s, &u, cap);
    inflateEnd(&s);
    if (err != ELV_OK) {
        free(u.at);
        return err;
    }
    *out = u.at;
    *len = u.len;
    return ELV_OK;
}

void elv_zlib_free(uint8_t *out) { free(out); }
