/* SPDX-License-Identifier: Apache-2.0 */
#include "client/builtin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client_world.h"

#include <cmocka.h>

enum { VALUES = 256, CLASSES = 10, EXAMPLES = 40 };

/* Examples whose scale and number come with the manifest. */
struct examples {
    uint32_t n, n_prepared;
    float scale;
    enum elv_err err;
};

static enum elv_err prepare(void *self, const struct elv_manifest *m)
{
    struct examples *e = self;
    e->n_prepared++;
    e->scale = m->scale;
    return e->err;
}

static uint32_t count(void *self) { return ((struct examples *)self)->n; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    const struct examples *e = self;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < VALUES; k++)
            x[i * VALUES + k] = e->scale * (float)((index[i] * 7 + k * 3) % 19) * 0.05f;
        y[i] = index[i] % CLASSES;
    }
    return ELV_OK;
}

static struct client_world w;
static struct examples train, test;
static struct elv_feed train_feed, test_feed;
static struct elv_builtin builtin;

static struct elv_feed feed_of(struct examples *e)
{
    return (struct elv_feed){
        .self = e, .prepare = prepare, .count = count, .shape = shape, .get = get};
}

static int setup(void **state)
{
    (void)state;
    world_init(&w, "dense 24 relu, dense 10", ELV_CODEC_F32, ELV_CODEC_Q8);
    train = (struct examples){.n = EXAMPLES};
    test = (struct examples){.n = 15};
    train_feed = feed_of(&train);
    test_feed = feed_of(&test);
    const struct elv_builtin_cfg cfg = {.train = &train_feed, .test = &test_feed};
    w.cfg.trainer = elv_builtin_trainer(&builtin, &cfg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(&w);
    return 0;
}

static size_t need(uint32_t batch)
{
    return elv_client_mem(&w.cfg, &w.server.manifest, &w.server.model, batch);
}

/* The same training without a node around it. */
static void train_alone(float *weights, float proximal)
{
    struct elv_local local;
    struct elv_local_cfg cfg = {.model = &w.server.model,
                                .train = &train_feed,
                                .arithmetic = ELV_ARITHMETIC_REFERENCE,
                                .batch = 8,
                                .proximal = proximal != 0};
    const struct elv_task task = {.seed = 42,
                                  .client = 7,
                                  .assignment = 1,
                                  .local_epochs = 2,
                                  .batch = 8,
                                  .rate = 0.1f,
                                  .prox_mu = proximal,
                                  .arithmetic = ELV_ARITHMETIC_REFERENCE};
    const size_t len = elv_local_mem(&cfg);
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, len);
    assert_int_equal(elv_local_init(&local, &cfg, mem, len), ELV_OK);
    const struct elv_trainer t = elv_local_trainer(&local);
    assert_int_equal(t.begin(t.self, &task, weights), ELV_OK);
    assert_int_equal(t.run(t.self, 1000), ELV_OK);
    free(mem);
}

static void trains_like_the_trainer_alone(float proximal)
{
    static float weights[PARAMS_MAX], got[PARAMS_MAX];
    w.cfg.duty = 30; /* in pieces, to make it harder */
    w.server.manifest.proximal = proximal;
    server_encode_manifest(&w.server);
    w.mem_len = need(8);
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
    assert_int_equal(w.server.commit.samples, EXAMPLES);
    assert_int_equal(w.server.commit.steps, 10);
    assert_int_equal(w.server.commit.seen, 2 * EXAMPLES);
    assert_true(train.scale == 1.0f);

    memcpy(weights, w.server.version[0], w.server.model.n_params * sizeof(float));
    train_alone(weights, proximal);
    server_update(&w.server, got);
    for (uint32_t i = 0; i < w.server.model.n_params; i++)
        assert_true(got[i] == weights[i] - w.server.version[0][i]);
}

static void a_node_trains_like_the_trainer_alone_in_the_memory_told_beforehand(void **state)
{
    (void)state;
    trains_like_the_trainer_alone(0);
}

static void a_manifest_with_a_proximal_term_costs_a_copy_of_the_weights_and_is_obeyed(void **state)
{
    (void)state;
    const size_t without = need(8);
    trains_like_the_trainer_alone(0.5f);
    assert_in_range(w.mem_len - without, w.server.model.n_params * sizeof(float),
                    w.server.model.n_params * sizeof(float) + ELV_ARENA_ALIGN);
}

static void a_batch_beyond_the_memory_is_a_failure_of_that_assignment_only(void **state)
{
    (void)state;
    w.mem_len = need(8);
    w.server.ticket.batch = 64;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
    assert_int_equal(w.server.commit.reason, ELV_REASON_MODEL_TOO_BIG);
    w.server.ticket.batch = 8;
    server_offer(&w.server, 2, 1);
    w.server.n_decided = 0;
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
}

static void without_room_for_batches_of_one_the_model_does_not_fit(void **state)
{
    (void)state;
    w.mem_len = need(1);
    w.server.ticket.batch = 1;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
    world_free(&w);

    setup(NULL);
    w.mem_len = need(1) - 64;
    world_start(&w);
    world_until(&w, ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
    assert_int_equal(w.client.exit_reason, ELV_REASON_MODEL_TOO_BIG);
}

static void an_evaluation_takes_the_batch_that_memory_allows(void **state)
{
    (void)state;
    struct elv_eval_sums sums[2];
    for (int i = 0; i < 2; i++) {
        setup(NULL);
        w.server.ticket.what = ELV_WHAT_EVALUATE;
        w.mem_len = need(i == 0 ? 1 : 32);
        world_start(&w);
        world_until(&w, decided);
        assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
        sums[i] = w.server.commit.eval;
        assert_int_equal(sums[i].n, 15);
        if (i == 0)
            world_free(&w);
    }
    assert_memory_equal(sums[0].correct, sums[1].correct, sizeof sums[0].correct);
    assert_true(sums[0].loss - sums[1].loss < 1e-9 && sums[1].loss - sums[0].loss < 1e-9);
}

static void data_of_another_shape_or_none_ends_or_declines(void **state)
{
    (void)state;
    train.n = 0;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DECLINED);
    assert_int_equal(w.server.commit.reason, ELV_REASON_NO_DATA);
    world_free(&w);

    world_init(&w, "dense 24 relu, dense 9", ELV_CODEC_F32, ELV_CODEC_Q8); /* ten labels */
    train.n = EXAMPLES;
    const struct elv_builtin_cfg cfg = {.train = &train_feed};
    w.cfg.trainer = elv_builtin_trainer(&builtin, &cfg);
    world_start(&w);
    world_until(&w, ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
    assert_int_equal(w.client.exit_reason, ELV_REASON_TRAINER);
}

static void data_that_cannot_be_read_yet_are_tried_again(void **state)
{
    (void)state;
    train.err = ELV_ERR_IO;
    world_start(&w);
    world_run(&w, 100 * SEC);
    assert_false(w.ended);
    assert_in_range(train.n_prepared, 5, 9);
    train.err = ELV_OK;
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_node_trains_like_the_trainer_alone_in_the_memory_told_beforehand),
        TEST(a_manifest_with_a_proximal_term_costs_a_copy_of_the_weights_and_is_obeyed),
        TEST(a_batch_beyond_the_memory_is_a_failure_of_that_assignment_only),
        TEST(without_room_for_batches_of_one_the_model_does_not_fit),
        TEST(an_evaluation_takes_the_batch_that_memory_allows),
        TEST(data_of_another_shape_or_none_ends_or_declines),
        TEST(data_that_cannot_be_read_yet_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
