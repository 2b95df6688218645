/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ports/sqlite/db.h"

void elv_files_init(struct elv_files *f, const struct elv_fs *fs, const char *folder)
{
    memset(f, 0, sizeof *f);
    f->fs = fs;
    f->next_name = 1;
    snprintf(f->folder, sizeof f->folder, "%s", folder);
    pthread_mutex_init(&f->mutex, NULL);
}

void elv_files_free(struct elv_files *f)
{
    while (f->first != NULL) {
        struct elv_file *e = f->first;
        f->first = e->next;
        free(e);
    }
    pthread_mutex_destroy(&f->mutex);
}

static void path_of(const struct elv_files *f, uint64_t name, char path[ELV_FILES_PATH_MAX + 32])
{
    snprintf(path, ELV_FILES_PATH_MAX + 32, "%s/%" PRIu64, f->folder, name);
}

static uint64_t sum_of(struct elv_bytes head, struct elv_bytes bytes)
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    elv_sha256_update(&h, head.at, head.len);
    elv_sha256_update(&h, bytes.at, bytes.len);
    return elv_db_sum(&h);
}

enum elv_err elv_files_write(struct elv_files *f, struct elv_bytes head, struct elv_bytes bytes,
                             uint64_t *name, uint64_t *sum)
{
    char path[ELV_FILES_PATH_MAX + 32];
    path_of(f, f->next_name, path);
    const int fd = f->fs->open(f->fs->self, path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return ELV_ERR_IO;
    enum elv_err err = elv_fs_write_all(f->fs, fd, head, 0);
    if (err == ELV_OK)
        err = elv_fs_write_all(f->fs, fd, bytes, head.len);
    if (err == ELV_OK && f->fs->sync(f->fs->self, fd) != 0)
        err = ELV_ERR_IO;
    if (close(fd) != 0)
        err = ELV_ERR_IO;
    if (err != ELV_OK) {
        const int cause = errno;
        elv_files_delete(f, f->next_name);
        errno = cause;
    } else {
        *name = f->next_name;
        *sum = sum_of(head, bytes);
    }
    f->next_name++;
    return err;
}

void elv_files_delete(struct elv_files *f, uint64_t name)
{
    char path[ELV_FILES_PATH_MAX + 32];
    path_of(f, name, path);
    (void)f->fs->unlink(f->fs->self, path); /* what stays is swept when the store is opened */
}

uint64_t elv_files_point(struct elv_files *f, uint32_t table, uint64_t number, uint64_t name)
{
    pthread_mutex_lock(&f->mutex);
    struct elv_file **at = &f->first;
    while (*at != NULL && ((*at)->table != table || (*at)->number != number))
        at = &(*at)->next;
    struct elv_file *e = *at;
    uint64_t before = e != NULL ? e->name : 0;
    if (e != NULL && name == 0) {
        *at = e->next;
        free(e);
    } else if (e != NULL) {
        e->name = name;
        e->damaged = false;
    } else if (name != 0) {
        e = malloc(sizeof *e);
        if (e != NULL) {
            *e =
                (struct elv_file){.next = f->first, .table = table, .number = number, .name = name};
            f->first = e;
        } else {
            before = UINT64_MAX;
        }
    }
    pthread_mutex_unlock(&f->mutex);
    return before;
}

static bool is_pointed_to(const struct elv_files *f, uint64_t name)
{
    for (const struct elv_file *e = f->first; e != NULL; e = e->next) {
        if (e->name == name)
            return true;
    }
    return false;
}

enum elv_err elv_files_sweep(struct elv_files *f)
{
    for (const struct elv_file *e = f->first; e != NULL; e = e->next) {
        if (e->name >= f->next_name)
            f->next_name = e->name + 1;
    }
    DIR *dir = opendir(f->folder);
    if (dir == NULL)
        return ELV_ERR_IO;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        char *end;
        const uint64_t name = strtoull(e->d_name, &end, 10);
        if (end == e->d_name || *end != 0)
            continue; /* not ours, or . and .. */
        if (name >= f->next_name)
            f->next_name = name + 1; /* should its deletion fail, the name stays taken */
        if (!is_pointed_to(f, name))
            elv_files_delete(f, name);
    }
    closedir(dir);
    return ELV_OK;
}

static struct elv_file *find(const struct elv_files *f, uint32_t table, uint64_t number)
{
    struct elv_file *e = f->first;
    while (e != NULL && (e->table != table || e->number != number))
        e = e->next;
    return e;
}

/* False: it cannot be read to its end. */
static bool sum_file(int fd, uint64_t *sum)
{
    uint8_t piece[65536];
    struct elv_sha256 h;
    size_t got = 0;
    elv_sha256_init(&h);
    for (uint64_t at = 0; elv_fs_read(fd, at, piece, sizeof piece, &got) == ELV_OK; at += got) {
        if (got == 0) {
            *sum = elv_db_sum(&h);
            return true;
        }
        elv_sha256_update(&h, piece, got);
    }
    return false;
}

void elv_files_check(struct elv_files *f, uint32_t table, uint64_t number, uint64_t sum)
{
    char path[ELV_FILES_PATH_MAX + 32];
    struct elv_file *e = find(f, table, number);
    uint64_t is = 0;
    path_of(f, e->name, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    e->damaged = fd < 0 || !sum_file(fd, &is) || is != sum;
    if (fd >= 0)
        close(fd);
}

enum elv_err elv_files_read(struct elv_files *f, uint32_t table, uint64_t number, uint64_t offset,
                            uint8_t *out, size_t len, size_t *got)
{
    char path[ELV_FILES_PATH_MAX + 32];
    /* Opened under the mutex: what is pointed to is not deleted before it is pointed away. */
    pthread_mutex_lock(&f->mutex);
    const struct elv_file *e = find(f, table, number);
    const bool damaged = e != NULL && e->damaged;
    int fd = -1;
    if (e != NULL && !damaged) {
        path_of(f, e->name, path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    pthread_mutex_unlock(&f->mutex);
    if (e == NULL)
        return ELV_ERR_MISSING;
    if (damaged)
        return ELV_ERR_FORMAT;
    if (fd < 0)
        return ELV_ERR_IO;
    const enum elv_err err = elv_fs_read(fd, offset, out, len, got);
    close(fd);
    return err;
}
