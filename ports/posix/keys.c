/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ports/posix/file.h"

static const char heading[] = "# number identity key [enabled|revoked]\n";

static enum elv_err explain(enum elv_err err, struct elv_key_error *e)
{
    e->line = 0;
    if (err == ELV_ERR_AUTH)
        snprintf(e->why, sizeof e->why, "others than its owner may read it; chmod 600 it");
    else if (err == ELV_ERR_IO || err == ELV_ERR_MISSING)
        snprintf(e->why, sizeof e->why, "%s", strerror(errno));
    else
        snprintf(e->why, sizeof e->why, "%s", elv_err_text(err));
    return err;
}

/* True when the file is not the one looked at last; remembers the one there is. Taken before the
 * file is read: what changes in between is seen as a change next time. */
static bool is_new(struct elv_keys *k)
{
    struct stat s = {0};
    if (stat(k->path, &s) != 0)
        memset(&s, 0, sizeof s);
    const int64_t changed_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    const bool same = s.st_dev == k->device && s.st_ino == k->inode && s.st_size == k->len &&
                      changed_ns == k->changed_ns;
    k->device = s.st_dev;
    k->inode = s.st_ino;
    k->len = s.st_size;
    k->changed_ns = changed_ns;
    return !same;
}

static enum elv_err load(const char *path, struct elv_keytable *t, struct elv_key_error *e)
{
    uint8_t *text = NULL;
    size_t len = 0;
    enum elv_err err = elv_posix_load_private(path, ELV_KEYTABLE_MAX, &text, &len);
    if (err != ELV_OK)
        return explain(err, e);
    err = elv_keytable_parse(t, (struct elv_bytes){.at = text, .len = len}, e);
    elv_posix_wipe(text, len);
    free(text);
    return err;
}

enum elv_err elv_keys_open(struct elv_keys *k, const char *path, struct elv_key_error *e)
{
    memset(k, 0, sizeof *k);
    *e = (struct elv_key_error){0};
    if (strlen(path) >= sizeof k->path)
        return explain(ELV_ERR_ARG, e);
    strcpy(k->path, path);
    (void)is_new(k);
    return load(k->path, &k->table, e);
}

void elv_keys_free(struct elv_keys *k) { elv_keytable_free(&k->table); }

static enum elv_err reload(struct elv_keys *k, void *ctx, void (*gone)(void *ctx, uint32_t number),
                           struct elv_key_error *e)
{
    struct elv_keytable fresh;
    const enum elv_err err = load(k->path, &fresh, e);
    if (err != ELV_OK)
        return err;
    struct elv_keytable old = k->table;
    k->table = fresh;
    if (gone != NULL)
        elv_keytable_gone(&old, &k->table, ctx, gone);
    elv_keytable_free(&old);
    return ELV_OK;
}

/* A key goes from the file when memory says it ended, and its device still has another one. */
static enum elv_key_edit drop_retired(void *ctx, struct elv_key *key)
{
    const struct elv_keys *k = ctx;
    char identity[ELV_KEY_IDENTITY_MAX + 1];
    if (key->revoked || !elv_keytable_enabled(&k->table, key->number))
        return ELV_KEY_KEEP;
    const int len = snprintf(identity, sizeof identity, key->generation > 1 ? "%s#%u" : "%s",
                             key->name, (unsigned)key->generation);
    if (elv_keytable_find(&k->table, identity, (size_t)len) != NULL)
        return ELV_KEY_KEEP;
    const struct elv_key *newest = elv_keytable_device(&k->table, key->number);
    return newest->generation > key->generation ? ELV_KEY_REMOVE : ELV_KEY_KEEP;
}

static enum elv_err write_retired(struct elv_keys *k, struct elv_key_error *e)
{
    const struct elv_key_change change = {.ctx = k, .edit = drop_retired};
    const enum elv_err err = elv_keys_change(k->path, &change, false, e);
    if (err == ELV_ERR_BUSY)
        return ELV_OK; /* next time */
    k->retired = false;
    return err;
}

/* Retired keys are written before a changed file is taken, else it would bring them back. */
enum elv_err elv_keys_check(struct elv_keys *k, bool *changed, void *ctx,
                            void (*gone)(void *ctx, uint32_t number), struct elv_key_error *e)
{
    if (changed != NULL)
        *changed = false;
    *e = (struct elv_key_error){0};
    enum elv_err err = k->retired ? write_retired(k, e) : ELV_OK;
    if (err != ELV_OK || !is_new(k))
        return err;
    err = reload(k, ctx, gone, e);
    if (err == ELV_OK && changed != NULL)
        *changed = true;
    return err;
}

void elv_keys_used(struct elv_keys *k, const char *identity, size_t len)
{
    const struct elv_key *key = elv_keytable_find(&k->table, identity, len);
    if (key != NULL && elv_keytable_retire(&k->table, key) > 0)
        k->retired = true;
}

/* The new text: at most the old one with every line printed anew, and what is added. */
struct draft {
    char *at;
    size_t len;
};

static void put(struct draft *d, const void *from, size_t len)
{
    memcpy(d->at + d->len, from, len);
    d->len += len;
}

static void put_key(struct draft *d, const struct elv_key *key)
{
    char line[ELV_KEY_LINE_MAX];
    put(d, line, elv_key_print(key, line));
    put(d, "\n", 1);
    elv_posix_wipe(line, sizeof line);
}

static void edit_line(struct draft *d, struct elv_bytes line, const struct elv_key_change *change)
{
    struct elv_key key;
    char why[ELV_KEY_WHY_MAX];
    enum elv_key_edit edit = ELV_KEY_KEEP;
    if (change->edit != NULL && elv_key_parse(line, &key, why) == ELV_OK)
        edit = change->edit(change->ctx, &key);
    if (edit == ELV_KEY_CHANGED) {
        put_key(d, &key);
    } else if (edit == ELV_KEY_KEEP) {
        put(d, line.at, line.len);
        put(d, "\n", 1);
    }
}

static size_t count_lines(struct elv_bytes text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.at[i] == '\n';
    return n;
}

static enum elv_err make_draft(struct draft *d, struct elv_bytes text,
                               const struct elv_key_change *change)
{
    const size_t cap =
        sizeof heading + text.len + (count_lines(text) + change->n_add) * (size_t)ELV_KEY_LINE_MAX;
    d->len = 0;
    d->at = malloc(cap);
    if (d->at == NULL)
        return ELV_ERR_MEMORY;
    if (text.len == 0)
        put(d, heading, sizeof heading - 1);
    while (text.len > 0) {
        const uint8_t *end = memchr(text.at, '\n', text.len);
        const size_t len = end == NULL ? text.len : (size_t)(end - text.at);
        edit_line(d, (struct elv_bytes){text.at, len}, change);
        const size_t taken = end == NULL ? len : len + 1;
        text.at += taken;
        text.len -= taken;
    }
    if (change->edited != NULL)
        change->edited(change->ctx);
    for (uint32_t i = 0; i < change->n_add; i++)
        put_key(d, &change->add[i]);
    return ELV_OK;
}

/* A table that would not load is never written, and one that does not load is never built upon. */
static enum elv_err check_text(struct elv_bytes text, struct elv_key_error *e)
{
    struct elv_keytable t;
    const enum elv_err err = elv_keytable_parse(&t, text, e);
    if (err == ELV_OK)
        elv_keytable_free(&t);
    return err;
}

static enum elv_err change_text(const char *path, struct elv_bytes text,
                                const struct elv_key_change *change, struct elv_key_error *e)
{
    struct draft d = {0};
    enum elv_err err = check_text(text, e);
    if (err != ELV_OK)
        return err;
    err = make_draft(&d, text, change);
    if (err != ELV_OK)
        return explain(err, e);
    const struct elv_bytes fresh = {.at = (const uint8_t *)d.at, .len = d.len};
    err = check_text(fresh, e);
    if (err == ELV_OK && (fresh.len != text.len || memcmp(fresh.at, text.at, text.len) != 0)) {
        err = elv_posix_save(path, fresh);
        if (err != ELV_OK)
            explain(err, e);
    }
    elv_posix_wipe(d.at, d.len);
    free(d.at);
    return err;
}

static enum elv_err change_locked(const char *path, const struct elv_key_change *change,
                                  struct elv_key_error *e)
{
    uint8_t *text = NULL;
    size_t len = 0;
    enum elv_err err = elv_posix_load_private(path, ELV_KEYTABLE_MAX, &text, &len);
    if (err != ELV_OK && err != ELV_ERR_MISSING)
        return explain(err, e);
    err = change_text(path, (struct elv_bytes){.at = text, .len = len}, change, e);
    if (text != NULL)
        elv_posix_wipe(text, len);
    free(text);
    return err;
}

enum elv_err elv_keys_change(const char *path, const struct elv_key_change *change, bool wait,
                             struct elv_key_error *e)
{
    char lock_path[ELV_KEYS_PATH_MAX];
    struct elv_lock lock;
    *e = (struct elv_key_error){0};
    const int n = snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    if (n < 0 || (size_t)n >= sizeof lock_path)
        return explain(ELV_ERR_ARG, e);
    enum elv_err err = elv_posix_lock(&lock, lock_path, wait, NULL);
    if (err != ELV_OK)
        return explain(err, e);
    err = change_locked(path, change, e);
    elv_posix_unlock(&lock);
    return err;
}
