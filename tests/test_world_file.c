/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/world_file.h"

static struct elv_world_file f;
static char why[ELV_JOB_ERROR_MAX];

static enum elv_err set(const char *section, const char *key, const char *value, uint32_t line)
{
    return elv_world_file_set(&f, section, key, value, line, why);
}

/* The value of a key as it is printed. */
static const char *printed(const char *path)
{
    static char value[ELV_JOB_TEXT_MAX];
    const char *section, *key;
    uint32_t line;
    for (size_t i = 0; elv_world_file_key(&f, i, &section, &key, value, &line); i++)
        if (strncmp(path, section, strlen(section)) == 0 &&
            strcmp(path + strlen(section) + 1, key) == 0)
            return value;
    fail_msg("no key %s", path);
    return NULL;
}

static void values_are_read_and_printed_as_they_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key, *value, *printed;
    } rows[] = {
        {"world", "detail", "messages", "messages"},
        {"world", "learning", "quadratic", "quadratic"},
        {"world", "clients", "1000000", "1000000"},
        {"world", "horizon", "10m", "600s"},
        {"world", "horizon", "1500ms", "1500ms"},
        {"world", "noise", "4", "4"},
        {"world", "spread", "0.5", "0.5"},
        {"device", "speed", "uniform 1 1.5", "uniform 1 1.5"},
        {"device", "compute", "constant 1.2", "constant 1.2"},
        {"device", "compute", "constant 50ms", "constant 0.05"},
        {"device", "compute", "  exponential   0.8  0.2 ", "exponential 0.8 0.2"},
        {"device", "compute", "lognormal 20ms 0.5", "lognormal 0.02 0.5"},
        {"device", "compute", "half-normal 0.1 1", "half-normal 0.1 1"},
        {"device", "compute", "classes 0.5:1 0.5:5", "classes 0.5:1 0.5:5"},
        {"device", "compute", "classes 0.25:100ms 0.75:2s", "classes 0.25:0.1 0.75:2"},
        {"device", "per", "sample", "sample"},
        {"device", "jitter", "0.1", "0.1"},
        {"world", "more_samples", "0.5 10", "0.5 10"},
        {"world", "more_samples", "none", "none"},
        {"device", "stragglers", "0.1 10", "0.1 10"},
        {"device", "stragglers", "0.1 10 fixed", "0.1 10 fixed"},
        {"device", "stragglers", "none", "none"},
        {"device", "regime", "0.5 5 from 100s until 200s", "0.5 5 from 100s until 200s"},
        {"device", "regime8", "1 0.5 from 0s", "1 0.5 from 0s"},
        {"device", "start", "spread 30s", "spread 30s"},
        {"device", "start", "together 1500ms", "together 1500ms"},
        {"device", "start", "at-once", "at-once"},
        {"link", "profile", "nb-iot", "nb-iot"},
        {"link", "profile", "none", "none"},
        {"link", "latency", "constant 50ms", "constant 0.05"},
        {"link", "up", "lognormal 1e6 0.5", "lognormal 1000000 0.5"},
        {"link", "loss", "0.05", "0.05"},
        {"availability", "dropout", "1/10", "0.1"},
        {"availability", "churn", "0.5", "0.5"},
        {"availability", "stay", "exponential 0 600", "exponential 0 600"},
        {"availability", "trace", "a trace.csv", "a trace.csv"},
        {"faults", "server_crash", "2h", "7200s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[64];
        elv_world_file_init(&f);
        assert_int_equal(set(rows[i].section, rows[i].key, rows[i].value, 1), ELV_OK);
        strcpy(path, rows[i].section);
        strcat(strcat(path, "."), rows[i].key);
        assert_string_equal(printed(path), rows[i].printed);
        assert_int_equal(set(rows[i].section, rows[i].key, rows[i].printed, ELV_JOB_OVERRIDE),
                         ELV_OK);
        assert_string_equal(printed(path), rows[i].printed);
        assert_int_equal(elv_world_file_line(&f, path), ELV_JOB_OVERRIDE);
    }
}

static void what_cannot_be_is_refused_with_what_can(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key, *value;
        enum elv_err err;
        const char *says;
    } rows[] = {
        {"world", "detail", "fine", ELV_ERR_FORMAT, "timing or messages"},
        {"world", "learning", "deep", ELV_ERR_FORMAT, "network, quadratic"},
        {"world", "clients", "-3", ELV_ERR_FORMAT, "a whole number"},
        {"world", "clients", "16777217", ELV_ERR_RANGE, "16777216"},
        {"world", "horizon", "600", ELV_ERR_FORMAT, "such as 600s"},
        {"world", "horizon", "", ELV_ERR_FORMAT, "has no value"},
        {"world", "noise", "-1", ELV_ERR_RANGE, "from 0"},
        {"device", "compute", "-1", ELV_ERR_FORMAT, "constant C"},
        {"device", "compute", "constant", ELV_ERR_FORMAT, "constant C"},
        {"device", "compute", "constant -1", ELV_ERR_RANGE, "constant C"},
        {"device", "compute", "constant 1 2", ELV_ERR_FORMAT, "constant C"},
        {"device", "compute", "uniform 2 1", ELV_ERR_RANGE, "uniform LOW HIGH"},
        {"device", "compute", "exponential 1 -1", ELV_ERR_RANGE, "SHIFT MEAN"},
        {"device", "compute", "lognormal 1 20", ELV_ERR_RANGE, "MEDIAN SIGMA"},
        {"device", "compute", "lognormal 1 5ms", ELV_ERR_FORMAT, "MEDIAN SIGMA"},
        {"device", "compute", "gamma 1 2", ELV_ERR_FORMAT, "half-normal"},
        {"device", "compute", "classes", ELV_ERR_FORMAT, "SHARE:VALUE"},
        {"device", "compute", "classes 0.5:1", ELV_ERR_RANGE, "adding up to 1"},
        {"device", "compute", "classes 0.5:1 0.6:2", ELV_ERR_RANGE, "adding up to 1"},
        {"device", "compute", "classes 1.5:1 -0.5:2", ELV_ERR_RANGE, "adding up to 1"},
        {"device", "compute", "classes 1", ELV_ERR_FORMAT, "SHARE:VALUE"},
        {"device", "compute", "classes 1:2:3", ELV_ERR_FORMAT, "SHARE:VALUE"},
        {"device", "compute", "classes 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.1:1 0.2:1",
         ELV_ERR_FORMAT, "SHARE:VALUE"},
        {"device", "speed", "constant 0", ELV_ERR_RANGE, "factors above 0"},
        {"device", "speed", "constant 5ms", ELV_ERR_FORMAT, "factors above 0"},
        {"world", "more_samples", "0.5", ELV_ERR_FORMAT, "SHARE FACTOR"},
        {"world", "more_samples", "1.5 10", ELV_ERR_RANGE, "SHARE FACTOR"},
        {"world", "more_samples", "0.5 0.5", ELV_ERR_RANGE, "1 or more"},
        {"device", "stragglers", "0.1", ELV_ERR_FORMAT, "SHARE FACTOR"},
        {"device", "stragglers", "0.1 0.5", ELV_ERR_RANGE, "1 or more"},
        {"device", "stragglers", "1.1 2", ELV_ERR_RANGE, "SHARE FACTOR"},
        {"device", "stragglers", "0.1 2 loose", ELV_ERR_FORMAT, "fixed"},
        {"device", "regime", "0.5 5 from 200s until 100s", ELV_ERR_RANGE, "from TIME"},
        {"device", "regime", "0.5 5 from 200s to 300s", ELV_ERR_FORMAT, "until"},
        {"device", "regime", "0.5 5 200s", ELV_ERR_FORMAT, "from TIME"},
        {"device", "regime9", "none", ELV_ERR_MISSING, "regime8"},
        {"device", "start", "spread", ELV_ERR_FORMAT, "spread TIME"},
        {"device", "start", "spread 0s", ELV_ERR_RANGE, "spread TIME"},
        {"link", "loss", "1", ELV_ERR_RANGE, "below 1"},
        {"link", "profile", "5g", ELV_ERR_FORMAT, "nb-iot"},
        {"link", "up", "constant -5", ELV_ERR_RANGE, "bytes per second"},
        {"availability", "dropout", "1", ELV_ERR_RANGE, "below 1"},
        {"availability", "churn", "often", ELV_ERR_FORMAT, "devices per second"},
        {"faults", "down", "-1s", ELV_ERR_FORMAT, "a time"},
        {"link", "latenzy", "x", ELV_ERR_MISSING, "did you mean latency?"},
        {"links", "latency", "x", ELV_ERR_MISSING, "did you mean link?"},
        {"sync", "policy", "bsp", ELV_ERR_MISSING, "there are world, device"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_world_file before;
        elv_world_file_init(&f);
        before = f;
        assert_int_equal(set(rows[i].section, rows[i].key, rows[i].value, 1), rows[i].err);
        if (strstr(why, rows[i].says) == NULL)
            fail_msg("%s = %s: %s", rows[i].key, rows[i].value, why);
        assert_memory_equal(&f, &before, sizeof f);
    }
}

static void every_sentence_fits_its_line(void **state)
{
    (void)state;
    static const char nonsense[] = "this is a value of no key and longer than what is quoted of it";
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    elv_world_file_init(&f);
    for (size_t i = 0; elv_world_file_key(&f, i, &section, &key, value, &line); i++)
        if (set(section, key, nonsense, 1) != ELV_OK)
            assert_true(strlen(why) < ELV_JOB_ERROR_MAX - 1);
}

static void a_key_is_given_once_and_a_flag_overrides_it(void **state)
{
    (void)state;
    elv_world_file_init(&f);
    assert_int_equal(set("world", "clients", "10", 3), ELV_OK);
    assert_int_equal(set("world", "clients", "20", 4), ELV_ERR_BUSY);
    assert_non_null(strstr(why, "line 3"));
    assert_int_equal(set("world", "clients", "20", ELV_JOB_OVERRIDE), ELV_OK);
    assert_int_equal(f.world.clients, 20);
}

static void regimes_have_their_places(void **state)
{
    (void)state;
    elv_world_file_init(&f);
    assert_int_equal(set("device", "regime2", "0.5 5 from 1s", 1), ELV_OK);
    assert_int_equal(f.world.device.n_regimes, 2);
    assert_int_equal(f.world.device.regimes[0].until, 0); /* never holds */
    assert_int_equal(f.world.device.regimes[1].until, ELV_NEVER);
    assert_int_equal(f.world.device.regimes[1].from, 1000000);
}

struct pair {
    const char *section, *key, *value;
};

static void what_does_not_go_together_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        struct pair keys[3];
        uint32_t line; /* 0: fine */
        const char *says;
    } rows[] = {
        {{{"faults", "server_crash", "10s"}}, 1, "detail = messages"},
        {{{"link", "reorder", "0.1"}}, 1, "detail = messages"},
        {{{"world", "detail", "messages"}, {"faults", "server_crash", "10s"}}, 0, ""},
        {{{"faults", "down", "10s"}}, 0, ""}, /* of nothing that happens */
        {{{"availability", "on", "constant 10"}}, 1, "give both"},
        {{{"availability", "off", "constant 10"}}, 1, "give both"},
        {{{"availability", "on", "constant 10"}, {"availability", "off", "constant 5"}}, 0, ""},
        {{{"availability", "trace", "t.csv"}, {"device", "compute", "constant 1"}}, 2, "a trace"},
        {{{"availability", "trace", "t.csv"}, {"link", "latency", "constant 1"}}, 0, ""},
        {{{"availability", "trace", "t.csv"}, {"device", "speed", "constant 1"}}, 0, ""},
        {{{"availability", "churn", "1"}, {"device", "start", "spread 5s"}}, 2, "churn"},
        {{{"link", "profile", "lte"}}, 0, ""},
        {{{"link", "profile", "none"}, {"link", "loss", "0.1"}}, 0, ""},
        {{{"link", "profile", "lte"}, {"link", "loss", "0.1"}}, 2, "a profile"},
        {{{"link", "up", "constant 9"}, {"link", "profile", "lte"}}, 1, "a profile"},
        {{{"link", "profile", "lte"}, {"availability", "trace", "t.csv"}}, 2, "a profile"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t line;
        elv_world_file_init(&f);
        for (uint32_t k = 0; k < 3 && rows[i].keys[k].section != NULL; k++)
            assert_int_equal(
                set(rows[i].keys[k].section, rows[i].keys[k].key, rows[i].keys[k].value, k + 1),
                ELV_OK);
        const enum elv_err err = elv_world_file_check(&f, why, &line);
        assert_int_equal(err != ELV_OK, rows[i].line != 0);
        assert_int_equal(line, rows[i].line);
        assert_non_null(strstr(why, rows[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_and_printed_as_they_read_back),
        cmocka_unit_test(what_cannot_be_is_refused_with_what_can),
        cmocka_unit_test(every_sentence_fits_its_line),
        cmocka_unit_test(a_key_is_given_once_and_a_flag_overrides_it),
        cmocka_unit_test(regimes_have_their_places),
        cmocka_unit_test(what_does_not_go_together_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
