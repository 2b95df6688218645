/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "elver/version.h"
#include "server/follow.h"
#include "server/report.h"

static struct elv_job job;
static struct elv_follow follow;
static struct elv_round_line lines[2];

static uint32_t take(enum elv_note_kind kind, uint32_t version, double accuracy)
{
    const struct elv_note n = {.kind = kind,
                               .at = 1000000 * (elv_time_us)version,
                               .version = version,
                               .report = {.version = version},
                               .score = {.accuracy = accuracy}};
    return elv_follow_take(&follow, &n, lines);
}

static void start(bool scorer, uint32_t every, enum elv_eval_on on)
{
    const struct elv_eval_sums none = {0};
    job = (struct elv_job){.eval_every = every, .eval_on = on};
    elv_follow_init(&follow, &job, scorer, &none);
    take(ELV_NOTE_ROUND_OPENED, 1, 0);
}

static void a_round_waits_for_the_score_of_its_model(void **state)
{
    (void)state;
    start(true, 1, ELV_EVAL_SERVER);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 1, 0), 0);
    assert_int_equal(take(ELV_NOTE_CLIENTS_EVALUATED, 1, 0.1), 0); /* not whose scores count */
    assert_int_equal(take(ELV_NOTE_EVALUATED, 1, 0.5), 1);
    assert_true(lines[0].scored && lines[0].score.accuracy == 0.5);
    assert_int_equal(take(ELV_NOTE_EVALUATED, 1, 0.5), 0); /* told once */
}

static void rounds_that_are_not_evaluated_are_told_at_once(void **state)
{
    (void)state;
    start(true, 2, ELV_EVAL_SERVER);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 1, 0), 1);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 2, 0), 0);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 3, 0), 2); /* the score of 2 never came */
    assert_int_equal(lines[0].report.version, 2);
    assert_int_equal(lines[1].report.version, 3);
}

static void without_a_test_set_the_clients_scores_count(void **state)
{
    (void)state;
    start(false, 1, ELV_EVAL_CLIENTS);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 1, 0), 0);
    assert_int_equal(take(ELV_NOTE_CLIENTS_EVALUATED, 1, 0.25), 1);
    assert_true(lines[0].score.accuracy == 0.25);
}

static void a_finished_run_that_is_served_again_still_knows_its_score(void **state)
{
    (void)state;
    const struct elv_eval_sums sums = {
        .n = 4, .n_classes = 2, .support = {2, 2}, .predicted = {3, 1}, .correct = {2, 1}};
    elv_follow_init(&follow, &job, true, &sums);
    take(ELV_NOTE_OVER, 3, 0);
    assert_true(elv_follow_result(&follow));
    assert_true(follow.line.scored && follow.line.score.accuracy == 0.75);
}

static void a_round_that_an_earlier_life_opened_counts_with_the_time_it_took(void **state)
{
    (void)state;
    const struct elv_eval_sums none = {0};
    const struct elv_note n = {.kind = ELV_NOTE_ROUND_CLOSED,
                               .at = 26000000000,
                               .version = 3,
                               .report = {.version = 3, .took = 2500000}};
    elv_follow_init(&follow, &job, false, &none);
    elv_follow_take(&follow, &n, lines);
    assert_true(elv_follow_seconds(&follow) == 2.5);
}

static void the_result_is_told_once_after_the_last_line(void **state)
{
    (void)state;
    start(true, 1, ELV_EVAL_SERVER);
    take(ELV_NOTE_ROUND_CLOSED, 3, 0);
    take(ELV_NOTE_EVALUATED, 3, 0.5);
    assert_false(elv_follow_result(&follow));
    take(ELV_NOTE_OVER, 3, 0);
    assert_true(elv_follow_result(&follow));
    assert_false(elv_follow_result(&follow));
    assert_true(elv_follow_seconds(&follow) == 2.0);
}

static void the_last_version_is_always_evaluated_and_its_line_waits(void **state)
{
    (void)state;
    start(false, 2, ELV_EVAL_CLIENTS);
    job.rounds = 3;
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 3, 0), 0);
    assert_int_equal(take(ELV_NOTE_CLIENTS_EVALUATED, 3, 0.75), 1);
    assert_int_equal(take(ELV_NOTE_OVER, 3, 0), 0);
    assert_true(elv_follow_result(&follow));
    assert_true(follow.line.scored && follow.line.score.accuracy == 0.75);
}

static void when_the_run_is_over_no_line_waits_any_longer(void **state)
{
    (void)state;
    start(false, 1, ELV_EVAL_CLIENTS);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 3, 0), 0);
    assert_int_equal(take(ELV_NOTE_OVER, 3, 0), 1); /* nobody evaluated */
    assert_false(lines[0].scored);
    assert_true(elv_follow_result(&follow));
}

static void a_score_that_comes_after_its_line_is_in_the_result(void **state)
{
    (void)state;
    start(false, 2, ELV_EVAL_CLIENTS);
    assert_int_equal(take(ELV_NOTE_ROUND_CLOSED, 3, 0), 1); /* not known yet to be the last */
    assert_int_equal(take(ELV_NOTE_CLIENTS_EVALUATED, 3, 0.75), 0);
    take(ELV_NOTE_OVER, 3, 0);
    assert_true(elv_follow_result(&follow));
    assert_true(follow.line.scored && follow.line.score.accuracy == 0.75);
}

static void a_line_reads_as_promised(void **state)
{
    (void)state;
    char text[512];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_round_line line = {
        .scored = true,
        .score = {.accuracy = 0.81236, .balanced_accuracy = 0.79994999, .loss = 1.5},
        .report = {.version = 3,
                   .n_used = 6,
                   .n_late = 2,
                   .bytes_up = 126660,
                   .took = 2410499,
                   .n_discarded = 1,
                   .wanted = 6,
                   .staleness = 1.25,
                   .wire_up = 150321,
                   .wire_down = 4321}};
    elv_report_round(&out, &line);
    assert_string_equal(text, "round 3 accuracy=0.8124 balanced_accuracy=0.7999 loss=1.5000 used=6 "
                              "late=2 refused=0 bytes_up=126660 bytes_down=0 seconds=2.410 "
                              "wanted=6 discarded=1 staleness=1.25 wire_bytes_up=150321 "
                              "wire_bytes_down=4321");
}

static void what_is_unknown_says_so(void **state)
{
    (void)state;
    char text[512];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_round_line line = {.report = {.version = 1, .loss = (double)NAN}};
    elv_report_round(&out, &line);
    assert_string_equal(text, "round 1 accuracy=nan balanced_accuracy=nan loss=nan used=0 late=0 "
                              "refused=0 bytes_up=0 bytes_down=0 seconds=0.000 "
                              "wanted=0 discarded=0 staleness=0.00 wire_bytes_up=0 "
                              "wire_bytes_down=0");
}

static void a_result_reads_as_promised(void **state)
{
    (void)state;
    char text[1024];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_server_stats stats = {.version = 12,
                                           .updates_used = 72,
                                           .updates_late = 24,
                                           .updates_discarded = 3,
                                           .lapsed = 2,
                                           .bytes_up = 1519921,
                                           .worst_overrun = 1001,
                                           .model = {0xab}};
    const struct elv_run_facts facts = {.train_seconds = 49.349,
                                        .peak_rss_kib = 23668,
                                        .model = "m.safetensors",
                                        .wire_up = 1700000,
                                        .wire_down = 33};
    elv_report_result(&out, &stats, &follow.line, &facts);
    assert_non_null(strstr(text, "rounds=12 train_seconds=49.35 updates_used=72 updates_late=24 "
                                 "updates_refused=0 bytes_up_per_client_round=21110 "
                                 "server_peak_rss_kib=23668 worst_round_overrun_ms=2 "
                                 "model=m.safetensors digest=ab00"));
    assert_non_null(strstr(text,
                           " version=" ELV_VERSION " updates_discarded=3 lapsed=2 bytes_up=1519921 "
                           "bytes_down=0 wire_bytes_up=1700000 wire_bytes_down=33"));
}

static void the_statistics_hold_the_sums_the_clients_named(void **state)
{
    (void)state;
    char text[8192];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_server_stats stats = {.evaluations = 7};
    const struct elv_run_facts facts = {.model = "m.safetensors"};
    const struct elv_round_line last = {
        .report = {.user = {.at = {{"tokens", 1e12}, {"loss.aux", -0.125}, {"big", INFINITY}},
                            .n = 3,
                            .n_left_out = 2}}};
    elv_report_json(&out, &stats, &last, &facts);
    assert_non_null(strstr(text, ",\"evaluations\":7,\"user\":{\"tokens\":1e12,\"loss.aux\":-0.125,"
                                 "\"big\":null},\"user_left_out\":2,"));
    out = elv_line_of(text, sizeof text);
    elv_report_json(&out, &stats, &(struct elv_round_line){0}, &facts);
    assert_non_null(strstr(text, ",\"user\":{},\"user_left_out\":0,"));
}

static void the_statistics_say_what_became_of_the_updates(void **state)
{
    (void)state;
    char text[8192];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_server_stats stats = {.updates_before = 3,
                                           .updates_used = 9,
                                           .updates_late = 2,
                                           .updates_discarded = 4,
                                           .wanted = 5,
                                           .lapsed = 1};
    const struct elv_run_facts facts = {.model = "m.safetensors", .wire_up = 5, .wire_down = 6};
    const struct elv_round_line last = {
        .report = {.n_used = 6, .n_late = 1, .n_discarded = 2, .wanted = 6, .staleness = 0.5}};
    elv_report_json(&out, &stats, &last, &facts);
    assert_non_null(strstr(text, ",\"updates_used\":12,\"updates_late\":2,"));
    assert_non_null(strstr(text,
                           ",\"updates_discarded\":4,\"wanted\":5,\"last_round\":{\"wanted\":6,"
                           "\"used\":6,\"late\":1,\"discarded\":2,\"refused\":0,"
                           "\"staleness\":0.500},\"lapsed\":1,\"wire_bytes_up\":5,"
                           "\"wire_bytes_down\":6}\n"));
}

static void a_table_sums_the_run_up(void **state)
{
    (void)state;
    char text[512];
    struct elv_line out = elv_line_of(text, sizeof text);
    struct elv_server_stats stats = {.version = 12,
                                     .rounds_abandoned = 1,
                                     .updates_used = 72,
                                     .updates_declined = 2,
                                     .updates_failed = 1,
                                     .bytes_up = 3 << 19,
                                     .best_version = 11,
                                     .best_accuracy = 0.87654};
    const struct elv_run_facts facts = {.train_seconds = 49.34, .wire_up = 5 << 19};
    elv_report_table(&out, &stats, &facts);
    assert_string_equal(text, "rounds       12 versions, 1 rounds abandoned, 49.3 s\n"
                              "updates      72 used, 0 late, 0 refused, 3 declined or failed\n"
                              "chunks       1.5 MiB up, 0.0 MiB down\n"
                              "wire         2.5 MiB up, 0.0 MiB down, headers, handshakes and "
                              "repeats included\n"
                              "best         version 11 with accuracy 0.8765\n");
    stats.best_accuracy = -1; /* never evaluated */
    out = elv_line_of(text, sizeof text);
    elv_report_table(&out, &stats, &facts);
    assert_null(strstr(text, "best"));
}

static void the_counters_of_the_ports_end_the_json_object(void **state)
{
    (void)state;
    static char text[8192];
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_figure figures[] = {{"handshakes", 7}, {"sessions", 0}};
    const struct elv_server_stats stats = {.over = true};
    const struct elv_run_facts facts = {.figures = figures, .n_figures = 2};
    elv_report_json(&out, &stats, &follow.line, &facts);
    assert_false(out.full);
    assert_non_null(strstr(text, ",\"handshakes\":7,\"sessions\":0}\n"));
}

static void a_note_shows_the_fields_that_mean_something(void **state)
{
    (void)state;
    static const struct {
        struct elv_note note;
        enum elv_note_weight weight;
        const char *fields;
    } rows[] = {
        {{.kind = ELV_NOTE_STOPPED}, ELV_NOTE_USUAL, ""},
        {{.kind = ELV_NOTE_JOIN_REFUSED, .client = 7, .reason = ELV_REASON_MODEL_TOO_BIG},
         ELV_NOTE_USUAL,
         "client=7 reason=model_too_big"},
        {{.kind = ELV_NOTE_UPDATE_REFUSED, .client = 7, .round = 2, .reason = ELV_REASON_OVER_NORM},
         ELV_NOTE_ODD,
         "client=7 round=2 reason=over_norm"},
        {{.kind = ELV_NOTE_STORE_FAILED, .value = 7}, ELV_NOTE_BAD, "value=7"},
        {{.kind = ELV_NOTE_ROUND_CLOSED,
          .round = 3,
          .version = 2,
          .report = {.n_asked = 8, .n_used = 6, .n_late = 2, .took = 2410499, .overrun = 1500}},
         ELV_NOTE_USUAL,
         "round=3 version=2 asked=8 used=6 late=2 refused=0 seconds=2.410 overrun_ms=1.500 "
         "wanted=0 discarded=0 staleness=0.00"},
        {{.kind = ELV_NOTE_ROUND_OPENED, .round = 3, .value = 8, .report = {.wanted = 6}},
         ELV_NOTE_USUAL,
         "round=3 value=8 wanted=6"},
        {{.kind = ELV_NOTE_EVALUATED,
          .version = 2,
          .score = {.n = 100, .accuracy = 0.5, .loss = 1.25}},
         ELV_NOTE_USUAL,
         "version=2 n=100 accuracy=0.5000 loss=1.2500"},
        {{.kind = ELV_NOTE_CLIENTS_EVALUATED,
          .round = 3,
          .version = 2,
          .score = {.n = 100, .accuracy = 0.5, .loss = 1.25},
          .report.user = {.at = {{"tokens", 12.5}, {"x", (double)NAN}}, .n = 2, .n_left_out = 4}},
         ELV_NOTE_USUAL,
         "round=3 version=2 n=100 accuracy=0.5000 loss=1.2500 user.tokens=12.5 user.x=nan "
         "user_left_out=4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        struct elv_line out = elv_line_of(text, sizeof text);
        elv_report_note(&out, &rows[i].note);
        assert_string_equal(text, rows[i].fields);
        assert_int_equal(elv_note_weight(rows[i].note.kind), rows[i].weight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_waits_for_the_score_of_its_model),
        cmocka_unit_test(rounds_that_are_not_evaluated_are_told_at_once),
        cmocka_unit_test(without_a_test_set_the_clients_scores_count),
        cmocka_unit_test(a_finished_run_that_is_served_again_still_knows_its_score),
        cmocka_unit_test(a_round_that_an_earlier_life_opened_counts_with_the_time_it_took),
        cmocka_unit_test(the_result_is_told_once_after_the_last_line),
        cmocka_unit_test(the_last_version_is_always_evaluated_and_its_line_waits),
        cmocka_unit_test(when_the_run_is_over_no_line_waits_any_longer),
        cmocka_unit_test(a_score_that_comes_after_its_line_is_in_the_result),
        cmocka_unit_test(a_line_reads_as_promised),
        cmocka_unit_test(what_is_unknown_says_so),
        cmocka_unit_test(a_result_reads_as_promised),
        cmocka_unit_test(the_statistics_hold_the_sums_the_clients_named),
        cmocka_unit_test(the_statistics_say_what_became_of_the_updates),
        cmocka_unit_test(a_table_sums_the_run_up),
        cmocka_unit_test(the_counters_of_the_ports_end_the_json_object),
        cmocka_unit_test(a_note_shows_the_fields_that_mean_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
