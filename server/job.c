/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job.h"

#include <string.h>

#include "common/assert.h"
#include "common/codec.h"
#include "common/text.h"
#include "server/job_keys.h"
#include "server/refusal.h"
#include "server/value.h"

enum { SHOWN = 60 }; /* of a value */

static const char sections_text[] =
    "job, data, model, client, sync, aggregate, select, size, transfer, eval, state, trainer";

/* Sections that name a policy keep the parameters they do not know for it. */
static const struct {
    const char *section;
    size_t params; /* offset in struct elv_job */
} policies[] = {
    {"sync", offsetof(struct elv_job, sync_params)},
    {"aggregate", offsetof(struct elv_job, rule_params)},
    {"select", offsetof(struct elv_job, select_params)},
    {"size", offsetof(struct elv_job, sizing_params)},
};
enum { POLICIES = sizeof policies / sizeof policies[0] };

static struct elv_params *params_at(struct elv_job *job, size_t policy)
{
    return (struct elv_params *)((uint8_t *)job + policies[policy].params);
}

static const struct elv_params *params_of(const struct elv_job *job, size_t policy)
{
    return (const struct elv_params *)((const uint8_t *)job + policies[policy].params);
}

void elv_job_init(struct elv_job *job)
{
    *job = (struct elv_job){
        .seed = 1,
        .scale = 1,
        .std = 1,
        .loss = ELV_LOSS_SOFTMAX_XENT,
        .local_epochs = 1,
        .batch_size = 32,
        .optimizer = ELV_OPT_SGD,
        .learning_rate = 0.05f,
        .learning_rate_decay = 1,
        .arithmetic = ELV_ARITHMETIC_FAST,
        .sync = "bsp",
        .deadline_us = 60000000,
        .publish_us = 1000000,
        .quorum = 1,
        .rule = "fedavg",
        .weight = ELV_WEIGHT_SAMPLES,
        .max_weight = 100000,
        .masking = ELV_MASKING_NONE,
        .select = "uniform",
        .sizing = "fixed",
        .up = {{.id = ELV_CODEC_Q8}},
        .n_up = 1,
        .down = {.id = ELV_CODEC_F32},
        .bound = 8,
        .feedback = ELV_JOB_FEEDBACK_AUTO,
        .feedback_age = 1,
        .eval_every = 1,
        .eval_on = ELV_EVAL_SERVER,
        .keep = 3,
    };
}

static struct elv_line sentence(char why[ELV_JOB_ERROR_MAX])
{
    return elv_line_of(why, ELV_JOB_ERROR_MAX);
}

static void say(char why[ELV_JOB_ERROR_MAX], const char *before, const char *name,
                const char *after)
{
    struct elv_line l = sentence(why);
    elv_line_add(&l, before);
    elv_line_add(&l, name);
    elv_line_add(&l, after);
}

static void key_at(size_t i, const char **section, const char **name)
{
    const struct elv_job_key *key = elv_job_keys_at(i);
    *section = key->section;
    *name = key->name;
}

static struct elv_keys all_keys(void)
{
    return (struct elv_keys){.sections = sections_text, .n = elv_job_keys_count(), .at = key_at};
}

static bool known_section(const char *section)
{
    for (size_t i = 0; i < elv_job_keys_count(); i++)
        if (strcmp(elv_job_keys_at(i)->section, section) == 0)
            return true;
    return false;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool param_value(struct elv_text t, struct elv_param *p)
{
    elv_time_us us;
    bool on;
    p->kind = ELV_PARAM_NUMBER;
    if (elv_value_number(t, &p->value))
        return true;
    p->kind = ELV_PARAM_DURATION;
    if (elv_value_duration(t, &us)) {
        p->value = (double)us;
        return true;
    }
    p->kind = ELV_PARAM_WORD;
    for (size_t i = 0; i < t.len; i++)
        if (!is_name_char(t.at[i]))
            return false;
    if (t.len == 0 || t.len >= sizeof p->word)
        return false;
    memcpy(p->word, t.at, t.len);
    p->value = elv_value_bool(t, &on) && on ? 1 : 0;
    return true;
}

static bool param_name_ok(const char *name)
{
    size_t n = 0;
    for (; name[n] != '\0'; n++)
        if (!is_name_char(name[n]))
            return false;
    return n > 0 && n < sizeof((struct elv_param *)0)->name;
}

static enum elv_err set_param(struct elv_params *params, const char *section, const char *name,
                              struct elv_text value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    static const char accepts[] = "a number, a time such as 500ms or 30s, or a word";
    const struct elv_keys keys = all_keys();
    struct elv_line l = sentence(why);
    struct elv_param p = {.line = line};
    uint32_t i = 0;
    if (!param_name_ok(name))
        return elv_refuse_key(&l, &keys, section, name);
    while (i < params->n && strcmp(params->at[i].name, name) != 0)
        i++;
    if (i < params->n && line != ELV_JOB_OVERRIDE)
        return elv_refuse_second(&l, name, params->at[i].line);
    if (i == ELV_JOB_PARAMS_MAX) {
        say(why, "[", section, "] has no room for another parameter");
        return ELV_ERR_FULL;
    }
    if (!param_value(value, &p))
        return elv_refuse_value(&l, name, value, SHOWN, accepts, ELV_ERR_FORMAT);
    memcpy(p.name, name, strlen(name));
    params->at[i] = p;
    params->n += i == params->n;
    return ELV_OK;
}

enum elv_err elv_job_set(struct elv_job *job, const char *section, const char *key,
                         const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    const struct elv_text text = elv_value_of(value);
    const struct elv_keys keys = all_keys();
    struct elv_line l = sentence(why);
    ELV_ASSERT(line > 0);
    why[0] = '\0';
    if (strcmp(section, "trainer") == 0)
        return ELV_OK;
    if (!known_section(section))
        return elv_refuse_section(&l, &keys, section);
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        if (strcmp(k->section, section) != 0 || strcmp(k->name, key) != 0)
            continue;
        if (job->line[i] != 0 && line != ELV_JOB_OVERRIDE)
            return elv_refuse_second(&l, key, job->line[i]);
        const enum elv_err err = text.len > 0 ? elv_job_key_read(k, job, text) : ELV_ERR_FORMAT;
        if (err != ELV_OK)
            return elv_refuse_value(&l, key, text, SHOWN, k->accepts, err);
        job->line[i] = line;
        return ELV_OK;
    }
    for (size_t p = 0; p < POLICIES; p++)
        if (strcmp(policies[p].section, section) == 0)
            return set_param(params_at(job, p), section, key, text, line, why);
    return elv_refuse_key(&l, &keys, section, key);
}

static void put_param(struct elv_line *out, const struct elv_param *p)
{
    if (p->kind == ELV_PARAM_WORD)
        elv_line_add(out, p->word);
    else if (p->kind == ELV_PARAM_DURATION)
        elv_value_put_duration(out, (elv_time_us)p->value);
    else
        elv_line_f64(out, p->value);
}

bool elv_job_key(const struct elv_job *job, size_t i, const char **section, const char **key,
                 char value[ELV_JOB_TEXT_MAX], uint32_t *line)
{
    struct elv_line out = elv_line_of(value, ELV_JOB_TEXT_MAX);
    if (i < elv_job_keys_count()) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        elv_job_key_print(k, job, &out);
        *section = k->section;
        *key = k->name;
        *line = job->line[i];
        return true;
    }
    i -= elv_job_keys_count();
    for (size_t p = 0; p < POLICIES; p++) {
        const struct elv_params *params = params_of(job, p);
        if (i < params->n) {
            put_param(&out, &params->at[i]);
            *section = policies[p].section;
            *key = params->at[i].name;
            *line = params->at[i].line;
            return true;
        }
        i -= params->n;
    }
    return false;
}

/* Values are the same when they print alike, for parameters as for keys. */
static bool same_param(const struct elv_param *a, const struct elv_param *b)
{
    char text[2][40];
    struct elv_line l0 = elv_line_of(text[0], sizeof text[0]);
    struct elv_line l1 = elv_line_of(text[1], sizeof text[1]);
    put_param(&l0, a);
    put_param(&l1, b);
    return strcmp(text[0], text[1]) == 0;
}

static bool same_params(const struct elv_params *a, const struct elv_params *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        uint32_t j = 0;
        while (j < b->n && strcmp(a->at[i].name, b->at[j].name) != 0)
            j++;
        same = j < b->n && same_param(&a->at[i], &b->at[j]);
    }
    return same;
}

static bool same_value(const struct elv_job_key *k, const struct elv_job *a,
                       const struct elv_job *b)
{
    char text[2][ELV_JOB_TEXT_MAX];
    struct elv_line l0 = elv_line_of(text[0], sizeof text[0]);
    struct elv_line l1 = elv_line_of(text[1], sizeof text[1]);
    if (strcmp(k->path, "model.input") == 0 || strcmp(k->path, "model.layers") == 0)
        if (memcmp(a->model.fingerprint, b->model.fingerprint, sizeof a->model.fingerprint) == 0)
            return true; /* written differently, but the same network */
    elv_job_key_print(k, a, &l0);
    elv_job_key_print(k, b, &l1);
    return strcmp(text[0], text[1]) == 0;
}

const char *elv_job_changed(const struct elv_job *before, const struct elv_job *now)
{
    for (size_t i = 0; i < elv_job_keys_count(); i++) {
        const struct elv_job_key *k = elv_job_keys_at(i);
        if (!k->may_change && !same_value(k, before, now))
            return k->path;
    }
    return same_params(&before->rule_params, &now->rule_params) ? NULL : "aggregate.rule";
}

static struct elv_text text_of(const char *s)
{
    return (struct elv_text){.at = s, .len = strlen(s)};
}

void elv_job_manifest(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                      struct elv_manifest *m)
{
    *m = (struct elv_manifest){
        .wire_min = ELV_WIRE_MIN,
        .wire_max = ELV_WIRE_MAX,
        .seed = job->seed,
        .job = text_of(job->name),
        .input = text_of(job->input),
        .layers = text_of(job->layers),
        .n_params = job->model.n_shared,
        .loss = job->loss,
        .optimizer = job->optimizer,
        .momentum = job->momentum,
        .weight_decay = job->weight_decay,
        .scale = job->scale,
        .mean = job->mean,
        .std = job->std,
        .partition = text_of(job->partition),
        .holdout = job->holdout,
        .arithmetic = job->arithmetic,
        .n_up = job->n_up,
        .down = job->down,
        .deflate = job->deflate,
        .bound = job->bound,
        .clip = job->clip,
        .weight_max = job->max_weight,
        .proximal = job->proximal,
        .feedback = elv_job_keeps(job),
    };
    if (m->feedback != ELV_FEEDBACK_NONE) {
        m->feedback_age = job->feedback_age;
        m->momentum_correction = job->momentum_correction;
    }
    memcpy(m->run, run, ELV_RUN_ID_LEN);
    memcpy(m->fingerprint, job->model.fingerprint, sizeof m->fingerprint);
    memcpy(m->up, job->up, sizeof m->up);
}

void elv_job_print(const struct elv_job *job, struct elv_line *out)
{
    const char *section, *key, *before = "";
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    for (size_t i = 0; elv_job_key(job, i, &section, &key, value, &line); i++) {
        if (value[0] == 0)
            continue;
        if (strcmp(section, before) != 0) {
            elv_line_add(out, "[");
            elv_line_add(out, section);
            elv_line_add(out, "]\n");
            before = section;
        }
        elv_line_add(out, key);
        elv_line_add(out, " = ");
        elv_line_add(out, value);
        elv_line_add(out, "\n");
    }
}
