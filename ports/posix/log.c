/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {"error", "warn", "info", "debug"};
static const char cut_mark[] = " cut=true\n";

bool elv_log_level_of(const char *name, enum elv_log_level *level)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *level = (enum elv_log_level)i;
            return true;
        }
    }
    return false;
}

/* All of `text` or nothing: half a field would be a wrong one. The mark always has room. */
static bool put(struct elv_log_line *l, const char *text, size_t len)
{
    if (l->cut || len > ELV_LOG_LINE_MAX - sizeof cut_mark - l->len) {
        l->cut = true;
        return false;
    }
    memcpy(l->text + l->len, text, len);
    l->len += len;
    return true;
}

static void put_text(struct elv_log_line *l, const char *text) { put(l, text, strlen(text)); }

static void put_time(struct elv_log_line *l)
{
    struct timespec t = {0};
    struct tm utc = {0};
    char text[48], all[64];
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(all, sizeof all, "ts=%s.%03dZ", text, (int)(t.tv_nsec / 1000000));
    put_text(l, all);
}

struct elv_log_line elv_log_begin(const struct elv_log *log, enum elv_log_level level,
                                  const char *event)
{
    struct elv_log_line l;
    l.fd = log != NULL && level <= log->level ? log->fd : -1;
    l.cut = false;
    l.len = 0;
    if (l.fd < 0)
        return l;
    put_time(&l);
    put_text(&l, " level=");
    put_text(&l, names[level]);
    put_text(&l, " event=");
    put_text(&l, event);
    return l;
}

/* Opens ` key=`; a field that does not fit whole is taken back by the caller through `l->len`. */
static void put_key(struct elv_log_line *l, const char *key)
{
    put(l, " ", 1);
    put_text(l, key);
    put(l, "=", 1);
}

static void field(struct elv_log_line *l, const char *key, const char *value)
{
    if (l->fd < 0 || l->cut)
        return;
    const size_t before = l->len;
    put_key(l, key);
    put_text(l, value);
    if (l->cut)
        l->len = before;
}

void elv_log_u64(struct elv_log_line *l, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    field(l, key, text);
}

void elv_log_i64(struct elv_log_line *l, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    field(l, key, text);
}

void elv_log_real(struct elv_log_line *l, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.6g", value);
    field(l, key, text);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._:-/+,@#%[]()*", c) != NULL);
}

static bool needs_quotes(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!is_plain(value[i]))
            return true;
    }
    return len == 0;
}

/* Printable ASCII as it is, all else as \xHH: neither a line end nor a terminal's escape sequence
 * gets through. */
static void put_escaped(struct elv_log_line *l, char c)
{
    char text[8];
    if (c == '"' || c == '\\')
        snprintf(text, sizeof text, "\\%c", c);
    else if (c == '\n')
        snprintf(text, sizeof text, "\\n");
    else if (c >= ' ' && c <= '~')
        snprintf(text, sizeof text, "%c", c);
    else
        snprintf(text, sizeof text, "\\x%02x", (unsigned)(unsigned char)c);
    put_text(l, text);
}

void elv_log_bytes(struct elv_log_line *l, const char *key, const char *value, size_t len)
{
    if (l->fd < 0 || l->cut)
        return;
    const size_t before = l->len;
    put_key(l, key);
    if (!needs_quotes(value, len)) {
        put(l, value, len);
    } else {
        put(l, "\"", 1);
        for (size_t i = 0; i < len && !l->cut; i++)
            put_escaped(l, value[i]);
        put(l, "\"", 1);
    }
    if (l->cut)
        l->len = before;
}

void elv_log_text(struct elv_log_line *l, const char *key, const char *value)
{
    elv_log_bytes(l, key, value, strlen(value));
}

void elv_log_fields(struct elv_log_line *l, const char *fields)
{
    if (l->fd < 0 || l->cut || fields[0] == 0)
        return;
    const size_t before = l->len;
    put(l, " ", 1);
    put_text(l, fields);
    if (l->cut)
        l->len = before;
}

void elv_log_end(struct elv_log_line *l)
{
    if (l->fd < 0)
        return;
    const char *end = l->cut ? cut_mark : "\n";
    memcpy(l->text + l->len, end, strlen(end));
    l->len += strlen(end);
    const size_t len = l->len;
    ssize_t n;
    do
        n = write(l->fd, l->text, len);
    while (n < 0 && errno == EINTR);
    l->fd = -1;
}
