/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert.h"

static const uint8_t mark[8] = {'E', 'L', 'V', 'L', 'O', 'G', '1', '\n'};

void elv_logs_init(struct elv_logs *l, const struct elv_fs *fs, const char *folder)
{
    memset(l, 0, sizeof *l);
    l->fs = fs;
    snprintf(l->folder, sizeof l->folder, "%s", folder);
    pthread_mutex_init(&l->mutex, NULL);
}

static void free_file(struct elv_logfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

void elv_logs_free(struct elv_logs *l)
{
    while (l->first != NULL) {
        struct elv_logfile *f = l->first;
        l->first = f->next;
        free_file(f);
    }
    pthread_mutex_destroy(&l->mutex);
}

static void path_of(const struct elv_logs *l, uint64_t number, char path[ELV_LOGS_PATH_MAX + 32])
{
    snprintf(path, ELV_LOGS_PATH_MAX + 32, "%s/%" PRIu64, l->folder, number);
}

/* With the mutex held. */
static struct elv_logfile *find(struct elv_logs *l, uint64_t number)
{
    struct elv_logfile *f = l->first;
    while (f != NULL && f->number != number)
        f = f->next;
    return f;
}

static void insert(struct elv_logs *l, struct elv_logfile *f)
{
    pthread_mutex_lock(&l->mutex);
    f->next = l->first;
    l->first = f;
    pthread_mutex_unlock(&l->mutex);
}

static enum elv_err write_head(const struct elv_logs *l, int fd, uint64_t len)
{
    uint8_t head[ELV_LOG_HEAD_LEN];
    struct elv_wr w = elv_wr_of(head, sizeof head);
    elv_wr_bytes(&w, (struct elv_bytes){.at = mark, .len = sizeof mark});
    elv_wr_u64(&w, len);
    return elv_fs_write_all(l->fs, fd, (struct elv_bytes){.at = head, .len = sizeof head}, 0);
}

static uint64_t read_head(int fd)
{
    uint8_t head[ELV_LOG_HEAD_LEN];
    size_t got;
    if (elv_fs_read(fd, 0, head, sizeof head, &got) != ELV_OK || got < sizeof head ||
        memcmp(head, mark, sizeof mark) != 0)
        return 0; /* killed while it was made: nothing in it was acknowledged */
    struct elv_rd r = elv_rd_of((struct elv_bytes){.at = head + sizeof mark, .len = 8});
    return elv_rd_u64(&r);
}

static struct elv_logfile *open_file(struct elv_logs *l, uint64_t number, int flags)
{
    char path[ELV_LOGS_PATH_MAX + 32];
    path_of(l, number, path);
    struct elv_logfile *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->number = number;
    f->fd = l->fs->open(l->fs->self, path, flags);
    return f;
}

/* Which length to trust: the head's, but never less than was acknowledged nor more than is there.
 */
static enum elv_err settle_length(struct elv_logs *l, struct elv_logfile *f, uint64_t durable)
{
    struct stat s;
    if (fstat(f->fd, &s) != 0)
        return ELV_ERR_IO;
    const uint64_t size = (uint64_t)s.st_size;
    const uint64_t there = size > ELV_LOG_HEAD_LEN ? size - ELV_LOG_HEAD_LEN : 0;
    if (there < durable)
        return ELV_ERR_MISMATCH;
    f->len = read_head(f->fd);
    if (f->len > there)
        f->len = there;
    if (f->len < durable)
        f->len = durable;
    f->appended = f->len;
    f->dirty = true;
    if (write_head(l, f->fd, f->len) != ELV_OK ||
        l->fs->truncate(l->fs->self, f->fd, (int64_t)(ELV_LOG_HEAD_LEN + f->len)) != 0)
        return ELV_ERR_IO;
    return ELV_OK;
}

enum elv_err elv_logs_adopt(struct elv_logs *l, uint64_t number, uint64_t durable)
{
    struct elv_logfile *f = open_file(l, number, O_RDWR);
    if (f == NULL)
        return ELV_ERR_MEMORY;
    enum elv_err err = ELV_ERR_IO;
    if (f->fd < 0 && errno == ENOENT)
        err = durable > 0 ? ELV_ERR_MISMATCH : ELV_OK;
    else if (f->fd >= 0)
        err = settle_length(l, f, durable);
    if (err != ELV_OK || f->fd < 0)
        free_file(f);
    else
        insert(l, f);
    return err;
}

bool elv_logs_has(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    const bool has = find(l, number) != NULL;
    pthread_mutex_unlock(&l->mutex);
    return has;
}

enum elv_err elv_logs_remove(struct elv_logs *l, uint64_t number)
{
    char path[ELV_LOGS_PATH_MAX + 32];
    path_of(l, number, path);
    if (l->fs->unlink(l->fs->self, path) != 0 && errno != ENOENT)
        return ELV_ERR_IO;
    return ELV_OK;
}

/* Only the node's thread adds to the list and writes to files, so what it finds stays valid for it
 * until it has asked for a DROP itself. */
static struct elv_logfile *find_or_make(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    pthread_mutex_unlock(&l->mutex);
    if (f != NULL)
        return f;
    f = open_file(l, number, O_RDWR | O_CREAT | O_TRUNC);
    ELV_ASSERT(f != NULL);
    f->broken = f->fd < 0 || write_head(l, f->fd, 0) != ELV_OK;
    insert(l, f);
    pthread_mutex_lock(&l->mutex);
    l->folder_dirty = true;
    pthread_mutex_unlock(&l->mutex);
    return f;
}

/* Nothing of a step's appends is to be seen; what cannot even be cut off is hidden by the head. */
static void break_log(struct elv_logs *l, struct elv_logfile *f)
{
    pthread_mutex_lock(&l->mutex);
    f->broken = true;
    f->appended = f->len;
    pthread_mutex_unlock(&l->mutex);
    if (f->fd >= 0)
        (void)l->fs->truncate(l->fs->self, f->fd, (int64_t)(ELV_LOG_HEAD_LEN + f->len));
}

void elv_logs_mend(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    pthread_mutex_unlock(&l->mutex);
    if (f == NULL || !f->broken || f->fd < 0 || write_head(l, f->fd, f->len) != ELV_OK ||
        l->fs->truncate(l->fs->self, f->fd, (int64_t)(ELV_LOG_HEAD_LEN + f->len)) != 0)
        return;
    pthread_mutex_lock(&l->mutex);
    f->broken = false;
    f->dirty = true;
    pthread_mutex_unlock(&l->mutex);
}

void elv_logs_append(struct elv_logs *l, uint64_t number, struct elv_bytes bytes)
{
    struct elv_logfile *f = find_or_make(l, number);
    if (f->broken)
        return;
    if (elv_fs_write_all(l->fs, f->fd, bytes, ELV_LOG_HEAD_LEN + f->appended) == ELV_OK)
        f->appended += bytes.len;
    else
        break_log(l, f);
}

void elv_logs_touch(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    pthread_mutex_unlock(&l->mutex);
    if (f == NULL || f->broken || f->appended == f->len)
        return;
    if (write_head(l, f->fd, f->appended) != ELV_OK) {
        break_log(l, f);
        return;
    }
    pthread_mutex_lock(&l->mutex);
    f->len = f->appended;
    f->dirty = true;
    pthread_mutex_unlock(&l->mutex);
}

bool elv_logs_dropping(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    const struct elv_logfile *f = find(l, number);
    const bool dropping = f != NULL && f->dropping;
    pthread_mutex_unlock(&l->mutex);
    return dropping;
}

void elv_logs_mark_drop(struct elv_logs *l, uint64_t number, bool dropping)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    if (f != NULL)
        f->dropping = dropping;
    pthread_mutex_unlock(&l->mutex);
}

void elv_logs_hide(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    if (f != NULL)
        f->dropped = true;
    pthread_mutex_unlock(&l->mutex);
}

uint32_t elv_logs_broken(struct elv_logs *l)
{
    uint32_t n = 0;
    pthread_mutex_lock(&l->mutex);
    for (const struct elv_logfile *f = l->first; f != NULL; f = f->next)
        n += f->broken && !f->dropping;
    pthread_mutex_unlock(&l->mutex);
    return n;
}

/* With the mutex held. */
static void release(struct elv_logfile *f)
{
    if (--f->refs == 0 && f->deleted)
        free_file(f);
}

static struct elv_logfile *next_dirty(struct elv_logs *l, uint64_t *len)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = l->first;
    while (f != NULL && !f->dirty)
        f = f->next;
    if (f != NULL) {
        f->dirty = false;
        f->refs++;
        *len = f->len;
    }
    pthread_mutex_unlock(&l->mutex);
    return f;
}

static enum elv_err sync_names(struct elv_logs *l)
{
    pthread_mutex_lock(&l->mutex);
    const bool dirty = l->folder_dirty;
    l->folder_dirty = false;
    pthread_mutex_unlock(&l->mutex);
    return dirty ? elv_fs_sync_folder(l->fs, l->folder) : ELV_OK;
}

enum elv_err elv_logs_sync(struct elv_logs *l, void *ctx,
                           enum elv_err (*each)(void *ctx, uint64_t number, uint64_t len))
{
    enum elv_err err = sync_names(l);
    uint64_t len;
    for (struct elv_logfile *f; err == ELV_OK && (f = next_dirty(l, &len)) != NULL;) {
        err = l->fs->sync(l->fs->self, f->fd) == 0 ? ELV_OK : ELV_ERR_IO;
        if (err == ELV_OK)
            err = each(ctx, f->number, len);
        pthread_mutex_lock(&l->mutex);
        release(f);
        pthread_mutex_unlock(&l->mutex);
    }
    return err;
}

enum elv_err elv_logs_delete(struct elv_logs *l, uint64_t number)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile **at = &l->first;
    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    struct elv_logfile *f = *at;
    if (f != NULL) {
        *at = f->next;
        f->deleted = true;
        f->refs++;
        release(f);
    }
    pthread_mutex_unlock(&l->mutex);
    return elv_logs_remove(l, number);
}

enum elv_err elv_logs_read(struct elv_logs *l, uint64_t number, uint64_t offset, uint8_t *out,
                           size_t len, size_t *got)
{
    pthread_mutex_lock(&l->mutex);
    struct elv_logfile *f = find(l, number);
    if (f != NULL && f->dropped)
        f = NULL;
    const uint64_t there = f == NULL ? 0 : f->len;
    if (f != NULL)
        f->refs++;
    pthread_mutex_unlock(&l->mutex);
    if (f == NULL)
        return ELV_ERR_MISSING;

    const uint64_t left = offset < there ? there - offset : 0;
    const size_t want = left < len ? (size_t)left : len;
    size_t n = 0;
    enum elv_err err = ELV_OK;
    if (want > 0)
        err = elv_fs_read(f->fd, ELV_LOG_HEAD_LEN + offset, out, want, &n);
    if (err == ELV_OK && n < want)
        err = ELV_ERR_IO; /* somebody cut the file */
    if (err == ELV_OK)
        *got = n;
    pthread_mutex_lock(&l->mutex);
    release(f);
    pthread_mutex_unlock(&l->mutex);
    return err;
}
