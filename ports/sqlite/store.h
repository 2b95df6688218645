/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/store.h - a server's durable state in one folder.
 *
 *     DIR/lock               the process that serves from DIR
 *     DIR/JOB/ledger.db      SQLite, write-ahead log, synchronous FULL
 *     DIR/JOB/logs/N         upload log N
 *     DIR/JOB/files/N        the content of some file; the ledger knows which
 *
 * `submit` writes appended bytes to their log at once, so that they survive the process, and queues
 * all else. The store's thread takes everything that is queued, writes files, syncs the logs, makes
 * ONE transaction of it and then reports: the more commits wait, the more share one sync.
 *
 * What the node may rely on
 * - STORED events come in the order of submission. After STORED with ELV_OK everything submitted up
 *   to there is durable and `elv_disk` shows it. Appended bytes can be read as soon as `submit`
 *   returns; an append is there whole or not at all if the process is killed. After a loss of power
 *   a log may have lost what no reported id covers, or end in zeros: check what you read.
 * - STORED with an error says that its transaction and all that was submitted after it, up to the
 *   moment the event is delivered, are lost, those without an id included (and so may be such ones
 *   between it and the last id reported as stored). What is submitted from then on is taken again.
 *   Appended bytes are not lost by such a failure, so offsets stay right.
 * - A log is different when writing to it fails (a full disk): the append is cut off, later appends
 *   to that log are dropped, and every transaction fails until one that drops the log is submitted,
 *   or one that mends it when there is room again. So a commit that leans on lost bytes cannot
 *   succeed.
 * - When a sync fails or SQLite reports more than a full disk, nobody knows what is on the disk:
 *   all further transactions fail until the store is opened again. A transaction reported as failed
 *   may then turn out to have been kept.
 * - A number of a dropped log may be used again in a later step, not in the same one.
 * - FILE: `bytes` stay as they are until STORED; with id 0, until the STORED of a later submit.
 *
 * `submit`, `connect` and the source belong to the node's thread, `elv_disk` to any. */
#ifndef ELV_PORTS_SQLITE_STORE_H
#define ELV_PORTS_SQLITE_STORE_H

#include "common/port.h"

#define ELV_SQLITE_WHY_MAX 768u /* holds the longest path and a sentence */

struct elv_fs;

struct elv_sqlite_cfg {
    const char *dir;         /* made when missing; its parent must exist */
    const char *job;         /* sub-folder, made when missing */
    size_t queue_max;        /* bytes that may wait; 0: 16 MiB. `submit` waits for room beyond */
    const struct elv_fs *fs; /* NULL: the system's */
};

struct elv_sqlite_stats {
    uint64_t transactions;    /* committed, one per submit */
    uint64_t batches;         /* they were committed in */
    uint64_t failures;        /* transactions that were not */
    uint64_t stalls;          /* times `submit` had to wait */
    uint64_t batch_max;       /* transactions in one batch */
    elv_time_us batch_max_us; /* the longest batch */
    uint64_t free_bytes;      /* on the file system */
    bool dead;                /* fails everything until opened again */
};

struct elv_sqlite;

/* `why` is a sentence for the operator, written on failure. ELV_ERR_BUSY: another process serves
 * from this folder (`why` names it); ELV_ERR_VERSION: a newer program wrote the state;
 * ELV_ERR_MISMATCH: acknowledged bytes are gone; ELV_ERR_FORMAT: damaged or not ours; ELV_ERR_IO;
 * ELV_ERR_ARG: a path too long; ELV_ERR_MEMORY. */
enum elv_err elv_sqlite_open(struct elv_sqlite **s, const struct elv_sqlite_cfg *cfg,
                             char why[ELV_SQLITE_WHY_MAX]);

/* Where STORED events go; before the source is first called. */
void elv_sqlite_connect(struct elv_sqlite *s, struct elv_sink sink);

struct elv_store elv_sqlite_store(struct elv_sqlite *s);
struct elv_disk elv_sqlite_disk(struct elv_sqlite *s); /* `each` of a scan may read, not submit */
struct elv_source elv_sqlite_source(struct elv_sqlite *s);
void elv_sqlite_stats(struct elv_sqlite *s, struct elv_sqlite_stats *out);

/* Why the last failure happened, for the log; empty while there was none. */
void elv_sqlite_why(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX]);

/* Finishes what is queued; its events are not delivered. NULL is fine. */
void elv_sqlite_close(struct elv_sqlite *s);

#endif
