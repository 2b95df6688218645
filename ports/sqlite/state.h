/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sqlite/state.h - what an open store consists of; for store.c and open.c only. */
#ifndef ELV_PORTS_SQLITE_STATE_H
#define ELV_PORTS_SQLITE_STATE_H

#include <pthread.h>

#include "ports/sqlite/batch.h"
#include "ports/sqlite/store.h"

#define ELV_STATE_PATH_MAX 512u /* leaves room for the names below it in every other path */

struct elv_sqlite {
    const struct elv_fs *fs;
    char dir[ELV_STATE_PATH_MAX], folder[ELV_STATE_PATH_MAX + 64];
    int lock, event;
    struct elv_db db;
    struct elv_logs logs;
    struct elv_files files;
    struct elv_batch batch; /* the thread's */
    struct elv_sink sink;

    /* All below, but for the handles themselves, is under the mutex. */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake, room;
    struct elv_queue waiting, done;
    size_t waiting_len, queue_max;
    bool stopping, refusing, has_db;
    struct elv_sqlite_stats stats;
    char why[ELV_SQLITE_WHY_MAX];
};

/* The store's thread: works off what waits until `stopping` is set and nothing does. */
void *elv_sqlite_thread(void *self);

#endif
