/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client_world.h"

#include <cmocka.h>

/* A model of some chunks in either direction: f32 both ways. */
static const char *const layers = "dense 24 relu, dense 10";
static struct client_world w;
static struct fake_disk disk;

static void begin_with(const char *text, uint8_t down)
{
    fake_disk_init(&disk);
    world_init(&w, text, ELV_CODEC_F32, down);
    w.disk = &disk;
    static struct elv_disk view;
    view = fake_disk_disk(&disk);
    w.cfg.disk = &view;
    w.server.wait_when_decided = true;
}

static int setup(void **state)
{
    (void)state;
    begin_with(layers, ELV_CODEC_F32);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(&w);
    fake_disk_free(&disk);
    return 0;
}

static bool uploading_half(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_UPLOADING &&
           x->server.n_up >= x->client.commit.n_chunks / 2;
}

static bool uploading_last(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_UPLOADING && x->server.n_up > 0 &&
           x->server.n_up + 1 >= x->client.commit.n_chunks;
}

static bool committed(const struct client_world *x) { return x->server.n_commits > 0; }
static bool accepted(const struct client_world *x) { return x->client.stats.accepted > 0; }
static bool training(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_TRAINING;
}
static bool waiting(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_IDLE && x->client.joined &&
           x->server.asked[ELV_OP_TICKET] > 0;
}

static bool fetched_half(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_FETCHING && x->client.fetching &&
           2 * x->client.transfer.have.n_set >= x->client.transfer.have.n;
}

static uint32_t chunks_asked(void)
{
    return w.server.asked[ELV_OP_MODEL_CHUNK] + w.server.asked[ELV_OP_STEP_CHUNK];
}

static const struct fake_item *work_file(void)
{
    return fake_disk_file(&disk, ELV_PERSIST_WORK, 0);
}

/* Heads and records. */

static const struct elv_persist_owner owner = {.run = {9, 8, 7}, .fingerprint = {1, 2, 3}};

static struct elv_persist_work some_work(void)
{
    return (struct elv_persist_work){.manifest = {5, 6},
                                     .assignment = 17,
                                     .round = 4,
                                     .version = 3,
                                     .n_shared = 1000,
                                     .up = {.id = ELV_CODEC_Q8, .param = -0.5f},
                                     .commit = {.status = ELV_STATUS_DONE,
                                                .nonce = UINT64_C(0x1122334455667788),
                                                .samples = 40,
                                                .seen = 80,
                                                .steps = 10,
                                                .loss_sum = 12.5,
                                                .n_chunks = 2,
                                                .digest = {0xAA},
                                                .compute_ms = 77,
                                                .user = {{.name = {"extra", 5}, .value = 0.25}},
                                                .n_user = 1}};
}

static void heads_come_back_as_they_were(void **state)
{
    (void)state;
    uint8_t base[ELV_PERSIST_BASE_LEN], work[ELV_PERSIST_WORK_MAX];
    const struct elv_persist_base b = {.version = 7, .n_params = 99, .digest = {4, 5}};
    struct elv_persist_base b2;
    const struct elv_persist_work k = some_work();
    struct elv_persist_work k2;
    size_t len = 0;
    assert_int_equal(elv_persist_base_encode(&owner, &b, base), sizeof base);
    assert_int_equal(
        elv_persist_base_decode((struct elv_bytes){base, sizeof base}, &owner, &b2, &len), ELV_OK);
    assert_int_equal(len, sizeof base);
    assert_memory_equal(&b, &b2, sizeof b);

    const size_t n = elv_persist_work_encode(&owner, &k, work);
    assert_in_range(n, 1, sizeof work);
    assert_int_equal(
        elv_persist_work_decode((struct elv_bytes){work, sizeof work}, &owner, &k2, &len), ELV_OK);
    assert_int_equal(len, n);
    assert_int_equal(k2.assignment, 17);
    assert_true(k2.commit.nonce == k.commit.nonce && k2.up.param == k.up.param);
    assert_int_equal(k2.commit.n_user, 1);
    assert_memory_equal(k2.commit.user[0].name.at, "extra", 5);
    assert_memory_equal(k2.commit.digest, k.commit.digest, sizeof k.commit.digest);
}

static void a_head_that_is_cut_off_or_another_s_is_none(void **state)
{
    (void)state;
    uint8_t base[ELV_PERSIST_BASE_LEN], work[ELV_PERSIST_WORK_MAX];
    const struct elv_persist_base b = {.version = 7};
    const struct elv_persist_work k = some_work();
    struct elv_persist_owner other = owner;
    struct elv_persist_base b2;
    struct elv_persist_work k2;
    size_t len;
    const size_t n_base = elv_persist_base_encode(&owner, &b, base);
    const size_t n_work = elv_persist_work_encode(&owner, &k, work);
    for (size_t i = 0; i < n_base; i++)
        assert_int_not_equal(
            elv_persist_base_decode((struct elv_bytes){base, i}, &owner, &b2, &len), ELV_OK);
    for (size_t i = 0; i < n_work; i++)
        assert_int_not_equal(
            elv_persist_work_decode((struct elv_bytes){work, i}, &owner, &k2, &len), ELV_OK);
    assert_int_not_equal(
        elv_persist_base_decode((struct elv_bytes){work, n_work}, &owner, &b2, &len), ELV_OK);
    other.run[0]++;
    assert_int_equal(elv_persist_base_decode((struct elv_bytes){base, n_base}, &other, &b2, &len),
                     ELV_ERR_MISMATCH);
    assert_int_equal(elv_persist_work_decode((struct elv_bytes){work, n_work}, &other, &k2, &len),
                     ELV_ERR_MISMATCH);
}

static void a_record_is_whole_or_none(void **state)
{
    (void)state;
    uint8_t chunk[ELV_CHUNK_MAX], record[ELV_PERSIST_RECORD_MAX];
    struct elv_bytes got;
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (uint8_t)(i * 7);
    static const size_t lens[] = {1, 24, 100, ELV_CHUNK_MAX};
    for (size_t k = 0; k < sizeof lens / sizeof lens[0]; k++) {
        const size_t n = elv_persist_record_encode((struct elv_bytes){chunk, lens[k]}, record);
        assert_int_equal(n, ELV_PERSIST_RECORD_LEN + lens[k]);
        assert_int_equal(elv_persist_record_decode((struct elv_bytes){record, n}, &got), ELV_OK);
        assert_int_equal(got.len, lens[k]);
        for (size_t i = 0; i < n; i++) {
            assert_int_not_equal(elv_persist_record_decode((struct elv_bytes){record, i}, &got),
                                 ELV_OK);
            record[i] ^= 0x10;
            assert_int_not_equal(elv_persist_record_decode((struct elv_bytes){record, n}, &got),
                                 ELV_OK);
            record[i] ^= 0x10;
        }
    }
}

/* A client that is killed. */

static void without_a_disk_nothing_is_stored(void **state)
{
    (void)state;
    w.disk = NULL;
    w.cfg.disk = NULL;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.n_stores, 0);
}

static void a_client_with_a_disk_behaves_as_one_without(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.client.stats.accepted, 1);
    assert_int_equal(w.client.stats.store_failures, 0);
    world_run(&w, SEC);
    assert_null(work_file());
    assert_non_null(fake_disk_file(&disk, ELV_PERSIST_BASE, 0));
}

static void no_chunk_leaves_before_the_work_is_durable(void **state)
{
    (void)state;
    w.store_us = 700 * MS;
    world_start(&w);
    while (w.server.n_chunk_puts == 0)
        assert_true(world_step(&w));
    assert_non_null(work_file());
    world_until(&w, decided);
    assert_int_equal(w.client.stats.accepted, 1);
}

static void killed_while_sending_it_sends_the_rest_of_the_same_bytes(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    const uint64_t nonce = w.client.commit.nonce;
    const uint32_t there = w.server.n_up, n = w.client.commit.n_chunks;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    memcpy(digest, w.client.commit.digest, sizeof digest);
    const uint32_t begun = w.trainer.n_begun;
    w.server.n_chunk_puts = 0;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.resumed, 1);
    assert_true(w.server.commit.nonce == nonce);
    assert_memory_equal(w.server.commit.digest, digest, sizeof digest);
    assert_int_equal(w.server.n_chunk_puts, n - there);
    assert_int_equal(w.trainer.n_begun, begun); /* it did not train again */
    assert_int_equal(w.server.n_decided, 1);
}

static void killed_again_and_again_it_gets_there(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    for (uint32_t life = 1; !accepted(&w); life++) { /* each a step longer than the one before */
        assert_in_range(life, 1, 200);
        for (uint32_t i = 0; i < life && !accepted(&w); i++)
            assert_true(world_step(&w));
        if (!accepted(&w))
            world_restart(&w, 0xB100 + life);
    }
    assert_true(w.server.commit.n_chunks > 0); /* decided, however often it was told so */
}

static void killed_before_the_verdict_it_sends_the_commit_again(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, committed);
    const uint32_t puts = w.server.n_chunk_puts;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.server.asked[ELV_OP_COMMIT], 2);
    assert_int_equal(w.server.n_chunk_puts, puts);
    world_run(&w, SEC);
    assert_null(work_file());
}

static void work_that_nobody_waits_for_any_more_is_dropped_after_one_commit(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    server_offer(&w.server, 2, 1); /* anything about assignment 1 is SUPERSEDED from now on */
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.resumed, 1);
    assert_int_equal(w.client.stats.superseded, 1);
    assert_int_equal(w.client.ticket.assignment, 2);
}

static void replaced_work_is_not_taken_up_after_a_restart(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    w.server.silent = true;
    world_run(&w, 100 * MS);
    w.server.silent = false;
    w.server.ticket.what = ELV_WHAT_WAIT;
    world_until(&w, waiting);
    world_run(&w, SEC);
    assert_null(work_file());
    world_restart(&w, 0xB008);
    world_until(&w, waiting);
    assert_int_equal(w.client.stats.resumed, 0);
}

static void killed_while_fetching_it_goes_on_with_the_download(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0; /* in full */
    world_start(&w);
    world_until(&w, fetched_half);
    const uint32_t there = w.client.transfer.have.n_set, n = w.client.transfer.have.n;
    assert_in_range(there, 1, n - 1);
    const uint32_t asked = chunks_asked();
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.replayed, there);
    assert_int_equal(chunks_asked() - asked, n - there);
    world_run(&w, SEC);
    assert_true(fake_disk_log(&disk, ELV_PERSIST_LOG) == NULL);
}

static void killed_while_fetching_steps_it_goes_on_too(void **state)
{
    (void)state;
    begin_with(layers, ELV_CODEC_Q8);
    server_offer(&w.server, 1, 1);
    w.server.ticket.full = (struct elv_body_ref){0};
    world_start(&w);
    world_until(&w, fetched_half);
    const uint32_t there = w.client.transfer.have.n_set, n = w.client.transfer.have.n;
    const uint32_t asked = w.server.asked[ELV_OP_STEP_CHUNK];
    assert_in_range(there, 1, n - 1);
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.replayed, there);
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK] - asked, n - there);
}

static void a_log_with_damage_in_it_loses_only_the_damaged_chunks(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    world_until(&w, fetched_half);
    const uint32_t there = w.client.transfer.have.n_set;
    struct fake_log *log = fake_disk_log(&disk, ELV_PERSIST_LOG);
    assert_non_null(log);
    log->at[300] ^= 1;
    log->len -= 5;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_in_range(w.client.stats.replayed, 1, there - 1);
    assert_int_equal(w.server.n_decided, 1);
}

static void killed_while_it_trains_it_need_not_fetch_again(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    world_until(&w, training);
    world_run(&w, MS);
    const uint32_t asked = chunks_asked();
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.restored, 1);
    assert_int_equal(chunks_asked(), asked);
}

static void a_base_that_is_damaged_is_fetched_again(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    world_until(&w, training);
    world_run(&w, MS);
    const struct fake_item *base = fake_disk_file(&disk, ELV_PERSIST_BASE, 0);
    assert_non_null(base);
    base->at[base->len / 2] ^= 1;
    const uint32_t asked = chunks_asked();
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.restored, 0);
    assert_true(chunks_asked() > asked);
}

static void work_that_is_damaged_is_made_again(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    const uint32_t begun = w.trainer.n_begun;
    work_file()->at[work_file()->len - 9] ^= 1;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.resumed, 0);
    assert_int_equal(w.trainer.n_begun, begun + 1);
    assert_int_equal(w.server.n_decided, 1);
}

static void state_of_another_run_is_not_used(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    w.server.manifest.run[3]++;
    server_encode_manifest(&w.server);
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.resumed, 0);
    assert_int_equal(w.client.stats.restored, 0);
}

static void every_truncation_of_the_files_is_as_if_there_were_none(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_last);
    const size_t base_len = fake_disk_file(&disk, ELV_PERSIST_BASE, 0)->len;
    const size_t work_len = work_file()->len;
    for (size_t cut = 0; cut < 200; cut++) { /* heads whole byte by byte, values here and there */
        struct fake_item *base = (struct fake_item *)fake_disk_file(&disk, ELV_PERSIST_BASE, 0);
        struct fake_item *work = (struct fake_item *)work_file();
        base->len = cut < 150 ? cut : base_len - 1 - (cut - 150) * 100;
        work->len = cut < 150 ? cut : work_len - 1 - (cut - 150) * 100;
        world_restart(&w, 0xB008 + cut);
        world_until(&w, waiting);
        assert_int_equal(w.client.stats.resumed, 0);
        assert_int_equal(w.client.stats.restored, 0);
        w.server.asked[ELV_OP_TICKET] = 0;
    }
}

static void what_stays_on_the_device_survives(void **state)
{
    (void)state;
    begin_with("dense 24 relu local, dense 10", ELV_CODEC_F32);
    world_start(&w);
    world_until(&w, uploading_half);
    static float local[PARAMS_MAX];
    const uint32_t n = w.client.model.n_params;
    memcpy(local, w.client.memory.base, n * sizeof(float));
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.restored, 1);
    assert_memory_equal(local, w.client.memory.base, n * sizeof(float));
}

static void a_disk_that_fails_costs_nothing_but_the_memory(void **state)
{
    (void)state;
    disk.fail = 1000;
    world_start(&w);
    world_until(&w, accepted);
    assert_true(w.client.stats.store_failures > 0);
    assert_int_equal(w.server.n_decided, 1);
}

static void told_to_stop_while_it_sends_it_parks_the_work(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, uploading_half);
    const uint32_t there = w.server.n_up, n = w.client.commit.n_chunks;
    world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
    world_until(&w, ended);
    assert_int_equal(w.exit_code, 0);
    assert_int_equal(w.server.n_commits, 0); /* nothing was declined */
    w.ended = false;
    w.server.n_chunk_puts = 0;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_in_range(w.server.n_chunk_puts, 1, n - there);
}

static void one_that_leaves_declines_as_without_a_disk(void **state)
{
    (void)state;
    w.cfg.leave_on_stop = true;
    world_start(&w);
    world_until(&w, uploading_half);
    world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
    world_until(&w, ended);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DECLINED);
    assert_int_equal(w.server.asked[ELV_OP_LEAVE], 1);
}

/* Error feedback: what was left over comes back as it was. */

enum { ROUNDS = 6 };
static const enum elv_decision decisions[ROUNDS] = {ELV_ACCEPTED, ELV_REFUSED,  ELV_ACCEPTED,
                                                    ELV_REFUSED,  ELV_ACCEPTED, ELV_ACCEPTED};

static void begin_feeding_back(enum elv_feedback kind, float momentum)
{
    struct fake_server *s = &w.server;
    fake_disk_init(&disk);
    world_init(&w, layers, ELV_CODEC_TERNARY, ELV_CODEC_Q8);
    w.disk = &disk;
    s->manifest.up[0].param = s->ticket.up.param = 0.02f;
    s->manifest.feedback = kind;
    s->manifest.feedback_age = 1;
    s->manifest.momentum_correction = momentum;
    server_encode_manifest(s);
    w.store_us = 30 * MS;
    s->wait_when_decided = false;
}

static void offer_round(uint32_t round)
{
    struct fake_server *s = &w.server;
    server_offer(s, round + 1, round < VERSIONS ? round : VERSIONS - 1);
    s->verdict = (struct elv_verdict){.decision = decisions[round]};
    if (decisions[round] == ELV_REFUSED)
        s->verdict.reason = round == 1 ? ELV_REASON_OVER_NORM : ELV_REASON_DIGEST;
    else
        s->verdict.decision = 0; /* accepted once all is there */
}

/* Six rounds; killed after so many steps, again and again, 0: never. */
static void train(uint32_t kill_every, uint8_t digests[ROUNDS][ELV_BODY_DIGEST_LEN],
                  uint32_t *kills)
{
    static struct elv_disk view;
    view = fake_disk_disk(&disk);
    w.cfg.disk = &view;
    offer_round(0);
    world_start(&w);
    *kills = 0;
    for (uint32_t i = 1, round = 0; round < ROUNDS; i++) {
        assert_in_range(i, 0, 20000);
        assert_true(world_step(&w));
        if (w.server.n_decided > round) {
            memcpy(digests[round], w.server.commit.digest, ELV_BODY_DIGEST_LEN);
            if (++round < ROUNDS)
                offer_round(round);
        }
        if (kill_every > 0 && i % kill_every == 0)
            world_restart(&w, 0xB100 + ++*kills);
    }
}

static void a_residual_survives_kills_at_any_step(void **state)
{
    (void)state;
    static const struct {
        enum elv_feedback kind;
        float momentum;
    } cases[] = {{ELV_FEEDBACK_F32, 0}, {ELV_FEEDBACK_F16, 0}, {ELV_FEEDBACK_F32, 0.9f}};
    static uint8_t want[ROUNDS][ELV_BODY_DIGEST_LEN], got[ROUNDS][ELV_BODY_DIGEST_LEN];
    uint32_t kills;
    world_free(&w);
    fake_disk_free(&disk);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_feeding_back(cases[i].kind, cases[i].momentum);
        train(0, want, &kills);
        assert_non_null(fake_disk_file(&disk, ELV_PERSIST_RESIDUAL, 0));
        for (uint32_t every = 21; every < 60; every++) {
            world_free(&w);
            fake_disk_free(&disk);
            begin_feeding_back(cases[i].kind, cases[i].momentum);
            train(every, got, &kills);
            assert_in_range(kills, 1, 1000);
            for (uint32_t round = 0; round < ROUNDS; round++)
                assert_memory_equal(want[round], got[round], ELV_BODY_DIGEST_LEN);
        }
        world_free(&w);
        fake_disk_free(&disk);
    }
    fake_disk_init(&disk);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_come_back_as_they_were),
        cmocka_unit_test(a_head_that_is_cut_off_or_another_s_is_none),
        cmocka_unit_test(a_record_is_whole_or_none),
        TEST(without_a_disk_nothing_is_stored),
        TEST(a_client_with_a_disk_behaves_as_one_without),
        TEST(no_chunk_leaves_before_the_work_is_durable),
        TEST(killed_while_sending_it_sends_the_rest_of_the_same_bytes),
        TEST(killed_again_and_again_it_gets_there),
        TEST(killed_before_the_verdict_it_sends_the_commit_again),
        TEST(work_that_nobody_waits_for_any_more_is_dropped_after_one_commit),
        TEST(replaced_work_is_not_taken_up_after_a_restart),
        TEST(killed_while_fetching_it_goes_on_with_the_download),
        TEST(killed_while_fetching_steps_it_goes_on_too),
        TEST(a_log_with_damage_in_it_loses_only_the_damaged_chunks),
        TEST(killed_while_it_trains_it_need_not_fetch_again),
        TEST(a_base_that_is_damaged_is_fetched_again),
        TEST(work_that_is_damaged_is_made_again),
        TEST(state_of_another_run_is_not_used),
        TEST(every_truncation_of_the_files_is_as_if_there_were_none),
        TEST(what_stays_on_the_device_survives),
        TEST(a_disk_that_fails_costs_nothing_but_the_memory),
        TEST(told_to_stop_while_it_sends_it_parks_the_work),
        TEST(one_that_leaves_declines_as_without_a_disk),
        TEST(a_residual_survives_kills_at_any_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
