/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ports/sim/lab/plan.h"
#include "server/param.h"

static struct elv_lab_plan plan;
static struct elv_lab_setup setup;
static struct elv_lab_fault fault;
static char why[ELV_JOB_ERROR_MAX];

static void begin(void)
{
    plan = (struct elv_lab_plan){0};
    elv_lab_setup_init(&setup);
}

static void set(const char *section, const char *key, const char *value)
{
    if (elv_lab_setup_set(&setup, section, key, value, 7, why) != ELV_OK)
        fail_msg("%s.%s: %s", section, key, why);
}

static enum elv_err sweep(const char *text) { return elv_lab_plan_sweep(&plan, text, why); }

static const char *label(uint32_t v)
{
    static char text[ELV_LAB_LABEL_MAX];
    elv_lab_plan_label(&plan, v, "bsp", text);
    return text;
}

static void sweeps_are_read_or_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum elv_err err;
        const char *says;
    } rows[] = {
        {"sync.policy=bsp,backup", ELV_OK, ""},
        {"sync.policy=bsp", ELV_OK, ""},
        {"transfer.up=q8|f32, q8", ELV_OK, ""},
        {"sync.policy", ELV_ERR_FORMAT, "SECTION.KEY=VALUE"},
        {"policy=bsp", ELV_ERR_FORMAT, "SECTION.KEY=VALUE"},
        {".policy=bsp", ELV_ERR_FORMAT, "SECTION.KEY=VALUE"},
        {"sync.=bsp", ELV_ERR_FORMAT, "SECTION.KEY=VALUE"},
        {"sync.policy=bsp,", ELV_ERR_FORMAT, "a value is empty"},
        {"sync.policy=", ELV_ERR_FORMAT, "a value is empty"},
        {"sync.policy=bsp, bsp", ELV_ERR_BUSY, "given twice"},
        {"job.seed=1,2", ELV_ERR_FORMAT, "--seeds"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        assert_int_equal(sweep(rows[i].text), rows[i].err);
        assert_int_equal(plan.n_sweeps, rows[i].err == ELV_OK);
        if (rows[i].err != ELV_OK)
            assert_non_null(strstr(why, rows[i].says));
    }
}

static void a_key_is_swept_once_and_there_is_an_end_to_them(void **state)
{
    (void)state;
    char text[64];
    begin();
    assert_int_equal(sweep("device.jitter=0,1"), ELV_OK);
    assert_int_equal(sweep("device.jitter=2"), ELV_ERR_BUSY);
    for (int i = 1; i < (int)ELV_LAB_SWEEPS_MAX; i++) {
        snprintf(text, sizeof text, "sync.p%d=1,2,3,4,5,6,7,8", i);
        assert_int_equal(sweep(text), ELV_OK);
    }
    assert_int_equal(sweep("link.loss=0"), ELV_ERR_FULL);
    assert_int_equal(elv_lab_plan_variants(&plan), 0); /* 2 * 8^7 */
}

static void seeds_are_a_number_or_a_list(void **state)
{
    (void)state;
    begin();
    assert_int_equal(elv_lab_plan_seeds(&plan, "3", 7, why), ELV_OK);
    assert_int_equal(plan.n_seeds, 3);
    assert_int_equal(plan.seeds[0], 7);
    assert_int_equal(plan.seeds[2], 9);
    assert_int_equal(elv_lab_plan_seeds(&plan, " 5, 1 ,2", 7, why), ELV_OK);
    assert_int_equal(plan.n_seeds, 3);
    assert_int_equal(plan.seeds[0], 5);
    static const char *const wrong[] = {"0", "1001", "x", "", "1,1", "1,,2", "1,x", "-1", "1.5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_not_equal(elv_lab_plan_seeds(&plan, wrong[i], 1, why), ELV_OK);
        assert_non_null(strstr(why, "seeds"));
    }
    assert_int_not_equal(elv_lab_plan_seeds(&plan, "10", UINT64_MAX - 3, why), ELV_OK);
}

static void variants_are_the_cross_product_in_order(void **state)
{
    (void)state;
    begin();
    assert_int_equal(sweep("sync.policy=bsp,backup:backup=5"), ELV_OK);
    assert_int_equal(sweep("device.jitter=0,0.1,0.2"), ELV_OK);
    assert_int_equal(elv_lab_plan_variants(&plan), 6);
    assert_string_equal(label(0), "bsp,device.jitter=0");
    assert_string_equal(label(2), "bsp,device.jitter=0.2");
    assert_string_equal(label(3), "backup:backup=5,device.jitter=0");
    assert_int_equal(elv_lab_plan_apply(&plan, 5, &setup, why), ELV_OK);
    assert_string_equal(setup.job.sync, "backup");
    assert_true(elv_param_get(&setup.job.sync_params, "backup", 0) == 5.0);
    assert_true(setup.world.world.device.jitter == 0.2);
}

static void without_a_sweep_there_is_one_variant_called_by_its_policy(void **state)
{
    (void)state;
    begin();
    assert_int_equal(elv_lab_plan_variants(&plan), 1);
    assert_string_equal(label(0), "bsp");
    assert_int_equal(elv_lab_plan_apply(&plan, 0, &setup, why), ELV_OK);
}

static void labels_are_good_file_names_and_different(void **state)
{
    (void)state;
    char first[ELV_LAB_LABEL_MAX], text[600];
    begin();
    assert_int_equal(sweep("data.train=csv a/b.csv|csv a_b.csv"), ELV_OK);
    strcpy(first, label(0));
    assert_null(strchr(first, '/'));
    assert_null(strchr(first, ' '));
    assert_string_not_equal(first, label(1));
    begin();
    memset(text, 'x', sizeof text);
    memcpy(text, "sync.policy=", 12);
    text[300] = ',';
    text[sizeof text - 1] = '\0';
    assert_int_equal(sweep(text), ELV_OK);
    assert_int_equal(strlen(label(0)), ELV_LAB_LABEL_MAX - 1);
    strcpy(first, label(0));
    assert_string_not_equal(first, label(1));
    begin();
    assert_int_equal(sweep("sync.policy=..,bsp"), ELV_OK);
    assert_true(label(0)[0] != '.');
    begin(); /* joined with commas both of these are p,data.train=q,data.train=q */
    assert_int_equal(sweep("job.name=p|p,data.train=q"), ELV_OK);
    assert_int_equal(sweep("data.train=q|q,data.train=q"), ELV_OK);
    strcpy(first, label(1));
    assert_string_not_equal(first, label(2));
}

static void a_policy_takes_each_parameter_once(void **state)
{
    (void)state;
    static const char *const wrong[] = {"backup:k=3:k=4", "backup:policy=bsp", "backup:k",
                                        "backup:k=", "backup:=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[64];
        begin();
        strcpy(text, "sync.policy=");
        strcat(text, wrong[i]);
        assert_int_equal(sweep(text), ELV_OK);
        assert_int_not_equal(elv_lab_plan_apply(&plan, 0, &setup, why), ELV_OK);
        assert_true(strlen(why) > 10);
    }
}

static void parameters_go_to_the_policies_that_know_them(void **state)
{
    (void)state;
    begin();
    set("job", "rounds", "1");
    set("world", "learning", "quadratic");
    set("world", "clients", "16");
    set("sync", "backup", "2");
    const struct elv_lab_setup files = setup;
    assert_int_equal(sweep("sync.policy=bsp,backup,backup:backup=5"), ELV_OK);
    const double want[] = {-1, 2, 5};
    for (uint32_t v = 0; v < 3; v++) {
        setup = files;
        assert_int_equal(elv_lab_plan_apply(&plan, v, &setup, why), ELV_OK);
        assert_true(elv_param_get(&setup.job.sync_params, "backup", -1) == want[v]);
        assert_int_equal(elv_lab_setup_check(&setup, &fault), ELV_OK);
    }
}

static void a_parameter_that_no_policy_of_the_sweep_knows_is_refused_with_its_line(void **state)
{
    (void)state;
    begin();
    set("job", "rounds", "1");
    set("world", "learning", "quadratic");
    set("world", "clients", "16");
    set("sync", "bakcup", "2");
    assert_int_equal(sweep("sync.policy=bsp,backup"), ELV_OK);
    assert_int_equal(elv_lab_plan_apply(&plan, 0, &setup, why), ELV_OK);
    assert_int_equal(elv_lab_setup_check(&setup, &fault), ELV_ERR_MISSING);
    assert_int_equal(fault.line, 7);
    assert_non_null(strstr(fault.why, "bakcup is not a parameter"));
}

static void values_that_are_none_are_refused_when_applied(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"sync.policy=backup:backup", "POLICY:NAME=VALUE"},
        {"sync.policy=backup:=5", "missing"},
        {"sync.policy=backup:backup=5=6", "POLICY:NAME=VALUE"},
        {"sync.deadline=soon", "a time"},
        {"sink.deadline=5s", "a world has world, device"},
        {"link.delay=5s", "[link] has no key delay"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        assert_int_equal(sweep(rows[i].text), ELV_OK);
        assert_int_not_equal(elv_lab_plan_apply(&plan, 0, &setup, why), ELV_OK);
        if (strstr(why, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].text, why);
    }
}

/* Setups. */

static void until_replaces_what_ends_a_run(void **state)
{
    (void)state;
    static const struct {
        const char *until[3];
        double accuracy, loss, horizon;
        uint32_t rounds;
    } rows[] = {
        {{NULL}, 0.9, 0.5, 100, 60},
        {{"accuracy=0.85"}, 0.85, 0, 100, 60},
        {{"loss=0.05"}, 0, 0.05, 100, 60},
        {{"time=600s"}, 0, 0, 600, 0},
        {{"rounds=5"}, 0, 0, 0, 5},
        {{"accuracy=0.85", "rounds=5"}, 0.85, 0, 0, 5},
        {{"time=1h", "loss=1"}, 0, 1, 3600, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        set("job", "target_accuracy", "0.9");
        set("job", "rounds", "60");
        set("world", "target_loss", "0.5");
        set("world", "horizon", "100s");
        assert_int_equal(elv_lab_setup_until(&setup, rows[i].until, why), ELV_OK);
        assert_true(setup.job.target_accuracy == rows[i].accuracy);
        assert_true(setup.world.world.target_loss == rows[i].loss);
        assert_true(setup.world.world.horizon_s == rows[i].horizon);
        assert_int_equal(setup.job.rounds, rows[i].rounds);
    }
    static const char *const wrong[] = {"tomorrow", "accuracy", "accuracy=2", "time=5", "=5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *const list[] = {wrong[i], NULL};
        assert_int_not_equal(elv_lab_setup_until(&setup, list, why), ELV_OK);
        assert_true(strlen(why) > 10);
    }
}

static void what_cannot_be_simulated_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *keys[10]; /* section, key, value */
        enum elv_lab_origin of;
        const char *says; /* NULL: fine */
    } rows[] = {
        {{NULL}, ELV_LAB_OF_JOB, NULL},
        {{"world", "clients", "0"}, ELV_LAB_OF_WORLD, "--clients N"},
        {{"select", "count", "17"}, ELV_LAB_OF_JOB, "count is at most 16, as many clients"},
        {{"sync", "quorum", "17"}, ELV_LAB_OF_JOB, "quorum is at most 16"},
        {{"select", "min_clients", "17"}, ELV_LAB_OF_JOB, "min_clients is at most 16"},
        {{"sync", "policy", "backup", "sync", "k", "17"}, ELV_LAB_OF_JOB, "k is at most"},
        {{"sync", "policy", "overselect", "sync", "goal", "17"}, ELV_LAB_OF_JOB, "goal is at most"},
        {{"sync", "policy", "dbw", "sync", "k_min", "17"}, ELV_LAB_OF_JOB, "k_min is at most"},
        {{"sync", "policy", "asp", "aggregate", "max_weight", "4294967295", "world", "clients",
          "1000000"},
         ELV_LAB_OF_JOB,
         "max_weight times"},
        {{"sync", "policy", "anarchy"}, ELV_LAB_OF_JOB, "anarchy is not known"},
        {{"job", "rounds", "0"}, ELV_LAB_OF_JOB, "a run needs an end"},
        {{"job", "rounds", "0", "world", "horizon", "9s"}, ELV_LAB_OF_WORLD, "nothing takes time"},
        {{"job", "target_accuracy", "0.5"}, ELV_LAB_OF_JOB, "knows no accuracy"},
        {{"world", "learning", "network"}, ELV_LAB_OF_JOB, "[job] needs name"},
        {{"world", "learning", "nothing"}, ELV_LAB_OF_JOB, NULL},
        {{"world", "learning", "nothing", "job", "target_accuracy", "1"},
         ELV_LAB_OF_WORLD,
         "no target is ever reached"},
        {{"world", "target_loss", "1", "data", "holdout", "0.2", "eval", "on", "clients"},
         ELV_LAB_OF_JOB,
         "[eval] on = server"},
        {{"world", "learning", "logistic", "world", "samples", "1000001"},
         ELV_LAB_OF_WORLD,
         "samples is at most"},
        {{"world", "learning", "logistic", "world", "dimensions", "4096", "world", "samples",
          "100000"},
         ELV_LAB_OF_WORLD,
         "2^26"},
        {{"world", "learning", "logistic", "world", "spread", "0.0001"},
         ELV_LAB_OF_WORLD,
         "from 0.001"},
        {{"world", "detail", "messages"}, ELV_LAB_OF_WORLD, "learning = network"},
        {{"faults", "disk_error", "5s"}, ELV_LAB_OF_WORLD, "detail = messages"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        set("job", "rounds", "1");
        set("world", "learning", "quadratic");
        set("world", "clients", "16");
        for (int k = 0; rows[i].keys[k] != NULL; k += 3)
            assert_int_equal(elv_lab_setup_set(&setup, rows[i].keys[k], rows[i].keys[k + 1],
                                               rows[i].keys[k + 2], ELV_JOB_OVERRIDE, why),
                             ELV_OK);
        const enum elv_err err = elv_lab_setup_check(&setup, &fault);
        if ((err == ELV_OK) != (rows[i].says == NULL))
            fail_msg("%s.%s = %s: %s", rows[i].keys[0], rows[i].keys[1],
                     rows[i].keys[5] ? rows[i].keys[5] : "", fault.why);
        if (err == ELV_OK)
            continue;
        if (strstr(fault.why, rows[i].says) == NULL)
            fail_msg("%s.%s = %s: %s", rows[i].keys[0], rows[i].keys[1],
                     rows[i].keys[5] ? rows[i].keys[5] : "", fault.why);
        assert_int_equal(fault.of, rows[i].of);
    }
}

static void the_first_round_waits_for_all_who_are_there_at_the_start(void **state)
{
    (void)state;
    static const struct {
        const char *keys[7];
        uint32_t waits_for;
    } rows[] = {
        {{NULL}, 16},
        {{"select", "min_clients", "5"}, 5},
        {{"device", "start", "spread 100s"}, 3}, /* one comes first, and the quorum is more */
        {{"device", "start", "together 100s"}, 3},
        {{"availability", "churn", "1"}, 3},
        {{"availability", "stay", "constant 9"}, 3}, /* they may be gone before all are there */
        {{"availability", "on", "constant 9", "availability", "off", "constant 9"}, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        set("job", "rounds", "1");
        set("world", "learning", "quadratic");
        set("world", "clients", "16");
        set("sync", "quorum", "3");
        for (int k = 0; rows[i].keys[k] != NULL; k += 3)
            set(rows[i].keys[k], rows[i].keys[k + 1], rows[i].keys[k + 2]);
        assert_int_equal(elv_lab_setup_check(&setup, &fault), ELV_OK);
        assert_int_equal(setup.job.min_clients, rows[i].waits_for);
    }
}

static void digest(uint8_t out[ELV_SHA256_LEN])
{
    struct elv_sha256 h;
    elv_sha256_init(&h);
    elv_lab_setup_digest(&setup, &h);
    elv_sha256_final(&h, out);
}

static void a_digest_is_of_values_and_not_of_where_they_come_from(void **state)
{
    (void)state;
    uint8_t a[ELV_SHA256_LEN], b[ELV_SHA256_LEN];
    begin();
    digest(a);
    assert_int_equal(elv_lab_setup_set(&setup, "sync", "deadline", "60s", ELV_JOB_OVERRIDE, why),
                     ELV_OK);
    digest(b);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(elv_lab_setup_set(&setup, "device", "jitter", "0.1", 1, why), ELV_OK);
    digest(b);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweeps_are_read_or_refused_with_a_sentence),
        cmocka_unit_test(a_key_is_swept_once_and_there_is_an_end_to_them),
        cmocka_unit_test(seeds_are_a_number_or_a_list),
        cmocka_unit_test(variants_are_the_cross_product_in_order),
        cmocka_unit_test(without_a_sweep_there_is_one_variant_called_by_its_policy),
        cmocka_unit_test(labels_are_good_file_names_and_different),
        cmocka_unit_test(a_policy_takes_each_parameter_once),
        cmocka_unit_test(parameters_go_to_the_policies_that_know_them),
        cmocka_unit_test(a_parameter_that_no_policy_of_the_sweep_knows_is_refused_with_its_line),
        cmocka_unit_test(values_that_are_none_are_refused_when_applied),
        cmocka_unit_test(until_replaces_what_ends_a_run),
        cmocka_unit_test(what_cannot_be_simulated_is_refused),
        cmocka_unit_test(the_first_round_waits_for_all_who_are_there_at_the_start),
        cmocka_unit_test(a_digest_is_of_values_and_not_of_where_they_come_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
