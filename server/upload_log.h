/* SPDX-License-Identifier: Apache-2.0 */
/* server/upload_log.h - how chunks lie in a round's upload log, and how to find them again.
 *
 * A record is a 16-byte head - mark, length, client, assignment, check sum - and the chunk as it
 * travelled. Appends that were not synced may be lost or torn by a power failure, so a reader skips
 * whatever is not a whole record. Nothing here writes. */
#ifndef ELV_SERVER_UPLOAD_LOG_H
#define ELV_SERVER_UPLOAD_LOG_H

#include "../common/chunk.h"
#include "../common/port.h"

#define ELV_LOG_HEAD_LEN 16u
#define ELV_LOG_RECORD_MAX (ELV_LOG_HEAD_LEN + ELV_CHUNK_MAX)

struct elv_log_record {
    uint64_t at; /* offset in the log */
    uint32_t client, assignment;
    struct elv_bytes chunk; /* borrowed from the buffer it was read into */
};

/* Writes the record, `r->at` unread, and returns its length. The chunk is at most ELV_CHUNK_MAX. */
size_t elv_log_record_encode(const struct elv_log_record *r, uint8_t out[ELV_LOG_RECORD_MAX]);

/* ELV_ERR_SHORT: `in` ends inside the record; ELV_ERR_FORMAT: there is none at its start. */
enum elv_err elv_log_record_decode(struct elv_bytes in, struct elv_log_record *r);

/* Reads one record whose place and length are known, into `buf`. ELV_ERR_MISMATCH: something else
 * lies there; else what the disk said. */
enum elv_err elv_log_read(const struct elv_disk *disk, uint64_t log, uint64_t at, size_t len,
                          uint8_t buf[ELV_LOG_RECORD_MAX], struct elv_log_record *r);

#define ELV_LOG_SCAN_BUF 65536u
struct elv_log_scan {
    const struct elv_disk *disk;
    uint64_t log;
    uint64_t end;     /* look no further; UINT64_MAX: read to the end */
    uint8_t *buf;     /* [ELV_LOG_SCAN_BUF], the caller's */
    uint64_t base;    /* offset of buf[0] */
    size_t at, len;   /* what is left of it */
    uint64_t skipped; /* bytes that belonged to no record */
    bool dry;         /* the disk has no more */
};
struct elv_log_scan elv_log_scan_of(const struct elv_disk *disk, uint64_t log, uint8_t *buf);

/* The next whole record, valid until the next call. ELV_ERR_MISSING: none left; then base + at is
 * the log's length, as far as `end` allows. A log that does not exist is empty. */
enum elv_err elv_log_scan_next(struct elv_log_scan *s, struct elv_log_record *r);

/* The log's length, found by halving. */
enum elv_err elv_log_len(const struct elv_disk *disk, uint64_t log, uint64_t *len);

#endif
