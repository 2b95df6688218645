/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/fields.h - members of a struct as text, by a table: for CSV columns and JSON keys.
 *
 * What is written can be read back, so that a sweep taken up again tells the same of a run that
 * ended long ago as of one that ended now: all that is told of runs is made from these texts. */
#ifndef ELV_PORTS_SIM_LAB_FIELDS_H
#define ELV_PORTS_SIM_LAB_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"
#include "server/value.h"

enum elv_lab_field_kind {
    ELV_LAB_F_U32,
    ELV_LAB_F_U64,
    ELV_LAB_F_BOOL,
    ELV_LAB_F_TIME,     /* elv_time_us, as seconds; unknown: ELV_NEVER */
    ELV_LAB_F_SPAN,     /* double of microseconds, as seconds */
    ELV_LAB_F_F64,      /* unknown: not finite */
    ELV_LAB_F_ACCURACY, /* double; unknown: negative */
    ELV_LAB_F_DIGEST,   /* 32 bytes, in hexadecimal; unknown: all zero */
    ELV_LAB_F_HASH,     /* uint64_t, in hexadecimal */
};

struct elv_lab_field {
    const char *name;
    enum elv_lab_field_kind kind;
    size_t at; /* of the member */
};

/* The value; nothing for what is unknown. */
void elv_lab_field_put(struct elv_line *out, const struct elv_lab_field *f, const void *base);
/* False, and nothing changes: not such a value. Reads what was put, to the same bits but for
 * doubles, whose fourteen digits are. */
bool elv_lab_field_get(struct elv_text text, const struct elv_lab_field *f, void *base);

/* The same for JSON: null for what is unknown, texts quoted. */
void elv_lab_field_json(struct elv_line *out, const struct elv_lab_field *f, const void *base);
bool elv_lab_field_from_json(struct elv_text value, const struct elv_lab_field *f, void *base);

/* `v` with so many decimals, at most 6; "nan" for what is not finite. */
void elv_lab_put_fixed(struct elv_line *out, double v, unsigned decimals);
/* Microseconds as seconds, all six decimals, trailing zeros left out but for one. */
void elv_lab_put_seconds(struct elv_line *out, int64_t us);

/* `text` as a JSON string, quoted; what is not UTF-8 becomes U+FFFD. */
void elv_lab_put_json(struct elv_line *out, const char *text);

/* The value behind the key in an object that elver-sim wrote, a key a line; views `json`. False:
 * there is none. Strings come with their quotes. */
bool elv_lab_json_find(struct elv_text json, const char *key, struct elv_text *value);

#endif
