/* SPDX-License-Identifier: Apache-2.0 */
/* Versions, their evaluation, what is kept of them, and the end of a job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "common/safetensors.h"
#include "tests/server_world.h"

static const elv_time_us second = 1000000;

static void start(struct world *w, const char *rounds, const char *target)
{
    world_init(w);
    world_add_scorer(w);
    world_set(w, "job", "rounds", rounds);
    if (target)
        world_set(w, "job", "target_accuracy", target);
    world_set(w, "eval", "every", "1");
    world_set(w, "data", "test", "idx /nowhere");
    world_start(w);
    world_join(w, 1);
}

static void every_version_is_evaluated_and_its_record_says_so(void **state)
{
    (void)state;
    struct world w;
    struct elv_rec_version rec;
    start(&w, "3", NULL);
    w.accuracy[2] = 0.75;
    for (int i = 0; i < 3; i++)
        assert_true(world_contribute(&w, 1));
    assert_true(w.ended);
    const struct fake_item *item = fake_disk_record(&w.disk, ELV_TABLE_VERSION, 2);
    assert_int_equal(elv_rec_version_decode((struct elv_bytes){item->at, item->len}, &rec), ELV_OK);
    assert_int_equal(rec.eval.n, 1000);
    assert_int_equal(rec.eval.correct[0], 750);
    assert_int_equal(rec.n_used, 1);
    assert_int_equal(elv_server_stats(w.s)->best_version, 2);
    assert_int_equal(world_notes(&w, ELV_NOTE_EVALUATED), 3);
    world_free(&w);
}

static void reaching_the_target_ends_the_job_and_missing_it_shows_in_the_exit_code(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++) {
        struct world w;
        struct elv_ticket t;
        start(&w, "3", "0.9");
        w.accuracy[2] = reached ? 0.9 : 0.899;
        while (!w.ended)
            assert_true(world_contribute(&w, 1));
        assert_int_equal(elv_server_stats(w.s)->version, reached ? 2 : 3);
        assert_int_equal(elv_server_stats(w.s)->target_reached, reached);
        assert_int_equal(w.exit_code, reached ? 0 : 3);
        world_ticket(&w, 1, &t);
        assert_int_equal(t.what, ELV_WHAT_STOP);
        world_crash(&w, true);
        world_start(&w);
        assert_true(w.ended);
        assert_int_equal(w.exit_code, reached ? 0 : 3);
        world_free(&w);
    }
}

static void with_a_target_no_version_closes_before_the_one_before_is_judged(void **state)
{
    (void)state;
    struct world w;
    start(&w, "9", "0.9");
    w.accuracy[1] = 0.95;
    w.hold_work = ELV_WORK_EVALUATE;
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 1)); /* the next round is open meanwhile */
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    w.hold_work = (enum elv_server_work)0;
    world_settle(&w);
    assert_true(w.ended);
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    world_free(&w);
}

static void a_slow_evaluation_never_sees_its_model_change(void **state)
{
    (void)state;
    struct world w;
    start(&w, "9", NULL);
    w.hold_work = ELV_WORK_EVALUATE;
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 1)); /* version 2 is made beside it */
    assert_int_equal(elv_server_stats(w.s)->version, 2);
    assert_true(world_contribute(&w, 1)); /* version 3 would overwrite what is being evaluated */
    assert_int_equal(elv_server_stats(w.s)->version, 2);
    w.hold_work = (enum elv_server_work)0;
    world_settle(&w); /* the scorer compares what it was given at every slice */
    assert_int_equal(elv_server_stats(w.s)->version, 3);
    assert_int_equal(world_notes(&w, ELV_NOTE_EVALUATED), 3);
    world_free(&w);
}

static void an_evaluation_lost_by_a_crash_is_made_again(void **state)
{
    (void)state;
    struct world w;
    start(&w, "9", "0.9");
    w.accuracy[1] = 0.95;
    w.hold_work = ELV_WORK_EVALUATE;
    assert_true(world_contribute(&w, 1));
    world_crash(&w, false);
    w.hold_work = (enum elv_server_work)0;
    world_start(&w);
    assert_true(w.ended);
    assert_true(elv_server_stats(w.s)->target_reached);
    world_free(&w);
}

static void a_failed_evaluation_is_reported_and_holds_nobody_up(void **state)
{
    (void)state;
    struct world w;
    start(&w, "2", NULL);
    w.score_err = ELV_ERR_IO;
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 1));
    assert_true(w.ended);
    assert_int_equal(world_notes(&w, ELV_NOTE_EVALUATION_FAILED), 2);
    world_free(&w);
}

static void old_versions_go_and_the_best_stays(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_add_scorer(&w);
    world_set(&w, "job", "rounds", "8");
    world_set(&w, "eval", "every", "1");
    world_set(&w, "data", "test", "idx /nowhere");
    world_set(&w, "state", "keep", "2");
    world_set(&w, "transfer", "down", "q8");
    world_start(&w);
    world_join(&w, 1);
    w.accuracy[2] = 0.5;
    w.accuracy[6] = 0.6;
    for (uint32_t version = 1; version <= 8; version++) {
        assert_true(world_contribute(&w, 1));
        for (uint32_t v = 0; v <= version; v++) {
            const uint32_t best = version >= 6 ? 6 : version >= 2 ? 2 : version;
            const bool kept = v + 2 > version || (v == best && version >= 2);
            const bool there = fake_disk_file(&w.disk, ELV_FILE_MODEL, v) != NULL;
            if (version >= 2)
                assert_int_equal(there, kept);
            assert_true(fake_disk_file(&w.disk, ELV_FILE_MASTER, v) == NULL || v == version);
        }
    }
    assert_int_equal(fake_disk_log(&w.disk, 8) != NULL, 0); /* no log outlives its round */
    world_free(&w);
}

static struct upload with_eval(struct world *w, uint32_t n, uint32_t right)
{
    struct elv_ticket t;
    static float v[1020];
    static struct upload u;
    world_ticket(w, 1, &t);
    world_update(w, 1, &t, v);
    world_encode(w, &u, 1, &t, v, 5);
    world_sums(&u.commit.eval, n, right);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(w, &u, i);
    return u;
}

static void without_a_test_set_the_clients_sums_decide_about_the_target(void **state)
{
    (void)state;
    for (int crash = 0; crash < 2; crash++) {
        struct world w;
        world_init(&w);
        world_set(&w, "job", "rounds", "9");
        world_set(&w, "job", "target_accuracy", "0.8");
        world_set(&w, "eval", "every", "1");
        world_set(&w, "eval", "on", "clients");
        world_set(&w, "data", "holdout", "0.1");
        world_start(&w);
        world_join(&w, 1);
        struct upload u = with_eval(&w, 100, 79);
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
        assert_int_equal(elv_server_stats(w.s)->version, 1);
        assert_false(w.ended);
        u = with_eval(&w, 100, 80);
        w.hold_work = crash ? ELV_WORK_FOLD : (enum elv_server_work)0;
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
        if (crash) { /* the sums come back with the decision */
            world_crash(&w, true);
            w.hold_work = (enum elv_server_work)0;
            world_start(&w);
        }
        assert_int_equal(elv_server_stats(w.s)->version, 2);
        assert_false(w.ended); /* version 2 is the last, and to be evaluated itself */
        assert_true(world_evaluate(&w, 1, 100, 50));
        assert_true(w.ended);
        assert_int_equal(w.exit_code, 0);
        world_free(&w);
    }
}

static void nobody_reaches_the_target_by_claiming_to_have_evaluated_the_world(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_set(&w, "job", "rounds", "9");
    world_set(&w, "job", "target_accuracy", "0.8");
    world_set(&w, "eval", "every", "1");
    world_set(&w, "eval", "on", "clients");
    world_set(&w, "data", "holdout", "0.1");
    world_set(&w, "aggregate", "max_weight", "1000");
    world_set(&w, "model", "layers", "dense 20");
    world_start(&w);
    world_join(&w, 1);
    struct upload u = with_eval(&w, 1001, 1001);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_false(w.ended);
    assert_int_equal(elv_server_stats(w.s)->capped, 1);
    u = with_eval(&w, 1000, 0);
    const uint32_t odd = w.job.model.n_classes; /* one class more than there are */
    u.commit.eval = (struct elv_eval_sums){.n = 1000, .loss = 1, .n_classes = odd + 1};
    u.commit.eval.support[odd] = u.commit.eval.predicted[odd] = u.commit.eval.correct[odd] = 1000;
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_false(w.ended);
    assert_int_equal(elv_server_stats(w.s)->capped, 2);
    u = with_eval(&w, 1000, 800);
    assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    assert_true(world_evaluate(&w, 1, 100, 80)); /* what was reached makes version 3 the last */
    assert_true(w.ended);
    assert_int_equal(elv_server_stats(w.s)->version, 3);
    world_free(&w);
}

static struct elv_sync_grant let_in(void *state, const struct elv_sync_cfg *cfg,
                                    const struct elv_sync_round *r, struct elv_sync_client c,
                                    elv_time_us now)
{
    (void)state, (void)cfg, (void)r, (void)now;
    return c.client == 3 ? (struct elv_sync_grant){ELV_SYNC_REJECT, 7000}
                         : (struct elv_sync_grant){ELV_SYNC_START, 0};
}

static void a_policy_may_let_late_joiners_in_and_their_work_survives_a_restart(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t, again;
    struct elv_sync open_door = *elv_sync_by_name("bsp");
    open_door.on_pull = let_in;
    world_init(&w);
    world_set(&w, "sync", "quorum", "1");
    world_start(&w);
    w.s->policies.sync = &open_door;
    world_join(&w, 1);
    world_join(&w, 2);
    world_join(&w, 3);
    assert_true(world_ticket(&w, 2, &t));
    assert_int_equal(t.what, ELV_WHAT_WAIT); /* asking changes nothing that one answer can show */
    assert_true(world_ticket(&w, 2, &t));
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    const struct world_reply *r = world_ask(&w, 3, &(struct elv_request){.op = ELV_OP_TICKET});
    assert_true(world_refused(r, ELV_CODE_UNAVAILABLE, ELV_REASON_POLICY));
    assert_int_equal(r->max_age_s, 7);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(elv_server_stats(w.s)->version, 0); /* client 2 is waited for now */
    world_crash(&w, true);
    world_start(&w);
    assert_true(world_ticket(&w, 2, &again));
    assert_int_equal(again.assignment, t.assignment);
    assert_true(world_contribute(&w, 2));
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    assert_int_equal(elv_server_stats(w.s)->n_joined, 3);
    world_free(&w);
}

static void the_learning_rate_decays_per_version_also_over_a_restart(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    world_set(&w, "client", "learning_rate_decay", "0.5");
    world_start(&w);
    world_join(&w, 1);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 1));
    world_ticket(&w, 1, &t);
    assert_true(t.learning_rate == 0.1f * 0.25f);
    world_crash(&w, true);
    world_start(&w);
    world_ticket(&w, 1, &t);
    assert_true(t.learning_rate == 0.1f * 0.25f);
    world_free(&w);
}

static void a_model_file_is_what_other_tools_expect(void **state)
{
    (void)state;
    struct world w;
    struct elv_safetensors st;
    char text[64];
    world_init(&w);
    world_start(&w);
    const struct fake_item *file = fake_disk_file(&w.disk, ELV_FILE_MODEL, 0);
    assert_int_equal(
        elv_safetensors_read(&w.job.model, (struct elv_bytes){file->at, file->len}, &st), ELV_OK);
    assert_int_equal(st.file_len, file->len);
    assert_int_equal(elv_safetensors_find(&st, "job", text, sizeof text), ELV_OK);
    assert_string_equal(text, "test");
    assert_int_equal(elv_safetensors_find(&st, "version", text, sizeof text), ELV_OK);
    assert_string_equal(text, "0");
    assert_memory_equal(file->at + file->len - 1020 * 4, elv_server_model(w.s), 1020 * 4);
    world_advance(&w, second);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_evaluated_and_its_record_says_so),
        cmocka_unit_test(reaching_the_target_ends_the_job_and_missing_it_shows_in_the_exit_code),
        cmocka_unit_test(with_a_target_no_version_closes_before_the_one_before_is_judged),
        cmocka_unit_test(a_slow_evaluation_never_sees_its_model_change),
        cmocka_unit_test(an_evaluation_lost_by_a_crash_is_made_again),
        cmocka_unit_test(a_failed_evaluation_is_reported_and_holds_nobody_up),
        cmocka_unit_test(old_versions_go_and_the_best_stays),
        cmocka_unit_test(without_a_test_set_the_clients_sums_decide_about_the_target),
        cmocka_unit_test(nobody_reaches_the_target_by_claiming_to_have_evaluated_the_world),
        cmocka_unit_test(a_policy_may_let_late_joiners_in_and_their_work_survives_a_restart),
        cmocka_unit_test(the_learning_rate_decays_per_version_also_over_a_restart),
        cmocka_unit_test(a_model_file_is_what_other_tools_expect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
