/* SPDX-License-Identifier: Apache-2.0 */
/* The policies by themselves: values in, values out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/policies.h"
#include "server/weigh.h"

static struct elv_params one_param(const char *name, double value)
{
    struct elv_params p = {.n = 1};
    strcpy(p.at[0].name, name);
    p.at[0].value = value;
    p.at[0].line = 12;
    return p;
}

static void bsp_closes_when_nobody_is_waited_for(void **state)
{
    (void)state;
    const struct elv_sync_cfg cfg = {.quorum = 1};
    struct elv_sync_round r = {.version = 3, .n_asked = 5, .n_got = 4, .n_waiting = 1};
    assert_false(elv_sync_by_name("bsp")->should_commit(NULL, &cfg, &r, 0));
    r.n_waiting = 0; /* the fifth has left, declined, or was refused */
    assert_true(elv_sync_by_name("bsp")->should_commit(NULL, &cfg, &r, 0));
}

static void only_updates_of_the_rounds_own_version_count(void **state)
{
    (void)state;
    const struct elv_params k = one_param("k", 4);
    const struct elv_sync_cfg cfg = {.quorum = 1, .params = &k};
    const struct elv_sync_round r = {.version = 3, .n_asked = 5};
    for (size_t i = 0; i < elv_sync_count(); i++) {
        if (elv_sync_at(i)->state_len || elv_sync_at(i)->flow == ELV_SYNC_STREAM)
            continue; /* have tests of their own */
        for (uint32_t version = 2; version <= 4; version++) {
            const struct elv_sync_update u = {.version = version};
            const struct elv_sync_worth w = elv_sync_at(i)->on_update(NULL, &cfg, &r, &u, 0);
            assert_int_equal(w.counts, version == 3);
        }
    }
}

/* Each row is one situation and the answer; read it as a sentence. */
static void backup_closes_with_the_first_k(void **state)
{
    (void)state;
    const struct elv_sync *backup = elv_sync_by_name("backup");
    static const struct {
        const char *param;
        double value;
        uint32_t quorum, n_asked, n_got, n_waiting;
        bool commits, one_more_counts;
    } rows[] = {
        {"k", 3, 1, 5, 2, 3, false, true},      /* one short */
        {"k", 3, 1, 5, 3, 2, true, false},      /* enough; the spares are late */
        {"k", 3, 1, 2, 2, 0, true, true},       /* fewer than k were there: all of them */
        {"backup", 2, 1, 5, 2, 3, false, true}, /* waits for 3 of 5 */
        {"backup", 2, 1, 5, 3, 2, true, false},
        {"backup", 0, 1, 5, 4, 1, false, true}, /* no spares: like bsp */
        {"backup", 9, 1, 5, 0, 5, false, true}, /* more spares than clients: the first one */
        {"backup", 9, 1, 5, 1, 4, true, false},
        {"backup", 4, 2, 5, 1, 4, true, true}, /* the quorum needs one more, so it counts */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_params p = one_param(rows[i].param, rows[i].value);
        const struct elv_sync_cfg cfg = {.quorum = rows[i].quorum, .params = &p};
        const struct elv_sync_round r = {.version = 1,
                                         .n_asked = rows[i].n_asked,
                                         .n_got = rows[i].n_got,
                                         .n_waiting = rows[i].n_waiting};
        const struct elv_sync_update u = {.version = 1};
        assert_int_equal(backup->should_commit(NULL, &cfg, &r, 0) != ELV_SYNC_NO, rows[i].commits);
        assert_int_equal(backup->on_update(NULL, &cfg, &r, &u, 0).counts, rows[i].one_more_counts);
    }
}

static void backup_wants_one_of_its_parameters(void **state)
{
    (void)state;
    const struct elv_sync *backup = elv_sync_by_name("backup");
    static const struct {
        const char *name;
        double value;
        bool fine;
    } rows[] = {
        {"k", 1, false}, /* below the quorum of 2 */
        {"k", 2, true},      {"k", 2.5, false},     {"k", 0, false},
        {"backup", 0, true}, {"backup", -1, false}, {"backup", 1e7, false},
    };
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_params p = one_param(rows[i].name, rows[i].value);
        const struct elv_sync_cfg cfg = {.quorum = 2, .params = &p};
        why[0] = '\0';
        assert_int_equal(backup->check(&cfg, why, &line) == ELV_OK, rows[i].fine);
        assert_int_equal(why[0] == '\0', rows[i].fine);
        assert_int_equal(line, 12);
    }
    const struct elv_params none = {0};
    const struct elv_sync_cfg cfg = {.quorum = 2, .params = &none};
    assert_int_equal(backup->check(&cfg, why, &line), ELV_ERR_RANGE);
}

static void backup_calls_late_clients_off_unless_told_to_let_them_finish(void **state)
{
    (void)state;
    const struct elv_sync *backup = elv_sync_by_name("backup");
    static const struct {
        const char *word; /* NULL: not given */
        bool fine, interrupts;
    } rows[] = {{NULL, true, true},
                {"interrupt", true, true},
                {"finish", true, false},
                {"later", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_params p = one_param("k", 3);
        const struct elv_sync_cfg cfg = {.quorum = 1, .params = &p};
        char why[ELV_JOB_ERROR_MAX];
        uint32_t line = 0;
        if (rows[i].word != NULL) {
            p.n = 2;
            p.at[1] = (struct elv_param){.name = "late", .kind = ELV_PARAM_WORD, .line = 13};
            strcpy(p.at[1].word, rows[i].word);
        }
        assert_int_equal(backup->check(&cfg, why, &line) == ELV_OK, rows[i].fine);
        if (rows[i].fine)
            assert_int_equal(backup->interrupts(NULL, &cfg, (struct elv_sync_client){0}),
                             rows[i].interrupts);
        else
            assert_int_equal(line, 13);
    }
}

static void a_job_that_names_no_policy_of_ours_is_told_which_there_are(void **state)
{
    (void)state;
    static struct elv_job job;
    struct elv_policies p;
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    elv_job_init(&job);
    assert_int_equal(elv_job_set(&job, "sync", "policy", "asap", 7, why), ELV_OK);
    assert_int_equal(elv_policies_of(&job, &p, why, &line), ELV_ERR_MISSING);
    assert_int_equal(line, 7);
    assert_non_null(strstr(why, "asap"));
    assert_non_null(strstr(why, "bsp, backup"));
    strcpy(job.sync, "bsp");
    job.quorum = 1;
    assert_int_equal(elv_policies_of(&job, &p, why, &line), ELV_OK);
    assert_ptr_equal(p.sync, elv_sync_by_name("bsp"));
    job.sync_params = one_param("k", 3);
    assert_int_equal(elv_policies_of(&job, &p, why, &line), ELV_ERR_MISSING);
    assert_int_equal(line, 12);
}

static uint32_t choose(uint64_t seed, uint32_t round, uint32_t count, uint32_t n,
                       struct elv_candidate *at)
{
    const struct elv_select_ask ask = {.seed = seed, .round = round, .count = count};
    for (uint32_t i = 0; i < n; i++)
        at[i] = (struct elv_candidate){.client = 10 + 3 * i, .row = n - i};
    return elv_select_by_name("uniform")->choose(&ask, at, n);
}

static void uniform_selection_is_fair_sorted_and_repeatable(void **state)
{
    (void)state;
    enum { N = 20, K = 5, ROUNDS = 2000 };
    struct elv_candidate a[N], b[N];
    uint32_t times[N] = {0};
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        assert_int_equal(choose(7, round, K, N, a), K);
        assert_int_equal(choose(7, round, K, N, b), K);
        assert_memory_equal(a, b, K * sizeof a[0]);
        for (uint32_t i = 0; i < K; i++) {
            times[(a[i].client - 10) / 3]++;
            assert_true(i == 0 || a[i].client > a[i - 1].client);
        }
    }
    for (uint32_t i = 0; i < N; i++) /* 500 expected, standard deviation 19 */
        assert_in_range(times[i], 400, 600);
    assert_int_equal(choose(7, 1, 0, N, a), N);
    assert_int_equal(choose(7, 1, N + 1, N, a), N);
    assert_int_equal(choose(7, 1, 3, 0, a), 0);
}

static void drawing_places_is_choosing_without_the_candidates(void **state)
{
    (void)state;
    enum { N = 40 };
    struct elv_candidate at[N];
    uint32_t places[N];
    for (uint32_t count = 1; count <= N; count++) {
        const struct elv_select_ask ask = {.seed = 3, .round = count, .count = count};
        assert_int_equal(choose(3, count, count, N, at), count);
        elv_select_by_name("uniform")->draw(&ask, N, places);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(at[i].client, 10 + 3 * places[i]);
            assert_int_equal(at[i].row, N - places[i]);
        }
    }
}

static void fixed_sizing_gives_what_the_job_says(void **state)
{
    (void)state;
    static struct elv_job job;
    const struct elv_candidate c = {.client = 5, .speed = 100};
    elv_job_init(&job);
    job.local_epochs = 0;
    job.local_steps = 17;
    job.batch_size = 4;
    const struct elv_size s = elv_sizing_by_name("fixed")->size(&job, &c);
    assert_int_equal(s.local_epochs, 0);
    assert_int_equal(s.local_steps, 17);
    assert_int_equal(s.batch, 4);
}

static void fedavg_adds_the_mean(void **state)
{
    (void)state;
    const int64_t sum[3] = {(int64_t)6 << 20, -((int64_t)3 << 20), 0};
    float w[3] = {1.0f, 2.0f, 3.0f}, mean[3];
    const struct elv_rule_step step = {.kernels = elv_kernels_best(),
                                       .sum = sum,
                                       .gain = ldexp(1.0 / 3.0, -20),
                                       .w = w,
                                       .mean = mean,
                                       .n = 3};
    elv_rule_by_name("fedavg")->apply(&step);
    assert_true(w[0] == 3.0f && w[1] == 1.0f && w[2] == 3.0f);
}

static void scales_keep_every_sum_below_two_to_the_61(void **state)
{
    (void)state;
    static struct elv_job job;
    static const struct {
        float bound;
        uint32_t max_weight, n;
        int32_t value_bits, weight_bits;
    } rows[] = {
        {8.0f, 100000, 1024, 27, 3},
        {8.1f, 100000, 1024, 26, 3},
        {1.0f, 1, 1, 30, 30},
        {0.5f, 1, 2, 31, 29},
        {1024.0f, 1u << 31, 1u << 19, 20, -20},
    };
    char why[ELV_JOB_ERROR_MAX];
    elv_job_init(&job);
    job.weight = ELV_WEIGHT_SAMPLES;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_scales s;
        job.bound = rows[i].bound;
        job.max_weight = rows[i].max_weight;
        assert_int_equal(elv_scales_of(&job, rows[i].n, &s, why), ELV_OK);
        assert_int_equal(s.value_bits, rows[i].value_bits);
        assert_int_equal(s.weight_bits, rows[i].weight_bits);
        const double value = ldexp((double)job.bound, s.value_bits);
        const double weight = (double)elv_weight_of(&s, UINT32_MAX, 1.0);
        assert_true(value <= 0x1p30);
        assert_true(value * weight * rows[i].n < 0x1p61);
    }
    struct elv_scales s;
    job.max_weight = UINT32_MAX;
    assert_int_equal(elv_scales_of(&job, 1u << 20, &s, why), ELV_ERR_RANGE);
    job.bound = 0.0f;
    assert_int_equal(elv_scales_of(&job, 1, &s, why), ELV_ERR_RANGE);
}

static void weights_are_whole_capped_and_never_zero(void **state)
{
    (void)state;
    const struct elv_scales s = {.value_bits = 27, .weight_bits = 3, .weight_cap = 1000};
    assert_int_equal(elv_weight_of(&s, 10, 1.0), 80);
    assert_int_equal(elv_weight_of(&s, 10, 0.5), 40);
    assert_int_equal(elv_weight_of(&s, 5000, 1.0), 8000);
    assert_int_equal(elv_weight_of(&s, 0, 1.0), 1);
    assert_int_equal(elv_weight_of(&s, 1, 0.0625), 1); /* one half: to the even 0, then up to 1 */
    assert_int_equal(elv_weight_of(&s, 1, 0.3125), 2); /* 2.5 */
    assert_int_equal(elv_weight_of(&s, 1, 0.4375), 4); /* 3.5 */
    assert_int_equal(elv_weight_claim(ELV_WEIGHT_SAMPLES, 7, 70), 7);
    assert_int_equal(elv_weight_claim(ELV_WEIGHT_SEEN, 7, 70), 70);
    assert_int_equal(elv_weight_claim(ELV_WEIGHT_UNIFORM, 7, 70), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bsp_closes_when_nobody_is_waited_for),
        cmocka_unit_test(only_updates_of_the_rounds_own_version_count),
        cmocka_unit_test(backup_closes_with_the_first_k),
        cmocka_unit_test(backup_wants_one_of_its_parameters),
        cmocka_unit_test(backup_calls_late_clients_off_unless_told_to_let_them_finish),
        cmocka_unit_test(a_job_that_names_no_policy_of_ours_is_told_which_there_are),
        cmocka_unit_test(uniform_selection_is_fair_sorted_and_repeatable),
        cmocka_unit_test(drawing_places_is_choosing_without_the_candidates),
        cmocka_unit_test(fixed_sizing_gives_what_the_job_says),
        cmocka_unit_test(fedavg_adds_the_mean),
        cmocka_unit_test(scales_keep_every_sum_below_two_to_the_61),
        cmocka_unit_test(weights_are_whole_capped_and_never_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
