/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters policies refuse: every one of every policy, whatever a job file may say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/policies.h"

enum { LINE = 12, CLIENTS = 8, QUORUM = 2 };

struct row {
    const char *policy, *with; /* parameters besides, "NAME=VALUE NAME=VALUE" */
    const char *name;
    const char *fine[3], *wrong[6]; /* NULL ends them */
};

#define ODD "-1", "x", "1h"
static const struct row rows[] = {
    {"backup", "", "k", {"2", "8"}, {"1", "9", "2.5", ODD}},
    {"backup", "", "backup", {"0", "7", "1000000"}, {"1000001", "0.5", ODD}},
    {"backup", "k=2", "late", {"finish", "interrupt"}, {"later", "0", "1s", "on"}},
    {"ebsp", "", "lookahead", {"2", "10000"}, {"1", "10001", "2.5", ODD}},
    {"ebsp", "", "r_min", {"1", "15"}, {"0", "16", "1.5", ODD}},
    {"ebsp", "", "predictor", {"ema", "last"}, {"mean", "1", "1s"}},
    {"ebsp", "", "slack", {"0", "100"}, {"100.5", ODD}},
    {"ebsp", "", "tiers", {"0", "auto", "1000"}, {"1001", "1.5", ODD}},
    {"overselect", "", "goal", {"2", "8"}, {"1", "9", "2.5", ODD}},
    {"overselect", "goal=4", "factor", {"1", "100"}, {"0.9", "101", ODD}},
    {"overselect", "goal=4", "minimum", {"0.1", "0.5"}, {"0", "1.1", "0.9", ODD}},
    {"overselect", "goal=4", "selection_timeout", {"0s", "24h"}, {"30", "25h", "-1", "x"}},
    {"dbw", "", "variant", {"psw", "pai"}, {"push", "1", "1s"}},
    {"dbw", "", "rule", {"gain", "blind"}, {"best", "1", "1s"}},
    {"dbw", "rule=adasync", "k0", {"1", "8"}, {"0", "9", ODD}},
    {"dbw", "rule=gain", "k0", {NULL}, {"1"}},
    {"dbw", "", "depth", {"1", "64"}, {"0", "65", "1.5", ODD}},
    {"dbw", "", "guard", {"1", "1.5"}, {"0.5", "1000001", ODD}},
    {"dbw", "", "memory", {"0", "2", "1000000"}, {"1", "1000001", "2.5", ODD}},
    {"dbw", "", "k_min", {"2", "8"}, {"1", "9", "2.5", ODD}},
    {"dbw", "", "slack", {"0", "1.5"}, {"0.5", "1000001", ODD}},
    {"asp", "", "staleness", {"constant", "hinge"}, {"none", "1", "1s"}},
    {"asp", "staleness=polynomial", "staleness_a", {"0", "1000"}, {"1001", ODD}},
    {"asp", "staleness=constant", "staleness_a", {NULL}, {"1"}},
    {"asp", "staleness=hinge", "staleness_b", {"0", "1000000"}, {"1000001", ODD}},
    {"asp", "staleness=polynomial", "staleness_b", {NULL}, {"1"}},
    {"ssp", "", "threshold", {"0", "1000000"}, {"1000001", "0.5", ODD}},
    {"ssp", "", "staleness", {"exponential"}, {"none", "1", "1s"}},
    {"ssp", "staleness=exponential", "staleness_a", {"0.1"}, {"1001", ODD}},
    {"ssp", "staleness=hinge", "staleness_b", {"4"}, {"1000001", ODD}},
    {"dssp", "", "low", {"0", "15"}, {"16", "0.5", ODD}},
    {"dssp", "", "high", {"3", "1003"}, {"2", "1004", "3.5", ODD}},
    {"dssp", "", "strict", {"on", "off"}, {"maybe", "2", "1s"}},
    {"dssp", "", "early", {"on", "off"}, {"maybe", "2", "1s"}},
    {"dssp", "", "staleness", {"polynomial"}, {"none", "1", "1s"}},
    {"dssp", "staleness=polynomial", "staleness_a", {"0.5"}, {"1001", ODD}},
    {"dssp", "staleness=hinge", "staleness_b", {"4"}, {"1000001", ODD}},
    {"psp", "", "beta", {"0", "0.5", "8"}, {"1.5", "9", ODD}},
    {"psp", "", "threshold", {"0", "1000000"}, {"1000001", "0.5", ODD}},
    {"psp", "barrier=pbsp", "threshold", {NULL}, {"4"}},
    {"psp", "", "barrier", {"pssp", "pbsp"}, {"bsp", "1", "1s"}},
    {"psp", "", "resample", {"on", "off"}, {"maybe", "2", "1s"}},
    {"psp", "", "staleness", {"hinge"}, {"none", "1", "1s"}},
    {"psp", "staleness=polynomial", "staleness_a", {"0.5"}, {"1001", ODD}},
    {"psp", "staleness=hinge", "staleness_b", {"4"}, {"1000001", ODD}},
    {"fedasync", "", "alpha", {"0.001", "1"}, {"0", "1.001", ODD}},
    {"fedasync", "", "max_staleness", {"0", "1000000000"}, {"1000000001", "0.5", ODD}},
    {"fedasync", "", "concurrency", {"0", "8"}, {"1000000001", "0.5", ODD}},
    {"fedasync", "", "staleness", {"constant"}, {"none", "1", "1s"}},
    {"fedasync", "staleness=exponential", "staleness_a", {"0.1"}, {"1001", ODD}},
    {"fedasync", "staleness=hinge", "staleness_b", {"4"}, {"1000001", ODD}},
    {"fedbuff", "", "buffer", {"2", "1000000"}, {"1", "1000001", "2.5", ODD}},
    {"fedbuff", "", "concurrency", {"0", "8"}, {"1000000001", "0.5", ODD}},
    {"fedbuff", "", "max_staleness", {"0", "1000000000"}, {"1000000001", "0.5", ODD}},
    {"fedbuff", "", "normalise", {"count", "weights"}, {"mean", "1", "1s"}},
    {"fedbuff", "", "staleness", {"polynomial"}, {"none", "1", "1s"}},
    {"fedbuff", "staleness=polynomial", "staleness_a", {"0.5"}, {"1001", ODD}},
    {"fedbuff", "staleness=hinge", "staleness_b", {"4"}, {"1000001", ODD}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static struct elv_job job;
static char why[ELV_JOB_ERROR_MAX];
static uint32_t line;

static enum elv_err set(const char *section, const char *key, const char *value, uint32_t at)
{
    return elv_job_set(&job, section, key, value, at, why);
}

static void given(const char *policy, const char *with)
{
    elv_job_init(&job);
    job.quorum = QUORUM;
    assert_int_equal(set("sync", "policy", policy, 3), ELV_OK);
    while (*with != '\0') {
        char name[32], value[32];
        int used = 0;
        assert_int_equal(sscanf(with, "%31[^=]=%31s%n", name, value, &used), 2);
        assert_int_equal(set("sync", name, value, 4), ELV_OK);
        with += used;
        with += *with == ' ';
    }
}

/* As a program asks: of the job by itself, and then of so many clients. */
static enum elv_err check(void)
{
    struct elv_policies p;
    why[0] = '\0';
    line = 0;
    const enum elv_err err = elv_policies_of(&job, &p, why, &line);
    return err != ELV_OK ? err : elv_policies_fit(&job, &p, CLIENTS, why, &line);
}

/* The sentence names what would be accepted, and the line. */
static void is_refused(const char *what)
{
    if (check() == ELV_OK)
        fail_msg("%s: %s is accepted", job.sync, what);
    if (strlen(why) < 10 || line != LINE)
        fail_msg("%s: %s is refused with \"%s\" of line %u", job.sync, what, why, line);
}

static void each_parameter_says_what_it_accepts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        for (size_t k = 0; k < 3 && r->fine[k] != NULL; k++) {
            given(r->policy, r->with);
            assert_int_equal(set("sync", r->name, r->fine[k], LINE), ELV_OK);
            if (check() != ELV_OK)
                fail_msg("%s: %s = %s is refused: %s", r->policy, r->name, r->fine[k], why);
        }
        for (size_t k = 0; k < 6 && r->wrong[k] != NULL; k++) {
            given(r->policy, r->with);
            assert_int_equal(set("sync", r->name, r->wrong[k], LINE), ELV_OK);
            is_refused(r->wrong[k]);
        }
    }
}

static bool is_in_the_table(const char *policy, const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].policy, policy) == 0 && strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

static void no_parameter_is_left_out_above(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_sync_count(); i++) {
        const struct elv_sync *p = elv_sync_at(i);
        for (size_t k = 0; p->params != NULL && p->params[k] != NULL; k++)
            if (!is_in_the_table(p->name, p->params[k]))
                fail_msg("%s has a parameter %s", p->name, p->params[k]);
    }
}

/* What is needed that the parameter can be given at all. */
static const char *companions(const char *policy, const char *name)
{
    if (strcmp(policy, "overselect") == 0 && strcmp(name, "goal") != 0)
        return "goal=4";
    return strcmp(policy, "backup") == 0 && strcmp(name, "late") == 0 ? "k=2" : "";
}

/* No number that a program may hand over is taken for one that is none. */
static void nothing_that_is_no_number_is_accepted(void **state)
{
    (void)state;
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -1e-9, -1,
                                 1e300};
    static const enum elv_param_kind kinds[] = {ELV_PARAM_NUMBER, ELV_PARAM_DURATION};
    for (size_t i = 0; i < elv_sync_count(); i++) {
        const struct elv_sync *p = elv_sync_at(i);
        for (size_t k = 0; p->params != NULL && p->params[k] != NULL; k++) {
            for (size_t v = 0; v < 2 * sizeof odd / sizeof odd[0]; v++) {
                given(p->name, companions(p->name, p->params[k]));
                struct elv_param *param = &job.sync_params.at[job.sync_params.n++];
                *param =
                    (struct elv_param){.kind = kinds[v % 2], .value = odd[v / 2], .line = LINE};
                strcpy(param->name, p->params[k]);
                is_refused(p->params[k]);
            }
        }
    }
}

/* A parameter is of one kind. */
static void a_time_is_no_number_and_a_word_is_neither(void **state)
{
    (void)state;
    static const char *const values[] = {"3", "0.5", "1", "10s", "500ms"};
    for (size_t i = 0; i < elv_sync_count(); i++) {
        const struct elv_sync *p = elv_sync_at(i);
        for (size_t k = 0; p->params != NULL && p->params[k] != NULL; k++) {
            bool number = false, time = false;
            for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                given(p->name, companions(p->name, p->params[k]));
                assert_int_equal(set("sync", p->params[k], values[v], LINE), ELV_OK);
                const bool fine = check() == ELV_OK;
                number = number || (fine && v < 3);
                time = time || (fine && v >= 3);
            }
            assert_false(number && time);
            given(p->name, companions(p->name, p->params[k]));
            assert_int_equal(set("sync", p->params[k], "sideways", LINE), ELV_OK);
            is_refused("sideways");
        }
    }
}

static void a_parameter_that_is_none_is_told_which_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_sync_count(); i++) {
        const struct elv_sync *p = elv_sync_at(i);
        given(p->name, companions(p->name, ""));
        assert_int_equal(set("sync", "patience", "3", LINE), ELV_OK);
        assert_int_equal(check(), ELV_ERR_MISSING);
        assert_int_equal(line, LINE);
        assert_non_null(strstr(why, "patience"));
        assert_non_null(strstr(why, p->params != NULL && p->params[0] ? p->params[0] : "none"));
    }
}

static void masking_is_refused_where_updates_are_needed_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < elv_sync_count(); i++) {
        const struct elv_sync *p = elv_sync_at(i);
        given(p->name, companions(p->name, ""));
        assert_int_equal(set("aggregate", "masking", "additive", LINE), ELV_OK);
        is_refused("masking");
        assert_int_equal(strstr(why, "masking = none, or a policy that sums") != NULL, p->single);
    }
    given("bsp", "");
    for (size_t i = 0; i < 2; i++) {
        const char *name = i == 0 ? "fedasync" : "asp";
        assert_true(elv_sync_by_name(name)->single);
    }
}

static void more_clients_than_there_are_cannot_be_asked_for(void **state)
{
    (void)state;
    static const char *const keys[][2] = {
        {"sync", "quorum"}, {"select", "count"}, {"select", "min_clients"}};
    for (size_t i = 0; i < 3; i++) {
        given("bsp", "");
        assert_int_equal(set(keys[i][0], keys[i][1], "8", LINE), ELV_OK);
        assert_int_equal(check(), ELV_OK);
        given("bsp", "");
        assert_int_equal(set(keys[i][0], keys[i][1], "9", LINE), ELV_OK);
        is_refused(keys[i][1]);
    }
    given("bsp", "");
    assert_int_not_equal(set("sync", "deadline", "-1s", LINE), ELV_OK);
    assert_int_not_equal(set("sync", "deadline", "0s", LINE), ELV_OK);
    assert_non_null(strstr(why, "give a time"));
}

static void rules_refuse_what_is_no_number_either(void **state)
{
    (void)state;
    static const char *const of[][2] = {{"fedavg", "server_learning_rate"},
                                        {"fedavgm", "server_learning_rate"},
                                        {"fedavgm", "server_momentum"},
                                        {"fednova", "server_learning_rate"}};
    static const double odd[] = {(double)NAN, (double)INFINITY, -1};
    for (size_t i = 0; i < 4; i++) {
        for (size_t v = 0; v < 3; v++) {
            given("bsp", "");
            assert_int_equal(set("aggregate", "rule", of[i][0], 5), ELV_OK);
            struct elv_param *param = &job.rule_params.at[job.rule_params.n++];
            *param = (struct elv_param){.kind = ELV_PARAM_NUMBER, .value = odd[v], .line = LINE};
            strcpy(param->name, of[i][1]);
            is_refused(of[i][1]);
        }
        given("bsp", "");
        assert_int_equal(set("aggregate", "rule", of[i][0], 5), ELV_OK);
        assert_int_equal(set("aggregate", of[i][1], "fast", LINE), ELV_OK);
        is_refused(of[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_parameter_says_what_it_accepts),
        cmocka_unit_test(no_parameter_is_left_out_above),
        cmocka_unit_test(nothing_that_is_no_number_is_accepted),
        cmocka_unit_test(a_time_is_no_number_and_a_word_is_neither),
        cmocka_unit_test(a_parameter_that_is_none_is_told_which_there_are),
        cmocka_unit_test(masking_is_refused_where_updates_are_needed_one_by_one),
        cmocka_unit_test(more_clients_than_there_are_cannot_be_asked_for),
        cmocka_unit_test(rules_refuse_what_is_no_number_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
