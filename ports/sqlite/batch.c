/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"

/* After these the disk is as it was before: it is full, or a file could not even be opened. */
static bool is_harmless(int cause)
{
    return cause == ENOSPC || cause == EDQUOT || cause == EMFILE || cause == ENFILE;
}

static enum elv_err blame(struct elv_batch *b, const char *doing)
{
    const int cause = errno;
    snprintf(b->why, sizeof b->why, "%s: %s", doing, strerror(cause));
    if (!is_harmless(cause))
        b->dead = true;
    return ELV_ERR_IO;
}

static enum elv_err blame_db(struct elv_batch *b)
{
    snprintf(b->why, sizeof b->why, "ledger: %s", sqlite3_errmsg(b->db->writer));
    if (!elv_db_is_full(b->db))
        b->dead = true;
    return ELV_ERR_IO;
}

static enum elv_err write_files(struct elv_batch *b, struct elv_queued *first,
                                const struct elv_queued *end)
{
    bool any = false;
    for (struct elv_queued *op = first; op != end; op = op->next) {
        if (op->store.kind != ELV_STORE_FILE)
            continue;
        if (elv_files_write(b->files, op->store.head, op->store.bytes, &op->name, &op->sum) !=
            ELV_OK)
            return blame(b, "writing a file");
        any = true;
    }
    if (any && elv_fs_sync_folder(b->files->fs, b->files->folder) != ELV_OK)
        return blame(b, "syncing the files");
    return ELV_OK;
}

static enum elv_err note_length(void *ctx, uint64_t number, uint64_t len)
{
    struct elv_batch *b = ctx;
    return elv_db_run(b->db, ELV_DB_LOG, number, len, 0, 0) == ELV_OK ? ELV_OK : blame_db(b);
}

/* A failed sync leaves the pages marked clean though they are not written: trying again would
 * report success for lost bytes, so any failure here is final. */
static enum elv_err sync_logs(struct elv_batch *b)
{
    b->why[0] = 0;
    if (elv_logs_sync(b->logs, b, note_length) == ELV_OK)
        return ELV_OK;
    if (b->why[0] == 0) {
        blame(b, "syncing the logs");
        b->dead = true;
    }
    return ELV_ERR_IO;
}

static enum elv_err write_row(struct elv_batch *b, const struct elv_queued *op)
{
    const struct elv_store_op *s = &op->store;
    switch (s->kind) {
    case ELV_STORE_APPEND:
    case ELV_STORE_MEND:
        return ELV_OK; /* in its log already */
    case ELV_STORE_PUT:
        return elv_db_put(b->db, s->table, s->number, s->bytes);
    case ELV_STORE_ERASE:
        return elv_db_run(b->db, ELV_DB_ERASE, s->table, s->number, 0, 0);
    case ELV_STORE_FILE:
        return elv_db_run(b->db, ELV_DB_FILE, s->table, s->number, op->name, op->sum);
    case ELV_STORE_UNLINK:
        return elv_db_run(b->db, ELV_DB_UNFILE, s->table, s->number, 0, 0);
    case ELV_STORE_DROP:
        return elv_db_run(b->db, ELV_DB_LOG_DROP, s->number, 0, 0, 0);
    }
    return ELV_ERR_ARG;
}

static enum elv_err write_rows(struct elv_batch *b, const struct elv_queued *first,
                               const struct elv_queued *end)
{
    for (const struct elv_queued *op = first; op != end; op = op->next) {
        if (write_row(b, op) != ELV_OK)
            return blame_db(b);
    }
    return ELV_OK;
}

static enum elv_err transact(struct elv_batch *b, struct elv_queued *first, struct elv_queued *end)
{
    if (elv_db_run(b->db, ELV_DB_BEGIN, 0, 0, 0, 0) != ELV_OK)
        return blame_db(b);
    enum elv_err err = sync_logs(b);
    if (err == ELV_OK)
        err = write_rows(b, first, end);
    if (err == ELV_OK && elv_db_run(b->db, ELV_DB_COMMIT, 0, 0, 0, 0) != ELV_OK)
        err = blame_db(b);
    if (err != ELV_OK && sqlite3_get_autocommit(b->db->writer) == 0 &&
        elv_db_run(b->db, ELV_DB_ROLLBACK, 0, 0, 0, 0) != ELV_OK)
        b->dead = true;
    return err;
}

static void take_back_files(struct elv_batch *b, struct elv_queued *first,
                            const struct elv_queued *end)
{
    for (struct elv_queued *op = first; op != end; op = op->next) {
        if (op->name != 0)
            elv_files_delete(b->files, op->name);
        op->name = 0;
    }
}

static void leave(struct elv_leftovers *l, uint64_t number)
{
    if (l->n == l->cap) {
        l->cap = l->cap > 0 ? 2 * l->cap : 16;
        l->at = realloc(l->at, l->cap * sizeof *l->at);
        ELV_ASSERT(l->at != NULL);
    }
    l->at[l->n++] = number;
}

static void hide_drops(struct elv_batch *b, const struct elv_queued *first,
                       const struct elv_queued *end)
{
    for (const struct elv_queued *op = first; op != end; op = op->next) {
        if (op->store.kind != ELV_STORE_DROP)
            continue;
        elv_logs_hide(b->logs, op->store.number);
        leave(&b->old_logs, op->store.number);
    }
}

static void point_files(struct elv_batch *b, const struct elv_queued *first,
                        const struct elv_queued *end)
{
    for (const struct elv_queued *op = first; op != end; op = op->next) {
        if (op->store.kind != ELV_STORE_FILE && op->store.kind != ELV_STORE_UNLINK)
            continue;
        const uint64_t old = elv_files_point(b->files, op->store.table, op->store.number, op->name);
        ELV_ASSERT(old != UINT64_MAX);
        if (old != 0)
            leave(&b->old_files, old);
    }
}

enum elv_err elv_batch_commit(struct elv_batch *b, struct elv_queued *first, struct elv_queued *end)
{
    enum elv_err err = write_files(b, first, end);
    if (err == ELV_OK)
        err = transact(b, first, end);
    if (err == ELV_OK) {
        point_files(b, first, end);
        hide_drops(b, first, end);
    } else if (!b->dead) {
        take_back_files(b, first, end); /* else the next start knows which are wanted */
    }
    return err;
}

/* The ledger must forget a dropped log before its number is used again, or the next start would
 * delete the new one. */
static void delete_logs(struct elv_batch *b)
{
    bool begun = false;
    for (size_t i = 0; i < b->old_logs.n; i++) {
        if (elv_logs_delete(b->logs, b->old_logs.at[i]) != ELV_OK)
            continue;
        begun = begun || elv_db_run(b->db, ELV_DB_BEGIN, 0, 0, 0, 0) == ELV_OK;
        if (begun)
            (void)elv_db_run(b->db, ELV_DB_LOG_FORGET, b->old_logs.at[i], 0, 0, 0);
    }
    if (begun && elv_db_run(b->db, ELV_DB_COMMIT, 0, 0, 0, 0) != ELV_OK &&
        sqlite3_get_autocommit(b->db->writer) == 0)
        (void)elv_db_run(b->db, ELV_DB_ROLLBACK, 0, 0, 0, 0);
    for (size_t i = 0; i < b->old_logs.n; i++)
        elv_logs_mark_drop(b->logs, b->old_logs.at[i], false);
    b->old_logs.n = 0;
}

void elv_batch_tidy(struct elv_batch *b)
{
    for (size_t i = 0; i < b->old_files.n; i++)
        elv_files_delete(b->files, b->old_files.at[i]);
    b->old_files.n = 0;
    delete_logs(b);
}

void elv_batch_free(struct elv_batch *b)
{
    free(b->old_files.at);
    free(b->old_logs.at);
}
