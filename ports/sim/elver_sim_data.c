/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/partition.h"
#include "ports/posix/dataset.h"
#include "ports/posix/file.h"
#include "ports/sim/elver_sim_options.h"
#include "ports/zlib/squeeze.h"
#include "server/model_file.h"

#define FILE_MAX ((size_t)8 << 30)

struct elv_sim_set {
    struct elv_sim_set *next;
    char spec[ELV_JOB_TEXT_MAX];
    enum elv_dataset_part part;
    float scale, mean, std;
    struct elv_dataset raw;
    struct elv_dataset_feed feed;
    struct elv_lab_data data;
};

struct elv_sim_trace {
    struct elv_sim_trace *next;
    char path[ELV_JOB_TEXT_MAX];
    struct elv_lab_trace trace;
    uint8_t digest[ELV_SHA256_LEN];
};

static int wrong(const char *what, const char *why)
{
    elv_sim_complain(what, why);
    return ELV_SIM_USAGE;
}

static int not_loaded(const char *path, enum elv_err err)
{
    if (err == ELV_ERR_MISSING)
        return wrong(path, "No such file or directory");
    if (err == ELV_ERR_FULL)
        return wrong(path, "the file is too large");
    return wrong(path, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
}

/* Traces. */

static int parse_trace(struct elv_sim_trace *t, struct elv_bytes text)
{
    char why[256] = "";
    uint32_t line = 0;
    elv_sha256(text.at, text.len, t->digest);
    const enum elv_err err = elv_lab_trace_parse(&t->trace, text, why, &line);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "elver-sim: %s:%" PRIu32 ": %s\n", t->path, line,
            why[0] != '\0' ? why : elv_err_text(err));
    return ELV_SIM_USAGE;
}

static int load_trace(struct elv_sim_data *d, const char *path)
{
    uint8_t *bytes;
    size_t len;
    const enum elv_err err = elv_posix_load(path, FILE_MAX, &bytes, &len);
    if (err != ELV_OK)
        return not_loaded(path, err);
    struct elv_sim_trace *t = calloc(1, sizeof *t);
    int status = t == NULL ? elv_sim_complain(path, "out of memory") : EXIT_SUCCESS;
    if (t != NULL) {
        snprintf(t->path, sizeof t->path, "%s", path);
        status = parse_trace(t, (struct elv_bytes){bytes, len});
    }
    free(bytes);
    if (status != EXIT_SUCCESS) {
        free(t);
        return status;
    }
    t->next = d->traces;
    d->traces = t;
    return EXIT_SUCCESS;
}

static const struct elv_sim_trace *find_trace(const struct elv_sim_data *d, const char *path)
{
    const struct elv_sim_trace *t = d->traces;
    while (t != NULL && strcmp(t->path, path) != 0)
        t = t->next;
    return t;
}

int elv_sim_data_trace(struct elv_sim_data *d, struct elv_lab_setup *s, struct elv_sim_inputs *in)
{
    const char *path = s->world.trace;
    if (path[0] == '\0')
        return EXIT_SUCCESS;
    if (find_trace(d, path) == NULL) {
        const int status = load_trace(d, path);
        if (status != EXIT_SUCCESS)
            return status;
    }
    const struct elv_sim_trace *t = find_trace(d, path);
    memcpy(in->trace_digest, t->digest, sizeof in->trace_digest);
    in->trace = s->world.world.trace = &t->trace;
    if (s->world.world.clients == 0)
        s->world.world.clients = t->trace.n_clients;
    if (s->world.world.clients <= t->trace.n_clients)
        return EXIT_SUCCESS;
    return wrong(path,
                 "the trace has fewer clients than the world; give a lower --clients, or none");
}

/* Data sets. */

static bool is_set(const struct elv_sim_set *set, const struct elv_job *job, const char *spec,
                   enum elv_dataset_part part)
{
    return strcmp(set->spec, spec) == 0 && set->part == part && set->scale == job->scale &&
           set->mean == job->mean && set->std == job->std;
}

static const struct elv_sim_set *find_set(const struct elv_sim_data *d, const struct elv_job *job,
                                          const char *spec, enum elv_dataset_part part)
{
    const struct elv_sim_set *set = d->sets;
    while (set != NULL && !is_set(set, job, spec, part))
        set = set->next;
    return set;
}

static int open_set(struct elv_sim_set *set, const char *key)
{
    char why[ELV_DATASET_WHY_MAX];
    const struct elv_gunzip gz = {.unpack = elv_zlib_gunzip, .release = elv_zlib_free};
    if (elv_dataset_load(&set->raw, set->spec, set->part, &gz, why) != ELV_OK)
        return wrong(key, why);
    elv_dataset_feed_init(&set->feed, &set->raw, NULL, 0, set->scale, set->mean, set->std);
    const struct elv_feed feed = {.self = &set->feed,
                                  .count = elv_dataset_feed_count,
                                  .shape = elv_dataset_feed_shape,
                                  .get = elv_dataset_feed_get};
    const enum elv_err err = elv_lab_data_open(&set->data, &feed);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    elv_dataset_free(&set->raw);
    return wrong(key, elv_err_text(err));
}

static int load_set(struct elv_sim_data *d, const struct elv_job *job, const char *spec,
                    enum elv_dataset_part part, const struct elv_lab_data **out)
{
    const char *key = part == ELV_DATASET_TRAIN ? "data.train" : "data.test";
    const struct elv_sim_set *known = find_set(d, job, spec, part);
    if (known != NULL) {
        *out = &known->data;
        return EXIT_SUCCESS;
    }
    struct elv_sim_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return elv_sim_complain(key, "out of memory");
    snprintf(set->spec, sizeof set->spec, "%s", spec);
    set->part = part;
    set->scale = job->scale;
    set->mean = job->mean;
    set->std = job->std;
    const int status = open_set(set, key);
    if (status != EXIT_SUCCESS) {
        free(set);
        return status;
    }
    set->next = d->sets;
    d->sets = set;
    *out = &set->data;
    return EXIT_SUCCESS;
}

/* The first model. */

static enum elv_err read_start(const struct elv_model *m, struct elv_bytes file, float **out)
{
    float *flat = calloc(m->n_params, sizeof *flat);
    *out = calloc(m->n_shared, sizeof **out);
    const enum elv_err err =
        flat == NULL || *out == NULL ? ELV_ERR_MEMORY : elv_model_file_read(m, file, flat, *out);
    free(flat);
    return err;
}

static int load_start(const struct elv_job *job, struct elv_sim_inputs *in)
{
    uint8_t *bytes;
    size_t len;
    float *start = NULL;
    enum elv_err err = elv_posix_load(job->start, FILE_MAX, &bytes, &len);
    if (err != ELV_OK)
        return not_loaded(job->start, err);
    err = read_start(&job->model, (struct elv_bytes){bytes, len}, &start);
    elv_sha256(bytes, len, in->start_digest);
    free(bytes);
    in->start = start;
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    return wrong(job->start,
                 err == ELV_ERR_MISMATCH ? "it is of another model" : elv_err_text(err));
}

/* A partition that a file says. */
static int load_owners(const struct elv_lab_setup *s, struct elv_sim_inputs *in)
{
    char path[ELV_JOB_TEXT_MAX], why[ELV_DATASET_WHY_MAX];
    const char *text = s->job.partition;
    struct elv_partition how;
    if (text[0] == '\0' ||
        elv_partition_parse(&how, (struct elv_bytes){(const uint8_t *)text, strlen(text)}, NULL) !=
            ELV_OK ||
        how.kind != ELV_PARTITION_FILE)
        return EXIT_SUCCESS;
    snprintf(path, sizeof path, "%.*s", (int)how.path.len, (const char *)how.path.at);
    uint32_t *owner = calloc(in->train->n, sizeof *owner);
    if (owner == NULL)
        return elv_sim_complain("data.partition", "out of memory");
    in->owner = owner;
    return elv_dataset_load_owners(path, in->train->n, s->world.world.clients, owner, why) == ELV_OK
               ? EXIT_SUCCESS
               : wrong("data.partition", why);
}

int elv_sim_data_take(struct elv_sim_data *d, const struct elv_lab_setup *s,
                      struct elv_sim_inputs *in)
{
    const struct elv_job *job = &s->job;
    if (s->world.world.learning != ELV_LAB_NETWORK)
        return EXIT_SUCCESS;
    int status = load_set(d, job, job->train, ELV_DATASET_TRAIN, &in->train);
    if (status == EXIT_SUCCESS && job->test[0] != '\0' && job->eval_every > 0 &&
        job->eval_on != ELV_EVAL_CLIENTS)
        status = load_set(d, job, job->test, ELV_DATASET_TEST, &in->test);
    if (status == EXIT_SUCCESS && job->start[0] != '\0')
        status = load_start(job, in);
    if (status == EXIT_SUCCESS)
        status = load_owners(s, in);
    return status;
}

void elv_sim_inputs_free(struct elv_sim_inputs *in)
{
    free(in->start);
    free(in->owner);
}

void elv_sim_data_free(struct elv_sim_data *d)
{
    while (d->sets != NULL) {
        struct elv_sim_set *set = d->sets;
        d->sets = set->next;
        elv_lab_data_close(&set->data);
        elv_dataset_free(&set->raw);
        free(set);
    }
    while (d->traces != NULL) {
        struct elv_sim_trace *t = d->traces;
        d->traces = t->next;
        elv_lab_trace_free(&t->trace);
        free(t);
    }
}
