/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/html_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/exact.h"
#include "common/rng.h"

#define SECOND ((elv_time_us)1000000)

struct kind { /* of policy: how its made-up runs go */
    const char *label;
    double pace;      /* seconds a version takes */
    double step;      /* progress of a version */
    double staleness; /* mean, of an update */
    double waiting;
    double k; /* share of the clients waited for; 0: no number */
};

static const struct kind kinds[16] = {
    {"bsp", 42.0, 1.0, 0.0, 0.55, 1.0},
    {"backup b=2", 21.0, 0.97, 0.0, 0.31, 0.8},
    {"dbw", 14.0, 0.94, 0.0, 0.22, 0.45},
    {"ebsp", 16.0, 0.9, 6.0, 0.12, 0.0},
    {"overselect", 19.0, 0.93, 0.0, 0.2, 0.7},
    {"fedbuff", 5.0, 0.3, 9.0, 0.0, 0.5},
    {"fedasync", 1.2, 0.08, 11.0, 0.0, 0.0},
    {"asp", 1.1, 0.07, 12.0, 0.0, 0.0},
    {"ssp s=3", 2.6, 0.13, 4.0, 0.3, 0.0},
    {"dssp 3..15", 2.2, 0.12, 5.5, 0.21, 0.0},
    {"psp beta=2", 2.0, 0.11, 5.0, 0.18, 0.0},
    {"dbw variant=PaI forget=0.9", 12.0, 0.95, 0, 0.1, 0.5},
    {"k=4", 11.0, 0.7, 0.0, 0.1, 0.25},
    {"k=8", 15.0, 0.85, 0.0, 0.2, 0.5},
    {"k=12", 22.0, 0.95, 0.0, 0.3, 0.75},
    {"k=16", 30.0, 1.0, 0.0, 0.4, 1.0},
};

static const struct elv_html_setting settings[] = {
    {"job", "name", "report-sample", "job.ini:4"},
    {"job", "seed", "1", "default"},
    {"job", "target_accuracy", "0.85", "--until accuracy=0.85"},
    {"model", "input", "1x28x28", "job.ini:9"},
    {"model", "layers", "dense 200 relu, dense 10", "job.ini:10"},
    {"client", "local_epochs", "1", "default"},
    {"client", "batch_size", "32", "default"},
    {"client", "learning_rate", "0.05", "job.ini:14"},
    {"sync", "policy", "bsp,backup,dbw,ebsp", "--sweep"},
    {"sync", "deadline", "60s", "default"},
    {"aggregate", "rule", "fedavg", "default"},
    {"world", "clients", "16", "world.ini:2"},
    {"device", "compute", "lognormal 20s 0.5", "world.ini:5"},
    {"device", "straggler", "0.1 10", "world.ini:6"},
    {"availability", "dropout", "0.1", "world.ini:9"},
};

static void spread_staleness(struct elv_lab_round *r, double mean, struct elv_rng *rng)
{
    for (uint32_t u = 0; u < r->n_used; u++) {
        const double drawn = mean * (0.4 - 0.6 * (double)elv_ln(elv_rng_unit(rng) + 0x1p-24f));
        const uint32_t bin = drawn < 31.0 ? (uint32_t)drawn : 31;
        r->stale[bin]++;
    }
    r->stale_mean = mean;
}

static void make_round(struct elv_lab_round *r, const struct kind *k, uint32_t i,
                       const struct html_fixture_cfg *cfg, struct elv_rng *rng)
{
    const double jitter = 0.7 + 0.6 * (double)elv_rng_unit(rng);
    const double progress = (double)i * k->step / 40.0;
    const double noise = 0.012 * (double)elv_rng_normal(rng);
    const double n = (double)cfg->clients;
    *r = (struct elv_lab_round){.seq = i + 1, .version = i + 1};
    r->opened = i > 0 ? r[-1].closed : 0;
    r->closed = r->opened + (elv_time_us)(k->pace * jitter * 1e6);
    r->deadline = r->opened + 120 * SECOND;
    r->wanted = k->k > 0.0
                    ? 1 + (uint32_t)((n - 1.0) * k->k * (0.8 + 0.2 * progress / (progress + 1.0)))
                    : 0;
    r->n_asked = cfg->clients;
    r->n_used = r->wanted > 0 ? r->wanted : 1;
    r->n_late = i % 3;
    r->bytes_up = 53000u * (uint64_t)r->n_used;
    r->bytes_down = 640000u * (uint64_t)r->n_used;
    r->train_loss = 2.3 * (double)elv_exp((float)-progress) + 0.3;
    r->score.accuracy =
        cfg->timing_only ? -1.0 : 0.1 + 0.83 * (1.0 - (double)elv_exp((float)-progress)) + noise;
    r->score.loss = cfg->timing_only ? NAN : r->train_loss - noise;
    r->train_loss = cfg->timing_only ? NAN : r->train_loss;
    spread_staleness(r, k->staleness, rng);
    r->waiting_us = k->waiting * 1e6 * n;
    r->working_us = (1.0 - k->waiting) * 1e6 * n;
}

static void add_round(struct elv_lab_summary *s, const struct elv_lab_round *r)
{
    s->ended = r->closed;
    s->version = s->rounds = r->version;
    s->used += r->n_used;
    s->late += r->n_late;
    s->bytes_up += r->bytes_up;
    s->bytes_down += r->bytes_down;
    s->waiting_us += r->waiting_us;
    s->working_us += r->working_us;
    s->score = r->score;
    s->best_accuracy = r->score.accuracy > s->best_accuracy ? r->score.accuracy : s->best_accuracy;
    s->stale_mean = r->stale_mean;
    for (uint32_t b = 0; b < ELV_LAB_STALE_BINS; b++)
        s->stale[b] += r->stale[b];
}

static void count_clients(struct elv_html_run *run, const struct kind *k, struct elv_rng *rng)
{
    uint32_t *uses = calloc(run->n_clients, sizeof *uses);
    ELV_ASSERT(uses != NULL);
    double sum = 0.0, squares = 0.0;
    for (uint32_t c = 0; c < run->n_clients; c++) {
        const double skew = 0.2 + (1.0 - k->k * 0.5) * (double)elv_rng_unit(rng);
        uses[c] = 1 + (uint32_t)(skew * 40.0);
        sum += (double)uses[c];
        squares += (double)uses[c] * (double)uses[c];
    }
    run->uses = uses;
    run->summary.fairness = sum * sum / ((double)run->n_clients * squares);
}

static void make_run(struct elv_html_run *run, uint32_t label, uint32_t seed,
                     const struct html_fixture_cfg *cfg)
{
    const struct kind *k = &kinds[label % 16];
    struct elv_rng rng =
        elv_rng_of((struct elv_rng_key){.seed = seed, .client = label, .purpose = ELV_RNG_TEST});
    const uint32_t n =
        (uint32_t)((double)cfg->rounds * (1.2 - 0.4 * (double)elv_rng_unit(&rng)) / k->step);
    struct elv_lab_round *rounds = calloc(n, sizeof *rounds);
    ELV_ASSERT(rounds != NULL);
    *run = (struct elv_html_run){
        .label = k->label, .seed = seed, .rounds = rounds, .n_clients = cfg->clients};
    run->summary.score.accuracy = -1.0;
    while (run->n_rounds < n && !run->summary.reached) {
        struct elv_lab_round *r = &rounds[run->n_rounds];
        make_round(r, k, run->n_rounds++, cfg, &rng);
        add_round(&run->summary, r);
        run->summary.reached = r->score.accuracy >= 0.85;
        run->summary.reached_at = r->closed;
    }
    count_clients(run, k, &rng);
}

void html_fixture_init(struct html_fixture *f, struct html_fixture_cfg cfg)
{
    const uint32_t n = cfg.labels * cfg.seeds;
    struct elv_html_run *runs = calloc(n, sizeof *runs);
    ELV_ASSERT(runs != NULL);
    for (uint32_t i = 0; i < n; i++)
        make_run(&runs[i], i / cfg.seeds, i % cfg.seeds + 1, &cfg);
    *f = (struct html_fixture){.report = {
                                   .title = "Fashion-MNIST, 16 devices with stragglers",
                                   .program = "elver-sim 0.1.0",
                                   .runs = runs,
                                   .n_runs = n,
                                   .settings = settings,
                                   .n_settings = sizeof settings / sizeof settings[0],
                                   .target_accuracy = cfg.timing_only ? 0.0 : 0.85,
                               }};
    html_fixture_write(f);
}

struct page {
    char *text;
    size_t len, cap;
};

static void put(void *ctx, const char *text, size_t len)
{
    struct page *p = ctx;
    if (p->len + len + 1 > p->cap) {
        p->cap = (p->len + len + 1) * 2;
        p->text = realloc(p->text, p->cap);
        ELV_ASSERT(p->text != NULL);
    }
    memcpy(p->text + p->len, text, len);
    p->len += len;
    p->text[p->len] = '\0';
}

char *html_fixture_page(const struct elv_html_report *r)
{
    struct page p = {.text = NULL};
    const size_t need = elv_html_scratch(r);
    void *scratch = malloc(need);
    ELV_ASSERT(scratch != NULL);
    const enum elv_err err = elv_html_write(r, (struct elv_html_out){&p, put}, scratch, need);
    ELV_ASSERT(err == ELV_OK);
    free(scratch);
    return p.text;
}

void html_fixture_write(struct html_fixture *f)
{
    free(f->text);
    f->text = html_fixture_page(&f->report);
    f->len = strlen(f->text);
}

void html_fixture_free(struct html_fixture *f)
{
    for (uint32_t i = 0; i < f->report.n_runs; i++) {
        free((void *)(uintptr_t)f->report.runs[i].rounds); /* ours, const for all others */
        free((void *)(uintptr_t)f->report.runs[i].uses);
    }
    free((void *)(uintptr_t)f->report.runs);
    free(f->text);
}
