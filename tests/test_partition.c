/* SPDX-License-Identifier: Apache-2.0 */
#include "client/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/sha256.h"

enum { N_MAX = 6000, CLASSES = 10 };

static uint32_t labels[N_MAX], owner[N_MAX], again[N_MAX], index_of[N_MAX];

/* Ten classes of different sizes, mixed. */
static void make_labels(void)
{
    for (uint32_t i = 0; i < N_MAX; i++)
        labels[i] = (i * 7 + i / 100) % 13 % CLASSES;
}

static struct elv_partition_cfg cfg_of(const char *text, uint64_t seed, uint32_t n_clients,
                                       uint32_t n)
{
    struct elv_partition_cfg cfg = {
        .seed = seed,
        .n_clients = n_clients,
        .n = n,
        .n_classes = CLASSES,
        .labels = labels,
    };
    const char *want = NULL;
    const struct elv_bytes in = {.at = (const uint8_t *)text, .len = strlen(text)};
    assert_int_equal(elv_partition_parse(&cfg.how, in, &want), ELV_OK);
    return cfg;
}

static enum elv_err split(const struct elv_partition_cfg *cfg, uint32_t *to)
{
    const size_t len = elv_partition_mem(cfg);
    void *mem = aligned_alloc(64, len); /* exactly as much as it says */
    assert_non_null(mem);
    memset(mem, 0xA5, len);
    const enum elv_err err = elv_partition_owners(cfg, to, mem, len);
    free(mem);
    return err;
}

static void sizes_of(const struct elv_partition_cfg *cfg, uint32_t *least, uint32_t *most)
{
    *least = cfg->n;
    *most = 0;
    for (uint32_t k = 0; k < cfg->n_clients; k++) {
        const uint32_t size = elv_partition_take(owner, cfg->n, k, NULL);
        *least = size < *least ? size : *least;
        *most = size > *most ? size : *most;
    }
}

static void the_forms_are_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum elv_err want;
    } rows[] = {
        {"iid", ELV_OK},
        {" shards  2 ", ELV_OK},
        {"shards 1000", ELV_OK},
        {"dirichlet 0.5", ELV_OK},
        {"dirichlet 0.001", ELV_OK},
        {"quantity 1000", ELV_OK},
        {"file a/b.npy", ELV_OK},
        {"", ELV_ERR_FORMAT},
        {"iid 1", ELV_ERR_FORMAT},
        {"shards", ELV_ERR_FORMAT},
        {"shards 0", ELV_ERR_RANGE},
        {"shards 1001", ELV_ERR_RANGE},
        {"shards 1.5", ELV_ERR_FORMAT},
        {"dirichlet 0", ELV_ERR_RANGE},
        {"dirichlet -1", ELV_ERR_RANGE},
        {"dirichlet 1001", ELV_ERR_RANGE},
        {"dirichlet nan", ELV_ERR_FORMAT},
        {"dirichlet 0.5 0.5", ELV_ERR_FORMAT},
        {"Dirichlet 0.5", ELV_ERR_FORMAT},
        {"file", ELV_ERR_FORMAT},
        {"dirichlett 1", ELV_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_partition p;
        const char *want = NULL;
        print_message("\"%s\"\n", rows[i].text);
        const struct elv_bytes in = {.at = (const uint8_t *)rows[i].text,
                                     .len = strlen(rows[i].text)};
        assert_int_equal(elv_partition_parse(&p, in, &want), rows[i].want);
        assert_int_equal(want == NULL, rows[i].want == ELV_OK);
    }
}

static void every_split_gives_each_example_to_one_client_and_each_client_examples(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "iid",           "shards 1",       "shards 2",     "dirichlet 0.5",
        "dirichlet 100", "dirichlet 0.01", "quantity 0.5", "quantity 0.05",
    };
    static const struct {
        uint32_t n_clients, n;
    } sizes[] = {{1, 10}, {2, 20}, {3, 1001}, {8, N_MAX}, {100, N_MAX}, {600, N_MAX}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct elv_partition_cfg cfg =
                cfg_of(texts[t], 7, sizes[i].n_clients, sizes[i].n);
            uint32_t least, most, total = 0;
            print_message("%s, %u of %u\n", texts[t], cfg.n_clients, cfg.n);
            memset(owner, 0xFF, sizeof owner);
            assert_int_equal(split(&cfg, owner), ELV_OK);
            for (uint32_t k = 0; k < cfg.n_clients; k++)
                total += elv_partition_take(owner, cfg.n, k, NULL);
            assert_int_equal(total, cfg.n);
            sizes_of(&cfg, &least, &most);
            assert_true(least >= 1);
            if (cfg.how.alpha > 0)
                assert_true(least >= ELV_PARTITION_MIN);
            if (cfg.how.kind == ELV_PARTITION_IID)
                assert_true(most - least <= 1);
            for (uint32_t k = cfg.n; k < N_MAX; k++)
                assert_int_equal(owner[k], UINT32_MAX); /* nothing beyond n is touched */
        }
    }
}

static void everybody_computes_the_same_split_and_another_seed_gives_another(void **state)
{
    (void)state;
    static const char *const texts[] = {"iid", "shards 2", "dirichlet 0.5", "quantity 0.5"};
    for (size_t t = 0; t < 4; t++) {
        struct elv_partition_cfg cfg = cfg_of(texts[t], 1, 8, N_MAX);
        assert_int_equal(split(&cfg, owner), ELV_OK);
        assert_int_equal(split(&cfg, again), ELV_OK);
        assert_memory_equal(owner, again, sizeof owner);
        cfg.seed = 2;
        assert_int_equal(split(&cfg, again), ELV_OK);
        assert_memory_not_equal(owner, again, sizeof owner);
    }
}

/* Recorded once; another machine, compiler or version must come to the same. */
static void the_split_of_a_seed_never_changes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *digest;
    } rows[] = {
        {"iid", "abac70de36a01d0a"},           {"shards 2", "7c79bf502117294f"},
        {"dirichlet 0.5", "823427d91167101e"}, {"dirichlet 0.01", "f5beb40c6c2d027b"},
        {"quantity 2", "339c462f9619b8ae"},
    };
    for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        const struct elv_partition_cfg cfg = cfg_of(rows[t].text, 42, 20, N_MAX);
        static uint8_t bytes[N_MAX];
        uint8_t digest[ELV_SHA256_LEN];
        char hex[17];
        assert_int_equal(split(&cfg, owner), ELV_OK);
        for (uint32_t i = 0; i < N_MAX; i++)
            bytes[i] = (uint8_t)owner[i];
        elv_sha256(bytes, sizeof bytes, digest);
        for (size_t i = 0; i < 8; i++) {
            hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
            hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
        }
        hex[16] = 0;
        assert_string_equal(hex, rows[t].digest);
    }
}

static uint32_t classes_of(uint32_t client, uint32_t n)
{
    bool seen[CLASSES] = {false};
    uint32_t n_seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (owner[i] == client && !seen[labels[i]]) {
            seen[labels[i]] = true;
            n_seen++;
        }
    }
    return n_seen;
}

static void shards_leave_a_client_few_classes(void **state)
{
    (void)state;
    const struct elv_partition_cfg cfg = cfg_of("shards 2", 3, 50, N_MAX);
    assert_int_equal(split(&cfg, owner), ELV_OK);
    for (uint32_t k = 0; k < 50; k++)
        assert_in_range(classes_of(k, N_MAX), 1, 4); /* a shard may straddle two classes */
    uint32_t least, most;
    sizes_of(&cfg, &least, &most);
    assert_true(most - least <= 2);
}

/* The spread of a client's share of a class, over many: for a symmetric Dirichlet distribution
 * the variance of one share is (1/k)(1 - 1/k)/(k a + 1). */
static void dirichlet_shares_spread_as_they_should(void **state)
{
    (void)state;
    enum { K = 4, SEEDS = 60 };
    static const struct {
        const char *text;
        double alpha;
    } rows[] = {{"dirichlet 1", 1}, {"dirichlet 5", 5}, {"dirichlet 50", 50}};
    for (size_t t = 0; t < 3; t++) {
        double sum = 0, squares = 0, n = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const struct elv_partition_cfg cfg = cfg_of(rows[t].text, seed, K, N_MAX);
            assert_int_equal(split(&cfg, owner), ELV_OK);
            double count[CLASSES][K] = {{0}}, total[CLASSES] = {0};
            for (uint32_t i = 0; i < N_MAX; i++) {
                count[labels[i]][owner[i]]++;
                total[labels[i]]++;
            }
            for (uint32_t c = 0; c < CLASSES; c++) {
                for (uint32_t k = 0; k < K; k++) {
                    const double share = count[c][k] / total[c];
                    sum += share;
                    squares += share * share;
                    n++;
                }
            }
        }
        const double mean = sum / n, variance = squares / n - mean * mean;
        const double expected = (1.0 / K) * (1 - 1.0 / K) / (K * rows[t].alpha + 1);
        assert_true(mean > 0.249 && mean < 0.251);
        assert_true(variance > 0.85 * expected && variance < 1.15 * expected);
    }
}

static void what_cannot_be_split_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n_clients, n;
        enum elv_err want;
    } rows[] = {
        {"iid", 0, 10, ELV_ERR_ARG},
        {"iid", 11, 10, ELV_ERR_RANGE},
        {"iid", 10, 10, ELV_OK},
        {"shards 2", 5, 10, ELV_OK},
        {"shards 2", 6, 10, ELV_ERR_RANGE},
        {"dirichlet 1", 2, 19, ELV_ERR_RANGE},
        {"dirichlet 1", 2, 20, ELV_OK},
        {"quantity 1", 2, 19, ELV_ERR_RANGE},
        {"file x.npy", 2, 100, ELV_ERR_ARG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct elv_partition_cfg cfg = cfg_of(rows[i].text, 1, rows[i].n_clients, rows[i].n);
        assert_int_equal(split(&cfg, owner), rows[i].want);
    }
    const struct elv_partition_cfg cfg = cfg_of("iid", 1, 2, 100);
    const size_t len = elv_partition_mem(&cfg);
    void *mem = aligned_alloc(64, len);
    assert_int_equal(elv_partition_owners(&cfg, owner, mem, len - 1), ELV_ERR_SPACE);
    assert_int_equal(elv_partition_owners(&cfg, owner, NULL, 0), ELV_ERR_SPACE);
    free(mem);
}

static void a_client_takes_its_examples_in_rising_order(void **state)
{
    (void)state;
    static const uint32_t owners[] = {1, 0, 1, 2, 1};
    assert_int_equal(elv_partition_take(owners, 5, 1, index_of), 3);
    assert_int_equal(index_of[0], 0);
    assert_int_equal(index_of[1], 2);
    assert_int_equal(index_of[2], 4);
    assert_int_equal(elv_partition_take(owners, 5, 3, index_of), 0);
}

static void a_share_is_held_out_and_nothing_is_lost(void **state)
{
    (void)state;
    static const struct {
        uint32_t n;
        float share;
        uint32_t n_train;
    } rows[] = {
        {100, 0.0f, 100}, {100, 0.1f, 90}, {100, 0.999f, 1}, {1, 0.9f, 1},
        {2, 0.5f, 1},     {3, 0.1f, 3},    {0, 0.5f, 0},     {10, 0.25f, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool seen[100] = {false};
        for (uint32_t k = 0; k < rows[i].n; k++)
            index_of[k] = k;
        assert_int_equal(elv_partition_holdout(5, 3, rows[i].share, index_of, rows[i].n),
                         rows[i].n_train);
        for (uint32_t k = 0; k < rows[i].n; k++) {
            assert_false(seen[index_of[k]]);
            seen[index_of[k]] = true;
        }
    }
    uint32_t a[50], b[50];
    for (uint32_t k = 0; k < 50; k++)
        a[k] = b[k] = k;
    elv_partition_holdout(5, 3, 0.5f, a, 50);
    elv_partition_holdout(5, 4, 0.5f, b, 50);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    make_labels();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forms_are_read_or_refused),
        cmocka_unit_test(every_split_gives_each_example_to_one_client_and_each_client_examples),
        cmocka_unit_test(everybody_computes_the_same_split_and_another_seed_gives_another),
        cmocka_unit_test(the_split_of_a_seed_never_changes),
        cmocka_unit_test(shards_leave_a_client_few_classes),
        cmocka_unit_test(dirichlet_shares_spread_as_they_should),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(a_client_takes_its_examples_in_rising_order),
        cmocka_unit_test(a_share_is_held_out_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
