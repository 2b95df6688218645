/* SPDX-License-Identifier: Apache-2.0 */
/* A deployment against itself, and against the swarm: the same job in the same world is one run,
 * whether messages are exchanged or are only times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports/sim/lab/deploy.h"
#include "ports/sim/lab/learn_network.h"

#include <cmocka.h>

enum { N = 400, N_TEST = 60, VALUES = 16, CLASSES = 4, CLIENTS = 8, KEPT = 64 };
#define SECOND ((elv_time_us)1000000)

/* A data set in memory: points around a centre for each class. */
struct set {
    uint32_t n;
    float x[N][VALUES];
    uint32_t y[N];
};

static struct set train_set, test_set;
static struct elv_feed train_feed, test_feed;
static struct elv_lab_data data;

static uint32_t count(void *self) { return ((struct set *)self)->n; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    const struct set *s = self;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(x + (size_t)i * VALUES, s->x[index[i]], sizeof s->x[0]);
        y[i] = s->y[index[i]];
    }
    return ELV_OK;
}

static void make_set(struct set *s, uint32_t n, uint64_t seed)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed});
    s->n = n;
    for (uint32_t i = 0; i < n; i++) {
        s->y[i] = elv_rng_below(&r, CLASSES);
        for (uint32_t k = 0; k < VALUES; k++)
            s->x[i][k] = 0.5f * elv_rng_normal(&r) + (k % CLASSES == s->y[i] ? 1.0f : 0.0f);
    }
}

static int open_data(void **state)
{
    (void)state;
    make_set(&train_set, N, 1);
    make_set(&test_set, N_TEST, 2);
    train_feed = (struct elv_feed){.self = &train_set, .count = count, .shape = shape, .get = get};
    test_feed = (struct elv_feed){.self = &test_set, .count = count, .shape = shape, .get = get};
    return elv_lab_data_open(&data, &train_feed) == ELV_OK ? 0 : -1;
}

static int close_data(void **state)
{
    (void)state;
    elv_lab_data_close(&data);
    return 0;
}

/* A run. */

struct key { /* one line of a job file; the list ends with section NULL */
    const char *section, *key, *value;
};

struct tale { /* what a run told */
    struct elv_lab_round rounds[KEPT];
    uint32_t used[KEPT + 1]; /* a bit for each client, by round */
    uint32_t n_rounds, n_used, n_events[ELV_LAB_LAPSED + 1];
    struct elv_lab_summary sum;
    size_t client_up, client_down;
    struct elv_sim_stats world;
};

struct run {
    struct elv_job job;
    struct elv_lab_world world;
    uint64_t seed;
    uint32_t n_clients;
    elv_time_us limit;
    struct elv_deploy_cohort cohort;
    double target_accuracy, target_loss;
    struct elv_lab_learner learner;
};

static const struct key every_job[] = {
    {"job", "name", "toy"},
    {"job", "rounds", "6"},
    {"data", "train", "csv nowhere"},
    {"data", "test", "csv nowhere"},
    {"model", "input", "1x1x16"},
    {"model", "layers", "dense 24 relu, dense 4"},
    {"client", "local_epochs", "2"},
    {"client", "batch_size", "8"},
    {"client", "learning_rate", "0.05"},
    {"client", "arithmetic", "reference"},
    {"sync", "deadline", "60s"},
    {"sync", "quorum", "1"},
    {"select", "min_clients", "8"},
    {"transfer", "up", "f32"},
    {"transfer", "down", "f32"},
    {NULL, NULL, NULL},
};

static void set_keys(struct elv_job *job, const struct key *keys)
{
    char why[ELV_JOB_ERROR_MAX] = "";
    for (; keys->section != NULL; keys++)
        if (elv_job_set(job, keys->section, keys->key, keys->value, ELV_JOB_OVERRIDE, why) !=
            ELV_OK)
            fail_msg("%s.%s: %s", keys->section, keys->key, why);
}

static void run_init(struct run *r, const struct key *keys)
{
    char why[ELV_JOB_ERROR_MAX] = "";
    uint32_t line = 0;
    *r = (struct run){.seed = 5, .n_clients = CLIENTS, .limit = 3600 * SECOND};
    r->world.device.compute = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 1, .b = 3};
    elv_job_init(&r->job);
    set_keys(&r->job, every_job);
    if (keys != NULL)
        set_keys(&r->job, keys);
    if (elv_job_check(&r->job, why, &line) != ELV_OK)
        fail_msg("%s", why);
}

static void take_round(void *self, const struct elv_lab_round *r)
{
    struct tale *t = self;
    if (t->n_rounds < KEPT)
        t->rounds[t->n_rounds] = *r;
    t->n_rounds++;
    t->n_used += r->n_used;
}

static void take_event(void *self, const struct elv_lab_event *e)
{
    struct tale *t = self;
    t->n_events[e->kind]++;
    if (e->kind == ELV_LAB_USED && e->round <= KEPT)
        t->used[e->round] |= 1u << (e->client % 32);
}

static struct elv_swarm_cfg run_cfg(struct run *r, struct tale *t)
{
    char why[ELV_JOB_ERROR_MAX] = "";
    const struct elv_lab_network_cfg network = {.job = &r->job,
                                                .seed = r->seed,
                                                .n_clients = r->n_clients,
                                                .train = &data,
                                                .test = &test_feed};
    if (elv_lab_network(&r->learner, &network, why) != ELV_OK)
        fail_msg("%s", why);
    *t = (struct tale){.n_rounds = 0};
    return (struct elv_swarm_cfg){.job = &r->job,
                                  .seed = r->seed,
                                  .world = &r->world,
                                  .n_clients = r->n_clients,
                                  .learner = &r->learner,
                                  .sink = {.self = t, .round = take_round, .event = take_event},
                                  .target_accuracy = r->target_accuracy,
                                  .target_loss = r->target_loss,
                                  .rounds = r->job.rounds};
}

static void deploy(struct run *r, struct tale *t)
{
    struct elv_deploy *d;
    char why[ELV_JOB_ERROR_MAX] = "";
    const struct elv_deploy_cfg cfg = {.run = run_cfg(r, t), .cohort = r->cohort};
    if (elv_deploy_new(&d, &cfg, why) != ELV_OK)
        fail_msg("%s", why);
    const enum elv_err err = elv_deploy_run(d, r->limit);
    if (err != ELV_OK && err != ELV_ERR_BUSY)
        fail_msg("%s: %s", elv_err_text(err), elv_sim_broken(elv_deploy_world(d)));
    elv_deploy_summary(d, &t->sum);
    elv_deploy_client_bytes(d, &t->client_up, &t->client_down);
    t->world = elv_sim_stats(elv_deploy_world(d));
    elv_deploy_free(d);
    r->learner.free(r->learner.self);
}

static void swarm(struct run *r, struct tale *t)
{
    struct elv_swarm *s;
    char why[ELV_JOB_ERROR_MAX] = "";
    const struct elv_swarm_cfg cfg = run_cfg(r, t);
    if (elv_swarm_new(&s, &cfg, why) != ELV_OK)
        fail_msg("%s", why);
    elv_swarm_run(s, r->limit);
    elv_swarm_summary(s, &t->sum);
    elv_swarm_free(s);
    r->learner.free(r->learner.self);
}

static struct tale one, two;

static void print_rounds(const char *what, const struct tale *t)
{
    for (uint32_t i = 0; i < t->n_rounds && i < KEPT; i++) {
        const struct elv_lab_round *r = &t->rounds[i];
        printf("%s %u v%u %s opened %.3f took %.3f asked %u used %u (%x) late %u dropped %u disc "
               "%u loss %.4f acc %.3f wait %.2f work %.2f up %llu down %llu\n",
               what, r->seq, r->version, r->abandoned ? "abandoned" : "", (double)r->opened / 1e6,
               (double)(r->closed - r->opened) / 1e6, r->n_asked, r->n_used, t->used[r->seq],
               r->n_late, r->n_dropped, r->n_discarded, r->train_loss, r->score.accuracy,
               r->waiting_us / 1e6, r->working_us / 1e6, (unsigned long long)r->bytes_up,
               (unsigned long long)r->bytes_down);
    }
}

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    static struct run r;
    run_init(&r, NULL);
    deploy(&r, &one);
    print_rounds("deploy", &one);
    deploy(&r, &two);
    assert_int_equal(one.n_rounds, 6);
    assert_true(one.sum.hash == two.sum.hash);
    assert_memory_equal(one.rounds, two.rounds, sizeof one.rounds);
    swarm(&r, &two);
    print_rounds("swarm", &two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
