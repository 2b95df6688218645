/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around a drawing of lines: ticks, the lines' names, and the table. */
#include "ports/sim/lab/html_parts.h"

static void put_place(struct html *h, const char *side, double share)
{
    html_put(h, " style=\"");
    html_put(h, side);
    html_put(h, ":");
    html_fixed(h, share * 100.0, 2);
    html_put(h, "%\"");
}

static void put_ticks(struct html *h, const struct html_drawing *d)
{
    html_put(h, "<div class=\"y\" aria-hidden=\"true\">");
    for (uint32_t i = 0; i < d->y.n_ticks; i++) {
        html_put(h, "<span");
        put_place(h, "top", 1.0 - html_axis_place(&d->y, d->y.ticks[i]));
        html_put(h, ">");
        html_axis_number(h, &d->y, d->y.ticks[i]);
        html_put(h, "</span>");
    }
    html_put(h, "</div>\n<div class=\"x\" aria-hidden=\"true\">");
    for (uint32_t i = 0; i < d->x.n_ticks; i++) {
        html_put(h, i % 2 == 1 ? "<span class=\"t odd\"" : "<span class=\"t\"");
        put_place(h, "left", html_axis_place(&d->x, d->x.ticks[i]));
        html_put(h, ">");
        html_axis_number(h, &d->x, d->x.ticks[i]);
        html_put(h, "</span>");
    }
    html_put(h, "<span class=\"say\">");
    html_put(h, d->p->x_says);
    html_put(h, ", ");
    html_put(h, d->x.unit_name);
    html_put(h, "</span></div>\n");
}

struct name { /* of a line, beside its end */
    uint32_t label;
    double want, at; /* from the top, 0 to 1 */
};

#define NAME_GAP 0.058 /* of a drawing's height: a line of text */
#define NAME_EDGE 0.02

static void sort_names(struct name *names, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct name name = names[i];
        uint32_t k = i;
        for (; k > 0 && names[k - 1].want > name.want; k--)
            names[k] = names[k - 1];
        names[k] = name;
    }
}

/* Names pushed apart downwards, and upwards, each keeping inside; half way between the two they are
 * still apart, and nearer to where they belong. */
static void spread_names(struct name *names, uint32_t n)
{
    double up[ELV_HTML_LINES], below = 1.0 - NAME_EDGE;
    for (uint32_t i = n; i-- > 0;) {
        up[i] = names[i].want < below ? names[i].want : below;
        below = up[i] - NAME_GAP;
    }
    double least = NAME_EDGE;
    for (uint32_t i = 0; i < n; i++) {
        up[i] = up[i] > least ? up[i] : least;
        least = up[i] + NAME_GAP;
    }
    double above = NAME_EDGE;
    for (uint32_t i = 0; i < n; i++) {
        names[i].at = names[i].want > above ? names[i].want : above;
        above = names[i].at + NAME_GAP;
    }
    double most = 1.0 - NAME_EDGE;
    for (uint32_t i = n; i-- > 0;) {
        names[i].at = names[i].at < most ? names[i].at : most;
        most = names[i].at - NAME_GAP;
        names[i].at = (names[i].at + up[i]) / 2.0;
    }
}

/* Where each line's name wants to be: at its end; over shares of clients all lines end in one
 * point, so there the fairest comes first. */
static uint32_t find_names(const struct html *h, const struct html_drawing *d, struct name *names)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < h->n_lines; l++) {
        const struct html_curve *c = &h->curves[l];
        if (c->n == 0)
            continue;
        const double last = c->mean[c->n - 1];
        const double fair = h->labels[l].of[HTML_FAIRNESS].mean;
        const double end = html_is_number(last) ? html_axis_place(&d->y, last) : 0.0;
        const bool even = d->p->q == HTML_Q_LORENZ;
        names[n++] = (struct name){.label = l, .want = 1.0 - (even ? fair : end)};
    }
    sort_names(names, n);
    for (uint32_t i = 0; i < n && d->p->q == HTML_Q_LORENZ; i++)
        names[i].want = NAME_EDGE + NAME_GAP * (double)i;
    spread_names(names, n);
    return n;
}

static void put_name(struct html *h, const struct html_drawing *d, uint32_t label)
{
    html_swatch(h, label);
    if (d->p->q == HTML_Q_LORENZ) {
        html_put(h, "<b>");
        html_fixed(h, h->labels[label].of[HTML_FAIRNESS].mean, 2);
        html_put(h, "</b> ");
    }
    html_text(h, h->labels[label].name);
}

static void put_class(struct html *h, const char *before, uint32_t label)
{
    html_put(h, before);
    html_uint(h, label);
    html_put(h, "\"");
}

static void put_names(struct html *h, const struct html_drawing *d, const struct name *names,
                      uint32_t n)
{
    html_put(h, "<div class=\"names\" aria-hidden=\"true\">");
    if (d->p->q != HTML_Q_LORENZ) {
        html_put(h, "<svg class=\"ties\" viewBox=\"0 0 100 2000\" preserveAspectRatio=\"none\">");
        for (uint32_t i = 0; i < n; i++) {
            put_class(h, "<g class=\"s s", names[i].label);
            html_put(h, ">");
            html_draw_line(h, "to", 0, (int)(names[i].want * HTML_HIGH + 0.5), 100,
                           (int)(names[i].at * HTML_HIGH + 0.5));
            html_put(h, "</g>");
        }
        html_put(h, "</svg>");
    }
    for (uint32_t i = 0; i < n; i++) {
        put_class(h, "<span class=\"end k s", names[i].label);
        put_place(h, "top", names[i].at);
        html_put(h, " title=\"");
        html_text(h, h->labels[names[i].label].name);
        html_put(h, "\">");
        put_name(h, d, names[i].label);
        html_put(h, "</span>");
    }
    html_put(h, "</div>\n");
}

static void put_legend(struct html *h, const struct html_drawing *d, const struct name *names,
                       uint32_t n)
{
    html_put(h, "<ul class=\"legend\">");
    for (uint32_t i = 0; i < n; i++) {
        put_class(h, "<li class=\"k s", names[i].label);
        html_put(h, ">");
        put_name(h, d, names[i].label);
        html_put(h, "</li>");
    }
    html_put(h, "</ul>\n");
}

void html_begin_table(struct html *h, const char *what, uint32_t n)
{
    html_put(h, "<details><summary>Figures</summary><div class=\"scroll\"><table>\n<thead><tr><th "
                "scope=\"col\">");
    html_put(h, what);
    html_put(h, "</th>");
    for (uint32_t l = 0; l < n; l++) {
        html_put(h, "<th scope=\"col\">");
        html_text(h, h->labels[l].name);
        html_put(h, "</th>");
    }
    html_put(h, "</tr></thead>\n<tbody>\n");
}

static void put_table(struct html *h, const struct html_drawing *d)
{
    html_begin_table(h, d->p->x_says, h->n_lines);
    for (uint32_t i = 0; i < HTML_COLUMNS; i++) {
        html_put(h, "<tr><th scope=\"row\">");
        html_value(h, html_moment(d, i), d->p->x_unit);
        html_put(h, "</th>");
        for (uint32_t l = 0; l < h->n_lines; l++) {
            html_put(h, "<td>");
            html_put_at(h, d->p, &h->curves[l], html_moment(d, i));
            html_put(h, "</td>");
        }
        html_put(h, "</tr>\n");
    }
    html_put(h, "</tbody></table></div></details>\n");
}

void html_put_around(struct html *h, const struct html_drawing *d)
{
    struct name names[ELV_HTML_LINES];
    const uint32_t n = find_names(h, d, names);
    put_ticks(h, d);
    put_names(h, d, names, n);
    html_put(h, "</div>\n");
    put_legend(h, d, names, n);
    put_table(h, d);
}
