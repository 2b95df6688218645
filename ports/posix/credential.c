/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/credential.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ports/posix/file.h"

struct span {
    const char *at;
    size_t len;
};

static struct span trim(struct span s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && strchr(" \t\r", s.at[s.len - 1]) != NULL && s.at[s.len - 1] != 0)
        s.len--;
    return s;
}

static bool is(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* Once each, no control bytes: a path with a zero in it would be cut short by the system. */
static const char *set_text(char *to, size_t cap, struct span value)
{
    if (to[0] != 0)
        return "given twice";
    if (value.len == 0 || value.len >= cap)
        return "the value is empty or too long";
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] < ' ')
            return "the value has a control character";
    }
    memcpy(to, value.at, value.len);
    to[value.len] = 0;
    return NULL;
}

static const char *set_identity(struct elv_credential *c, struct span value)
{
    char name[ELV_KEY_NAME_MAX + 1];
    uint32_t generation;
    if (!elv_identity_split(value.at, value.len, name, &generation))
        return "an identity is 1 to 64 of A-Z a-z 0-9 . _ : -, with #2 and up for a later key";
    return set_text(c->identity, sizeof c->identity, value);
}

/* The rules for a key are the key table's, so its parser decides. */
static const char *set_key(struct elv_credential *c, struct span value)
{
    char line[ELV_KEY_LINE_MAX], why[ELV_KEY_WHY_MAX];
    struct elv_key k = {0};
    if (c->key_len != 0)
        return "given twice";
    const int n =
        snprintf(line, sizeof line, "1 x %.*s", (int)(value.len > 80 ? 80 : value.len), value.at);
    const struct elv_bytes in = {.at = (const uint8_t *)line, .len = (size_t)n};
    const enum elv_err err = elv_key_parse(in, &k, why);
    const bool ok = err == ELV_OK && k.key_len > 0 && (size_t)k.key_len * 2 == value.len;
    if (ok) {
        memcpy(c->key, k.key, sizeof c->key);
        c->key_len = k.key_len;
    }
    elv_posix_wipe(line, sizeof line);
    elv_posix_wipe(&k, sizeof k);
    return ok ? NULL : "a key is 32 to 64 hexadecimal digits that are not all alike";
}

static const char *set(struct elv_credential *c, struct span name, struct span value)
{
    if (is(name, "identity"))
        return set_identity(c, value);
    if (is(name, "key"))
        return set_key(c, value);
    if (is(name, "certificate"))
        return set_text(c->certificate, sizeof c->certificate, value);
    if (is(name, "private_key"))
        return set_text(c->private_key, sizeof c->private_key, value);
    if (is(name, "ca"))
        return set_text(c->ca, sizeof c->ca, value);
    return "the names are identity, key, certificate, private_key and ca";
}

static const char *parse_line(struct elv_credential *c, struct span line)
{
    line = trim(line);
    if (line.len == 0 || line.at[0] == '#')
        return NULL;
    const char *sign = memchr(line.at, '=', line.len);
    if (sign == NULL)
        return "a line is: name = value";
    const size_t len = (size_t)(sign - line.at);
    return set(c, trim((struct span){line.at, len}),
               trim((struct span){sign + 1, line.len - len - 1}));
}

static const char *missing(const struct elv_credential *c)
{
    const int n_paths = (c->certificate[0] != 0) + (c->private_key[0] != 0) + (c->ca[0] != 0);
    if (c->identity[0] == 0)
        return "there is no identity";
    if (c->key_len == 0 && n_paths == 0)
        return "there is neither a key nor a certificate";
    if (c->key_len != 0 && n_paths != 0)
        return "there is a key and a certificate: one of the two";
    if (n_paths != 0 && n_paths != 3)
        return "a certificate needs certificate, private_key and ca";
    return NULL;
}

enum elv_err elv_credential_parse(struct elv_bytes text, struct elv_credential *c,
                                  struct elv_key_error *e)
{
    struct elv_credential got = {0};
    const char *why = NULL;
    *e = (struct elv_key_error){0};
    while (why == NULL && text.len > 0) {
        const uint8_t *end = memchr(text.at, '\n', text.len);
        const size_t len = end == NULL ? text.len : (size_t)(end - text.at);
        e->line++;
        why = parse_line(&got, (struct span){(const char *)text.at, len});
        const size_t taken = end == NULL ? len : len + 1;
        text.at += taken;
        text.len -= taken;
    }
    if (why == NULL) {
        e->line = 0;
        why = missing(&got);
    }
    if (why == NULL)
        *c = got;
    else
        snprintf(e->why, sizeof e->why, "%s", why);
    elv_posix_wipe(&got, sizeof got);
    return why == NULL ? ELV_OK : ELV_ERR_FORMAT;
}

static void print_field(struct elv_line *l, const char *name, const char *value)
{
    elv_line_add(l, name);
    elv_line_add(l, value);
    elv_line_add(l, "\n");
}

size_t elv_credential_print(const struct elv_credential *c, char out[ELV_CREDENTIAL_TEXT_MAX])
{
    struct elv_line l = elv_line_of(out, ELV_CREDENTIAL_TEXT_MAX);
    print_field(&l, "identity = ", c->identity);
    if (c->key_len == 0) {
        print_field(&l, "certificate = ", c->certificate);
        print_field(&l, "private_key = ", c->private_key);
        print_field(&l, "ca = ", c->ca);
        return l.len;
    }
    elv_line_add(&l, "key = ");
    elv_line_hex(&l, c->key, c->key_len);
    elv_line_add(&l, "\n");
    return l.len;
}

enum elv_err elv_credential_load(const char *path, struct elv_credential *c,
                                 struct elv_key_error *e)
{
    uint8_t *text = NULL;
    size_t len = 0;
    const enum elv_err err = elv_posix_load_private(path, ELV_CREDENTIAL_TEXT_MAX, &text, &len);
    if (err != ELV_OK) {
        const char *cause = err == ELV_ERR_IO || err == ELV_ERR_MISSING ? strerror(errno)
                            : err == ELV_ERR_AUTH
                                ? "others than its owner may read it; chmod 600 it"
                                : elv_err_text(err);
        *e = (struct elv_key_error){0};
        snprintf(e->why, sizeof e->why, "%s", cause);
        return err;
    }
    const enum elv_err parsed =
        elv_credential_parse((struct elv_bytes){.at = text, .len = len}, c, e);
    elv_posix_wipe(text, len);
    free(text);
    return parsed;
}

enum elv_err elv_credential_save(const char *path, const struct elv_credential *c)
{
    char text[ELV_CREDENTIAL_TEXT_MAX];
    const size_t len = elv_credential_print(c, text);
    const enum elv_err err =
        elv_posix_save(path, (struct elv_bytes){.at = (const uint8_t *)text, .len = len});
    elv_posix_wipe(text, sizeof text);
    return err;
}
