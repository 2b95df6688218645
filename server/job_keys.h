/* SPDX-License-Identifier: Apache-2.0 */
/* server/job_keys.h - the keys of a job file, in one table; for server/job.c only.
 *
 * The table drives reading, printing and comparing: a key is one row, and a function pair where its
 * values are neither a number nor a text. */
#ifndef ELV_SERVER_JOB_KEYS_H
#define ELV_SERVER_JOB_KEYS_H

#include "job.h"

struct elv_line;

enum elv_job_kind {
    ELV_JOB_U32,
    ELV_JOB_U64,
    ELV_JOB_F32,
    ELV_JOB_F64,
    ELV_JOB_BOOL,
    ELV_JOB_DURATION,
    ELV_JOB_TEXT, /* a char array; `fits` judges it */
    ELV_JOB_SPECIAL,
};

struct elv_job_key {
    const char *path, *section, *name; /* path: "section.name" */
    const char *accepts;               /* continues "give ..." */
    enum elv_job_kind kind;
    bool may_change; /* between a run and its restart */
    size_t at, size; /* the member of struct elv_job */
    double min, max; /* numbers, durations in microseconds; both ends belong to the range */
    bool (*fits)(struct elv_text value);
    enum elv_err (*read)(struct elv_job *job, struct elv_text value);
    void (*print)(const struct elv_job *job, struct elv_line *out);
};

size_t elv_job_keys_count(void);
const struct elv_job_key *elv_job_keys_at(size_t i);

/* ELV_ERR_FORMAT or ELV_ERR_RANGE: the job is as it was. `value` is not empty. */
enum elv_err elv_job_key_read(const struct elv_job_key *key, struct elv_job *job,
                              struct elv_text value);
/* As elv_job_key_read would read it; nothing for a text that is not given. */
void elv_job_key_print(const struct elv_job_key *key, const struct elv_job *job,
                       struct elv_line *out);

#endif
