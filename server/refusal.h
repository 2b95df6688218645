/* SPDX-License-Identifier: Apache-2.0 */
/* server/refusal.h - the sentences that turn down a key of a configuration file, and say what would
 * be right instead.
 *
 * For every file that is a table of keys: a job, a world. Each adds to a line, which cuts what has
 * no room, and returns the error that the sentence is about. Pure. */
#ifndef ELV_SERVER_REFUSAL_H
#define ELV_SERVER_REFUSAL_H

#include "../common/text.h"
#include "value.h"

struct elv_keys {         /* all that a file may hold */
    const char *sections; /* as a sentence lists them */
    size_t n;
    void (*at)(size_t i, const char **section, const char **name);
};

/* ELV_ERR_MISSING */
enum elv_err elv_refuse_section(struct elv_line *l, const struct elv_keys *keys,
                                const char *section);
enum elv_err elv_refuse_key(struct elv_line *l, const struct elv_keys *keys, const char *section,
                            const char *name);

/* `accepts` continues "give ..."; at most `shown` characters of the value are. Returns `err`. */
enum elv_err elv_refuse_value(struct elv_line *l, const char *name, struct elv_text value,
                              size_t shown, const char *accepts, enum elv_err err);

/* ELV_ERR_BUSY */
enum elv_err elv_refuse_second(struct elv_line *l, const char *name, uint32_t first_line);

#endif
