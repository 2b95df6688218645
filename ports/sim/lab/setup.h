/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/setup.h - an experiment: a job, and the world it happens in.
 *
 * Values only. Keys come one at a time from the job file, the world file and the flags; then it is
 * checked as a whole. */
#ifndef ELV_PORTS_SIM_LAB_SETUP_H
#define ELV_PORTS_SIM_LAB_SETUP_H

#include "common/sha256.h"
#include "ports/sim/lab/world_file.h"

struct elv_lab_setup {
    struct elv_job job;
    struct elv_world_file world;
};

/* Which file a line is of. */
enum elv_lab_origin { ELV_LAB_OF_JOB, ELV_LAB_OF_WORLD };

struct elv_lab_fault { /* what is wrong, and where it was given */
    char why[ELV_JOB_ERROR_MAX];
    enum elv_lab_origin of;
    uint32_t line; /* 0: not given; ELV_JOB_OVERRIDE: by a flag */
};

void elv_lab_setup_init(struct elv_lab_setup *s);

/* Of whichever of the two files has such a section; errors as elv_job_set. */
enum elv_err elv_lab_setup_set(struct elv_lab_setup *s, const char *section, const char *key,
                               const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX]);

/* What ends a run instead of what the files say: "accuracy=A" and "loss=L" replace the targets,
 * while rounds and horizon stay as limits; "time=T" and "rounds=N" replace all of these. NULL ends
 * the list; an empty one changes nothing. */
enum elv_err elv_lab_setup_until(struct elv_lab_setup *s, const char *const *until,
                                 char why[ELV_JOB_ERROR_MAX]);

/* After the last key: fills in what depends on other keys, and says what is missing or cannot be.
 */
enum elv_err elv_lab_setup_check(struct elv_lab_setup *s, struct elv_lab_fault *fault);

/* Something to reach; without, a run just ends. A target_loss in a world where nothing is learnt
 * waits for one where something is. */
bool elv_lab_setup_has_target(const struct elv_lab_setup *s);

/* Walks the keys of both, the job's first, as elv_job_key. */
bool elv_lab_setup_key(const struct elv_lab_setup *s, size_t i, enum elv_lab_origin *of,
                       const char **section, const char **key, char value[ELV_JOB_TEXT_MAX],
                       uint32_t *line);

/* Adds every value in force to a digest; where it comes from does not count. */
void elv_lab_setup_digest(const struct elv_lab_setup *s, struct elv_sha256 *h);

#endif
