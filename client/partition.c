/* SPDX-License-Identifier: Apache-2.0 */
#include "client/partition.h"

#include <math.h>
#include <string.h>

#include "common/arena.h"
#include "common/assert.h"
#include "common/exact.h"
#include "common/rng.h"
#include "common/text.h"

struct word {
    const char *at;
    size_t len;
};

/* Up to two words; more count as three. */
static uint32_t split(struct elv_bytes text, struct word words[2])
{
    const char *at = (const char *)text.at;
    uint32_t n = 0;
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len && at[end] != ' ')
            end++;
        if (end > i && n == 2)
            return 3;
        if (end > i)
            words[n++] = (struct word){at + i, end - i};
        i = end + 1;
    }
    return n;
}

static bool is(struct word w, const char *text)
{
    return w.len == strlen(text) && memcmp(w.at, text, w.len) == 0;
}

static enum elv_err parse_shards(struct elv_partition *p, struct word w)
{
    uint64_t v;
    if (!elv_text_uint(w.at, w.len, &v))
        return ELV_ERR_FORMAT;
    if (v < 1 || v > 1000)
        return ELV_ERR_RANGE;
    p->shards = (uint32_t)v;
    return ELV_OK;
}

static enum elv_err parse_alpha(struct elv_partition *p, struct word w)
{
    double v;
    if (!elv_text_number(w.at, w.len, &v))
        return ELV_ERR_FORMAT;
    if (v < 0.001 || v > 1000)
        return ELV_ERR_RANGE;
    p->alpha = (float)v;
    return ELV_OK;
}

static enum elv_err parse(struct elv_partition *p, const struct word *w, uint32_t n)
{
    if (n == 1 && is(w[0], "iid")) {
        p->kind = ELV_PARTITION_IID;
        return ELV_OK;
    }
    if (n != 2)
        return ELV_ERR_FORMAT;
    if (is(w[0], "shards")) {
        p->kind = ELV_PARTITION_SHARDS;
        return parse_shards(p, w[1]);
    }
    if (is(w[0], "file")) {
        p->kind = ELV_PARTITION_FILE;
        p->path = (struct elv_bytes){.at = (const uint8_t *)w[1].at, .len = w[1].len};
        return ELV_OK;
    }
    if (!is(w[0], "dirichlet") && !is(w[0], "quantity"))
        return ELV_ERR_FORMAT;
    p->kind = is(w[0], "dirichlet") ? ELV_PARTITION_DIRICHLET : ELV_PARTITION_QUANTITY;
    return parse_alpha(p, w[1]);
}

enum elv_err elv_partition_parse(struct elv_partition *p, struct elv_bytes text, const char **want)
{
    struct elv_partition got = {0};
    struct word words[2];
    const enum elv_err err = parse(&got, words, split(text, words));
    if (err == ELV_OK)
        *p = got;
    else if (want != NULL)
        *want = "iid, shards 1..1000, dirichlet 0.001..1000, quantity 0.001..1000, file PART.npy";
    return err;
}

struct scratch {
    uint32_t *order;    /* [n] examples, shuffled or sorted by label */
    uint32_t *starts;   /* [n_classes + 1] where a class begins in `order` */
    uint32_t *sizes;    /* [n_clients] examples of each client */
    uint32_t *shards;   /* [n_clients * shards] */
    float *share;       /* [n_clients] of one class, not normalised */
    uint32_t n_classes; /* one for a split that does not look at labels */
};

static bool by_label(const struct elv_partition_cfg *cfg)
{
    return cfg->how.kind == ELV_PARTITION_SHARDS || cfg->how.kind == ELV_PARTITION_DIRICHLET;
}

static struct scratch lay_out(const struct elv_partition_cfg *cfg, struct elv_arena *a)
{
    struct scratch s = {.n_classes = by_label(cfg) ? cfg->n_classes : 1};
    s.order = elv_arena_take(a, cfg->n, sizeof *s.order);
    s.starts = elv_arena_take(a, (size_t)s.n_classes + 1, sizeof *s.starts);
    s.sizes = elv_arena_take(a, cfg->n_clients, sizeof *s.sizes);
    s.share = elv_arena_take(a, cfg->n_clients, sizeof *s.share);
    if (cfg->how.kind == ELV_PARTITION_SHARDS)
        s.shards = elv_arena_take(a, (size_t)cfg->n_clients * cfg->how.shards, sizeof *s.shards);
    return s;
}

size_t elv_partition_mem(const struct elv_partition_cfg *cfg)
{
    struct elv_arena a = elv_arena_of(NULL, 0);
    lay_out(cfg, &a);
    return a.err == ELV_OK ? a.used : 0;
}

static struct elv_rng stream(const struct elv_partition_cfg *cfg, uint32_t what)
{
    return elv_rng_of(
        (struct elv_rng_key){.seed = cfg->seed, .round = what, .purpose = ELV_RNG_PARTITION});
}

/* `order` by class, each class in the order of the examples: a counting sort. */
static void sort_by_label(const struct elv_partition_cfg *cfg, struct scratch *s)
{
    for (uint32_t i = 0; i < cfg->n; i++) {
        ELV_ASSERT(cfg->labels[i] < cfg->n_classes);
        s->starts[cfg->labels[i] + 1]++;
    }
    for (uint32_t c = 0; c < cfg->n_classes; c++)
        s->starts[c + 1] += s->starts[c];
    for (uint32_t i = 0; i < cfg->n; i++)
        s->order[s->starts[cfg->labels[i]]++] = i;
    /* every start has moved to the next one's place */
    for (uint32_t c = cfg->n_classes; c > 0; c--)
        s->starts[c] = s->starts[c - 1];
    s->starts[0] = 0;
}

static void take_all(const struct elv_partition_cfg *cfg, struct scratch *s)
{
    for (uint32_t i = 0; i < cfg->n; i++)
        s->order[i] = i;
    s->starts[0] = 0;
    s->starts[1] = cfg->n;
}

static void shuffle_classes(const struct elv_partition_cfg *cfg, struct scratch *s)
{
    struct elv_rng r = stream(cfg, 0);
    for (uint32_t c = 0; c < s->n_classes; c++)
        elv_rng_shuffle(&r, s->order + s->starts[c], s->starts[c + 1] - s->starts[c]);
}

/* Part k of n things in m parts begins at n * k / m, so sizes differ by one at most. */
static uint32_t cut(uint32_t n, uint32_t k, uint32_t m) { return (uint32_t)((uint64_t)n * k / m); }

static void split_iid(const struct elv_partition_cfg *cfg, struct scratch *s, uint32_t *owner)
{
    take_all(cfg, s);
    shuffle_classes(cfg, s);
    for (uint32_t k = 0; k < cfg->n_clients; k++) {
        const uint32_t end = cut(cfg->n, k + 1, cfg->n_clients);
        for (uint32_t i = cut(cfg->n, k, cfg->n_clients); i < end; i++)
            owner[s->order[i]] = k;
    }
}

static enum elv_err split_shards(const struct elv_partition_cfg *cfg, struct scratch *s,
                                 uint32_t *owner)
{
    const uint64_t m = (uint64_t)cfg->n_clients * cfg->how.shards;
    if (m > cfg->n)
        return ELV_ERR_RANGE;
    const uint32_t n_shards = (uint32_t)m;
    struct elv_rng r = stream(cfg, 0);
    sort_by_label(cfg, s);
    for (uint32_t i = 0; i < n_shards; i++)
        s->shards[i] = i;
    elv_rng_shuffle(&r, s->shards, n_shards);
    for (uint32_t i = 0; i < n_shards; i++) {
        const uint32_t shard = s->shards[i], end = cut(cfg->n, shard + 1, n_shards);
        for (uint32_t at = cut(cfg->n, shard, n_shards); at < end; at++)
            owner[s->order[at]] = i / cfg->how.shards;
    }
    return ELV_OK;
}

/* In (0, 1]: its logarithm exists. */
static float unit(struct elv_rng *r) { return 1.0f - elv_rng_unit(r); }

/* The logarithm of a gamma variate with shape a >= 1 and scale 1.
 * Source: Marsaglia, Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 2000. */
static float ln_gamma_above_one(struct elv_rng *r, float a)
{
    const float d = a - 1.0f / 3.0f;
    const float c = 1.0f / sqrtf(9.0f * d);
    for (;;) { /* more than nineteen draws in twenty are taken */
        const float x = elv_rng_normal(r);
        const float t = 1.0f + c * x;
        if (t <= 0.0f)
            continue;
        const float v = t * t * t, ln_v = elv_ln(v);
        const float bound = 0.5f * x * x + d * (1.0f - v + ln_v);
        if (elv_ln(unit(r)) <= bound)
            return elv_ln(d) + ln_v;
    }
}

/* For a shape below one: gamma(a) = gamma(a + 1) * u^(1/a), same source, section 6. The power of a
 * small shape underflows, its logarithm does not. */
static float ln_gamma(struct elv_rng *r, float a)
{
    if (a >= 1.0f)
        return ln_gamma_above_one(r, a);
    const float above = ln_gamma_above_one(r, a + 1.0f);
    return above + elv_ln(unit(r)) / a;
}

/* A Dirichlet variate is gamma variates over their sum; scaling all by the largest first keeps them
 * in range. */
double elv_partition_shares(struct elv_rng *r, float alpha, uint32_t n, float *share)
{
    float largest = -HUGE_VALF;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        share[k] = ln_gamma(r, alpha);
        if (share[k] > largest)
            largest = share[k];
    }
    for (uint32_t k = 0; k < n; k++) {
        share[k] = elv_exp(share[k] - largest);
        sum += (double)share[k];
    }
    return sum;
}

/* Draws the shares of every class and adds up what each client gets; with an `owner`, gives it. */
static void deal(const struct elv_partition_cfg *cfg, struct scratch *s, uint32_t draw,
                 uint32_t *owner)
{
    struct elv_rng r = stream(cfg, 1 + draw);
    memset(s->sizes, 0, cfg->n_clients * sizeof *s->sizes);
    for (uint32_t c = 0; c < s->n_classes; c++) {
        const uint32_t n = s->starts[c + 1] - s->starts[c];
        const double sum = elv_partition_shares(&r, cfg->how.alpha, cfg->n_clients, s->share);
        double before = 0;
        uint32_t at = 0;
        for (uint32_t k = 0; k < cfg->n_clients; k++) {
            before += (double)s->share[k];
            const uint32_t end = k + 1 == cfg->n_clients ? n : (uint32_t)(before / sum * (double)n);
            for (uint32_t i = at; owner != NULL && i < end; i++)
                owner[s->order[s->starts[c] + i]] = k;
            s->sizes[k] += end - at;
            at = end;
        }
    }
}

static uint32_t smallest(const uint32_t *sizes, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++) {
        if (sizes[k] < sizes[best])
            best = k;
    }
    return best;
}

static uint32_t largest(const uint32_t *sizes, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++) {
        if (sizes[k] > sizes[best])
            best = k;
    }
    return best;
}

/* Whoever has most gives to whoever has least, in the shuffled order, until nobody is below the
 * minimum. There are enough examples for that, so each turn moves at least one. */
static void mend(const struct elv_partition_cfg *cfg, struct scratch *s, uint32_t *owner)
{
    for (;;) {
        const uint32_t poor = smallest(s->sizes, cfg->n_clients);
        const uint32_t rich = largest(s->sizes, cfg->n_clients);
        if (s->sizes[poor] >= ELV_PARTITION_MIN)
            return;
        for (uint32_t i = 0;
             i < cfg->n && s->sizes[poor] < ELV_PARTITION_MIN && s->sizes[rich] > ELV_PARTITION_MIN;
             i++) {
            if (owner[s->order[i]] != rich)
                continue;
            owner[s->order[i]] = poor;
            s->sizes[poor]++;
            s->sizes[rich]--;
        }
    }
}

static enum elv_err split_dirichlet(const struct elv_partition_cfg *cfg, struct scratch *s,
                                    uint32_t *owner)
{
    if ((uint64_t)cfg->n_clients * ELV_PARTITION_MIN > cfg->n)
        return ELV_ERR_RANGE;
    if (cfg->how.kind == ELV_PARTITION_DIRICHLET)
        sort_by_label(cfg, s);
    else
        take_all(cfg, s);
    shuffle_classes(cfg, s);
    uint32_t draw = 0;
    for (; draw < ELV_PARTITION_DRAWS; draw++) {
        deal(cfg, s, draw, NULL);
        if (s->sizes[smallest(s->sizes, cfg->n_clients)] >= ELV_PARTITION_MIN)
            break;
    }
    if (draw == ELV_PARTITION_DRAWS)
        draw--;
    deal(cfg, s, draw, owner);
    mend(cfg, s, owner);
    return ELV_OK;
}

enum elv_err elv_partition_owners(const struct elv_partition_cfg *cfg, uint32_t *owner, void *mem,
                                  size_t len)
{
    if (cfg->n_clients == 0 || cfg->how.kind == ELV_PARTITION_FILE)
        return ELV_ERR_ARG;
    if (cfg->n_clients > cfg->n)
        return ELV_ERR_RANGE;
    struct elv_arena a = elv_arena_of(mem, len);
    struct scratch s = lay_out(cfg, &a);
    if (mem == NULL || a.err != ELV_OK)
        return ELV_ERR_SPACE;
    switch (cfg->how.kind) {
    case ELV_PARTITION_IID:
        split_iid(cfg, &s, owner);
        return ELV_OK;
    case ELV_PARTITION_SHARDS:
        return split_shards(cfg, &s, owner);
    case ELV_PARTITION_DIRICHLET:
    case ELV_PARTITION_QUANTITY:
        return split_dirichlet(cfg, &s, owner);
    case ELV_PARTITION_FILE:
        break;
    }
    return ELV_ERR_ARG;
}

uint32_t elv_partition_take(const uint32_t *owner, uint32_t n, uint32_t client, uint32_t *index)
{
    uint32_t n_taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (owner[i] != client)
            continue;
        if (index != NULL)
            index[n_taken] = i;
        n_taken++;
    }
    return n_taken;
}

uint32_t elv_partition_holdout(uint64_t seed, uint32_t client, float share, uint32_t *index,
                               uint32_t n)
{
    ELV_ASSERT(share >= 0.0f && share < 1.0f);
    const double wanted = (double)share * (double)n + 0.5;
    uint32_t n_held = (uint32_t)wanted;
    if (n_held == 0)
        return n;
    if (n_held >= n)
        n_held = n - 1;
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = seed, .client = client, .purpose = ELV_RNG_HOLDOUT});
    elv_rng_shuffle(&r, index, n);
    return n - n_held;
}
