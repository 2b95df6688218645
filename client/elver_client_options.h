/* SPDX-License-Identifier: Apache-2.0 */
/* client/elver_client_options.h - part of the program elver-client: its command line.
 *
 * What goes wrong is told on standard error. */
#ifndef ELV_CLIENT_ELVER_CLIENT_OPTIONS_H
#define ELV_CLIENT_ELVER_CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { ELV_CLIENT_USAGE = 2 }; /* exit code */

struct elv_client_options { /* the texts view argv; NULL: not given */
    const char *server, *job, *credential_path, *data, *server_name, *state_path, *level;
    uint32_t duty;       /* percent; 0: all the time */
    uint32_t memory_mib; /* the most to use for training */
    uint32_t index, of;  /* the part of a data set that is ours; of 0: all of it */
    bool observe, leave, once, insecure;
};

/* Fills `o` from the command line and checks it. -1: take part; else the exit code: help and
 * version are done, or something is wrong. */
int elv_client_options_take(int argc, char **argv, struct elv_client_options *o);

/* "elver-client: WHAT: WHY"; returns 1. */
int elv_client_complain(const char *what, const char *why);
/* The same, pointing to --help; returns 2. */
int elv_client_misuse(const char *why);

#endif
