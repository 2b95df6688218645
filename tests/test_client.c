/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "tests/client_world.h"

#include <cmocka.h>

static const char *const layers = "dense 24 relu, dense 10";
static struct client_world w;

static int setup(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(&w);
    return 0;
}

/* The usual course. */

/* What the trainer makes of version `v` in round `round`. */
static void expect_update(uint32_t v, uint32_t round, float *out)
{
    static float weights[PARAMS_MAX];
    const struct elv_model *m = &w.server.model;
    struct fake_trainer t = w.trainer;
    const struct elv_task task = {
        .seed = 42, .client = 7, .round = round, .local_epochs = 2, .batch = 8};
    memcpy(weights, w.server.version[v], m->n_params * sizeof(float));
    w.cfg.trainer.begin(&t, &task, weights);
    w.cfg.trainer.run(&t, 1000);
    for (uint32_t i = 0; i < m->n_params; i++)
        out[i] = weights[i] - w.server.version[v][i];
}

static void check_update(uint32_t version, uint32_t round, float tolerance)
{
    static float want[PARAMS_MAX], got[PARAMS_MAX];
    expect_update(version, round, want);
    server_update(&w.server, got);
    for (uint32_t i = 0; i < w.server.model.n_shared; i++)
        assert_true(fabsf(got[i] - want[i]) <= tolerance);
}

static void a_client_trains_from_the_seed_and_its_update_is_what_it_learnt(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_F32);
    world_start(&w);
    world_until(&w, decided);
    check_update(0, 101, 0);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], 0); /* version 0 costs no airtime */
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 0);
    assert_int_equal(w.server.asked[ELV_OP_UPDATE_CHUNK], w.server.commit.n_chunks);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
    assert_int_equal(w.server.commit.samples, 40);
    assert_int_equal(w.server.commit.steps, 20);
    assert_int_equal(w.server.commit.seen, 160);
    assert_true(w.server.commit.loss_sum == 30.0);
    assert_int_equal(w.server.commit.compute_ms, 300);
    assert_int_equal(w.server.join.memory, w.mem_len);
    assert_int_equal(w.server.join.samples, 40);
    assert_int_equal(w.client.stats.accepted, 1);
    assert_int_equal(w.client.stats.chunks_repeated, 0);
    assert_true(w.client.stats.bytes_up > w.server.model.n_params * sizeof(float));
}

static void a_q8_update_is_close_and_a_quarter_of_the_bytes(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    check_update(0, 101, 0.3f / 127);
    assert_in_range(w.client.stats.bytes_up, w.server.model.n_params,
                    w.server.model.n_params * 11 / 10);
}

/* The update of an assignment, rounded by its own dice. */
static void check_rounded(uint32_t assignment)
{
    static float want[PARAMS_MAX], back[PARAMS_MAX], got[PARAMS_MAX];
    const struct elv_codec *q8 = elv_codec_by_id(ELV_CODEC_Q8);
    const struct elv_codec_arg arg = {.seed = elv_delta_seed(42, 7, assignment), .param = -1.0f};
    const uint32_t n = w.server.model.n_shared;
    expect_update(0, assignment + 100, want);
    for (uint32_t first = 0, count; first < n; first += count) {
        uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
        size_t len;
        assert_int_equal(q8->encode(want, n, first, 0, &arg, bytes, sizeof bytes, &len, &count),
                         ELV_OK);
        assert_int_equal(elv_codec_decode(q8, (struct elv_bytes){bytes, len}, count, back + first),
                         ELV_OK);
    }
    server_update(&w.server, got);
    assert_memory_equal(got, back, n * sizeof *got);
}

static void each_assignment_rounds_at_random_by_dice_of_its_own(void **state)
{
    (void)state;
    w.server.manifest.up[0].param = w.server.ticket.up.param = -1.0f;
    server_encode_manifest(&w.server);
    world_start(&w);
    world_until(&w, decided);
    check_rounded(1);
    server_offer(&w.server, 2, 0);
    w.server.n_decided = 0;
    world_until(&w, decided);
    check_rounded(2);
    assert_int_not_equal(elv_delta_seed(42, 7, 1), elv_delta_seed(42, 7, 2));
    assert_int_not_equal(elv_delta_seed(42, 7, 1), elv_delta_seed(42, 8, 1));
}

static void next(uint32_t assignment, uint32_t version)
{
    server_offer(&w.server, assignment, version);
    w.server.n_decided = 0;
    world_until(&w, decided);
    check_update(version, assignment + 100, 0.3f / 127);
}

static void later_versions_come_by_steps_when_that_is_cheaper(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    const uint32_t per_step = w.server.step[1].ref.n_chunks;
    next(2, 1);
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], per_step);
    next(3, 3); /* two steps at once */
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 3 * per_step);
    next(4, 3); /* the same version again */
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 3 * per_step);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], 0);
}

static void a_newcomer_starts_from_the_seed_and_takes_all_steps(void **state)
{
    (void)state;
    server_offer(&w.server, 9, 2);
    world_start(&w);
    world_until(&w, decided);
    check_update(2, 109, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 2 * w.server.step[1].ref.n_chunks);
}

static void out_of_reach_of_the_steps_the_full_model_is_fetched(void **state)
{
    (void)state;
    server_offer(&w.server, 9, 4); /* three steps are offered */
    world_start(&w);
    world_until(&w, decided);
    check_update(4, 109, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 0);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], w.server.full[4].ref.n_chunks);
    next(10, 1); /* the server went back: restored from an older state */
    next(11, 4);
}

static void steps_that_are_not_cheaper_are_not_fetched(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_F32);
    server_offer(&w.server, 1, 1);
    world_start(&w);
    world_until(&w, decided);
    check_update(1, 101, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_STEP_CHUNK], 0);
}

static void layers_marked_local_stay_and_go_on_learning(void **state)
{
    (void)state;
    static float before[PARAMS_MAX], update[PARAMS_MAX];
    world_init(&w, "dense 24 relu local, dense 10", ELV_CODEC_F32, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, decided);
    const struct elv_model *m = &w.server.model;
    const float *base = w.client.memory.base;
    assert_int_equal(m->n_shared, 250);
    assert_int_equal(w.server.commit.n_chunks, 1);
    memcpy(before, base, m->n_params * sizeof(float));
    for (uint32_t i = m->n_params - 250; i < m->n_params; i++)
        assert_true(before[i] == w.server.version[0][i - (m->n_params - 250)]);

    server_offer(&w.server, 2, 4); /* in full: the shared part is replaced, the local one kept */
    w.server.n_decided = 0;
    world_until(&w, decided);
    server_update(&w.server, update);
    assert_int_equal(w.server.commit.n_chunks, 1);
    for (uint32_t i = m->n_params - 250; i < m->n_params; i++)
        assert_true(base[i] == w.server.version[4][i - (m->n_params - 250)]);
    uint32_t n_moved = 0;
    for (uint32_t i = 0; i < m->n_params - 250; i++) {
        assert_true(fabsf(base[i] - before[i]) < 0.21f);
        n_moved += base[i] != before[i];
    }
    assert_true(n_moved > (m->n_params - 250) * 9 / 10);
}

static void an_evaluation_commits_sums_without_chunks(void **state)
{
    (void)state;
    w.server.ticket.what = ELV_WHAT_EVALUATE;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
    assert_int_equal(w.server.commit.n_chunks, 0);
    assert_int_equal(w.server.commit.eval.n, 4);
    assert_int_equal(w.server.commit.eval.correct[1], 2);
    assert_int_equal(w.trainer.n_begun, 0);
    assert_int_equal(w.client.stats.evaluations, 1);
}

static void with_a_holdout_the_weights_received_are_evaluated_before_training(void **state)
{
    (void)state;
    w.server.manifest.holdout = 0.2f;
    server_encode_manifest(&w.server);
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.eval.n, 4);
    assert_true(w.server.commit.n_chunks > 0);
    w.trainer.evaluate_err = ELV_ERR_UNSUPPORTED; /* cannot: then it only trains */
    next(2, 1);
    assert_int_equal(w.server.commit.eval.n, 0);
}

static void once_means_one_training_and_then_the_end(void **state)
{
    (void)state;
    w.cfg.once = true;
    w.cfg.leave_on_stop = true;
    world_start(&w);
    world_until(&w, ended);
    assert_int_equal(w.exit_code, 0);
    assert_int_equal(w.server.n_decided, 1);
    assert_int_equal(w.server.asked[ELV_OP_LEAVE], 1);
}

static void the_server_says_stop(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    w.server.ticket.what = ELV_WHAT_STOP;
    world_until(&w, ended);
    assert_int_equal(w.exit_code, 0);
}

static bool training(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_TRAINING;
}
static bool uploading(const struct client_world *x) { return x->server.n_up >= 3; }
static bool committing(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_COMMITTING;
}

static void polls_are_paced_and_go_on_during_training(void **state)
{
    (void)state;
    w.work_us = 60 * SEC;
    world_start(&w);
    world_until(&w, training);
    const uint32_t before = w.server.asked[ELV_OP_TICKET];
    world_run(&w, 50 * SEC);
    const uint32_t n = w.server.asked[ELV_OP_TICKET] - before;
    assert_in_range(n, 70, 100); /* 500 ms to 625 ms and a round trip apart */
}

static void who_has_done_the_work_asks_for_more_at_once_and_who_has_failed_does_not(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.server.ticket.poll_ms = 30000;
        if (fails)
            w.trainer.samples = 0;
        world_start(&w);
        world_until(&w, decided);
        world_run(&w, 20 * SEC);
        assert_int_equal(w.server.asked[ELV_OP_TICKET], fails ? 1 : 2);
        world_free(&w);
    }
}

static void an_observer_hears_of_work_without_asking(void **state)
{
    (void)state;
    w.cfg.observe = true;
    w.server.ticket.what = ELV_WHAT_WAIT;
    world_start(&w);
    world_run(&w, 30 * SEC); /* it asks until it has seen that the server does tell */
    assert_in_range(w.server.asked[ELV_OP_TICKET], 45, 60);
    world_notify(&w);
    world_run(&w, SEC);
    const uint32_t before = w.server.asked[ELV_OP_TICKET];
    world_run(&w, 2 * SEC);
    server_offer(&w.server, 1, 0);
    world_notify(&w);
    world_until(&w, training);
    assert_int_equal(w.server.asked[ELV_OP_TICKET], before);
    world_until(&w, decided);
    world_run(&w, 400 * SEC);
    assert_in_range(w.server.asked[ELV_OP_TICKET] - before, 100, 140); /* it asks now and then */
}

/* Networks. */

static uint32_t nth;
static int every_nth_lost(uint32_t n, elv_time_us *late)
{
    (void)late;
    return n % nth == nth - 1 ? FATE_LOST : 0;
}

static int all_twice(uint32_t n, elv_time_us *late)
{
    (void)n, (void)late;
    return 1;
}

static int shuffled(uint32_t n, elv_time_us *late)
{
    *late = (elv_time_us)(n * 2654435761u >> 26) * 4 * MS;
    return n % 7 == 3 ? 1 : n % 11 == 5 ? FATE_LOST : 0;
}

static int a_third_lost(uint32_t n, elv_time_us *late)
{
    (void)late;
    return (n * 2654435761u >> 24) < 85 ? FATE_LOST : 0;
}

/* The digest of the update of assignment 9, by way of the full model. */
static void digest_through(int (*how)(uint32_t, elv_time_us *), uint8_t out[ELV_BODY_DIGEST_LEN])
{
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    server_offer(&w.server, 9, 4);
    w.fate = how;
    world_start(&w);
    world_until(&w, decided);
    check_update(4, 109, 0);
    memcpy(out, w.server.commit.digest, ELV_BODY_DIGEST_LEN);
    assert_true(w.n_sends < 3000);
    world_free(&w);
}

static void the_update_is_the_same_bytes_over_any_network(void **state)
{
    (void)state;
    uint8_t want[ELV_BODY_DIGEST_LEN], got[ELV_BODY_DIGEST_LEN];
    digest_through(NULL, want);
    static int (*const networks[])(uint32_t, elv_time_us *) = {all_twice, shuffled, a_third_lost};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        digest_through(networks[i], got);
        assert_memory_equal(got, want, sizeof want);
    }
    for (nth = 5; nth <= 21; nth += 2) { /* not so that a chunk meets the same fate for ever */
        digest_through(every_nth_lost, got);
        assert_memory_equal(got, want, sizeof want);
    }
}

static void the_same_run_gives_the_same_actions_at_the_same_times(void **state)
{
    (void)state;
    uint64_t log[2];
    for (int i = 0; i < 2; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.fate = shuffled;
        world_start(&w);
        world_until(&w, decided);
        log[i] = w.log;
        world_free(&w);
    }
    assert_true(log[0] == log[1]);
}

static void a_restarted_client_makes_the_same_update_under_another_nonce(void **state)
{
    (void)state;
    uint8_t digest[ELV_BODY_DIGEST_LEN], tag[ELV_CHUNK_TAG_LEN];
    world_start(&w);
    world_until(&w, uploading);
    memcpy(tag, w.server.tag, sizeof tag);
    world_restart(&w, 0xB008);
    world_until(&w, decided);
    assert_memory_not_equal(tag, w.server.tag, sizeof tag);
    assert_int_equal(w.server.n_decided, 1);
    memcpy(digest, w.server.commit.digest, sizeof digest);
    uint64_t nonce = 0;
    for (uint32_t i = 8; i > 0; i--)
        nonce = nonce << 8 | w.server.tag[i - 1];
    assert_true(nonce == w.server.commit.nonce);
    world_free(&w);

    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8); /* never interrupted */
    world_start(&w);
    world_until(&w, decided);
    assert_memory_equal(digest, w.server.commit.digest, sizeof digest);
}

static void one_that_slept_reads_what_came_before_it_asks_again(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, uploading);
    w.now += 3600LL * SEC; /* answers are on their way, and timers have run out long ago */
    for (uint32_t i = 0; i < w.n_queue; i++)
        w.queue[i].at += 3600LL * SEC;
    world_until(&w, decided);
    assert_int_equal(w.n_relinks, 0);
    assert_in_range(w.client.stats.chunks_repeated, 0, 1); /* a probe was due anyway */
    check_update(0, 101, 0);
}

static void a_silent_server_gets_new_associations_and_what_it_has_is_not_sent_again(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, uploading);
    w.server.silent = true;
    w.n_queue = 0;
    const elv_time_us since = w.now;
    while (w.n_relinks == 0)
        assert_true(world_step(&w));
    assert_in_range(w.now - since, 1900 * MS, 2600 * MS);
    assert_int_equal(w.client.transfer.n_flying, 1); /* one asks the way for all */
    world_run(&w, 300 * SEC);
    assert_in_range(w.n_relinks, 7, 14); /* after 2, 4, 8 ... 60 s, more or less */
    assert_int_equal(w.client.phase, ELV_CLIENT_UPLOADING);
    const uint32_t puts = w.server.n_chunk_puts;
    w.server.silent = false;
    world_until(&w, decided);
    check_update(0, 101, 0);
    const uint32_t n = w.server.commit.n_chunks;
    assert_in_range(w.server.n_chunk_puts, n, n + 20); /* what was in flight, and one probe */
    assert_true(puts < n);
    assert_int_equal(w.trainer.n_begun, 1); /* the assignment was kept */
}

static void what_was_asked_on_a_replaced_association_is_asked_again_at_once(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    w.server.silent = true;
    while (w.n_relinks == 0)
        assert_true(world_step(&w));
    const uint32_t id = w.client.control.id, n_sends = w.n_sends;
    const uint32_t n_failures = w.client.control.n_failures;
    assert_int_not_equal(id, 0);
    world_event(&w,
                (struct elv_event){.kind = ELV_EV_NO_ANSWER, .id = id, .err = ELV_ERR_CANCELLED});
    assert_int_equal(w.n_sends, n_sends + 1);
    assert_int_not_equal(w.client.control.id, id);
    assert_int_equal(w.n_relinks, 1);
    assert_int_equal(w.client.control.n_failures, n_failures);
}

static void a_chunk_sent_on_a_replaced_association_is_sent_again_at_once(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, uploading);
    w.server.silent = true;
    w.n_queue = 0;
    while (w.n_relinks == 0)
        assert_true(world_step(&w));
    uint32_t id = 0;
    for (uint32_t i = 0; i < w.client.transfer.n_flights; i++)
        if (w.client.transfer.flights[i].state == ELV_FLIGHT_FLYING)
            id = w.client.transfer.flights[i].id[0];
    assert_int_not_equal(id, 0);
    const uint32_t n_sends = w.n_sends;
    world_event(&w,
                (struct elv_event){.kind = ELV_EV_NO_ANSWER, .id = id, .err = ELV_ERR_CANCELLED});
    assert_int_equal(w.n_sends, n_sends + 1);
    assert_int_equal(w.n_relinks, 1);
    w.server.silent = false;
    world_until(&w, decided);
}

static void a_server_silent_from_the_start_is_asked_for_ever_ever_more_rarely(void **state)
{
    (void)state;
    w.server.silent = true;
    world_start(&w);
    uint32_t before = w.n_sends;
    for (; w.n_relinks == 0; before = w.n_relinks == 0 ? w.n_sends : before)
        assert_true(world_step(&w));
    assert_int_equal(w.n_sends, before + 1); /* over the new one at once */
    world_run(&w, 3600LL * SEC);
    assert_false(w.ended);
    assert_in_range(w.n_sends, 60, 200);
    w.server.silent = false;
    world_until(&w, decided);
}

static void chunks_cut_short_or_of_another_body_are_asked_for_again(void **state)
{
    (void)state;
    for (w.server.garble_every = 2; w.server.garble_every < 6; w.server.garble_every++) {
        const uint32_t every = w.server.garble_every;
        world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
        w.server.garble_every = every;
        server_offer(&w.server, 1, 4);
        world_start(&w);
        world_until(&w, decided);
        check_update(4, 101, 0);
        assert_true(w.client.stats.bad_chunks >= 26 / every);
        server_offer(&w.server, 2, 3);
        server_offer(&w.server, 3, 4); /* held already */
        w.server.n_decided = 0;
        world_until(&w, decided);
        world_free(&w);
    }
}

/* Digests that do not fit. */

static void a_seed_that_does_not_give_version_zero_costs_a_full_fetch(void **state)
{
    (void)state;
    server_offer(&w.server, 1, 2); /* this job started from a file: its version 0 is another */
    w.server.ticket.version = 0;
    w.server.ticket.n_steps = 0;
    world_start(&w);
    world_until(&w, decided);
    check_update(2, 101, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], w.server.full[2].ref.n_chunks);
}

static void a_step_that_leads_elsewhere_is_replaced_by_the_full_model(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    server_offer(&w.server, 2, 2);
    w.server.ticket.step[0] = w.server.step[3].ref;
    w.server.n_decided = 0;
    world_until(&w, decided);
    check_update(2, 102, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], w.server.full[2].ref.n_chunks);
    next(3, 3);
}

static void a_body_whose_digest_differs_is_never_applied(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    server_offer(&w.server, 2, 1);
    w.server.step[1].bytes[2][40] ^= 1; /* damaged on the server's disk */
    w.server.full[1].bytes[3][40] ^= 1;
    w.server.n_decided = 0;
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
    assert_int_equal(w.server.commit.reason, ELV_REASON_DIGEST);
    assert_int_equal(w.trainer.n_begun, 1);
    next(3, 3);
}

static void a_step_that_is_gone_is_replaced_by_the_full_model(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    server_offer(&w.server, 2, 2);
    w.server.refuse[ELV_OP_STEP_CHUNK] =
        (struct refusal_script){ELV_CODE_NOT_FOUND, ELV_REASON_SUPERSEDED, 0, UINT32_MAX};
    w.server.n_decided = 0;
    world_until(&w, decided);
    check_update(2, 102, 0.3f / 127);
    assert_int_equal(w.server.asked[ELV_OP_MODEL_CHUNK], w.server.full[2].ref.n_chunks);
}

static void a_model_that_is_gone_ends_in_a_failure_and_the_next_ticket_is_taken(void **state)
{
    (void)state;
    w.server.refuse[ELV_OP_MODEL_CHUNK] =
        (struct refusal_script){ELV_CODE_NOT_FOUND, ELV_REASON_NONE, 0, UINT32_MAX};
    server_offer(&w.server, 1, 4);
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
    next(2, 1);
}

static void an_idle_client_does_not_mistake_quiet_for_silence(void **state)
{
    (void)state;
    w.server.ticket.what = ELV_WHAT_WAIT;
    w.server.ticket.poll_ms = 30000;
    world_start(&w);
    world_run(&w, 600 * SEC);
    assert_int_equal(w.n_relinks, 0);
    assert_in_range(w.server.asked[ELV_OP_TICKET], 16, 21);
}

static void chunks_are_not_sent_twice_to_a_server_that_lists_nothing(void **state)
{
    (void)state;
    w.server.lists_nothing = true;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.n_chunk_puts, w.server.commit.n_chunks);
}

/* Interruptions. */

static void a_newer_assignment_cancels_training_and_is_done_instead(void **state)
{
    (void)state;
    w.work_us = 20 * SEC;
    world_start(&w);
    world_until(&w, training);
    world_run(&w, 2 * SEC);
    server_offer(&w.server, 2, 1);
    w.work_us = 300 * MS;
    const elv_time_us since = w.now;
    world_until(&w, decided);
    assert_int_equal(w.n_cancels, 1);
    assert_int_equal(w.trainer.n_aborted, 1);
    assert_int_equal(w.client.stats.cancelled, 1);
    assert_int_equal(w.client.stats.superseded, 1);
    check_update(1, 102, 0.3f / 127);
    assert_true(w.now - since < 4 * SEC); /* it did not wait for the old training */
}

static bool loading(const struct client_world *x) { return x->client.phase == ELV_CLIENT_LOADING; }
static bool encoding(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_ENCODING;
}
static bool fetching(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_FETCHING && x->client.transfer.have.n_set > 2;
}

/* Superseded in each phase; what was half done must not show in the next update. */
static void a_newer_assignment_is_taken_up_from_any_phase(void **state)
{
    (void)state;
    static bool (*const phases[])(const struct client_world *) = {fetching, loading, training,
                                                                  encoding, uploading};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
        w.work_us = 3 * SEC;
        w.cfg.burst = 1;
        w.delay_us = 300 * MS;
        server_offer(&w.server, 1, 2);
        world_start(&w);
        world_until(&w, phases[i]);
        server_offer(&w.server, 2, 3);
        world_until(&w, decided);
        check_update(3, 102, 0);
        assert_int_equal(w.client.stats.superseded, 1);
        world_free(&w);
    }
}

static void work_called_off_is_dropped_until_there_is_other_work(void **state)
{
    (void)state;
    w.work_us = 20 * SEC;
    world_start(&w);
    world_until(&w, training);
    w.server.ticket.what = ELV_WHAT_WAIT;
    world_run(&w, 3 * SEC);
    assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
    assert_int_equal(w.n_cancels, 1);
    w.work_us = 300 * MS;
    next(2, 0);
}

/* How the server makes the assignment void in the middle of training. */
static void call_off(enum elv_what what)
{
    if (what == ELV_WHAT_TRAIN)
        server_offer(&w.server, 2, 0);
    else
        w.server.ticket.what = what;
}

static bool cancelled(const struct client_world *x) { return x->n_cancels > 0; }
static bool free_again(const struct client_world *x) { return x->client.stats.cancelled > 0; }
static bool at_new_work(const struct client_world *x)
{
    return x->client.ticket.assignment == 2 && x->client.phase == ELV_CLIENT_TRAINING;
}

static void in_training(bool observe)
{
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    w.cfg.observe = observe;
    w.work_us = SEC;
    world_start(&w);
    world_until(&w, training);
    w.work_us = 3600LL * SEC;
    w.work_at = w.now + w.work_us;
    world_run(&w, 10 * SEC);
    assert_int_equal(w.n_cancels, 0);
}

/* The news takes one way to the device, and the step that brings it cancels the training; a slice
 * later the device is at the new work. */
static void news_in_the_middle_of_training_cancels_it_on_arrival(void **state)
{
    (void)state;
    static const enum elv_what news[] = {ELV_WHAT_TRAIN, ELV_WHAT_WAIT, ELV_WHAT_STOP};
    for (size_t i = 0; i < 3; i++) {
        in_training(true);
        call_off(news[i]);
        world_notify(&w);
        const elv_time_us since = w.now;
        w.work_us = 300 * MS;
        world_until(&w, cancelled);
        assert_int_equal(w.now - since, w.delay_us);
        world_until(&w, free_again);
        assert_in_range(w.now - since, w.delay_us, w.delay_us + MS); /* the slice under way */
        if (news[i] == ELV_WHAT_TRAIN) {
            world_until(&w, at_new_work); /* version 0: nothing to fetch, but 300 ms of loading */
            assert_int_equal(w.now - since, w.delay_us + MS + 300 * MS);
            world_until(&w, decided);
            check_update(0, 102, 0.3f / 127);
        } else if (news[i] == ELV_WHAT_WAIT) {
            world_run(&w, 10 * SEC);
            assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
        } else {
            world_until(&w, ended);
            assert_int_equal(w.exit_code, ELV_CLIENT_OVER);
        }
        assert_int_equal(w.trainer.n_aborted, 1);
        world_free(&w);
    }
}

/* A notification overtakes the answer to a poll that was asked for before it. */
static void a_ticket_that_was_overtaken_changes_nothing(void **state)
{
    (void)state;
    static const enum elv_what old[] = {ELV_WHAT_TRAIN, ELV_WHAT_WAIT};
    for (size_t i = 0; i < 2; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.cfg.observe = true;
        w.server.ticket.what = old[i];
        w.work_us = 3600LL * SEC;
        world_start(&w);
        world_run(&w, 10 * SEC);
        while (w.client.control.op != ELV_OP_TICKET)
            assert_true(world_step(&w));
        server_offer(&w.server, 2, 0);
        w.observed = w.client.control.observation; /* it has not seen the new request yet */
        world_notify(&w);
        w.queue[w.n_queue - 1].at = w.now; /* the answer is still under way */
        w.work_us = SEC;
        world_until(&w, decided);
        assert_int_equal(w.n_cancels, old[i] == ELV_WHAT_TRAIN);
        assert_int_equal(w.client.stats.superseded, old[i] == ELV_WHAT_TRAIN);
        check_update(0, 102, 0.3f / 127);
        world_free(&w);
    }
}

static void who_only_polls_learns_it_with_the_next_poll(void **state)
{
    (void)state;
    static const enum elv_what news[] = {ELV_WHAT_TRAIN, ELV_WHAT_WAIT, ELV_WHAT_STOP};
    const elv_time_us poll = 500 * MS;
    for (size_t i = 0; i < 3; i++) {
        for (elv_time_us after = 0; after < poll; after += 97 * MS) {
            in_training(false);
            world_run(&w, after);
            call_off(news[i]);
            const elv_time_us since = w.now;
            w.work_us = 300 * MS;
            world_until(&w, cancelled);
            /* polls are up to a quarter and a round trip further apart than the server asks for */
            assert_in_range(w.now - since, 0, poll + poll / 4 + 2 * w.delay_us);
            world_until(&w, free_again);
            world_free(&w);
        }
    }
}

static void news_in_a_rest_between_two_pieces_ends_the_training_too(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    w.cfg.observe = true;
    w.cfg.duty = 10;
    w.work_us = SEC;
    world_start(&w);
    world_until(&w, training);
    while (w.trainer.n_steps == 0 || w.work_id != 0)
        assert_true(world_step(&w));
    server_offer(&w.server, 2, 0);
    world_notify(&w);
    world_run(&w, w.delay_us);
    assert_int_equal(w.n_cancels, 0);
    assert_int_equal(w.trainer.n_aborted, 1);
    world_until(&w, decided);
    check_update(0, 102, 0.3f / 127);
}

/* Deadlines. */

/* What is left of seven seconds, as a server counts them from the first ticket on. */
static elv_time_us due;
static bool counts_down(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    (void)out;
    if (r->op != ELV_OP_TICKET)
        return false;
    if (due == 0)
        due = w.now + 7 * SEC;
    s->ticket.deadline_ms = due > w.now ? (uint32_t)((due - w.now) / MS) + 1 : 1;
    return false;
}

static void a_training_that_cannot_be_in_time_ends_at_the_deadline(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.cfg.observe = observe != 0;
        w.server.lie = counts_down;
        due = 0;
        world_start(&w);
        world_until(&w, training);
        w.work_at = w.now + 3600LL * SEC;
        world_until(&w, cancelled);
        assert_in_range(w.now, due, due + 2 * w.delay_us + MS); /* what it heard last was as old */
        assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
        assert_int_equal(w.client.stats.expired, 1);
        assert_int_equal(w.client.stats.superseded, 0);
        /* it asks, is offered the same once more, and leaves it alone */
        const uint32_t asked = w.server.asked[ELV_OP_TICKET];
        world_run(&w, 5 * SEC);
        assert_true(w.server.asked[ELV_OP_TICKET] > asked);
        assert_int_equal(w.trainer.n_begun, 1);
        assert_int_equal(w.server.n_commits, 0);
        due = w.now + 60 * SEC;
        next(2, 1);
        world_free(&w);
    }
}

static void the_deadline_ends_every_phase_but_sending(void **state)
{
    (void)state;
    static const struct {
        bool (*phase)(const struct client_world *);
        bool ends;
    } rows[] = {{fetching, true}, {loading, true},    {training, true},
                {encoding, true}, {uploading, false}, {committing, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
        w.work_us = 3 * SEC;
        w.cfg.burst = 1;
        w.delay_us = 300 * MS;
        server_offer(&w.server, 1, 2);
        world_start(&w);
        world_until(&w, rows[i].phase);
        w.client.due_us = w.now; /* by now */
        world_run(&w, 10 * SEC);
        assert_int_equal(w.client.stats.expired, rows[i].ends);
        assert_int_equal(w.server.n_commits > 0, !rows[i].ends);
        assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
        world_free(&w);
    }
}

static void without_a_deadline_a_training_takes_as_long_as_it_takes(void **state)
{
    (void)state;
    w.server.ticket.deadline_ms = 0;
    w.work_us = 1000LL * SEC;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.client.stats.expired, 0);
    assert_int_equal(w.client.stats.accepted, 1);
}

static void a_closed_round_stops_the_upload_at_once(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, uploading);
    w.server.refuse[ELV_OP_UPDATE_CHUNK] =
        (struct refusal_script){ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED, 0, UINT32_MAX};
    const uint32_t before = w.server.asked[ELV_OP_UPDATE_CHUNK];
    world_run(&w, 5 * SEC);
    assert_in_range(w.server.asked[ELV_OP_UPDATE_CHUNK] - before, 1, 16); /* what was in flight */
    assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
    assert_int_equal(w.server.n_commits, 0);
    assert_true(w.client.stats.refused[ELV_REASON_ROUND_CLOSED] > 0);
    w.server.refuse[ELV_OP_UPDATE_CHUNK].code = 0;
    server_offer(&w.server, 2, 1);
    world_until(&w, decided);
    check_update(1, 102, 0);
}

static void what_the_server_lost_is_sent_again_before_it_decides(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    w.server.lose_at_commit = 5;
    world_start(&w);
    world_until(&w, decided);
    check_update(0, 101, 0);
    assert_int_equal(w.server.n_commits, 2);
    assert_int_equal(w.server.n_chunk_puts, w.server.commit.n_chunks + 5);
}

static void a_decided_assignment_is_not_done_again(void **state)
{
    (void)state;
    w.server.wait_when_decided = false; /* the ticket lags behind */
    world_start(&w);
    world_until(&w, decided);
    world_run(&w, 60 * SEC);
    assert_int_equal(w.trainer.n_begun, 1);
    assert_int_equal(w.server.n_commits, 1);
}

static void a_new_ticket_waits_until_the_commit_that_is_out_is_decided(void **state)
{
    (void)state;
    w.cfg.observe = true;
    world_start(&w);
    world_until(&w, committing);
    struct elv_ticket now = w.server.ticket;
    server_offer(&w.server, 2, 1);
    world_notify(&w); /* overtakes the answer to the commit, which is on its way */
    w.queue[w.n_queue - 1].at = w.now;
    w.server.ticket.assignment = now.assignment;
    w.server.n_decided = 0;
    world_run(&w, 25 * MS);
    assert_int_equal(w.client.phase, ELV_CLIENT_COMMITTING);
    world_run(&w, 25 * MS);
    assert_int_equal(w.client.stats.accepted, 1);
    next(2, 1);
    assert_int_equal(w.client.stats.superseded, 0);
}

/* Rests. */

static void a_device_on_a_fifth_of_the_time_rests_four_fifths(void **state)
{
    (void)state;
    w.cfg.duty = 20;
    w.work_us = 100 * MS;
    world_start(&w);
    world_until(&w, training);
    const elv_time_us since = w.now, worked = w.worked_us;
    world_until(&w, encoding);
    /* 20 steps in pieces of 8: three pieces of work, each preceded by a rest of four times that */
    assert_int_equal(w.worked_us - worked, 300 * MS);
    assert_int_equal(w.now - since, 3 * 500 * MS);
    world_until(&w, decided);
    assert_int_equal(w.trainer.n_begun, 1);
    assert_int_equal(w.server.commit.steps, 20);
    check_update(0, 101, 0.3f / 127);
    assert_int_equal(w.server.commit.compute_ms, 300);
    assert_true(w.trainer.largest_slice <= 8);
}

static void at_full_duty_training_is_one_piece_of_work(void **state)
{
    (void)state;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.n_computes, 3); /* load, train, encode */
}

/* When the device cannot. */

static void what_goes_wrong_on_the_device_is_committed_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct fake_trainer t;
        enum elv_status status;
        enum elv_reason reason;
    } rows[] = {
        {"no examples", {.samples = 0}, ELV_STATUS_DECLINED, ELV_REASON_NO_DATA},
        {"none any more",
         {.samples = 1, .begin_err = ELV_ERR_MISSING},
         ELV_STATUS_DECLINED,
         ELV_REASON_NO_DATA},
        {"the batch is too large",
         {.samples = 1, .begin_err = ELV_ERR_SPACE},
         ELV_STATUS_FAILED,
         ELV_REASON_MODEL_TOO_BIG},
        {"cannot begin",
         {.samples = 1, .begin_err = ELV_ERR_UNSUPPORTED},
         ELV_STATUS_FAILED,
         ELV_REASON_TRAINER},
        {"fails on the way",
         {.samples = 1, .steps = 9, .run_err = ELV_ERR_IO},
         ELV_STATUS_FAILED,
         ELV_REASON_TRAINER},
        {"the loss is no number",
         {.samples = 1, .steps = 1, .nan_loss = true},
         ELV_STATUS_FAILED,
         ELV_REASON_TRAINER},
        {"a weight is no number",
         {.samples = 1, .steps = 1, .nan_weight = true},
         ELV_STATUS_FAILED,
         ELV_REASON_TRAINER},
        {"a change beyond the bound",
         {.samples = 1, .steps = 5, .size = 3},
         ELV_STATUS_FAILED,
         ELV_REASON_OUT_OF_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].what);
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.trainer = rows[i].t;
        world_start(&w);
        world_until(&w, decided);
        assert_int_equal(w.server.commit.status, rows[i].status);
        assert_int_equal(w.server.commit.reason, rows[i].reason);
        assert_int_equal(w.server.commit.n_chunks, 0);
        assert_int_equal(w.server.n_chunk_puts, 0);
        w.trainer = (struct fake_trainer){
            .samples = 40, .steps = 10, .size = 0.01f, .n_params = w.trainer.n_params};
        next(2, 1); /* and the next assignment is done as if nothing had been */
        world_free(&w);
    }
}

static void a_codec_the_manifest_does_not_list_is_refused_before_anything_is_fetched(void **state)
{
    (void)state;
    static const uint8_t codecs[] = {ELV_CODEC_F32, 99}; /* more chunks than planned for; unknown */
    for (size_t i = 0; i < sizeof codecs; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.server.ticket.up.id = codecs[i];
        world_start(&w);
        world_until(&w, decided);
        assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
        assert_int_equal(w.server.commit.reason, ELV_REASON_CODEC);
        assert_int_equal(w.n_computes, 0);
        world_free(&w);
    }
}

static void sums_that_contradict_each_other_are_a_failure_of_the_trainer(void **state)
{
    (void)state;
    w.trainer.odd_sums = true;
    w.server.ticket.what = ELV_WHAT_EVALUATE;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
    assert_int_equal(w.server.commit.reason, ELV_REASON_TRAINER);
}

/* Refusals. */

static void some_refusals_are_for_good(void **state)
{
    (void)state;
    static const struct {
        enum elv_op op;
        enum elv_reason reason;
        uint32_t code;
    } rows[] = {
        {ELV_OP_JOIN, ELV_REASON_REVOKED, ELV_CLIENT_REFUSED},
        {ELV_OP_JOIN, ELV_REASON_WIRE_VERSION, ELV_CLIENT_REFUSED},
        {ELV_OP_JOIN, ELV_REASON_SOFTWARE_OLD, ELV_CLIENT_REFUSED},
        {ELV_OP_JOIN, ELV_REASON_NO_CODEC, ELV_CLIENT_REFUSED},
        {ELV_OP_JOIN, ELV_REASON_MODEL_TOO_BIG, ELV_CLIENT_REFUSED},
        {ELV_OP_JOIN, ELV_REASON_JOB_OVER, ELV_CLIENT_OVER},
        {ELV_OP_MANIFEST, ELV_REASON_REVOKED, ELV_CLIENT_REFUSED},
        {ELV_OP_TICKET, ELV_REASON_REVOKED, ELV_CLIENT_REFUSED},
        {ELV_OP_TICKET, ELV_REASON_JOB_OVER, ELV_CLIENT_OVER},
        {ELV_OP_UPDATE_CHUNK, ELV_REASON_REVOKED, ELV_CLIENT_REFUSED},
        {ELV_OP_COMMIT, ELV_REASON_REVOKED, ELV_CLIENT_REFUSED},
        {ELV_OP_COMMIT, ELV_REASON_JOB_OVER, ELV_CLIENT_OVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.server.refuse[rows[i].op] =
            (struct refusal_script){ELV_CODE_FORBIDDEN, rows[i].reason, 0, UINT32_MAX};
        world_start(&w);
        world_until(&w, ended);
        assert_int_equal(w.exit_code, rows[i].code);
        assert_int_equal(w.client.exit_reason, rows[i].reason);
        assert_int_equal(w.client.stats.refused[rows[i].reason], 1);
        world_free(&w);
    }
}

static void other_refusals_are_overcome_with_patience(void **state)
{
    (void)state;
    static const struct {
        enum elv_op op;
        uint8_t code;
        enum elv_reason reason;
        uint32_t retry_ms, times;
        elv_time_us least; /* how long that takes */
    } rows[] = {
        {ELV_OP_MANIFEST, ELV_CODE_NOT_FOUND, ELV_REASON_NO_SUCH_JOB, 0, 6, 30 * SEC},
        {ELV_OP_MANIFEST, ELV_CODE_INTERNAL, ELV_REASON_NONE, 0, 2, SEC},
        {ELV_OP_JOIN, ELV_CODE_UNAVAILABLE, ELV_REASON_FULL, 7000, 3, 21 * SEC},
        {ELV_OP_TICKET, ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE, 2000, 2, 4 * SEC},
        {ELV_OP_TICKET, ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED, 0, 1, 0},
        {ELV_OP_TICKET, ELV_CODE_CONFLICT, ELV_REASON_MANIFEST_OLD, 0, 3, 0},
        {ELV_OP_STEP_CHUNK, ELV_CODE_UNAVAILABLE, ELV_REASON_FULL, 1000, 4, SEC},
        {ELV_OP_UPDATE_CHUNK, ELV_CODE_UNAVAILABLE, ELV_REASON_QUOTA, 3000, 2, 3 * SEC},
        {ELV_OP_UPDATE_CHUNK, ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED, 0, 1, 0},
        {ELV_OP_COMMIT, ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE, 1500, 2, 3 * SEC},
        {ELV_OP_COMMIT, ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED, 0, 1, 0},
        {ELV_OP_COMMIT, ELV_CODE_INTERNAL, ELV_REASON_NONE, 0, 3, SEC},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        server_offer(&w.server, 1, 1);
        w.server.refuse[rows[i].op] =
            (struct refusal_script){rows[i].code, rows[i].reason, rows[i].retry_ms, rows[i].times};
        world_start(&w);
        world_until(&w, decided);
        assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
        check_update(1, 101, 0.3f / 127);
        assert_true(w.now >= rows[i].least);
        assert_true(w.now < 200 * SEC);
        world_free(&w);
    }
}

static void refusals_of_an_upload_end_the_assignment(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        enum elv_reason reason;
        enum elv_status status; /* 0: nothing is committed */
        enum elv_reason told;
    } rows[] = {
        {ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED, 0, 0},
        {ELV_CODE_CONFLICT, ELV_REASON_UNKNOWN_ASSIGNMENT, 0, 0},
        {ELV_CODE_CONFLICT, ELV_REASON_DUPLICATE, 0, 0},
        {ELV_CODE_CONFLICT, ELV_REASON_POLICY, 0, 0},
        {ELV_CODE_TOO_LARGE, ELV_REASON_QUOTA, ELV_STATUS_DECLINED, ELV_REASON_QUOTA},
        {ELV_CODE_TOO_LARGE, ELV_REASON_NONE, ELV_STATUS_DECLINED, ELV_REASON_QUOTA},
        {ELV_CODE_BAD_REQUEST, ELV_REASON_CODEC, ELV_STATUS_FAILED, ELV_REASON_CODEC},
        {ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED, ELV_STATUS_FAILED, ELV_REASON_MALFORMED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        w.server.refuse[ELV_OP_UPDATE_CHUNK] =
            (struct refusal_script){rows[i].code, rows[i].reason, 0, UINT32_MAX};
        world_start(&w);
        world_run(&w, 30 * SEC);
        assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
        assert_int_equal(w.server.n_commits, rows[i].status != 0);
        assert_int_equal(w.server.commit.status, rows[i].status);
        assert_int_equal(w.server.commit.reason, rows[i].told);
        w.server.refuse[ELV_OP_UPDATE_CHUNK].code = 0;
        next(2, 1);
        world_free(&w);
    }
}

static void a_refused_commit_is_a_decision(void **state)
{
    (void)state;
    w.server.verdict =
        (struct elv_verdict){.decision = ELV_REFUSED, .reason = ELV_REASON_OVER_NORM};
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.client.stats.refused[ELV_REASON_OVER_NORM], 1);
    assert_int_equal(w.client.stats.accepted, 0);
    w.server.verdict.decision = 0;
    next(2, 1);

    w.server.refuse[ELV_OP_COMMIT] =
        (struct refusal_script){ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED, 0, 1};
    server_offer(&w.server, 3, 2);
    world_run(&w, 20 * SEC);
    assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
    assert_int_equal(w.client.stats.superseded, 1);
    next(4, 2);
}

static void a_stranger_is_told_three_times_and_then_ends(void **state)
{
    (void)state;
    world_start(&w);
    for (int i = 0; i < 3; i++) {
        assert_false(w.ended);
        while (w.client.control.op == ELV_OP_NONE)
            world_step(&w);
        w.n_queue = 0;
        const uint32_t id = w.client.control.id;
        world_event(&w,
                    (struct elv_event){.kind = ELV_EV_NO_ANSWER, .id = id, .err = ELV_ERR_AUTH});
    }
    assert_true(w.ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
}

/* Manifests. */

static void another_run_is_read_about_joined_and_trained_for(void **state)
{
    (void)state;
    static struct fake_server other;
    world_init(&w, "dense 16 relu, dense 10", ELV_CODEC_F32, ELV_CODEC_Q8);
    other = w.server;
    other.manifest.run[0] = 99;
    server_encode_manifest(&other);

    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    world_start(&w);
    world_until(&w, decided);
    w.server = other; /* its assignments are numbered from 1 again */
    world_until(&w, decided);
    check_update(0, 101, 0);
    assert_int_equal(w.client.stats.joins, 2);
}

static void another_run_in_the_middle_of_training_waits_for_the_work_to_end(void **state)
{
    (void)state;
    static struct fake_server other;
    world_init(&w, "dense 16 relu, dense 10", ELV_CODEC_F32, ELV_CODEC_Q8);
    other = w.server;
    other.manifest.run[0] = 99;
    server_encode_manifest(&other);

    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    w.work_us = 20 * SEC;
    world_start(&w);
    world_until(&w, training);
    w.server = other;
    w.work_us = 300 * MS;
    world_until(&w, decided);
    check_update(0, 101, 0);
    assert_int_equal(w.n_cancels, 1);
}

static void a_manifest_that_never_fits_is_read_ever_more_rarely(void **state)
{
    (void)state;
    w.server.ticket.manifest[0] ^= 1;
    world_start(&w);
    world_run(&w, 3600LL * SEC);
    assert_false(w.ended);
    assert_in_range(w.server.asked[ELV_OP_MANIFEST], 50, 150);
}

static void after_joining_again_chunks_that_waited_go_on_at_once(void **state)
{
    (void)state;
    w.server.refuse[ELV_OP_UPDATE_CHUNK] =
        (struct refusal_script){ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED, 30000, 4};
    world_start(&w);
    world_until(&w, decided);
    assert_true(w.now < 10 * SEC);
    assert_int_equal(w.client.stats.joins, 2);
}

static void a_manifest_made_for_others_is_refused_for_good(void **state)
{
    (void)state;
    static const struct {
        bool wire, shape;
        enum elv_reason reason;
    } rows[] = {{true, false, ELV_REASON_WIRE_VERSION}, {false, true, ELV_REASON_WRONG_SHAPE}};
    for (size_t i = 0; i < 2; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        if (rows[i].wire)
            w.server.manifest.wire_min = w.server.manifest.wire_max = 2;
        if (rows[i].shape)
            w.server.manifest.fingerprint[5] ^= 1;
        server_encode_manifest(&w.server);
        world_start(&w);
        world_until(&w, ended);
        assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
        assert_int_equal(w.client.exit_reason, rows[i].reason);
        world_free(&w);
    }
}

/* Memory. */

static void the_memory_told_beforehand_is_enough_and_a_byte_less_is_not(void **state)
{
    (void)state;
    const size_t need =
        elv_client_mem(&w.cfg, &w.server.manifest, &w.server.model, w.server.ticket.batch);
    assert_in_range(need, 8 * w.server.model.n_params, 8 * w.server.model.n_params + 24 * 1024);
    w.mem_len = need;
    world_start(&w);
    world_until(&w, decided);
    check_update(0, 101, 0.3f / 127);
    world_free(&w);

    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    w.mem_len = need;
    world_start(&w);
    w.client.mem_len = w.client.fixed.cap = need - 1;
    world_until(&w, ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
    assert_int_equal(w.client.exit_reason, ELV_REASON_MODEL_TOO_BIG);
    assert_int_equal(w.server.join.memory, need - 1); /* the server was told */
    assert_int_equal(w.server.asked[ELV_OP_LEAVE], 1);
    assert_int_equal(w.server.asked[ELV_OP_TICKET], 0);
}

static void a_model_that_does_not_fit_ends_whatever_the_server_says(void **state)
{
    (void)state;
    w.mem_len = elv_client_mem_min(&w.cfg) + 64;
    w.server.refuse[ELV_OP_JOIN] =
        (struct refusal_script){ELV_CODE_FORBIDDEN, ELV_REASON_MODEL_TOO_BIG, 0, UINT32_MAX};
    world_start(&w);
    world_until(&w, ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
    assert_int_equal(w.server.asked[ELV_OP_JOIN], 1);
    world_free(&w);

    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    w.mem_len = elv_client_mem_min(&w.cfg) + 64;
    world_start(&w);
    while (w.client.stats.requests < 2)
        world_step(&w);
    w.n_queue = 0;
    w.server.silent = true;
    const elv_time_us since = w.now;
    world_until(&w, ended);
    assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
    assert_true(w.now - since < 120 * SEC);
}

static void a_block_too_small_for_a_manifest_is_refused_at_once(void **state)
{
    (void)state;
    static uint8_t block[1 << 16];
    uint8_t *aligned = block + (ELV_ARENA_ALIGN - (uintptr_t)block % ELV_ARENA_ALIGN);
    const size_t least = elv_client_mem_min(&w.cfg);
    struct elv_client c;
    assert_int_equal(elv_client_init(&c, &w.cfg, aligned, least - 1), ELV_ERR_SPACE);
    assert_int_equal(elv_client_init(&c, &w.cfg, NULL, 0), ELV_ERR_SPACE);
    assert_int_equal(elv_client_init(&c, &w.cfg, aligned, least), ELV_OK);
    struct elv_client_cfg bad = w.cfg;
    bad.duty = 101;
    assert_int_equal(elv_client_init(&c, &bad, aligned, least), ELV_ERR_ARG);
    bad = w.cfg;
    bad.burst = 33;
    assert_int_equal(elv_client_init(&c, &bad, aligned, sizeof block / 2), ELV_ERR_ARG);
    bad = w.cfg;
    bad.trainer.begin = NULL;
    assert_int_equal(elv_client_init(&c, &bad, aligned, least), ELV_ERR_ARG);
}

/* Stopping. */

static bool fresh(const struct client_world *x) { return x->n_steps > 0; }
static bool asked_to_join(const struct client_world *x) { return x->server.asked[ELV_OP_JOIN] > 0; }
static bool joined(const struct client_world *x) { return x->client.joined; }
static bool evaluating(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_EVALUATING;
}
static void stopping_is_orderly_in_every_phase(void **state)
{
    (void)state;
    static const struct {
        const char *when;
        bool (*phase)(const struct client_world *);
        bool declines; /* the open assignment is declined, else there is none or it is decided */
    } rows[] = {
        {"asking for the manifest", fresh, false},
        {"joining", asked_to_join, false},
        {"joined", joined, false},
        {"fetching", fetching, true},
        {"loading", loading, true},
        {"evaluating", evaluating, true},
        {"training", training, true},
        {"encoding", encoding, true},
        {"uploading", uploading, true},
        {"committing", committing, false},
        {"idle", decided, false},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        const size_t row = i / 2;
        const bool silent = i % 2 == 1;
        print_message("%s%s\n", rows[row].when, silent ? ", and nobody answers" : "");
        world_init(&w, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
        server_offer(&w.server, 1, 1);
        w.server.manifest.holdout = 0.1f;
        server_encode_manifest(&w.server);
        w.cfg.burst = 1;
        w.cfg.leave_on_stop = true;
        world_start(&w);
        world_until(&w, rows[row].phase);
        const elv_time_us since = w.now;
        const uint32_t commits = w.server.n_commits;
        if (silent)
            w.n_queue = 0;
        w.server.silent = silent;
        const bool was_joined = w.client.joined;
        world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
        if (!w.ended)
            world_until(&w, ended);
        assert_int_equal(w.exit_code, 0);
        assert_int_equal(w.work_id, 0);
        assert_true(w.now - since <= 5 * SEC);
        if (silent) {
            world_free(&w);
            continue;
        }
        if (rows[row].declines) {
            assert_int_equal(w.server.n_commits, commits + 1);
            assert_int_equal(w.server.commit.status, ELV_STATUS_DECLINED);
            assert_int_equal(w.server.commit.reason, ELV_REASON_STOPPING);
        }
        assert_int_equal(w.server.asked[ELV_OP_LEAVE], was_joined);
        world_free(&w);
    }
}

static void a_second_stop_waits_for_nothing_but_the_work(void **state)
{
    (void)state;
    w.work_us = 20 * SEC;
    world_start(&w);
    world_until(&w, training);
    w.server.silent = true;
    world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
    assert_false(w.ended);
    world_event(&w, (struct elv_event){.kind = ELV_EV_STOP});
    assert_false(w.ended); /* the trainer still holds the memory */
    assert_int_equal(w.n_cancels, 1);
    const elv_time_us since = w.now;
    world_until(&w, ended);
    assert_true(w.now - since <= MS);
}

/* Nonsense. */

static uint32_t noise_at;
static uint32_t noise(void)
{
    noise_at = noise_at * 1664525u + 1013904223u;
    return noise_at >> 8;
}

static void answers_that_make_no_sense_do_no_harm(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        noise_at = seed;
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        server_offer(&w.server, 1, 1 + seed % 4);
        world_start(&w);
        for (uint32_t i = 0; i < 3000 && !w.ended && w.server.n_decided == 0; i++) {
            if (w.n_queue > 0 && noise() % 5 == 0) { /* an answer is scrambled */
                struct message *m = &w.queue[noise() % w.n_queue];
                if (noise() % 3 == 0)
                    m->code = (uint8_t)noise();
                if (m->len > 0 && noise() % 2 == 0)
                    m->body[noise() % m->len] ^= (uint8_t)(1u << noise() % 8);
                else if (noise() % 2 == 0)
                    m->len = noise() % (m->len + 1);
                else
                    m->id = noise() % (w.client.last_id + 3);
            }
            assert_true(world_step(&w));
        }
        if (!w.ended) { /* it was not led astray for good */
            world_until(&w, decided);
            assert_int_equal(w.server.commit.status != 0, 1);
        }
        world_free(&w);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_client_trains_from_the_seed_and_its_update_is_what_it_learnt),
        TEST(a_q8_update_is_close_and_a_quarter_of_the_bytes),
        TEST(each_assignment_rounds_at_random_by_dice_of_its_own),
        TEST(later_versions_come_by_steps_when_that_is_cheaper),
        TEST(a_newcomer_starts_from_the_seed_and_takes_all_steps),
        TEST(out_of_reach_of_the_steps_the_full_model_is_fetched),
        TEST(steps_that_are_not_cheaper_are_not_fetched),
        TEST(layers_marked_local_stay_and_go_on_learning),
        TEST(an_evaluation_commits_sums_without_chunks),
        TEST(with_a_holdout_the_weights_received_are_evaluated_before_training),
        TEST(once_means_one_training_and_then_the_end),
        TEST(the_server_says_stop),
        TEST(polls_are_paced_and_go_on_during_training),
        TEST(who_has_done_the_work_asks_for_more_at_once_and_who_has_failed_does_not),
        TEST(an_observer_hears_of_work_without_asking),
        TEST(the_update_is_the_same_bytes_over_any_network),
        TEST(the_same_run_gives_the_same_actions_at_the_same_times),
        TEST(a_restarted_client_makes_the_same_update_under_another_nonce),
        TEST(one_that_slept_reads_what_came_before_it_asks_again),
        TEST(a_silent_server_gets_new_associations_and_what_it_has_is_not_sent_again),
        TEST(what_was_asked_on_a_replaced_association_is_asked_again_at_once),
        TEST(a_chunk_sent_on_a_replaced_association_is_sent_again_at_once),
        TEST(a_server_silent_from_the_start_is_asked_for_ever_ever_more_rarely),
        TEST(chunks_cut_short_or_of_another_body_are_asked_for_again),
        TEST(an_idle_client_does_not_mistake_quiet_for_silence),
        TEST(chunks_are_not_sent_twice_to_a_server_that_lists_nothing),
        TEST(a_seed_that_does_not_give_version_zero_costs_a_full_fetch),
        TEST(a_step_that_leads_elsewhere_is_replaced_by_the_full_model),
        TEST(a_body_whose_digest_differs_is_never_applied),
        TEST(a_step_that_is_gone_is_replaced_by_the_full_model),
        TEST(a_model_that_is_gone_ends_in_a_failure_and_the_next_ticket_is_taken),
        TEST(a_newer_assignment_cancels_training_and_is_done_instead),
        TEST(a_newer_assignment_is_taken_up_from_any_phase),
        TEST(work_called_off_is_dropped_until_there_is_other_work),
        TEST(news_in_the_middle_of_training_cancels_it_on_arrival),
        TEST(a_ticket_that_was_overtaken_changes_nothing),
        TEST(who_only_polls_learns_it_with_the_next_poll),
        TEST(news_in_a_rest_between_two_pieces_ends_the_training_too),
        TEST(a_training_that_cannot_be_in_time_ends_at_the_deadline),
        TEST(the_deadline_ends_every_phase_but_sending),
        TEST(without_a_deadline_a_training_takes_as_long_as_it_takes),
        TEST(a_closed_round_stops_the_upload_at_once),
        TEST(what_the_server_lost_is_sent_again_before_it_decides),
        TEST(a_decided_assignment_is_not_done_again),
        TEST(a_new_ticket_waits_until_the_commit_that_is_out_is_decided),
        TEST(a_device_on_a_fifth_of_the_time_rests_four_fifths),
        TEST(at_full_duty_training_is_one_piece_of_work),
        TEST(what_goes_wrong_on_the_device_is_committed_with_a_reason),
        TEST(a_codec_the_manifest_does_not_list_is_refused_before_anything_is_fetched),
        TEST(sums_that_contradict_each_other_are_a_failure_of_the_trainer),
        TEST(some_refusals_are_for_good),
        TEST(other_refusals_are_overcome_with_patience),
        TEST(refusals_of_an_upload_end_the_assignment),
        TEST(a_refused_commit_is_a_decision),
        TEST(a_stranger_is_told_three_times_and_then_ends),
        TEST(another_run_is_read_about_joined_and_trained_for),
        TEST(another_run_in_the_middle_of_training_waits_for_the_work_to_end),
        TEST(a_manifest_that_never_fits_is_read_ever_more_rarely),
        TEST(after_joining_again_chunks_that_waited_go_on_at_once),
        TEST(a_manifest_made_for_others_is_refused_for_good),
        TEST(the_memory_told_beforehand_is_enough_and_a_byte_less_is_not),
        TEST(a_model_that_does_not_fit_ends_whatever_the_server_says),
        TEST(a_block_too_small_for_a_manifest_is_refused_at_once),
        TEST(stopping_is_orderly_in_every_phase),
        TEST(a_second_stop_waits_for_nothing_but_the_work),
        TEST(answers_that_make_no_sense_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
