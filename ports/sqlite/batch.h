/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/batch.h - one transaction made of everything that waited. */
#ifndef ELV_PORTS_SQLITE_BATCH_H
#define ELV_PORTS_SQLITE_BATCH_H

#include "ports/sqlite/db.h"
#include "ports/sqlite/files.h"
#include "ports/sqlite/logs.h"
#include "ports/sqlite/queue.h"

struct elv_leftovers { /* what a transaction made superfluous: names of files, numbers of logs */
    uint64_t *at;
    size_t n, cap;
};

struct elv_batch {
    struct elv_db *db;
    struct elv_logs *logs;
    struct elv_files *files;
    struct elv_leftovers old_files, old_logs;
    bool dead; /* set when nobody knows what is on the disk any more */
    char why[ELV_DB_WHY_MAX];
};

/* Makes the ops from `first` up to, not including, `end` durable, all or none. ELV_ERR_IO: none
 * (unless `dead` was set); `why` says what happened. */
enum elv_err elv_batch_commit(struct elv_batch *b, struct elv_queued *first,
                              struct elv_queued *end);

/* Deletes what the last commit left over. Nobody waits for that: a process that dies before finds
 * it when it starts again. */
void elv_batch_tidy(struct elv_batch *b);

void elv_batch_free(struct elv_batch *b);

#endif
