/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ports/sqlite/state.h"

static enum elv_err complain(char why[ELV_SQLITE_WHY_MAX], const char *doing, const char *path)
{
    snprintf(why, ELV_SQLITE_WHY_MAX, "%s %s: %s", doing, path, strerror(errno));
    return ELV_ERR_IO;
}

static enum elv_err make_folder(const char *path, char why[ELV_SQLITE_WHY_MAX])
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return complain(why, "cannot make", path);
    if (stat(path, &st) != 0)
        return complain(why, "cannot use", path);
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return complain(why, "cannot use", path);
    }
    return ELV_OK;
}

static enum elv_err name_holder(int fd, const char *path, char why[ELV_SQLITE_WHY_MAX])
{
    char text[32];
    const int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len)
        return complain(why, "cannot write", path);
    return ELV_OK;
}

static enum elv_err take_lock(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX])
{
    char path[ELV_STATE_PATH_MAX + 8], holder[32] = {0};
    snprintf(path, sizeof path, "%s/lock", s->dir);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return complain(why, "cannot open", path);
    if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
        return name_holder(s->lock, path, why);
    if (errno != EWOULDBLOCK)
        return complain(why, "cannot lock", path);
    if (pread(s->lock, holder, sizeof holder - 1, 0) <= 0)
        holder[0] = 0;
    snprintf(why, ELV_SQLITE_WHY_MAX, "another server uses %s (process %ld)", s->dir,
             strtol(holder, NULL, 10));
    return ELV_ERR_BUSY;
}

static enum elv_err adopt_file(void *ctx, uint32_t table, uint64_t number, uint64_t name,
                               uint64_t sum)
{
    struct elv_sqlite *s = ctx;
    if (elv_files_point(&s->files, table, number, name) != 0)
        return ELV_ERR_MEMORY;
    elv_files_check(&s->files, table, number, sum);
    return ELV_OK;
}

static enum elv_err adopt_log(void *ctx, uint64_t number, bool dropped, uint64_t len)
{
    struct elv_sqlite *s = ctx;
    return dropped ? elv_logs_remove(&s->logs, number) : elv_logs_adopt(&s->logs, number, len);
}

/* Logs nothing was committed of yet: the ledger does not know them. */
static enum elv_err adopt_new_logs(struct elv_sqlite *s)
{
    DIR *dir = opendir(s->logs.folder);
    if (dir == NULL)
        return ELV_ERR_IO;
    enum elv_err err = ELV_OK;
    for (const struct dirent *e = readdir(dir); e != NULL && err == ELV_OK; e = readdir(dir)) {
        char *end;
        const uint64_t number = strtoull(e->d_name, &end, 10);
        if (end != e->d_name && *end == 0 && !elv_logs_has(&s->logs, number))
            err = elv_logs_adopt(&s->logs, number, 0);
    }
    closedir(dir);
    return err;
}

static enum elv_err forget_log(void *ctx, uint64_t number, bool dropped, uint64_t len)
{
    (void)len;
    struct elv_sqlite *s = ctx;
    return dropped ? elv_db_run(&s->db, ELV_DB_LOG_FORGET, number, 0, 0, 0) : ELV_OK;
}

static enum elv_err adopt(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX])
{
    enum elv_err err = elv_db_logs(&s->db, s, adopt_log);
    if (err == ELV_OK)
        err = adopt_new_logs(s);
    if (err == ELV_OK)
        err = elv_db_logs(&s->db, s, forget_log);
    if (err == ELV_OK)
        err = elv_db_files(&s->db, s, adopt_file);
    if (err == ELV_OK)
        err = elv_files_sweep(&s->files);
    if (err == ELV_ERR_MISMATCH)
        snprintf(why, ELV_SQLITE_WHY_MAX, "an upload log in %s is shorter than was acknowledged",
                 s->folder);
    else if (err != ELV_OK)
        complain(why, "cannot read the state in", s->folder);
    return err;
}

static enum elv_err open_parts(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX])
{
    char path[ELV_STATE_PATH_MAX + 96];
    enum elv_err err = make_folder(s->dir, why);
    if (err == ELV_OK)
        err = take_lock(s, why);
    if (err == ELV_OK)
        err = make_folder(s->folder, why);
    if (err == ELV_OK)
        err = make_folder(s->logs.folder, why);
    if (err == ELV_OK)
        err = make_folder(s->files.folder, why);
    if (err != ELV_OK)
        return err;
    snprintf(path, sizeof path, "%s/ledger.db", s->folder);
    err = elv_db_open(&s->db, path, why);
    s->has_db = err == ELV_OK;
    if (err == ELV_OK)
        err = adopt(s, why);
    if (err == ELV_OK && (elv_fs_sync_folder(s->fs, s->folder) != ELV_OK ||
                          elv_fs_sync_folder(s->fs, s->dir) != ELV_OK))
        err = complain(why, "cannot sync", s->folder);
    return err;
}

/* Signals are for the program's loop: the thread is born with all of them blocked. */
static enum elv_err start_thread(struct elv_sqlite *s, char why[ELV_SQLITE_WHY_MAX])
{
    sigset_t all, before;
    sigfillset(&all);
    s->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->event < 0)
        return complain(why, "cannot start", "the store");
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&s->thread, NULL, elv_sqlite_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return ELV_OK;
    errno = rc;
    return complain(why, "cannot start", "the store");
}

static void release(struct elv_sqlite *s)
{
    struct elv_queue *queues[] = {&s->waiting, &s->done};
    for (size_t i = 0; i < 2; i++) {
        while (queues[i]->first != NULL) {
            struct elv_queued *op = queues[i]->first;
            queues[i]->first = op->next;
            free(op);
        }
    }
    elv_logs_free(&s->logs);
    elv_files_free(&s->files);
    elv_batch_free(&s->batch);
    if (s->has_db)
        elv_db_close(&s->db);
    if (s->event >= 0)
        close(s->event);
    if (s->lock >= 0)
        close(s->lock);
    pthread_cond_destroy(&s->room);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static struct elv_sqlite *allocate(const struct elv_sqlite_cfg *cfg)
{
    char path[ELV_STATE_PATH_MAX + 96];
    struct elv_sqlite *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->fs = cfg->fs != NULL ? cfg->fs : elv_fs_posix();
    s->queue_max = cfg->queue_max > 0 ? cfg->queue_max : (size_t)16 << 20;
    s->lock = s->event = -1;
    snprintf(s->dir, sizeof s->dir, "%s", cfg->dir);
    snprintf(s->folder, sizeof s->folder, "%s/%s", cfg->dir, cfg->job);
    snprintf(path, sizeof path, "%s/logs", s->folder);
    elv_logs_init(&s->logs, s->fs, path);
    snprintf(path, sizeof path, "%s/files", s->folder);
    elv_files_init(&s->files, s->fs, path);
    s->batch = (struct elv_batch){.db = &s->db, .logs = &s->logs, .files = &s->files};
    elv_queue_init(&s->waiting);
    elv_queue_init(&s->done);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->wake, NULL);
    pthread_cond_init(&s->room, NULL);
    return s;
}

enum elv_err elv_sqlite_open(struct elv_sqlite **out, const struct elv_sqlite_cfg *cfg,
                             char why[ELV_SQLITE_WHY_MAX])
{
    if (strlen(cfg->dir) >= ELV_STATE_PATH_MAX || strlen(cfg->job) >= 64) {
        snprintf(why, ELV_SQLITE_WHY_MAX, "the state directory's path is too long");
        return ELV_ERR_ARG;
    }
    struct elv_sqlite *s = allocate(cfg);
    if (s == NULL) {
        snprintf(why, ELV_SQLITE_WHY_MAX, "%s", elv_err_text(ELV_ERR_MEMORY));
        return ELV_ERR_MEMORY;
    }
    enum elv_err err = open_parts(s, why);
    if (err == ELV_OK)
        err = start_thread(s, why);
    if (err != ELV_OK) {
        release(s);
        return err;
    }
    *out = s;
    return ELV_OK;
}

void elv_sqlite_close(struct elv_sqlite *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->mutex);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    release(s);
}
