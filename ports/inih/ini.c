/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/inih/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer names are cut by libinih without a word. */
#define NAME_MAX_LEN 48u

struct key {
    char section[NAME_MAX_LEN + 1], name[NAME_MAX_LEN + 1];
};

struct reading {
    struct elv_bytes rest;
    uint32_t line;
    bool indented; /* the line just read */

    /* The key whose value may go on in the next line. */
    bool has_key;
    struct key key;
    uint32_t key_line;
    char value[ELV_INI_VALUE_MAX];

    struct key seen[ELV_INI_KEYS_MAX];
    uint32_t n_seen;

    void *ctx;
    elv_ini_each *each;

    enum elv_err err; /* the first failure */
    uint32_t err_line;
    char why[ELV_INI_WHY_MAX];
};

static void fail(struct reading *r, enum elv_err err, uint32_t line, const char *why)
{
    if (r->err != ELV_OK)
        return;
    r->err = err;
    r->err_line = line;
    snprintf(r->why, sizeof r->why, "%s", why);
}

static bool is_blank(uint8_t c) { return c == ' ' || c == '\t'; }

/* What libinih would cut, misread or not see, found in the line as it stands. */
static const char *wrong_with(struct elv_bytes line, size_t room)
{
    if (line.len >= room)
        return "the line is too long; continue it on the next one, indented";
    for (size_t i = 0; i < line.len; i++) {
        const uint8_t c = line.at[i];
        if (c == 0)
            return "there is a zero byte: is this a text file in UTF-8?";
        if (c == 127 || (c < ' ' && c != '\t' && !(c == '\r' && i + 1 == line.len)))
            return "there is a control character";
    }
    if (line.len > 0 && line.at[0] == '[') {
        const uint8_t *end = memchr(line.at, ']', line.len);
        if (end != NULL && (size_t)(end - line.at) > NAME_MAX_LEN)
            return "the section's name is too long";
    }
    return NULL;
}

static void keep(struct reading *r, char *to, struct elv_bytes line)
{
    size_t blanks = 0;
    if (line.len > 0)
        memcpy(to, line.at, line.len);
    to[line.len] = 0;
    while (blanks < line.len && is_blank(line.at[blanks]))
        blanks++;
    r->indented = blanks > 0;
}

/* libinih's reader, in the manner of fgets; `room` is its line buffer. */
static char *next_line(char *to, int room, void *stream)
{
    struct reading *r = stream;
    if (r->err != ELV_OK || r->rest.len == 0)
        return NULL;
    const uint8_t *end = memchr(r->rest.at, '\n', r->rest.len);
    struct elv_bytes line = {.at = r->rest.at,
                             .len = end == NULL ? r->rest.len : (size_t)(end - r->rest.at)};
    const size_t taken = end == NULL ? line.len : line.len + 1;
    r->rest.at += taken;
    r->rest.len -= taken;
    r->line++;
    const char *wrong = wrong_with(line, (size_t)room);
    if (wrong != NULL) {
        fail(r, ELV_ERR_FORMAT, r->line, wrong);
        return NULL;
    }
    keep(r, to, line);
    return to;
}

/* Gives the finished key to the caller. */
static void flush(struct reading *r)
{
    if (!r->has_key || r->err != ELV_OK)
        return;
    r->has_key = false;
    char why[ELV_INI_WHY_MAX] = "";
    const enum elv_err err =
        r->each(r->ctx, r->key.section, r->key.name, r->value, r->key_line, why);
    if (err != ELV_OK)
        fail(r, err, r->key_line, why[0] != 0 ? why : elv_err_text(err));
}

static void remember(struct reading *r, const char *section, const char *name)
{
    if (strlen(section) > NAME_MAX_LEN || strlen(name) > NAME_MAX_LEN) {
        fail(r, ELV_ERR_FORMAT, r->line, "the key's name is too long");
        return;
    }
    snprintf(r->key.section, sizeof r->key.section, "%s", section);
    snprintf(r->key.name, sizeof r->key.name, "%s", name);
    for (uint32_t i = 0; i < r->n_seen; i++) {
        if (strcmp(r->seen[i].section, section) == 0 && strcmp(r->seen[i].name, name) == 0)
            fail(r, ELV_ERR_FORMAT, r->line, "this key was given before");
    }
    if (r->n_seen == ELV_INI_KEYS_MAX)
        fail(r, ELV_ERR_FORMAT, r->line, "there are too many keys");
    if (r->err == ELV_OK)
        r->seen[r->n_seen++] = r->key;
}

static void begin(struct reading *r, const char *section, const char *name, const char *value)
{
    flush(r);
    if (r->err == ELV_OK)
        remember(r, section, name);
    if (r->err != ELV_OK)
        return;
    r->has_key = true;
    r->key_line = r->line;
    if (strlen(value) >= sizeof r->value)
        fail(r, ELV_ERR_FORMAT, r->line, "the value is too long");
    else
        strcpy(r->value, value);
}

static void go_on(struct reading *r, const char *value)
{
    const size_t have = strlen(r->value), more = strlen(value);
    if (strchr(value, '=') != NULL)
        fail(r, ELV_ERR_FORMAT, r->line,
             "an indented line continues the value above; begin a key at the start of its line");
    else if (have + 1 + more >= sizeof r->value)
        fail(r, ELV_ERR_FORMAT, r->line, "the value is too long");
    else if (more > 0)
        snprintf(r->value + have, sizeof r->value - have, have > 0 ? " %s" : "%s", value);
}

/* libinih's handler: non-zero goes on. A continuation is a call with the same key again. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct reading *r = user;
    if (r->err != ELV_OK)
        return 0;
    if (r->indented && r->has_key && strcmp(section, r->key.section) == 0)
        go_on(r, value);
    else
        begin(r, section, name, value);
    return r->err == ELV_OK;
}

static enum elv_err read_all(struct reading *r)
{
    const int rc = ini_parse_stream(next_line, r, on_key, r);
    flush(r);
    if (rc > 0 && (r->err == ELV_OK || (uint32_t)rc < r->err_line)) {
        r->err = ELV_OK; /* libinih goes on behind a line it cannot read: that one came first */
        fail(r, ELV_ERR_FORMAT, (uint32_t)rc, "a line is [section], key = value or a ; comment");
    } else if (rc < 0) {
        fail(r, ELV_ERR_MEMORY, r->line, elv_err_text(ELV_ERR_MEMORY));
    }
    return r->err;
}

enum elv_err elv_ini_parse(struct elv_bytes text, const char *name, void *ctx, elv_ini_each *each,
                           char message[ELV_INI_MESSAGE_MAX])
{
    struct reading *r = calloc(1, sizeof *r);
    if (r == NULL) {
        snprintf(message, ELV_INI_MESSAGE_MAX, "%s", elv_err_text(ELV_ERR_MEMORY));
        return ELV_ERR_MEMORY;
    }
    r->rest = text;
    r->ctx = ctx;
    r->each = each;
    const enum elv_err err = read_all(r);
    if (err != ELV_OK)
        snprintf(message, ELV_INI_MESSAGE_MAX, "%.700s:%u: %s", name, (unsigned)r->err_line,
                 r->why);
    free(r);
    return err;
}

static enum elv_err read_file(const char *path, uint8_t **out, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return errno == ENOENT ? ELV_ERR_MISSING : ELV_ERR_IO;
    uint8_t *text = malloc(ELV_INI_FILE_MAX + 1);
    enum elv_err err = ELV_ERR_MEMORY;
    if (text != NULL) {
        *len = fread(text, 1, ELV_INI_FILE_MAX + 1, f);
        err = ferror(f) ? ELV_ERR_IO : *len > ELV_INI_FILE_MAX ? ELV_ERR_FULL : ELV_OK;
    }
    const int cause = errno;
    fclose(f);
    errno = cause;
    if (err != ELV_OK)
        free(text);
    else
        *out = text;
    return err;
}

enum elv_err elv_ini_load(const char *path, void *ctx, elv_ini_each *each,
                          char message[ELV_INI_MESSAGE_MAX])
{
    uint8_t *text;
    size_t len;
    enum elv_err err = read_file(path, &text, &len);
    if (err != ELV_OK) {
        const bool asked_system = err == ELV_ERR_IO || err == ELV_ERR_MISSING;
        snprintf(message, ELV_INI_MESSAGE_MAX, "%.700s: %s", path,
                 asked_system ? strerror(errno) : elv_err_text(err));
        return err;
    }
    err = elv_ini_parse((struct elv_bytes){.at = text, .len = len}, path, ctx, each, message);
    free(text);
    return err;
}
