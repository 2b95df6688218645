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
#include "tests/memory_feed.h"

#include <cmocka.h>

enum { N = 400, N_TEST = 60, VALUES = 16, CLASSES = 4, CLIENTS = 8, KEPT = 64 };
#define SECOND ((elv_time_us)1000000)

/* A data set in memory: points around a centre for each class. */
static float train_x[N * VALUES], test_x[N_TEST * VALUES];
static uint32_t train_y[N], test_y[N_TEST];
static struct memory_set train_set = {N, VALUES, CLASSES, train_x, train_y};
static struct memory_set test_set = {N_TEST, VALUES, CLASSES, test_x, test_y};
static struct elv_feed train_feed, test_feed;
static struct elv_lab_data data;

static void fill(struct memory_set *s, uint64_t seed)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed});
    for (uint32_t i = 0; i < s->n; i++) {
        s->y[i] = elv_rng_below(&r, CLASSES);
        for (uint32_t k = 0; k < VALUES; k++)
            s->x[i * VALUES + k] =
                0.5f * elv_rng_normal(&r) + (k % CLASSES == s->y[i] ? 1.0f : 0.0f);
    }
}

static int open_data(void **state)
{
    (void)state;
    fill(&train_set, 1);
    fill(&test_set, 2);
    train_feed = memory_feed(&train_set);
    test_feed = memory_feed(&test_set);
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
    uint32_t used[KEPT + 1]; /* a bit for each client, by round; and of the open one: */
    uint32_t now;
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
    struct elv_deploy_pages pages;
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
    if (r->seq <= KEPT)
        t->used[r->seq] = t->now;
    t->now = 0;
    t->n_rounds++;
    t->n_used += r->n_used;
}

static void take_event(void *self, const struct elv_lab_event *e)
{
    struct tale *t = self;
    t->n_events[e->kind]++;
    if (e->kind == ELV_LAB_USED)
        t->now |= 1u << (e->client % 32);
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
    const struct elv_deploy_cfg cfg = {
        .run = run_cfg(r, t), .cohort = r->cohort, .pages = r->pages};
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

static void the_same_seed_gives_the_same_run(void **state)
{
    (void)state;
    static struct run r;
    run_init(&r, NULL);
    deploy(&r, &one);
    deploy(&r, &two);
    assert_int_equal(one.n_rounds, 6);
    assert_true(one.sum.hash == two.sum.hash);
    assert_memory_equal(one.rounds, two.rounds, sizeof one.rounds);
    r.seed++;
    deploy(&r, &two);
    assert_true(one.sum.hash != two.sum.hash);
}

/* The two details. */

static void compare_bits(const struct elv_lab_round *a, const struct elv_lab_round *b)
{
    assert_memory_equal(a->model, b->model, 32);
    assert_true(isnan(a->train_loss) ? isnan(b->train_loss) : a->train_loss == b->train_loss);
    assert_true(a->score.accuracy == b->score.accuracy);
}

static void compare(const char *what, elv_time_us slack, bool bits)
{
    const uint32_t n = two.n_rounds;
    if (one.n_rounds != n)
        fail_msg("%s: %u rounds with messages, %u without", what, one.n_rounds, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct elv_lab_round *a = &one.rounds[i], *b = &two.rounds[i];
        const elv_time_us took = a->closed - a->opened, should = b->closed - b->opened;
        const elv_time_us off = took > should ? took - should : should - took;
        if (one.used[a->seq] != two.used[b->seq] || a->n_used != b->n_used ||
            a->n_dropped != b->n_dropped)
            fail_msg("%s, round %u: %x with messages, %x without", what, a->seq, one.used[a->seq],
                     two.used[b->seq]);
        if (off > should / 50 + slack)
            fail_msg("%s, round %u: %.3f s with messages, %.3f s without", what, a->seq,
                     (double)took / 1e6, (double)should / 1e6);
        assert_true(fabs(a->stale_mean - b->stale_mean) < 1e-9);
        assert_memory_equal(a->stale, b->stale, sizeof a->stale);
        if (bits)
            compare_bits(a, b);
    }
    assert_int_equal(memcmp(one.sum.model, two.sum.model, 32) == 0, bits);
    assert_int_equal(one.sum.used, two.sum.used);
    assert_true(one.sum.fairness == two.sum.fairness);
}

static void messages_and_times_are_one_system(void **state)
{
    (void)state;
    static const struct key rows[][6] = {
        {{"sync", "policy", "bsp"}},
        {{"sync", "policy", "bsp"}, {"select", "count", "3"}},
        {{"sync", "policy", "bsp"}, {"sync", "deadline", "4s"}}, /* two are always late */
        {{"sync", "policy", "backup"}, {"sync", "k", "5"}},
        {{"sync", "policy", "backup"}, {"sync", "backup", "2"}, {"aggregate", "rule", "fedavgm"}},
        {{"sync", "policy", "dbw"}, {"sync", "rule", "blind"}},
        {{"transfer", "up", "q8"}, {"transfer", "down", "q8"}, {"client", "proximal", "0.1"}},
        {{"data", "partition", "dirichlet 0.5"}, {"data", "holdout", "0.2"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct run r;
        run_init(&r, rows[i]);
        if (r.job.deadline_us < 10 * SECOND) {
            r.world.device.straggler_share = 0.25;
            r.world.device.straggler_factor = 30;
            r.world.device.straggler_fixed = true;
        }
        deploy(&r, &one);
        swarm(&r, &two);
        compare(rows[i][0].value, 20000, true);
    }
}

/* Without rounds the assignments' numbers, and with them the batches, go by who asks first, which
 * is by chance where messages are exchanged. */
static void so_they_are_without_rounds(void **state)
{
    (void)state;
    static const struct key rows[][6] = {
        {{"sync", "policy", "asp"}},
        {{"sync", "policy", "ssp"}, {"sync", "threshold", "1"}},
        {{"sync", "policy", "dssp"}, {"sync", "low", "1"}, {"sync", "high", "3"}},
        {{"sync", "policy", "psp"}, {"sync", "beta", "8"}, {"sync", "threshold", "1"}},
        {{"sync", "policy", "fedasync"}},
        {{"sync", "policy", "fedbuff"}, {"sync", "buffer", "4"}},
        {{"sync", "policy", "ebsp"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct run r;
        run_init(&r, rows[i]);
        r.job.rounds = 20;
        r.job.publish_us = SECOND / 4;
        deploy(&r, &one);
        swarm(&r, &two);
        compare(rows[i][0].value, 20000, false);
    }
}

/* So far as a round trip or two make no difference. */
static void a_short_way_makes_a_short_difference(void **state)
{
    (void)state;
    static struct run r;
    run_init(&r, NULL);
    r.world.link.latency = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 0.001, .b = 0.003};
    r.world.link.up = (struct elv_lab_draw){.a = 1e6};
    deploy(&r, &one);
    swarm(&r, &two);
    compare("a short way", 40000, true);
}

static void the_same_clients_drop_out(void **state)
{
    (void)state;
    static const struct key keys[] = {
        {"sync", "deadline", "4s"}, {"job", "rounds", "12"}, {NULL, NULL, NULL}};
    static struct run r;
    run_init(&r, keys);
    r.world.availability.dropout = 0.2;
    deploy(&r, &one);
    swarm(&r, &two);
    assert_true(two.sum.dropped > 5);
    assert_int_equal(one.sum.dropped, two.sum.dropped);
    compare("dropout", 20000, true);

    static const struct key stream[] = {{"sync", "policy", "asp"},
                                        {"sync", "deadline", "4s"},
                                        {"sync", "publish_interval", "250ms"},
                                        {"job", "rounds", "40"},
                                        {NULL, NULL, NULL}};
    run_init(&r, stream);
    r.world.availability.dropout = 0.2;
    deploy(&r, &one);
    swarm(&r, &two);
    assert_true(two.sum.dropped > 5 && two.sum.lapsed > 5);
    assert_int_equal(one.sum.dropped, two.sum.dropped);
    assert_int_equal(one.sum.lapsed, two.sum.lapsed);
    compare("lapses", 20000, false);
}

/* Links. */

static void lost_packets_cost_time_and_nothing_else(void **state)
{
    (void)state;
    static struct run r;
    run_init(&r, NULL);
    deploy(&r, &two);
    r.world.link.latency = (struct elv_lab_draw){.a = 0.02};
    r.world.link.up = r.world.link.down = (struct elv_lab_draw){.a = 50000};
    r.world.link.loss = 0.1;
    r.world.link.duplicate = 0.05;
    r.world.link.reorder = 0.1;
    deploy(&r, &one);
    assert_true(one.world.lost > 0 && one.world.duplicated > 0);
    assert_int_equal(one.n_rounds, two.n_rounds);
    assert_true(one.sum.ended > two.sum.ended);
    assert_memory_equal(one.sum.model, two.sum.model, 32);
}

/* Cohorts. */

static uint32_t largest, n_trained;

/* Another trainer of its own for each: whoever does the work, the outcome is the same. */
static void train_many(void *self, const struct elv_client_train *const *works, enum elv_err *err,
                       uint32_t n)
{
    (void)self;
    largest = n > largest ? n : largest;
    n_trained += n;
    for (uint32_t i = n; i-- > 0;) {
        bool begun = false;
        uint32_t left = 0;
        err[i] = ELV_ERR_BUSY;
        while (err[i] == ELV_ERR_BUSY)
            err[i] = elv_client_train_run(works[i], ELV_CLIENT_TRAIN, 3, &begun, &left);
    }
}

static void it_makes_no_difference_when_work_is_done(void **state)
{
    (void)state;
    static const struct elv_deploy_cohort rows[] = {{.most = 0},
                                                    {.most = 3},
                                                    {.most = 100},
                                                    {.most = 100, .train = train_many},
                                                    {.most = 1, .train = train_many}};
    static const struct key keys[] = {
        {"sync", "policy", "backup"}, {"sync", "backup", "2"}, {NULL, NULL, NULL}};
    static struct run r;
    largest = 0;
    run_init(&r, keys);
    r.world.availability.dropout = 0.1;
    r.cohort.at_start = true;
    deploy(&r, &one);
    assert_int_equal(one.world.gathered, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        r.cohort = rows[i];
        n_trained = 0;
        deploy(&r, &two);
        assert_true(two.world.gathered > 0);
        assert_true(one.sum.hash == two.sum.hash);
        assert_memory_equal(one.rounds, two.rounds, sizeof one.rounds);
        assert_memory_equal(one.sum.model, two.sum.model, 32);
    }
    assert_true(largest > 4);
    assert_true(n_trained < one.sum.started); /* what is cancelled is never done */
}

/* Memory. */

static void *take_block(void *self, size_t len)
{
    (void)self;
    return aligned_alloc(64, len);
}

static void give_block(void *self, void *at, size_t len)
{
    (void)self, (void)len;
    free(at);
}

static uint64_t spoiled;

static void spoil(void *self, void *at, size_t len)
{
    (void)self;
    assert_int_equal((uintptr_t)at % 128, 0);
    assert_int_equal(len % 128, 0);
    memset(at, 0xE7, len); /* were it read, it would not be overlooked */
    spoiled += len;
}

static void clients_without_work_need_no_memory(void **state)
{
    (void)state;
    static const struct key rows[][6] = {
        {{"transfer", "down", "f32"}},
        {{"transfer", "down", "q8"}, {"select", "count", "5"}},
        {{"model", "layers", "dense 24 relu, dense 4 local"}, {"transfer", "down", "q8"}},
        {{"sync", "quorum", "7"}, {"sync", "deadline", "4s"}}, /* the same version again */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct run r;
        run_init(&r, rows[i]);
        r.world.link.loss = 0.05;
        r.world.availability.dropout = i == 3 ? 0.15 : 0.05;
        r.world.faults.server_crash = 20 * SECOND;
        deploy(&r, &one);
        r.pages = (struct elv_deploy_pages){
            .page = 128, .take = take_block, .give = give_block, .drop = spoil};
        spoiled = 0;
        deploy(&r, &two);
        assert_true(spoiled > 30 * (uint64_t)r.job.model.n_params * sizeof(float));
        assert_true(one.sum.hash == two.sum.hash);
        assert_memory_equal(one.sum.model, two.sum.model, 32);
        assert_true(i < 3 || one.sum.abandoned > 0);
    }
}

/* Comings and goings. */

static void check_counts(const struct run *r)
{
    uint32_t closed = 0, seq = 0;
    for (uint32_t i = 0; i < one.n_rounds && i < KEPT; i++) {
        const struct elv_lab_round *a = &one.rounds[i];
        assert_true(a->seq > seq);
        seq = a->seq;
        assert_true(a->n_used <= r->n_clients);
        assert_true(a->abandoned || a->n_used >= r->job.quorum);
        assert_true(a->working_us >= 0 && a->waiting_us >= 0);
        closed += !a->abandoned;
        if (!a->abandoned)
            assert_int_equal(a->version, closed);
    }
    assert_int_equal(one.sum.rounds, one.n_rounds);
    assert_int_equal(one.sum.version, one.sum.rounds - one.sum.abandoned);
    assert_true(one.sum.used >= one.n_used);
    assert_int_equal(one.sum.used, one.n_events[ELV_LAB_USED]);
    assert_int_equal(one.sum.started, one.n_events[ELV_LAB_STARTED]);
    /* What is started ends in one way. */
    assert_true(one.sum.used + one.sum.discarded + one.sum.late + one.sum.interrupted <=
                one.sum.started);
}

static void clients_may_come_and_go(void **state)
{
    (void)state;
    static const struct key keys[] = {{"sync", "deadline", "10s"},
                                      {"job", "rounds", "20"},
                                      {"sync", "quorum", "1"},
                                      {"select", "min_clients", "1"},
                                      {NULL, NULL, NULL}};
    static struct run r;
    run_init(&r, keys);
    r.world.availability.churn_rate = 0.5;
    r.world.availability.stay = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 5, .b = 30};
    deploy(&r, &one);
    check_counts(&r);
    assert_int_equal(one.sum.version, 20);
    assert_true(one.n_events[ELV_LAB_LEFT] > 3);
    assert_true(one.n_events[ELV_LAB_JOINED] > one.n_events[ELV_LAB_LEFT]);

    run_init(&r, keys);
    r.world.availability.on = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 5, .b = 30};
    r.world.availability.off = (struct elv_lab_draw){.shape = ELV_LAB_UNIFORM, .a = 1, .b = 10};
    r.world.device.start_spread = 3 * SECOND;
    deploy(&r, &one);
    check_counts(&r);
    assert_int_equal(one.sum.version, 20);
    assert_true(one.sum.dropped > 3);
}

static void a_trace_says_who_is_there(void **state)
{
    (void)state;
    static const char text[] = "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n"
                               "1,0,40,900,20000,50000\n1,60,1000,500,20000,50000\n"
                               "2,0,1000,1500,0,0\n3,10,1000,1200,0,0\n";
    static const struct key keys[] = {{"sync", "deadline", "5s"},
                                      {"sync", "quorum", "2"},
                                      {"job", "rounds", "45"},
                                      {"select", "min_clients", "2"},
                                      {NULL, NULL, NULL}};
    static struct run r;
    struct elv_lab_trace trace;
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    const struct elv_bytes bytes = {(const uint8_t *)text, sizeof text - 1};
    assert_int_equal(elv_lab_trace_parse(&trace, bytes, why, &line), ELV_OK);
    run_init(&r, keys);
    r.world.device.compute = (struct elv_lab_draw){0};
    r.world.trace = &trace;
    r.n_clients = 3;
    deploy(&r, &one);
    elv_lab_trace_free(&trace);
    check_counts(&r);
    assert_int_equal(one.sum.version, 45);
    assert_int_equal(one.used[1], 1u << 1 | 1u << 2);
    uint32_t alone = 0, back = 0;
    for (uint32_t i = 0; i < one.n_rounds; i++) {
        const struct elv_lab_round *a = &one.rounds[i];
        alone += a->opened > 41 * SECOND && a->closed < 60 * SECOND && one.used[a->seq] == 12;
        back += a->opened > 62 * SECOND && one.used[a->seq] == 14;
    }
    assert_true(alone > 0 && back > 0);
}

/* Faults. */

static void faults_strike_and_the_run_ends_all_the_same(void **state)
{
    (void)state;
    static const char *const policies[] = {"bsp",  "backup", "dbw",      "asp",     "ssp",
                                           "dssp", "psp",    "fedasync", "fedbuff", "ebsp"};
    enum { POLICIES = sizeof policies / sizeof policies[0] };
    uint64_t crashes = 0;
    for (uint64_t seed = 1; seed <= 2 * POLICIES; seed++) {
        const char *const policy = policies[seed % POLICIES];
        const bool backup = strcmp(policy, "backup") == 0, buffer = strcmp(policy, "fedbuff") == 0;
        const struct key keys[] = {
            {"sync", "deadline", "20s"},
            {"job", "rounds", "12"},
            {"sync", "policy", policy},
            {backup || buffer ? "sync" : NULL, backup ? "backup" : "buffer", "2"},
            {NULL, NULL, NULL}};
        static struct run r;
        run_init(&r, keys);
        r.seed = seed;
        r.world.link.latency = (struct elv_lab_draw){.a = 0.01};
        r.world.link.loss = 0.02;
        r.world.link.duplicate = 0.02;
        r.world.faults = (struct elv_lab_faults){.server_crash = 8 * SECOND,
                                                 .client_crash = 20 * SECOND,
                                                 .partition = 40 * SECOND,
                                                 .disk_error = 30 * SECOND,
                                                 .down = SECOND,
                                                 .lasts = 2 * SECOND};
        deploy(&r, &one);
        check_counts(&r);
        if (one.sum.version != 12)
            fail_msg("%s, seed %llu: %u versions", policy, (unsigned long long)seed,
                     one.sum.version);
        crashes += one.world.crashes;
        if (seed > 3)
            continue;
        const uint64_t hash = one.sum.hash;
        deploy(&r, &one);
        assert_true(hash == one.sum.hash);
    }
    assert_true(crashes > 100);
}

/* Ends. */

static void a_target_ends_the_run(void **state)
{
    (void)state;
    static const struct key keys[] = {{"job", "rounds", "40"}, {NULL, NULL, NULL}};
    static struct run r;
    run_init(&r, keys);
    r.target_accuracy = 0.85;
    deploy(&r, &one);
    swarm(&r, &two);
    assert_true(one.sum.reached && one.sum.score.accuracy >= 0.85 && one.n_rounds < 20);
    compare("accuracy", 20000, true);

    r.target_accuracy = 0;
    r.target_loss = 0.5;
    deploy(&r, &one);
    swarm(&r, &two);
    assert_true(one.sum.reached && one.sum.score.loss <= 0.5 && one.n_rounds < 20);
    compare("loss", 20000, true);

    r.target_loss = 0;
    r.world.horizon_s = 10;
    deploy(&r, &one);
    assert_int_equal(one.sum.ended, 10 * SECOND);
    assert_false(one.sum.reached);
}

static void what_cannot_be_deployed_is_refused(void **state)
{
    (void)state;
    static const enum elv_lab_learning rows[] = {ELV_LAB_QUADRATIC, ELV_LAB_LOGISTIC,
                                                 ELV_LAB_NOTHING};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct run r;
        struct elv_deploy *d;
        char why[ELV_JOB_ERROR_MAX] = "";
        run_init(&r, NULL);
        r.world.learning = rows[i];
        const struct elv_deploy_cfg cfg = {.run = run_cfg(&r, &one)};
        assert_int_equal(elv_deploy_new(&d, &cfg, why), ELV_ERR_ARG);
        assert_non_null(strstr(why, "learning = network"));
        r.learner.free(r.learner.self);
    }
}

/* Besides its vectors, one of which is the residual, a client takes little, and the trainer is
 * shared. */
static void a_client_is_small(void **state)
{
    (void)state;
    static struct run r;
    run_init(&r, NULL);
    deploy(&r, &one);
    const size_t vectors = 3 * r.job.model.n_params * sizeof(float);
    printf("a client is %zu bytes and three vectors, %zu when it is down\n",
           one.client_up - vectors, one.client_down);
    assert_true(one.client_up - vectors < 24000);
    assert_true(one.client_down < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(messages_and_times_are_one_system),
        cmocka_unit_test(so_they_are_without_rounds),
        cmocka_unit_test(a_short_way_makes_a_short_difference),
        cmocka_unit_test(the_same_clients_drop_out),
        cmocka_unit_test(lost_packets_cost_time_and_nothing_else),
        cmocka_unit_test(it_makes_no_difference_when_work_is_done),
        cmocka_unit_test(clients_without_work_need_no_memory),
        cmocka_unit_test(clients_may_come_and_go),
        cmocka_unit_test(a_trace_says_who_is_there),
        cmocka_unit_test(faults_strike_and_the_run_ends_all_the_same),
        cmocka_unit_test(a_target_ends_the_run),
        cmocka_unit_test(what_cannot_be_deployed_is_refused),
        cmocka_unit_test(a_client_is_small),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
