/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is refused with a line that is in it, or printing what was read and reading it again
 * gives the same numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/posix/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct table {
    struct elv_csv c;
    float *x;
    uint32_t *y;
};

static struct table read_table(struct elv_bytes in, const struct elv_csv *c)
{
    struct table t = {
        .c = *c,
        .x = calloc((size_t)c->n_rows * c->n_values, sizeof(float)),
        .y = calloc(c->n_rows, sizeof(uint32_t)),
    };
    ELV_ASSERT(t.x != NULL && t.y != NULL);
    elv_csv_read(in, c, t.x, t.y);
    return t;
}

static size_t print_table(const struct table *t, char *out)
{
    size_t len = 0;
    for (uint32_t r = 0; r < t->c.n_rows; r++) {
        for (uint32_t i = 0; i < t->c.n_values; i++)
            len += (size_t)sprintf(out + len, "%.9g,", (double)t->x[(size_t)r * t->c.n_values + i]);
        len += (size_t)sprintf(out + len, "%u\n", (unsigned)t->y[r]);
    }
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_csv c, again;
    struct elv_csv_error e;
    if (elv_csv_measure((struct elv_bytes){data, size}, &c, &e) != ELV_OK) {
        ELV_ASSERT(e.why != NULL && e.line <= size + 1);
        return 0;
    }
    const struct table t = read_table((struct elv_bytes){data, size}, &c);
    const size_t n = (size_t)c.n_rows * c.n_values;
    char *text = malloc((n + c.n_rows) * 20);
    ELV_ASSERT(text != NULL);
    const struct elv_bytes out = {.at = (const uint8_t *)text, .len = print_table(&t, text)};
    const enum elv_err err = elv_csv_measure(out, &again, &e);
    ELV_ASSERT(err == ELV_OK && !again.has_header && again.n_rows == c.n_rows);
    const struct table u = read_table(out, &again);
    ELV_ASSERT(memcmp(t.y, u.y, c.n_rows * sizeof *t.y) == 0);
    for (size_t i = 0; i < n; i++)
        ELV_ASSERT(t.x[i] == u.x[i]);
    free(t.x);
    free(t.y);
    free(u.x);
    free(u.y);
    free(text);
    return 0;
}
