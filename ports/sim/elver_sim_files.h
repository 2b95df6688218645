/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/elver_sim_files.h - part of the program elver-sim: files that are there when they are
 * complete, and not before.
 *
 * A file grows under its name with .part added, and takes its name in the end. What could not be
 * written is remembered and told by elv_sim_file_keep. */
#ifndef ELV_PORTS_SIM_ELVER_SIM_FILES_H
#define ELV_PORTS_SIM_ELVER_SIM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ELV_SIM_PATH_MAX 1024u

struct elv_sim_file { /* starts as zeros: nothing is written */
    FILE *at;
    char path[ELV_SIM_PATH_MAX];
    uint64_t size; /* put so far; what it was stays when the file is closed */
    int fault;     /* errno of the first failure; 0: none */
};

/* "DIR/LEAF"; false: too long. */
bool elv_sim_path(char path[ELV_SIM_PATH_MAX], const char *dir, const char *leaf);

bool elv_sim_file_open(struct elv_sim_file *f, const char *dir, const char *leaf);
void elv_sim_file_put(struct elv_sim_file *f, const char *text, size_t len);
/* These do nothing with a file that is not open. True: it is complete and in its place. */
bool elv_sim_file_keep(struct elv_sim_file *f);
void elv_sim_file_drop(struct elv_sim_file *f);

/* Whether DIR/LEAF is a file of this size; of size 0: whether there is none. */
bool elv_sim_file_is(const char *dir, const char *leaf, uint64_t size);

#endif
