/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ports/sim/lab/html_parts.h"

bool html_is_number(double v) { return v >= -DBL_MAX && v <= DBL_MAX; }

void html_layout(struct elv_arena *a, struct html *h)
{
    uint32_t clients = 0;
    for (uint32_t i = 0; i < h->r->n_runs; i++)
        if (h->r->runs[i].n_clients > clients)
            clients = h->r->runs[i].n_clients;
    h->labels = elv_arena_take(a, h->r->n_runs, sizeof *h->labels);
    h->label_of = elv_arena_take(a, h->r->n_runs, sizeof *h->label_of);
    h->sorted = elv_arena_take_raw(a, clients, sizeof *h->sorted);
    h->curves = elv_arena_take(a, ELV_HTML_LINES, sizeof *h->curves);
    h->buffer = elv_arena_take(a, 1, sizeof *h->buffer);
}

void html_spread_add(struct html_spread *s, double v)
{
    if (!html_is_number(v))
        return;
    s->n++;
    s->lo = s->n == 1 || v < s->lo ? v : s->lo;
    s->hi = s->n == 1 || v > s->hi ? v : s->hi;
    s->mean = s->n == 1 ? v : s->mean + (v - s->mean) / (double)s->n;
}

static uint32_t label_for(struct html *h, const char *name)
{
    const char *known = name != NULL ? name : "";
    uint32_t i = 0;
    while (i < h->n_labels && strcmp(h->labels[i].name, known) != 0)
        i++;
    if (i == h->n_labels) {
        h->labels[i].name = known;
        h->n_labels++;
    }
    return i;
}

static double ratio(double a, double b) { return b > 0.0 ? a / b : NAN; }

static void add_run(struct html_label *l, const struct elv_lab_summary *s)
{
    const double used = (double)s->used, versions = (double)s->version;
    const double up = (double)s->bytes_up, down = (double)s->bytes_down;
    const double values[HTML_METRICS] = {
        [HTML_REACHED_AT] = s->reached ? (double)s->reached_at : NAN,
        [HTML_ENDED] = (double)s->ended,
        [HTML_VERSIONS] = versions,
        [HTML_ACCURACY] = s->score.accuracy >= 0.0 ? s->best_accuracy : NAN,
        [HTML_LOSS] = s->score.loss,
        [HTML_WAITING] = ratio(s->waiting_us, s->waiting_us + s->working_us),
        [HTML_STALENESS] = s->used > 0 ? s->stale_mean : NAN,
        [HTML_USED] = used,
        [HTML_LATE] = (double)s->late,
        [HTML_INTERRUPTED] = (double)s->interrupted,
        [HTML_DISCARDED] = (double)s->discarded,
        [HTML_DROPPED] = (double)s->dropped,
        [HTML_RATE] = ratio(used * 1e6, (double)s->ended),
        [HTML_UP_VERSION] = ratio(up, versions),
        [HTML_DOWN_VERSION] = ratio(down, versions),
        [HTML_UP_UPDATE] = ratio(up, used),
        [HTML_DOWN_UPDATE] = ratio(down, used),
        [HTML_FAIRNESS] = s->used > 0 ? s->fairness : NAN,
    };
    l->n_runs++;
    l->n_reached += s->reached ? 1 : 0;
    for (uint32_t m = 0; m < HTML_METRICS; m++)
        html_spread_add(&l->of[m], values[m]);
    for (uint32_t b = 0; b < ELV_LAB_STALE_BINS; b++)
        l->stale[b] += (double)s->stale[b]; /* for now a count */
}

static void finish(struct html_label *l)
{
    for (uint32_t m = 0; m < HTML_METRICS; m++)
        if (l->of[m].n == 0)
            l->of[m] = (struct html_spread){.mean = NAN, .lo = NAN, .hi = NAN};
    double all = 0.0;
    for (uint32_t b = 0; b < ELV_LAB_STALE_BINS; b++)
        all += l->stale[b];
    for (uint32_t b = 0; b < ELV_LAB_STALE_BINS; b++)
        l->stale[b] = all > 0.0 ? l->stale[b] / all : 0.0;
}

static bool has_score(const struct elv_html_run *run)
{
    for (uint32_t i = 0; i < run->n_rounds; i++)
        if (!run->rounds[i].abandoned && html_is_number(run->rounds[i].score.loss))
            return true;
    return false;
}

void html_gather(struct html *h)
{
    for (uint32_t i = 0; i < h->r->n_runs; i++) {
        h->label_of[i] = label_for(h, h->r->runs[i].label);
        add_run(&h->labels[h->label_of[i]], &h->r->runs[i].summary);
        h->scored = h->scored || has_score(&h->r->runs[i]);
    }
    for (uint32_t l = 0; l < h->n_labels; l++)
        finish(&h->labels[l]);
    h->n_lines = h->n_labels < ELV_HTML_LINES ? h->n_labels : ELV_HTML_LINES;
}

/* What a round says of the quantity; NAN: nothing. */
static double said(const struct html *h, const struct elv_lab_round *r, enum html_quantity q)
{
    if (q == HTML_Q_WANTED)
        return r->wanted > 0 ? (double)r->wanted : NAN;
    if (r->abandoned)
        return NAN;
    if (q == HTML_Q_ACCURACY)
        return r->score.accuracy >= 0.0 ? r->score.accuracy : NAN;
    return h->scored ? r->score.loss : r->train_loss;
}

struct walk { /* over the rounds of a run that say something, in order of time */
    const struct html *h;
    const struct elv_html_run *run;
    enum html_quantity q;
    uint32_t next;            /* round to look at */
    double before_at, before; /* the last one passed; NAN: none */
    double after_at, after;   /* the first one not passed yet; NAN: none */
};

static void look_ahead(struct walk *w)
{
    w->after = NAN;
    while (w->next < w->run->n_rounds) {
        const struct elv_lab_round *r = &w->run->rounds[w->next++];
        const double v = said(w->h, r, w->q);
        if (html_is_number(v)) {
            w->after = v;
            w->after_at = (double)r->closed;
            return;
        }
    }
}

static void pass(struct walk *w)
{
    w->before = w->after;
    w->before_at = w->after_at;
    look_ahead(w);
}

/* Between two rounds: what a round waited for holds until it closes, all else changes evenly. */
static double between(const struct walk *w, double at)
{
    if (w->q == HTML_Q_WANTED)
        return html_is_number(w->after) ? w->after : w->before;
    if (!html_is_number(w->after) || !html_is_number(w->before))
        return w->before;
    const double gap = w->after_at - w->before_at;
    return gap > 0.0 ? w->before + (w->after - w->before) * (at - w->before_at) / gap : w->after;
}

/* The run's values at HTML_POINTS moments from 0 to `end`; where several rounds closed around one
 * moment, their mean, least and greatest. */
static void sample_run(const struct html *h, const struct elv_html_run *run, enum html_quantity q,
                       double end)
{
    struct walk w = {.h = h, .run = run, .q = q, .before = NAN};
    look_ahead(&w);
    const double pace = end / (double)(HTML_POINTS - 1);
    for (uint32_t i = 0; i < HTML_POINTS; i++) {
        const double at = (double)i * pace;
        struct html_spread s = {.n = 0};
        while (html_is_number(w.after) && (w.after_at < at + pace * 0.5 || i == HTML_POINTS - 1)) {
            html_spread_add(&s, w.after);
            pass(&w);
        }
        const double v = s.n > 0 ? s.mean : between(&w, at);
        h->buffer->mean[i] = v;
        h->buffer->lo[i] = s.n > 0 ? s.lo : v;
        h->buffer->hi[i] = s.n > 0 ? s.hi : v;
    }
}

static int by_count(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The share of all updates that the clients used least contributed. */
static void lorenz_run(const struct html *h, const struct elv_html_run *run)
{
    memcpy(h->sorted, run->uses, run->n_clients * sizeof *h->sorted);
    qsort(h->sorted, run->n_clients, sizeof *h->sorted, by_count);
    double all = 0.0, sum = 0.0;
    for (uint32_t c = 0; c < run->n_clients; c++)
        all += (double)h->sorted[c];
    uint32_t done = 0;
    for (uint32_t i = 0; i < HTML_POINTS; i++) {
        const double clients = (double)i / (double)(HTML_POINTS - 1) * (double)run->n_clients;
        for (; done < run->n_clients && (double)(done + 1) <= clients; done++)
            sum += (double)h->sorted[done];
        const double part = done < run->n_clients ? clients - (double)done : 0.0;
        const double next = done < run->n_clients ? part * (double)h->sorted[done] : 0.0;
        const double v = all > 0.0 ? (sum + next) / all : NAN;
        h->buffer->mean[i] = h->buffer->lo[i] = h->buffer->hi[i] = v;
    }
}

static bool run_knows(const struct html *h, const struct elv_html_run *run, enum html_quantity q)
{
    if (q == HTML_Q_LORENZ)
        return run->uses != NULL && run->n_clients > 0 && run->summary.used > 0;
    for (uint32_t i = 0; i < run->n_rounds; i++)
        if (html_is_number(said(h, &run->rounds[i], q)))
            return true;
    return false;
}

bool html_knows(const struct html *h, enum html_quantity q)
{
    for (uint32_t i = 0; i < h->r->n_runs; i++)
        if (h->label_of[i] < h->n_lines && run_knows(h, &h->r->runs[i], q))
            return true;
    return false;
}

static void add_points(struct html_curve *c, const struct html_buffer *b)
{
    for (uint32_t i = 0; i < HTML_POINTS; i++) {
        if (c->n == 0 || b->lo[i] < c->lo[i])
            c->lo[i] = b->lo[i];
        if (c->n == 0 || b->hi[i] > c->hi[i])
            c->hi[i] = b->hi[i];
        c->mean[i] = c->n == 0 ? b->mean[i] : c->mean[i] + b->mean[i]; /* NAN: not all know yet */
    }
    c->n++;
}

static double last_round(const struct elv_html_run *run)
{
    return run->n_rounds > 0 ? (double)run->rounds[run->n_rounds - 1].closed : 0.0;
}

static void curve_of(struct html *h, enum html_quantity q, uint32_t label, struct html_curve *c)
{
    *c = (struct html_curve){.label = label, .end = q == HTML_Q_LORENZ ? 1.0 : 0.0};
    for (uint32_t i = 0; i < h->r->n_runs && q != HTML_Q_LORENZ; i++)
        if (h->label_of[i] == label && last_round(&h->r->runs[i]) > c->end)
            c->end = last_round(&h->r->runs[i]);
    for (uint32_t i = 0; i < h->r->n_runs; i++) {
        const struct elv_html_run *run = &h->r->runs[i];
        if (h->label_of[i] != label || !run_knows(h, run, q))
            continue;
        if (q == HTML_Q_LORENZ)
            lorenz_run(h, run);
        else
            sample_run(h, run, q, c->end);
        add_points(c, h->buffer);
    }
    for (uint32_t i = 0; i < HTML_POINTS && c->n > 1; i++)
        c->mean[i] /= (double)c->n;
    c->n = c->n > 0 ? HTML_POINTS : 0;
}

void html_curves(struct html *h, enum html_quantity q)
{
    for (uint32_t l = 0; l < h->n_lines; l++)
        curve_of(h, q, l, &h->curves[l]);
}

bool html_curve_at(const struct html_curve *c, double x, double *mean, double *lo, double *hi)
{
    if (c->n == 0 || x > c->end * (1.0 + 1e-9))
        return false;
    const double last = (double)(c->n - 1);
    const double place = c->end > 0.0 ? x / c->end * last : last;
    uint32_t i = (uint32_t)(place + 0.5);
    i = i < c->n ? i : c->n - 1;
    *mean = c->mean[i];
    *lo = c->lo[i];
    *hi = c->hi[i];
    return html_is_number(*mean);
}
