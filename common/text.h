/* SPDX-License-Identifier: Apache-2.0 */
/* common/text.h - short texts without the C library: put together in a fixed buffer, and numbers
 * read from them. The same on every machine and in every locale.
 *
 * What does not fit in a line is cut; `full` remembers. A line always ends with a zero, so `cap` is
 * 1 or more. */
#ifndef ELV_COMMON_TEXT_H
#define ELV_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct elv_line {
    char *at;
    size_t len; /* without the closing zero */
    size_t cap; /* with it */
    bool full;
};

struct elv_line elv_line_of(char *out, size_t cap);
void elv_line_chars(struct elv_line *l, const char *text, size_t len);
void elv_line_add(struct elv_line *l, const char *text); /* zero-terminated */
void elv_line_uint(struct elv_line *l, uint64_t v);
void elv_line_hex(struct elv_line *l, const uint8_t *bytes, size_t len); /* lower case */

/* The fewest digits that read back as the same 32-bit float, or as the same double; of doubles that
 * need more, 14 digits, which are stable when read and printed again between 1e-30 and 1e30. `v` is
 * finite. Plain decimals from 1e-4 up to 1e9, an exponent outside. */
void elv_line_f32(struct elv_line *l, float v);
void elv_line_f64(struct elv_line *l, double v);

/* Into a writer, where what does not fit is an error and counted. */
void elv_wr_text(struct elv_wr *w, const char *text); /* zero-terminated; without the zero */
void elv_wr_decimal(struct elv_wr *w, uint64_t v);

/* Decimal digits only. False: no digit, another character, or more than 64 bits. */
bool elv_text_uint(const char *at, size_t len, uint64_t *v);

/* [+-] digits [. digits] [e [+-] digits], at most 17 significant digits; finite. Rounded correctly
 * up to 15 digits and powers of ten up to 22, within a few units of the last place otherwise. */
bool elv_text_number(const char *at, size_t len, double *v);

#ifdef __cplusplus
}
#endif
#endif
