/* SPDX-License-Identifier: Apache-2.0 */
/* server/elver_server_options.h - part of the program elver-server: its command line and its files.
 *
 * What goes wrong is told on standard error, with file and line where there is one. */
#ifndef ELV_SERVER_ELVER_SERVER_OPTIONS_H
#define ELV_SERVER_ELVER_SERVER_OPTIONS_H

#include "server/job.h"
#include "server/settings.h"

#define ELV_SERVER_SETS_MAX 64
enum { ELV_SERVER_USAGE = 2 }; /* exit code */

struct elv_server_options {
    const char *config_path, *job_path;
    const char *sets[ELV_SERVER_SETS_MAX]; /* SECTION.KEY=VALUE */
    uint32_t n_sets;
    bool new_run, check, print, insecure;
    struct elv_settings settings;
    struct elv_job job; /* checked */
};

/* Fills `o` from the command line and the files it names. -1: serve; else the exit code: help,
 * version, --check-config and --print-config are done, or something is wrong. */
int elv_server_options_take(int argc, char **argv, struct elv_server_options *o);

/* Reads a job file; nothing is checked yet. Returns 0 or the exit code. */
int elv_server_read_job(const char *path, struct elv_job *job);

/* "elver-server: WHAT: WHY"; returns 1. */
int elv_server_complain(const char *what, const char *why);
/* The same, pointing to --help; returns 2. */
int elv_server_misuse(const char *why);

#endif
