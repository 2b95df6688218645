/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/html_fixture.h"

/* A page's form. */

enum { DEPTH = 64, NAME = 24 };

struct tags {
    char open[DEPTH][NAME];
    uint32_t depth;
    uint32_t elements;
};

static size_t name_len(const char *at) { return strcspn(at, " \t\n/>"); }

/* Attributes are name="value" without < or a bare &; returns what follows the tag. */
static const char *check_attributes(const char *at, bool *empty)
{
    *empty = false;
    while (*at != '>') {
        assert_true(*at != '\0' && *at != '<');
        if (*at == '"') {
            const size_t len = strcspn(at + 1, "\"<");
            assert_int_equal(at[1 + len], '"');
            at += len + 1;
        }
        *empty = *at == '/';
        at++;
    }
    return at + 1;
}

static const char *check_tag(struct tags *t, const char *at)
{
    if (at[1] == '!')
        return strchr(at, '>') + 1;
    const bool closes = at[1] == '/';
    const char *name = at + (closes ? 2 : 1);
    const size_t len = name_len(name);
    assert_true(len > 0 && len < NAME);
    bool empty;
    const char *after = check_attributes(name + len, &empty);
    if (closes) {
        assert_true(t->depth > 0);
        t->depth--;
        assert_int_equal(strlen(t->open[t->depth]), len);
        assert_memory_equal(t->open[t->depth], name, len);
    } else if (!empty) {
        assert_true(t->depth < DEPTH);
        memcpy(t->open[t->depth], name, len);
        t->open[t->depth++][len] = '\0';
    }
    t->elements++;
    return after;
}

static void check_entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(at, known[i], strlen(known[i])) == 0)
            return;
    fail_msg("bare &: %.20s", at);
}

/* Every element that opens closes, in order; returns how many there are. */
static uint32_t check_well_formed(const char *page)
{
    struct tags t = {.depth = 0};
    for (const char *at = page; *at != '\0';) {
        if (*at == '<') {
            at = check_tag(&t, at);
            continue;
        }
        if (*at == '&')
            check_entity(at);
        assert_true(*at != '>' || strcmp(t.open[t.depth - 1], "style") == 0);
        at++;
    }
    assert_int_equal(t.depth, 0);
    return t.elements;
}

static uint32_t count(const char *page, const char *what)
{
    uint32_t n = 0;
    for (const char *at = strstr(page, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

static void check_self_contained(const char *page)
{
    static const char *const outside[] = {"http:", "https:",  "src=",    "@import", "url(",
                                          "//",    "<script", "<object", "<iframe"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        if (strstr(page, outside[i]) != NULL)
            fail_msg("the page holds %s", outside[i]);
    assert_int_equal(count(page, "href="), 1); /* no icon is fetched */
    assert_non_null(strstr(page, "href=\"data:,\""));
}

static void check_no_strange_number(const char *page)
{
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "NaN"));
    assert_null(strstr(page, "inf,"));
    assert_null(strstr(page, "-inf"));
}

/* Tests. */

static const char *const cards[] = {"accuracy", "loss",  "waiting",   "comparison", "wanted",
                                    "fairness", "bytes", "staleness", "settings"};

static void pages_of_every_size_are_well_formed_self_contained_and_below_a_megabyte(void **state)
{
    (void)state;
    static const struct html_fixture_cfg rows[] = {
        {.labels = 1, .seeds = 1, .rounds = 1, .clients = 1},
        {.labels = 1, .seeds = 1, .rounds = 1, .clients = 16},
        {.labels = 1, .seeds = 3, .rounds = 2, .clients = 16},
        {.labels = 4, .seeds = 3, .rounds = 80, .clients = 16},
        {.labels = 4, .seeds = 1, .rounds = 5000, .clients = 100},
        {.labels = 12, .seeds = 5, .rounds = 100, .clients = 100},
        {.labels = 16, .seeds = 2, .rounds = 100, .clients = 20},
        {.labels = 3, .seeds = 2, .rounds = 60, .clients = 10, .timing_only = true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct html_fixture f;
        html_fixture_init(&f, rows[i]);
        assert_true(check_well_formed(f.text) > 100);
        check_self_contained(f.text);
        check_no_strange_number(f.text);
        assert_true(f.len < 1000000);
        for (size_t c = 0; c < sizeof cards / sizeof cards[0]; c++) {
            char id[32] = "id=\"";
            strcat(strcat(id, cards[c]), "\"");
            assert_int_equal(count(f.text, id), 1);
        }
        html_fixture_free(&f);
    }
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    (void)state;
    const struct html_fixture_cfg cfg = {.labels = 5, .seeds = 3, .rounds = 50, .clients = 20};
    struct html_fixture a, b;
    html_fixture_init(&a, cfg);
    html_fixture_init(&b, cfg);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.text, b.text, a.len);
    html_fixture_free(&a);
    html_fixture_free(&b);
}

static void without_runs_the_page_says_so(void **state)
{
    (void)state;
    const struct elv_html_report r = {.title = "nothing", .program = "test"};
    char *page = html_fixture_page(&r);
    check_well_formed(page);
    assert_non_null(strstr(page, "There are no runs."));
    assert_non_null(strstr(page, "No accuracy was measured."));
    free(page);
}

static void a_run_without_a_round_has_no_line(void **state)
{
    (void)state;
    const struct elv_html_run runs[] = {
        {.label = "empty", .summary = {.score = {.loss = NAN, .accuracy = -1.0}}}};
    const struct elv_html_report r = {
        .title = "t", .program = "p", .runs = runs, .n_runs = 1, .target_accuracy = 0.5};
    char *page = html_fixture_page(&r);
    check_well_formed(page);
    check_no_strange_number(page);
    assert_int_equal(count(page, "class=\"ln\""), 1); /* in the table of policies alone */
    assert_non_null(strstr(page, "No policy reached accuracy 0.5"));
    free(page);
}

static void values_that_are_no_numbers_leave_no_trace(void **state)
{
    (void)state;
    struct elv_lab_round rounds[40] = {{0}};
    for (uint32_t i = 0; i < 40; i++) {
        rounds[i] = (struct elv_lab_round){.seq = i, .version = i, .closed = 1000000 * (i + 1)};
        rounds[i].train_loss = NAN;
        rounds[i].score.loss = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : 1.0 / (double)(i + 1);
        rounds[i].score.accuracy = i % 2 == 0 ? NAN : -1.0;
        rounds[i].waiting_us = NAN;
    }
    struct elv_html_run run = {.label = "odd", .rounds = rounds, .n_rounds = 40};
    run.summary.waiting_us = run.summary.working_us = NAN;
    run.summary.fairness = NAN;
    run.summary.score = (struct elv_lab_score){.loss = -INFINITY, .accuracy = NAN};
    const struct elv_html_report r = {.title = "t", .program = "p", .runs = &run, .n_runs = 1};
    char *page = html_fixture_page(&r);
    check_well_formed(page);
    check_no_strange_number(page);
    assert_null(strstr(page, "id=\"accuracy\""));
    assert_non_null(strstr(page, "<section class=\"card wide\" id=\"loss\">"));
    assert_null(strstr(page, "No loss was measured."));
    free(page);
}

static void a_loss_that_explodes_is_still_drawn(void **state)
{
    (void)state;
    struct elv_lab_round rounds[60] = {{0}};
    double loss = 1e-9;
    for (uint32_t i = 0; i < 60; i++, loss *= 1e4) {
        rounds[i] = (struct elv_lab_round){.version = i + 1, .closed = (elv_time_us)(i + 1)};
        rounds[i].train_loss = loss;
        rounds[i].score = (struct elv_lab_score){.loss = NAN, .accuracy = -1.0};
    }
    const struct elv_html_run run = {.label = "x", .rounds = rounds, .n_rounds = 60};
    const struct elv_html_report r = {.title = "t", .program = "p", .runs = &run, .n_runs = 1};
    char *page = html_fixture_page(&r);
    check_well_formed(page);
    assert_non_null(strstr(page, "As the clients reported it"));
    free(page);
}

static void losses_at_the_ends_of_what_a_double_holds_are_drawn(void **state)
{
    (void)state;
    static const double rows[][2] = {{-1.7e308, 1.7e308}, {1e-308, 1e308},    {5e-324, 5e-324},
                                     {0.0, 1e-300},       {1e12, 1e12 + 1.0}, {-1e-9, -1e-9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_lab_round rounds[2] = {{0}};
        for (uint32_t k = 0; k < 2; k++)
            rounds[k] = (struct elv_lab_round){.closed = (elv_time_us)k * 1000,
                                               .score = {.loss = rows[i][k], .accuracy = -1.0}};
        const struct elv_html_run run = {.label = "x", .rounds = rounds, .n_rounds = 2};
        const struct elv_html_report r = {.title = "t", .program = "p", .runs = &run, .n_runs = 1};
        char *page = html_fixture_page(&r);
        check_well_formed(page);
        check_no_strange_number(page);
        free(page);
    }
}

static void what_users_wrote_is_escaped_and_never_markup(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
        {"a & b \"c\" 'd'", "a &amp; b &quot;c&quot; &#39;d&#39;"},
        {"--><b>", "--&gt;&lt;b&gt;"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"bad \xff\xc3 end", "bad \xef\xbf\xbd\xef\xbf\xbd end"},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"long \xc0\x80 \xed\xa0\x80",
         "long \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"bell \a", "bell \xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_lab_round round = {
            .version = 1, .closed = 5, .wanted = 3, .train_loss = 1.0};
        const uint32_t uses[2] = {1, 2};
        const struct elv_html_run run = {.label = rows[i].text,
                                         .rounds = &round,
                                         .n_rounds = 1,
                                         .summary = {.used = 3, .version = 1, .fairness = 0.9},
                                         .uses = uses,
                                         .n_clients = 2};
        const struct elv_html_setting setting = {rows[i].text, rows[i].text, rows[i].text,
                                                 rows[i].text};
        const struct elv_html_report r = {.title = rows[i].text,
                                          .program = rows[i].text,
                                          .runs = &run,
                                          .n_runs = 1,
                                          .settings = &setting,
                                          .n_settings = 1};
        char *page = html_fixture_page(&r);
        check_well_formed(page);
        assert_true(count(page, rows[i].shown) >= 15);
        if (strcmp(rows[i].text, rows[i].shown) != 0)
            assert_null(strstr(page, rows[i].text));
        free(page);
    }
}

static void missing_texts_are_nothing(void **state)
{
    (void)state;
    const struct elv_html_run run = {.label = NULL};
    const struct elv_html_setting settings[2] = {{NULL, NULL, NULL, NULL}, {"a", "b", NULL, NULL}};
    const struct elv_html_report r = {
        .runs = &run, .n_runs = 1, .settings = settings, .n_settings = 2};
    char *page = html_fixture_page(&r);
    check_well_formed(page);
    free(page);
}

static void put_nowhere(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(size_t *)ctx += len;
}

static void too_little_scratch_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    struct html_fixture f;
    html_fixture_init(
        &f, (struct html_fixture_cfg){.labels = 2, .seeds = 2, .rounds = 5, .clients = 9});
    const size_t need = elv_html_scratch(&f.report);
    double *scratch = malloc(need + sizeof *scratch);
    size_t put = 0;
    const struct elv_html_out out = {&put, put_nowhere};
    assert_int_equal(elv_html_write(&f.report, out, scratch, need - 1), ELV_ERR_SPACE);
    assert_int_equal(put, 0);
    assert_int_equal(elv_html_write(&f.report, out, scratch + 1, need), ELV_OK); /* wherever */
    assert_int_equal(put, f.len);
    free(scratch);
    html_fixture_free(&f);
}

/* Figures. */

static void the_headline_names_the_policy_that_reached_the_target_first(void **state)
{
    (void)state;
    const struct elv_html_run runs[] = {
        {.label = "slow", .seed = 1, .summary = {.reached = true, .reached_at = 90000000}},
        {.label = "slow", .seed = 2, .summary = {.reached = true, .reached_at = 110000000}},
        {.label = "quick", .seed = 1, .summary = {.reached = true, .reached_at = 40000000}},
        {.label = "quick", .seed = 2, .summary = {.reached = true, .reached_at = 40000000}},
        {.label = "lucky", .seed = 1, .summary = {.reached = true, .reached_at = 10000000}},
        {.label = "lucky", .seed = 2},
    };
    const struct elv_html_report r = {
        .title = "t", .program = "p", .runs = runs, .n_runs = 6, .target_loss = 0.05};
    char *page = html_fixture_page(&r);
    assert_non_null(strstr(page, "<strong>quick</strong> reached loss 0.05 first, after "
                                 "<strong>40.0\xc2\xa0s</strong> of virtual time, <strong>2.5 "
                                 "times</strong> sooner than slow."));
    assert_non_null(strstr(page, "10.0\xc2\xa0s <small>1 of 2</small>"));
    free(page);
}

static void figures_are_written_with_units_people_use(void **state)
{
    (void)state;
    static const struct {
        elv_time_us ended;
        uint64_t bytes;
        const char *time, *size;
    } rows[] = {
        {1, 1, "1.00\xc2\xa0\xc2\xb5s",
         "1.00\xc2\xa0"
         "B"},
        {999, 999, "999\xc2\xa0\xc2\xb5s",
         "999\xc2\xa0"
         "B"},
        {1500, 1500, "1.50\xc2\xa0ms", "1.50\xc2\xa0kB"},
        {119900000, 999600, "120\xc2\xa0s", "1000\xc2\xa0kB"},
        {120000000, 1000000, "2.00\xc2\xa0min", "1.00\xc2\xa0MB"},
        {7200000000, 123456789, "2.00\xc2\xa0h", "123\xc2\xa0MB"},
        {864000000000, 9876543210000,
         "10.0\xc2\xa0"
         "d",
         "9.88\xc2\xa0TB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_html_run run = {
            .label = "a", .summary = {.ended = rows[i].ended, .bytes_up = rows[i].bytes}};
        const struct elv_html_report r = {.title = "t", .program = "p", .runs = &run, .n_runs = 1};
        char *page = html_fixture_page(&r);
        char want[64] = "<dt>virtual time</dt><dd>";
        assert_non_null(strstr(page, strcat(strcat(want, rows[i].time), "</dd>")));
        char size[64] = "<dt>carried</dt><dd>";
        assert_non_null(strstr(page, strcat(strcat(size, rows[i].size), "</dd>")));
        free(page);
    }
}

static double number_after(const char **at, const char *what, const char *end)
{
    const char *found = strstr(*at, what);
    if (found == NULL || found > end)
        return NAN;
    *at = found + strlen(what);
    return strtod(*at, NULL);
}

/* Names beside a chart, from the top: 17 px high where the chart is 300. */
static void names_beside_a_chart_stay_apart_and_inside(void **state)
{
    (void)state;
    for (uint32_t labels = 1; labels <= 12; labels++) {
        struct html_fixture f;
        html_fixture_init(&f, (struct html_fixture_cfg){
                                  .labels = labels, .seeds = 2, .rounds = 110, .clients = 16});
        const char *chart = f.text;
        for (uint32_t c = 0; c < 4; c++) {
            chart = strstr(chart, "<div class=\"names\"");
            assert_non_null(chart);
            const char *end = strstr(chart, "</div>"), *at = chart;
            double last = -6.0;
            uint32_t n = 0;
            for (double top = number_after(&at, "style=\"top:", end); !isnan(top);
                 top = number_after(&at, "style=\"top:", end), n++) {
                assert_true(top - last >= 17.0 / 3.0 && top >= 0.0 && top <= 100.0);
                last = top;
            }
            assert_true(n > 0 && n <= labels);
            chart = end;
        }
        html_fixture_free(&f);
    }
}

static void lines_have_few_points_however_many_rounds(void **state)
{
    (void)state;
    struct html_fixture f;
    html_fixture_init(
        &f, (struct html_fixture_cfg){.labels = 1, .seeds = 1, .rounds = 20000, .clients = 4});
    const char *at = f.text;
    for (at = strstr(at, "class=\"ln\" d=\""); at != NULL; at = strstr(at, "class=\"ln\" d=\"")) {
        at += strlen("class=\"ln\" d=\"");
        uint32_t points = 1;
        for (; *at != '"'; at++)
            points += *at == 'l';
        assert_true(points <= 500);
    }
    html_fixture_free(&f);
}

/* Colours. */

static double channel(const char *hex)
{
    const char text[3] = {hex[0], hex[1], '\0'};
    const double v = (double)strtol(text, NULL, 16) / 255.0;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double luminance(const char *css, const char *name)
{
    char key[24] = "--";
    const char *at = strstr(css, strcat(strcat(key, name), ":#"));
    assert_non_null(at);
    at += strlen(key);
    return 0.2126 * channel(at) + 0.7152 * channel(at + 2) + 0.0722 * channel(at + 4);
}

/* As WCAG 2.1 defines it. */
static double contrast(const char *css, const char *a, const char *b)
{
    const double x = luminance(css, a), y = luminance(css, b);
    return x > y ? (x + 0.05) / (y + 0.05) : (y + 0.05) / (x + 0.05);
}

static void texts_and_lines_stand_out_in_light_and_in_dark(void **state)
{
    (void)state;
    const struct elv_html_report r = {.title = "t", .program = "p"};
    char *page = html_fixture_page(&r);
    const char *dark = strstr(page, "@media (prefers-color-scheme:dark)");
    assert_non_null(dark);
    const char *const schemes[] = {page, dark};
    static const char *const texts[] = {"text", "muted", "accent"};
    static const char *const grounds[] = {"bg", "card"};
    static const char *const lines[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
    for (size_t s = 0; s < 2; s++)
        for (size_t g = 0; g < 2; g++) {
            for (size_t t = 0; t < 3; t++)
                assert_true(contrast(schemes[s], texts[t], grounds[g]) >= 4.5);
            for (size_t l = 0; l < 8; l++)
                assert_true(contrast(schemes[s], lines[l], "card") >= 3.0);
        }
    free(page);
}

static void no_two_lines_share_colour_and_dashes(void **state)
{
    (void)state;
    const struct elv_html_report r = {.title = "t", .program = "p"};
    char *page = html_fixture_page(&r);
    char styles[12][48];
    for (uint32_t i = 0; i < 12; i++) {
        char key[16] = {'.', 's', 0};
        size_t n = 2;
        if (i >= 10)
            key[n++] = '1';
        key[n++] = (char)('0' + i % 10);
        key[n++] = '{';
        const char *at = strstr(page, key);
        assert_non_null(at);
        at += n;
        const size_t len = strcspn(at, "}");
        assert_true(len < sizeof styles[0]);
        memcpy(styles[i], at, len);
        styles[i][len] = '\0';
        const char *dashes = strstr(styles[i], "--d:");
        for (uint32_t k = 0; k < i; k++) {
            const char *others = strstr(styles[k], "--d:");
            assert_true(dashes != NULL);
            assert_true(others == NULL || strcmp(dashes, others) != 0);
        }
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_every_size_are_well_formed_self_contained_and_below_a_megabyte),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
        cmocka_unit_test(without_runs_the_page_says_so),
        cmocka_unit_test(a_run_without_a_round_has_no_line),
        cmocka_unit_test(values_that_are_no_numbers_leave_no_trace),
        cmocka_unit_test(a_loss_that_explodes_is_still_drawn),
        cmocka_unit_test(losses_at_the_ends_of_what_a_double_holds_are_drawn),
        cmocka_unit_test(what_users_wrote_is_escaped_and_never_markup),
        cmocka_unit_test(missing_texts_are_nothing),
        cmocka_unit_test(too_little_scratch_is_refused_before_anything_is_written),
        cmocka_unit_test(the_headline_names_the_policy_that_reached_the_target_first),
        cmocka_unit_test(figures_are_written_with_units_people_use),
        cmocka_unit_test(names_beside_a_chart_stay_apart_and_inside),
        cmocka_unit_test(lines_have_few_points_however_many_rounds),
        cmocka_unit_test(texts_and_lines_stand_out_in_light_and_in_dark),
        cmocka_unit_test(no_two_lines_share_colour_and_dashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
