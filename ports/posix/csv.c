/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/csv.h"

#include <float.h>
#include <string.h>

#include "common/assert.h"
#include "common/text.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

struct span {
    const char *at;
    size_t len;
};

static struct span trim(struct span s)
{
    while (s.len > 0 && is_space(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.at[s.len - 1]))
        s.len--;
    return s;
}

/* Takes what lies before the next `end` off the front; false when nothing is left. */
static bool next(struct span *rest, char end, struct span *s)
{
    if (rest->at == NULL)
        return false;
    const char *to = rest->len > 0 ? memchr(rest->at, end, rest->len) : NULL;
    s->at = rest->at;
    s->len = to == NULL ? rest->len : (size_t)(to - rest->at);
    if (to == NULL) {
        rest->at = NULL;
    } else {
        rest->at = to + 1;
        rest->len -= s->len + 1;
    }
    return true;
}

/* A 32-bit float or nothing: what would become infinite is refused. */
static bool number(struct span field, float *x)
{
    double v;
    field = trim(field);
    if (!elv_text_number(field.at, field.len, &v) || v > (double)FLT_MAX || v < -(double)FLT_MAX)
        return false;
    *x = (float)v;
    return true;
}

static bool label(struct span field, uint32_t *y)
{
    double v;
    field = trim(field);
    if (!elv_text_number(field.at, field.len, &v) || v < 0 || v > ELV_CSV_LABEL_MAX ||
        v != (double)(uint32_t)v)
        return false;
    *y = (uint32_t)v;
    return true;
}

static uint32_t count_fields(struct span line)
{
    struct span field;
    uint32_t n = 0;
    while (next(&line, ',', &field))
        n++;
    return n;
}

static bool all_numbers(struct span line)
{
    struct span field;
    float x;
    while (next(&line, ',', &field)) {
        if (!number(field, &x))
            return false;
    }
    return true;
}

/* One row; `x` may be NULL: only checked. */
static const char *read_row(struct span line, uint32_t n_values, float *x, uint32_t *y)
{
    struct span field;
    float v;
    for (uint32_t i = 0; i < n_values; i++) {
        if (!next(&line, ',', &field))
            return "there are fewer fields than in the lines before";
        if (!number(field, &v))
            return "a field is not a number";
        if (x != NULL)
            x[i] = v;
    }
    if (!next(&line, ',', &field))
        return "there are fewer fields than in the lines before";
    if (!label(field, y))
        return "the last field is the label: a whole number, 0 to 65535";
    if (line.at != NULL)
        return "there are more fields than in the lines before";
    return NULL;
}

static bool is_empty(struct span line) { return trim(line).len == 0; }

static struct span all_of(struct elv_bytes in)
{
    return (struct span){.at = in.len > 0 ? (const char *)in.at : NULL, .len = in.len};
}

static enum elv_err fail(struct elv_csv_error *e, const char *why, enum elv_err err)
{
    e->why = why;
    return err;
}

/* The first line that is not empty decides how many fields there are. */
static enum elv_err begin(struct elv_csv *c, struct span line, struct elv_csv_error *e)
{
    const uint32_t n = count_fields(line);
    if (n < 2)
        return fail(e, "a line is: values and a label, separated by commas", ELV_ERR_FORMAT);
    c->n_values = n - 1;
    c->has_header = !all_numbers(line);
    return ELV_OK;
}

enum elv_err elv_csv_measure(struct elv_bytes in, struct elv_csv *c, struct elv_csv_error *e)
{
    struct elv_csv got = {0};
    struct span rest = all_of(in), line;
    *e = (struct elv_csv_error){0};
    if (in.len >= UINT32_MAX) /* so no count below can wrap */
        return fail(e, "it is longer than 4 GiB", ELV_ERR_RANGE);
    while (next(&rest, '\n', &line)) {
        uint32_t y;
        e->line++;
        if (is_empty(line))
            continue;
        if (got.n_values == 0) {
            const enum elv_err err = begin(&got, line, e);
            if (err != ELV_OK)
                return err;
            if (got.has_header)
                continue;
        }
        const char *why = read_row(line, got.n_values, NULL, &y);
        if (why != NULL)
            return fail(e, why, ELV_ERR_FORMAT);
        got.n_rows++;
    }
    e->line = 0;
    if (got.n_rows == 0)
        return fail(e, "it has no examples", ELV_ERR_FORMAT);
    *c = got;
    return ELV_OK;
}

void elv_csv_read(struct elv_bytes in, const struct elv_csv *c, float *x, uint32_t *labels)
{
    struct span rest = all_of(in), line;
    bool skip = c->has_header;
    uint32_t row = 0;
    while (next(&rest, '\n', &line)) {
        if (is_empty(line))
            continue;
        if (skip) {
            skip = false;
            continue;
        }
        ELV_ASSERT(row < c->n_rows);
        const char *why = read_row(line, c->n_values, x + (size_t)row * c->n_values, &labels[row]);
        ELV_ASSERT(why == NULL);
        row++;
    }
    ELV_ASSERT(row == c->n_rows);
}
