/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/log.h - one event, one line: logfmt with UTC time, level and a stable event name.
 *
 *     struct elv_log_line l = elv_log_begin(&log, ELV_LOG_INFO, "round_closed");
 *     elv_log_u64(&l, "round", 3);
 *     elv_log_text(&l, "reason", reason);
 *     elv_log_end(&l);
 *
 *     ts=2026-01-31T12:00:00.123Z level=info event=round_closed round=3 reason="quorum reached"
 *
 * Values are escaped, so text from outside can neither end a line nor forge a field. A line is one
 * write, so lines of several threads do not mix. What does not fit is left out and the line says
 * cut=true. Nothing here fails: a log that cannot be written is lost. No allocation. */
#ifndef ELV_PORTS_POSIX_LOG_H
#define ELV_PORTS_POSIX_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELV_LOG_LINE_MAX 2048u

enum elv_log_level { ELV_LOG_ERROR, ELV_LOG_WARN, ELV_LOG_INFO, ELV_LOG_DEBUG };

struct elv_log {
    int fd;                   /* 2: standard error */
    enum elv_log_level level; /* anything less urgent is dropped */
};

struct elv_log_line {
    int fd; /* -1: dropped, and the calls below do nothing */
    bool cut;
    size_t len;
    char text[ELV_LOG_LINE_MAX];
};

/* False when `name` is none of error, warn, info, debug. */
bool elv_log_level_of(const char *name, enum elv_log_level *level);

/* `event` and the keys below are ours: [a-z0-9_]. `log` may be NULL: nothing is logged. */
struct elv_log_line elv_log_begin(const struct elv_log *log, enum elv_log_level level,
                                  const char *event);
void elv_log_u64(struct elv_log_line *l, const char *key, uint64_t value);
void elv_log_i64(struct elv_log_line *l, const char *key, int64_t value);
void elv_log_real(struct elv_log_line *l, const char *key, double value);
void elv_log_text(struct elv_log_line *l, const char *key, const char *value);
void elv_log_bytes(struct elv_log_line *l, const char *key, const char *value, size_t len);
/* Several at once, already as "client=3 round=2": the caller's promise. Empty: none. */
void elv_log_fields(struct elv_log_line *l, const char *fields);
void elv_log_end(struct elv_log_line *l);

#endif
