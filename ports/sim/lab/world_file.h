/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/world_file.h - a world as its file describes it: parsed, checked, defaults filled
 * in.
 *
 * Fed one key at a time by whoever reads the file, as a job is (server/job.h), with the same
 * grammar and the same kind of messages. examples/world.ini explains every key. */
#ifndef ELV_PORTS_SIM_LAB_WORLD_FILE_H
#define ELV_PORTS_SIM_LAB_WORLD_FILE_H

#include "ports/sim/lab/world.h"
#include "server/job.h"

#define ELV_WORLD_KEYS_MAX 48u /* rows of the table in world_keys.c */

struct elv_world_file {
    struct elv_lab_world world;        /* its trace is for the program to load */
    char trace[ELV_JOB_TEXT_MAX];      /* path; empty: none */
    uint32_t line[ELV_WORLD_KEYS_MAX]; /* by place in the table; 0: default */
};

/* Every default: a world without cost. */
void elv_world_file_init(struct elv_world_file *f);

/* One key; lines, overriding and errors as elv_job_set. */
enum elv_err elv_world_file_set(struct elv_world_file *f, const char *section, const char *key,
                                const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX]);

/* A section of a world file: it is none of a job file's. */
bool elv_world_file_section(const char *section);

/* The line that gave "section.key", which exists; 0: none, ELV_JOB_OVERRIDE: a flag. */
uint32_t elv_world_file_line(const struct elv_world_file *f, const char *path);

/* After the last key: what does not go together; `*line` as elv_job_check. */
enum elv_err elv_world_file_check(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                  uint32_t *line);

/* Walks all keys, as elv_job_key. */
bool elv_world_file_key(const struct elv_world_file *f, size_t i, const char **section,
                        const char **key, char value[ELV_JOB_TEXT_MAX], uint32_t *line);

#endif
