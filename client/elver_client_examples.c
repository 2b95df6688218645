/* SPDX-License-Identifier: Apache-2.0 */
#include "client/elver_client_examples.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/elver_client_options.h"
#include "client/partition.h"
#include "common/arena.h"
#include "ports/zlib/squeeze.h"

/* Who owns which example: as a file says, or drawn from the run's seed. */
static enum elv_err find_owners(struct elv_client_examples *e, const struct elv_manifest *m,
                                uint32_t *owner, char why[ELV_DATASET_WHY_MAX])
{
    const char *want = "";
    struct elv_partition_cfg cfg = {.seed = m->seed,
                                    .n_clients = e->of,
                                    .n = e->data.n,
                                    .n_classes = e->data.n_classes,
                                    .labels = e->data.labels};
    const struct elv_bytes text = {(const uint8_t *)m->partition.at, m->partition.len};
    enum elv_err err = elv_partition_parse(&cfg.how, text, &want);
    snprintf(why, ELV_DATASET_WHY_MAX, "%s", want);
    if (err != ELV_OK)
        return err;
    if (cfg.how.kind == ELV_PARTITION_FILE) {
        char path[ELV_TEXT_MAX];
        snprintf(path, sizeof path, "%.*s", (int)cfg.how.path.len, (const char *)cfg.how.path.at);
        return elv_dataset_load_owners(path, e->data.n, e->of, owner, why);
    }
    const size_t len = elv_partition_mem(&cfg);
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
    if (mem == NULL)
        return ELV_ERR_MEMORY;
    err = elv_partition_owners(&cfg, owner, mem, len);
    free(mem);
    snprintf(why, ELV_DATASET_WHY_MAX, "%s", elv_err_text(err));
    return err;
}

static enum elv_err split(struct elv_client_examples *e, const struct elv_manifest *m,
                          char why[ELV_DATASET_WHY_MAX])
{
    uint32_t n = e->data.n;
    for (uint32_t i = 0; i < n; i++)
        e->mine[i] = i;
    if (e->of > 0) {
        uint32_t *owner = calloc(n, sizeof *owner);
        const enum elv_err err = owner == NULL ? ELV_ERR_MEMORY : find_owners(e, m, owner, why);
        if (err == ELV_OK)
            n = elv_partition_take(owner, n, e->index, e->mine);
        free(owner);
        if (err != ELV_OK)
            return err;
    }
    e->n_train = elv_partition_holdout(m->seed, e->index, m->holdout, e->mine, n);
    e->n_test = n - e->n_train;
    return ELV_OK;
}

static enum elv_err prepare(void *self, const struct elv_manifest *m)
{
    struct elv_client_examples *e = self;
    char why[ELV_DATASET_WHY_MAX] = "";
    const enum elv_err err = split(e, m, why);
    struct elv_log_line l = elv_log_begin(e->log, err == ELV_OK ? ELV_LOG_INFO : ELV_LOG_ERROR,
                                          err == ELV_OK ? "examples_chosen" : "examples_refused");
    elv_log_u64(&l, "n_train", e->n_train);
    elv_log_u64(&l, "n_test", e->n_test);
    elv_log_bytes(&l, "partition", m->partition.at, m->partition.len);
    if (err != ELV_OK)
        elv_log_text(&l, "reason", why);
    elv_log_end(&l);
    if (err != ELV_OK)
        return err;
    elv_dataset_feed_init(&e->train_feed, &e->data, e->mine, e->n_train, m->scale, m->mean, m->std);
    elv_dataset_feed_init(&e->test_feed, &e->data, e->mine + e->n_train, e->n_test, m->scale,
                          m->mean, m->std);
    return ELV_OK;
}

static uint32_t train_count(void *self)
{
    const struct elv_client_examples *e = self;
    return e->n_train;
}

static uint32_t test_count(void *self)
{
    const struct elv_client_examples *e = self;
    return e->n_test;
}

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    const struct elv_client_examples *e = self;
    *n_values = e->data.n_values;
    *n_classes = e->data.n_classes;
}

static enum elv_err train_get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct elv_client_examples *e = self;
    return elv_dataset_feed_get(&e->train_feed, index, n, x, y);
}

static enum elv_err test_get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct elv_client_examples *e = self;
    return elv_dataset_feed_get(&e->test_feed, index, n, x, y);
}

int elv_client_examples_load(struct elv_client_examples *e, const char *spec)
{
    char why[ELV_DATASET_WHY_MAX];
    const struct elv_gunzip gz = {.unpack = elv_zlib_gunzip, .release = elv_zlib_free};
    if (elv_dataset_load(&e->data, spec, ELV_DATASET_TRAIN, &gz, why) != ELV_OK) {
        elv_client_complain("--data", why);
        return ELV_CLIENT_USAGE;
    }
    e->mine = calloc(e->data.n, sizeof *e->mine);
    if (e->mine == NULL)
        return elv_client_complain("--data", "out of memory");
    e->train = (struct elv_feed){
        .self = e, .prepare = prepare, .count = train_count, .shape = shape, .get = train_get};
    e->test = (struct elv_feed){.self = e, .count = test_count, .shape = shape, .get = test_get};
    return EXIT_SUCCESS;
}

void elv_client_examples_free(struct elv_client_examples *e)
{
    elv_dataset_free(&e->data);
    free(e->mine);
}
