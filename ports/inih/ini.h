/* SPDX-License-Identifier: Apache-2.0 */
/* ports/inih/ini.h - job and configuration files: libinih reads them, this adds what it lets pass.
 *
 *     [section]
 *     key = value             ; comment, after white space
 *     long = one, two,
 *         three               an indented line continues the value above, joined by a space
 *
 * Refused with line and reason: keys given twice, lines, values and section names too long, control
 * characters, what is neither section, key nor comment, and an indented line that looks like a key
 * (it would silently become part of the value above). What sections, keys and values mean is the
 * caller's business. No state; any thread. */
#ifndef ELV_PORTS_INIH_INI_H
#define ELV_PORTS_INIH_INI_H

#include "common/cursor.h"

#define ELV_INI_WHY_MAX 256u      /* what `each` may say */
#define ELV_INI_MESSAGE_MAX 1024u /* with file and line */
#define ELV_INI_VALUE_MAX 1024u   /* of a value, its closing zero included */
#define ELV_INI_KEYS_MAX 512u     /* in one file */
#define ELV_INI_FILE_MAX (1u << 20)

/* One key. Texts are borrowed for the call; `section` is empty before the first one. What is not
 * ELV_OK stops the reading, and `why` says in a sentence what would be accepted. */
typedef enum elv_err elv_ini_each(void *ctx, const char *section, const char *key,
                                  const char *value, uint32_t line, char why[ELV_INI_WHY_MAX]);

/* Calls `each` for the keys in their order, until one fails. On failure `message` is
 * "NAME:LINE: sentence", ready to print. ELV_ERR_FORMAT: refused here; ELV_ERR_MEMORY; else what
 * `each` returned. Keys before the wrong line have been given to `each`,
 * and some behind it may have been. */
enum elv_err elv_ini_parse(struct elv_bytes text, const char *name, void *ctx, elv_ini_each *each,
                           char message[ELV_INI_MESSAGE_MAX]);

/* The same from a file. ELV_ERR_MISSING, ELV_ERR_IO; ELV_ERR_FULL: longer than ELV_INI_FILE_MAX. */
enum elv_err elv_ini_load(const char *path, void *ctx, elv_ini_each *each,
                          char message[ELV_INI_MESSAGE_MAX]);

#endif
