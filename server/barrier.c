/* SPDX-License-Identifier: Apache-2.0 */
#include "server/barrier.h"

#include "server/tiers.h"
#include "server/zipline.h"

struct colour { /* one client, or the clients of a tier */
    elv_time_us phase_sum, interval_sum;
    elv_time_us first; /* of the moments at which all of them may come */
    uint32_t n;
};

struct desk { /* the scratch, cut up */
    struct elv_zip_row *rows;
    struct colour *colours;
    uint32_t *chosen;
    uint32_t *classes; /* [ELV_TIER_CLASSES], if there can be tiers */
    void *zip;
};

static uint32_t colours_max(const struct elv_barrier_cfg *cfg, uint32_t n)
{
    const uint32_t most = cfg->alone_max > cfg->tiers ? cfg->alone_max : cfg->tiers;
    return most < n ? most : n;
}

/* An even number of words, so that what follows them is aligned. */
static uint32_t n_words(const struct elv_barrier_cfg *cfg, uint32_t n)
{
    const uint32_t odd = colours_max(cfg, n) + (n > cfg->alone_max ? ELV_TIER_CLASSES : 0);
    return odd + odd % 2;
}

size_t elv_barrier_scratch_len(const struct elv_barrier_cfg *cfg, uint32_t n)
{
    const size_t colours = colours_max(cfg, n);
    return colours * (sizeof(struct elv_zip_row) + sizeof(struct colour)) +
           n_words(cfg, n) * sizeof(uint32_t) + elv_zip_scratch_len((uint32_t)colours);
}

static struct desk desk_of(const struct elv_barrier_cfg *cfg, uint32_t n, void *scratch)
{
    const uint32_t colours = colours_max(cfg, n);
    struct desk d = {.rows = scratch};
    d.colours = (struct colour *)(void *)(d.rows + colours);
    d.chosen = (uint32_t *)(void *)(d.colours + colours);
    d.classes = d.chosen + colours;
    d.zip = d.chosen + n_words(cfg, n);
    return d;
}

static elv_time_us divide_near(elv_time_us a, elv_time_us b) { return a > 0 ? (a + b / 2) / b : 0; }

static elv_time_us divide_up(elv_time_us a, elv_time_us b) { return a > 0 ? (a + b - 1) / b : 0; }

/* One interval before the update expected next. */
static elv_time_us base_of(const struct elv_barrier_client *c, elv_time_us now)
{
    return c->pushed > now - c->interval ? c->pushed : now - c->interval;
}

/* Returns how many colours there are. */
static uint32_t give_colours(const struct elv_barrier_cfg *cfg, const struct desk *d,
                             struct elv_barrier_client *at, uint32_t n)
{
    if (n <= cfg->alone_max) {
        for (uint32_t i = 0; i < n; i++)
            at[i].colour = i;
        return n;
    }
    for (uint32_t i = 0; i < ELV_TIER_CLASSES; i++)
        d->classes[i] = 0;
    for (uint32_t i = 0; i < n; i++)
        d->classes[elv_tier_class(at[i].interval)]++;
    const uint32_t tiers = elv_tier_cut(d->classes, cfg->tiers);
    for (uint32_t i = 0; i < n; i++)
        at[i].colour = d->classes[elv_tier_class(at[i].interval)];
    return tiers;
}

/* Clients of a tier began together, so their moments are whole intervals from there; one that came
 * in between is counted by how far it is off the nearest of those. */
static void add_client(struct colour *c, const struct elv_barrier_client *at, uint32_t r_min,
                       elv_time_us began, elv_time_us now)
{
    const elv_time_us base = base_of(at, now), since = base - began;
    const elv_time_us first = base + (elv_time_us)r_min * at->interval;
    c->phase_sum += since - divide_near(since, at->interval) * at->interval;
    c->interval_sum += at->interval;
    c->first = c->n == 0 || first > c->first ? first : c->first;
    c->n++;
}

static struct elv_zip_row row_of(const struct elv_barrier_cfg *cfg, const struct colour *c,
                                 elv_time_us began, elv_time_us now)
{
    const elv_time_us interval = c->interval_sum / c->n;
    const elv_time_us zero = began + c->phase_sum / c->n;
    const elv_time_us first = divide_near(c->first - zero, interval);
    const elv_time_us future = divide_up(now - zero, interval);
    return (struct elv_zip_row){.next = zero + (first > future ? first : future) * interval,
                                .interval = interval,
                                .n = cfg->lookahead - cfg->r_min + 1};
}

static void lengthen(struct elv_zip_row *r, elv_time_us until)
{
    const elv_time_us need = (until - r->next) / r->interval + 2;
    if (need > (elv_time_us)r->n)
        r->n = need < ELV_ZIP_MOMENTS_MAX ? (uint32_t)need : ELV_ZIP_MOMENTS_MAX;
}

static void fill_rows(const struct elv_barrier_cfg *cfg, const struct desk *d, uint32_t n,
                      elv_time_us began, elv_time_us now)
{
    elv_time_us last = now;
    for (uint32_t i = 0; i < n; i++) {
        d->rows[i] = row_of(cfg, &d->colours[i], began, now);
        last = d->rows[i].next > last ? d->rows[i].next : last;
    }
    for (uint32_t i = 0; i < n; i++)
        lengthen(&d->rows[i], last);
}

/* Bounded, should a tier hold clients of wildly different pace. */
static uint32_t target_of(const struct elv_barrier_client *c, elv_time_us aim, uint32_t r_min,
                          elv_time_us now)
{
    const elv_time_us n = divide_near(aim - base_of(c, now), c->interval);
    if (n >= ELV_ZIP_MOMENTS_MAX)
        return ELV_ZIP_MOMENTS_MAX;
    return n > (elv_time_us)r_min ? (uint32_t)n : r_min;
}

bool elv_barrier_plan(const struct elv_barrier_cfg *cfg, struct elv_barrier_client *at, uint32_t n,
                      elv_time_us began, elv_time_us now, void *scratch, elv_time_us *barrier)
{
    const struct desk d = desk_of(cfg, n, scratch);
    struct elv_zip_window window;
    if (n == 0)
        return false;
    const uint32_t colours = give_colours(cfg, &d, at, n);
    for (uint32_t i = 0; i < colours; i++)
        d.colours[i] = (struct colour){.n = 0};
    for (uint32_t i = 0; i < n; i++)
        add_client(&d.colours[at[i].colour], &at[i], cfg->r_min, began, now);
    fill_rows(cfg, &d, colours, began, now);
    if (!elv_zip_plan(d.rows, colours, now - 1, d.zip, d.chosen, &window))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct elv_zip_row *r = &d.rows[at[i].colour];
        const elv_time_us aim = r->next + (elv_time_us)d.chosen[at[i].colour] * r->interval;
        at[i].updates = target_of(&at[i], aim, cfg->r_min, now);
    }
    *barrier = window.latest;
    return true;
}
