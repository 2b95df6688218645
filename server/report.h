/* SPDX-License-Identifier: Apache-2.0 */
/* server/report.h - what an operator and a script read of a run: lines, a table, one JSON object.
 *
 * Pure: text into the caller's buffer. The formats are promises: columns and keys are only ever
 * added, at the end. */
#ifndef ELV_SERVER_REPORT_H
#define ELV_SERVER_REPORT_H

#include "../common/text.h"
#include "server.h"

/* One closed round and, when it was evaluated, how well its model does. */
struct elv_round_line {
    struct elv_round_report report;
    bool scored;
    struct elv_score score;
};

/* "round 3 accuracy=0.8123 balanced_accuracy=0.8090 loss=0.512 used=6 late=2 refused=0
 * bytes_up=... bytes_down=... seconds=2.41": the number is that of the version made. */
void elv_report_round(struct elv_line *out, const struct elv_round_line *line);

struct elv_figure { /* a counter of a port */
    const char *key;
    uint64_t value;
};

/* What only the program can know of its run. */
struct elv_run_facts {
    double train_seconds; /* from the first round's tickets to the last version */
    uint64_t peak_rss_kib;
    const char *model;                /* path of the file */
    const struct elv_figure *figures; /* told in the JSON object */
    uint32_t n_figures;
    uint64_t wire_up, wire_down; /* what the sockets received and sent, as in a round's report */
};

/* The table before the last line, lines ended. */
void elv_report_table(struct elv_line *out, const struct elv_server_stats *stats,
                      const struct elv_run_facts *facts);

/* "result accuracy=... ..."; `last` is the newest closed round. */
void elv_report_result(struct elv_line *out, const struct elv_server_stats *stats,
                       const struct elv_round_line *last, const struct elv_run_facts *facts);

/* One JSON object with every counter. */
void elv_report_json(struct elv_line *out, const struct elv_server_stats *stats,
                     const struct elv_round_line *last, const struct elv_run_facts *facts);

/* The fields of a note that mean something, as a log line has them: "client=3 round=2 ...". */
void elv_report_note(struct elv_line *out, const struct elv_note *n);

#endif
