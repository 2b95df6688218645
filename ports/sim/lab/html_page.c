/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "ports/sim/lab/html_parts.h"

static void put_card(struct html *h, const char *class, const char *id, const char *title,
                     const char *says)
{
    html_put(h, "<section class=\"");
    html_put(h, class);
    html_put(h, "\" id=\"");
    html_put(h, id);
    html_put(h, "\">\n<h2>");
    html_put(h, title);
    html_put(h, "</h2>\n<p class=\"says\">");
    html_put(h, says);
    html_put(h, "</p>\n");
}

void html_card(struct html *h, const char *id, const char *title, const char *says)
{
    put_card(h, "card", id, title, says);
}

void html_wide_card(struct html *h, const char *id, const char *title, const char *says)
{
    put_card(h, "card wide", id, title, says);
}

void html_card_end(struct html *h) { html_put(h, "</section>\n"); }

void html_swatch(struct html *h, uint32_t label)
{
    html_put(h, "<svg class=\"sw s");
    html_uint(h, label % ELV_HTML_LINES);
    html_put(h, "\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"ln\" d=\"M0 5h28\"/>"
                "</svg>");
}

/* The sentence at the top. */

static bool has_target(const struct html *h)
{
    return h->r->target_accuracy > 0.0 || h->r->target_loss > 0.0;
}

static void put_target(struct html *h)
{
    const bool accuracy = h->r->target_accuracy > 0.0;
    html_put(h, accuracy ? "accuracy " : "loss ");
    html_exact(h, accuracy ? h->r->target_accuracy : h->r->target_loss);
}

/* The label that all seeds of which reached the target, soonest in the mean; the last of those for
 * `slowest`. n_labels: none. */
static uint32_t quickest(const struct html *h, bool slowest)
{
    uint32_t best = h->n_labels;
    for (uint32_t l = 0; l < h->n_labels; l++) {
        const struct html_label *label = &h->labels[l];
        if (label->n_reached < label->n_runs)
            continue;
        const double at = label->of[HTML_REACHED_AT].mean;
        const double to_beat = best < h->n_labels ? h->labels[best].of[HTML_REACHED_AT].mean : NAN;
        if (best == h->n_labels || (slowest ? at > to_beat : at < to_beat))
            best = l;
    }
    return best;
}

/* The greatest mean of a metric, or the least; n_labels: nobody has any. */
static uint32_t extreme(const struct html *h, enum html_metric m, bool greatest)
{
    uint32_t best = h->n_labels;
    for (uint32_t l = 0; l < h->n_labels; l++) {
        const struct html_spread *s = &h->labels[l].of[m];
        if (s->n > 0 && (best == h->n_labels || (greatest ? s->mean > h->labels[best].of[m].mean
                                                          : s->mean < h->labels[best].of[m].mean)))
            best = l;
    }
    return best;
}

static void put_name(struct html *h, uint32_t label)
{
    html_put(h, "<strong>");
    html_text(h, h->labels[label].name);
    html_put(h, "</strong>");
}

static void say_quickest(struct html *h, uint32_t best)
{
    const double at = h->labels[best].of[HTML_REACHED_AT].mean;
    put_name(h, best);
    html_put(h, " reached ");
    put_target(h);
    html_put(h, h->n_labels > 1 ? " first, after " : " after ");
    html_put(h, "<strong>");
    html_value(h, at, HTML_TIME);
    html_put(h, "</strong> of virtual time");
    const uint32_t last = quickest(h, true);
    if (last != best && at > 0.0) {
        html_put(h, ", <strong>");
        html_figure(h, h->labels[last].of[HTML_REACHED_AT].mean / at, 2);
        html_put(h, " times</strong> sooner than ");
        html_text(h, h->labels[last].name);
    }
    html_put(h, ".");
}

static void say_best(struct html *h)
{
    const uint32_t accurate = extreme(h, HTML_ACCURACY, true);
    const uint32_t low = extreme(h, HTML_LOSS, false), busy = extreme(h, HTML_RATE, true);
    if (has_target(h)) {
        html_put(h, "No policy reached ");
        put_target(h);
        html_put(h, " with all of its seeds. ");
    }
    const bool scored = accurate < h->n_labels;
    const uint32_t best = scored ? accurate : low < h->n_labels ? low : busy;
    if (best == h->n_labels)
        return;
    html_put(h, scored              ? "Best accuracy: "
                : low < h->n_labels ? "Lowest loss: "
                                    : "Most updates: ");
    put_name(h, best);
    html_put(h, " with <strong>");
    if (scored)
        html_value(h, h->labels[best].of[HTML_ACCURACY].mean, HTML_RATIO);
    else
        html_figure(h, h->labels[best].of[low < h->n_labels ? HTML_LOSS : HTML_RATE].mean, 3);
    html_put(h, scored || low < h->n_labels ? "</strong>." : "</strong> per second.");
}

void html_headline(struct html *h)
{
    html_put(h, "<header>\n<p class=\"over\">Simulation report</p>\n<h1>");
    html_text(h, h->r->title);
    html_put(h, "</h1>\n<p class=\"lead\">");
    const uint32_t best = quickest(h, false);
    if (h->n_labels == 0)
        html_put(h, "There are no runs.");
    else if (has_target(h) && best < h->n_labels)
        say_quickest(h, best);
    else
        say_best(h);
    html_put(h, "</p>\n");
    html_tiles(h);
    html_put(h, "</header>\n");
}

static void tile(struct html *h, const char *name, double v, enum html_unit unit)
{
    html_put(h, "<div><dt>");
    html_put(h, name);
    html_put(h, "</dt><dd>");
    html_value(h, v, unit);
    html_put(h, "</dd></div>\n");
}

void html_tiles(struct html *h)
{
    double time = 0.0, versions = 0.0, used = 0.0, bytes = 0.0;
    for (uint32_t i = 0; i < h->r->n_runs; i++) {
        const struct elv_lab_summary *s = &h->r->runs[i].summary;
        time += (double)s->ended;
        versions += (double)s->version;
        used += (double)s->used;
        bytes += (double)s->bytes_up + (double)s->bytes_down;
    }
    html_put(h, "<dl class=\"tiles\">\n");
    tile(h, "policies", h->n_labels, HTML_COUNT);
    tile(h, "runs", h->r->n_runs, HTML_COUNT);
    tile(h, "virtual time", time, HTML_TIME);
    tile(h, "versions made", versions, HTML_COUNT);
    tile(h, "updates used", used, HTML_COUNT);
    tile(h, "carried", bytes, HTML_BYTES);
    html_put(h, "</dl>\n");
}

/* All figures, side by side. */

struct column {
    const char *title;
    enum html_metric m;
    enum html_unit unit;
};

static const struct column columns[] = {
    {"best accuracy", HTML_ACCURACY, HTML_RATIO},
    {"last loss", HTML_LOSS, HTML_PLAIN},
    {"waiting", HTML_WAITING, HTML_SHARE},
    {"staleness", HTML_STALENESS, HTML_PLAIN},
    {"fairness", HTML_FAIRNESS, HTML_RATIO},
    {"updates/s", HTML_RATE, HTML_PLAIN},
    {"versions", HTML_VERSIONS, HTML_COUNT},
    {"used", HTML_USED, HTML_COUNT},
    {"late", HTML_LATE, HTML_COUNT},
    {"interrupted", HTML_INTERRUPTED, HTML_COUNT},
    {"discarded", HTML_DISCARDED, HTML_COUNT},
    {"dropped", HTML_DROPPED, HTML_COUNT},
    {"ran for", HTML_ENDED, HTML_TIME},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static bool has_column(const struct html *h, const struct column *c)
{
    for (uint32_t l = 0; l < h->n_labels; l++)
        if (h->labels[l].of[c->m].n > 0)
            return true;
    return false;
}

static void put_cell(struct html *h, const struct html_spread *s, enum html_unit unit)
{
    html_put(h, "<td class=\"n\">");
    html_value(h, s->mean, unit);
    if (s->n > 1 && s->hi > s->lo) {
        html_put(h, "<small>");
        html_range(h, s, unit);
        html_put(h, "</small>");
    }
    html_put(h, "</td>");
}

static void comparison_row(struct html *h, uint32_t label)
{
    const struct html_label *l = &h->labels[label];
    html_put(h, "<tr class=\"k s");
    html_uint(h, label % ELV_HTML_LINES);
    html_put(h, "\"><th scope=\"row\">");
    if (label < h->n_lines)
        html_swatch(h, label);
    html_text(h, l->name);
    html_put(h, "</th><td class=\"n\">");
    html_uint(h, l->n_runs);
    html_put(h, "</td>");
    if (has_target(h)) {
        put_cell(h, &l->of[HTML_REACHED_AT], HTML_TIME);
        html_put(h, "<td class=\"n\">");
        html_uint(h, l->n_reached);
        html_put(h, "</td>");
    }
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        if (has_column(h, &columns[c]))
            put_cell(h, &l->of[columns[c].m], columns[c].unit);
    html_put(h, "</tr>\n");
}

void html_comparison(struct html *h)
{
    html_wide_card(h, "comparison", "All policies",
                   "Means over seeds; below them, from the least to the greatest.");
    html_put(h, "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">policy</th><th "
                "scope=\"col\" class=\"n\">seeds</th>");
    if (has_target(h))
        html_put(h, "<th scope=\"col\" class=\"n\">to target</th><th scope=\"col\" "
                    "class=\"n\">reached</th>");
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        if (!has_column(h, &columns[c]))
            continue;
        html_put(h, "<th scope=\"col\" class=\"n\">");
        html_put(h, columns[c].title);
        html_put(h, "</th>");
    }
    html_put(h, "</tr></thead>\n<tbody>\n");
    for (uint32_t l = 0; l < h->n_labels; l++)
        comparison_row(h, l);
    html_put(h, "</tbody></table></div>\n");
    html_card_end(h);
}

/* The configuration. */

static void put_setting(struct html *h, const struct elv_html_setting *s)
{
    html_put(h, "<tr><th scope=\"row\">");
    html_text(h, s->key);
    html_put(h, "</th><td>");
    html_text(h, s->value);
    html_put(h, "</td><td class=\"origin\">");
    html_text(h, s->origin);
    html_put(h, "</td></tr>\n");
}

static bool same(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

void html_settings(struct html *h)
{
    html_wide_card(h, "settings", "Configuration", "Every setting in force, and who said so.");
    if (h->r->n_settings == 0)
        html_put(h, "<p class=\"none\">None was noted.</p>\n");
    else
        html_put(h, "<div class=\"sections\">\n");
    for (uint32_t i = 0; i < h->r->n_settings; i++) {
        const struct elv_html_setting *s = &h->r->settings[i];
        if (i == 0 || !same(s->section, s[-1].section)) {
            html_put(h, i == 0 ? "" : "</tbody></table></div>\n");
            html_put(h, "<div class=\"section\"><h3>");
            html_text(h, s->section);
            html_put(h, "</h3><table><tbody>\n");
        }
        put_setting(h, s);
    }
    if (h->r->n_settings > 0)
        html_put(h, "</tbody></table></div>\n</div>\n");
    html_card_end(h);
}
