/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/db.h"

#include <stdio.h>
#include <string.h>

#define APPLICATION 0x456c7631 /* "Elv1": what SQLite's header says whose file this is */
#define BUSY_MS 10000          /* a backup tool may hold a lock for a moment */

/* Schema n+1 is schema n and what steps[n] does. Only ever append. Numbers are 64-bit and unsigned;
 * SQLite's are signed, so those from 2^63 on are stored as negative ones. */
static const char *const steps[] = {
    "CREATE TABLE record (tbl INTEGER NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (tbl, number)) WITHOUT ROWID;"
    "CREATE TABLE file (tbl INTEGER NOT NULL, number INTEGER NOT NULL, name INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (tbl, number)) WITHOUT ROWID;"
    /* length -1: dropped, but the file may still be there */
    "CREATE TABLE log (number INTEGER PRIMARY KEY, length INTEGER NOT NULL);",
};
#define SCHEMA (sizeof steps / sizeof *steps)

static const char *const sql[ELV_DB_STATEMENTS] = {
    [ELV_DB_BEGIN] = "BEGIN IMMEDIATE",
    [ELV_DB_COMMIT] = "COMMIT",
    [ELV_DB_ROLLBACK] = "ROLLBACK",
    [ELV_DB_PUT] = "INSERT INTO record VALUES (?1, ?2, ?4, ?3)"
                   " ON CONFLICT (tbl, number) DO UPDATE SET value = ?4, sum = ?3",
    [ELV_DB_ERASE] = "DELETE FROM record WHERE tbl = ?1 AND number = ?2",
    [ELV_DB_FILE] = "INSERT INTO file VALUES (?1, ?2, ?3, ?4)"
                    " ON CONFLICT (tbl, number) DO UPDATE SET name = ?3, sum = ?4",
    [ELV_DB_UNFILE] = "DELETE FROM file WHERE tbl = ?1 AND number = ?2",
    [ELV_DB_LOG] = "INSERT INTO log VALUES (?1, ?2)"
                   " ON CONFLICT (number) DO UPDATE SET length = ?2",
    [ELV_DB_LOG_DROP] = "INSERT INTO log VALUES (?1, -1)"
                        " ON CONFLICT (number) DO UPDATE SET length = -1",
    [ELV_DB_LOG_FORGET] = "DELETE FROM log WHERE number = ?1 AND length = -1",
};

static enum elv_err failed(sqlite3 *c, const char *doing, char why[ELV_DB_WHY_MAX])
{
    snprintf(why, ELV_DB_WHY_MAX, "%s: %s", doing, sqlite3_errmsg(c));
    const int code = sqlite3_errcode(c) & 0xFF;
    return code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? ELV_ERR_FORMAT : ELV_ERR_IO;
}

static bool read_number(sqlite3 *c, const char *query, int64_t *value)
{
    sqlite3_stmt *s = NULL;
    bool ok = sqlite3_prepare_v2(c, query, -1, &s, NULL) == SQLITE_OK;
    ok = ok && sqlite3_step(s) == SQLITE_ROW;
    if (ok)
        *value = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return ok;
}

/* Each step is a transaction of its own that also counts the number up, so a crash in between
 * leaves a whole schema. */
static enum elv_err migrate(sqlite3 *c, size_t from, char why[ELV_DB_WHY_MAX])
{
    for (size_t i = from; i < SCHEMA; i++) {
        char mark[96];
        snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %zu; COMMIT",
                 APPLICATION, i + 1);
        if (sqlite3_exec(c, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(c, steps[i], NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(c, mark, NULL, NULL, NULL) != SQLITE_OK) {
            const enum elv_err err = failed(c, "cannot bring the state up to date", why);
            sqlite3_exec(c, "ROLLBACK", NULL, NULL, NULL);
            return err;
        }
    }
    return ELV_OK;
}

static enum elv_err check_schema(sqlite3 *c, char why[ELV_DB_WHY_MAX])
{
    int64_t application, schema, n_tables;
    if (!read_number(c, "PRAGMA application_id", &application) ||
        !read_number(c, "PRAGMA user_version", &schema) ||
        !read_number(c, "SELECT count(*) FROM sqlite_master", &n_tables))
        return failed(c, "cannot read the ledger", why);
    const bool fresh = application == 0 && schema == 0 && n_tables == 0;
    if (!fresh && application != APPLICATION) {
        snprintf(why, ELV_DB_WHY_MAX, "the ledger is a database of some other program");
        return ELV_ERR_FORMAT;
    }
    if (schema < 0 || schema > (int64_t)SCHEMA) {
        snprintf(why, ELV_DB_WHY_MAX,
                 "the state was written by a newer program (schema %lld, this one knows %zu)",
                 (long long)schema, SCHEMA);
        return ELV_ERR_VERSION;
    }
    return migrate(c, (size_t)schema, why);
}

uint64_t elv_db_sum(struct elv_sha256 *h)
{
    uint8_t digest[ELV_SHA256_LEN];
    elv_sha256_final(h, digest);
    struct elv_rd r = elv_rd_of((struct elv_bytes){digest, sizeof digest});
    return elv_rd_u64(&r);
}

static uint64_t sum_of(uint32_t table, uint64_t number, struct elv_bytes value)
{
    uint8_t key[12];
    struct elv_wr w = elv_wr_of(key, sizeof key);
    elv_wr_u32(&w, table);
    elv_wr_u64(&w, number);
    struct elv_sha256 h;
    elv_sha256_init(&h);
    elv_sha256_update(&h, key, sizeof key);
    elv_sha256_update(&h, value.at, value.len);
    return elv_db_sum(&h);
}

/* Looks at every page: better to hear of damage now than in the middle of a round. */
static enum elv_err check_pages(sqlite3 *c, char why[ELV_DB_WHY_MAX])
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(c, "PRAGMA quick_check(1)", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW) {
        const enum elv_err err = failed(c, "cannot read the ledger", why);
        sqlite3_finalize(s);
        return err;
    }
    const char *says = (const char *)sqlite3_column_text(s, 0);
    const bool fine = says != NULL && strcmp(says, "ok") == 0;
    if (!fine)
        snprintf(why, ELV_DB_WHY_MAX, "the ledger is damaged: %s", says != NULL ? says : "?");
    sqlite3_finalize(s);
    return fine ? ELV_OK : ELV_ERR_FORMAT;
}

static enum elv_err open_writer(struct elv_db *db, const char *path, char why[ELV_DB_WHY_MAX])
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &db->writer, flags, NULL) != SQLITE_OK)
        return failed(db->writer, "cannot open the ledger", why);
    sqlite3_busy_timeout(db->writer, BUSY_MS);
    enum elv_err err = check_schema(db->writer, why);
    if (err == ELV_OK)
        err = check_pages(db->writer, why);
    if (err != ELV_OK)
        return err;
    if (sqlite3_exec(db->writer, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL,
                     NULL) != SQLITE_OK)
        return failed(db->writer, "cannot set up the ledger", why);
    for (int i = 0; i < ELV_DB_STATEMENTS; i++) {
        if (sqlite3_prepare_v3(db->writer, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &db->statements[i], NULL) != SQLITE_OK)
            return failed(db->writer, "cannot use the ledger", why);
    }
    return ELV_OK;
}

enum elv_err elv_db_open(struct elv_db *db, const char *path, char why[ELV_DB_WHY_MAX])
{
    memset(db, 0, sizeof *db);
    pthread_mutexattr_t nests; /* whoever is called with a record may look at another table */
    pthread_mutexattr_init(&nests);
    pthread_mutexattr_settype(&nests, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&db->reading, &nests);
    pthread_mutexattr_destroy(&nests);
    enum elv_err err = open_writer(db, path, why);
    if (err == ELV_OK &&
        sqlite3_open_v2(path, &db->reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK)
        err = failed(db->reader, "cannot read the ledger", why);
    if (err != ELV_OK) {
        elv_db_close(db);
        return err;
    }
    sqlite3_busy_timeout(db->reader, BUSY_MS);
    return ELV_OK;
}

void elv_db_close(struct elv_db *db)
{
    for (int i = 0; i < ELV_DB_STATEMENTS; i++)
        sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->reader);
    sqlite3_close(db->writer); /* the last connection also empties the write-ahead log */
    pthread_mutex_destroy(&db->reading);
}

static enum elv_err run(sqlite3_stmt *s)
{
    const int rc = sqlite3_step(s);
    sqlite3_reset(s);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? ELV_OK : ELV_ERR_IO;
}

enum elv_err elv_db_run(struct elv_db *db, enum elv_db_statement which, uint64_t a, uint64_t b,
                        uint64_t c, uint64_t d)
{
    sqlite3_stmt *s = db->statements[which];
    const uint64_t values[] = {a, b, c, d};
    for (int i = 0; i < sqlite3_bind_parameter_count(s); i++)
        sqlite3_bind_int64(s, i + 1, (sqlite3_int64)values[i]);
    return run(s);
}

enum elv_err elv_db_put(struct elv_db *db, uint32_t table, uint64_t number, struct elv_bytes value)
{
    sqlite3_stmt *s = db->statements[ELV_DB_PUT];
    sqlite3_bind_int64(s, 1, table);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)number);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)sum_of(table, number, value));
    const int rc = sqlite3_bind_blob64(s, 4, value.len > 0 ? (const void *)value.at : "", value.len,
                                       SQLITE_STATIC);
    const enum elv_err err = rc == SQLITE_OK ? run(s) : ELV_ERR_IO;
    sqlite3_bind_null(s, 4);
    return err;
}

bool elv_db_is_full(const struct elv_db *db)
{
    return (sqlite3_errcode(db->writer) & 0xFF) == SQLITE_FULL;
}

static sqlite3_stmt *start_reading(struct elv_db *db, const char *query)
{
    sqlite3_stmt *s = NULL;
    pthread_mutex_lock(&db->reading);
    if (sqlite3_prepare_v2(db->reader, query, -1, &s, NULL) != SQLITE_OK)
        return NULL;
    return s;
}

static enum elv_err stop_reading(struct elv_db *db, sqlite3_stmt *s, int rc, enum elv_err err)
{
    sqlite3_finalize(s);
    pthread_mutex_unlock(&db->reading);
    return err == ELV_OK && rc != SQLITE_DONE ? ELV_ERR_IO : err;
}

enum elv_err elv_db_scan(struct elv_db *db, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value))
{
    sqlite3_stmt *s = start_reading(db, "SELECT number, value, sum FROM record WHERE tbl = ?1"
                                        " ORDER BY number < 0, number");
    if (s == NULL)
        return stop_reading(db, s, SQLITE_ERROR, ELV_OK);
    sqlite3_bind_int64(s, 1, table);
    enum elv_err err = ELV_OK;
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && err == ELV_OK) {
        const struct elv_bytes value = {.at = sqlite3_column_blob(s, 1),
                                        .len = (size_t)sqlite3_column_bytes(s, 1)};
        const uint64_t number = (uint64_t)sqlite3_column_int64(s, 0);
        err = (uint64_t)sqlite3_column_int64(s, 2) == sum_of(table, number, value)
                  ? each(ctx, number, value)
                  : ELV_ERR_FORMAT;
    }
    return stop_reading(db, s, rc, err);
}

enum elv_err elv_db_files(struct elv_db *db, void *ctx,
                          enum elv_err (*each)(void *ctx, uint32_t table, uint64_t number,
                                               uint64_t name, uint64_t sum))
{
    sqlite3_stmt *s = start_reading(db, "SELECT tbl, number, name, sum FROM file");
    enum elv_err err = ELV_OK;
    int rc = SQLITE_ERROR;
    while (s != NULL && (rc = sqlite3_step(s)) == SQLITE_ROW && err == ELV_OK)
        err = each(ctx, (uint32_t)sqlite3_column_int64(s, 0), (uint64_t)sqlite3_column_int64(s, 1),
                   (uint64_t)sqlite3_column_int64(s, 2), (uint64_t)sqlite3_column_int64(s, 3));
    return stop_reading(db, s, rc, err);
}

enum elv_err elv_db_logs(struct elv_db *db, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, bool dropped,
                                              uint64_t len))
{
    sqlite3_stmt *s = start_reading(db, "SELECT number, length FROM log");
    enum elv_err err = ELV_OK;
    int rc = SQLITE_ERROR;
    while (s != NULL && (rc = sqlite3_step(s)) == SQLITE_ROW && err == ELV_OK) {
        const int64_t len = sqlite3_column_int64(s, 1);
        err = each(ctx, (uint64_t)sqlite3_column_int64(s, 0), len < 0, (uint64_t)len);
    }
    return stop_reading(db, s, rc, err);
}
