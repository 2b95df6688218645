/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/world.h"

#include <math.h>

#include "common/assert.h"
#include "common/exact.h"

/* Uniform in (0, 1]: a logarithm of it is always finite. */
static float unit(struct elv_rng *r) { return elv_rng_unit(r) + 0x1p-24f; }

static double pick(const struct elv_lab_draw *d, struct elv_rng *r)
{
    double left = (double)elv_rng_unit(r);
    uint32_t i = 0;
    while (i + 1 < d->n_classes && left >= d->share[i])
        left -= d->share[i++];
    return d->value[i];
}

bool elv_lab_draw_is_set(const struct elv_lab_draw *d)
{
    switch (d->shape) {
    case ELV_LAB_CONSTANT:
    case ELV_LAB_LOGNORMAL:
        break;
    case ELV_LAB_UNIFORM:
    case ELV_LAB_EXPONENTIAL:
    case ELV_LAB_HALF_NORMAL:
        return d->a > 0.0 || d->b > 0.0;
    case ELV_LAB_CLASSES:
        for (uint32_t i = 0; i < d->n_classes; i++)
            if (d->share[i] > 0.0 && d->value[i] > 0.0)
                return true;
        return false;
    }
    return d->a > 0.0;
}

/* No function of the C library: the same seed gives the same world on every machine. */
double elv_lab_draw(const struct elv_lab_draw *d, struct elv_rng *r)
{
    double v = d->a;
    switch (d->shape) {
    case ELV_LAB_CONSTANT:
        break;
    case ELV_LAB_UNIFORM:
        v = d->a + (d->b - d->a) * (double)elv_rng_unit(r);
        break;
    case ELV_LAB_EXPONENTIAL:
        v = d->a - d->b * (double)elv_ln(unit(r));
        break;
    case ELV_LAB_LOGNORMAL: {
        const float x = (float)d->b * elv_rng_normal(r);
        v = d->a * (double)elv_exp(x < 88.0f ? x : 88.0f);
        break;
    }
    case ELV_LAB_HALF_NORMAL:
        v = d->a + d->b * fabs((double)elv_rng_normal(r));
        break;
    case ELV_LAB_CLASSES:
        v = pick(d, r);
        break;
    }
    return v > 0.0 ? v : 0.0;
}

/* Where in a stream a number lies that is drawn for one purpose; far enough apart for the draws
 * that take a varying count of words. What is not drawn shifts nothing. */
enum place { COMPUTE = 0, JITTER = 64, STRAGGLER = 128, DROPOUT = 192, COMING = 256 };

/* Streams of a client's devices and pieces of work are apart from those of its comings and goings.
 */
#define STAYS 0x40000000u
#define STRETCHES 0x80000000u

static struct elv_rng stream(uint64_t seed, uint32_t client, uint32_t number,
                             enum elv_rng_purpose purpose, uint64_t place)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = seed, .client = client, .round = number, .purpose = purpose});
    elv_rng_seek(&r, place);
    return r;
}

/* At most a year, which keeps the conversion defined. */
static elv_time_us whole_us(double us)
{
    const double year = 3.2e13;
    return (elv_time_us)(us < year ? us + 0.5 : year);
}

static elv_time_us of_seconds(double s) { return whole_us(s * 1e6); }

static float factor_of(const struct elv_lab_draw *d, struct elv_rng r)
{
    return elv_lab_draw_is_set(d) ? (float)elv_lab_draw(d, &r) : 1.0f;
}

static float rate_of(const struct elv_lab_draw *d, struct elv_rng r)
{
    return (float)elv_lab_draw(d, &r);
}

/* Selection sampling. Source: Knuth, The Art of Computer Programming, volume 2, section 3.4.2,
 * algorithm S. */
static void mark_stragglers(const struct elv_lab_world *w, uint64_t seed,
                            struct elv_lab_facts *facts, uint32_t n)
{
    struct elv_rng r = stream(seed, 0, 0, ELV_RNG_DEVICE, STRAGGLER);
    uint32_t left = (uint32_t)(w->device.straggler_share * n + 0.5);
    for (uint32_t i = 0; i < n && left > 0; i++)
        if (elv_rng_below(&r, n - i) < left) {
            facts[i].straggles = true;
            left--;
        }
}

void elv_lab_facts(const struct elv_lab_world *w, uint64_t seed, struct elv_lab_facts *facts,
                   uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        facts[i] = (struct elv_lab_facts){
            .speed = factor_of(&w->device.speed, stream(seed, i + 1, 0, ELV_RNG_DEVICE, COMPUTE)),
            .up = rate_of(&w->link.up, stream(seed, i + 1, 0, ELV_RNG_NETWORK, 0)),
            .down = rate_of(&w->link.down, stream(seed, i + 1, 0, ELV_RNG_NETWORK, 64)),
        };
    if (w->device.straggler_fixed)
        mark_stragglers(w, seed, facts, n);
}

static double regime(const struct elv_lab_device *d, const struct elv_lab_piece *p)
{
    double factor = 1.0;
    for (uint32_t i = 0; i < d->n_regimes; i++) {
        const struct elv_lab_regime *g = &d->regimes[i];
        if (p->at >= g->from && p->at < g->until && p->client <= g->share * p->n_clients + 0.5)
            factor *= g->factor;
    }
    return factor;
}

static double straggling(const struct elv_lab_device *d, uint64_t seed,
                         const struct elv_lab_piece *p)
{
    if (d->straggler_fixed)
        return p->facts.straggles ? d->straggler_factor : 1.0;
    if (d->straggler_share <= 0.0)
        return 1.0;
    struct elv_rng r = stream(seed, p->client, p->piece, ELV_RNG_DEVICE, STRAGGLER);
    return (double)elv_rng_unit(&r) < d->straggler_share ? d->straggler_factor : 1.0;
}

static double jitter(const struct elv_lab_device *d, uint64_t seed, const struct elv_lab_piece *p)
{
    if (d->jitter <= 0.0)
        return 1.0;
    struct elv_rng r = stream(seed, p->client, p->piece, ELV_RNG_DEVICE, JITTER);
    const double f = 1.0 + d->jitter * (double)elv_rng_normal(&r);
    return f > 0.05 ? f : 0.05;
}

/* Of the unit that `per` names. */
static double unit_us(const struct elv_lab_world *w, uint64_t seed, const struct elv_lab_piece *p)
{
    const struct elv_lab_span *span = elv_lab_span_at(w->trace, p->client, p->at);
    if (span)
        return span->compute_us;
    struct elv_rng r = stream(seed, p->client, p->piece, ELV_RNG_DEVICE, COMPUTE);
    return elv_lab_draw(&w->device.compute, &r) * 1e6 * (double)p->facts.speed;
}

static double units(const struct elv_lab_device *d, const struct elv_lab_piece *p)
{
    switch (d->per) {
    case ELV_LAB_PER_TASK:
        break;
    case ELV_LAB_PER_STEP:
        return p->steps;
    case ELV_LAB_PER_SAMPLE:
        return p->seen;
    }
    return 1.0;
}

elv_time_us elv_lab_compute(const struct elv_lab_world *w, uint64_t seed,
                            const struct elv_lab_piece *p)
{
    const struct elv_lab_device *d = &w->device;
    const elv_time_us t = whole_us(unit_us(w, seed, p) * units(d, p) * jitter(d, seed, p) *
                                   straggling(d, seed, p) * regime(d, p));
    return t > 1 ? t : 1;
}

bool elv_lab_is_dropped(const struct elv_lab_world *w, uint64_t seed, const struct elv_lab_piece *p)
{
    if (w->availability.dropout <= 0.0)
        return false;
    struct elv_rng r = stream(seed, p->client, p->piece, ELV_RNG_DEVICE, DROPOUT);
    return (double)elv_rng_unit(&r) < w->availability.dropout;
}

static const struct elv_sim_way *way_of(const struct elv_sim_profile *p, enum elv_lab_way way)
{
    return way == ELV_LAB_UP ? &p->up : &p->down;
}

static double latency_s(const struct elv_lab_link *l, enum elv_lab_way way, struct elv_rng *r)
{
    if (l->profile != NULL)
        return (double)elv_sim_delay_draw(&way_of(l->profile, way)->delay, r) / 1e6;
    return elv_lab_draw_is_set(&l->latency) ? elv_lab_draw(&l->latency, r) : 0.0;
}

static double loss(const struct elv_lab_link *l, enum elv_lab_way way)
{
    return l->profile != NULL ? elv_sim_way_loss(way_of(l->profile, way)) : l->loss;
}

static double bytes_per_second(const struct elv_lab_world *w, const struct elv_lab_piece *p,
                               enum elv_lab_way way)
{
    const struct elv_lab_span *span = elv_lab_span_at(w->trace, p->client, p->at);
    if (span)
        return way == ELV_LAB_UP ? span->up_bps : span->down_bps;
    if (w->link.profile != NULL)
        return (double)way_of(w->link.profile, way)->bps;
    return (double)(way == ELV_LAB_UP ? p->facts.up : p->facts.down);
}

elv_time_us elv_lab_transfer(const struct elv_lab_world *w, uint64_t seed,
                             const struct elv_lab_piece *p, enum elv_lab_way way, uint64_t bytes)
{
    struct elv_rng r =
        stream(seed, p->client, p->piece, ELV_RNG_NETWORK, 64u * ((uint64_t)way + 1));
    double s = latency_s(&w->link, way, &r);
    const double rate = bytes_per_second(w, p, way);
    if (way != ELV_LAB_TELL && rate > 0.0)
        s += (double)bytes / rate;
    return of_seconds(s / (1.0 - loss(&w->link, way)));
}

static const struct elv_lab_span *spans_of(const struct elv_lab_trace *t, uint32_t client,
                                           uint32_t *n)
{
    const uint32_t i = (client - 1) % t->n_clients;
    *n = t->first[i + 1] - t->first[i];
    return t->spans + t->first[i];
}

const struct elv_lab_span *elv_lab_span_at(const struct elv_lab_trace *t, uint32_t client,
                                           elv_time_us at)
{
    if (t == NULL)
        return NULL;
    uint32_t n, low = 0;
    const struct elv_lab_span *s = spans_of(t, client, &n);
    for (uint32_t high = n; low < high;) { /* the first that ends later */
        const uint32_t mid = low + (high - low) / 2;
        if (s[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && s[low].start <= at ? &s[low] : NULL;
}

elv_time_us elv_lab_comes(const struct elv_lab_world *w, uint64_t seed, uint32_t client,
                          uint32_t n_clients)
{
    ELV_ASSERT(client >= 1 && client <= n_clients);
    const elv_time_us spread = w->device.start_spread;
    uint32_t n;
    if (w->trace)
        return spans_of(w->trace, client, &n)->start;
    if (w->availability.churn_rate > 0.0)
        return ELV_NEVER;
    if (spread <= 0)
        return 0;
    if (!w->device.cohort_start)
        return (elv_time_us)((double)spread * (client - 1) / n_clients);
    struct elv_rng r = stream(seed, client, 0, ELV_RNG_DEVICE, COMING);
    return elv_sim_between(&r, 0, spread - 1);
}

elv_time_us elv_lab_gap(const struct elv_lab_world *w, uint64_t seed, uint32_t k)
{
    struct elv_rng r = stream(seed, 0, k, ELV_RNG_DEVICE, COMING);
    return of_seconds(-(double)elv_ln(unit(&r)) / w->availability.churn_rate);
}

elv_time_us elv_lab_stays(const struct elv_lab_world *w, uint64_t seed, uint32_t client, uint32_t k)
{
    const struct elv_lab_draw *d = &w->availability.stay;
    if (!elv_lab_draw_is_set(d) || w->trace)
        return ELV_NEVER;
    struct elv_rng r = stream(seed, client, STAYS + k, ELV_RNG_DEVICE, 0);
    return of_seconds(elv_lab_draw(d, &r));
}

static elv_time_us trace_stretch(const struct elv_lab_trace *t, uint32_t client, uint32_t k)
{
    uint32_t n;
    const struct elv_lab_span *s = spans_of(t, client, &n);
    if (k % 2 == 0)
        return s[k / 2].end;
    return k / 2 + 1 < n ? s[k / 2 + 1].start : ELV_NEVER;
}

elv_time_us elv_lab_stretch(const struct elv_lab_world *w, uint64_t seed, uint32_t client,
                            uint32_t k, elv_time_us from)
{
    const struct elv_lab_availability *a = &w->availability;
    if (w->trace)
        return trace_stretch(w->trace, client, k);
    if (!elv_lab_draw_is_set(&a->on) || !elv_lab_draw_is_set(&a->off))
        return ELV_NEVER;
    struct elv_rng r = stream(seed, client, STRETCHES + k, ELV_RNG_DEVICE, 0);
    const elv_time_us lasts = of_seconds(elv_lab_draw(k % 2 == 0 ? &a->on : &a->off, &r));
    return from + (lasts > 1 ? lasts : 1);
}
