/* SPDX-License-Identifier: Apache-2.0 */
#include "server/settings.h"

#include <string.h>

#include "common/assert.h"
#include "common/text.h"
#include "server/value.h"

enum kind { TEXT, COUNT, BYTES, DURATION };

static const struct setting {
    const char *section, *name;
    const char *accepts; /* continues "give ..." */
    enum kind kind;
    size_t at, size;
    uint64_t max; /* numbers; durations in microseconds */
} table[] = {
#define AT(member) offsetof(struct elv_settings, member), sizeof((struct elv_settings *)0)->member
    {"server", "listen", "addresses like 0.0.0.0:5684 or [::]:5684, with commas between them", TEXT,
     AT(listen), 0},
    {"server", "state", "a folder", TEXT, AT(state), 0},
    {"server", "keys", "the key table that elver-key keeps", TEXT, AT(keys), 0},
    {"server", "ca", "a PEM file", TEXT, AT(ca), 0},
    {"server", "cert", "a PEM file", TEXT, AT(cert), 0},
    {"server", "key", "a PEM file", TEXT, AT(key), 0},
    {"server", "stats", "a file to write", TEXT, AT(stats), 0},
    {"server", "linger", "a duration like 60s, at most 24h", DURATION, AT(linger_us), 86400000000u},
    {"server", "threads", "a number of threads, at most 64", COUNT, AT(threads), 64},
    {"limits", "clients", "a number of clients, at most 10000000", COUNT, AT(clients), 10000000},
    {"limits", "uploads", "a number of clients, at most 1000000", COUNT, AT(uploads), 1000000},
    {"limits", "sessions", "a number of DTLS sessions, at most 1000000", COUNT, AT(sessions),
     1000000},
    {"limits", "half_open", "a number of handshakes, at most 100000", COUNT, AT(half_open), 100000},
    {"limits", "window", "a number of requests in flight, at most 256", COUNT, AT(window), 256},
    {"limits", "log", "a size like 1GiB, at most 1TiB", BYTES, AT(log_bytes), (uint64_t)1 << 40},
    {"limits", "receive_buffer", "a size like 8MiB, at most 1GiB", BYTES, AT(receive_buffer),
     (uint64_t)1 << 30},
    {"limits", "client_min", "the oldest software let in, like elver/0.1.0", TEXT, AT(client_min),
     0},
    {"limits", "idle", "a duration like 24h, at most 720h", DURATION, AT(idle_us), 2592000000000u},
    {"log", "level", "error, warn, info or debug", TEXT, AT(level), 0},
#undef AT
};
enum { SETTINGS = sizeof table / sizeof table[0] };

static const char *const levels[] = {"error", "warn", "info", "debug"};
enum { LEVELS = sizeof levels / sizeof levels[0] };

static const struct {
    const char *name;
    unsigned shift;
} units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};
enum { UNITS = sizeof units / sizeof units[0] };

void elv_settings_init(struct elv_settings *s)
{
    *s = (struct elv_settings){.listen = "0.0.0.0:5684, [::]:5684",
                               .linger_us = 60000000,
                               .idle_us = 86400000000,
                               .level = "info"};
}

/* "NAME/1.2.3" */
static bool is_version(struct elv_text value)
{
    const char *slash = memchr(value.at, '/', value.len);
    if (slash == NULL || slash == value.at || slash == value.at + value.len - 1)
        return false;
    for (const char *at = slash + 1; at < value.at + value.len; at++)
        if (*at != '.' && (*at < '0' || *at > '9'))
            return false;
    return true;
}

static enum elv_err read_text(struct elv_settings *s, const struct setting *row,
                              struct elv_text value)
{
    char *at = (char *)s + row->at;
    if (value.len >= row->size)
        return ELV_ERR_RANGE;
    if (at == s->level) {
        bool known = false;
        for (size_t i = 0; i < LEVELS; i++)
            known = known || elv_value_is(value, levels[i]);
        if (!known)
            return ELV_ERR_FORMAT;
    }
    if (at == s->client_min && !is_version(value))
        return ELV_ERR_FORMAT;
    memset(at, 0, row->size);
    memcpy(at, value.at, value.len);
    return ELV_OK;
}

/* "64KiB": digits and a unit, or digits alone. */
static bool read_bytes(struct elv_text value, uint64_t *v)
{
    size_t digits = 0;
    while (digits < value.len && value.at[digits] >= '0' && value.at[digits] <= '9')
        digits++;
    const struct elv_text unit = {value.at + digits, value.len - digits};
    uint64_t n;
    if (!elv_text_uint(value.at, digits, &n))
        return false;
    for (size_t i = 0; i < UNITS; i++)
        if (elv_value_is(unit, units[i].name) || (unit.len == 0 && units[i].shift == 0)) {
            if (n > UINT64_MAX >> units[i].shift)
                return false;
            *v = n << units[i].shift;
            return true;
        }
    return false;
}

static enum elv_err read_number(struct elv_settings *s, const struct setting *row,
                                struct elv_text value)
{
    uint64_t v;
    elv_time_us us;
    bool ok;
    if (row->kind == DURATION) {
        ok = elv_value_duration(value, &us) && us >= 0;
        v = ok ? (uint64_t)us : 0;
    } else {
        ok = row->kind == BYTES ? read_bytes(value, &v) : elv_text_uint(value.at, value.len, &v);
    }
    if (!ok)
        return ELV_ERR_FORMAT;
    if (v > row->max)
        return ELV_ERR_RANGE;
    const uint32_t narrow = (uint32_t)v;
    if (row->size == sizeof narrow)
        memcpy((uint8_t *)s + row->at, &narrow, sizeof narrow);
    else
        memcpy((uint8_t *)s + row->at, &v, sizeof v);
    return ELV_OK;
}

/* The key nearest to one that does not exist, within two letters; SETTINGS when there is none. */
static size_t nearest(const char *key)
{
    size_t best = SETTINGS;
    uint32_t least = 3;
    for (size_t i = 0; i < SETTINGS; i++) {
        const uint32_t d = elv_value_distance(key, table[i].name);
        if (d < least) {
            least = d;
            best = i;
        }
    }
    return best;
}

static enum elv_err unknown(const char *section, const char *key, struct elv_line *l)
{
    elv_line_add(l, "there is no key '");
    elv_line_add(l, key);
    elv_line_add(l, "' in [");
    elv_line_add(l, section);
    elv_line_add(l, "]; ");
    const size_t near = nearest(key);
    if (near < SETTINGS) {
        elv_line_add(l, "did you mean '");
        elv_line_add(l, table[near].name);
        elv_line_add(l, "' of [");
        elv_line_add(l, table[near].section);
        elv_line_add(l, "]?");
        return ELV_ERR_MISSING;
    }
    elv_line_add(l, "the sections are server, limits and log");
    return ELV_ERR_MISSING;
}

enum elv_err elv_settings_set(struct elv_settings *s, const char *section, const char *key,
                              const char *value, uint32_t line, char why[ELV_SETTINGS_ERROR_MAX])
{
    struct elv_line l = elv_line_of(why, ELV_SETTINGS_ERROR_MAX);
    size_t i = 0;
    while (i < SETTINGS &&
           (strcmp(table[i].section, section) != 0 || strcmp(table[i].name, key) != 0))
        i++;
    if (i == SETTINGS)
        return unknown(section, key, &l);
    if (s->line[i] != 0 && line != ELV_SETTING_FLAG) {
        elv_line_add(&l, "'");
        elv_line_add(&l, key);
        elv_line_add(&l, "' was given before, in line ");
        elv_line_uint(&l, s->line[i]);
        return ELV_ERR_BUSY;
    }
    const struct elv_text text = elv_value_of(value);
    const enum elv_err err =
        table[i].kind == TEXT ? read_text(s, &table[i], text) : read_number(s, &table[i], text);
    if (err == ELV_OK) {
        s->line[i] = line;
        return ELV_OK;
    }
    elv_line_add(&l, "'");
    elv_line_add(&l, value);
    elv_line_add(&l, err == ELV_ERR_RANGE ? "' is out of range for '" : "' does not suit '");
    elv_line_add(&l, key);
    elv_line_add(&l, "'; give ");
    elv_line_add(&l, table[i].accepts);
    return err;
}

static uint32_t line_of(const struct elv_settings *s, const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return s->line[i];
    ELV_ASSERT(false);
    return 0;
}

enum elv_err elv_settings_check(const struct elv_settings *s, char why[ELV_SETTINGS_ERROR_MAX],
                                uint32_t *line)
{
    struct elv_line l = elv_line_of(why, ELV_SETTINGS_ERROR_MAX);
    *line = 0;
    if (s->state[0] == 0) {
        elv_line_add(&l, "the key 'state' of [server] is missing; give a folder");
        return ELV_ERR_MISSING;
    }
    const bool certs = s->ca[0] != 0 || s->cert[0] != 0 || s->key[0] != 0;
    if (certs && (s->ca[0] == 0 || s->cert[0] == 0 || s->key[0] == 0)) {
        *line = line_of(s, s->ca[0] != 0 ? "ca" : s->cert[0] != 0 ? "cert" : "key");
        elv_line_add(&l, "'ca', 'cert' and 'key' go together; give all three or none");
        return ELV_ERR_MISSING;
    }
    if (s->keys[0] == 0) {
        elv_line_add(&l, "the key 'keys' of [server] is missing; give the key table that elver-key "
                         "keeps");
        return ELV_ERR_MISSING;
    }
    return ELV_OK;
}

static void print_bytes(struct elv_line *l, uint64_t v)
{
    size_t i = 0;
    while (v % ((uint64_t)1 << units[i].shift) != 0 || (v == 0 && units[i].shift != 0))
        i++;
    elv_line_uint(l, v >> units[i].shift);
    elv_line_add(l, units[i].name);
}

bool elv_settings_key(const struct elv_settings *s, size_t i, const char **section,
                      const char **key, char value[ELV_SETTING_TEXT_MAX], uint32_t *line)
{
    if (i >= SETTINGS)
        return false;
    struct elv_line l = elv_line_of(value, ELV_SETTING_TEXT_MAX);
    const uint8_t *at = (const uint8_t *)s + table[i].at;
    uint64_t v = 0;
    uint32_t narrow;
    if (table[i].kind != TEXT) {
        if (table[i].size == sizeof narrow) {
            memcpy(&narrow, at, sizeof narrow);
            v = narrow;
        } else {
            memcpy(&v, at, sizeof v);
        }
    }
    switch (table[i].kind) {
    case TEXT:
        elv_line_add(&l, (const char *)at);
        break;
    case COUNT:
        elv_line_uint(&l, v);
        break;
    case BYTES:
        print_bytes(&l, v);
        break;
    case DURATION:
        elv_value_put_duration(&l, (elv_time_us)v);
        break;
    }
    *section = table[i].section;
    *key = table[i].name;
    *line = s->line[i];
    return true;
}
