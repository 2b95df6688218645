/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/files.h - whole files that change together with the records.
 *
 * New content never touches old content: it gets a name of its own (a growing number) and is synced
 * before the transaction that points to it; what is no longer pointed to is deleted afterwards, or
 * when the store is opened next. So a file is replaced exactly when its transaction is committed.
 *
 * Written by the store's thread; reading is anybody's. */
#ifndef ELV_PORTS_SQLITE_FILES_H
#define ELV_PORTS_SQLITE_FILES_H

#include <pthread.h>
#include <stdbool.h>

#include "ports/sqlite/fs.h"

#define ELV_FILES_PATH_MAX 1024u

struct elv_file {
    struct elv_file *next;
    uint32_t table;
    uint64_t number;
    uint64_t name;
    bool damaged; /* not what was written: nobody gets to read it */
};

struct elv_files {
    const struct elv_fs *fs;
    char folder[ELV_FILES_PATH_MAX];
    pthread_mutex_t mutex;
    struct elv_file *first;
    uint64_t next_name;
};

void elv_files_init(struct elv_files *f, const struct elv_fs *fs, const char *folder);
void elv_files_free(struct elv_files *f);

/* Writes and syncs a file under a new name nobody points to yet; `*sum` is its content's.
 * ELV_ERR_IO: nothing is left. */
enum elv_err elv_files_write(struct elv_files *f, struct elv_bytes head, struct elv_bytes bytes,
                             uint64_t *name, uint64_t *sum);
void elv_files_delete(struct elv_files *f, uint64_t name);

/* Lets (table, number) mean `name`, 0: nothing. Returns the name it meant before, 0 if none.
 * ELV_ERR_MEMORY comes back as UINT64_MAX. */
uint64_t elv_files_point(struct elv_files *f, uint32_t table, uint64_t number, uint64_t name);

/* While opening: deletes every file nobody points to and finds the next free name. */
enum elv_err elv_files_sweep(struct elv_files *f);

/* While opening: a file whose content has another sum, or cannot be read, is damaged. It stays
 * where it is, for whoever wants to look at it. */
void elv_files_check(struct elv_files *f, uint32_t table, uint64_t number, uint64_t sum);

/* ELV_ERR_MISSING; ELV_ERR_FORMAT: it is damaged; ELV_ERR_IO. */
enum elv_err elv_files_read(struct elv_files *f, uint32_t table, uint64_t number, uint64_t offset,
                            uint8_t *out, size_t len, size_t *got);

#endif
