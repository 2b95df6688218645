/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "tests/store_fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/assert.h"

struct fixture fx;

void fixture_make_folder(void)
{
    memset(&fx, 0, sizeof fx);
    /* Memory does: processes are killed here, not machines. */
    const bool has_shm = access("/dev/shm", W_OK | X_OK) == 0;
    strcpy(fx.dir, has_shm ? "/dev/shm/elv_store_XXXXXX" : "/tmp/elv_store_XXXXXX");
    ELV_ASSERT(mkdtemp(fx.dir) != NULL);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    return remove(path);
}

void fixture_remove_folder(void) { nftw(fx.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static void event(void *self, struct elv_event *ev)
{
    (void)self;
    ELV_ASSERT(ev->kind == ELV_EV_STORED && ev->id < FIXTURE_IDS_MAX && !fx.reported[ev->id]);
    ELV_ASSERT(ev->id > fx.last_id); /* in the order of submission */
    fx.last_id = ev->id;
    fx.reported[ev->id] = true;
    fx.results[ev->id] = ev->err;
    fx.n_failed += ev->err != ELV_OK;
}

enum elv_err fixture_open(const struct elv_fs *fs)
{
    const struct elv_sqlite_cfg cfg = {.dir = fx.dir, .job = "job", .fs = fs};
    fx.store = NULL;
    const enum elv_err err = elv_sqlite_open(&fx.store, &cfg, fx.why);
    if (err != ELV_OK)
        return err;
    elv_sqlite_connect(fx.store, (struct elv_sink){.event = event});
    fx.submit = elv_sqlite_store(fx.store);
    fx.disk = elv_sqlite_disk(fx.store);
    return ELV_OK;
}

void fixture_close(void)
{
    elv_sqlite_close(fx.store);
    fx.store = NULL;
}

struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){.at = (const uint8_t *)s, .len = strlen(s)};
}

static struct elv_action store(enum elv_store_kind kind, uint32_t table, uint64_t number,
                               const char *bytes, uint32_t id)
{
    return (struct elv_action){
        .kind = ELV_DO_STORE,
        .id = id,
        .store = {.kind = kind, .table = table, .number = number, .bytes = text(bytes)},
    };
}

struct elv_action put(uint32_t table, uint64_t number, const char *value, uint32_t id)
{
    return store(ELV_STORE_PUT, table, number, value, id);
}

struct elv_action append(uint64_t log, const char *bytes, uint32_t id)
{
    return store(ELV_STORE_APPEND, 0, log, bytes, id);
}

struct elv_action file(uint32_t table, uint64_t number, const char *content, uint32_t id)
{
    struct elv_action a = store(ELV_STORE_FILE, table, number, content, id);
    a.store.head = text("head:");
    return a;
}

struct elv_action drop(uint64_t log, uint32_t id) { return store(ELV_STORE_DROP, 0, log, "", id); }

struct elv_action mend(uint64_t log, uint32_t id) { return store(ELV_STORE_MEND, 0, log, "", id); }

void step(uint32_t n, const struct elv_action *actions)
{
    fx.submit.submit(fx.submit.self, actions, n);
}

enum elv_err wait_for(uint32_t id)
{
    const struct elv_source s = elv_sqlite_source(fx.store);
    while (!fx.reported[id]) {
        struct pollfd p = {.fd = (int)s.handle, .events = POLLIN};
        ELV_ASSERT(poll(&p, 1, 60000) == 1);
        s.ready(s.self);
    }
    return fx.results[id];
}

struct wanted {
    uint64_t number;
    char *out;
};

static enum elv_err pick(void *ctx, uint64_t number, struct elv_bytes value)
{
    const struct wanted *w = ctx;
    if (number == w->number)
        snprintf(w->out, 256, "%.*s", (int)value.len, (const char *)value.at);
    return ELV_OK;
}

void wait_for_tidiness(uint32_t id)
{
    const struct elv_action nothing = put(99, 99, "", id);
    step(1, &nothing); /* the thread tidies up before it takes the next transaction */
    const enum elv_err err = wait_for(id);
    ELV_ASSERT(err == ELV_OK);
}

const char *record_of(uint32_t table, uint64_t number)
{
    static char out[256];
    strcpy(out, "(none)");
    struct wanted w = {number, out};
    ELV_ASSERT(fx.disk.scan(fx.disk.self, table, &w, pick) == ELV_OK);
    return out;
}

const char *log_of(uint64_t number)
{
    static char out[4096];
    size_t got = 0;
    const enum elv_err err =
        fx.disk.read_log(fx.disk.self, number, 0, (uint8_t *)out, sizeof out - 1, &got);
    if (err == ELV_ERR_MISSING)
        return "(none)";
    ELV_ASSERT(err == ELV_OK);
    out[got] = 0;
    return out;
}

const char *file_of(uint32_t table, uint64_t number)
{
    static char out[4096];
    size_t got = 0;
    const enum elv_err err =
        fx.disk.read_file(fx.disk.self, table, number, 0, (uint8_t *)out, sizeof out - 1, &got);
    if (err == ELV_ERR_MISSING)
        return "(none)";
    ELV_ASSERT(err == ELV_OK);
    out[got] = 0;
    return out;
}

uint32_t files_in(const char *sub_folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/job/%s", fx.dir, sub_folder);
    DIR *dir = opendir(path);
    ELV_ASSERT(dir != NULL);
    uint32_t n = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}
