/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/trace.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "ports/sim/queue.h"

enum { WHY_MAX = 256, FIELDS = 6 };

static const char header[] = "client,start,end,compute_ms,up_bytes_s,down_bytes_s";
static const double year_s = 31536000.0;

struct parser {
    struct elv_lab_trace *t;
    struct elv_bytes left;
    uint32_t line, cap, cap_first;
    char *why;
};

static enum elv_err refuse(struct parser *p, const char *a, const char *b, const char *c)
{
    struct elv_line l = elv_line_of(p->why, WHY_MAX);
    elv_line_add(&l, a);
    elv_line_add(&l, b);
    elv_line_add(&l, c);
    return ELV_ERR_FORMAT;
}

/* The next line without its end; false: there is none. */
static bool take_line(struct parser *p, struct elv_bytes *line)
{
    if (p->left.len == 0)
        return false;
    const uint8_t *end = memchr(p->left.at, '\n', p->left.len);
    const size_t len = end ? (size_t)(end - p->left.at) : p->left.len;
    *line = (struct elv_bytes){.at = p->left.at, .len = len};
    p->left.at += end ? len + 1 : len;
    p->left.len -= end ? len + 1 : len;
    p->line++;
    if (line->len > 0 && line->at[line->len - 1] == '\r')
        line->len--;
    return true;
}

/* Up to the next comma, without the blanks around. */
static struct elv_bytes take_field(struct elv_bytes *line)
{
    const uint8_t *comma = line->len > 0 ? memchr(line->at, ',', line->len) : NULL;
    struct elv_bytes f = {.at = line->at, .len = comma ? (size_t)(comma - line->at) : line->len};
    const size_t used = comma ? f.len + 1 : f.len;
    line->at += used;
    line->len -= used;
    while (f.len > 0 && *f.at == ' ') {
        f.at++;
        f.len--;
    }
    while (f.len > 0 && f.at[f.len - 1] == ' ')
        f.len--;
    return f;
}

static uint32_t count_fields(struct elv_bytes line)
{
    uint32_t n = 1;
    for (size_t i = 0; i < line.len; i++)
        n += line.at[i] == ',';
    return n;
}

static enum elv_err read_number(struct parser *p, struct elv_bytes *line, const char *name,
                                double least, double *v)
{
    const struct elv_bytes f = take_field(line);
    if (!elv_text_number((const char *)f.at, f.len, v))
        return refuse(p, name, " is a number", "");
    if (*v < least || *v > 1e12)
        return refuse(p, name, least > 0.0 ? " is above 0" : " is 0 or more", " and at most 1e12");
    return ELV_OK;
}

static enum elv_err read_seconds(struct parser *p, struct elv_bytes *line, const char *name,
                                 elv_time_us *at)
{
    double s;
    const enum elv_err err = read_number(p, line, name, 0.0, &s);
    if (err != ELV_OK)
        return err;
    if (s > year_s)
        return refuse(p, name, " is in seconds from the beginning and within a year", "");
    *at = (elv_time_us)(s * 1e6 + 0.5);
    return ELV_OK;
}

/* From 1, each as the one before or the next. */
static enum elv_err read_client(struct parser *p, struct elv_bytes *line, uint32_t *client)
{
    char have[24];
    uint64_t v;
    const uint32_t last = p->t->n_clients;
    const struct elv_bytes f = take_field(line);
    struct elv_line l = elv_line_of(have, sizeof have);
    elv_line_uint(&l, last + 1);
    if (!elv_text_uint((const char *)f.at, f.len, &v))
        return refuse(p, "client is a number from 1", "", "");
    if (last == 0 && v != 1)
        return refuse(p, "the first client is 1", "", "");
    if (v != last && v != (uint64_t)last + 1)
        return refuse(p, "clients come in order without gaps: the next is ", have, "");
    *client = (uint32_t)v;
    return ELV_OK;
}

static enum elv_err read_span(struct parser *p, struct elv_bytes line, struct elv_lab_span *s)
{
    double ms;
    if (count_fields(line) != FIELDS)
        return refuse(p, "a line has six values: ", header, "");
    enum elv_err err = read_client(p, &line, &s->client);
    if (err == ELV_OK)
        err = read_seconds(p, &line, "start", &s->start);
    if (err == ELV_OK)
        err = read_seconds(p, &line, "end", &s->end);
    if (err == ELV_OK)
        err = read_number(p, &line, "compute_ms", 1e-9, &ms);
    if (err == ELV_OK)
        err = read_number(p, &line, "up_bytes_s", 0.0, &s->up_bps);
    if (err == ELV_OK)
        err = read_number(p, &line, "down_bytes_s", 0.0, &s->down_bps);
    if (err != ELV_OK)
        return err;
    s->compute_us = ms * 1e3;
    if (s->end <= s->start)
        return refuse(p, "end is after start", "", "");
    const struct elv_lab_span *before = p->t->n > 0 ? &p->t->spans[p->t->n - 1] : NULL;
    if (before && before->client == s->client && s->start < before->end)
        return refuse(p, "a client's spans are in order and do not overlap: this one starts ",
                      s->start < before->start ? "before the one above it"
                                               : "before the one above it has ended",
                      "");
    return ELV_OK;
}

static void keep(struct parser *p, const struct elv_lab_span *s)
{
    struct elv_lab_trace *t = p->t;
    if (t->n == p->cap) {
        p->cap = p->cap == 0 ? 64 : p->cap * 2;
        t->spans = elv_sim_grow(t->spans, p->cap, sizeof *t->spans);
    }
    if (s->client > t->n_clients) {
        if (t->n_clients + 2 > p->cap_first) {
            p->cap_first = p->cap_first == 0 ? 64 : p->cap_first * 2;
            t->first = elv_sim_grow(t->first, p->cap_first, sizeof *t->first);
        }
        t->first[t->n_clients++] = t->n;
    }
    t->spans[t->n++] = *s;
    t->first[t->n_clients] = t->n;
}

static enum elv_err read_header(struct parser *p)
{
    static const uint8_t bom[] = {0xef, 0xbb, 0xbf}; /* as spreadsheets put it there */
    struct elv_bytes line = {.at = NULL, .len = 0};
    if (p->left.len >= sizeof bom && memcmp(p->left.at, bom, sizeof bom) == 0) {
        p->left.at += sizeof bom;
        p->left.len -= sizeof bom;
    }
    take_line(p, &line);
    p->line = 1;
    if (line.len != sizeof header - 1 || memcmp(line.at, header, line.len) != 0)
        return refuse(p, "the first line is ", header, "");
    return ELV_OK;
}

static enum elv_err read_all(struct parser *p)
{
    struct elv_bytes line;
    enum elv_err err = read_header(p);
    while (err == ELV_OK && take_line(p, &line)) {
        struct elv_lab_span s;
        if (line.len == 0 && p->left.len == 0)
            break;
        if (p->t->n == UINT32_MAX / 4)
            return refuse(p, "there are too many lines", "", "");
        err = read_span(p, line, &s);
        if (err == ELV_OK)
            keep(p, &s);
    }
    if (err == ELV_OK && p->t->n == 0)
        return refuse(p, "there is no client in it", "", "");
    return err;
}

enum elv_err elv_lab_trace_parse(struct elv_lab_trace *t, struct elv_bytes text, char *why,
                                 uint32_t *line)
{
    struct parser p = {.t = t, .left = text, .why = why};
    *t = (struct elv_lab_trace){.n = 0};
    const enum elv_err err = read_all(&p);
    *line = p.line;
    if (err != ELV_OK)
        elv_lab_trace_free(t);
    return err;
}

void elv_lab_trace_free(struct elv_lab_trace *t)
{
    free(t->spans);
    free(t->first);
    *t = (struct elv_lab_trace){.n = 0};
}
