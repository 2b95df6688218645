/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/lab/html_parts.h - what the files of the report share; nobody else includes it.
 *
 * html.c is the order of the page. html_write.c writes numbers and escapes, html_data.c makes one
 * figure of several seeds, html_axis.c picks ticks, html_plot.c draws a quantity over another,
 * html_bars.c draws one per policy, html_names.c writes what stands around, html_page.c what is
 * text, html_style.c how it looks. */
#ifndef ELV_PORTS_SIM_LAB_HTML_PARTS_H
#define ELV_PORTS_SIM_LAB_HTML_PARTS_H

#include "common/arena.h"
#include "common/text.h"
#include "ports/sim/lab/html.h"

#define HTML_POINTS 385u /* of a line; finer than a screen shows */
#define HTML_COLUMNS 25u /* moments with a tooltip over a chart, and a line in its table */
#define HTML_TICKS 16u

/* Figures of several runs. */

struct html_spread {     /* of the finite values added */
    double mean, lo, hi; /* NAN: none */
    uint32_t n;
};

enum html_metric {
    HTML_REACHED_AT, /* us; of the runs that reached the target */
    HTML_ENDED,      /* us */
    HTML_VERSIONS,
    HTML_ACCURACY, /* the best */
    HTML_LOSS,     /* of the last version */
    HTML_WAITING,  /* share of the clients' time */
    HTML_STALENESS,
    HTML_USED,
    HTML_LATE,
    HTML_INTERRUPTED,
    HTML_DISCARDED,
    HTML_DROPPED,
    HTML_RATE, /* updates used per second */
    HTML_UP_VERSION,
    HTML_DOWN_VERSION, /* bytes */
    HTML_UP_UPDATE,
    HTML_DOWN_UPDATE,
    HTML_FAIRNESS,
    HTML_METRICS
};

struct html_label {
    const char *name;
    uint32_t n_runs, n_reached;
    struct html_spread of[HTML_METRICS];
    double stale[ELV_LAB_STALE_BINS]; /* share of the updates used */
};

/* What is drawn over time, or over a share of the clients. */
enum html_quantity { HTML_Q_ACCURACY, HTML_Q_LOSS, HTML_Q_WANTED, HTML_Q_LORENZ };

struct html_curve { /* of one label: x rises evenly from 0 to `end` */
    uint32_t label;
    uint32_t n; /* points; 0: the label has no such quantity */
    double end;
    double mean[HTML_POINTS], lo[HTML_POINTS], hi[HTML_POINTS]; /* NAN: not known there yet */
};

struct html_buffer { /* for one run */
    double mean[HTML_POINTS], lo[HTML_POINTS], hi[HTML_POINTS];
};

/* The page being written. */

struct html {
    struct elv_html_out out;
    const struct elv_html_report *r;
    struct html_label *labels; /* [n_labels] */
    uint32_t n_labels, n_lines;
    uint32_t *label_of;        /* [n_runs] */
    uint32_t *sorted;          /* [the most clients of a run] */
    struct html_curve *curves; /* [ELV_HTML_LINES] of the chart being drawn */
    struct html_buffer *buffer;
    bool scored; /* a round has a score's loss; else training losses are shown */
};

/* html_data.c */
void html_layout(struct elv_arena *a, struct html *h);
void html_gather(struct html *h);
bool html_knows(const struct html *h, enum html_quantity q); /* a line would be drawn */
void html_curves(struct html *h, enum html_quantity q);
/* Of the curve at x, by the nearest point; false: it is not known there. */
bool html_curve_at(const struct html_curve *c, double x, double *mean, double *lo, double *hi);
void html_spread_add(struct html_spread *s, double v);
bool html_is_number(double v);

/* html_write.c */
void html_put(struct html *h, const char *text);  /* as it is */
void html_text(struct html *h, const char *text); /* the user's: escaped; NULL: nothing */
void html_line(struct html *h, const struct elv_line *l);
void html_uint(struct html *h, uint64_t v);
void html_fixed(struct html *h, double v, uint32_t decimals);
void html_figure(struct html *h, double v, uint32_t digits); /* significant ones */

enum html_unit { HTML_PLAIN, HTML_COUNT, HTML_TIME, HTML_BYTES, HTML_SHARE, HTML_RATIO };
/* A value with its unit, as people write it; NAN: a dash. */
void html_value(struct html *h, double v, enum html_unit unit);
/* From the least to the greatest; nothing when they are as good as one. */
void html_range(struct html *h, const struct html_spread *s, enum html_unit unit);
void html_exact(struct html *h, double v); /* as few digits as it takes */
void html_add_fixed(struct elv_line *l, double v, uint32_t decimals);
void html_add_figure(struct elv_line *l, double v, uint32_t digits);

/* html_axis.c */
struct html_axis {
    double lo, hi; /* in what the values are in */
    double unit;   /* that a tick's number is divided by */
    const char *unit_name;
    bool log;
    uint32_t decimals, n_ticks;
    double ticks[HTML_TICKS];
};
void html_axis_linear(struct html_axis *a, double lo, double hi, bool whole);
void html_axis_log(struct html_axis *a, double lo, double hi);
void html_axis_time(struct html_axis *a, double end_us);
double html_axis_place(const struct html_axis *a, double v); /* 0 to 1 */
void html_axis_number(struct html *h, const struct html_axis *a, double v);
double html_power10(int e);
int html_decade(double v); /* the power of ten not above v > 0 */

/* html_plot.c */
struct html_plot {
    const char *id, *title, *says;
    const char *x_says, *y_says;
    const char *nothing; /* instead of a chart without data */
    enum html_quantity q;
    enum html_unit x_unit, y_unit;
    double target; /* NAN: none */
};
struct html_drawing {
    const struct html_plot *p;
    struct html_axis x, y;
};

enum { HTML_WIDE = 4000, HTML_HIGH = 2000 }; /* units of a drawing, whatever room it gets */

/* Side by side; one of which nothing is known makes room for the other. */
void html_draw_plots(struct html *h, const struct html_plot *a, const struct html_plot *b);
void html_draw_line(struct html *h, const char *class, int x0, int y0, int x1, int y1);
double html_moment(const struct html_drawing *d, uint32_t column); /* x, of HTML_COLUMNS */
/* The curve's value there, with its range. */
void html_put_at(struct html *h, const struct html_plot *p, const struct html_curve *c, double x);

/* html_names.c */
void html_put_around(struct html *h, const struct html_drawing *d);
/* A chart's figures: a line for each `what`, a column for each of the first `n` labels. */
void html_begin_table(struct html *h, const char *what, uint32_t n);

/* html_bars.c */
void html_draw_reached(struct html *h);
void html_draw_rate(struct html *h);
void html_draw_waiting(struct html *h);
void html_draw_bytes(struct html *h);
void html_draw_staleness(struct html *h);

/* html_page.c */
void html_card(struct html *h, const char *id, const char *title, const char *says);
void html_wide_card(struct html *h, const char *id, const char *title, const char *says);
void html_card_end(struct html *h);
void html_swatch(struct html *h, uint32_t label);
void html_headline(struct html *h);
void html_tiles(struct html *h);
void html_comparison(struct html *h);
void html_settings(struct html *h);

extern const char *const html_style[]; /* pieces; NULL ends them */

#endif
