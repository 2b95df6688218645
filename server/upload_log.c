/* SPDX-License-Identifier: Apache-2.0 */
#include "server/upload_log.h"

#include <string.h>

#include "common/assert.h"
#include "common/cursor.h"

enum { MARK = 0xE17E, CHECKED_LEN = 12 };

static uint64_t word(const uint8_t *at, size_t len)
{
    uint64_t w = 0;
    for (size_t i = 0; i < len; i++)
        w |= (uint64_t)at[i] << (8 * i);
    return w;
}

/* One word into the sum. The shift lets a word's upper bits reach the lower ones: products only
 * carry upwards. */
static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

/* Eight bytes at a time, in the manner of Fowler, Noll and Vo. It only has to notice torn writes;
 * what an update says is covered by its SHA-256 digest. */
static uint32_t check_sum(const uint8_t *head, struct elv_bytes chunk)
{
    uint64_t h = mix(UINT64_C(0xcbf29ce484222325), word(head, 8));
    h = mix(h, word(head + 8, CHECKED_LEN - 8));
    size_t i = 0;
    for (; i + 8 <= chunk.len; i += 8)
        h = mix(h, word(chunk.at + i, 8));
    if (i < chunk.len)
        h = mix(h, word(chunk.at + i, chunk.len - i));
    return (uint32_t)h;
}

size_t elv_log_record_encode(const struct elv_log_record *r, uint8_t out[ELV_LOG_RECORD_MAX])
{
    ELV_ASSERT(r->chunk.len <= ELV_CHUNK_MAX);
    struct elv_wr w = elv_wr_of(out, ELV_LOG_RECORD_MAX);
    elv_wr_u16(&w, MARK);
    elv_wr_u16(&w, (uint16_t)r->chunk.len);
    elv_wr_u32(&w, r->client);
    elv_wr_u32(&w, r->assignment);
    elv_wr_u32(&w, check_sum(out, r->chunk));
    elv_wr_bytes(&w, r->chunk);
    return w.need;
}

enum elv_err elv_log_record_decode(struct elv_bytes in, struct elv_log_record *r)
{
    struct elv_rd rd = elv_rd_of(in);
    struct elv_log_record got = {0};
    const uint16_t mark = elv_rd_u16(&rd);
    const uint16_t len = elv_rd_u16(&rd);
    got.client = elv_rd_u32(&rd);
    got.assignment = elv_rd_u32(&rd);
    const uint32_t sum = elv_rd_u32(&rd);
    if (rd.err == ELV_OK && (mark != MARK || len > ELV_CHUNK_MAX))
        return ELV_ERR_FORMAT;
    got.chunk = elv_rd_bytes(&rd, len);
    if (rd.err != ELV_OK)
        return rd.err;
    if (sum != check_sum(in.at, got.chunk))
        return ELV_ERR_FORMAT;
    *r = got;
    return ELV_OK;
}

enum elv_err elv_log_read(const struct elv_disk *disk, uint64_t log, uint64_t at, size_t len,
                          uint8_t buf[ELV_LOG_RECORD_MAX], struct elv_log_record *r)
{
    size_t got = 0;
    ELV_ASSERT(len <= ELV_LOG_RECORD_MAX);
    const enum elv_err err = disk->read_log(disk->self, log, at, buf, len, &got);
    if (err != ELV_OK)
        return err;
    if (got != len || elv_log_record_decode((struct elv_bytes){buf, len}, r) != ELV_OK ||
        r->chunk.len + ELV_LOG_HEAD_LEN != len)
        return ELV_ERR_MISMATCH;
    r->at = at;
    return ELV_OK;
}

struct elv_log_scan elv_log_scan_of(const struct elv_disk *disk, uint64_t log, uint8_t *buf)
{
    return (struct elv_log_scan){.disk = disk, .log = log, .end = UINT64_MAX, .buf = buf};
}

/* Moves what is left to the front and fills up behind it. */
static enum elv_err refill(struct elv_log_scan *s)
{
    memmove(s->buf, s->buf + s->at, s->len - s->at);
    s->base += s->at;
    s->len -= s->at;
    s->at = 0;
    const uint64_t from = s->base + s->len;
    size_t room = ELV_LOG_SCAN_BUF - s->len;
    size_t got = 0;
    if (from >= s->end)
        room = 0;
    else if (s->end - from < room)
        room = (size_t)(s->end - from);
    enum elv_err err = ELV_OK;
    if (room > 0)
        err = s->disk->read_log(s->disk->self, s->log, from, s->buf + s->len, room, &got);
    if (err == ELV_ERR_MISSING)
        err = ELV_OK; /* never appended to */
    s->len += got;
    s->dry = got == 0;
    return err;
}

enum elv_err elv_log_scan_next(struct elv_log_scan *s, struct elv_log_record *r)
{
    for (;;) {
        if (!s->dry && s->len - s->at < ELV_LOG_RECORD_MAX) {
            const enum elv_err err = refill(s);
            if (err != ELV_OK)
                return err;
        }
        if (s->at == s->len && s->dry)
            return ELV_ERR_MISSING;
        const struct elv_bytes rest = {s->buf + s->at, s->len - s->at};
        if (elv_log_record_decode(rest, r) == ELV_OK) {
            r->at = s->base + s->at;
            s->at += ELV_LOG_HEAD_LEN + r->chunk.len;
            return ELV_OK;
        }
        s->at++;
        s->skipped++;
    }
}

enum elv_err elv_log_len(const struct elv_disk *disk, uint64_t log, uint64_t *len)
{
    uint64_t low = 0, high = UINT64_C(1) << 48; /* the byte at `high` is past the end */
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        uint8_t byte;
        size_t got = 0;
        const enum elv_err err = disk->read_log(disk->self, log, mid, &byte, 1, &got);
        if (err != ELV_OK && err != ELV_ERR_MISSING)
            return err;
        if (err == ELV_OK && got == 1)
            low = mid + 1;
        else
            high = mid;
    }
    *len = low;
    return ELV_OK;
}
