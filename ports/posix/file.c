/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert.h"

static enum elv_err write_all(int fd, struct elv_bytes data)
{
    while (data.len > 0) {
        const ssize_t n = write(fd, data.at, data.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ELV_ERR_IO;
        data.at += n;
        data.len -= (size_t)n;
    }
    return ELV_OK;
}

/* A rename is durable once the directory is. */
static enum elv_err sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= sizeof folder)
        return ELV_ERR_ARG;
    if (slash == NULL)
        strcpy(folder, ".");
    else if (len == 0)
        strcpy(folder, "/");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)len, path);

    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ELV_ERR_IO;
    const enum elv_err err = fsync(fd) == 0 ? ELV_OK : ELV_ERR_IO;
    close(fd);
    return err;
}

static enum elv_err fill(int fd, struct elv_bytes data, bool is_public)
{
    if (write_all(fd, data) != ELV_OK)
        return ELV_ERR_IO;
    const int rc = is_public ? fchmod(fd, 0644) : fsync(fd);
    return rc == 0 ? ELV_OK : ELV_ERR_IO;
}

static enum elv_err replace(const char *path, struct elv_bytes data, bool is_public)
{
    char tmp[PATH_MAX];
    const int len = snprintf(tmp, sizeof tmp, "%s.XXXXXX", path);
    if (len < 0 || (size_t)len >= sizeof tmp)
        return ELV_ERR_ARG;

    const int fd = mkstemp(tmp); /* mode 0600; two writers cannot share it */
    if (fd < 0)
        return ELV_ERR_IO;
    enum elv_err err = fill(fd, data, is_public);
    if (close(fd) != 0) /* a full disk may only show here */
        err = ELV_ERR_IO;
    if (err == ELV_OK && rename(tmp, path) != 0)
        err = ELV_ERR_IO;
    if (err != ELV_OK) {
        const int cause = errno;
        unlink(tmp);
        errno = cause;
    }
    return err;
}

enum elv_err elv_posix_save(const char *path, struct elv_bytes data)
{
    const enum elv_err err = replace(path, data, false);
    return err == ELV_OK ? sync_folder_of(path) : err;
}

enum elv_err elv_posix_publish(const char *path, struct elv_bytes data)
{
    return replace(path, data, true);
}

/* Reads until the end: what stat says of a pipe or a growing file is not to be relied on. */
static enum elv_err read_all(int fd, size_t max, uint8_t **out, size_t *len)
{
    uint8_t *at = NULL;
    size_t cap = 0, used = 0;
    for (;;) {
        if (used == cap) {
            cap = cap == 0 ? 4096 : cap * 2;
            if (cap > max)
                cap = max + 1; /* one more than allowed tells "just fits" from "too long" */
            uint8_t *grown = realloc(at, cap + 1);
            if (grown == NULL) {
                free(at);
                return ELV_ERR_MEMORY;
            }
            at = grown;
        }
        const ssize_t n = read(fd, at + used, cap - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || used + (size_t)n > max) {
            free(at);
            return n < 0 ? ELV_ERR_IO : ELV_ERR_FULL;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    at[used] = 0;
    *out = at;
    *len = used;
    return ELV_OK;
}

static bool is_private(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && (s.st_uid == geteuid() || s.st_uid == 0) &&
           (s.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static enum elv_err load(const char *path, size_t max, bool secret, uint8_t **out, size_t *len)
{
    if (max > SIZE_MAX - 2)
        return ELV_ERR_ARG;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ELV_ERR_MISSING : ELV_ERR_IO;
    enum elv_err err = ELV_ERR_AUTH;
    if (!secret || is_private(fd))
        err = read_all(fd, max, out, len);
    close(fd);
    return err;
}

enum elv_err elv_posix_load(const char *path, size_t max, uint8_t **out, size_t *len)
{
    return load(path, max, false, out, len);
}

enum elv_err elv_posix_load_private(const char *path, size_t max, uint8_t **out, size_t *len)
{
    return load(path, max, true, out, len);
}

void elv_posix_wipe(void *at, size_t len)
{
    volatile uint8_t *p = at;
    while (len-- > 0)
        *p++ = 0;
}

static long holder_of(int fd)
{
    char text[32] = {0};
    return pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static enum elv_err name_holder(int fd)
{
    char text[32];
    const int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len)
        return ELV_ERR_IO;
    return ELV_OK;
}

enum elv_err elv_posix_lock(struct elv_lock *lock, const char *path, bool wait, long *holder)
{
    lock->fd = -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return ELV_ERR_IO;

    int rc;
    do
        rc = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
    while (rc != 0 && errno == EINTR);

    enum elv_err err = ELV_ERR_IO;
    if (rc == 0)
        err = name_holder(fd);
    else if (errno == EWOULDBLOCK)
        err = ELV_ERR_BUSY;
    if (err == ELV_ERR_BUSY && holder != NULL)
        *holder = holder_of(fd);
    if (err != ELV_OK) {
        close(fd);
        return err;
    }
    lock->fd = fd;
    return ELV_OK;
}

void elv_posix_unlock(struct elv_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd); /* and with the descriptor goes the lock */
    lock->fd = -1;
}

enum elv_err elv_posix_keep_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return ELV_ERR_IO;
    close(fd);
    return ELV_OK;
}

enum elv_err elv_posix_spare_files(uint32_t n)
{
    int fds[64];
    uint32_t got = 0;
    ELV_ASSERT(n <= sizeof fds / sizeof fds[0]);
    while (got < n && (fds[got] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        got++;
    for (uint32_t i = 0; i < got; i++)
        close(fds[i]);
    return got == n ? ELV_OK : ELV_ERR_IO;
}
