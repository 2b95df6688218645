/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dbw_race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

enum { DIM = 40, BATCH = 64 };

struct worker {
    elv_time_us done; /* ELV_NEVER: idle */
    uint32_t version; /* it works on, or delivered last */
    uint32_t n_tasks;
};

struct world {
    const struct race_cfg *cfg;
    struct elv_sync_cfg sync_cfg;
    void *state;
    struct elv_sync_round r;
    elv_time_us now;
    struct worker at[RACE_WORKERS_MAX];
    double w[DIM];
    double sum[DIM], norm2, loss_sum; /* of the round's updates */
    double rate;
};

static double eigenvalue(uint32_t i) { return pow(0.9, i) + 0.05; }

static double loss_of(const double *w)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < DIM; i++)
        sum += eigenvalue(i) * w[i] * w[i] / 2.0;
    return sum;
}

static bool is_slow(const struct world *x, uint32_t i)
{
    return i < x->cfg->n / 2 && x->r.seq >= x->cfg->slow_from && x->r.seq < x->cfg->slow_until;
}

static void start(struct world *x, uint32_t i)
{
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){.seed = x->cfg->seed,
                                                         .client = i + 1,
                                                         .round = x->at[i].n_tasks++,
                                                         .purpose = ELV_RNG_DEVICE});
    const double e = -log(1.0 - (double)elv_rng_unit(&rng));
    const double took = (1.0 - x->cfg->a + x->cfg->a * e) * (is_slow(x, i) ? x->cfg->slow : 1.0);
    x->at[i].version = x->r.version;
    x->at[i].done = x->now + (elv_time_us)(took * RACE_UNIT);
}

static void use(struct world *x, uint32_t i)
{
    struct elv_rng rng = elv_rng_of((struct elv_rng_key){
        .seed = x->cfg->seed, .client = i + 1, .round = x->r.version, .purpose = ELV_RNG_NOISE});
    const double noise = x->cfg->sigma / sqrt((double)BATCH * DIM);
    for (uint32_t j = 0; j < DIM; j++) {
        const double g = eigenvalue(j) * x->w[j] + noise * (double)elv_rng_normal(&rng);
        x->sum[j] -= x->rate * g;
        x->norm2 += x->rate * x->rate * g * g;
    }
    x->loss_sum += loss_of(x->w) * (1.0 + 0.002 * (double)elv_rng_normal(&rng));
    x->r.n_got++;
}

static void open_round(struct world *x)
{
    const struct elv_sync *sync = x->cfg->sync;
    x->r.seq++;
    x->r.n_asked = x->r.n_waiting = x->r.n_joined = x->cfg->n;
    x->r.n_got = 0;
    x->r.opened = x->now;
    x->r.deadline = ELV_NEVER;
    x->norm2 = x->loss_sum = 0.0;
    memset(x->sum, 0, sizeof x->sum);
    if (sync->on_open)
        sync->on_open(x->state, &x->sync_cfg, &x->r);
    for (uint32_t i = 0; i < x->cfg->n; i++)
        if (x->at[i].done == ELV_NEVER || x->cfg->interrupts)
            start(x, i);
}

static void commit(struct world *x)
{
    const double k = x->r.n_got;
    struct elv_sync_commit c = {.round = x->r,
                                .version = x->r.version + 1,
                                .loss = x->cfg->mute ? NAN : x->loss_sum / k,
                                .norm2 = x->norm2 / k,
                                .n_effective = k,
                                .rate = x->rate};
    for (uint32_t j = 0; j < DIM; j++) {
        const double step = x->sum[j] / k;
        c.mean_norm2 += step * step;
        x->w[j] += step;
    }
    if (x->cfg->sync->on_commit)
        x->cfg->sync->on_commit(x->state, &x->sync_cfg, &c, x->now);
    x->r.version++;
}

static void arrive(struct world *x, uint32_t i)
{
    const struct elv_sync *sync = x->cfg->sync;
    struct worker *w = &x->at[i];
    w->done = ELV_NEVER;
    if (w->version != x->r.version) {
        if (sync->on_late)
            sync->on_late(x->state, &x->sync_cfg, &x->r, (struct elv_sync_client){i, i + 1},
                          w->version, x->now);
        start(x, i);
        return;
    }
    const struct elv_sync_update u = {.from = {i, i + 1}, .version = w->version};
    if (sync->on_update(x->state, &x->sync_cfg, &x->r, &u, x->now).counts)
        use(x, i);
    x->r.n_waiting--;
}

/* The next thing that happens. */
static void step(struct world *x)
{
    const struct elv_sync *sync = x->cfg->sync;
    uint32_t first = 0;
    for (uint32_t i = 1; i < x->cfg->n; i++)
        if (x->at[i].done < x->at[first].done)
            first = i;
    const elv_time_us timer = sync->timer ? sync->timer(x->state, &x->sync_cfg) : ELV_NEVER;
    if (timer < x->at[first].done) {
        x->now = timer;
        sync->on_timer(x->state, &x->sync_cfg, &x->r, x->now);
        return;
    }
    ELV_ASSERT(x->at[first].done != ELV_NEVER);
    x->now = x->at[first].done;
    arrive(x, first);
}

static void run_round(struct world *x, struct race *out)
{
    const struct elv_sync *sync = x->cfg->sync;
    open_round(x);
    out->opened[out->rounds] = (double)x->now / RACE_UNIT;
    out->k[out->rounds++] =
        sync->wanted ? sync->wanted(x->state, &x->sync_cfg, &x->r) : x->r.n_asked;
    do
        step(x);
    while (x->r.n_got < 1 ||
           sync->should_commit(x->state, &x->sync_cfg, &x->r, x->now) == ELV_SYNC_NO);
    out->k_mean += x->r.n_got;
    commit(x);
    out->loss = loss_of(x->w);
}

void race_run(const struct race_cfg *cfg, struct race *out)
{
    static struct world x;
    x = (struct world){.cfg = cfg, .rate = cfg->rate > 0.0 ? cfg->rate : 0.4};
    x.sync_cfg = (struct elv_sync_cfg){.clients_max = cfg->n, .quorum = 1, .params = &cfg->params};
    x.state = cfg->sync->state_len ? calloc(1, cfg->sync->state_len(&x.sync_cfg)) : NULL;
    for (uint32_t i = 0; i < cfg->n; i++)
        x.at[i].done = ELV_NEVER;
    for (uint32_t j = 0; j < DIM; j++)
        x.w[j] = 1.0;
    memset(out, 0, sizeof *out);
    out->time = INFINITY;
    while (out->rounds < cfg->rounds_max) {
        run_round(&x, out);
        const double time = (double)x.now / RACE_UNIT;
        if (out->loss <= cfg->target)
            out->time = time;
        if (out->loss <= cfg->target || time >= cfg->time_max)
            break;
    }
    out->k_mean /= out->rounds;
    free(x.state);
}

void race_param(struct race_cfg *cfg, const char *name, const char *value)
{
    struct elv_param *p = &cfg->params.at[cfg->params.n++];
    char *end;
    strcpy(p->name, name);
    p->value = strtod(value, &end);
    p->kind = *end == '\0' ? ELV_PARAM_NUMBER : ELV_PARAM_WORD;
    if (*end != '\0')
        strcpy(p->word, value);
}
