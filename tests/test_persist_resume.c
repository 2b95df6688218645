/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is taken up again after a restart, and what happens while the disk is slow or full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client_world.h"

#include <cmocka.h>

static struct client_world w;
static struct fake_disk disk;
static struct elv_disk view;

static void begin_with(const char *layers, uint8_t up, float param)
{
    fake_disk_init(&disk);
    world_init(&w, layers, up, ELV_CODEC_F32);
    w.server.manifest.up[0].param = w.server.ticket.up.param = param;
    server_encode_manifest(&w.server);
    view = fake_disk_disk(&disk);
    w.disk = &disk;
    w.cfg.disk = &view;
}

static int setup(void **state)
{
    (void)state;
    begin_with("dense 24 relu, dense 10", ELV_CODEC_F32, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(&w);
    fake_disk_free(&disk);
    return 0;
}

static const struct fake_item *work_file(void)
{
    return fake_disk_file(&disk, ELV_PERSIST_WORK, 0);
}

static bool sending(const struct client_world *x) { return x->server.n_up > 0; }
static bool accepted(const struct client_world *x) { return x->client.stats.accepted > 0; }
static bool waiting(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_IDLE && x->client.joined &&
           x->server.asked[ELV_OP_TICKET] > 0;
}

static void whatever_the_codec_the_same_bytes_are_sent_after_a_restart(void **state)
{
    (void)state;
    static const struct elv_codec_choice up[] = {
        {ELV_CODEC_F16, 0},        {ELV_CODEC_Q8, 0},     {ELV_CODEC_Q8, -1.0f},
        {ELV_CODEC_Q4, -1.0f},     {ELV_CODEC_SIGN, 0},   {ELV_CODEC_TERNARY, 0.1f},
        {ELV_CODEC_TOPK, 0.1f},    {ELV_CODEC_ROTATE, 1}, {ELV_CODEC_ROTATE, 4},
        {ELV_CODEC_ROTATE, -2.0f},
    };
    for (size_t i = 0; i < sizeof up / sizeof up[0]; i++) {
        teardown(NULL);
        begin_with("dense 24 relu, dense 10", up[i].id, up[i].param);
        world_start(&w);
        world_until(&w, sending);
        uint8_t digest[ELV_BODY_DIGEST_LEN];
        memcpy(digest, w.client.commit.digest, sizeof digest);
        const uint64_t nonce = w.client.commit.nonce;
        const uint32_t begun = w.trainer.n_begun;
        world_restart(&w, 0xB008);
        world_until(&w, accepted);
        assert_int_equal(w.client.stats.resumed, 1);
        assert_int_equal(w.trainer.n_begun, begun); /* it did not train again */
        assert_memory_equal(w.server.commit.digest, digest, sizeof digest);
        assert_true(w.server.commit.nonce == nonce);
        assert_int_equal(w.server.n_decided, 1);
    }
}

static void work_that_does_not_fit_any_more_is_removed(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, sending);
    assert_non_null(work_file());
    work_file()->at[work_file()->len - 9] ^= 1;
    w.server.ticket.what = ELV_WHAT_WAIT;
    world_restart(&w, 0xB008);
    world_until(&w, waiting);
    world_run(&w, SEC);
    assert_int_equal(w.client.stats.resumed, 0);
    assert_null(work_file());
}

static bool uploading(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_UPLOADING;
}

static void work_that_found_no_room_is_declined_on_stopping(void **state)
{
    (void)state;
    for (uint32_t late = 0; late < 2; late++) { /* told before or after the disk said so */
        teardown(NULL);
        setup(NULL);
        w.store_us = 100 * MS;
        world_start(&w);
        while (!uploading(&w)) {
            disk.fail = 1000;
            assert_true(world_step(&w));
        }
        if (late)
            world_until(&w, sending);
        assert_int_equal(w.client.persist.pending != 0, !late);
        world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
        world_until(&w, ended);
        assert_int_equal(w.server.n_commits, 1);
        assert_int_equal(w.server.commit.status, ELV_STATUS_DECLINED);
        assert_int_equal(w.server.commit.reason, ELV_REASON_STOPPING);
    }
}

static void told_to_stop_it_waits_until_the_work_is_kept(void **state)
{
    (void)state;
    w.store_us = 100 * MS;
    world_start(&w);
    world_until(&w, uploading);
    assert_true(w.client.persist.pending != 0);
    world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
    world_until(&w, ended);
    assert_int_equal(w.server.n_commits, 0);
    assert_int_equal(w.server.n_chunk_puts, 0);
    assert_non_null(work_file());
    w.ended = false;
    world_restart(&w, 0xB008);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.resumed, 1);
}

/* A disk that fails may leave what was there before, or what it says it does not keep. */
static void nothing_is_left_of_work_that_was_not_kept(void **state)
{
    (void)state;
    const struct elv_action older = {.kind = ELV_DO_STORE,
                                     .store = {.kind = ELV_STORE_FILE,
                                               .table = ELV_PERSIST_WORK,
                                               .bytes = {(const uint8_t *)"older", 5}}};
    world_start(&w);
    while (w.client.phase != ELV_CLIENT_ENCODING || w.client.persist.pending != 0)
        assert_true(world_step(&w));
    fake_disk_submit(&disk, &older, 1);
    fake_disk_flush(&disk);
    assert_non_null(work_file());
    disk.fail = 1;
    world_until(&w, sending);
    world_run(&w, MS);
    assert_int_equal(w.client.stats.store_failures, 1);
    assert_null(work_file());
}

static bool storing_base(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_TRAINING && x->client.persist.pending != 0;
}

static bool idle_and_storing(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_IDLE && x->client.stats.accepted > 0 &&
           x->client.persist.pending != 0;
}

static void memory_the_disk_reads_is_not_planned_anew(void **state)
{
    (void)state;
    w.store_us = 10 * SEC;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    world_until(&w, storing_base);
    w.server.manifest.momentum += 0.25f;
    server_encode_manifest(&w.server);
    const uint32_t read = w.server.asked[ELV_OP_MANIFEST];
    while (w.client.persist.pending != 0) {
        assert_int_equal(w.server.asked[ELV_OP_MANIFEST], read);
        assert_true(world_step(&w));
    }
    assert_false(w.client.prepared);
    world_until(&w, accepted);
    assert_int_equal(w.server.asked[ELV_OP_MANIFEST], read + 1);
    assert_int_equal(w.client.stats.restored, 1);
}

static void begin_feeding_back(void)
{
    teardown(NULL);
    begin_with("dense 24 relu, dense 10", ELV_CODEC_TERNARY, 0.02f);
    w.server.manifest.feedback = ELV_FEEDBACK_F32;
    w.server.manifest.feedback_age = 1;
    server_encode_manifest(&w.server);
}

static void memory_the_disk_reads_is_not_restored_into(void **state)
{
    (void)state;
    begin_feeding_back();
    w.store_us = 10 * SEC;
    world_start(&w);
    world_until(&w, idle_and_storing);
    w.client.persist.restore_due = true;
    w.client.persist.at = ELV_RESTORE_BASE;
    world_event(&w, (struct elv_event){.kind = ELV_EV_TICK});
    assert_true(w.client.persist.pending != 0);
    assert_int_equal(w.work_id, 0);
    while (w.client.persist.restore_due)
        assert_true(world_step(&w));
    assert_true(w.client.persist.has_base);
}

static bool fetching(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_FETCHING;
}

static bool loading(const struct client_world *x) { return x->client.phase == ELV_CLIENT_LOADING; }

static void a_log_may_still_be_dropped_when_all_is_fetched(void **state)
{
    (void)state;
    w.store_us = 10 * SEC;
    server_offer(&w.server, 1, 3);
    w.server.ticket.n_steps = 0;
    world_start(&w);
    while (!w.client.prepared || w.client.persist.restore_due)
        assert_true(world_step(&w));
    w.client.persist.log_len = UINT64_C(1) << 30; /* of downloads that were given up */
    world_until(&w, fetching);
    assert_true(w.client.persist.pending_drop);
    world_until(&w, loading);
    assert_true(w.client.persist.pending_drop);
    world_until(&w, accepted);
    assert_int_equal(w.client.stats.store_failures, 0);
    assert_non_null(fake_disk_file(&disk, ELV_PERSIST_BASE, 0));
}

static bool left_is_stored(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_IDLE && x->client.joined &&
           fake_disk_file(x->disk, ELV_PERSIST_RESIDUAL, 0) != NULL;
}

static void that_nothing_is_left_is_kept_without_the_memory_for_it(void **state)
{
    (void)state;
    static const enum elv_feedback kinds[] = {ELV_FEEDBACK_F32, ELV_FEEDBACK_F16};
    for (size_t i = 0; i < 2; i++) {
        begin_feeding_back();
        w.server.manifest.feedback = kinds[i];
        w.server.manifest.momentum_correction = 0.9f;
        server_encode_manifest(&w.server);
        w.server.verdict.decision = ELV_REFUSED;
        w.server.verdict.reason = ELV_REASON_OVER_NORM;
        world_start(&w);
        world_until(&w, sending);
        const struct elv_residual_cfg r = w.client.residual.cfg;
        memset(r.values, 0xFF, r.n * elv_residual_size(r.kind)); /* as it was found */
        memset(r.velocity, 0xFF, r.n * sizeof *r.velocity);
        world_until(&w, left_is_stored);
        world_run(&w, MS);
        assert_int_equal(fake_disk_file(&disk, ELV_PERSIST_RESIDUAL, 0)->len, ELV_PERSIST_LEFT_LEN);
        assert_null(fake_disk_file(&disk, ELV_PERSIST_VELOCITY, 0));
        w.server.asked[ELV_OP_TICKET] = 0;
        world_restart(&w, 0xB008);
        world_until(&w, waiting);
        assert_true(w.client.persist.has_left);
        assert_int_equal(w.client.persist.found_left.assignment, 1);
        assert_false(w.client.residual.saved.held);
        server_offer(&w.server, 2, 1); /* and the next one is not led astray by it */
        w.server.verdict = (struct elv_verdict){0};
        world_until(&w, accepted);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whatever_the_codec_the_same_bytes_are_sent_after_a_restart),
        TEST(work_that_does_not_fit_any_more_is_removed),
        TEST(work_that_found_no_room_is_declined_on_stopping),
        TEST(told_to_stop_it_waits_until_the_work_is_kept),
        TEST(nothing_is_left_of_work_that_was_not_kept),
        TEST(memory_the_disk_reads_is_not_planned_anew),
        TEST(memory_the_disk_reads_is_not_restored_into),
        TEST(a_log_may_still_be_dropped_when_all_is_fetched),
        TEST(that_nothing_is_left_is_kept_without_the_memory_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
