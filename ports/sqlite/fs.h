/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/fs.h - the few system calls by which the store changes files.
 *
 * A value, so that a test can make the k-th of them fail. All follow the system's convention: a
 * negative result is a failure and errno says which. Files are made readable by their owner only.
 * Called from the node's thread and from the store's. */
#ifndef ELV_PORTS_SQLITE_FS_H
#define ELV_PORTS_SQLITE_FS_H

#include <stdint.h>

#include "common/cursor.h"

struct elv_fs {
    void *self;
    int (*open)(void *self, const char *path, int flags);
    int64_t (*pwrite)(void *self, int fd, const void *from, size_t len, int64_t at);
    int (*truncate)(void *self, int fd, int64_t len);
    int (*sync)(void *self, int fd);
    int (*unlink)(void *self, const char *path);
};

/* The system's own. */
const struct elv_fs *elv_fs_posix(void);

/* All of `from` at `at`. ELV_ERR_IO. */
enum elv_err elv_fs_write_all(const struct elv_fs *fs, int fd, struct elv_bytes from, uint64_t at);

/* Up to `len` bytes at `at`; `*got` is less only at the end. ELV_ERR_IO. */
enum elv_err elv_fs_read(int fd, uint64_t at, uint8_t *out, size_t len, size_t *got);

/* Makes names in a folder durable. ELV_ERR_IO. */
enum elv_err elv_fs_sync_folder(const struct elv_fs *fs, const char *path);

#endif
