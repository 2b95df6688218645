/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/client_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/assert.h"
#include "ports/posix/file.h"

enum { FORM = 1, NAME_LEN = 64, BLOCK = 65536, OWNER_MAX = 1024 };
static const char mark[8] = {'e', 'l', 'v', 's', 't', 'a', 't', 'e'};

struct elv_client_state {
    struct elv_client_state_cfg cfg;
    struct elv_lock lock;
    int folder;
    int log; /* of the last append; -1: none is open */
    uint64_t log_number;
    bool failing; /* and said so */
};

/* The head. */

void elv_client_state_head_encode(const struct elv_client_state_head *h,
                                  uint8_t out[ELV_CLIENT_STATE_HEAD_LEN])
{
    struct elv_wr w = elv_wr_of(out, ELV_CLIENT_STATE_HEAD_LEN);
    elv_wr_bytes(&w, (struct elv_bytes){(const uint8_t *)mark, sizeof mark});
    elv_wr_u32(&w, FORM);
    elv_wr_u32(&w, h->table);
    elv_wr_u64(&w, h->number);
    elv_wr_u64(&w, h->len);
    elv_wr_bytes(&w, (struct elv_bytes){h->sum, sizeof h->sum});
    ELV_ASSERT(w.err == ELV_OK && w.left == 0);
}

enum elv_err elv_client_state_head_decode(struct elv_bytes in, struct elv_client_state_head *h)
{
    struct elv_rd r = elv_rd_of(in);
    const struct elv_bytes first = elv_rd_bytes(&r, sizeof mark);
    const uint32_t form = elv_rd_u32(&r);
    struct elv_client_state_head got = {.table = elv_rd_u32(&r)};
    got.number = elv_rd_u64(&r);
    got.len = elv_rd_u64(&r);
    const struct elv_bytes sum = elv_rd_bytes(&r, sizeof got.sum);
    if (r.err != ELV_OK)
        return r.err;
    if (memcmp(first.at, mark, sizeof mark) != 0)
        return ELV_ERR_FORMAT;
    if (form != FORM)
        return ELV_ERR_VERSION;
    memcpy(got.sum, sum.at, sum.len);
    *h = got;
    return ELV_OK;
}

/* Names. */

static void file_name(char name[NAME_LEN], uint32_t table, uint64_t number)
{
    snprintf(name, NAME_LEN, "file-%" PRIu32 "-%" PRIu64, table, number);
}

static void log_name(char name[NAME_LEN], uint64_t number)
{
    snprintf(name, NAME_LEN, "log-%" PRIu64, number);
}

static void tell(const struct elv_client_state *s, const char *what, const char *name,
                 const char *why)
{
    if (s->cfg.tell != NULL)
        s->cfg.tell(s->cfg.tell_self, what, name, why);
}

/* Writing. */

static bool write_all(int fd, struct elv_bytes data)
{
    while (data.len > 0) {
        const ssize_t n = write(fd, data.at, data.len);
        if (n < 0 && errno != EINTR)
            return false;
        data.at += n > 0 ? n : 0;
        data.len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool fill(int fd, const struct elv_store_op *op)
{
    uint8_t head[ELV_CLIENT_STATE_HEAD_LEN];
    struct elv_client_state_head h = {
        .table = op->table, .number = op->number, .len = op->head.len + op->bytes.len};
    struct elv_sha256 sha;
    elv_sha256_init(&sha);
    elv_sha256_update(&sha, op->head.at, op->head.len);
    elv_sha256_update(&sha, op->bytes.at, op->bytes.len);
    elv_sha256_final(&sha, h.sum);
    elv_client_state_head_encode(&h, head);
    return write_all(fd, (struct elv_bytes){head, sizeof head}) && write_all(fd, op->head) &&
           write_all(fd, op->bytes) && fsync(fd) == 0;
}

/* Under another name first: whatever happens, one of the two is whole. */
static bool replace(struct elv_client_state *s, const struct elv_store_op *op)
{
    char name[NAME_LEN];
    static const char fresh[] = "fresh";
    file_name(name, op->table, op->number);
    if (unlinkat(s->folder, fresh, 0) != 0 && errno != ENOENT)
        return false;
    const int fd =
        openat(s->folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = fill(fd, op);
    int cause = errno;
    if (close(fd) != 0 && done) { /* a full disk may only show here */
        done = false;
        cause = errno;
    }
    if (done && renameat(s->folder, fresh, s->folder, name) == 0 && fsync(s->folder) == 0)
        return true;
    cause = done ? errno : cause;
    unlinkat(s->folder, fresh, 0);
    errno = cause;
    return false;
}

static bool unlink_name(const struct elv_client_state *s, const char *name)
{
    return unlinkat(s->folder, name, 0) == 0 || errno == ENOENT;
}

static void close_log(struct elv_client_state *s)
{
    if (s->log >= 0)
        close(s->log);
    s->log = -1;
}

static bool append(struct elv_client_state *s, const struct elv_store_op *op)
{
    char name[NAME_LEN];
    if (s->log < 0 || s->log_number != op->number) {
        close_log(s);
        log_name(name, op->number);
        s->log =
            openat(s->folder, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
        s->log_number = op->number;
    }
    return s->log >= 0 && write_all(s->log, op->bytes);
}

static bool drop(struct elv_client_state *s, uint64_t number)
{
    char name[NAME_LEN];
    if (s->log_number == number)
        close_log(s);
    log_name(name, number);
    return unlink_name(s, name);
}

static bool carry_out(struct elv_client_state *s, const struct elv_store_op *op)
{
    char name[NAME_LEN];
    switch (op->kind) {
    case ELV_STORE_APPEND:
        return append(s, op);
    case ELV_STORE_DROP:
        return drop(s, op->number);
    case ELV_STORE_FILE:
        return replace(s, op);
    case ELV_STORE_UNLINK:
        file_name(name, op->table, op->number);
        return unlink_name(s, name);
    case ELV_STORE_PUT:
    case ELV_STORE_ERASE:
    case ELV_STORE_MEND:
        break;
    }
    ELV_ASSERT(false); /* no client asks for that */
    return false;
}

/* What frees room works on a full disk, too, and says nothing about writing. */
static bool writes(const struct elv_action *actions, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (actions[i].store.kind == ELV_STORE_FILE || actions[i].store.kind == ELV_STORE_APPEND)
            return true;
    return false;
}

static void note(struct elv_client_state *s, bool fine, int cause)
{
    if (fine != s->failing)
        return;
    s->failing = !fine;
    if (fine)
        tell(s, "state_works_again", "", "");
    else
        tell(s, "state_not_kept", "", strerror(cause));
}

static void submit(void *self, const struct elv_action *actions, uint32_t n)
{
    struct elv_client_state *s = self;
    bool fine = true;
    int cause = 0;
    for (uint32_t i = 0; i < n && fine; i++) {
        fine = carry_out(s, &actions[i].store);
        cause = errno;
    }
    if (!fine || writes(actions, n))
        note(s, fine, cause);
    for (uint32_t i = 0; i < n; i++)
        if (actions[i].id != 0)
            s->cfg.sink.event(s->cfg.sink.self,
                              &(struct elv_event){.kind = ELV_EV_STORED,
                                                  .id = actions[i].id,
                                                  .err = fine              ? ELV_OK
                                                         : cause == ENOSPC ? ELV_ERR_FULL
                                                                           : ELV_ERR_IO});
}

/* Reading. */

static int open_plain(const struct elv_client_state *s, const char *name)
{
    struct stat st;
    const int fd = openat(s->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Up to `len` bytes; less only at the end. */
static enum elv_err read_at(int fd, uint64_t offset, uint8_t *out, size_t len, size_t *got)
{
    *got = 0;
    if (offset > INT64_MAX - len)
        return ELV_OK;
    while (*got < len) {
        const ssize_t n = pread(fd, out + *got, len - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ELV_ERR_IO;
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return ELV_OK;
}

static enum elv_err read_name(const struct elv_client_state *s, const char *name, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got)
{
    *got = 0;
    const int fd = open_plain(s, name);
    if (fd < 0)
        return errno == ENOENT ? ELV_ERR_MISSING : ELV_ERR_IO;
    const enum elv_err err = read_at(fd, offset, out, len, got);
    close(fd);
    return err;
}

static enum elv_err read_log(void *self, uint64_t number, uint64_t offset, uint8_t *out, size_t len,
                             size_t *got)
{
    char name[NAME_LEN];
    log_name(name, number);
    return read_name(self, name, offset, out, len, got);
}

static enum elv_err read_file(void *self, uint32_t table, uint64_t number, uint64_t offset,
                              uint8_t *out, size_t len, size_t *got)
{
    char name[NAME_LEN];
    file_name(name, table, number);
    if (offset > UINT64_MAX - ELV_CLIENT_STATE_HEAD_LEN)
        return ELV_ERR_ARG;
    return read_name(self, name, offset + ELV_CLIENT_STATE_HEAD_LEN, out, len, got);
}

static enum elv_err scan(void *self, uint32_t table, void *ctx,
                         enum elv_err (*each)(void *ctx, uint64_t number, struct elv_bytes value))
{
    (void)self, (void)table, (void)ctx, (void)each;
    return ELV_OK;
}

/* At the start. */

static bool sum_of(int fd, uint64_t len, uint8_t sum[ELV_SHA256_LEN])
{
    uint8_t *block = malloc(BLOCK);
    struct elv_sha256 sha;
    uint64_t done = 0;
    size_t got = 1;
    elv_sha256_init(&sha);
    while (block != NULL && done < len && got > 0) {
        const size_t want = len - done < BLOCK ? (size_t)(len - done) : BLOCK;
        if (read_at(fd, ELV_CLIENT_STATE_HEAD_LEN + done, block, want, &got) != ELV_OK)
            got = 0;
        elv_sha256_update(&sha, block, got);
        done += got;
    }
    elv_sha256_final(&sha, sum);
    free(block);
    return done == len;
}

/* NULL: it is whole; else what is wrong with it. */
static const char *look_at(int fd, const char *name)
{
    uint8_t head[ELV_CLIENT_STATE_HEAD_LEN], sum[ELV_SHA256_LEN];
    char want[NAME_LEN];
    size_t got = 0;
    struct stat st;
    struct elv_client_state_head h;
    if (fstat(fd, &st) != 0 || read_at(fd, 0, head, sizeof head, &got) != ELV_OK)
        return "it cannot be read";
    const enum elv_err err = elv_client_state_head_decode((struct elv_bytes){head, got}, &h);
    if (err == ELV_ERR_VERSION)
        return "another version of this software wrote it";
    if (err != ELV_OK)
        return "it is no state of this software";
    file_name(want, h.table, h.number);
    if (strcmp(want, name) != 0)
        return "it says that it is another file";
    if ((uint64_t)st.st_size - ELV_CLIENT_STATE_HEAD_LEN != h.len)
        return "it has not the length it says";
    if (!sum_of(fd, h.len, sum) || memcmp(sum, h.sum, sizeof sum) != 0)
        return "its check sum differs";
    return NULL;
}

/* A file that is not whole is put aside under another name, where people can look at it. */
static void check_file(struct elv_client_state *s, const char *name)
{
    char aside[NAME_LEN];
    const int fd = open_plain(s, name);
    const char *wrong = fd < 0 ? "it is no plain file" : look_at(fd, name);
    if (fd >= 0)
        close(fd);
    if (wrong == NULL)
        return;
    tell(s, "state_ignored", name, wrong);
    snprintf(aside, sizeof aside, "bad-%.*s", NAME_LEN - 5, name);
    if (renameat(s->folder, name, s->folder, aside) != 0)
        unlinkat(s->folder, name, 0);
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static enum elv_err check_all(struct elv_client_state *s)
{
    const int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return ELV_ERR_IO;
    }
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (begins(e->d_name, "file-") && strlen(e->d_name) < NAME_LEN)
            check_file(s, e->d_name);
    closedir(d);
    unlinkat(s->folder, "fresh", 0); /* of a process that was killed while it wrote */
    return ELV_OK;
}

static enum elv_err in_folder(const struct elv_client_state *s, const char *name,
                              char path[PATH_MAX])
{
    const int len = snprintf(path, PATH_MAX, "%s/%s", s->cfg.path, name);
    return len < 0 || len >= PATH_MAX ? ELV_ERR_ARG : ELV_OK;
}

static enum elv_err check_owner(const struct elv_client_state *s)
{
    char path[PATH_MAX];
    uint8_t *text = NULL;
    size_t len = 0;
    if (s->cfg.owner == NULL)
        return ELV_OK;
    const size_t want = strlen(s->cfg.owner);
    enum elv_err err = in_folder(s, "owner", path);
    if (err == ELV_OK)
        err = elv_posix_load(path, OWNER_MAX, &text, &len);
    if (err == ELV_ERR_MISSING || (err == ELV_OK && len == 0)) /* a full disk left it empty */
        err = elv_posix_save(path, (struct elv_bytes){(const uint8_t *)s->cfg.owner, want});
    else if (err == ELV_OK && (len != want || memcmp(text, s->cfg.owner, want) != 0))
        err = ELV_ERR_AUTH;
    free(text);
    return err == ELV_ERR_FULL ? ELV_ERR_AUTH : err;
}

static enum elv_err take(struct elv_client_state *s, long *holder)
{
    char path[PATH_MAX];
    if (in_folder(s, "lock", path) != ELV_OK)
        return ELV_ERR_ARG;
    if (mkdir(s->cfg.path, 0700) != 0 && errno != EEXIST)
        return ELV_ERR_IO;
    s->folder = open(s->cfg.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return ELV_ERR_IO;
    enum elv_err err = elv_posix_lock(&s->lock, path, false, holder);
    if (err == ELV_OK)
        err = check_owner(s);
    return err == ELV_OK ? check_all(s) : err;
}

enum elv_err elv_client_state_open(const struct elv_client_state_cfg *cfg,
                                   struct elv_client_state **out, long *holder)
{
    struct elv_client_state *s = malloc(sizeof *s);
    if (s == NULL)
        return ELV_ERR_MEMORY;
    *s = (struct elv_client_state){.cfg = *cfg, .lock = {-1}, .folder = -1, .log = -1};
    const enum elv_err err = take(s, holder);
    if (err != ELV_OK) {
        const int cause = errno;
        elv_client_state_close(s);
        errno = cause;
        return err;
    }
    *out = s;
    return ELV_OK;
}

void elv_client_state_close(struct elv_client_state *s)
{
    if (s == NULL)
        return;
    close_log(s);
    if (s->folder >= 0)
        close(s->folder);
    elv_posix_unlock(&s->lock);
    free(s);
}

struct elv_store elv_client_state_store(struct elv_client_state *s)
{
    return (struct elv_store){.self = s, .submit = submit};
}

struct elv_disk elv_client_state_disk(struct elv_client_state *s)
{
    return (struct elv_disk){.self = s, .scan = scan, .read_log = read_log, .read_file = read_file};
}
