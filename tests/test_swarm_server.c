/* SPDX-License-Identifier: Apache-2.0 */
/* The swarm against the server itself: eight clients of different, constant speed on a network that
 * takes no time, once as times and once as the real server and clients exchanging every message,
 * use the same clients in the same rounds, which take as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/learn_local.h"
#include "tests/sim_fleet.h"
#include "tests/swarm_case.h"

enum { CLIENTS = 8, ROUNDS = 12, EPOCHS = 10, STEP_US = 10000 };
#define SECOND ((elv_time_us)1000000)

struct seen {      /* one round */
    uint32_t used; /* a bit for each client */
    elv_time_us took;
};

struct row { /* one policy */
    const char *policy, *key, *value;
};

static struct seen messages[ROUNDS + 1], times[ROUNDS + 1];
static uint32_t n_messages;

/* As the toy data of a fleet has it: batches of 8 out of 24 examples and some more. */
static uint32_t examples_of(uint32_t client) { return 24 + 4 * (client % 5); }

static void take_notes(struct fleet *f, uint64_t *number)
{
    const struct elv_note *n;
    while ((n = elv_note_next(&f->server->notes, number)) != NULL) {
        if (n->round > ROUNDS)
            continue;
        if (n->kind == ELV_NOTE_UPDATE_ACCEPTED)
            messages[n->round].used |= 1u << n->client;
        if (n->kind == ELV_NOTE_ROUND_CLOSED) {
            messages[n->round].took = n->report.took;
            n_messages = n->round;
        }
    }
}

/* Until the last round has closed. */
static struct fleet *run_fleet(const struct fleet_key *keys)
{
    uint64_t number = 0;
    memset(messages, 0, sizeof messages);
    n_messages = 0;
    struct fleet *f = fleet_new(&(struct fleet_cfg){.seed = 1,
                                                    .n_clients = CLIENTS,
                                                    .keys = keys,
                                                    .slice = 1,
                                                    .step_us = STEP_US,
                                                    .slow = CLIENTS,
                                                    .steady = true});
    while (n_messages < ROUNDS && fleet_wrong(f) == NULL && elv_sim_now(f->w) < 600 * SECOND) {
        elv_sim_run(f->w, elv_sim_now(f->w) + STEP_US);
        take_notes(f, &number);
    }
    if (fleet_wrong(f))
        print_message("%s\n", fleet_wrong(f));
    assert_null(fleet_wrong(f));
    return f;
}

static void run_messages(const struct row *row)
{
    const struct fleet_key keys[] = {
        {"sync", "policy", row->policy},
        {"sync", row->key, row->value},
        {"sync", "quorum", "1"},
        {"select", "min_clients", "8"},
        {"client", "local_epochs", "10"},
        {"job", "rounds", "12"},
        {NULL, NULL, NULL},
    };
    fleet_free(run_fleet(keys));
}

static uint32_t samples(void *self, uint32_t client)
{
    (void)self;
    return examples_of(client);
}

static struct elv_lab_trace speeds(void)
{
    char text[1024], why[256];
    struct elv_lab_trace t;
    uint32_t line;
    int len = sprintf(text, "client,start,end,compute_ms,up_bytes_s,down_bytes_s\n");
    for (int i = 1; i <= CLIENTS; i++)
        len += sprintf(text + len, "%d,0,100000,%d,0,0\n", i, STEP_US / 1000 * (1 + i));
    const struct elv_bytes bytes = {.at = (const uint8_t *)text, .len = (size_t)len};
    assert_int_equal(elv_lab_trace_parse(&t, bytes, why, &line), ELV_OK);
    return t;
}

static void run_times(const struct row *row)
{
    static struct swarm_case c;
    const struct swarm_key keys[] = {
        {"sync", "policy", row->policy}, {"sync", row->key, row->value},
        {"select", "min_clients", "8"},  {"client", "local_epochs", "10"},
        {"client", "batch_size", "8"},   {NULL, NULL, NULL},
    };
    struct elv_lab_trace t = speeds();
    memset(times, 0, sizeof times);
    swarm_case_init(&c, keys, CLIENTS);
    c.learner.samples = samples;
    c.world.trace = &t;
    c.world.device.per = ELV_LAB_PER_STEP;
    c.cfg.rounds = ROUNDS;
    swarm_case_run(&c);
    for (uint32_t i = 0; i < c.n_events; i++)
        if (c.events[i].kind == ELV_LAB_USED)
            times[c.events[i].round].used |= 1u << c.events[i].client;
    for (uint32_t i = 0; i < c.n_rounds; i++)
        times[c.rounds[i].seq].took = c.rounds[i].closed - c.rounds[i].opened;
    swarm_case_free(&c);
    elv_lab_trace_free(&t);
}

static void rounds_use_the_same_clients_and_take_as_long(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"bsp", "deadline", "60s"}, {"bsp", "deadline", "2600ms"}, /* the slow ones are late, and
                                                                      late again */
        {"backup", "k", "5"},       {"backup", "backup", "1"},     {"dbw", "rule", "blind"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        run_messages(&rows[i]);
        run_times(&rows[i]);
        assert_int_equal(n_messages, ROUNDS);
        for (uint32_t r = 1; r <= ROUNDS; r++) {
            const struct seen *a = &messages[r], *b = &times[r];
            const elv_time_us off = a->took > b->took ? a->took - b->took : b->took - a->took;
            if (a->used != b->used || off > b->took / 20)
                fail_msg("%s, round %u: %x in %.3f s, and %x in %.3f s", rows[i].policy, r, a->used,
                         (double)a->took / 1e6, b->used, (double)b->took / 1e6);
        }
    }
}

/* Streams: what each client delivered in a minute, and how stale it was. */

enum { MINUTE = 60 };

struct flow {
    uint32_t used[CLIENTS + 1], versions;
    double stale;
};

static void stream_messages(const struct fleet_key *keys, struct flow *out)
{
    uint64_t number = 0;
    uint32_t rounds = 0;
    const struct elv_note *n;
    struct fleet *f = fleet_new(&(struct fleet_cfg){.seed = 1,
                                                    .n_clients = CLIENTS,
                                                    .keys = keys,
                                                    .slice = 1,
                                                    .step_us = STEP_US,
                                                    .slow = CLIENTS,
                                                    .steady = true});
    *out = (struct flow){.versions = 0};
    while (elv_sim_now(f->w) < MINUTE * SECOND) {
        elv_sim_run(f->w, elv_sim_now(f->w) + STEP_US);
        while ((n = elv_note_next(&f->server->notes, &number)) != NULL) {
            if (n->kind == ELV_NOTE_UPDATE_ACCEPTED)
                out->used[n->client]++;
            if (n->kind == ELV_NOTE_ROUND_CLOSED) {
                out->stale += n->report.staleness * n->report.n_used;
                rounds += n->report.n_used;
                out->versions = n->version;
            }
        }
    }
    assert_null(elv_sim_broken(f->w));
    out->stale /= rounds;
    fleet_free(f);
}

static void stream_times(const struct swarm_key *keys, struct flow *out)
{
    static struct swarm_case c;
    struct elv_lab_trace t = speeds();
    swarm_case_init(&c, keys, CLIENTS);
    c.learner.samples = samples;
    c.world.trace = &t;
    c.world.device.per = ELV_LAB_PER_STEP;
    c.world.horizon_s = MINUTE;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    *out = (struct flow){.versions = sum.version, .stale = sum.stale_mean};
    for (uint32_t i = 0; i < c.n_events; i++)
        if (c.events[i].kind == ELV_LAB_USED)
            out->used[c.events[i].client]++;
    swarm_case_free(&c);
    elv_lab_trace_free(&t);
}

static void streams_let_the_same_clients_run_as_far(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"asp", "publish_interval", "1s"}, {"asp", "publish_interval", "0s"},
        {"ssp", "threshold", "1"},         {"dssp", "low", "2"},
        {"fedbuff", "buffer", "4"},        {"fedasync", "alpha", "0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct flow a, b;
        const struct fleet_key fleet_keys[] = {
            {"sync", "policy", rows[i].policy},
            {"sync", rows[i].key, rows[i].value},
            {"select", "min_clients", "8"},
            {"client", "local_epochs", "10"},
            {NULL, NULL, NULL},
        };
        const struct swarm_key keys[] = {
            {"sync", "policy", rows[i].policy}, {"sync", rows[i].key, rows[i].value},
            {"select", "min_clients", "8"},     {"client", "local_epochs", "10"},
            {"client", "batch_size", "8"},      {NULL, NULL, NULL},
        };
        stream_messages(fleet_keys, &a);
        stream_times(keys, &b);
        for (uint32_t k = 1; k <= CLIENTS; k++) { /* the server takes some time to publish */
            const uint32_t off = 1 + b.used[k] / 30;
            assert_in_range(a.used[k] + off, b.used[k], b.used[k] + 2 * off);
        }
        assert_in_range(a.versions, b.versions * 95 / 100, b.versions * 105 / 100);
        /* At the moment of a publication one may get the version before, the other the new one. */
        assert_true(a.stale > 0.75 * b.stale && a.stale < 1.25 * b.stale);
    }
}

/* A learner that trains the clients of a fleet, one after the other. */

struct pupil {
    struct fleet_client client; /* whose turn it is */
    struct elv_lab_local *local;
};

static void init_model(void *self, float *w)
{
    elv_lab_local_init(((struct pupil *)self)->local, w);
}

static enum elv_err train(void *self, struct elv_lab_task *tasks, uint32_t n)
{
    struct pupil *p = self;
    enum elv_err err = ELV_OK;
    for (uint32_t i = 0; i < n && err == ELV_OK; i++) {
        p->client.number = tasks[i].client;
        err = elv_lab_local_work(p->local, &tasks[i]);
    }
    return err;
}

static void decided(void *self, uint32_t client, enum elv_lab_fate fate, uint32_t version)
{
    elv_lab_local_decided(((struct pupil *)self)->local, client, fate, version);
}

static struct elv_lab_summary train_swarm(const struct elv_job *job)
{
    static struct swarm_case c;
    struct pupil p = {.client.number = 1};
    fleet_feeds(&p.client);
    const struct elv_lab_local_cfg cfg = {.model = &job->model,
                                          .job = job,
                                          .seed = job->seed,
                                          .n_clients = CLIENTS,
                                          .examples = 64,
                                          .train = &p.client.train,
                                          .test = &p.client.test};
    assert_int_equal(elv_lab_local_new(&p.local, &cfg), ELV_OK);
    swarm_case_init(&c, NULL, CLIENTS);
    c.learner = (struct elv_lab_learner){.self = &p,
                                         .n_params = job->model.n_shared,
                                         .bytes_down = elv_lab_local_bytes_down(p.local),
                                         .bytes_full = elv_lab_local_bytes_full(p.local),
                                         .gather_max = 3,
                                         .init = init_model,
                                         .samples = samples,
                                         .train = train,
                                         .decided = decided};
    c.cfg.job = job;
    c.cfg.seed = job->seed;
    c.cfg.rounds = ROUNDS;
    const struct elv_lab_summary sum = swarm_case_run(&c);
    swarm_case_free(&c);
    elv_lab_local_free(p.local);
    return sum;
}

static void the_model_learnt_is_the_same_to_the_last_bit(void **state)
{
    (void)state;
    static const struct fleet_key keys[][8] = {
        {{"transfer", "up", "f32"}},
        {{"transfer", "up", "q8"}, {"transfer", "down", "q8"}, {"client", "proximal", "0.1"}},
        {{"aggregate", "weight", "seen"}, {"client", "learning_rate_decay", "0.9"}},
        {{"transfer", "up", "ternary 0.05"},
         {"transfer", "down", "topk 0.3"},
         {"transfer", "warm_up", "4"},
         {"transfer", "clip", "0.2"}},
        {{"transfer", "up", "topk 0.1"},
         {"transfer", "down", "rotate 2"},
         {"transfer", "momentum_correction", "0.5"},
         {"transfer", "feedback", "f16"}},
        {{"transfer", "up", "sign"}, {"transfer", "down", "q8 stochastic"}},
        {{"transfer", "up", "rotate 1"}, {"transfer", "feedback", "none"}},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct fleet_key all[12] = {
            {"sync", "quorum", "8"}, {"select", "min_clients", "8"}, {"job", "rounds", "12"}};
        for (size_t k = 0; keys[i][k].section; k++)
            all[3 + k] = keys[i][k];
        struct fleet *f = run_fleet(all);
        const struct elv_lab_summary sum = train_swarm(&f->job);
        const struct elv_server_stats *stats = elv_server_stats(f->server);
        assert_memory_equal(sum.model, stats->model, 32);
        assert_int_equal(sum.bytes_up, stats->bytes_up);
        assert_int_equal(sum.bytes_down, stats->bytes_down);
        fleet_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_use_the_same_clients_and_take_as_long),
        cmocka_unit_test(streams_let_the_same_clients_run_as_far),
        cmocka_unit_test(the_model_learnt_is_the_same_to_the_last_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
