/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/logs.h - the append-only upload logs, one file each.
 *
 * A file is 16 bytes of head (mark, length as a little-endian u64), then the bytes. The length in
 * the head is written after the bytes it counts, so an append is there whole or not at all when the
 * process is killed in the middle of it. After a loss of power the tail beyond what was synced may
 * be missing or zeros; what was acknowledged is not.
 *
 * A log whose append failed is *broken*: the bytes are cut back, later appends to it are dropped,
 * and the store refuses everything until the log is dropped.
 *
 * Append, touch and drop-marking are the node's thread's; sync and delete the store's; reading is
 * anybody's. */
#ifndef ELV_PORTS_SQLITE_LOGS_H
#define ELV_PORTS_SQLITE_LOGS_H

#include <pthread.h>
#include <stdbool.h>

#include "ports/sqlite/fs.h"

#define ELV_LOG_HEAD_LEN 16u
#define ELV_LOGS_PATH_MAX 1024u

struct elv_logfile {
    struct elv_logfile *next;
    uint64_t number;
    uint64_t len;      /* readable */
    uint64_t appended; /* more while a step's appends are being written */
    uint32_t refs;     /* readers and whoever syncs */
    int fd;
    bool broken;
    bool dirty;    /* something is not synced */
    bool dropping; /* a DROP is queued */
    bool dropped;  /* it is done: nobody finds the log any more, though its file is still there */
    bool deleted;  /* out of the list; closed by the last reader */
};

struct elv_logs {
    const struct elv_fs *fs;
    char folder[ELV_LOGS_PATH_MAX];
    pthread_mutex_t mutex;
    struct elv_logfile *first;
    bool folder_dirty; /* a name in the folder is not synced */
};

void elv_logs_init(struct elv_logs *l, const struct elv_fs *fs, const char *folder);
void elv_logs_free(struct elv_logs *l);

/* While opening. Takes in a file that is there; `durable` bytes of it were acknowledged.
 * ELV_ERR_MISMATCH: it has fewer. A log nobody wrote to yet may have `durable` 0 and no file. */
enum elv_err elv_logs_adopt(struct elv_logs *l, uint64_t number, uint64_t durable);
bool elv_logs_has(struct elv_logs *l, uint64_t number);
enum elv_err elv_logs_remove(struct elv_logs *l, uint64_t number); /* the file of a dropped log */

/* Appends, visible to readers after `elv_logs_touch`. Failures mark the log broken. */
void elv_logs_append(struct elv_logs *l, uint64_t number, struct elv_bytes bytes);
void elv_logs_touch(struct elv_logs *l, uint64_t number);

/* Takes a broken log into use again, with what it has; it stays broken if that fails. */
void elv_logs_mend(struct elv_logs *l, uint64_t number);

bool elv_logs_dropping(struct elv_logs *l, uint64_t number);
void elv_logs_mark_drop(struct elv_logs *l, uint64_t number, bool dropping);
/* Broken logs without a queued DROP. */
uint32_t elv_logs_broken(struct elv_logs *l);

/* Syncs what is dirty and calls `each` with the length of every log that was. */
enum elv_err elv_logs_sync(struct elv_logs *l, void *ctx,
                           enum elv_err (*each)(void *ctx, uint64_t number, uint64_t len));
/* The log reads as missing from now on. Its number is free once it is deleted. */
void elv_logs_hide(struct elv_logs *l, uint64_t number);

/* Deletes the file; readers under way finish undisturbed. ELV_ERR_IO: it is still there. */
enum elv_err elv_logs_delete(struct elv_logs *l, uint64_t number);

/* ELV_ERR_MISSING; ELV_ERR_IO. */
enum elv_err elv_logs_read(struct elv_logs *l, uint64_t number, uint64_t offset, uint8_t *out,
                           size_t len, size_t *got);

#endif
