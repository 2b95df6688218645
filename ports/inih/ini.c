/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/inih/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library calls back for a key right after it asked for the line, so counting the lines it
 * asks for gives the key's line, whatever options it was built with. */
struct reading {
    struct elv_bytes left;
    uint32_t line;
    elv_ini_take *take;
    void *ctx;
    enum elv_err err;
    struct elv_ini_error *e;
};

static void fail(struct reading *r, enum elv_err err, uint32_t line, const char *why)
{
    if (r->err != ELV_OK)
        return; /* the first one counts */
    r->err = err;
    r->e->line = line;
    if (why != NULL)
        snprintf(r->e->why, sizeof r->e->why, "%s", why);
}

/* inih's ini_reader: the next line, or NULL to end. */
static char *next_line(char *out, int cap, void *stream)
{
    struct reading *r = stream;
    if (r->left.len == 0 || r->err != ELV_OK)
        return NULL;
    r->line++;
    const uint8_t *newline = memchr(r->left.at, '\n', r->left.len);
    const size_t len = newline == NULL ? r->left.len : (size_t)(newline - r->left.at) + 1;
    if (len >= (size_t)cap) {
        char why[64];
        snprintf(why, sizeof why, "the line is longer than %d characters", cap - 2);
        fail(r, ELV_ERR_FORMAT, r->line, why);
        return NULL;
    }
    if (memchr(r->left.at, 0, len) != NULL) {
        fail(r, ELV_ERR_FORMAT, r->line, "the line holds a zero byte: this is no text file");
        return NULL;
    }
    memcpy(out, r->left.at, len);
    out[len] = 0;
    r->left.at += len;
    r->left.len -= len;
    return out;
}

/* inih's ini_handler: non-zero goes on. */
static int on_key(void *user, const char *section, const char *key, const char *value)
{
    struct reading *r = user;
    if (r->err != ELV_OK)
        return 1;
    const enum elv_err err =
        r->take(r->ctx, section, key, value == NULL ? "" : value, r->line, r->e->why);
    if (err != ELV_OK)
        fail(r, err, r->line, NULL);
    return 1;
}

enum elv_err elv_ini_parse(struct elv_bytes text, elv_ini_take *take, void *ctx,
                           struct elv_ini_error *e)
{
    struct reading r = {.left = text, .take = take, .ctx = ctx, .e = e};
    *e = (struct elv_ini_error){0};
    const int line = ini_parse_stream(next_line, &r, on_key, &r);
    if (line > 0)
        fail(&r, ELV_ERR_FORMAT, (uint32_t)line,
             "expected '[section]', 'key = value' or a comment");
    else if (line < 0)
        fail(&r, ELV_ERR_MEMORY, 0, "out of memory");
    return r.err;
}

static enum elv_err load(FILE *file, uint8_t *text, size_t *len)
{
    *len = fread(text, 1, ELV_INI_FILE_MAX + 1, file);
    if (ferror(file))
        return ELV_ERR_IO;
    return *len > ELV_INI_FILE_MAX ? ELV_ERR_FULL : ELV_OK;
}

enum elv_err elv_ini_read(const char *path, elv_ini_take *take, void *ctx, struct elv_ini_error *e)
{
    *e = (struct elv_ini_error){0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        const enum elv_err err = errno == ENOENT ? ELV_ERR_MISSING : ELV_ERR_IO;
        snprintf(e->why, sizeof e->why, "%s", strerror(errno));
        return err;
    }
    size_t len = 0;
    uint8_t *text = malloc(ELV_INI_FILE_MAX + 1);
    enum elv_err err = text == NULL ? ELV_ERR_MEMORY : load(file, text, &len);
    if (err == ELV_OK)
        err = elv_ini_parse((struct elv_bytes){text, len}, take, ctx, e);
    else
        snprintf(e->why, sizeof e->why, "%s",
                 err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
    free(text);
    fclose(file);
    return err;
}
