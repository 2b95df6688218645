/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t count(const bool *on, uint32_t n)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        k += on[i];
    return k;
}

/* Those that are on but for the `len` of them from place `from`. */
static void without(const bool *on, uint32_t n, uint32_t from, uint32_t len, bool *out)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = on[i] && (place < from || place - from >= len);
        place += on[i];
    }
}

/* One pass over parts of `len`. True: something went. */
static bool pass(struct shrink *s, bool *on, bool *tried, uint32_t n, uint32_t len)
{
    bool gone = false;
    for (uint32_t from = 0; from < count(on, n) && s->tries < s->tries_max;) {
        without(on, n, from, len, tried);
        s->tries++;
        if (s->fails(s->self, tried, n)) {
            memcpy(on, tried, n * sizeof *on);
            gone = true;
        } else {
            from += len;
        }
    }
    return gone;
}

bool shrink(struct shrink *s, bool *on, uint32_t n)
{
    bool *tried = calloc(n + 1, sizeof *tried);
    if (tried == NULL)
        abort();
    s->tries = 0;
    uint32_t len = count(on, n);
    bool done = len == 0;
    while (!done && s->tries < s->tries_max) {
        const bool gone = pass(s, on, tried, n, len), last = len == 1;
        const uint32_t left = count(on, n), half = (len + 1) / 2;
        len = half < left ? half : left;
        /* Each by itself was tried with just the others there. */
        done = left == 0 || (last && !gone && s->tries < s->tries_max);
    }
    free(tried);
    return done;
}

static bool read_number(const char **at, uint32_t *number)
{
    char *end = NULL;
    if (**at < '0' || **at > '9')
        return false;
    const unsigned long v = strtoul(*at, &end, 10);
    if (v > UINT32_MAX)
        return false;
    *number = (uint32_t)v;
    *at = end;
    return true;
}

bool shrink_read(const char *list, bool *on, uint32_t n)
{
    uint32_t first = 0;
    if (strcmp(list, "none") == 0)
        return true;
    for (;;) { /* ends: each turn takes a digit */
        if (!read_number(&list, &first))
            return false;
        uint32_t last = first;
        if (*list == '-' && (list++, !read_number(&list, &last)))
            return false;
        if (first > last || last >= n)
            return false;
        for (uint32_t i = first; i <= last; i++)
            on[i] = true;
        if (*list == '\0')
            return true;
        if (*list++ != ',')
            return false;
    }
}

void shrink_write(const bool *on, uint32_t n, char *text, uint32_t len)
{
    uint32_t used = 0;
    snprintf(text, len, "none");
    for (uint32_t i = 0; i < n; i++) {
        char item[32];
        uint32_t last = i;
        if (!on[i])
            continue;
        while (last + 1 < n && on[last + 1])
            last++;
        const char *comma = used > 0 ? "," : "";
        if (last > i)
            snprintf(item, sizeof item, "%s%" PRIu32 "-%" PRIu32, comma, i, last);
        else
            snprintf(item, sizeof item, "%s%" PRIu32, comma, i);
        if (used + strlen(item) + 4 > len) {
            snprintf(text + used, len - used, "...");
            return;
        }
        memcpy(text + used, item, strlen(item) + 1);
        used += (uint32_t)strlen(item);
        i = last;
    }
}
