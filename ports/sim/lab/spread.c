/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/spread.h"

#include <math.h>
#include <string.h>

#include "ports/sim/lab/fields.h"

static const struct {
    const char *name;
    unsigned decimals;
} figures[] = {
    [ELV_LAB_FIG_TIME] = {"time", 6},
    [ELV_LAB_FIG_ROUNDS] = {"rounds", 2},
    [ELV_LAB_FIG_USED] = {"used", 2},
    [ELV_LAB_FIG_LATE] = {"late", 2},
    [ELV_LAB_FIG_DISCARDED] = {"discarded", 2},
    [ELV_LAB_FIG_DROPPED] = {"dropped", 2},
    [ELV_LAB_FIG_WAITING_SHARE] = {"waiting", 6},
    [ELV_LAB_FIG_UPDATES_PER_S] = {"updates_per_s", 4},
    [ELV_LAB_FIG_ACCURACY] = {"accuracy", 6},
    [ELV_LAB_FIG_BEST_ACCURACY] = {"best_accuracy", 6},
    [ELV_LAB_FIG_LOSS] = {"loss", 6},
    [ELV_LAB_FIG_STALENESS] = {"staleness", 4},
    [ELV_LAB_FIG_FAIRNESS] = {"fairness", 6},
    [ELV_LAB_FIG_BYTES_UP] = {"bytes_up", 0},
    [ELV_LAB_FIG_BYTES_DOWN] = {"bytes_down", 0},
    [ELV_LAB_FIG_ENDED] = {"ended", 6},
    [ELV_LAB_FIG_INTERRUPTED] = {"interrupted", 2},
    [ELV_LAB_FIG_WIRE_UP] = {"wire_up", 0},
    [ELV_LAB_FIG_WIRE_DOWN] = {"wire_down", 0},
};

static double known(double accuracy) { return accuracy >= 0 ? accuracy : (double)NAN; }

static double figure_of(const struct elv_lab_outcome *o, enum elv_lab_figure figure)
{
    const struct elv_lab_summary *s = &o->summary;
    switch (figure) {
    case ELV_LAB_FIG_TIME:
        return elv_lab_time_s(o);
    case ELV_LAB_FIG_ROUNDS:
        return s->version;
    case ELV_LAB_FIG_USED:
        return (double)s->used;
    case ELV_LAB_FIG_LATE:
        return (double)s->late;
    case ELV_LAB_FIG_DISCARDED:
        return (double)s->discarded;
    case ELV_LAB_FIG_DROPPED:
        return (double)s->dropped;
    case ELV_LAB_FIG_WAITING_SHARE:
        return elv_lab_waiting_share(o);
    case ELV_LAB_FIG_UPDATES_PER_S:
        return elv_lab_updates_per_s(o);
    case ELV_LAB_FIG_ACCURACY:
        return known(s->score.accuracy);
    case ELV_LAB_FIG_BEST_ACCURACY:
        return known(s->best_accuracy);
    case ELV_LAB_FIG_LOSS:
        return s->score.loss;
    case ELV_LAB_FIG_STALENESS:
        return s->stale_mean;
    case ELV_LAB_FIG_FAIRNESS:
        return s->fairness;
    case ELV_LAB_FIG_BYTES_UP:
        return (double)s->bytes_up;
    case ELV_LAB_FIG_BYTES_DOWN:
        return (double)s->bytes_down;
    case ELV_LAB_FIG_ENDED:
        return (double)s->ended / 1e6;
    case ELV_LAB_FIG_INTERRUPTED:
        return (double)s->interrupted;
    case ELV_LAB_FIG_WIRE_UP:
        return (double)s->wire_up;
    case ELV_LAB_FIG_WIRE_DOWN:
        return (double)s->wire_down;
    case ELV_LAB_FIGURES:
        break;
    }
    return (double)NAN;
}

static struct elv_lab_range range_of(const struct elv_lab_outcome *runs, uint32_t n,
                                     enum elv_lab_figure figure)
{
    struct elv_lab_range r = {.mean = (double)NAN, .min = (double)NAN, .max = (double)NAN};
    double sum = 0;
    uint32_t n_known = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double v = figure_of(&runs[i], figure);
        if (!isfinite(v))
            continue;
        r.min = n_known == 0 || v < r.min ? v : r.min;
        r.max = n_known == 0 || v > r.max ? v : r.max;
        sum += v;
        n_known++;
    }
    if (n_known > 0)
        r.mean = sum / n_known;
    return r;
}

struct elv_lab_spread elv_lab_spread_of(const struct elv_lab_outcome *runs, uint32_t n)
{
    struct elv_lab_spread s = {
        .label = runs[0].label, .n_seeds = n, .has_target = runs[0].has_target};
    for (uint32_t i = 0; i < n; i++)
        s.n_reached += runs[i].summary.reached;
    for (uint32_t i = 0; i < ELV_LAB_FIGURES; i++)
        s.figure[i] = range_of(runs, n, (enum elv_lab_figure)i);
    return s;
}

/* The table. */

static void pad(struct elv_line *out, size_t from, size_t width)
{
    while (out->len - from < width && !out->full)
        elv_line_add(out, " ");
}

/* Right-aligned in its column, two blanks before it. */
static void put_cell(struct elv_line *out, const char *text, size_t width)
{
    const size_t from = out->len;
    pad(out, from, 2 + (strlen(text) < width ? width - strlen(text) : 0));
    elv_line_add(out, text);
}

static void put_figure(struct elv_line *out, double v, unsigned decimals, size_t width)
{
    char text[40];
    struct elv_line l = elv_line_of(text, sizeof text);
    if (isfinite(v))
        elv_lab_put_fixed(&l, v, decimals);
    else
        elv_line_add(&l, "-");
    put_cell(out, text, width);
}

enum { W_SEEDS = 7, W_TIME = 11, W_RANGE = 23, W_COUNT = 9, W_LONG = 11, W_SHARE = 8 };

void elv_lab_spread_head(struct elv_line *out, uint32_t width)
{
    const size_t from = out->len;
    elv_line_add(out, "label");
    pad(out, from, width);
    put_cell(out, "reached", W_SEEDS);
    put_cell(out, "time (s)", W_TIME);
    put_cell(out, "[min .. max]", W_RANGE);
    put_cell(out, "rounds", W_COUNT);
    put_cell(out, "used", W_COUNT);
    put_cell(out, "late", W_COUNT);
    put_cell(out, "interrupted", W_LONG);
    put_cell(out, "waiting", W_SHARE);
    put_cell(out, "accuracy", W_SHARE);
    put_cell(out, "loss", W_COUNT);
    elv_line_add(out, "\n");
}

static void put_reached(struct elv_line *out, const struct elv_lab_spread *s)
{
    char text[32];
    struct elv_line l = elv_line_of(text, sizeof text);
    if (s->has_target)
        elv_line_uint(&l, s->n_reached);
    else
        elv_line_add(&l, "-");
    elv_line_add(&l, "/");
    elv_line_uint(&l, s->n_seeds);
    put_cell(out, text, W_SEEDS);
}

static void put_range(struct elv_line *out, const struct elv_lab_range *r)
{
    char text[64];
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_line_add(&l, isfinite(r->min) ? "[" : "");
    if (isfinite(r->min)) {
        elv_lab_put_fixed(&l, r->min, 2);
        elv_line_add(&l, " .. ");
        elv_lab_put_fixed(&l, r->max, 2);
        elv_line_add(&l, "]");
    }
    put_cell(out, text, W_RANGE);
}

void elv_lab_spread_row(struct elv_line *out, const struct elv_lab_spread *s, uint32_t width)
{
    const struct elv_lab_range *f = s->figure;
    const size_t from = out->len;
    elv_line_add(out, s->label);
    pad(out, from, width);
    put_reached(out, s);
    put_figure(out, f[ELV_LAB_FIG_TIME].mean, 2, W_TIME);
    put_range(out, &f[ELV_LAB_FIG_TIME]);
    put_figure(out, f[ELV_LAB_FIG_ROUNDS].mean, 1, W_COUNT);
    put_figure(out, f[ELV_LAB_FIG_USED].mean, 1, W_COUNT);
    put_figure(out, f[ELV_LAB_FIG_LATE].mean, 1, W_COUNT);
    put_figure(out, f[ELV_LAB_FIG_INTERRUPTED].mean, 1, W_LONG);
    put_figure(out, f[ELV_LAB_FIG_WAITING_SHARE].mean, 3, W_SHARE);
    put_figure(out, f[ELV_LAB_FIG_ACCURACY].mean, 4, W_SHARE);
    put_figure(out, f[ELV_LAB_FIG_LOSS].mean, 4, W_COUNT);
    elv_line_add(out, "\n");
}

/* For scripts. */

static void put_named(struct elv_line *out, const char *name, const char *suffix, double v,
                      unsigned decimals)
{
    elv_line_add(out, " ");
    elv_line_add(out, name);
    elv_line_add(out, suffix);
    elv_line_add(out, "=");
    elv_lab_put_fixed(out, v, decimals);
}

void elv_lab_spread_line(struct elv_line *out, const struct elv_lab_spread *s)
{
    elv_line_add(out, "result label=");
    elv_line_add(out, s->label);
    elv_line_add(out, " seeds=");
    elv_line_uint(out, s->n_seeds);
    elv_line_add(out, " reached=");
    if (s->has_target)
        elv_line_uint(out, s->n_reached);
    else
        elv_line_add(out, "-");
    for (uint32_t i = 0; i < ELV_LAB_FIGURES; i++) {
        put_named(out, figures[i].name, "", s->figure[i].mean, figures[i].decimals);
        if (i != ELV_LAB_FIG_TIME)
            continue;
        put_named(out, figures[i].name, "_min", s->figure[i].min, figures[i].decimals);
        put_named(out, figures[i].name, "_max", s->figure[i].max, figures[i].decimals);
    }
}

static void put_json(struct elv_line *out, const char *key, double v)
{
    elv_line_add(out, key);
    if (isfinite(v))
        elv_line_f64(out, v);
    else
        elv_line_add(out, "null");
}

void elv_lab_spread_json(struct elv_line *out, const struct elv_lab_spread *s)
{
    elv_line_add(out, "    {\n      \"label\": ");
    elv_lab_put_json(out, s->label);
    elv_line_add(out, ",\n      \"seeds\": ");
    elv_line_uint(out, s->n_seeds);
    elv_line_add(out, ",\n      \"reached\": ");
    if (s->has_target)
        elv_line_uint(out, s->n_reached);
    else
        elv_line_add(out, "null");
    for (uint32_t i = 0; i < ELV_LAB_FIGURES; i++) {
        elv_line_add(out, ",\n      \"");
        elv_line_add(out, figures[i].name);
        put_json(out, "\": {\"mean\": ", s->figure[i].mean);
        put_json(out, ", \"min\": ", s->figure[i].min);
        put_json(out, ", \"max\": ", s->figure[i].max);
        elv_line_add(out, "}");
    }
    elv_line_add(out, "\n    }");
}
