/* SPDX-License-Identifier: Apache-2.0 */
/* What elver-sim writes, and that it reads back what it wrote. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/fields.h"
#include "ports/sim/lab/rounds_csv.h"
#include "ports/sim/lab/spread.h"

static char text[ELV_LAB_SPREAD_MAX], again[ELV_LAB_SPREAD_MAX];

/* Whatever follows it. */
static void assert_begins(const char *with)
{
    if (strncmp(text, with, strlen(with)) != 0)
        fail_msg("%s does not begin with %s", text, with);
}

static struct elv_text view(const struct elv_line *l) { return (struct elv_text){l->at, l->len}; }

static void strings_are_escaped_for_json(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", "\"\""},
        {"plain text", "\"plain text\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"a\nb\tc\x01", "\"a\\u000ab\\u0009c\\u0001\""},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d",
         "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d\""},
        {"\xff", "\"\xef\xbf\xbd\""},
        {"\xc3", "\"\xef\xbf\xbd\""},                                 /* cut off */
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
        {"\x7f", "\"\\u007f\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_line l = elv_line_of(text, sizeof text);
        elv_lab_put_json(&l, rows[i].in);
        assert_string_equal(text, rows[i].out);
    }
}

static void times_are_seconds_to_the_microsecond(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        const char *out;
    } rows[] = {{0, "0.0"},         {1, "0.000001"},    {1500000, "1.5"},
                {60000000, "60.0"}, {-2500000, "-2.5"}, {1234567890123, "1234567.890123"},
                {100000, "0.1"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const struct elv_lab_field f = {.name = "t", .kind = ELV_LAB_F_TIME};
        struct elv_line l = elv_line_of(text, sizeof text);
        int64_t back = 5;
        elv_lab_put_seconds(&l, rows[i].us);
        assert_string_equal(text, rows[i].out);
        assert_true(elv_lab_field_get(view(&l), &f, &back));
        assert_int_equal(back, rows[i].us);
    }
}

static void fixed_decimals_are_rounded(void **state)
{
    (void)state;
    static const struct {
        double v;
        unsigned decimals;
        const char *out;
    } rows[] = {{0.5, 4, "0.5000"}, {1.99996, 4, "2.0000"}, {-0.25, 1, "-0.3"},
                {-0.01, 1, "0.0"},  {12345.6, 0, "12346"},  {1e300, 2, "10000000000000000.00"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_line l = elv_line_of(text, sizeof text);
        elv_lab_put_fixed(&l, rows[i].v, rows[i].decimals);
        assert_string_equal(text, rows[i].out);
    }
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_put_fixed(&l, (double)NAN, 2);
    assert_string_equal(text, "nan");
}

static struct elv_lab_round a_round(void)
{
    struct elv_lab_round r = {.seq = 12,
                              .version = 11,
                              .opened = 1000001,
                              .closed = 2500000,
                              .deadline = 61000001,
                              .wanted = 8,
                              .n_asked = 10,
                              .n_used = 8,
                              .n_late = 1,
                              .n_dropped = 1,
                              .bytes_up = 123456789012,
                              .bytes_down = 42,
                              .wire_up = 223456789012,
                              .wire_down = 4200,
                              .train_loss = 0.125,
                              .score = {.loss = 1.0 / 3, .accuracy = 0.8512},
                              .stale_mean = 0.5,
                              .waiting_us = 1000000,
                              .working_us = 3000000};
    memset(r.model, 0xab, sizeof r.model);
    return r;
}

static void a_round_is_a_row_that_reads_back(void **state)
{
    (void)state;
    struct elv_lab_round r = a_round(), back;
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_csv_row(&l, &r);
    assert_int_equal(
        strncmp(text, "12,11,0,1.000001,2.5,61.000001,8,10,8,1,0,1,123456789012,42,", 60), 0);
    assert_non_null(strstr(text, ",0.8512,0.5,1.0,3.0,0.25,abab"));
    assert_non_null(strstr(text, "ab,223456789012,4200"));
    assert_true(elv_lab_csv_read(view(&l), &back));
    struct elv_line m = elv_line_of(again, sizeof again);
    elv_lab_csv_row(&m, &back);
    assert_string_equal(text, again);
    assert_int_equal(back.closed, r.closed);
    assert_true(back.wire_up == r.wire_up && back.wire_down == r.wire_down);
    assert_memory_equal(back.model, r.model, sizeof r.model);
}

static void what_is_not_known_is_an_empty_cell(void **state)
{
    (void)state;
    struct elv_lab_round r = {.seq = 1, .deadline = ELV_NEVER, .train_loss = (double)NAN}, back;
    r.score.loss = (double)NAN;
    r.score.accuracy = -1;
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_csv_row(&l, &r);
    assert_string_equal(text, "1,0,0,0.0,0.0,,0,0,0,0,0,0,0,0,,,,0,0.0,0.0,,,0,0");
    assert_true(elv_lab_csv_read(view(&l), &back));
    assert_true(isnan(back.train_loss) && isnan(back.score.loss));
    assert_true(back.score.accuracy < 0 && back.deadline == ELV_NEVER);
}

/* But in its last number: that a file is as long as it was is in its summary. */
static void a_row_is_refused_at_every_truncation(void **state)
{
    (void)state;
    const struct elv_lab_round r = a_round();
    struct elv_lab_round back;
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_csv_row(&l, &r);
    for (size_t len = 0; len < l.len; len++) {
        char *cut = malloc(len > 0 ? len : 1);
        assert_non_null(cut);
        memcpy(cut, text, len);
        const bool shorter = strchr(text + len, ',') == NULL && text[len - 1] != ',';
        assert_int_equal(elv_lab_csv_read((struct elv_text){cut, len}, &back), shorter);
        free(cut);
    }
}

static void a_file_of_rounds_starts_with_its_columns(void **state)
{
    (void)state;
    struct elv_text rows;
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_csv_head(&l);
    assert_begins("round,version,abandoned,");
    elv_line_add(&l, "\n1,2\n");
    assert_true(elv_lab_csv_begins(view(&l), &rows));
    assert_int_equal(rows.len, 4);
    text[0] = 'R';
    assert_false(elv_lab_csv_begins(view(&l), &rows));
    assert_false(elv_lab_csv_begins((struct elv_text){text, 0}, &rows));
}

static void events_are_json_lines(void **state)
{
    (void)state;
    const struct elv_lab_event used = {.at = 1500000,
                                       .kind = ELV_LAB_USED,
                                       .client = 3,
                                       .round = 7,
                                       .version = 6,
                                       .assignment = 7,
                                       .weight = 10};
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_client_event(&l, &used);
    assert_string_equal(text,
                        "{\"at\":1.5,\"event\":\"used\",\"client\":3,\"round\":7,\"version\":6,"
                        "\"assignment\":7,\"staleness\":0,\"weight\":10}");
    struct elv_lab_round r = a_round();
    r.abandoned = true;
    l = elv_line_of(text, sizeof text);
    elv_lab_round_event(&l, &r);
    assert_begins("{\"at\":2.5,\"event\":\"abandoned\",\"round\":12,");
    assert_true(l.len < ELV_LAB_ROW_MAX);
}

static struct elv_lab_outcome an_outcome(uint64_t seed)
{
    struct elv_lab_outcome o = {.label = "backup:backup=5", .seed = seed, .has_target = true};
    struct elv_lab_summary *s = &o.summary;
    s->ended = 20000000;
    s->reached = true;
    s->reached_at = 10000000 * (elv_time_us)seed;
    s->version = s->rounds = 60;
    s->used = 100 * seed;
    s->waiting_us = 1e6;
    s->working_us = 3e6;
    s->fairness = 0.9;
    s->score.loss = 0.4375;
    s->score.accuracy = s->best_accuracy = 0.85;
    s->stale[0] = 90;
    s->stale[31] = 10;
    s->hash = 0x0123456789abcdefu;
    memset(o.configuration, 0x5a, sizeof o.configuration);
    memset(s->model, 0xcd, sizeof s->model);
    return o;
}

static void an_outcome_reads_back(void **state)
{
    (void)state;
    const struct elv_lab_outcome o = an_outcome(2);
    struct elv_lab_outcome back = {.label = "backup:backup=5"};
    struct elv_line l = elv_line_of(text, sizeof text), m = elv_line_of(again, sizeof again);
    elv_lab_outcome_json(&l, &o);
    assert_false(l.full);
    assert_true(elv_lab_outcome_read(view(&l), &back));
    elv_lab_outcome_json(&m, &back);
    assert_string_equal(text, again);
    assert_int_equal(back.summary.stale[31], 10);
    assert_int_equal(back.summary.hash, o.summary.hash);
    for (size_t len = 0; len < l.len; len++)
        assert_false(elv_lab_outcome_read((struct elv_text){text, len}, &back));
}

static void an_outcome_is_a_line_for_scripts(void **state)
{
    (void)state;
    struct elv_lab_outcome o = an_outcome(1);
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_outcome_line(&l, &o);
    assert_begins("run label=backup:backup=5 seed=1 reached=1 time=10.000000 rounds=60 "
                  "accuracy=0.8500 loss=0.437500 waiting=0.2500 updates_per_s=5.0000 "
                  "bytes_up=0 ");
    o.summary.reached = false;
    l = elv_line_of(text, sizeof text);
    elv_lab_outcome_line(&l, &o);
    assert_non_null(strstr(text, " reached=0 time=nan "));
    o.has_target = false;
    l = elv_line_of(text, sizeof text);
    elv_lab_outcome_line(&l, &o);
    assert_non_null(strstr(text, " reached=- time=20.000000 "));
}

static void runs_of_a_label_are_told_together(void **state)
{
    (void)state;
    struct elv_lab_outcome runs[3] = {an_outcome(1), an_outcome(2), an_outcome(1)};
    runs[2].summary.reached = false;
    runs[2].summary.score.accuracy = -1;
    const struct elv_lab_spread s = elv_lab_spread_of(runs, 3);
    assert_int_equal(s.n_reached, 2);
    assert_true(s.figure[ELV_LAB_FIG_TIME].mean == 15.0);
    assert_true(s.figure[ELV_LAB_FIG_TIME].min == 10.0);
    assert_true(s.figure[ELV_LAB_FIG_TIME].max == 20.0);
    assert_true(s.figure[ELV_LAB_FIG_ACCURACY].mean == 0.85);
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_spread_line(&l, &s);
    assert_begins("result label=backup:backup=5 seeds=3 reached=2 time=15.000000 "
                  "time_min=10.000000 time_max=20.000000 rounds=60.00 ");
    l = elv_line_of(text, sizeof text);
    elv_lab_spread_head(&l, 20);
    const size_t width = l.len;
    elv_lab_spread_row(&l, &s, 20);
    assert_int_equal(l.len, 2 * width);
    assert_non_null(strstr(text, "2/3"));
    assert_non_null(strstr(text, "[10.00 .. 20.00]"));
    l = elv_line_of(text, sizeof text);
    elv_lab_spread_json(&l, &s);
    assert_false(l.full);
    assert_non_null(strstr(text, "\"time\": {\"mean\": 15, \"min\": 10, \"max\": 20}"));
}

static void what_no_run_knows_is_null(void **state)
{
    (void)state;
    struct elv_lab_outcome run = an_outcome(1);
    run.summary.reached = false;
    run.summary.score.accuracy = -1;
    const struct elv_lab_spread s = elv_lab_spread_of(&run, 1);
    struct elv_line l = elv_line_of(text, sizeof text);
    elv_lab_spread_json(&l, &s);
    assert_non_null(strstr(text, "\"accuracy\": {\"mean\": null, \"min\": null, \"max\": null}"));
    l = elv_line_of(text, sizeof text);
    elv_lab_spread_line(&l, &s);
    assert_non_null(strstr(text, " time=nan "));
}

static void a_key_is_found_at_the_start_of_its_line_only(void **state)
{
    (void)state;
    static const char json[] = "{\n  \"a\": \"x\",\n  \"b\": [1, 2],\n  \"c\": {\"d\": 4}\n}\n";
    const struct elv_text t = {json, sizeof json - 1};
    struct elv_text value;
    assert_true(elv_lab_json_find(t, "a", &value) && elv_value_is(value, "\"x\""));
    assert_true(elv_lab_json_find(t, "b", &value) && elv_value_is(value, "[1, 2]"));
    assert_false(elv_lab_json_find(t, "d", &value));
    assert_false(elv_lab_json_find(t, "x", &value));
    assert_false(elv_lab_json_find((struct elv_text){json, 0}, "a", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped_for_json),
        cmocka_unit_test(times_are_seconds_to_the_microsecond),
        cmocka_unit_test(fixed_decimals_are_rounded),
        cmocka_unit_test(a_round_is_a_row_that_reads_back),
        cmocka_unit_test(what_is_not_known_is_an_empty_cell),
        cmocka_unit_test(a_row_is_refused_at_every_truncation),
        cmocka_unit_test(a_file_of_rounds_starts_with_its_columns),
        cmocka_unit_test(events_are_json_lines),
        cmocka_unit_test(an_outcome_reads_back),
        cmocka_unit_test(an_outcome_is_a_line_for_scripts),
        cmocka_unit_test(runs_of_a_label_are_told_together),
        cmocka_unit_test(what_no_run_knows_is_null),
        cmocka_unit_test(a_key_is_found_at_the_start_of_its_line_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
