/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over an axis. The drawing is stretched to whatever room it has; what must not be stretched,
 * every text, stands around it at places given in percent. */
#include <math.h>

#include "ports/sim/lab/html_parts.h"

static int across(const struct html_drawing *d, double v)
{
    return (int)(html_axis_place(&d->x, v) * (double)HTML_WIDE + 0.5);
}

static int down(const struct html_drawing *d, double v)
{
    return (int)((1.0 - html_axis_place(&d->y, v)) * (double)HTML_HIGH + 0.5);
}

/* Axes. */

static void range(const struct html *h, const struct html_drawing *d, struct html_spread *s,
                  double *end)
{
    *end = 0.0;
    for (uint32_t l = 0; l < h->n_lines; l++) {
        const struct html_curve *c = &h->curves[l];
        for (uint32_t i = 0; i < c->n; i++) {
            if (!html_is_number(c->mean[i]))
                continue;
            html_spread_add(s, c->lo[i]);
            html_spread_add(s, c->hi[i]);
        }
        *end = c->n > 0 && c->end > *end ? c->end : *end;
    }
    html_spread_add(s, d->p->target);
}

static void percent_axis(struct html_axis *a)
{
    html_axis_linear(a, 0.0, 1.0, false);
    a->unit = 0.01;
    a->unit_name = "percent";
    a->decimals = 0;
}

/* False: there is nothing to draw. */
static bool axes(const struct html *h, struct html_drawing *d)
{
    struct html_spread s = {.n = 0};
    double end;
    range(h, d, &s, &end);
    bool any = false;
    for (uint32_t l = 0; l < h->n_lines; l++)
        any = any || h->curves[l].n > 0;
    if (!any)
        return false;
    if (d->p->q == HTML_Q_LORENZ) {
        percent_axis(&d->x);
        percent_axis(&d->y);
        return true;
    }
    html_axis_time(&d->x, end);
    if (d->p->q == HTML_Q_WANTED)
        html_axis_linear(&d->y, 0.0, s.hi, true);
    else if (d->p->q == HTML_Q_LOSS && s.lo > 0.0 && s.hi / s.lo >= 20.0)
        html_axis_log(&d->y, s.lo, s.hi);
    else
        html_axis_linear(&d->y, s.lo, s.hi, false);
    return true;
}

/* Paths. */

static void add_int(struct elv_line *l, int v)
{
    if (v < 0)
        elv_line_add(l, "-");
    elv_line_uint(l, v < 0 ? (uint64_t) - (int64_t)v : (uint64_t)v);
}

struct pen {
    int x, y;
    bool down;
};

/* To (x, y), by the shortest text: absolute at first, then relative. */
static void draw_to(struct html *h, struct pen *pen, int x, int y)
{
    if (pen->down && x == pen->x && y == pen->y)
        return;
    char text[32];
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_line_add(&l, pen->down ? "l" : "M");
    add_int(&l, pen->down ? x - pen->x : x);
    if (!pen->down || y - pen->y >= 0)
        elv_line_add(&l, " ");
    add_int(&l, pen->down ? y - pen->y : y);
    html_line(h, &l);
    *pen = (struct pen){x, y, true};
}

static double x_of(const struct html_curve *c, uint32_t i)
{
    return c->end * (double)i / (double)(c->n - 1);
}

static bool has_band(const struct html_drawing *d, const struct html_curve *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (html_is_number(c->mean[i]) && down(d, c->lo[i]) - down(d, c->hi[i]) > HTML_HIGH / 200)
            return true;
    return false;
}

static void draw_band(struct html *h, const struct html_drawing *d, const struct html_curve *c)
{
    struct pen pen = {.down = false};
    html_put(h, "<path class=\"band\" d=\"");
    for (uint32_t i = 0; i < c->n; i++)
        if (html_is_number(c->mean[i]))
            draw_to(h, &pen, across(d, x_of(c, i)), down(d, c->hi[i]));
    for (uint32_t i = c->n; i-- > 0;)
        if (html_is_number(c->mean[i]))
            draw_to(h, &pen, across(d, x_of(c, i)), down(d, c->lo[i]));
    html_put(h, "z\"/>");
}

static void draw_mean(struct html *h, const struct html_drawing *d, const struct html_curve *c)
{
    struct pen pen = {.down = false};
    html_put(h, "<path class=\"ln\" d=\"");
    for (uint32_t i = 0; i < c->n; i++)
        if (html_is_number(c->mean[i]))
            draw_to(h, &pen, across(d, x_of(c, i)), down(d, c->mean[i]));
    html_put(h, pen.down ? "\"/>" : "M0 0\"/>");
}

/* A dot where the line ends, and a fainter line on from there to its name. */
static void draw_end(struct html *h, const struct html_drawing *d, const struct html_curve *c)
{
    const double last = c->mean[c->n - 1];
    if (!html_is_number(last) || d->p->q == HTML_Q_LORENZ)
        return;
    struct pen pen = {.down = false};
    const int x = across(d, c->end), y = down(d, last);
    html_put(h, "<path class=\"dot\" d=\"");
    draw_to(h, &pen, x, y);
    html_put(h, "h0\"/>");
    if (x >= HTML_WIDE)
        return;
    pen.down = false;
    html_put(h, "<path class=\"on\" d=\"");
    draw_to(h, &pen, x, y);
    draw_to(h, &pen, HTML_WIDE, y);
    html_put(h, "\"/>");
}

static void draw_curve(struct html *h, const struct html_drawing *d, const struct html_curve *c)
{
    if (c->n == 0)
        return;
    html_put(h, "<g class=\"s s");
    html_uint(h, c->label);
    html_put(h, "\">");
    if (has_band(d, c))
        draw_band(h, d, c);
    draw_mean(h, d, c);
    draw_end(h, d, c);
    html_put(h, "</g>\n");
}

void html_draw_line(struct html *h, const char *class, int x0, int y0, int x1, int y1)
{
    struct pen pen = {.down = false};
    html_put(h, "<path class=\"");
    html_put(h, class);
    html_put(h, "\" d=\"");
    draw_to(h, &pen, x0, y0);
    draw_to(h, &pen, x1, y1);
    html_put(h, "\"/>");
}

static void draw_grid(struct html *h, const struct html_drawing *d)
{
    for (uint32_t i = 0; i < d->y.n_ticks; i++) {
        const int y = down(d, d->y.ticks[i]);
        html_draw_line(h, y == HTML_HIGH ? "axis" : "grid", 0, y, HTML_WIDE, y);
    }
    if (d->p->q == HTML_Q_LORENZ)
        html_draw_line(h, "even", 0, HTML_HIGH, HTML_WIDE, 0);
    if (html_is_number(d->p->target)) {
        const int y = down(d, d->p->target);
        html_draw_line(h, "goal", 0, y, HTML_WIDE, y);
    }
    html_put(h, "\n");
}

/* What the pointer shows. */

double html_moment(const struct html_drawing *d, uint32_t column)
{
    return d->x.hi * (double)column / (double)(HTML_COLUMNS - 1);
}

void html_put_at(struct html *h, const struct html_plot *p, const struct html_curve *c, double x)
{
    double mean, lo, hi;
    if (!html_curve_at(c, x, &mean, &lo, &hi)) {
        html_put(h, "\xe2\x80\x93");
        return;
    }
    html_value(h, mean, p->y_unit);
    if (hi - lo > fabs(mean) * 1e-4) {
        html_put(h, " (");
        html_value(h, lo, p->y_unit);
        html_put(h, " to ");
        html_value(h, hi, p->y_unit);
        html_put(h, ")");
    }
}

static void put_tip(struct html *h, const struct html_drawing *d, double x)
{
    html_put(h, "<title>");
    html_value(h, x, d->p->x_unit);
    for (uint32_t l = 0; l < h->n_lines; l++) {
        double mean, lo, hi;
        if (!html_curve_at(&h->curves[l], x, &mean, &lo, &hi))
            continue;
        html_put(h, "\n");
        html_text(h, h->labels[l].name);
        html_put(h, ": ");
        html_put_at(h, d->p, &h->curves[l], x);
    }
    html_put(h, "</title>");
}

static void draw_tips(struct html *h, const struct html_drawing *d)
{
    const int half = HTML_WIDE / (int)(HTML_COLUMNS - 1) / 2;
    for (uint32_t i = 0; i < HTML_COLUMNS; i++) {
        const double x = html_moment(d, i);
        const int at = across(d, x);
        const int from = at > half ? at - half : 0,
                  to = at + half < HTML_WIDE ? at + half : HTML_WIDE;
        html_put(h, "<rect class=\"tip\" x=\"");
        html_uint(h, (uint64_t)from);
        html_put(h, "\" y=\"0\" width=\"");
        html_uint(h, (uint64_t)(to - from));
        html_put(h, "\" height=\"2000\">");
        put_tip(h, d, x);
        html_put(h, "</rect>\n");
    }
}

static void put_figure(struct html *h, const struct html_drawing *d)
{
    html_put(h, "<p class=\"ysay\">");
    html_put(h, d->p->y_says);
    if (html_is_number(d->p->target)) {
        html_put(h, " <span class=\"goalsay\">target ");
        html_exact(h, d->p->target);
        html_put(h, "</span>");
    }
    html_put(h, "</p>\n<div class=\"plot\">\n<svg class=\"area\" viewBox=\"0 0 4000 2000\" "
                "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    html_put(h, d->p->title);
    html_put(h, "; the figures are in the table below\">\n");
    draw_grid(h, d);
    draw_tips(h, d);
    for (uint32_t l = 0; l < h->n_lines; l++)
        draw_curve(h, d, &h->curves[l]);
    html_put(h, "</svg>\n");
    html_put_around(h, d);
}

static void draw_plot(struct html *h, const struct html_plot *p, bool wide)
{
    struct html_drawing d = {.p = p};
    html_curves(h, p->q);
    if (wide)
        html_wide_card(h, p->id, p->title, p->says);
    else
        html_card(h, p->id, p->title, p->says);
    if (axes(h, &d)) {
        put_figure(h, &d);
    } else {
        html_put(h, "<p class=\"none\">");
        html_put(h, p->nothing);
        html_put(h, "</p>\n");
    }
    html_card_end(h);
}

void html_draw_plots(struct html *h, const struct html_plot *a, const struct html_plot *b)
{
    const bool knows_a = html_knows(h, a->q), knows_b = html_knows(h, b->q);
    if (knows_a || !knows_b)
        draw_plot(h, a, knows_a && !knows_b);
    if (knows_b || !knows_a)
        draw_plot(h, b, knows_b && !knows_a);
}
