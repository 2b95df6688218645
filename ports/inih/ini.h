/* SPDX-License-Identifier: Apache-2.0 */
/* ports/inih/ini.h - reads INI text, key by key, for whoever knows what the keys mean.
 *
 *     [section]
 *     key = value   ; a comment after a blank and a semicolon
 *     # a comment
 *
 * Stops at the first thing that is wrong and says where. Nothing is kept. Any thread. */
#ifndef ELV_PORTS_INIH_INI_H
#define ELV_PORTS_INIH_INI_H

#include "common/cursor.h"

#define ELV_INI_FILE_MAX 1048576u
#define ELV_INI_WHY_MAX 256u

struct elv_ini_error {
    uint32_t line; /* from 1; 0: about the whole file */
    char why[ELV_INI_WHY_MAX];
};

/* Takes one key; texts are borrowed for the call. On failure `why` is a sentence, without file and
 * line. */
typedef enum elv_err elv_ini_take(void *ctx, const char *section, const char *key,
                                  const char *value, uint32_t line, char why[ELV_INI_WHY_MAX]);

/* ELV_ERR_FORMAT: a line is no section, key or comment, or too long, or holds a zero byte; else
 * what `take` returned. `e` is written on failure. */
enum elv_err elv_ini_parse(struct elv_bytes text, elv_ini_take *take, void *ctx,
                           struct elv_ini_error *e);

/* The same from a file of at most ELV_INI_FILE_MAX bytes. ELV_ERR_MISSING, ELV_ERR_IO: it cannot be
 * read; ELV_ERR_FULL: it is longer; ELV_ERR_MEMORY. */
enum elv_err elv_ini_read(const char *path, elv_ini_take *take, void *ctx, struct elv_ini_error *e);

#endif
