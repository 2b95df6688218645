/* SPDX-License-Identifier: Apache-2.0 */
/* common/json_internal.h - JSON being read, as far as model files need it: objects, strings, and
 * arrays of whole numbers.
 *
 * Failure is sticky, as in common/cursor.h: after the first one nothing is left to read. */
#ifndef ELV_COMMON_JSON_INTERNAL_H
#define ELV_COMMON_JSON_INTERNAL_H

#include <stdbool.h>

#include "cursor.h"

struct elv_json {
    const uint8_t *at;
    size_t left;
    enum elv_err err;
};

void elv_json_fail(struct elv_json *j, enum elv_err err);
void elv_json_skip_blanks(struct elv_json *j);
/* Looks at the next byte that is no blank. */
bool elv_json_next_is(struct elv_json *j, uint8_t byte);
/* Takes it; ELV_ERR_FORMAT: it is another. */
void elv_json_expect(struct elv_json *j, uint8_t byte);

/* A string's bytes between the quotes, escapes as they are. */
struct elv_bytes elv_json_string(struct elv_json *j);
bool elv_json_same(struct elv_bytes a, const char *text);

/* [a, b, ...] of at most `cap` whole numbers below 2^53; returns how many. ELV_ERR_MISMATCH: more.
 */
uint32_t elv_json_numbers(struct elv_json *j, uint64_t *v, uint32_t cap);

/* Before each member of an object, `*n` of which were read: 0 at first. False after the last. */
bool elv_json_next_member(struct elv_json *j, uint32_t *n);

#endif
