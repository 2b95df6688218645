/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys of a job must be together. */
#include <string.h>

#include "common/codec.h"
#include "common/text.h"
#include "server/job.h"
#include "server/job_keys.h"

static size_t place_of(const char *path)
{
    size_t i = 0;
    while (strcmp(elv_job_keys_at(i)->path, path) != 0)
        i++;
    return i;
}

uint32_t elv_job_line(const struct elv_job *job, const char *path)
{
    return job->line[place_of(path)];
}

/* A rule between keys is broken; the sentence says the rule. */
static enum elv_err refuse(const struct elv_job *job, const char *path, const char *text,
                           char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, text);
    *line = elv_job_line(job, path);
    return ELV_ERR_RANGE;
}

static enum elv_err check_given(const struct elv_job *job, char why[ELV_JOB_ERROR_MAX])
{
    static const char *const needed[] = {"job.name", "model.input", "model.layers"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const struct elv_job_key *k = elv_job_keys_at(place_of(needed[i]));
        if (((const char *)job)[k->at] != '\0')
            continue;
        struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
        elv_line_add(&l, "[");
        elv_line_add(&l, k->section);
        elv_line_add(&l, "] needs ");
        elv_line_add(&l, k->name);
        elv_line_add(&l, "; give ");
        elv_line_add(&l, k->accepts);
        return ELV_ERR_MISSING;
    }
    return ELV_OK;
}

static struct elv_bytes bytes_of(const char *text)
{
    return (struct elv_bytes){.at = (const uint8_t *)text, .len = strlen(text)};
}

static enum elv_err check_model(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const struct elv_model_text text = {
        .input = bytes_of(job->input), .layers = bytes_of(job->layers), .loss = bytes_of("")};
    struct elv_text_err bad = {0};
    const enum elv_err err = elv_model_parse(&job->model, text, &bad);
    if (err == ELV_OK)
        return ELV_OK;
    const char *part = bad.part == 0 ? job->input : job->layers;
    const size_t at = bad.at < strlen(part) ? bad.at : strlen(part);
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, bad.part == 0 ? "input" : "layers");
    if (at == strlen(part)) {
        elv_line_add(&l, ", at its end");
    } else {
        elv_line_add(&l, ", at \"");
        elv_line_chars(&l, part + at, strlen(part + at) < 40 ? strlen(part + at) : 40);
        elv_line_add(&l, "\"");
    }
    elv_line_add(&l, ": give ");
    elv_line_add(&l, bad.want != NULL ? bad.want : "another model");
    *line = elv_job_line(job, bad.part == 0 ? "model.input" : "model.layers");
    return err;
}

static enum elv_err check_client(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const bool epochs_given = elv_job_line(job, "client.local_epochs") != 0;
    if (job->local_steps > 0 && !epochs_given)
        job->local_epochs = 0;
    if ((job->local_epochs > 0) == (job->local_steps > 0))
        return refuse(job, job->local_steps > 0 ? "client.local_steps" : "client.local_epochs",
                      "give either local_epochs or local_steps, 1 or more", why, line);
    return ELV_OK;
}

static enum elv_err check_counts(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    if (job->min_clients == 0)
        job->min_clients = job->quorum;
    if (job->min_clients < job->quorum)
        return refuse(job, "select.min_clients", "min_clients is at least the quorum", why, line);
    if (job->select_count > 0 && job->select_count < job->quorum)
        return refuse(job, "select.count", "count is 0 (all) or at least the quorum", why, line);
    return ELV_OK;
}

/* An update's values become 32-bit integers of 2^30 at most, and its weight an integer such that
 * those of one version add up to about 2^30; so that weights still tell clients apart when there
 * are many, their greatest sum is bounded too. How many clients `count = 0` can mean is the
 * server's limit to know. */
static enum elv_err check_sums(const struct elv_job *job, char why[ELV_JOB_ERROR_MAX],
                               uint32_t *line)
{
    const uint64_t cap = job->weight == ELV_WEIGHT_UNIFORM ? 1 : job->max_weight;
    const uint64_t n = job->select_count > 0 ? job->select_count : 1;
    if (cap * n > (uint64_t)1 << 50)
        return refuse(job, "aggregate.max_weight",
                      "max_weight times [select] count is at most 2^50, so that sums fit 64 bits",
                      why, line);
    return ELV_OK;
}

/* Who evaluates, unless the job says so: the server when it has a test set, else the clients when
 * they keep examples for it. */
static enum elv_err check_eval(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    const bool has_test = job->test[0] != '\0';
    const bool on_given = elv_job_line(job, "eval.on") != 0;
    if (!has_test && !on_given) {
        job->eval_on = ELV_EVAL_CLIENTS;
        if (job->holdout == 0 && elv_job_line(job, "eval.every") == 0)
            job->eval_every = 0;
    }
    if (!has_test && job->eval_on != ELV_EVAL_CLIENTS)
        return refuse(job, "eval.on", "without [data] test only clients can evaluate", why, line);
    if (job->target_accuracy > 0 && job->eval_every == 0)
        return refuse(job, "job.target_accuracy",
                      "a target needs evaluation: give [data] test, or holdout, or [eval] every",
                      why, line);
    return ELV_OK;
}

/* What only codecs that send a share of the coordinates have a use for. */
static enum elv_err check_transfer(const struct elv_job *job, char why[ELV_JOB_ERROR_MAX],
                                   uint32_t *line)
{
    bool sparse = false;
    for (uint32_t i = 0; i < job->n_up; i++)
        sparse |= elv_codec_is_sparse(elv_codec_by_id(job->up[i].id));
    if (job->warm_up > 0 && !sparse)
        return refuse(
            job, "transfer.warm_up",
            "a warm-up sends a larger share of the coordinates at first; it needs a codec "
            "in [transfer] up that sends a share, such as ternary 0.01",
            why, line);
    if (job->momentum_correction > 0 && !sparse)
        return refuse(job, "transfer.momentum_correction",
                      "momentum_correction needs a codec in [transfer] up that sends a share of "
                      "the coordinates, such as ternary 0.01",
                      why, line);
    if (job->momentum_correction > 0 && elv_job_keeps(job) == ELV_FEEDBACK_NONE)
        return refuse(job, "transfer.momentum_correction",
                      "momentum_correction needs feedback: give feedback = auto, f32 or f16", why,
                      line);
    return ELV_OK;
}

enum elv_err elv_job_check(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    *line = 0;
    why[0] = '\0';
    enum elv_err err = check_given(job, why);
    if (err == ELV_OK)
        err = check_model(job, why, line);
    if (err == ELV_OK)
        err = check_client(job, why, line);
    if (err == ELV_OK)
        err = check_counts(job, why, line);
    if (err == ELV_OK)
        err = check_sums(job, why, line);
    if (err == ELV_OK)
        err = check_eval(job, why, line);
    if (err == ELV_OK)
        err = check_transfer(job, why, line);
    return err;
}
