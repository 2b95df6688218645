/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/builtin.h"
#include "client/partition.h"
#include "common/codec.h"
#include "ports/sim/lab/learn_network.h"
#include "ports/zlib/squeeze.h"
#include "tests/client_world.h"
#include "tests/memory_feed.h"

#include <cmocka.h>

enum { N = 640, N_TEST = 90, VALUES = 256, CLASSES = 10, CLIENTS = 8, NUMBER = 7 };

/* A data set in memory: a dot in a place of its own for each class, and noise. */
static float train_x[N * VALUES], test_x[N_TEST * VALUES];
static uint32_t train_y[N], test_y[N_TEST];
static struct memory_set train_set = {N, VALUES, CLASSES, train_x, train_y};
static struct memory_set test_set = {N_TEST, VALUES, CLASSES, test_x, test_y};

static void fill(struct memory_set *s, uint64_t seed)
{
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = seed});
    for (uint32_t i = 0; i < s->n; i++) {
        float *x = &s->x[i * VALUES];
        s->y[i] = elv_rng_below(&r, CLASSES);
        for (uint32_t k = 0; k < VALUES; k++)
            x[k] = 0.4f * elv_rng_normal(&r);
        for (uint32_t k = 0; k < 8; k++)
            x[s->y[i] * 25 + k] += 1.0f;
    }
}

static struct elv_feed train_feed, test_feed;
static struct elv_lab_data data;
static struct client_world w;
static struct elv_zlib *zlib;
static struct elv_squeeze squeeze;

static int open_data(void **state)
{
    (void)state;
    fill(&train_set, 1);
    fill(&test_set, 2);
    train_feed = memory_feed(&train_set);
    test_feed = memory_feed(&test_set);
    if (elv_zlib_open(&zlib) != ELV_OK)
        return -1;
    squeeze = elv_zlib_squeeze(zlib);
    return elv_lab_data_open(&data, &train_feed) == ELV_OK ? 0 : -1;
}

static int close_data(void **state)
{
    (void)state;
    elv_lab_data_close(&data);
    elv_zlib_close(zlib);
    return 0;
}

static const char *const layers = "dense 24 relu, dense 10";

/* What a row of a table asks of the job. */
struct wish {
    uint8_t up;
    const char *partition;
    enum elv_arithmetic arithmetic;
    float holdout, momentum, proximal, clip;
    bool deflate;
};

static struct elv_job job_of(const struct wish *wish)
{
    struct elv_job job;
    elv_job_init(&job);
    const struct elv_model_text text = {
        .input = {(const uint8_t *)"1x16x16", 7},
        .layers = {(const uint8_t *)layers, strlen(layers)},
    };
    assert_int_equal(elv_model_parse(&job.model, text, NULL), ELV_OK);
    strcpy(job.partition, wish->partition);
    job.holdout = wish->holdout;
    job.momentum = wish->momentum;
    job.proximal = wish->proximal;
    job.arithmetic = wish->arithmetic;
    job.up[0] = (struct elv_codec_choice){.id = wish->up};
    job.n_up = 1;
    job.down = (struct elv_codec_choice){.id = ELV_CODEC_F32};
    job.clip = wish->clip;
    job.bound = 8;
    job.deflate = wish->deflate;
    return job;
}

static struct elv_lab_learner open_learner(const struct elv_job *job,
                                           struct elv_lab_network_cfg wish)
{
    struct elv_lab_learner l;
    char why[ELV_JOB_ERROR_MAX] = "";
    wish.job = job;
    wish.train = &data;
    if (wish.n_clients == 0)
        wish.n_clients = CLIENTS;
    if (elv_lab_network(&l, &wish, why) != ELV_OK)
        fail_msg("%s", why);
    return l;
}

/* The examples of one client, split by the rules of client/partition.h alone. */
struct share {
    uint32_t index[N], n_train, n;
};

static void split_by_hand(struct share *s, const char *partition, float holdout)
{
    static uint32_t owner[N];
    struct elv_partition_cfg cfg = {
        .seed = 42, .n_clients = CLIENTS, .n = N, .n_classes = CLASSES, .labels = train_set.y};
    const struct elv_bytes text = {(const uint8_t *)partition, strlen(partition)};
    assert_int_equal(elv_partition_parse(&cfg.how, text, NULL), ELV_OK);
    const size_t len = elv_partition_mem(&cfg);
    void *mem = aligned_alloc(64, (len + 63) / 64 * 64);
    assert_int_equal(elv_partition_owners(&cfg, owner, mem, len), ELV_OK);
    free(mem);
    s->n = elv_partition_take(owner, N, NUMBER - 1, s->index);
    s->n_train = elv_partition_holdout(42, NUMBER - 1, holdout, s->index, s->n);
}

static const struct wish wishes[] = {
    {ELV_CODEC_F32, "iid", ELV_ARITHMETIC_REFERENCE, 0, 0, 0, 0, false},
    {ELV_CODEC_F32, "dirichlet 0.3", ELV_ARITHMETIC_FAST, 0, 0.9f, 0, 0, false},
    {ELV_CODEC_F32, "shards 2", ELV_ARITHMETIC_FAST, 0.25f, 0, 0.2f, 0, false},
    {ELV_CODEC_Q8, "quantity 0.5", ELV_ARITHMETIC_REFERENCE, 0.1f, 0, 0, 0.1f, false},
    {ELV_CODEC_Q8, "dirichlet 0.3", ELV_ARITHMETIC_FAST, 0, 0, 0, 0, true},
};

/* A client node, alone with a scripted server, on version 0 and assignment 1. */
static void run_node(const struct wish *wish, struct elv_feed *train, struct elv_feed *test,
                     struct elv_builtin *builtin)
{
    world_init(&w, layers, wish->up, ELV_CODEC_F32);
    w.server.manifest.momentum = wish->momentum;
    w.server.manifest.proximal = wish->proximal;
    w.server.manifest.holdout = wish->holdout;
    w.server.manifest.arithmetic = wish->arithmetic;
    w.server.manifest.clip = wish->clip;
    w.server.manifest.deflate = wish->deflate;
    server_encode_manifest(&w.server);
    server_offer(&w.server, 1, 0);
    const struct elv_builtin_cfg cfg = {.train = train, .test = wish->holdout > 0 ? test : NULL};
    w.cfg.trainer = elv_builtin_trainer(builtin, &cfg);
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
}

static void a_piece_of_work_ends_in_the_bits_of_a_client_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        if (wishes[i].deflate)
            continue; /* the scripted server inflates nothing */
        static struct share share;
        static float want[PARAMS_MAX], got[PARAMS_MAX], base[PARAMS_MAX];
        struct elv_builtin builtin;
        split_by_hand(&share, wishes[i].partition, wishes[i].holdout);
        struct elv_lab_part mine = {&data, share.index, share.n_train};
        struct elv_lab_part held = {&data, share.index + share.n_train, share.n - share.n_train};
        struct elv_feed train = elv_lab_part_feed(&mine), test = elv_lab_part_feed(&held);
        run_node(&wishes[i], &train, &test, &builtin);
        server_update(&w.server, want);

        const struct elv_job job = job_of(&wishes[i]);
        struct elv_lab_learner l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 42});
        assert_int_equal(l.n_params, w.server.model.n_shared);
        l.init(l.self, base);
        assert_memory_equal(base, w.server.version[0], l.n_params * sizeof *base);
        struct elv_lab_task t = {.client = NUMBER,
                                 .assignment = 1,
                                 .base = base,
                                 .size = {.local_epochs = 2, .batch = 8},
                                 .learning_rate = 0.1f,
                                 .update = got};
        uint32_t steps, seen;
        l.effort(l.self, NUMBER, t.size, &steps, &seen);
        assert_int_equal(l.train(l.self, &t, 1), ELV_OK);
        assert_int_equal(t.err, ELV_OK);
        assert_memory_equal(got, want, l.n_params * sizeof *got);

        const struct elv_commit *c = &w.server.commit;
        assert_int_equal(t.samples, c->samples);
        assert_int_equal(t.samples, l.samples(l.self, NUMBER));
        assert_int_equal(t.seen, c->seen);
        assert_int_equal(t.steps, c->steps);
        assert_int_equal(t.steps, steps);
        assert_int_equal(t.seen, seen);
        assert_true(t.loss_sum == c->loss_sum);
        assert_int_equal(t.bytes_up, w.client.stats.bytes_up);
        assert_int_equal(t.eval.n, c->eval.n);
        assert_true(t.eval.loss == c->eval.loss);
        assert_memory_equal(t.eval.correct, c->eval.correct, sizeof c->eval.correct);
        l.free(l.self);
        world_free(&w);
    }
}

/* Trains every client once, from `base`, and returns all updates. */
static float *train_all(struct elv_lab_learner *l, const float *base, uint32_t per_call,
                        bool backwards)
{
    float *all = malloc((size_t)CLIENTS * l->n_params * sizeof *all);
    struct elv_lab_task tasks[CLIENTS];
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const uint32_t client = backwards ? CLIENTS - i : i + 1;
        tasks[i] = (struct elv_lab_task){.client = client,
                                         .assignment = 5,
                                         .base = base,
                                         .size = {.local_steps = 9, .batch = 8 + client % 3},
                                         .learning_rate = 0.05f,
                                         .update = all + (size_t)(client - 1) * l->n_params};
    }
    for (uint32_t i = 0; i < CLIENTS; i += per_call)
        assert_int_equal(l->train(l->self, tasks + i, per_call), ELV_OK);
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_int_equal(tasks[i].err, ELV_OK);
    return all;
}

static void the_bits_depend_on_nobody_else_in_the_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        const struct elv_job job = job_of(&wishes[i]);
        const struct elv_lab_network_cfg cfg = {.seed = 42, .squeeze = &squeeze};
        struct elv_lab_learner a = open_learner(&job, cfg), b = open_learner(&job, cfg);
        assert_true(a.gather_max >= CLIENTS);
        static float base[PARAMS_MAX];
        a.init(a.self, base);
        float *together = train_all(&a, base, CLIENTS, false);
        float *alone = train_all(&b, base, 1, true);
        assert_memory_equal(together, alone, (size_t)CLIENTS * a.n_params * sizeof *alone);
        free(together);
        free(alone);
        a.free(a.self);
        b.free(b.self);
    }
}

static void *train_in_a_thread(void *learner)
{
    static _Thread_local float base[PARAMS_MAX];
    struct elv_lab_learner *l = learner;
    l->init(l->self, base);
    return train_all(l, base, CLIENTS, false);
}

static void learners_of_several_threads_share_one_data_set(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    const struct elv_job job = job_of(&wishes[1]);
    struct elv_lab_learner l[THREADS];
    pthread_t thread[THREADS];
    void *got[THREADS];
    for (int i = 0; i < THREADS; i++) {
        l[i] = open_learner(&job, (struct elv_lab_network_cfg){.seed = 42});
        assert_int_equal(pthread_create(&thread[i], NULL, train_in_a_thread, &l[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], &got[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_memory_equal(got[i], got[0], (size_t)CLIENTS * l[i].n_params * sizeof(float));
        l[i].free(l[i].self);
    }
    for (int i = 0; i < THREADS; i++)
        free(got[i]);
}

static struct elv_lab_task train_one(struct elv_lab_learner *l, uint32_t client, float *update)
{
    static float base[PARAMS_MAX];
    l->init(l->self, base);
    struct elv_lab_task t = {.client = client,
                             .assignment = 1,
                             .base = base,
                             .size = {.local_epochs = 1, .batch = 8},
                             .learning_rate = 0.1f,
                             .update = update};
    assert_int_equal(l->train(l->self, &t, 1), ELV_OK);
    return t;
}

static void bytes_are_those_of_the_codec_and_compression_makes_them_fewer(void **state)
{
    (void)state;
    static float update[PARAMS_MAX];
    static const struct {
        uint8_t up;
        bool deflate;
        double least, most; /* bytes per parameter */
    } rows[] = {
        {ELV_CODEC_F32, false, 4.09, 4.11},
        {ELV_CODEC_Q8, false, 1.02, 1.04},
        {ELV_CODEC_Q8, true, 0.3, 1.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct wish wish = {.up = rows[i].up,
                                  .partition = "iid",
                                  .arithmetic = ELV_ARITHMETIC_FAST,
                                  .deflate = rows[i].deflate};
        const struct elv_job job = job_of(&wish);
        struct elv_lab_learner l =
            open_learner(&job, (struct elv_lab_network_cfg){.seed = 1, .squeeze = &squeeze});
        const struct elv_lab_task t = train_one(&l, 3, update);
        const double each = (double)t.bytes_up / l.n_params;
        assert_true(each > rows[i].least && each < rows[i].most);
        assert_true((double)l.bytes_down / l.n_params > 4.09);
        l.free(l.self);
    }
}

static void a_version_takes_as_many_steps_to_fetch_as_were_missed(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        double each; /* bytes per parameter */
    } rows[] = {{0, 1.03}, {8, 1.03}, {4, 2.06}, {3, 3.09}, {1, 4.1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct wish wish = {
            .up = ELV_CODEC_Q8, .partition = "iid", .arithmetic = ELV_ARITHMETIC_FAST};
        struct elv_job job = job_of(&wish);
        job.select_count = rows[i].count;
        job.down = (struct elv_codec_choice){.id = ELV_CODEC_Q8};
        struct elv_lab_learner l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 1});
        assert_true(fabs((double)l.bytes_down / l.n_params - rows[i].each) < 0.02);
        l.free(l.self);
    }
}

static void training_in_rounds_makes_the_score_better(void **state)
{
    (void)state;
    static float model[PARAMS_MAX];
    const struct wish wish = {
        .up = ELV_CODEC_Q8, .partition = "dirichlet 0.5", .arithmetic = ELV_ARITHMETIC_FAST};
    const struct elv_job job = job_of(&wish);
    struct elv_lab_learner l =
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 3, .test = &test_feed});
    struct elv_lab_score before, after;
    l.init(l.self, model);
    assert_int_equal(l.evaluate(l.self, model, &before), ELV_OK);
    for (uint32_t round = 0; round < 30; round++) {
        float *all = train_all(&l, model, CLIENTS, false);
        for (uint32_t i = 0; i < l.n_params; i++)
            for (uint32_t c = 0; c < CLIENTS; c++)
                model[i] += all[(size_t)c * l.n_params + i] / CLIENTS;
        free(all);
    }
    assert_int_equal(l.evaluate(l.self, model, &after), ELV_OK);
    assert_int_equal(after.sums.n, N_TEST);
    assert_true(after.loss < 0.5 * before.loss);
    assert_true(after.accuracy > 0.9);
    l.free(l.self);
}

static void without_a_test_set_a_version_has_no_score(void **state)
{
    (void)state;
    static float model[PARAMS_MAX];
    const struct elv_job job = job_of(&wishes[0]);
    struct elv_lab_learner l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 3});
    struct elv_lab_score score;
    l.init(l.self, model);
    assert_int_equal(l.evaluate(l.self, model, &score), ELV_OK);
    assert_true(isnan(score.loss) && score.accuracy < 0 && score.sums.n == 0);
    l.free(l.self);
}

static void a_run_may_start_from_a_model_of_the_users(void **state)
{
    (void)state;
    static float start[PARAMS_MAX], got[PARAMS_MAX];
    const struct elv_job job = job_of(&wishes[0]);
    for (uint32_t i = 0; i < job.model.n_shared; i++)
        start[i] = (float)i;
    struct elv_lab_learner l =
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 3, .start = start});
    l.init(l.self, got);
    assert_memory_equal(got, start, l.n_params * sizeof *got);
    l.free(l.self);
}

/* A layer that never leaves its device is trained on, round after round, by its client alone. */
static void local_layers_stay_with_their_client(void **state)
{
    (void)state;
    static float a[PARAMS_MAX], b[PARAMS_MAX], other[PARAMS_MAX];
    const struct elv_model_text text = {
        .input = {(const uint8_t *)"1x16x16", 7},
        .layers = {(const uint8_t *)"dense 16 relu, dense 10 local", 29},
    };
    struct elv_job job = job_of(&wishes[0]);
    assert_int_equal(elv_model_parse(&job.model, text, NULL), ELV_OK);
    struct elv_lab_learner l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 3});
    assert_int_equal(l.n_params, 257 * 16);
    const double first = train_one(&l, 2, a).loss_sum;
    assert_int_equal(train_one(&l, 5, other).err, ELV_OK);
    const double second = train_one(&l, 2, b).loss_sum; /* from the same version again */
    assert_true(second < first);
    l.free(l.self);

    l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 3});
    assert_int_equal(train_one(&l, 5, b).err, ELV_OK); /* as if the others had never trained */
    assert_memory_equal(b, other, l.n_params * sizeof *b);
    l.free(l.self);
}

static void owners_of_a_file_partition_are_obeyed(void **state)
{
    (void)state;
    static uint32_t owner[N];
    static float update[PARAMS_MAX];
    for (uint32_t i = 0; i < N; i++)
        owner[i] = i < 600 ? i % 3 : 6; /* 3, 4, 5 and 7 have nothing */
    struct wish wish = wishes[0];
    wish.partition = "file PART.npy";
    const struct elv_job job = job_of(&wish);
    struct elv_lab_learner l =
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 3, .owner = owner});
    static const uint32_t want[CLIENTS] = {200, 200, 200, 0, 0, 0, 40, 0};
    for (uint32_t c = 0; c < CLIENTS; c++)
        assert_int_equal(l.samples(l.self, c + 1), want[c]);
    assert_int_equal(train_one(&l, 7, update).samples, 40);
    assert_int_equal(train_one(&l, 4, update).err, ELV_ERR_MISSING); /* and nobody else fails */
    assert_int_equal(train_one(&l, 1, update).err, ELV_OK);
    const struct elv_lab_split *s = elv_lab_network_split(&l);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(s->index[s->first[6] + i], 600 + i);
    l.free(l.self);
}

static void digests_name_the_data_and_who_has_what(void **state)
{
    (void)state;
    static uint8_t bytes[N * 4 * (VALUES + 1)];
    struct elv_wr wr = elv_wr_of(bytes, sizeof bytes);
    for (uint32_t i = 0; i < N; i++) {
        elv_wr_u32(&wr, train_set.y[i]);
        for (uint32_t k = 0; k < VALUES; k++)
            elv_wr_f32(&wr, train_set.x[i * VALUES + k]);
    }
    uint8_t want[ELV_SHA256_LEN];
    elv_sha256(bytes, wr.need, want);
    assert_memory_equal(data.digest, want, sizeof want);

    const struct elv_job job = job_of(&wishes[0]), uneven = job_of(&wishes[1]);
    struct elv_lab_learner l[4] = {
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 3}),
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 3}),
        open_learner(&job, (struct elv_lab_network_cfg){.seed = 4}),
        open_learner(&uneven, (struct elv_lab_network_cfg){.seed = 3}),
    };
    for (size_t i = 1; i < 4; i++) {
        const bool same = memcmp(elv_lab_network_split(&l[0])->digest,
                                 elv_lab_network_split(&l[i])->digest, ELV_SHA256_LEN) == 0;
        assert_int_equal(same, i == 1);
    }
    for (size_t i = 0; i < 4; i++)
        l[i].free(l[i].self);
}

static void a_client_that_diverges_fails_alone(void **state)
{
    (void)state;
    static float update[PARAMS_MAX], base[PARAMS_MAX];
    const struct elv_job job = job_of(&wishes[0]);
    struct elv_lab_learner l = open_learner(&job, (struct elv_lab_network_cfg){.seed = 3});
    l.init(l.self, base);
    struct elv_lab_task t = {.client = 1,
                             .assignment = 1,
                             .base = base,
                             .size = {.local_epochs = 3, .batch = 8},
                             .learning_rate = 1e6f,
                             .update = update};
    assert_int_equal(l.train(l.self, &t, 1), ELV_OK);
    assert_int_equal(t.err, ELV_ERR_RANGE);
    t.learning_rate = 0.1f;
    t.size.batch = 0;
    assert_int_equal(l.train(l.self, &t, 1), ELV_OK);
    assert_int_equal(t.err, ELV_ERR_RANGE);
    t.size.batch = 8;
    assert_int_equal(l.train(l.self, &t, 1), ELV_OK);
    assert_int_equal(t.err, ELV_OK);
    l.free(l.self);
}

static void what_does_not_fit_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const uint32_t strangers[N] = {CLIENTS};
    static const struct {
        const char *partition, *layers, *input;
        const uint32_t *owner;
        uint32_t n_clients;
        enum elv_err err;
        const char *why;
    } rows[] = {
        {"dirichlet x", "dense 10", "1x16x16", NULL, 8, ELV_ERR_FORMAT, "iid, shards"},
        {"shards 0", "dense 10", "1x16x16", NULL, 8, ELV_ERR_RANGE, "1..1000"},
        {"iid", "dense 10", "1x16x16", NULL, N + 1, ELV_ERR_RANGE, "too few examples"},
        {"dirichlet 1", "dense 10", "1x16x16", NULL, 65, ELV_ERR_RANGE, "too few examples"},
        {"iid", "dense 10", "1x16x16", NULL, 0, ELV_ERR_ARG, "no clients"},
        {"file P.npy", "dense 10", "1x16x16", NULL, 8, ELV_ERR_ARG, "were not read"},
        {"file P.npy", "dense 10", "1x16x16", strangers, 8, ELV_ERR_ARG, "none of the clients"},
        {"iid", "dense 9", "1x16x16", NULL, 8, ELV_ERR_MISMATCH, "training examples"},
        {"iid", "dense 10", "1x16x15", NULL, 8, ELV_ERR_MISMATCH, "training examples"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wish wish = wishes[0];
        wish.partition = rows[i].partition;
        struct elv_job job = job_of(&wish);
        const struct elv_model_text text = {
            .input = {(const uint8_t *)rows[i].input, 7},
            .layers = {(const uint8_t *)rows[i].layers, strlen(rows[i].layers)},
        };
        assert_int_equal(elv_model_parse(&job.model, text, NULL), ELV_OK);
        const struct elv_lab_network_cfg cfg = {
            .job = &job, .train = &data, .n_clients = rows[i].n_clients, .owner = rows[i].owner};
        struct elv_lab_learner l;
        char why[ELV_JOB_ERROR_MAX] = "";
        assert_int_equal(elv_lab_network(&l, &cfg, why), rows[i].err);
        if (strstr(why, rows[i].why) == NULL)
            fail_msg("row %zu: %s", i, why);
    }
    struct memory_set none = {.n_values = VALUES, .n_classes = CLASSES};
    struct elv_feed feed = memory_feed(&none);
    struct elv_lab_data empty;
    assert_int_equal(elv_lab_data_open(&empty, &feed), ELV_ERR_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_of_work_ends_in_the_bits_of_a_client_node),
        cmocka_unit_test(the_bits_depend_on_nobody_else_in_the_call),
        cmocka_unit_test(learners_of_several_threads_share_one_data_set),
        cmocka_unit_test(bytes_are_those_of_the_codec_and_compression_makes_them_fewer),
        cmocka_unit_test(a_version_takes_as_many_steps_to_fetch_as_were_missed),
        cmocka_unit_test(training_in_rounds_makes_the_score_better),
        cmocka_unit_test(without_a_test_set_a_version_has_no_score),
        cmocka_unit_test(a_run_may_start_from_a_model_of_the_users),
        cmocka_unit_test(local_layers_stay_with_their_client),
        cmocka_unit_test(owners_of_a_file_partition_are_obeyed),
        cmocka_unit_test(digests_name_the_data_and_who_has_what),
        cmocka_unit_test(a_client_that_diverges_fails_alone),
        cmocka_unit_test(what_does_not_fit_is_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
