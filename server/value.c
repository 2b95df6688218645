/* SPDX-License-Identifier: Apache-2.0 */
#include "server/value.h"

#include <string.h>

#include "common/text.h"

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static struct elv_text trim(struct elv_text t)
{
    while (t.len > 0 && blank(t.at[0])) {
        t.at++;
        t.len--;
    }
    while (t.len > 0 && blank(t.at[t.len - 1]))
        t.len--;
    return t;
}

struct elv_text elv_value_of(const char *zero_terminated)
{
    return trim((struct elv_text){.at = zero_terminated, .len = strlen(zero_terminated)});
}

bool elv_value_is(struct elv_text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

uint32_t elv_value_words(struct elv_text t, struct elv_text *words, uint32_t max)
{
    uint32_t n = 0;
    for (t = trim(t); t.len > 0; t = trim(t), n++) {
        struct elv_text word = {.at = t.at};
        while (word.len < t.len && !blank(t.at[word.len]))
            word.len++;
        t.at += word.len;
        t.len -= word.len;
        if (n < max)
            words[n] = word;
    }
    return n;
}

uint32_t elv_value_parts(struct elv_text t, char separator, struct elv_text *parts, uint32_t max)
{
    uint32_t n = 0;
    for (bool more = true; more; n++) {
        const char *end = t.len > 0 ? memchr(t.at, separator, t.len) : NULL;
        const size_t len = end != NULL ? (size_t)(end - t.at) : t.len;
        if (n < max)
            parts[n] = trim((struct elv_text){.at = t.at, .len = len});
        more = end != NULL;
        t.at += len + more;
        t.len -= len + more;
    }
    return n;
}

bool elv_value_number(struct elv_text t, double *v)
{
    struct elv_text parts[2];
    double over, under = 1;
    const uint32_t n = elv_value_parts(t, '/', parts, 2);
    if (n > 2 || !elv_text_number(parts[0].at, parts[0].len, &over) ||
        (n == 2 && !elv_text_number(parts[1].at, parts[1].len, &under)) || under == 0)
        return false;
    const double got = over / under, size = got < 0 ? -got : got;
    if (got != 0 && !(size >= 1e-30 && size <= 1e30))
        return false;
    *v = got;
    return true;
}

static const struct {
    const char *name;
    elv_time_us us;
} units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};

bool elv_value_duration(struct elv_text t, elv_time_us *v)
{
    size_t len = t.len; /* of the number */
    while (len > 0 && t.at[len - 1] >= 'a' && t.at[len - 1] <= 'z')
        len--;
    const struct elv_text unit = {.at = t.at + len, .len = t.len - len};
    double number;
    if (!elv_text_number(t.at, len, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!elv_value_is(unit, units[i].name))
            continue;
        const double us = number * (double)units[i].us + 0.5;
        if (!(us >= 0 && us <= 0x1p53)) /* 285 years; beyond, not every microsecond is a double */
            return false;
        *v = (elv_time_us)us;
        return true;
    }
    return false;
}

void elv_value_put_duration(struct elv_line *l, elv_time_us v)
{
    size_t i = 2; /* seconds at most: 90s reads better than 1.5m */
    while (i > 0 && v % units[i].us != 0)
        i--;
    elv_line_uint(l, (uint64_t)(v / units[i].us));
    elv_line_add(l, units[i].name);
}

bool elv_value_bool(struct elv_text t, bool *v)
{
    static const char *const words[2][4] = {{"off", "no", "false", "0"},
                                            {"on", "yes", "true", "1"}};
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < 4; i++) {
            if (elv_value_is(t, words[which][i])) {
                *v = which == 1;
                return true;
            }
        }
    }
    return false;
}

uint32_t elv_value_distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    const size_t n = strlen(a), m = strlen(b);
    uint32_t row[MAX + 1];
    if (n > MAX || m > MAX)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t corner = row[0]; /* the row above, one to the left */
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            const uint32_t change = corner + (a[i - 1] != b[j - 1]);
            const uint32_t gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < gap ? change : gap;
        }
    }
    return row[m];
}
