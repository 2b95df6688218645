/* SPDX-License-Identifier: Apache-2.0 */
/* One bar per policy. These charts are tables: the figure stands beside its bar. */

#include "ports/sim/lab/html_parts.h"

static void put_row(struct html *h, uint32_t label)
{
    html_put(h, "<tr class=\"k s");
    html_uint(h, label % ELV_HTML_LINES);
    html_put(h, "\"><th scope=\"row\" title=\"");
    html_text(h, h->labels[label].name);
    html_put(h, "\">");
    html_text(h, h->labels[label].name);
    html_put(h, "</th>");
}

static void put_share(struct html *h, const char *name, double share)
{
    html_put(h, " ");
    html_put(h, name);
    html_put(h, "=\"");
    html_fixed(h, share * 100.0, 2);
    html_put(h, "%\"");
}

static void put_bar(struct html *h, const char *class, double from, double to)
{
    html_put(h, "<rect class=\"");
    html_put(h, class);
    html_put(h, "\" rx=\"2\" y=\"20%\" height=\"60%\"");
    put_share(h, "x", from);
    put_share(h, "width", to > from ? to - from : 0.0);
    html_put(h, "/>");
}

/* From the least to the greatest of the seeds, across the end of the bar. */
static void put_whisker(struct html *h, const struct html_spread *s, double most)
{
    if (s->n < 2 || !(s->hi - s->lo > most * 0.002))
        return;
    html_put(h, "<line class=\"whisker\" y1=\"50%\" y2=\"50%\"");
    put_share(h, "x1", s->lo / most);
    put_share(h, "x2", s->hi / most);
    html_put(h, "/>");
}

/* `of`: seeds that a figure was looked for in, said when fewer have one. */
static void put_range(struct html *h, const struct html_spread *s, enum html_unit unit, uint32_t of)
{
    html_put(h, "<td class=\"n\">");
    html_value(h, s->mean, unit);
    if (s->n > 0 && s->n < of) {
        html_put(h, " <small>");
        html_uint(h, s->n);
        html_put(h, " of ");
        html_uint(h, of);
        html_put(h, "</small>");
    }
    html_put(h, "</td><td class=\"n range\">");
    html_range(h, s, unit);
    html_put(h, "</td>");
}

static void begin(struct html *h, const char *figure)
{
    html_put(h, "<table class=\"bars\">\n<thead><tr><th scope=\"col\">policy</th><td></td><th "
                "scope=\"col\" class=\"n\">");
    html_put(h, figure);
    html_put(h, "</th><th scope=\"col\" class=\"n range\">over seeds</th></tr></thead>\n<tbody>\n");
}

static void bar_row(struct html *h, uint32_t label, const struct html_spread *s, double most,
                    enum html_unit unit)
{
    put_row(h, label);
    html_put(h, "<td class=\"b\"><svg class=\"bar\" aria-hidden=\"true\">");
    if (s->n > 0 && most > 0.0) {
        put_bar(h, "fill", 0.0, s->mean / most);
        put_whisker(h, s, most);
    }
    html_put(h, "</svg></td>");
    put_range(h, s, unit, h->labels[label].n_runs);
    html_put(h, "</tr>\n");
}

static double most_of(const struct html *h, enum html_metric m)
{
    double most = 0.0;
    for (uint32_t l = 0; l < h->n_labels; l++)
        if (h->labels[l].of[m].n > 0 && h->labels[l].of[m].hi > most)
            most = h->labels[l].of[m].hi;
    return most;
}

static void put_nothing(struct html *h, const char *says)
{
    html_put(h, "<p class=\"none\">");
    html_put(h, says);
    html_put(h, "</p>\n");
}

/* Time to the target. */

/* The next label in order of time, after `done` of them: those all of whose runs reached the target
 * first, then those with fewer, then the order of the page. */
static bool sooner(const struct html_label *a, const struct html_label *b)
{
    const double share_a = (double)a->n_reached / (double)a->n_runs;
    const double share_b = (double)b->n_reached / (double)b->n_runs;
    if (share_a != share_b)
        return share_a > share_b;
    return a->n_reached > 0 && a->of[HTML_REACHED_AT].mean < b->of[HTML_REACHED_AT].mean;
}

static uint32_t rank_of(const struct html *h, uint32_t label)
{
    uint32_t rank = 0;
    for (uint32_t l = 0; l < h->n_labels; l++)
        if (l != label && (sooner(&h->labels[l], &h->labels[label]) ||
                           (l < label && !sooner(&h->labels[label], &h->labels[l]))))
            rank++;
    return rank;
}

static void reached_row(struct html *h, uint32_t label, double most)
{
    const struct html_label *l = &h->labels[label];
    if (l->n_reached > 0) {
        bar_row(h, label, &l->of[HTML_REACHED_AT], most, HTML_TIME);
        return;
    }
    put_row(h, label);
    html_put(h, "<td class=\"b none\">not reached</td><td class=\"n none\">after ");
    html_value(h, l->of[HTML_ENDED].mean, HTML_TIME);
    html_put(h, "</td><td class=\"n range\"></td></tr>\n");
}

void html_draw_reached(struct html *h)
{
    html_card(h, "reached", "Time to the target",
              "Virtual time until the target was reached first: the mean over seeds, and from the "
              "quickest seed to the slowest.");
    const double most = most_of(h, HTML_REACHED_AT);
    if (h->n_labels == 0)
        put_nothing(h, "There are no runs.");
    else
        begin(h, "time");
    for (uint32_t rank = 0; rank < h->n_labels; rank++)
        for (uint32_t l = 0; l < h->n_labels; l++)
            if (rank_of(h, l) == rank)
                reached_row(h, l, most);
    if (h->n_labels > 0)
        html_put(h, "</tbody></table>\n");
    html_card_end(h);
}

/* One quantity, in the order of the page. */

static void draw_metric(struct html *h, enum html_metric m, const char *figure, double most,
                        enum html_unit unit, const char *nothing)
{
    bool any = false;
    for (uint32_t l = 0; l < h->n_labels; l++)
        any = any || h->labels[l].of[m].n > 0;
    if (!any) {
        put_nothing(h, nothing);
        return;
    }
    begin(h, figure);
    for (uint32_t l = 0; l < h->n_labels; l++)
        bar_row(h, l, &h->labels[l].of[m], most, unit);
    html_put(h, "</tbody></table>\n");
}

void html_draw_rate(struct html *h)
{
    html_card(h, "rate", "Updates used per second", "Of virtual time; the mean over seeds.");
    draw_metric(h, HTML_RATE, "per second", most_of(h, HTML_RATE), HTML_PLAIN,
                "No update was used.");
    html_card_end(h);
}

void html_draw_waiting(struct html *h)
{
    html_card(h, "waiting", "Time spent waiting",
              "Share of the clients' time in which they waited for others instead of downloading, "
              "computing or uploading.");
    draw_metric(h, HTML_WAITING, "share", 1.0, HTML_SHARE, "No client's time was counted.");
    html_card_end(h);
}

/* Bytes. */

static void bytes_row(struct html *h, uint32_t label, const struct html_spread *up,
                      const struct html_spread *down, double most)
{
    put_row(h, label);
    html_put(h, "<td class=\"b\"><svg class=\"bar\" aria-hidden=\"true\">");
    if (up->n > 0 && most > 0.0) {
        const double middle = up->mean / most;
        put_bar(h, "fill", 0.0, middle);
        put_bar(h, "pale", middle, middle + down->mean / most);
    }
    html_put(h, "</svg></td><td class=\"n\">");
    html_value(h, up->mean, HTML_BYTES);
    html_put(h, "</td><td class=\"n\">");
    html_value(h, down->mean, HTML_BYTES);
    html_put(h, "</td></tr>\n");
}

static void bytes_table(struct html *h, const char *per, enum html_metric up, enum html_metric down)
{
    double most = 0.0;
    for (uint32_t l = 0; l < h->n_labels; l++) {
        const double both = h->labels[l].of[up].mean + h->labels[l].of[down].mean;
        most = both > most ? both : most;
    }
    html_put(h, "<div><h3>");
    html_put(h, per);
    html_put(h, "</h3>\n<table class=\"bars\">\n<thead><tr><th scope=\"col\">policy</th><td></td>"
                "<th scope=\"col\" class=\"n\">up</th><th scope=\"col\" class=\"n\">down</th></tr>"
                "</thead>\n<tbody>\n");
    for (uint32_t l = 0; l < h->n_labels; l++)
        bytes_row(h, l, &h->labels[l].of[up], &h->labels[l].of[down], most);
    html_put(h, "</tbody></table></div>\n");
}

void html_draw_bytes(struct html *h)
{
    html_wide_card(
        h, "bytes", "Bytes on the links",
        "What all clients sent (strong colour) and received (pale), for each version made "
        "and for each update used; means over seeds.");
    if (most_of(h, HTML_UP_UPDATE) + most_of(h, HTML_DOWN_UPDATE) > 0.0) {
        html_put(h, "<div class=\"pair\">\n");
        bytes_table(h, "Per version", HTML_UP_VERSION, HTML_DOWN_VERSION);
        bytes_table(h, "Per update used", HTML_UP_UPDATE, HTML_DOWN_UPDATE);
        html_put(h, "</div>\n");
    } else {
        put_nothing(h, "No bytes were counted.");
    }
    html_card_end(h);
}

/* Staleness. */

static uint32_t bins_used(const struct html *h)
{
    uint32_t n = 8;
    for (uint32_t l = 0; l < h->n_labels; l++)
        for (uint32_t b = n; b < ELV_LAB_STALE_BINS; b++)
            n = h->labels[l].stale[b] > 0.0 ? b + 1 : n;
    return n;
}

static void put_bin_name(struct html *h, uint32_t bin)
{
    html_uint(h, bin);
    if (bin == ELV_LAB_STALE_BINS - 1)
        html_put(h, "+");
}

static void put_bin(struct html *h, uint32_t bin, uint32_t n, double share, double most)
{
    html_put(h, "<g><rect class=\"tip\" y=\"0\" height=\"100%\"");
    put_share(h, "x", (double)bin / (double)n);
    put_share(h, "width", 1.0 / (double)n);
    html_put(h, "/><rect class=\"fill\"");
    put_share(h, "x", ((double)bin + 0.12) / (double)n);
    put_share(h, "width", 0.76 / (double)n);
    put_share(h, "y", 1.0 - share / most);
    put_share(h, "height", share / most);
    html_put(h, "/><title>staleness ");
    put_bin_name(h, bin);
    html_put(h, ": ");
    html_value(h, share, HTML_SHARE);
    html_put(h, "</title></g>");
}

static void put_histogram(struct html *h, uint32_t label, uint32_t n)
{
    const struct html_label *l = &h->labels[label];
    double most = 0.0;
    for (uint32_t b = 0; b < n; b++)
        most = l->stale[b] > most ? l->stale[b] : most;
    html_put(h, "<div class=\"small k s");
    html_uint(h, label % ELV_HTML_LINES);
    html_put(h, "\"><h3 title=\"");
    html_text(h, l->name);
    html_put(h, "\">");
    html_text(h, l->name);
    html_put(h, "</h3><p>mean ");
    html_figure(h, l->of[HTML_STALENESS].mean, 3);
    html_put(h, ", peak ");
    html_value(h, most, HTML_SHARE);
    html_put(h, "</p>\n<svg class=\"hist\" role=\"img\" aria-label=\"staleness histogram\">");
    for (uint32_t b = 0; b < n && most > 0.0; b++)
        put_bin(h, b, n, l->stale[b], most);
    html_put(h, "</svg><div class=\"ends\" aria-hidden=\"true\"><span>0</span><span>");
    put_bin_name(h, n - 1);
    html_put(h, "</span></div></div>\n");
}

static void staleness_table(struct html *h, uint32_t n)
{
    html_begin_table(h, "staleness", h->n_labels);
    for (uint32_t b = 0; b < n; b++) {
        html_put(h, "<tr><th scope=\"row\">");
        put_bin_name(h, b);
        html_put(h, "</th>");
        for (uint32_t l = 0; l < h->n_labels; l++) {
            html_put(h, "<td>");
            html_value(h, h->labels[l].stale[b], HTML_SHARE);
            html_put(h, "</td>");
        }
        html_put(h, "</tr>\n");
    }
    html_put(h, "</tbody></table></div></details>\n");
}

void html_draw_staleness(struct html *h)
{
    const uint32_t n = bins_used(h);
    double used = 0.0;
    for (uint32_t l = 0; l < h->n_labels; l++)
        used += (double)h->labels[l].of[HTML_USED].mean;
    html_wide_card(
        h, "staleness", "Staleness of the updates used",
        "How many updates had been used since the version that a client started from, when "
        "its own was; each histogram has a scale of its own.");
    if (used > 0.0) {
        html_put(h, "<div class=\"smalls\">\n");
        for (uint32_t l = 0; l < h->n_labels; l++)
            put_histogram(h, l, n);
        html_put(h, "</div>\n");
        staleness_table(h, n);
    } else {
        put_nothing(h, "No update was used.");
    }
    html_card_end(h);
}
