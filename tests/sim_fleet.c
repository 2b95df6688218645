/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_fleet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/rng.h"

enum { VALUES = 8, CLASSES = 3, EXAMPLES = 24 };
#define SECOND 1000000

static const struct fleet_key every_job[] = {
    {"job", "name", "toy"},
    {"job", "seed", "7"},
    {"data", "test", "csv nowhere"}, /* the scorer stands in for it */
    {"model", "input", "1x1x8"},
    {"model", "layers", "dense 160 relu, dense 3"},
    {"client", "local_epochs", "1"},
    {"client", "batch_size", "8"},
    {"client", "learning_rate", "0.05"},
    {"client", "arithmetic", "reference"},
    {NULL, NULL, NULL},
};

void fleet_blame(struct fleet *f, const char *format, ...)
{
    if (f->wrong[0] != '\0')
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(f->wrong, sizeof f->wrong, format, args);
    va_end(args);
}

static void *memory(size_t len)
{
    /* A multiple of the alignment, as aligned_alloc wants it. */
    const size_t rounded = (len + ELV_ARENA_ALIGN - 1) / ELV_ARENA_ALIGN * ELV_ARENA_ALIGN;
    void *p = aligned_alloc(ELV_ARENA_ALIGN, rounded);
    if (p == NULL)
        abort();
    return p;
}

/* The feed: points around three centres, some more of each on some devices than on others. */

static uint32_t count(void *self)
{
    return EXAMPLES + 4 * (((const struct fleet_client *)self)->number % 5);
}

static uint32_t count_test(void *self)
{
    (void)self;
    return FLEET_TESTS;
}

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = CLASSES;
}

static void example(uint32_t client, uint32_t i, float x[VALUES], uint32_t *y)
{
    struct elv_rng r = elv_rng_of(
        (struct elv_rng_key){.seed = 99, .client = client, .round = i, .purpose = ELV_RNG_TEST});
    *y = elv_rng_below(&r, 4) == 0 ? client % CLASSES : elv_rng_below(&r, CLASSES);
    for (uint32_t k = 0; k < VALUES; k++)
        x[k] = elv_rng_unit(&r) + (k % CLASSES == *y ? 0.8f : 0.0f);
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    const struct fleet_client *c = self;
    for (uint32_t i = 0; i < n; i++)
        example(c->number, index[i], x + (size_t)i * VALUES, &y[i]);
    return ELV_OK;
}

static enum elv_err get_test(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    const struct fleet_client *c = self;
    for (uint32_t i = 0; i < n; i++)
        example(c->number, 100000 + index[i], x + (size_t)i * VALUES, &y[i]);
    return ELV_OK;
}

void fleet_feeds(struct fleet_client *c)
{
    c->train = (struct elv_feed){.self = c, .count = count, .shape = shape, .get = get};
    c->test = (struct elv_feed){.self = c, .count = count_test, .shape = shape, .get = get_test};
}

/* Clients. */

static struct fleet_client *client_at(struct fleet *f, uint32_t node)
{
    return &f->clients[node - f->server_node - 1];
}

static bool is_vandal(const struct fleet *f, const struct fleet_client *c)
{
    return c >= &f->clients[f->cfg.n_clients - f->cfg.n_vandals];
}

static bool is_absent(const struct fleet *f, uint32_t place)
{
    return (f->cfg.absent >> place & 1) != 0;
}

static struct elv_node start_vandal(struct fleet *f, struct fleet_client *c)
{
    struct elv_manifest m;
    uint8_t bytes[ELV_MANIFEST_MAX], digest[ELV_SHA256_LEN];
    size_t len = 0;
    elv_job_manifest(&f->job, f->server_cfg.run, &m);
    const enum elv_err err = elv_manifest_encode(&m, bytes, sizeof bytes, &len);
    ELV_ASSERT(err == ELV_OK);
    elv_sha256(bytes, len, digest);
    vandal_init(&c->vandal, f->cfg.seed + c->starts, f->model.n_shared, digest);
    return vandal_node(&c->vandal);
}

static const uint8_t f32_only[] = {ELV_CODEC_F32};

static enum elv_err start_client(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct fleet *f = self;
    struct fleet_client *c = client_at(f, node);
    (void)now;
    c->starts++;
    if (is_vandal(f, c)) {
        *out = start_vandal(f, c);
        return ELV_OK;
    }
    struct elv_rng r = elv_rng_of((struct elv_rng_key){
        .seed = f->cfg.seed, .client = c->number, .round = c->starts, .purpose = ELV_RNG_TEST});
    const uint64_t place = (uint64_t)(c - f->clients); /* two on one identity are two processes */
    const struct elv_builtin_cfg trainer = {.train = &c->train, .test = &c->test};
    const struct elv_client_cfg cfg = {
        .trainer = elv_builtin_trainer(&c->trainer, &trainer),
        .software = {.at = "elver/0.1.0", .len = 11},
        .boot = elv_rng_u64(&r) + place,
        .jitter_seed = elv_rng_u64(&r),
        .observe = f->cfg.steady || (f->cfg.observe && c->number % 2 == 0),
        .leave_on_stop = c->disk == NULL || c->number % 2 == 0, /* else it parks its work */
        .disk = c->disk != NULL ? &c->view : NULL,
        .squeeze = &f->squeeze,
        .codecs = f32_only,
        .n_codecs = (f->cfg.plain >> (c - f->clients) & 1) != 0 ? 1 : 0,
    };
    struct elv_manifest m;
    elv_job_manifest(&f->job, f->server_cfg.run, &m);
    const size_t len = elv_client_mem(&cfg, &m, &f->model, f->job.batch_size);
    ELV_ASSERT(len > 0);
    c->mem = memory(len);
    const enum elv_err err = elv_client_init(&c->client, &cfg, c->mem, len);
    ELV_ASSERT(err == ELV_OK);
    *out = elv_client_node(&c->client);
    fleet_resume_began(f, c);
    return ELV_OK;
}

static void client_gone(void *self, uint32_t node)
{
    struct fleet *f = self;
    struct fleet_client *c = client_at(f, node);
    if (!is_vandal(f, c)) {
        f->sums.restored += c->client.stats.restored;
        f->sums.replayed += c->client.stats.replayed;
        f->sums.resumed += c->client.stats.resumed;
    }
    free(c->mem);
    c->mem = NULL;
}

static elv_time_us client_cost(void *self, uint32_t node, const struct elv_compute *work,
                               uint32_t units, struct elv_rng *rng)
{
    const struct fleet *f = self;
    const struct fleet_client *c = client_at(self, node);
    const uint32_t slower = f->cfg.slow == 0 ? 0 : c->number * f->cfg.slow / f->cfg.n_clients;
    const elv_time_us step = f->cfg.step_us * (1 + (elv_time_us)slower);
    if (work->kind != ELV_CLIENT_TRAIN && work->kind != ELV_CLIENT_EVALUATE)
        return 1000;
    const uint32_t steps = units == UINT32_MAX ? 4 : units;
    if (f->cfg.steady)
        return step * (elv_time_us)steps;
    return elv_sim_between(rng, step, 2 * step) * (elv_time_us)steps;
}

static void set_keys(struct elv_job *job, const struct fleet_key *keys, uint32_t line)
{
    char why[ELV_JOB_ERROR_MAX] = "";
    for (; keys->section != NULL; keys++)
        if (elv_job_set(job, keys->section, keys->key, keys->value, line, why) != ELV_OK) {
            fprintf(stderr, "[%s] %s = %s: %s\n", keys->section, keys->key, keys->value, why);
            abort();
        }
}

static void make_job(struct fleet *f)
{
    char why[ELV_JOB_ERROR_MAX] = "";
    uint32_t line = 0;
    elv_job_init(&f->job);
    set_keys(&f->job, every_job, 1);
    set_keys(&f->job, f->cfg.keys, ELV_JOB_OVERRIDE);
    if (elv_job_check(&f->job, why, &line) != ELV_OK) {
        fprintf(stderr, "job: %s\n", why);
        abort();
    }
    f->model = f->job.model;
}

void fleet_change(struct fleet *f, const struct fleet_key *keys)
{
    f->cfg.keys = keys;
    f->changes = true;
}

/* The server. */

static void begin_scoring(void *self, const float *w)
{
    struct fleet *f = self;
    f->scoring = (struct fleet_scorer){.w = w, .n = f->model.n_shared};
}

static double loss_of(const float *w, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)w[i] * (double)w[i];
    return sum;
}

/* Reads the model in every slice, so that one that changes meanwhile is noticed. */
static enum elv_err go_on_scoring(void *self, uint32_t budget)
{
    struct fleet_scorer *s = &((struct fleet *)self)->scoring;
    (void)budget;
    s->sum += loss_of(s->w, s->n);
    return ++s->slices < 3 ? ELV_ERR_BUSY : ELV_OK;
}

static void sums_of_scoring(void *self, struct elv_eval_sums *out)
{
    const struct fleet_scorer *s = &((struct fleet *)self)->scoring;
    *out = (struct elv_eval_sums){.n = 100, .loss = s->sum / 3, .n_classes = 2};
    const uint32_t right = (uint32_t)s->sum % 50;
    out->support[0] = out->support[1] = 50;
    out->predicted[0] = out->predicted[1] = 50;
    out->correct[0] = out->correct[1] = right;
}

static enum elv_err start_server(void *self, uint32_t node, elv_time_us now, struct elv_node *out)
{
    struct fleet *f = self;
    (void)node, (void)now;
    history_restart(f->history);
    if (f->changes)
        make_job(f);
    f->changes = false;
    const size_t len = elv_server_mem(&f->server_cfg);
    ELV_ASSERT(len > 0);
    f->mem = memory(len);
    f->server = calloc(1, sizeof *f->server);
    ELV_ASSERT(f->server != NULL);
    const enum elv_err err = elv_server_init(f->server, &f->server_cfg, f->mem, len);
    for (uint32_t i = 0; i < FLEET_CLIENTS_MAX; i++)
        f->waits[i] = ELV_NEVER;
    if (err == ELV_OK) {
        f->seen_notes = 0;
        f->waits_at = elv_sim_now(f->w);
        history_started(f->history, &f->server->scales);
        *out = elv_server_node(f->server);
        return ELV_OK;
    }
    if (err != ELV_ERR_IO)
        fleet_blame(f, "the server does not start from its own state: %s", elv_err_text(err));
    free(f->mem);
    free(f->server);
    f->server = NULL;
    f->mem = NULL;
    return err;
}

struct fleet_sums fleet_sums(const struct fleet *f)
{
    struct fleet_sums sums = f->sums;
    if (f->server == NULL)
        return sums;
    const struct elv_server_stats *s = elv_server_stats(f->server);
    sums.abandoned += s->rounds_abandoned;
    sums.late += s->updates_late;
    sums.log_losses += s->log_losses;
    sums.declined += s->updates_declined;
    sums.failed += s->updates_failed;
    sums.lapsed += s->lapsed;
    sums.evaluations += s->evaluations;
    return sums;
}

static void server_gone(void *self, uint32_t node)
{
    struct fleet *f = self;
    (void)node;
    f->sums = fleet_sums(f);
    free(f->mem);
    free(f->server);
    f->mem = NULL;
    f->server = NULL;
}

static elv_time_us server_cost(void *self, uint32_t node, const struct elv_compute *work,
                               uint32_t units, struct elv_rng *rng)
{
    (void)self, (void)node, (void)work;
    return elv_sim_between(rng, 100, 300) * (elv_time_us)(units == UINT32_MAX ? 10 : units);
}

/* Whatever it held before and however it got the model: what it starts from has the bytes that the
 * server published. */
static void check_model(struct fleet *f, struct fleet_client *c)
{
    const struct elv_client *k = &c->client;
    const struct elv_base *b = &k->base;
    uint8_t digest[ELV_SHA256_LEN];
    if (c->mem == NULL || k->ticket.assignment == c->checked ||
        (k->phase != ELV_CLIENT_TRAINING && k->phase != ELV_CLIENT_EVALUATING))
        return;
    c->checked = k->ticket.assignment;
    elv_sha256_f32(b->cfg.base, k->model.n_shared, digest);
    if (!history_published(f->history, k->ticket.version, digest))
        fleet_blame(f, "client %u does not start from version %u", c->number, k->ticket.version);
    const bool seed = b->way == ELV_BASE_STEPS && b->n_steps == k->ticket.version;
    f->sums.by_full += b->way == ELV_BASE_FULL;
    f->sums.by_steps += b->way == ELV_BASE_STEPS && !seed;
    f->sums.by_seed += seed;
}

static void stepped(void *self, uint32_t node, const struct elv_event *ev,
                    const struct elv_actions *did)
{
    struct fleet *f = self;
    if (node != f->server_node) {
        struct fleet_client *c = client_at(f, node);
        history_client(f->history, c->number, !is_vandal(f, c), did);
        if (!is_vandal(f, c))
            check_model(f, c);
        fleet_resume_client(f, c, did);
        return;
    }
    fleet_resume_server(f);
    history_server(f->history, ev, did);
    fleet_check(f);
}

static void add_server(struct fleet *f)
{
    struct elv_sim_disk_cfg disk = f->cfg.disk;
    disk.clock = elv_sim_clock(f->w);
    disk.seed = f->cfg.seed;
    f->disk = elv_sim_disk_new(&disk);
    f->server_cfg = (struct elv_server_cfg){
        .job = &f->job,
        .run = {1, 2, 3},
        .limits = f->cfg.limits,
        .disk = elv_sim_disk_view(f->disk),
        .scorer = f->cfg.scores ? &f->scorer : NULL,
        .squeeze = &f->squeeze,
    };
    f->server_cfg.limits.clients_max = f->cfg.n_clients;
    f->scorer = (struct elv_scorer){
        .self = f, .begin = begin_scoring, .run = go_on_scoring, .sums = sums_of_scoring};
    f->server_node = elv_sim_add_server(
        f->w,
        &(struct elv_sim_node_cfg){.host = {.self = f, .start = start_server, .gone = server_gone},
                                   .disk = f->disk,
                                   .linger_us = ELV_NEVER,
                                   .device = {.self = f, .cost = server_cost},
                                   .slice = f->cfg.slice,
                                   .odd_clock = f->cfg.odd_clocks,
                                   .drift_ppm = f->cfg.odd_clocks ? 100 : 0});
}

static void add_client(struct fleet *f, uint32_t i)
{
    struct fleet_client *c = &f->clients[i];
    struct elv_rng r = elv_rng_of((struct elv_rng_key){
        .seed = f->cfg.seed, .client = i, .round = 77, .purpose = ELV_RNG_TEST});
    c->fleet = f;
    c->number = f->cfg.numbers != NULL ? f->cfg.numbers[i] : i + 1;
    fleet_feeds(c);
    if ((f->cfg.keeps >> i & 1) != 0) {
        struct elv_sim_disk_cfg disk = f->cfg.client_disk;
        disk.clock = elv_sim_clock(f->w);
        disk.seed = f->cfg.seed;
        disk.number = i + 1;
        c->disk = elv_sim_disk_new(&disk);
        c->view = elv_sim_disk_view(c->disk);
    }
    const elv_time_us start = elv_sim_between(&r, 0, f->cfg.join_spread_us);
    c->node = elv_sim_add_client(
        f->w, &(struct elv_sim_node_cfg){
                  .host = {.self = f, .start = start_client, .gone = client_gone},
                  .start_us = is_absent(f, i) ? ELV_NEVER : start,
                  .disk = c->disk,
                  .device = {.self = f, .cost = client_cost},
                  .slice = f->cfg.slice,
                  .odd_clock = f->cfg.odd_clocks,
                  .drift_ppm = f->cfg.odd_clocks ? (int32_t)elv_rng_below(&r, 400) - 200 : 0,
                  .server = f->server_node,
                  .number = c->number,
                  .link = f->cfg.link});
}

struct fleet *fleet_new(const struct fleet_cfg *cfg)
{
    ELV_ASSERT(cfg->n_clients > 0 && cfg->n_clients <= FLEET_CLIENTS_MAX);
    struct fleet *f = calloc(1, sizeof *f);
    if (f == NULL)
        abort();
    f->cfg = *cfg;
    f->dead_us = ELV_NEVER;
    if (elv_zlib_open(&f->zlib) != ELV_OK)
        abort();
    f->squeeze = elv_zlib_squeeze(f->zlib);
    make_job(f);
    const struct elv_sim_watch watch = {
        .self = f, .stepped = stepped, .line_self = cfg->line_ctx, .line = cfg->line};
    f->w = elv_sim_new(&(struct elv_sim_cfg){.seed = cfg->seed, .watch = watch});
    add_server(f);
    for (uint32_t i = 0; i < cfg->n_clients; i++)
        add_client(f, i);
    struct history_cfg books = {.job = &f->job,
                                .disk = elv_sim_disk_view(f->disk),
                                .n_clients = cfg->n_clients,
                                .squeeze = &f->squeeze,
                                .loss = cfg->scores ? loss_of : NULL};
    f->history = history_new(&books);
    return f;
}

void fleet_free(struct fleet *f)
{
    elv_sim_free(f->w);
    elv_sim_disk_free(f->disk);
    for (uint32_t i = 0; i < f->cfg.n_clients; i++)
        elv_sim_disk_free(f->clients[i].disk);
    history_free(f->history);
    elv_zlib_close(f->zlib);
    free(f);
}

static bool all_ended(const struct fleet *f)
{
    if (!f->over)
        return false;
    for (uint32_t i = 0; i < f->cfg.n_clients; i++)
        if (!f->clients[i].revoked && !is_absent(f, i) && !is_vandal(f, &f->clients[i]) &&
            !elv_sim_ended(f->w, f->clients[i].node, NULL))
            return false;
    return true;
}

bool fleet_run(struct fleet *f, elv_time_us limit)
{
    while (!all_ended(f)) { /* ends: virtual time passes, at the latest to `limit` */
        if (fleet_wrong(f) != NULL || elv_sim_now(f->w) >= limit)
            return false;
        elv_sim_run(f->w, elv_sim_now(f->w) + SECOND);
    }
    return true;
}

const char *fleet_wrong(const struct fleet *f)
{
    if (f->wrong[0] != '\0')
        return f->wrong;
    if (elv_sim_broken(f->w) != NULL)
        return elv_sim_broken(f->w);
    return history_wrong(f->history);
}
