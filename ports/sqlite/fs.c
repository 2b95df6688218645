/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int fs_open(void *self, const char *path, int flags)
{
    (void)self;
    return open(path, flags | O_CLOEXEC, 0600);
}

static int64_t fs_pwrite(void *self, int fd, const void *from, size_t len, int64_t at)
{
    (void)self;
    return pwrite(fd, from, len, (off_t)at);
}

static int fs_truncate(void *self, int fd, int64_t len)
{
    (void)self;
    return ftruncate(fd, (off_t)len);
}

static int fs_sync(void *self, int fd)
{
    (void)self;
    return fsync(fd);
}

static int fs_unlink(void *self, const char *path)
{
    (void)self;
    return unlink(path);
}

const struct elv_fs *elv_fs_posix(void)
{
    static const struct elv_fs table = {
        .open = fs_open,
        .pwrite = fs_pwrite,
        .truncate = fs_truncate,
        .sync = fs_sync,
        .unlink = fs_unlink,
    };
    return &table;
}

enum elv_err elv_fs_write_all(const struct elv_fs *fs, int fd, struct elv_bytes from, uint64_t at)
{
    while (from.len > 0) {
        const int64_t n = fs->pwrite(fs->self, fd, from.at, from.len, (int64_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ELV_ERR_IO;
        from.at += n;
        from.len -= (size_t)n;
        at += (uint64_t)n;
    }
    return ELV_OK;
}

enum elv_err elv_fs_read(int fd, uint64_t at, uint8_t *out, size_t len, size_t *got)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t n = pread(fd, out + done, len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ELV_ERR_IO;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *got = done;
    return ELV_OK;
}

enum elv_err elv_fs_sync_folder(const struct elv_fs *fs, const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ELV_ERR_IO;
    const enum elv_err err = fs->sync(fs->self, fd) == 0 ? ELV_OK : ELV_ERR_IO;
    close(fd);
    return err;
}
