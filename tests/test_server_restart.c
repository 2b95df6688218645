/* SPDX-License-Identifier: Apache-2.0 */
/* Whenever the server dies, it goes on as if it had not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/server_world.h"

enum { PEERS = 4, ROUNDS = 3 };

static void prepare(struct world *w, const char *down)
{
    world_init(w);
    world_set(w, "job", "rounds", "3");
    world_set(w, "select", "min_clients", "4");
    world_set(w, "sync", "deadline", "3600s");
    world_set(w, "transfer", "up", "q8");
    world_set(w, "transfer", "down", down);
}

/* The peers do what their tickets say until they are told to stop, or the server is dead. */
static bool drive(struct world *w, uint32_t attempt)
{
    for (uint32_t turn = 0; turn < 4 * ROUNDS; turn++) {
        for (uint32_t peer = 1; peer <= PEERS && !w->disk.dead; peer++) {
            struct elv_ticket t;
            if (world_ticket(w, peer, &t)) {
                if (t.what == ELV_WHAT_STOP)
                    return true;
                if (t.what == ELV_WHAT_TRAIN)
                    world_attempt(w, peer, attempt);
            } else if (!w->disk.dead) {
                world_join(w, peer);
            }
        }
    }
    return false;
}

static void undisturbed(const char *down, uint8_t digest[32], uint64_t *n_transactions)
{
    struct world w;
    prepare(&w, down);
    world_start(&w);
    assert_true(drive(&w, 1));
    memcpy(digest, elv_server_stats(w.s)->model, 32);
    *n_transactions = w.disk.n_transactions;
    world_free(&w);
}

static void revive(struct world *w, bool power, uint32_t attempt)
{
    world_crash(w, power);
    assert_int_equal(world_try_start(w), ELV_OK);
    assert_true(drive(w, attempt));
}

static void dying_at_any_transaction_gives_the_bytes_of_an_undisturbed_run(void **state)
{
    (void)state;
    static const char *const downs[] = {"f32", "q8"};
    for (size_t d = 0; d < 2; d++) {
        uint8_t digest[32];
        uint64_t n;
        undisturbed(downs[d], digest, &n);
        assert_true(n > 20);
        for (uint64_t k = 1; k <= n; k++) {
            struct world w;
            prepare(&w, downs[d]);
            w.disk.crash_at = k;
            world_start(&w);
            assert_false(drive(&w, 1) && !w.disk.dead);
            revive(&w, k % 2 == 0, k % 3 == 0 ? 2 : 1);
            assert_memory_equal(elv_server_stats(w.s)->model, digest, 32);
            assert_int_equal(elv_server_stats(w.s)->version, ROUNDS);
            world_free(&w);
        }
    }
}

static void dying_at_any_request_gives_the_bytes_of_an_undisturbed_run(void **state)
{
    (void)state;
    uint8_t digest[32];
    uint64_t n;
    undisturbed("q8", digest, &n);
    for (uint32_t k = 1;; k++) {
        struct world w;
        prepare(&w, "q8");
        world_start(&w);
        w.requests_left = k;
        if (drive(&w, 1)) {
            world_free(&w);
            break;
        }
        revive(&w, false, k % 2 == 0 ? 2 : 1);
        assert_memory_equal(elv_server_stats(w.s)->model, digest, 32);
        world_free(&w);
    }
}

static void dying_again_and_again_changes_nothing(void **state)
{
    (void)state;
    uint8_t digest[32];
    uint64_t n;
    undisturbed("q8", digest, &n);
    for (uint64_t step = 2; step < 9; step++) {
        struct world w;
        prepare(&w, "q8");
        w.disk.crash_at = step;
        world_start(&w);
        for (uint32_t lives = 1; !drive(&w, lives % 3 + 1); lives++) {
            assert_true(lives < 100);
            world_crash(&w, lives % 2 == 0);
            w.disk.crash_at = w.disk.n_transactions + step;
            assert_int_equal(world_try_start(&w), ELV_OK);
        }
        assert_memory_equal(elv_server_stats(w.s)->model, digest, 32);
        world_free(&w);
    }
}

static void a_transfer_goes_on_where_it_was(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket again;
    struct upload u;
    struct elv_progress p;
    world_init(&w);
    world_start(&w);
    world_join(&w, 1);
    assert_true(world_make(&w, &u, 1, 5));
    assert_int_equal(u.n_chunks, 5);
    world_put(&w, &u, 0);
    world_put(&w, &u, 3);
    world_crash(&w, false);
    world_start(&w);
    assert_true(world_ticket(&w, 1, &again));
    assert_int_equal(again.assignment, u.assignment);
    const struct world_reply *r = world_put(&w, &u, 3);
    assert_int_equal(elv_progress_decode((struct elv_bytes){r->body, r->len}, &p), ELV_OK);
    assert_int_equal(p.missing.first, 1);
    assert_int_equal(p.missing.have[0], 1 << 2); /* chunk 3 */
    assert_int_equal(elv_server_stats(w.s)->chunks_repeated, 1);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    world_free(&w);
}

/* Client 1 is interrupted, loses its slot to client 2, and sends everything again under the same
 * nonce, so some of its chunks lie in the log twice. However often the server dies, each counts
 * once. */
static void chunks_logged_twice_are_folded_once(void **state)
{
    (void)state;
    uint8_t digest[32];
    for (int crashes = 0; crashes < 3; crashes++) {
        struct world w;
        struct upload u;
        world_init(&w);
        w.cfg.limits.uploads_max = crashes == 0 ? 8 : 1;
        world_set(&w, "job", "rounds", "1");
        world_set(&w, "select", "min_clients", "3");
        world_set(&w, "sync", "quorum", "3");
        world_start(&w);
        for (uint32_t peer = 1; peer <= 3; peer++)
            world_join(&w, peer);
        assert_true(world_make(&w, &u, 1, 5));
        for (uint32_t i = 0; i < 4; i++)
            world_put(&w, &u, i);
        world_advance(&w, 6000000);
        assert_true(world_contribute(&w, 2));
        for (uint32_t i = 0; i < 3; i++)
            world_put(&w, &u, i);
        if (crashes == 2) {
            world_crash(&w, false);
            world_start(&w);
        }
        for (uint32_t i = 0; i < u.n_chunks; i++)
            world_put(&w, &u, i);
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
        if (crashes > 0) {
            world_crash(&w, true);
            world_start(&w);
        }
        assert_true(world_contribute(&w, 3));
        assert_true(w.ended);
        if (crashes > 0)
            assert_memory_equal(digest, elv_server_stats(w.s)->model, 32);
        memcpy(digest, elv_server_stats(w.s)->model, 32);
        world_free(&w);
    }
}

static void a_decision_is_the_same_for_ever(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float v[1020];
    struct upload u;
    enum elv_reason reason;
    world_init(&w);
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    world_ticket(&w, 1, &t);
    world_update(&w, 1, &t, v);
    v[17] = 9.0f; /* beyond the bound */
    world_encode(&w, &u, 1, &t, v, 5);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(&w, &u, i);
    assert_int_equal(world_verdict(world_commit(&w, &u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_OUT_OF_RANGE);
    world_crash(&w, true);
    world_start(&w);
    reason = ELV_REASON_NONE;
    assert_int_equal(world_verdict(world_commit(&w, &u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_OUT_OF_RANGE);
    assert_true(world_refused(world_put(&w, &u, 0), ELV_CODE_CONFLICT, ELV_REASON_DUPLICATE));
    world_free(&w);
}

static void a_restart_re_arms_what_is_left_of_the_deadline(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    world_start(&w);
    world_join(&w, 1);
    world_advance(&w, 12000000);
    world_crash(&w, false);
    w.now += 500000000; /* however long it was down */
    world_start(&w);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    assert_in_range(t.deadline_ms, 17000, 19001);
    world_free(&w);
}

static void all_contribute(struct world *w)
{
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_contribute(w, peer));
}

/* Version 1 is there, and version 2 on its way to the disk. */
static void come_to_storing(struct world *w)
{
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        world_join(w, peer);
    all_contribute(w);
    w->halt_storing = true;
    all_contribute(w);
    w->halt_storing = false;
    w->hold_stores = true;
    assert_true(w->s->version_store != 0);
}

static void stopping_while_a_version_is_stored_loses_neither(void **state)
{
    (void)state;
    uint8_t digest[32];
    uint64_t n;
    undisturbed("q8", digest, &n);
    struct world w;
    struct elv_event stop = {.kind = ELV_EV_STOP};
    prepare(&w, "q8");
    world_start(&w);
    come_to_storing(&w);
    world_event(&w, &stop);
    w.hold_stores = false;
    world_settle(&w);
    assert_true(w.ended);
    world_crash(&w, true);
    world_start(&w);
    assert_int_equal(elv_server_stats(w.s)->version, 2);
    assert_true(drive(&w, 1));
    assert_memory_equal(elv_server_stats(w.s)->model, digest, 32);
    world_free(&w);
}

static void a_score_that_comes_while_a_version_is_stored_does_not_undo_it(void **state)
{
    (void)state;
    for (int crash = 0; crash < 2; crash++) { /* as soon as it is stored, or later */
        struct world w;
        prepare(&w, "q8");
        world_add_scorer(&w);
        world_set(&w, "eval", "every", "1");
        world_set(&w, "data", "test", "idx /nowhere");
        w.accuracy[1] = 0.5;
        w.accuracy[2] = 0.25;
        world_start(&w);
        w.hold_work = ELV_WORK_EVALUATE;
        come_to_storing(&w);
        w.hold_work = (enum elv_server_work)0;
        world_settle(&w); /* the score of version 1 comes */
        w.hold_stores = false;
        if (crash)
            fake_disk_flush(&w.disk);
        else
            world_settle(&w);
        world_crash(&w, true);
        world_start(&w);
        assert_int_equal(elv_server_stats(w.s)->version, 2);
        if (!crash)
            assert_int_equal(elv_server_stats(w.s)->best_version, 1);
        world_free(&w);
    }
}

static void a_finished_job_is_still_finished(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    world_set(&w, "job", "rounds", "1");
    world_start(&w);
    world_join(&w, 1);
    assert_true(world_contribute(&w, 1));
    assert_true(w.ended);
    world_crash(&w, true);
    world_start(&w);
    assert_true(w.ended);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.what, ELV_WHAT_STOP);
    world_crash(&w, true);
    world_set(&w, "job", "rounds", "2"); /* more rounds: it goes on */
    world_start(&w);
    assert_false(w.ended);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(elv_server_stats(w.s)->version, 2);
    world_free(&w);
}

static void
a_restart_with_room_for_more_clients_does_not_change_an_open_rounds_weights(void **state)
{
    (void)state;
    uint8_t digest[32];
    for (int bigger = 0; bigger < 2; bigger++) {
        struct world w;
        world_init(&w);
        world_set(&w, "job", "rounds", "1");
        world_set(&w, "select", "min_clients", "2");
        world_start(&w);
        world_join(&w, 1);
        world_join(&w, 2);
        assert_true(world_contribute(&w, 1));
        world_crash(&w, true);
        w.cfg.limits.clients_max = bigger ? 20000 : 0;
        world_start(&w);
        assert_true(world_contribute(&w, 2));
        assert_true(w.ended);
        if (bigger)
            assert_memory_equal(digest, elv_server_stats(w.s)->model, 32);
        memcpy(digest, elv_server_stats(w.s)->model, 32);
        world_free(&w);
    }
}

static void memory_stays_within_six_models_and_16_mib(void **state)
{
    (void)state;
    static const char *const layers[] = {"dense 10", "dense 1000", "dense 1000, dense 1000"};
    static const char *const downs[] = {"f32", "q8"};
    for (size_t i = 0; i < 3; i++)
        for (size_t d = 0; d < 2; d++) {
            struct world w;
            world_init(&w);
            world_set(&w, "model", "input", "784x1x1");
            world_set(&w, "model", "layers", layers[i]);
            world_set(&w, "transfer", "down", downs[d]);
            world_start(&w);
            const size_t model = 4 * (size_t)w.job.model.n_shared;
            assert_true(w.len + sizeof *w.s <= (16u << 20) + 6 * model);
            world_free(&w);
        }
}

static void the_state_of_another_job_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_start(&w);
    world_crash(&w, true);
    world_set(&w, "job", "seed", "8");
    assert_int_equal(world_try_start(&w), ELV_ERR_MISMATCH);
    world_free(&w);
}

static void a_damaged_model_file_is_noticed(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_start(&w);
    world_crash(&w, true);
    w.disk.files.at[0].at[w.disk.files.at[0].len - 5] ^= 1;
    assert_int_equal(world_try_start(&w), ELV_ERR_FORMAT);
    world_free(&w);
}

/* Version 1, and a round in which one peer is decided and another has sent half. */
static void come_to_the_middle_of_a_round(struct world *w)
{
    static float v[1020];
    static struct upload u;
    struct elv_ticket t;
    prepare(w, "q8");
    world_set(w, "sync", "deadline", "10s");
    world_set(w, "sync", "quorum", "2");
    world_start(w);
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        world_join(w, peer);
    for (uint32_t peer = 1; peer <= PEERS; peer++)
        assert_true(world_contribute(w, peer));
    assert_int_equal(elv_server_stats(w->s)->version, 1);
    assert_true(world_contribute(w, 1));
    assert_true(world_ticket(w, 2, &t));
    world_update(w, 2, &t, v);
    world_encode(w, &u, 2, &t, v, 5);
    world_put(w, &u, 0);
}

/* Nothing that peers do afterwards may stop the server. */
static void go_on_as_far_as_it_goes(struct world *w)
{
    struct elv_ticket t;
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t peer = 1; peer <= PEERS; peer++)
            if (world_ticket(w, peer, &t) && t.what == ELV_WHAT_TRAIN && t.n_steps < 3)
                world_attempt(w, peer, 2);
        world_advance(w, 11000000);
    }
}

/* The store notices damage by sums of its own; should it not, this is the second line. */
static void any_damaged_record_is_refused_or_worked_with(void **state)
{
    static const uint8_t flips[] = {0x01, 0x80, 0xFF};
    uint32_t n_refused = 0, n_tried = 0;
    size_t n_records = 1;
    (void)state;
    for (size_t record = 0; record < n_records; record++) {
        size_t len = 1;
        for (size_t at = 0; at < len; at += at < 96 ? 1 : 13) {
            struct world w;
            come_to_the_middle_of_a_round(&w);
            world_crash(&w, false);
            n_records = w.disk.records.n;
            len = w.disk.records.at[record].len;
            w.disk.records.at[record].at[at] ^= flips[at % 3];
            n_tried++;
            if (world_try_start(&w) == ELV_OK)
                go_on_as_far_as_it_goes(&w);
            else
                n_refused++;
            world_free(&w);
        }
    }
    assert_in_range(n_refused, 100, n_tried);
}

static void any_damaged_log_byte_costs_a_chunk_at_most(void **state)
{
    (void)state;
    for (size_t at = 0; at < 4000; at += 17) {
        struct world w;
        come_to_the_middle_of_a_round(&w);
        world_crash(&w, false);
        struct fake_log *log = &w.disk.logs[w.disk.n_logs - 1];
        if (at < log->len) {
            log->at[at] ^= 0x41;
            assert_int_equal(world_try_start(&w), ELV_OK);
            go_on_as_far_as_it_goes(&w);
        }
        world_free(&w);
    }
}

static void any_damaged_file_byte_is_noticed(void **state)
{
    size_t n_files = 1;
    (void)state;
    for (size_t file = 0; file < n_files; file++) {
        for (size_t at = 0; at < 6000; at += 271) {
            struct world w;
            struct elv_ticket t;
            come_to_the_middle_of_a_round(&w);
            world_crash(&w, false);
            n_files = w.disk.files.n;
            struct fake_item *f = &w.disk.files.at[file];
            const uint32_t table = f->table;
            const uint64_t number = f->number;
            if (at < f->len) {
                f->at[at] ^= 0x10;
                const enum elv_err err = world_try_start(&w);
                if (table == ELV_FILE_MODEL && number == 1 && at > 600)
                    assert_int_equal(err, ELV_ERR_FORMAT);
                if (table == ELV_FILE_STEP && number == 1) { /* the full model will do */
                    assert_int_equal(err, ELV_OK);
                    assert_true(world_ticket(&w, 3, &t));
                    assert_int_equal(t.n_steps, 0);
                }
                if (err == ELV_OK)
                    go_on_as_far_as_it_goes(&w);
            }
            world_free(&w);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dying_at_any_transaction_gives_the_bytes_of_an_undisturbed_run),
        cmocka_unit_test(dying_at_any_request_gives_the_bytes_of_an_undisturbed_run),
        cmocka_unit_test(dying_again_and_again_changes_nothing),
        cmocka_unit_test(a_transfer_goes_on_where_it_was),
        cmocka_unit_test(chunks_logged_twice_are_folded_once),
        cmocka_unit_test(a_decision_is_the_same_for_ever),
        cmocka_unit_test(a_restart_re_arms_what_is_left_of_the_deadline),
        cmocka_unit_test(stopping_while_a_version_is_stored_loses_neither),
        cmocka_unit_test(a_score_that_comes_while_a_version_is_stored_does_not_undo_it),
        cmocka_unit_test(a_finished_job_is_still_finished),
        cmocka_unit_test(
            a_restart_with_room_for_more_clients_does_not_change_an_open_rounds_weights),
        cmocka_unit_test(memory_stays_within_six_models_and_16_mib),
        cmocka_unit_test(the_state_of_another_job_is_refused),
        cmocka_unit_test(a_damaged_model_file_is_noticed),
        cmocka_unit_test(any_damaged_record_is_refused_or_worked_with),
        cmocka_unit_test(any_damaged_log_byte_costs_a_chunk_at_most),
        cmocka_unit_test(any_damaged_file_byte_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
