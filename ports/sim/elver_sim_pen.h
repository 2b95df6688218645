/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_pen.h - part of the program elver-sim: writes JSON files of any length.
 *
 * Text goes out as it comes; `elv_sim_pen_key` puts the comma and a line for each key of an object.
 */
#ifndef ELV_PORTS_SIM_ELVER_SIM_PEN_H
#define ELV_PORTS_SIM_ELVER_SIM_PEN_H

#include "ports/sim/elver_sim_experiment.h"
#include "ports/sim/elver_sim_files.h"

struct elv_sim_pen {
    struct elv_sim_file file;
    bool first; /* in the object or list being written */
};

/* The file, up to and including the key "program" of an open object. */
bool elv_sim_pen_open(struct elv_sim_pen *p, const char *dir, const char *leaf);
/* Ends the object and the file. Returns 0 or the exit code, having told. */
int elv_sim_pen_close(struct elv_sim_pen *p);

void elv_sim_pen_put(struct elv_sim_pen *p, const char *text);
void elv_sim_pen_text(struct elv_sim_pen *p, const char *text); /* quoted */
void elv_sim_pen_uint(struct elv_sim_pen *p, uint64_t v);
void elv_sim_pen_number(struct elv_sim_pen *p, double v, unsigned decimals);
void elv_sim_pen_digest(struct elv_sim_pen *p, const uint8_t digest[ELV_SHA256_LEN]);

/* A new line, `depth` deep, with the key. */
void elv_sim_pen_key(struct elv_sim_pen *p, unsigned depth, const char *key);
/* A new line with the next element of a list. */
void elv_sim_pen_item(struct elv_sim_pen *p, unsigned depth);
void elv_sim_pen_begin(struct elv_sim_pen *p, char bracket);
void elv_sim_pen_end(struct elv_sim_pen *p, unsigned depth, char bracket);

#endif
