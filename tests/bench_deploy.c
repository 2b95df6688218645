/* SPDX-License-Identifier: Apache-2.0 */
/* A whole deployment on virtual time: pieces of work per second of one core from the ticket to the
 * verdict, with every message of the server's and the clients' own, and what a client costs. The
 * reference is the local training in it, done beside it without any server: what is left is the
 * protocol. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ports/sim/lab/deploy.h"
#include "ports/sim/lab/learn_network.h"
#include "tests/bench.h"

enum { N = 20000, VALUES_MAX = 784, CLASSES = 10 };

static uint32_t n_values;
static float x[VALUES_MAX];

static uint32_t count(void *self)
{
    (void)self;
    return N;
}

static void shape(void *self, uint32_t *values, uint32_t *classes)
{
    (void)self;
    *values = n_values;
    *classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *out, uint32_t *y)
{
    (void)self;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(out + (size_t)i * n_values, x, n_values * sizeof *x);
        y[i] = index[i] % CLASSES;
    }
    return ELV_OK;
}

struct size {
    const char *name, *input, *layers;
    uint32_t values, clients, rounds;
};

static void set(struct elv_job *job, const char *section, const char *key, const char *value)
{
    char why[ELV_JOB_ERROR_MAX];
    if (elv_job_set(job, section, key, value, ELV_JOB_OVERRIDE, why) == ELV_OK)
        return;
    fprintf(stderr, "%s.%s: %s\n", section, key, why);
    exit(1);
}

static void make_job(struct elv_job *job, const struct size *size)
{
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    elv_job_init(job);
    set(job, "job", "name", "bench");
    set(job, "data", "test", "csv nowhere");
    set(job, "data", "partition", "iid");
    set(job, "model", "input", size->input);
    set(job, "model", "layers", size->layers);
    set(job, "client", "local_steps", "1");
    set(job, "client", "batch_size", "8");
    set(job, "sync", "quorum", "1");
    set(job, "sync", "deadline", "2h");
    job->min_clients = size->clients;
    if (elv_job_check(job, why, &line) == ELV_OK)
        return;
    fprintf(stderr, "%s\n", why);
    exit(1);
}

/* The same pieces of work without the protocol. */
static double train_alone(const struct elv_swarm_cfg *cfg)
{
    struct elv_lab_learner *l = cfg->learner;
    float *v = calloc(2 * (size_t)l->n_params, sizeof *v);
    const double began = bench_now_s();
    if (v == NULL)
        exit(1);
    for (uint32_t i = 0; i < 200; i++) {
        struct elv_lab_task t = {.client = i % cfg->n_clients + 1,
                                 .assignment = i,
                                 .base = v,
                                 .size = {.local_steps = 1, .batch = 8},
                                 .learning_rate = 0.01f,
                                 .update = v + l->n_params};
        if (l->train(l->self, &t, 1) != ELV_OK || t.err != ELV_OK)
            exit(1);
    }
    free(v);
    return 200 / (bench_now_s() - began);
}

static struct elv_swarm_cfg run_of(const struct size *size, const struct elv_job *job,
                                   const struct elv_lab_world *world,
                                   struct elv_lab_learner *learner)
{
    return (struct elv_swarm_cfg){.job = job,
                                  .seed = 1,
                                  .world = world,
                                  .n_clients = size->clients,
                                  .learner = learner,
                                  .rounds = size->rounds};
}

static void run(const struct size *size)
{
    static struct elv_job job;
    char why[ELV_JOB_ERROR_MAX];
    const struct elv_feed feed = {.count = count, .shape = shape, .get = get};
    struct elv_lab_data data;
    struct elv_lab_learner learner;
    const struct elv_lab_world world = {
        .device.compute = {.shape = ELV_LAB_LOGNORMAL, .a = 5, .b = 0.5},
        .link.latency = {.shape = ELV_LAB_UNIFORM, .a = 0.02, .b = 0.05}};
    n_values = size->values;
    make_job(&job, size);
    if (elv_lab_data_open(&data, &feed) != ELV_OK)
        exit(1);
    const struct elv_lab_network_cfg network = {
        .job = &job, .seed = 1, .n_clients = size->clients, .train = &data};
    if (elv_lab_network(&learner, &network, why) != ELV_OK)
        exit(1);
    const struct elv_deploy_cfg cfg = {.run = run_of(size, &job, &world, &learner)};
    const double alone = train_alone(&cfg.run);

    struct elv_deploy *d;
    struct elv_lab_summary sum;
    size_t up, down;
    const double began = bench_now_s();
    if (elv_deploy_new(&d, &cfg, why) != ELV_OK || elv_deploy_run(d, ELV_NEVER) != ELV_OK)
        exit(1);
    const double took = bench_now_s() - began;
    elv_deploy_summary(d, &sum);
    elv_deploy_client_bytes(d, &up, &down);
    const struct elv_sim_stats s = elv_sim_stats(elv_deploy_world(d));
    elv_deploy_free(d);
    learner.free(learner.self);
    elv_lab_data_close(&data);

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    const double rate = (double)sum.used / took, vectors = 8.0 * (double)job.model.n_params;
    printf("bench deploy_%s_work %.0f pieces/s ref training_alone %.0f ratio %.2f\n", size->name,
           rate, alone, rate / alone);
    printf("bench deploy_%s_events %.0f events/s ref budget 500000 ratio %.2f\n", size->name,
           (double)s.events / took, (double)s.events / took / 500000);
    printf("bench deploy_%s_client %.0f B ref two_vectors %.0f ratio %.2f\n", size->name,
           (double)up, vectors, (double)up / vectors);
    printf("bench deploy_%s_memory %.0f MB ref clients %.0f ratio %.2f\n", size->name,
           (double)use.ru_maxrss / 1024, (double)up * size->clients / 1048576,
           (double)use.ru_maxrss / 1024 / ((double)up * size->clients / 1048576));
    if (sum.version != size->rounds || sum.used != (uint64_t)size->rounds * size->clients)
        exit(1);
}

int main(void)
{
    static const struct size sizes[] = {
        {"small", "1x1x16", "dense 24 relu, dense 10", 16, 2000, 20},
        {"mlp", "1x28x28", "dense 200 relu, dense 10", 784, 400, 4},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        run(&sizes[i]);
    return 0;
}
