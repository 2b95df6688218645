/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/html.h - the report a person looks at: one HTML file that needs nothing else.
 *
 * Charts are inline SVG, colours follow the reader's light or dark setting, and no script is needed
 * for anything. Every chart has a table with its figures. The same input gives the same bytes.
 *
 * Runs that differ only in their seed carry the same label; they are one line in a chart, the mean,
 * with a band from the least to the greatest. Labels keep the order of their first run. Charts
 * over time hold the first ELV_HTML_LINES of them, all else holds all.
 *
 * Strings are the user's: they are escaped, and what is not UTF-8 is replaced. */
#ifndef ELV_PORTS_SIM_LAB_HTML_H
#define ELV_PORTS_SIM_LAB_HTML_H

#include "ports/sim/lab/record.h"

#define ELV_HTML_LINES 12u

struct elv_html_run {
    const char *label;                  /* its policy, or whatever else the runs differ in */
    uint64_t seed;                      /* shown */
    const struct elv_lab_round *rounds; /* [n_rounds] in order of time */
    uint32_t n_rounds;                  /* may be 0 */
    struct elv_lab_summary summary;
    const uint32_t *uses; /* [n_clients] updates used of each client that ever joined; NULL: not
                             known */
    uint32_t n_clients;
};

/* One line of the configuration in force. */
struct elv_html_setting {
    const char *section, *key, *value;
    const char *origin; /* who said so: a file and line, the command line, the default */
};

struct elv_html_report {
    const char *title;
    const char *program; /* and version, for the last line */
    const struct elv_html_run *runs;
    uint32_t n_runs; /* may be 0 */
    const struct elv_html_setting *settings;
    uint32_t n_settings;
    double target_accuracy, target_loss; /* 0: none */
};

/* Where the text goes, piece by piece. */
struct elv_html_out {
    void *ctx;
    void (*put)(void *ctx, const char *text, size_t len);
};

/* Bytes of scratch that writing this report needs. */
size_t elv_html_scratch(const struct elv_html_report *r);

/* `scratch` is aligned for a double. ELV_ERR_SPACE: it is too small, and nothing was put out. */
enum elv_err elv_html_write(const struct elv_html_report *r, struct elv_html_out out, void *scratch,
                            size_t len);

#endif
