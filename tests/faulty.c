/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faulty.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "common/assert.h"

static atomic_uint n_done, fail_from, fail_to;
static atomic_bool happened;
static _Atomic enum fault mode;

void faulty_arm(uint32_t k, uint32_t length, enum fault fault)
{
    atomic_store(&fail_from, k);
    atomic_store(&fail_to, k + length);
    atomic_store(&mode, fault);
    atomic_store(&happened, false);
    atomic_store(&n_done, 0);
}

uint32_t faulty_count(void) { return atomic_load(&n_done); }

bool faulty_happened(void) { return atomic_load(&happened); }

static bool fails(void)
{
    const uint32_t i = atomic_fetch_add(&n_done, 1) + 1;
    if (i < atomic_load(&fail_from) || i >= atomic_load(&fail_to))
        return false;
    atomic_store(&happened, true);
    static const int causes[] = {
        [FAULT_DISK_FULL] = ENOSPC, [FAULT_BROKEN_DISK] = EIO, [FAULT_NO_DESCRIPTOR] = EMFILE};
    errno = causes[atomic_load(&mode)];
    return true;
}

static int fs_open(void *self, const char *path, int flags)
{
    (void)self;
    return fails() ? -1 : elv_fs_posix()->open(NULL, path, flags);
}

/* Half of it arrives: what a full disk does. */
static int64_t fs_pwrite(void *self, int fd, const void *from, size_t len, int64_t at)
{
    (void)self;
    if (!fails())
        return elv_fs_posix()->pwrite(NULL, fd, from, len, at);
    const int cause = errno;
    if (len > 1 && elv_fs_posix()->pwrite(NULL, fd, from, len / 2, at) < 0)
        return -1;
    errno = cause;
    return -1;
}

static int fs_truncate(void *self, int fd, int64_t len)
{
    (void)self;
    return fails() ? -1 : elv_fs_posix()->truncate(NULL, fd, len);
}

static int fs_sync(void *self, int fd)
{
    (void)self;
    return fails() ? -1 : elv_fs_posix()->sync(NULL, fd);
}

static int fs_unlink(void *self, const char *path)
{
    (void)self;
    return fails() ? -1 : elv_fs_posix()->unlink(NULL, path);
}

const struct elv_fs *faulty_fs(void)
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

/* SQLite's side: its own file layer with three methods replaced. Files differ in their method table
 * by how they are locked, so there is one of ours for each of theirs. */
struct layered {
    sqlite3_io_methods ours; /* first: a file's methods lead back here */
    const sqlite3_io_methods *real;
};

static sqlite3_vfs layer;
static struct layered tables[4];
static pthread_mutex_t tables_mutex = PTHREAD_MUTEX_INITIALIZER;

static const sqlite3_io_methods *real_of(const sqlite3_file *f)
{
    return ((const struct layered *)(const void *)f->pMethods)->real;
}

static int failure(void)
{
    return atomic_load(&mode) == FAULT_DISK_FULL ? SQLITE_FULL : SQLITE_IOERR;
}

static int sql_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
    return fails() ? failure() : real_of(f)->xWrite(f, from, len, at);
}

static int sql_sync(sqlite3_file *f, int flags)
{
    return fails() ? SQLITE_IOERR_FSYNC : real_of(f)->xSync(f, flags);
}

static int sql_truncate(sqlite3_file *f, sqlite3_int64 len)
{
    return fails() ? failure() : real_of(f)->xTruncate(f, len);
}

static const sqlite3_io_methods *layer_over(const sqlite3_io_methods *real)
{
    pthread_mutex_lock(&tables_mutex);
    size_t i = 0;
    while (tables[i].real != NULL && tables[i].real != real)
        ELV_ASSERT(++i < sizeof tables / sizeof *tables);
    if (tables[i].real == NULL) {
        tables[i].ours = *real;
        tables[i].ours.xWrite = sql_write;
        tables[i].ours.xSync = sql_sync;
        tables[i].ours.xTruncate = sql_truncate;
        tables[i].real = real;
    }
    pthread_mutex_unlock(&tables_mutex);
    return &tables[i].ours;
}

static int sql_open(sqlite3_vfs *self, const char *name, sqlite3_file *f, int flags, int *got)
{
    sqlite3_vfs *below = self->pAppData;
    const int rc = below->xOpen(below, name, f, flags, got);
    if (rc == SQLITE_OK && f->pMethods != NULL)
        f->pMethods = layer_over(f->pMethods);
    return rc;
}

void faulty_sqlite_install(void)
{
    sqlite3_vfs *below = sqlite3_vfs_find(NULL);
    layer = *below;
    layer.zName = "faulty";
    layer.pAppData = below;
    layer.xOpen = sql_open;
    const int rc = sqlite3_vfs_register(&layer, 1);
    ELV_ASSERT(rc == SQLITE_OK);
}
