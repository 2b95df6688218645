/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/stats.h - one JSON object of figures, written into a fixed buffer and published
 * whole.
 *
 *     struct elv_stats s = elv_stats_begin(buffer, sizeof buffer);
 *     elv_stats_u64(&s, "round", 3);
 *     elv_stats_open(&s, "updates");
 *     elv_stats_u64(&s, "used", 8);
 *     elv_stats_close(&s);
 *     err = elv_stats_save(&s, path);
 *
 *     {"round":3,"updates":{"used":8}}
 *
 * Calls after the buffer is full do nothing, and saving then fails: half an object is none. */
#ifndef ELV_PORTS_POSIX_STATS_H
#define ELV_PORTS_POSIX_STATS_H

#include <stdbool.h>

#include "common/cursor.h"

struct elv_stats {
    char *at;
    size_t len, cap;
    uint32_t depth; /* open objects */
    bool full, needs_comma;
};

struct elv_stats elv_stats_begin(char *out, size_t cap);

/* An object inside the one that is open, and its end. */
void elv_stats_open(struct elv_stats *s, const char *key);
void elv_stats_close(struct elv_stats *s);

void elv_stats_u64(struct elv_stats *s, const char *key, uint64_t value);
void elv_stats_i64(struct elv_stats *s, const char *key, int64_t value);
void elv_stats_real(struct elv_stats *s, const char *key, double value); /* not finite: null */
void elv_stats_bool(struct elv_stats *s, const char *key, bool value);
void elv_stats_text(struct elv_stats *s, const char *key, const char *value);

/* Ends the object and a line; a view of the buffer, empty when it is too small or an inner object
 * was left open. */
struct elv_bytes elv_stats_end(struct elv_stats *s);

/* Ends the object and publishes it at `path`. ELV_ERR_SPACE: the buffer is too small; ELV_ERR_ARG:
 * an object was left open, or the path is too long; ELV_ERR_IO. */
enum elv_err elv_stats_save(struct elv_stats *s, const char *path);

#endif
