/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/exact.h"
#include "ports/sim/lab/html_parts.h"

/* The step of 1, 2 or 5 times a power of ten that gives about five ticks. */
static double step_of(double span, uint32_t *decimals)
{
    const double raw = span / 5.0;
    const int e = html_decade(raw);
    const double power = html_power10(e);
    const double lead = raw / power;
    *decimals = e < 0 ? (uint32_t)-e : 0;
    if (lead <= 1.0)
        return power;
    if (lead <= 2.0)
        return 2.0 * power;
    if (lead <= 5.0)
        return 5.0 * power;
    *decimals = e + 1 < 0 ? (uint32_t)(-e - 1) : 0;
    return 10.0 * power;
}

/* Ticks at whole steps of [lo, hi]; a little over counts, for rounding. */
static void put_ticks(struct html_axis *a, double step)
{
    const double slack = step * 1e-6;
    const double first = ceil((a->lo - slack) / step);
    for (double i = first; i * step <= a->hi + slack && a->n_ticks < HTML_TICKS; i += 1.0)
        a->ticks[a->n_ticks++] = i * step;
}

void html_axis_linear(struct html_axis *a, double lo, double hi, bool whole)
{
    *a = (struct html_axis){.unit = 1.0, .unit_name = ""};
    if (!(hi > lo)) { /* one value: room around it */
        const double room = lo != 0.0 ? fabs(lo) * 0.1 : 1.0;
        hi = lo + room;
        lo -= lo != 0.0 ? room : 0.0;
    }
    double step = step_of(hi - lo, &a->decimals);
    if (whole && step < 1.0) {
        step = 1.0;
        a->decimals = 0;
    }
    a->lo = floor(lo / step + 1e-9) * step;
    a->hi = ceil(hi / step - 1e-9) * step;
    put_ticks(a, step);
}

/* Which of 1, 2, 5 times powers of ten become ticks: all, or powers alone over many decades. */
void html_axis_log(struct html_axis *a, double lo, double hi)
{
    *a = (struct html_axis){.unit = 1.0, .unit_name = "", .log = true};
    static const double leads[] = {1.0, 2.0, 5.0};
    const int from = html_decade(lo), to = html_decade(hi);
    const int stride = (to - from) / 7 + 1;
    const bool all = to - from < 3;
    a->lo = html_power10(from);
    a->hi = html_power10(to + 1);
    for (int e = from; e <= to + 1; e++) {
        for (uint32_t i = 0; i < 3; i++) {
            const double v = leads[i] * html_power10(e);
            if (v <= lo)
                a->lo = v;
            if (v >= hi && v < a->hi)
                a->hi = v;
        }
    }
    for (int e = from; e <= to + 1; e += stride)
        for (uint32_t i = 0; i < (all ? 3u : 1u); i++) {
            const double v = leads[i] * html_power10(e);
            if (v >= a->lo && v <= a->hi && a->n_ticks < HTML_TICKS)
                a->ticks[a->n_ticks++] = v;
        }
}

void html_axis_time(struct html_axis *a, double end_us)
{
    static const struct {
        double least, unit;
        const char *name;
    } units[] = {{172800e6, 86400e6, "days"}, {7200e6, 3600e6, "hours"},
                 {120e6, 60e6, "minutes"},    {1e6, 1e6, "seconds"},
                 {1e3, 1e3, "milliseconds"},  {0.0, 1.0, "microseconds"}};
    uint32_t u = 0;
    while (end_us < units[u].least)
        u++;
    *a = (struct html_axis){.hi = end_us > 0.0 ? end_us / units[u].unit : 1.0};
    const double step = step_of(a->hi, &a->decimals);
    put_ticks(a, step);
    a->unit = units[u].unit;
    a->unit_name = units[u].name;
    a->hi *= a->unit;
    for (uint32_t i = 0; i < a->n_ticks; i++)
        a->ticks[i] *= a->unit;
}

/* Natural logarithm of v > 0, beyond what a float holds, too. */
static double log_of(double v)
{
    const int e = html_decade(v);
    return (double)e * 2.302585092994046 + (double)elv_ln((float)(v / html_power10(e)));
}

double html_axis_place(const struct html_axis *a, double v)
{
    double at = (v - a->lo) / (a->hi - a->lo);
    if (a->log)
        at = v <= a->lo ? 0.0 : (log_of(v) - log_of(a->lo)) / (log_of(a->hi) - log_of(a->lo));
    return at > 1.0 ? 1.0 : at >= 0.0 ? at : 0.0; /* also of what is no number */
}

void html_axis_number(struct html *h, const struct html_axis *a, double v)
{
    if (v == 0.0)
        html_put(h, "0");
    else if (a->log || a->decimals > 6)
        html_figure(h, v / a->unit, a->log ? 1 : 3);
    else
        html_fixed(h, v / a->unit, a->decimals);
}
