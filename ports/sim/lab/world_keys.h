/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/world_keys.h - the keys of a world file, in one table; for world_file.c only.
 *
 * The table drives reading and printing: a key is one row, and a function pair where its values are
 * of no common kind. */
#ifndef ELV_PORTS_SIM_LAB_WORLD_KEYS_H
#define ELV_PORTS_SIM_LAB_WORLD_KEYS_H

#include "ports/sim/lab/world_file.h"

struct elv_line;

enum elv_world_kind {
    ELV_WORLD_U32,
    ELV_WORLD_F64,
    ELV_WORLD_SECONDS, /* a time, kept as seconds in a double */
    ELV_WORLD_TIME,    /* a time, kept as microseconds */
    ELV_WORLD_DRAW,    /* a plain random number */
    ELV_WORLD_DELAY,   /* a random number of seconds */
    ELV_WORLD_WORD,    /* an enum: its place in `words` */
    ELV_WORLD_SPECIAL,
};

struct elv_world_key {
    const char *path, *section, *name; /* path: "section.name" */
    const char *accepts;               /* continues "give ..." */
    enum elv_world_kind kind;
    size_t at;       /* the member of struct elv_world_file */
    double min, max; /* of numbers; of times in seconds; both ends belong to the range */
    const char *const *words;
    uint32_t place; /* SPECIAL: which of several alike */
    enum elv_err (*read)(struct elv_world_file *f, uint32_t place, struct elv_text value);
    void (*print)(const struct elv_world_file *f, uint32_t place, struct elv_line *out);
};

size_t elv_world_keys_count(void);
const struct elv_world_key *elv_world_keys_at(size_t i);

/* ELV_ERR_FORMAT or ELV_ERR_RANGE: the world is as it was. `value` is not empty. */
enum elv_err elv_world_key_read(const struct elv_world_key *key, struct elv_world_file *f,
                                struct elv_text value);
void elv_world_key_print(const struct elv_world_key *key, const struct elv_world_file *f,
                         struct elv_line *out);

#endif
