/* SPDX-License-Identifier: Apache-2.0 */
/* server/value.h - reading the values of configuration files: words, numbers, durations.
 *
 * Pure; views point into the text they were cut from. Each returns false, and leaves its result
 * alone, when the text is nothing of that kind. */
#ifndef ELV_SERVER_VALUE_H
#define ELV_SERVER_VALUE_H

#include "../common/msg.h"

struct elv_text elv_value_of(const char *zero_terminated); /* without blanks at both ends */

bool elv_value_is(struct elv_text t, const char *word);

/* Cuts `t` at blanks. Returns how many words there are; at most `max` are written. */
uint32_t elv_value_words(struct elv_text t, struct elv_text *words, uint32_t max);

/* Cuts `t` at `separator`; parts come without blanks around them and may be empty. */
uint32_t elv_value_parts(struct elv_text t, char separator, struct elv_text *parts, uint32_t max);

/* "0.25", "1e-3", "1/255": zero, or from 1e-30 to 1e30 in magnitude */
bool elv_value_number(struct elv_text t, double *v);

/* "100us", "500ms", "30s", "5m", "2h": a number and its unit, rounded to microseconds; at most 2^53
 * of them, 285 years, so that it is the same when printed and read again. */
bool elv_value_duration(struct elv_text t, elv_time_us *v);
struct elv_line;
void elv_value_put_duration(struct elv_line *l,
                            elv_time_us v); /* in the largest unit that divides */

/* "on", "yes", "true", "1" and their opposites. */
bool elv_value_bool(struct elv_text t, bool *v);

/* How many letters must be put in, left out or changed to turn one into the other; 99 for texts
 * longer than 32 characters. */
uint32_t elv_value_distance(const char *a, const char *b);

#endif
