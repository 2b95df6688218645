/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_pen.h"

#include <stdlib.h>
#include <string.h>

#include "elver/version.h"
#include "ports/sim/lab/fields.h"

#define PIECE_MAX 8192u

bool elv_sim_pen_open(struct elv_sim_pen *p, const char *dir, const char *leaf)
{
    if (!elv_sim_file_open(&p->file, dir, leaf))
        return false;
    elv_sim_pen_begin(p, '{');
    elv_sim_pen_key(p, 1, "program");
    elv_sim_pen_text(p, "elver-sim " ELV_VERSION);
    return true;
}

int elv_sim_pen_close(struct elv_sim_pen *p)
{
    elv_sim_pen_end(p, 0, '}');
    elv_sim_pen_put(p, "\n");
    return elv_sim_file_keep(&p->file) ? EXIT_SUCCESS
                                       : elv_sim_complain(p->file.path, strerror(p->file.fault));
}

void elv_sim_pen_put(struct elv_sim_pen *p, const char *text)
{
    elv_sim_file_put(&p->file, text, strlen(text));
}

static void put_line(struct elv_sim_pen *p, const struct elv_line *l)
{
    elv_sim_file_put(&p->file, l->at, l->len);
}

void elv_sim_pen_text(struct elv_sim_pen *p, const char *text)
{
    char piece[PIECE_MAX];
    struct elv_line l = elv_line_of(piece, sizeof piece);
    elv_lab_put_json(&l, text);
    put_line(p, &l);
}

void elv_sim_pen_uint(struct elv_sim_pen *p, uint64_t v)
{
    char piece[32];
    struct elv_line l = elv_line_of(piece, sizeof piece);
    elv_line_uint(&l, v);
    put_line(p, &l);
}

void elv_sim_pen_number(struct elv_sim_pen *p, double v, unsigned decimals)
{
    char piece[64];
    struct elv_line l = elv_line_of(piece, sizeof piece);
    elv_lab_put_fixed(&l, v, decimals);
    put_line(p, &l);
}

void elv_sim_pen_digest(struct elv_sim_pen *p, const uint8_t digest[ELV_SHA256_LEN])
{
    static const struct elv_lab_field field = {.kind = ELV_LAB_F_DIGEST};
    char piece[80];
    struct elv_line l = elv_line_of(piece, sizeof piece);
    elv_lab_field_json(&l, &field, digest);
    put_line(p, &l);
}

void elv_sim_pen_item(struct elv_sim_pen *p, unsigned depth)
{
    elv_sim_pen_put(p, p->first ? "\n" : ",\n");
    for (unsigned i = 0; i < depth; i++)
        elv_sim_pen_put(p, "  ");
    p->first = false;
}

void elv_sim_pen_key(struct elv_sim_pen *p, unsigned depth, const char *key)
{
    elv_sim_pen_item(p, depth);
    elv_sim_pen_text(p, key);
    elv_sim_pen_put(p, ": ");
}

void elv_sim_pen_begin(struct elv_sim_pen *p, char bracket)
{
    elv_sim_file_put(&p->file, &bracket, 1);
    p->first = true;
}

void elv_sim_pen_end(struct elv_sim_pen *p, unsigned depth, char bracket)
{
    const bool empty = p->first;
    p->first = true;
    if (!empty)
        elv_sim_pen_item(p, depth);
    elv_sim_file_put(&p->file, &bracket, 1);
    p->first = false;
}
