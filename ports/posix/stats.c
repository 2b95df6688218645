/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ports/posix/file.h"

static void put(struct elv_stats *s, const char *text, size_t len)
{
    if (s->full || len > s->cap - s->len) {
        s->full = true;
        return;
    }
    memcpy(s->at + s->len, text, len);
    s->len += len;
}

static void put_text(struct elv_stats *s, const char *text) { put(s, text, strlen(text)); }

/* RFC 8259, section 7. Bytes of UTF-8 pass as they are. */
static void put_quoted(struct elv_stats *s, const char *text)
{
    put_text(s, "\"");
    for (; *text != 0; text++) {
        char escaped[8];
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else if (c < ' ' || c == 127)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)c);
        else
            snprintf(escaped, sizeof escaped, "%c", c);
        put_text(s, escaped);
    }
    put_text(s, "\"");
}

static void put_key(struct elv_stats *s, const char *key)
{
    if (s->needs_comma)
        put_text(s, ",");
    s->needs_comma = true;
    put_quoted(s, key);
    put_text(s, ":");
}

struct elv_stats elv_stats_begin(char *out, size_t cap)
{
    struct elv_stats s = {.at = out, .cap = cap};
    put_text(&s, "{");
    return s;
}

void elv_stats_open(struct elv_stats *s, const char *key)
{
    put_key(s, key);
    put_text(s, "{");
    s->depth++;
    s->needs_comma = false;
}

void elv_stats_close(struct elv_stats *s)
{
    put_text(s, "}");
    s->depth--;
    s->needs_comma = true;
}

void elv_stats_u64(struct elv_stats *s, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_key(s, key);
    put_text(s, text);
}

void elv_stats_i64(struct elv_stats *s, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_key(s, key);
    put_text(s, text);
}

void elv_stats_real(struct elv_stats *s, const char *key, double value)
{
    char text[40] = "null";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.9g", value);
    put_key(s, key);
    put_text(s, text);
}

void elv_stats_bool(struct elv_stats *s, const char *key, bool value)
{
    put_key(s, key);
    put_text(s, value ? "true" : "false");
}

void elv_stats_text(struct elv_stats *s, const char *key, const char *value)
{
    put_key(s, key);
    put_quoted(s, value);
}

struct elv_bytes elv_stats_end(struct elv_stats *s)
{
    put_text(s, "}\n");
    if (s->full || s->depth != 0)
        return (struct elv_bytes){0};
    return (struct elv_bytes){.at = (const uint8_t *)s->at, .len = s->len};
}

enum elv_err elv_stats_save(struct elv_stats *s, const char *path)
{
    const struct elv_bytes text = elv_stats_end(s);
    if (s->full)
        return ELV_ERR_SPACE;
    if (text.len == 0)
        return ELV_ERR_ARG;
    return elv_posix_publish(path, text);
}
