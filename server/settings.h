/* SPDX-License-Identifier: Apache-2.0 */
/* server/settings.h - how one server is run, as its configuration file and its flags say.
 *
 * Like a job (server/job.h) it is fed one key at a time by whoever reads the file, so it knows no
 * files. A message says in one sentence what would be accepted; the caller adds file and line. */
#ifndef ELV_SERVER_SETTINGS_H
#define ELV_SERVER_SETTINGS_H

#include "../common/msg.h"

#define ELV_SETTING_TEXT_MAX 512u
#define ELV_SETTINGS_ERROR_MAX 256u
#define ELV_SETTINGS_MAX 32u /* rows of the table in settings.c */

struct elv_settings {
    /* [server] */
    char listen[ELV_SETTING_TEXT_MAX]; /* addresses, separated by commas */
    char state[ELV_SETTING_TEXT_MAX];  /* folder; made when missing */
    char keys[ELV_SETTING_TEXT_MAX];   /* key table: who may come in */
    char ca[ELV_SETTING_TEXT_MAX];     /* PEM files; empty: pre-shared keys only */
    char cert[ELV_SETTING_TEXT_MAX];
    char key[ELV_SETTING_TEXT_MAX];
    char stats[ELV_SETTING_TEXT_MAX]; /* JSON, replaced each round; empty: none */
    elv_time_us linger_us;            /* answer `stop` for so long after the last round */
    uint32_t threads;                 /* workers; 0: one less than the processors, 1 to 4 */

    /* [limits]; 0: the default of the part that has the limit */
    uint32_t clients, uploads, sessions, half_open, window;
    uint64_t log_bytes, receive_buffer;
    char client_min[32]; /* older software is refused; empty: none is */
    elv_time_us idle_us; /* a session unused for so long is closed */

    /* [log] */
    char level[16];

    uint32_t line[ELV_SETTINGS_MAX]; /* by place in the table; 0: default, UINT32_MAX: a flag */
};

#define ELV_SETTING_FLAG UINT32_MAX

void elv_settings_init(struct elv_settings *s);

/* One key of the file (`line` from 1) or a flag (ELV_SETTING_FLAG, which overrides). Errors as
 * elv_job_set. */
enum elv_err elv_settings_set(struct elv_settings *s, const char *section, const char *key,
                              const char *value, uint32_t line, char why[ELV_SETTINGS_ERROR_MAX]);

/* After the last key: what is missing or does not go together; `*line` as elv_job_check. */
enum elv_err elv_settings_check(const struct elv_settings *s, char why[ELV_SETTINGS_ERROR_MAX],
                                uint32_t *line);

/* Walks all keys, as elv_job_key. */
bool elv_settings_key(const struct elv_settings *s, size_t i, const char **section,
                      const char **key, char value[ELV_SETTING_TEXT_MAX], uint32_t *line);

#endif
