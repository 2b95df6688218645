/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/keytable.h - who may connect: the text of a key table, and looking things up in it.
 *
 *     # number identity key [enabled|revoked]
 *     1 pump-7 5f0c...(32 to 64 hex digits)
 *     2 pump-8 a1b2... revoked
 *     3 gate-1 certificate
 *     1 pump-7#2 99aa...
 *
 * One line per key. The number stands for the device everywhere else and is never given to another
 * one, so a revoked device keeps its line. An identity is 1 to 64 of [A-Za-z0-9._:-]; `#2` and up
 * name later generations of a device's key (the first is written without). `certificate`: the
 * device shows an X.509 certificate whose common name is the identity. A line whose first character
 * is # is a comment. Everything here is pure but for the table's memory; a table that is built is
 * never changed except by `elv_keytable_retire`. */
#ifndef ELV_PORTS_POSIX_KEYTABLE_H
#define ELV_PORTS_POSIX_KEYTABLE_H

#include <stdbool.h>

#include "common/cursor.h"

#define ELV_KEY_NAME_MAX 64u
#define ELV_KEY_IDENTITY_MAX (ELV_KEY_NAME_MAX + 11u) /* with #generation */
#define ELV_KEY_LEN_MIN 16u
#define ELV_KEY_LEN_MAX 32u
#define ELV_KEY_LINE_MAX 256u
#define ELV_KEY_WHY_MAX 192u
#define ELV_KEYTABLE_MAX (16u << 20) /* bytes of text */

struct elv_key {
    uint32_t number;     /* the device, 1 and up */
    uint32_t generation; /* 1 and up */
    uint32_t line;
    bool revoked;
    uint8_t key_len; /* 0: by certificate */
    uint8_t key[ELV_KEY_LEN_MAX];
    char name[ELV_KEY_NAME_MAX + 1];
};

struct elv_keytable {
    struct elv_key *at; /* by name, then generation */
    uint32_t *by_number;
    uint32_t n;
};

struct elv_key_error {
    uint32_t line; /* 0: not about a line */
    char why[ELV_KEY_WHY_MAX];
};

/* Splits `name` or `name#generation`. False when it is neither. */
bool elv_identity_split(const char *identity, size_t len, char name[ELV_KEY_NAME_MAX + 1],
                        uint32_t *generation);

/* One line, without its end. ELV_OK: a key; ELV_ERR_MISSING: nothing but space or a comment;
 * ELV_ERR_FORMAT: neither, and `why` says what would be accepted. */
enum elv_err elv_key_parse(struct elv_bytes line, struct elv_key *key, char why[ELV_KEY_WHY_MAX]);

/* The line of a key, a closing zero and no line end; returns its length. */
size_t elv_key_print(const struct elv_key *key, char out[ELV_KEY_LINE_MAX]);

/* Builds a table. ELV_ERR_FORMAT: `e` names the first line that is wrong or contradicts an earlier
 * one; ELV_ERR_FULL: too long a text; ELV_ERR_MEMORY. */
enum elv_err elv_keytable_parse(struct elv_keytable *t, struct elv_bytes text,
                                struct elv_key_error *e);
void elv_keytable_free(struct elv_keytable *t); /* and wipes the keys */

/* The key of an identity as it came over the air; NULL when there is none or it is revoked. */
const struct elv_key *elv_keytable_find(const struct elv_keytable *t, const char *identity,
                                        size_t len);

/* The newest key of a device that is not revoked, else any of its keys; NULL: no such number. */
const struct elv_key *elv_keytable_device(const struct elv_keytable *t, uint32_t number);

/* Whether the device may connect at all. */
bool elv_keytable_enabled(const struct elv_keytable *t, uint32_t number);

/* `key` was used, so earlier generations of its device are not valid any more. Returns how many
 * this call ended. */
uint32_t elv_keytable_retire(struct elv_keytable *t, const struct elv_key *key);

/* Calls `gone` for every device that `before` lets in and `now` does not. */
void elv_keytable_gone(const struct elv_keytable *before, const struct elv_keytable *now, void *ctx,
                       void (*gone)(void *ctx, uint32_t number));

#endif
