/* SPDX-License-Identifier: Apache-2.0 */
/* ports/zlib/squeeze.h - raw deflate for chunks, gunzip for data files. */
#ifndef ELV_PORTS_ZLIB_SQUEEZE_H
#define ELV_PORTS_ZLIB_SQUEEZE_H

#include "common/port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes its memory, about 110 KiB, when opened and none later. One thread at a time. */
struct elv_zlib;
enum elv_err elv_zlib_open(struct elv_zlib **zlib);
void elv_zlib_close(struct elv_zlib *zlib); /* NULL is fine */
struct elv_squeeze elv_zlib_squeeze(struct elv_zlib *zlib);

/* Unpacks a whole gzip file (RFC 1952, one or more members) into a new block, which the caller
 * gives to elv_zlib_free. ELV_ERR_SPACE: it would be longer than `cap`; ELV_ERR_FORMAT: damaged,
 * truncated, or bytes after the end; ELV_ERR_MEMORY. */
enum elv_err elv_zlib_gunzip(struct elv_bytes in, size_t cap, uint8_t **out, size_t *len);
void elv_zlib_free(uint8_t *out);

#ifdef __cplusplus
}
#endif
#endif
