/* SPDX-License-Identifier: Apache-2.0 */
/* server/elver_server_folder.h - part of the program elver-server: the folder of a job's state.
 *
 * The effective job is kept beside the state, as text, so that a restart with another one is
 * noticed. All return 0 or the program's exit code, and tell what is wrong on standard error. */
#ifndef ELV_SERVER_ELVER_SERVER_FOLDER_H
#define ELV_SERVER_ELVER_SERVER_FOLDER_H

#include "server/elver_server_options.h"

#define ELV_SERVER_PATH_MAX 1024u

/* STATE/JOB followed by `leaf`. */
int elv_folder_path(const struct elv_server_options *o, const char *leaf,
                    char path[ELV_SERVER_PATH_MAX]);

/* Moves an earlier run's folder to JOB.1, JOB.2, ... */
int elv_folder_set_aside(const struct elv_server_options *o);

/* A restart goes on with the same job; what of it may change is for elv_job_changed to say. */
int elv_folder_compare(const struct elv_server_options *o);

int elv_folder_save_job(const struct elv_server_options *o);

#endif
