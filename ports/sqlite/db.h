/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/db.h - the ledger: records, and which logs and files belong to them.
 *
 * One connection writes, on the store's thread; another reads, from any thread, and sees what is
 * committed. Nothing outside db.c knows SQL. */
#ifndef ELV_PORTS_SQLITE_DB_H
#define ELV_PORTS_SQLITE_DB_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "common/cursor.h"
#include "common/sha256.h"

#define ELV_DB_WHY_MAX 256u

enum elv_db_statement {
    ELV_DB_BEGIN,
    ELV_DB_COMMIT,
    ELV_DB_ROLLBACK,
    ELV_DB_PUT,        /* table, number, sum, value: use elv_db_put */
    ELV_DB_ERASE,      /* table, number */
    ELV_DB_FILE,       /* table, number, name, sum of the content */
    ELV_DB_UNFILE,     /* table, number */
    ELV_DB_LOG,        /* number, durable length */
    ELV_DB_LOG_DROP,   /* number: to be deleted */
    ELV_DB_LOG_FORGET, /* number: has been deleted */
    ELV_DB_STATEMENTS,
};

struct elv_db {
    sqlite3 *writer, *reader;
    sqlite3_stmt *statements[ELV_DB_STATEMENTS];
    pthread_mutex_t reading;
};

/* What tells damage: the first 8 bytes of a SHA-256. SQLite's pages carry no checksum, and a disk
 * that flips a bit must not give another model, weight or decision. */
uint64_t elv_db_sum(struct elv_sha256 *h);

/* Opens or makes the database; brings an older schema up to date. `why` is written on failure.
 * ELV_ERR_VERSION: a newer program wrote it; ELV_ERR_FORMAT: it is not ours or damaged;
 * ELV_ERR_IO. */
enum elv_err elv_db_open(struct elv_db *db, const char *path, char why[ELV_DB_WHY_MAX]);
void elv_db_close(struct elv_db *db);

/* Binds what the statement takes, in the order of its comment, and runs it. ELV_ERR_IO. */
enum elv_err elv_db_run(struct elv_db *db, enum elv_db_statement s, uint64_t a, uint64_t b,
                        uint64_t c, uint64_t d);
enum elv_err elv_db_put(struct elv_db *db, uint32_t table, uint64_t number, struct elv_bytes value);

/* True when the last failure was a full disk and nothing else: what was begun can be undone. */
bool elv_db_is_full(const struct elv_db *db);

/* ELV_ERR_FORMAT: a record is not what was written. */
enum elv_err elv_db_scan(struct elv_db *db, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value));

/* All rows of the two lists, in no order. */
enum elv_err elv_db_files(struct elv_db *db, void *ctx,
                          enum elv_err (*each)(void *ctx, uint32_t table, uint64_t number,
                                               uint64_t name, uint64_t sum));
enum elv_err elv_db_logs(struct elv_db *db, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, bool dropped,
                                              uint64_t len));

#endif
