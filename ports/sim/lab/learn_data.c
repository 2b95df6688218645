/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_data.h"

#include <stdlib.h>
#include <string.h>

#include "client/partition.h"
#include "common/arena.h"
#include "common/size.h"
#include "common/text.h"

enum { AT_ONCE = 64 }; /* examples asked of a feed at a time */

static void *take(size_t count, size_t size)
{
    size_t len;
    if (!elv_size_mul(count, size, &len))
        return NULL;
    return malloc(len > 0 ? len : 1);
}

/* Data. */

static void digest_u32(struct elv_sha256 *h, uint32_t v)
{
    const uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    elv_sha256_update(h, b, sizeof b);
}

static enum elv_err read_all(struct elv_lab_data *d, float *x)
{
    struct elv_sha256 sha;
    elv_sha256_init(&sha);
    for (uint32_t at = 0; at < d->n;) {
        uint32_t index[AT_ONCE];
        const uint32_t n = d->n - at < AT_ONCE ? d->n - at : AT_ONCE;
        for (uint32_t i = 0; i < n; i++)
            index[i] = at + i;
        const enum elv_err err = d->feed.get(d->feed.self, index, n, x, d->labels + at);
        if (err != ELV_OK)
            return err;
        for (uint32_t i = 0; i < n; i++) {
            if (d->labels[at + i] >= d->n_classes)
                return ELV_ERR_RANGE;
            digest_u32(&sha, d->labels[at + i]);
            elv_sha256_update_f32(&sha, x + (size_t)i * d->n_values, d->n_values);
        }
        at += n;
    }
    elv_sha256_final(&sha, d->digest);
    return ELV_OK;
}

enum elv_err elv_lab_data_open(struct elv_lab_data *d, const struct elv_feed *feed)
{
    *d = (struct elv_lab_data){.feed = *feed, .n = feed->count(feed->self)};
    feed->shape(feed->self, &d->n_values, &d->n_classes);
    if (d->n == 0)
        return ELV_ERR_MISSING;
    d->labels = take(d->n, sizeof *d->labels);
    float *x = take((size_t)AT_ONCE * d->n_values, sizeof *x);
    const enum elv_err err = d->labels == NULL || x == NULL ? ELV_ERR_MEMORY : read_all(d, x);
    free(x);
    if (err != ELV_OK)
        elv_lab_data_close(d);
    return err;
}

void elv_lab_data_close(struct elv_lab_data *d)
{
    free(d->labels);
    *d = (struct elv_lab_data){0};
}

/* Splits. */

static enum elv_err fail(enum elv_err err, char why[ELV_JOB_ERROR_MAX], const char *text)
{
    struct elv_line line = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&line, text);
    return err;
}

static enum elv_err too_few(const struct elv_lab_split_cfg *cfg, char why[ELV_JOB_ERROR_MAX])
{
    struct elv_line line = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&line, "there are too few examples, ");
    elv_line_uint(&line, cfg->data->n);
    elv_line_add(&line, ", to split them so over ");
    elv_line_uint(&line, cfg->n_clients);
    elv_line_add(&line, " clients; give fewer clients, or another [data] partition");
    return ELV_ERR_RANGE;
}

/* As every client draws it for itself. */
static enum elv_err draw_owners(const struct elv_lab_split_cfg *cfg,
                                const struct elv_partition *how, uint32_t *owner, char *why)
{
    const struct elv_partition_cfg draw = {.how = *how,
                                           .seed = cfg->seed,
                                           .n_clients = cfg->n_clients,
                                           .n = cfg->data->n,
                                           .n_classes = cfg->data->n_classes,
                                           .labels = cfg->data->labels};
    const size_t len = elv_partition_mem(&draw);
    void *mem = len == 0
                    ? NULL
                    : aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
    if (mem == NULL)
        return fail(ELV_ERR_MEMORY, why, "there is not enough memory to split the examples");
    const enum elv_err err = elv_partition_owners(&draw, owner, mem, len);
    free(mem);
    if (err == ELV_ERR_RANGE)
        return too_few(cfg, why);
    return err == ELV_OK ? ELV_OK : fail(err, why, "the examples cannot be split");
}

static enum elv_err find_owners(const struct elv_lab_split_cfg *cfg, uint32_t *owner, char *why)
{
    const char *want = "";
    struct elv_partition how = {.kind = ELV_PARTITION_IID};
    const struct elv_bytes text = {(const uint8_t *)cfg->partition, strlen(cfg->partition)};
    const enum elv_err err = text.len > 0 ? elv_partition_parse(&how, text, &want) : ELV_OK;
    if (err != ELV_OK)
        return fail(err, why, want);
    if (how.kind != ELV_PARTITION_FILE)
        return draw_owners(cfg, &how, owner, why);
    if (cfg->owner == NULL)
        return fail(ELV_ERR_ARG, why, "the owners of a file partition were not read");
    for (uint32_t i = 0; i < cfg->data->n; i++) {
        if (cfg->owner[i] >= cfg->n_clients)
            return fail(ELV_ERR_ARG, why, "an owner in the partition file is none of the clients");
        owner[i] = cfg->owner[i];
    }
    return ELV_OK;
}

/* Sorts the examples by client, each client's in rising order, and holds some out. */
static void deal(struct elv_lab_split *s, const struct elv_lab_split_cfg *cfg,
                 const uint32_t *owner)
{
    memset(s->first, 0, ((size_t)s->n_clients + 1) * sizeof *s->first);
    for (uint32_t i = 0; i < cfg->data->n; i++)
        s->first[owner[i] + 1]++;
    for (uint32_t c = 0; c < s->n_clients; c++)
        s->first[c + 1] += s->first[c];
    for (uint32_t i = 0; i < cfg->data->n; i++)
        s->index[s->first[owner[i]]++] = i;
    for (uint32_t c = s->n_clients; c > 0; c--) /* each start has moved to the next one's place */
        s->first[c] = s->first[c - 1];
    s->first[0] = 0;
    for (uint32_t c = 0; c < s->n_clients; c++) {
        const uint32_t n = (uint32_t)(s->first[c + 1] - s->first[c]);
        s->n_train[c] =
            elv_partition_holdout(cfg->seed, c, cfg->holdout, s->index + s->first[c], n);
        s->most = s->n_train[c] > s->most ? s->n_train[c] : s->most;
    }
}

static void digest_owners(struct elv_lab_split *s, const uint32_t *owner, uint32_t n)
{
    struct elv_sha256 sha;
    elv_sha256_init(&sha);
    for (uint32_t i = 0; i < n; i++)
        digest_u32(&sha, owner[i]);
    elv_sha256_final(&sha, s->digest);
}

enum elv_err elv_lab_split_new(struct elv_lab_split *s, const struct elv_lab_split_cfg *cfg,
                               char why[ELV_JOB_ERROR_MAX])
{
    *s = (struct elv_lab_split){.n_clients = cfg->n_clients};
    if (cfg->n_clients == 0 || cfg->n_clients == UINT32_MAX)
        return fail(ELV_ERR_ARG, why, "there are no clients to split the examples over");
    const uint32_t n = cfg->data->n;
    uint32_t *owner = take(n, sizeof *owner);
    s->index = take(n, sizeof *s->index);
    s->first = take((size_t)cfg->n_clients + 1, sizeof *s->first);
    s->n_train = take(cfg->n_clients, sizeof *s->n_train);
    enum elv_err err = ELV_OK;
    if (owner == NULL || s->index == NULL || s->first == NULL || s->n_train == NULL)
        err = fail(ELV_ERR_MEMORY, why, "there is not enough memory to split the examples");
    else
        err = find_owners(cfg, owner, why);
    if (err == ELV_OK) {
        digest_owners(s, owner, n);
        deal(s, cfg, owner);
    } else {
        elv_lab_split_free(s);
    }
    free(owner);
    return err;
}

void elv_lab_split_free(struct elv_lab_split *s)
{
    free(s->index);
    free(s->first);
    free(s->n_train);
    *s = (struct elv_lab_split){0};
}

/* Feeds. */

static uint32_t count(void *self) { return ((struct elv_lab_part *)self)->n; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    const struct elv_lab_part *p = self;
    *n_values = p->data->n_values;
    *n_classes = p->data->n_classes;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    const struct elv_lab_part *p = self;
    const struct elv_feed *feed = &p->data->feed;
    uint32_t place[AT_ONCE];
    for (uint32_t at = 0; at < n;) {
        const uint32_t now = n - at < AT_ONCE ? n - at : AT_ONCE;
        for (uint32_t i = 0; i < now; i++)
            place[i] = p->index[index[at + i]];
        const enum elv_err err =
            feed->get(feed->self, place, now, x + (size_t)at * p->data->n_values, y + at);
        if (err != ELV_OK)
            return err;
        at += now;
    }
    return ELV_OK;
}

struct elv_feed elv_lab_part_feed(struct elv_lab_part *p)
{
    return (struct elv_feed){.self = p, .count = count, .shape = shape, .get = get};
}
