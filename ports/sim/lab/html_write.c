/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ports/sim/lab/html_parts.h"

void html_put(struct html *h, const char *text) { h->out.put(h->out.ctx, text, strlen(text)); }

void html_line(struct html *h, const struct elv_line *l) { h->out.put(h->out.ctx, l->at, l->len); }

/* Bytes of the UTF-8 character that starts here; 0: it is none, or none that XML allows. */
static size_t character(const unsigned char *at)
{
    if (at[0] < 0x80)
        return at[0] >= 0x20 || at[0] == '\t' || at[0] == '\n' ? 1 : 0;
    const size_t len = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((at[i] & 0xc0) != 0x80) /* the closing zero, too */
            return 0;
    const bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool beyond = at[0] == 0xf4 && at[1] > 0x8f;
    const bool surrogate = at[0] == 0xed && at[1] > 0x9f;
    const bool unassigned = at[0] == 0xef && at[1] == 0xbf && at[2] > 0xbd; /* U+FFFE, U+FFFF */
    return overlong || beyond || surrogate || unassigned ? 0 : len;
}

static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void html_text(struct html *h, const char *text)
{
    const char *at = text;
    while (at != NULL && *at != '\0') {
        const size_t len = character((const unsigned char *)at);
        const char *escape = escape_of(*at);
        if (escape != NULL)
            html_put(h, escape);
        else if (len == 0)
            html_put(h, "\xef\xbf\xbd"); /* U+FFFD, in place of one byte */
        else
            h->out.put(h->out.ctx, at, len);
        at += len > 0 ? len : 1;
    }
}

double html_power10(int e)
{
    double p = 1.0;
    for (; e > 0; e--)
        p *= 10.0;
    for (; e < 0; e++)
        p /= 10.0;
    return p;
}

int html_decade(double v)
{
    int e = 0;
    for (; v >= 10.0 && e < 400; e++)
        v /= 10.0;
    for (; v < 1.0 && v > 0.0 && e > -400; e--)
        v *= 10.0;
    return e;
}

/* Groups of three from 10000 on, a narrow space between them. */
static void add_whole(struct elv_line *l, uint64_t v)
{
    if (v < 10000) {
        elv_line_uint(l, v);
        return;
    }
    uint64_t unit = 1;
    while (v / unit >= 1000)
        unit *= 1000;
    elv_line_uint(l, v / unit);
    for (unit /= 1000; unit > 0; unit /= 1000) {
        elv_line_add(l, "\xe2\x80\xaf"); /* U+202F */
        const uint64_t group = v / unit % 1000;
        elv_line_add(l, group < 10 ? "00" : group < 100 ? "0" : "");
        elv_line_uint(l, group);
    }
}

static void add_fraction(struct elv_line *l, uint64_t part, uint32_t decimals)
{
    elv_line_add(l, ".");
    uint64_t unit = 1;
    for (uint32_t i = 1; i < decimals; i++)
        unit *= 10;
    for (; unit > 0; unit /= 10)
        elv_line_uint(l, part / unit % 10);
}

void html_add_fixed(struct elv_line *l, double v, uint32_t decimals)
{
    const uint32_t places = decimals < 9 ? decimals : 9;
    const double scaled = fabs(v) * html_power10((int)places);
    if (!(scaled < 1e15)) { /* or not a number */
        if (v >= -DBL_MAX && v <= DBL_MAX)
            elv_line_f64(l, v);
        else
            elv_line_add(l, "\xe2\x80\x93"); /* U+2013 */
        return;
    }
    const uint64_t units = (uint64_t)(scaled + 0.5);
    uint64_t whole = 1;
    for (uint32_t i = 0; i < places; i++)
        whole *= 10;
    if (v < 0.0 && units > 0)
        elv_line_add(l, "\xe2\x88\x92"); /* U+2212 */
    add_whole(l, units / whole);
    if (places > 0)
        add_fraction(l, units % whole, places);
}

void html_add_figure(struct elv_line *l, double v, uint32_t digits)
{
    const double size = fabs(v);
    if (!html_is_number(v) || size >= 1e15 || size == 0.0) {
        html_add_fixed(l, v, 0);
        return;
    }
    int decade = html_decade(size);
    if (size * html_power10((int)digits - 1 - decade) + 0.5 >= html_power10((int)digits))
        decade++; /* it rounds up to the next power */
    const int decimals = (int)digits - 1 - decade;
    if (decimals <= 8) {
        html_add_fixed(l, v, decimals > 0 ? (uint32_t)decimals : 0);
        return;
    }
    html_add_fixed(l, v * html_power10(-decade), digits - 1);
    elv_line_add(l, "e\xe2\x88\x92");
    elv_line_uint(l, (uint64_t)-decade);
}

void html_uint(struct html *h, uint64_t v)
{
    char text[48];
    struct elv_line l = elv_line_of(text, sizeof text);
    add_whole(&l, v);
    html_line(h, &l);
}

void html_fixed(struct html *h, double v, uint32_t decimals)
{
    char text[64];
    struct elv_line l = elv_line_of(text, sizeof text);
    html_add_fixed(&l, v, decimals);
    html_line(h, &l);
}

void html_figure(struct html *h, double v, uint32_t digits)
{
    char text[64];
    struct elv_line l = elv_line_of(text, sizeof text);
    html_add_figure(&l, v, digits);
    html_line(h, &l);
}

struct scale { /* from `least` on, values are divided by `unit` */
    double least, unit;
    const char *name;
};

static const struct scale times[] = {{172800e6, 86400e6, "d"}, {7200e6, 3600e6, "h"},
                                     {120e6, 60e6, "min"},     {1e6, 1e6, "s"},
                                     {1e3, 1e3, "ms"},         {0.0, 1.0, "\xc2\xb5s"}};
static const struct scale sizes[] = {
    {1e12, 1e12, "TB"}, {1e9, 1e9, "GB"}, {1e6, 1e6, "MB"}, {1e3, 1e3, "kB"}, {0.0, 1.0, "B"}};

static const struct scale whole[] = {{0.0, 1.0, NULL}};
static const struct scale shares[] = {{0.0, 0.01, "%"}};

static const struct scale *scale_for(double v, enum html_unit unit)
{
    const struct scale *s = unit == HTML_TIME    ? times
                            : unit == HTML_BYTES ? sizes
                            : unit == HTML_SHARE ? shares
                                                 : whole;
    while (fabs(v) < s->least)
        s++;
    return s;
}

/* `fine`: a digit more, where it is a figure of its own. */
static void put_number(struct html *h, double v, enum html_unit unit, bool fine)
{
    if (unit == HTML_RATIO)
        html_fixed(h, v, fine ? 4 : 3);
    else if (unit == HTML_SHARE)
        html_fixed(h, v, 1);
    else if (unit == HTML_COUNT)
        html_fixed(h, v, fabs(v) < 100.0 && v != floor(v) ? 1 : 0);
    else
        html_figure(h, v, unit == HTML_PLAIN && fine ? 4 : 3);
}

static void put_unit(struct html *h, const struct scale *s)
{
    if (s->name == NULL)
        return;
    html_put(h, "\xc2\xa0"); /* U+00A0 */
    html_put(h, s->name);
}

void html_value(struct html *h, double v, enum html_unit unit)
{
    const struct scale *s = scale_for(v, unit);
    if (!html_is_number(v) || v == 0.0) {
        html_put(h, v == 0.0 ? "0" : "\xe2\x80\x93");
        return;
    }
    put_number(h, v / s->unit, unit, true);
    put_unit(h, s);
}

void html_range(struct html *h, const struct html_spread *s, enum html_unit unit)
{
    if (s->n < 2 || !(s->hi - s->lo > fabs(s->hi) * 5e-4))
        return;
    const struct scale *scale = scale_for(s->hi, unit);
    put_number(h, s->lo / scale->unit, unit, false);
    html_put(h, s->lo < 0.0 || s->hi < 0.0 ? " to " : "\xe2\x80\x93"); /* U+2013 */
    put_number(h, s->hi / scale->unit, unit, false);
    put_unit(h, scale);
}

void html_exact(struct html *h, double v)
{
    char text[64];
    struct elv_line l = elv_line_of(text, sizeof text);
    if (html_is_number(v))
        elv_line_f64(&l, v);
    html_line(h, &l);
}
